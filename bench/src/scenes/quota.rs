//! A limit of processor time for this process: a cgroup of its own, where that is permitted.
//!
//! Version 2 has `cpu.max`, version 1 `cpu.cfs_quota_us`; a machine may have either below `/sys/fs/cgroup`. The group
//! is a child of the root group, and goes when the value is dropped. Its name has the process's number.

use std::fs::{self, OpenOptions};
use std::path::{Path, PathBuf};

/// Of both versions: the root, the file with the limit (in microseconds of each 100 ms), and the file that says whether
/// a group may have it, with the word for that.
const VERSIONS: [(&str, &str, &str, &str); 2] = [
    ("/sys/fs/cgroup", "cpu.max", "cgroup.subtree_control", "cpu"),
    ("/sys/fs/cgroup/cpu", "cpu.cfs_quota_us", "cgroup.procs", ""),
];

/// The root and the file with the limit, if this process may have a group.
fn version() -> Option<(&'static Path, &'static str)> {
    let (root, file, ..) = VERSIONS.iter().find(|(root, _, says, word)| {
        let root = Path::new(root);
        let says = fs::read_to_string(root.join(says));
        says.is_ok_and(|says| word.is_empty() || says.split_whitespace().any(|has| has == *word))
            && OpenOptions::new()
                .write(true)
                .open(root.join("cgroup.procs"))
                .is_ok()
    })?;
    Some((Path::new(root), file))
}

/// Whether the machine has such groups, and permits one.
pub fn is_permitted() -> bool {
    version().is_some()
}

/// A group with a limit, in which this process is.
pub struct Quota {
    root: &'static Path,
    group: PathBuf,
}

impl Quota {
    /// Enters a group with so many processors' time; it has the kernel's period, 100 ms.
    ///
    /// # Panics
    ///
    /// If the machine has neither version, or does not permit it: the sample fails then.
    pub fn enter(processors: f64) -> Self {
        let (root, file) = version().expect("the machine permits a cgroup with a limit");
        let group = root.join(format!("urgency-bench-{}", std::process::id()));
        fs::create_dir(&group).unwrap_or_else(|why| panic!("{}: {why}", group.display()));
        let quota = Quota { root, group };
        let limit = format!("{:.0}", processors * 100_000.0);
        write(&quota.group.join(file), &limit);
        quota.move_into(&quota.group);
        quota
    }

    /// Moves this process with all its threads.
    fn move_into(&self, group: &Path) {
        write(&group.join("cgroup.procs"), &std::process::id().to_string());
    }
}

impl Drop for Quota {
    fn drop(&mut self) {
        self.move_into(self.root);
        // A group that stays is empty.
        let _ = fs::remove_dir(&self.group);
    }
}

fn write(file: &Path, text: &str) {
    fs::write(file, text).unwrap_or_else(|why| panic!("{}: {why}", file.display()));
}
