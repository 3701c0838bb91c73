//! Files.
//!
//! The kernel offers no way to wait for a regular file: its calls block. So each operation here is a closure that is
//! declared blocking. It starts at once, runs on a stack of its own while its worker does something else, and its
//! future can be awaited or dropped. A dropped operation still happens, as it was started, unless its runtime ends
//! first. (The writes of a [`File`] happen then as well.) Code of any level may wait for an operation that another
//! level started: the operation becomes as urgent as its waiter.
//!
//! In closures use [`std::fs`] inside [`blocking`](crate::blocking): that is the blocking form.
//!
//! ```
//! use urgency::fs;
//!
//! # fn main() -> std::io::Result<()> {
//! let folder = std::env::temp_dir().join(format!("urgency-doc-fs-{}", std::process::id()));
//! let [draft, text, copied, other, link] =
//!     ["draft", "text", "copied", "other", "link"].map(|name| folder.join(name));
//! urgency::block_on(async {
//!     fs::create_dir_all(folder.join("inner")).await?;
//!     fs::write(&draft, "contents").await?;
//!     fs::rename(&draft, &text).await?;
//!     assert_eq!(fs::copy(&text, &copied).await?, 8);
//!     assert_eq!(fs::read_to_string(&copied).await?, "contents");
//!
//!     fs::hard_link(&text, &other).await?;
//!     fs::symlink(&text, &link).await?;
//!     assert_eq!(fs::read_link(&link).await?, text);
//!     assert!(fs::symlink_metadata(&link).await?.is_symlink());
//!     assert_eq!(fs::canonicalize(&link).await?, fs::canonicalize(&text).await?);
//!
//!     fs::remove_dir(folder.join("inner")).await?;
//!     fs::create_dir(folder.join("another")).await?;
//!     fs::remove_dir_all(&folder).await
//! })
//! # }
//! ```
//!
//! `offloaded` is the operation, `file` an open file with the `futures-io` traits, `whole` the calls on it as a
//! whole, `transfer` what its operations do,
//! `certain` the writes that happen though their runtime ends, `open_options` how a file is opened, `dir` how a folder
//! is read and made, and the rest of this file the functions of [`std::fs`] as operations.

mod certain;
mod dir;
mod file;
mod offloaded;
mod open_options;
mod transfer;
mod whole;

pub(crate) use certain::WaitsForWrites;

pub use dir::{DirBuilder, DirEntry, ReadDir, read_dir};
pub use file::File;
pub use offloaded::Offloaded;
pub use open_options::OpenOptions;
pub use std::fs::FileTimes;

#[cfg(test)]
mod tests;

use std::{
    fs, io,
    path::{Path, PathBuf},
};

fn with_path<T: Send + 'static>(
    path: impl AsRef<Path>,
    operation: impl FnOnce(PathBuf) -> io::Result<T> + Send + 'static,
) -> Offloaded<T> {
    let path = path.as_ref().to_owned();
    Offloaded::new(move || operation(path))
}

/// The whole contents of a file. See [`std::fs::read`].
///
/// ```
/// # fn main() -> std::io::Result<()> {
/// let path = std::env::temp_dir().join(format!("urgency-doc-{}", std::process::id()));
/// urgency::block_on(async {
///     urgency::fs::write(&path, "contents").await?;
///     assert_eq!(urgency::fs::read(&path).await?, b"contents");
///     urgency::fs::remove_file(&path).await
/// })
/// # }
/// ```
pub fn read(path: impl AsRef<Path>) -> Offloaded<Vec<u8>> {
    with_path(path, fs::read)
}

/// The whole contents of a file, which must be UTF-8. See [`std::fs::read_to_string`].
pub fn read_to_string(path: impl AsRef<Path>) -> Offloaded<String> {
    with_path(path, fs::read_to_string)
}

/// Replaces the contents of a file, or makes it. See [`std::fs::write`]. The contents are copied.
pub fn write(path: impl AsRef<Path>, contents: impl AsRef<[u8]>) -> Offloaded<()> {
    let contents = contents.as_ref().to_owned();
    with_path(path, move |path| fs::write(path, contents))
}

/// Copies a file and gives its length in bytes. See [`std::fs::copy`].
pub fn copy(from: impl AsRef<Path>, to: impl AsRef<Path>) -> Offloaded<u64> {
    let to = to.as_ref().to_owned();
    with_path(from, move |from| fs::copy(from, to))
}

/// Renames a file or folder. See [`std::fs::rename`].
pub fn rename(from: impl AsRef<Path>, to: impl AsRef<Path>) -> Offloaded<()> {
    let to = to.as_ref().to_owned();
    with_path(from, move |from| fs::rename(from, to))
}

/// Makes a folder. See [`std::fs::create_dir`].
pub fn create_dir(path: impl AsRef<Path>) -> Offloaded<()> {
    with_path(path, fs::create_dir)
}

/// Makes a folder and those above it. See [`std::fs::create_dir_all`].
pub fn create_dir_all(path: impl AsRef<Path>) -> Offloaded<()> {
    with_path(path, fs::create_dir_all)
}

/// Removes a file. See [`std::fs::remove_file`].
pub fn remove_file(path: impl AsRef<Path>) -> Offloaded<()> {
    with_path(path, fs::remove_file)
}

/// Removes an empty folder. See [`std::fs::remove_dir`].
pub fn remove_dir(path: impl AsRef<Path>) -> Offloaded<()> {
    with_path(path, fs::remove_dir)
}

/// Removes a folder with everything in it. See [`std::fs::remove_dir_all`].
pub fn remove_dir_all(path: impl AsRef<Path>) -> Offloaded<()> {
    with_path(path, fs::remove_dir_all)
}

/// What is known of a file, through links. See [`std::fs::metadata`].
pub fn metadata(path: impl AsRef<Path>) -> Offloaded<fs::Metadata> {
    with_path(path, fs::metadata)
}

/// What is known of a file or link. See [`std::fs::symlink_metadata`].
pub fn symlink_metadata(path: impl AsRef<Path>) -> Offloaded<fs::Metadata> {
    with_path(path, fs::symlink_metadata)
}

/// The absolute path without links. See [`std::fs::canonicalize`].
pub fn canonicalize(path: impl AsRef<Path>) -> Offloaded<PathBuf> {
    with_path(path, fs::canonicalize)
}

/// Whether there is something at a path; an error if that cannot be found out. See [`std::fs::exists`].
pub fn try_exists(path: impl AsRef<Path>) -> Offloaded<bool> {
    with_path(path, fs::exists)
}

/// Makes a second name of a file. See [`std::fs::hard_link`].
pub fn hard_link(original: impl AsRef<Path>, link: impl AsRef<Path>) -> Offloaded<()> {
    let link = link.as_ref().to_owned();
    with_path(original, move |original| fs::hard_link(original, link))
}

/// Makes a symbolic link. See [`std::os::unix::fs::symlink`].
pub fn symlink(original: impl AsRef<Path>, link: impl AsRef<Path>) -> Offloaded<()> {
    let link = link.as_ref().to_owned();
    with_path(original, move |original| {
        std::os::unix::fs::symlink(original, link)
    })
}

/// Where a symbolic link points. See [`std::fs::read_link`].
pub fn read_link(path: impl AsRef<Path>) -> Offloaded<PathBuf> {
    with_path(path, fs::read_link)
}

/// Changes what is permitted with a file. See [`std::fs::set_permissions`].
pub fn set_permissions(path: impl AsRef<Path>, permissions: fs::Permissions) -> Offloaded<()> {
    with_path(path, move |path| fs::set_permissions(path, permissions))
}
