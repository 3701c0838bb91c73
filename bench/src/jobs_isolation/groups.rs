//! Control groups for threads: the first version's `cpu` controller, where this process may make groups. (The second
//! version has its weight in `cpu.weight`; the controller belongs to one version at a time, and threads of one process
//! in several groups need a threaded subtree there.)

use std::{fs, io, path::PathBuf, process};

/// A group of the usual weight, which is removed when it is dropped and no thread is in it.
pub struct Group(PathBuf);

impl Group {
    /// Makes one.
    pub fn new(name: &str) -> io::Result<Group> {
        let path = format!("/sys/fs/cgroup/cpu/urgency-bench-{}-{name}", process::id());
        fs::create_dir(&path)?;
        let group = Group(path.into());
        fs::write(group.0.join("cpu.shares"), "1024")?;
        Ok(group)
    }

    /// The calling thread is in it from now on.
    pub fn enter(&self) {
        fs::write(self.0.join("tasks"), "0").expect("a thread may enter a group of its own");
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // The threads of a pool may still be on their way out: then it stays, and is empty.
        let _ = fs::remove_dir(&self.0);
    }
}
