//! The five things that are done with files, so that a test can be the kernel.

use std::{
    fs,
    io::{self, Write},
    path::{Path, PathBuf},
};

/// A tree of files that is resctrl's, or behaves like it. Paths are relative to its root; the empty path is the root.
///
/// [`Disk`] is the real one. A test implements the kernel's rules instead.
///
/// ```
/// use std::path::Path;
/// use urgency_resctrl::{Disk, Files};
///
/// let root = std::env::temp_dir().join(format!("urgency-files-{}", std::process::id()));
/// std::fs::create_dir_all(&root)?;
/// let files = Disk::new(root.clone());
/// files.make_dir(Path::new("group"))?;
/// assert_eq!(files.directories(Path::new(""))?, ["group"]);
/// let schemata = Path::new("group/schemata");
/// std::fs::write(root.join(schemata), "")?; // in resctrl the kernel makes it
/// assert_eq!(files.write(schemata, "MB:0=50\n")?, 8);
/// assert_eq!(files.read(schemata)?, "MB:0=50\n");
/// std::fs::remove_file(root.join(schemata))?;
/// files.remove_dir(Path::new("group"))?;
/// # std::fs::remove_dir(root)?;
/// # Ok::<(), std::io::Error>(())
/// ```
pub trait Files {
    /// The whole file.
    ///
    /// # Errors
    ///
    /// As the system says.
    fn read(&self, path: &Path) -> io::Result<String>;

    /// Writes the text from the file's beginning in *one* system call, since the kernel takes each call for a command.
    /// Returns how many bytes were taken.
    ///
    /// # Errors
    ///
    /// As the system says.
    fn write(&self, path: &Path, text: &str) -> io::Result<usize>;

    /// Makes a directory in a directory that exists.
    ///
    /// # Errors
    ///
    /// As the system says.
    fn make_dir(&self, path: &Path) -> io::Result<()>;

    /// Removes a directory; resctrl removes its files with it.
    ///
    /// # Errors
    ///
    /// As the system says.
    fn remove_dir(&self, path: &Path) -> io::Result<()>;

    /// The names of the directories in a directory, in any order.
    ///
    /// # Errors
    ///
    /// As the system says.
    fn directories(&self, path: &Path) -> io::Result<Vec<String>>;
}

impl<F: Files + ?Sized> Files for &F {
    fn read(&self, path: &Path) -> io::Result<String> {
        (**self).read(path)
    }

    fn write(&self, path: &Path, text: &str) -> io::Result<usize> {
        (**self).write(path, text)
    }

    fn make_dir(&self, path: &Path) -> io::Result<()> {
        (**self).make_dir(path)
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        (**self).remove_dir(path)
    }

    fn directories(&self, path: &Path) -> io::Result<Vec<String>> {
        (**self).directories(path)
    }
}

/// The files below a directory: `/sys/fs/resctrl`, or a fixture.
///
/// ```
/// use std::path::Path;
/// use urgency_resctrl::{Disk, Files};
///
/// let proc = Disk::new("/proc/self");
/// # if cfg!(target_os = "linux") {
/// assert!(proc.directories(Path::new(""))?.contains(&"fd".to_owned()));
/// # }
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Disk {
    root: PathBuf,
}

impl Disk {
    /// The files below this directory. It is not looked at yet.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Disk { root: root.into() }
    }

    /// The directory.
    pub fn root(&self) -> &Path {
        &self.root
    }
}

impl Files for Disk {
    fn read(&self, path: &Path) -> io::Result<String> {
        fs::read_to_string(self.root.join(path))
    }

    fn write(&self, path: &Path, text: &str) -> io::Result<usize> {
        let path = self.root.join(path);
        let mut file = fs::OpenOptions::new()
            .write(true)
            .truncate(true)
            .open(path)?;
        file.write(text.as_bytes())
    }

    fn make_dir(&self, path: &Path) -> io::Result<()> {
        fs::create_dir(self.root.join(path))
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        fs::remove_dir(self.root.join(path))
    }

    fn directories(&self, path: &Path) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(self.root.join(path))? {
            let entry = entry?;
            // A name that is no UTF-8 is not ours, and no file of the kernel's.
            if let (true, Ok(name)) = (entry.file_type()?.is_dir(), entry.file_name().into_string())
            {
                names.push(name);
            }
        }
        Ok(names)
    }
}
