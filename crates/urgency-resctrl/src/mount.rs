//! Where resctrl is mounted.

use crate::{Disk, Error, MountOptions};
use std::{fs, path::Path};

/// resctrl as this machine has it mounted: its files, for [`Partition::open`](crate::Partition::open).
///
/// # Errors
///
/// [`Error::NotMounted`], or [`Error::NotSupported`] if the kernel could not mount it either.
pub fn mounted() -> Result<(Disk, MountOptions), Error> {
    mounted_at(Path::new("/"))
}

/// The same, with the machine's root directory elsewhere: `proc` is looked for in it, and resctrl's mount point.
///
/// ```
/// use urgency_resctrl::{Error, mounted_at};
///
/// let nowhere = std::env::temp_dir().join("no-such-machine");
/// assert!(matches!(mounted_at(&nowhere), Err(Error::NotSupported)));
/// ```
///
/// # Errors
///
/// As [`mounted`].
pub fn mounted_at(root: &Path) -> Result<(Disk, MountOptions), Error> {
    let read = |name: &str| fs::read_to_string(root.join(name)).unwrap_or_default();
    for mount in read("proc/self/mounts").lines() {
        let mut columns = mount.split(' ').skip(1);
        if let (Some(at), Some("resctrl"), Some(options)) =
            (columns.next(), columns.next(), columns.next())
        {
            let files = Disk::new(root.join(at.trim_start_matches('/')));
            return Ok((files, MountOptions::parse(options)));
        }
    }
    let file_systems = read("proc/filesystems");
    let is_known = |line: &str| line.split_whitespace().next_back() == Some("resctrl");
    Err(if file_systems.lines().any(is_known) {
        Error::NotMounted
    } else {
        Error::NotSupported
    })
}
