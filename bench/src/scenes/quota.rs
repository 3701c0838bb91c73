//! A limit of processor time for this process: a cgroup of its own, where that is permitted.
//!
//! Version 2 has `cpu.max`, version 1 `cpu.cfs_quota_us`; a machine may have either below `/sys/fs/cgroup`. The group
//! is a child of the root group, and goes when the value is dropped. Its name has the process's number.

use std::fs;
use std::path::{Path, PathBuf};

/// Roots of both versions, and the file with the limit, in microseconds of each 100 ms.
const ROOTS: [(&str, &str); 2] = [
    ("/sys/fs/cgroup", "cpu.max"),
    ("/sys/fs/cgroup/cpu", "cpu.cfs_quota_us"),
];

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
        let has = |root: &&(&str, &str)| Path::new(root.0).join("cgroup.procs").is_file();
        let found = ROOTS.iter().find(has);
        let (root, file) = found.expect("the machine has cgroups for processor time");
        let group = Path::new(root).join(format!("urgency-bench-{}", std::process::id()));
        fs::create_dir(&group).unwrap_or_else(|why| panic!("{}: {why}", group.display()));
        let quota = Quota {
            root: Path::new(root),
            group,
        };
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
