//! Folders: what is in them, and how they are made.
//!
//! A folder is read in batches, as a call for each entry would cost more than the entry. The batch that is read is an
//! operation like any other: a future that waits for it may be dropped, and the next call goes on with the same batch.

use super::{Offloaded, with_path};
use std::{
    collections::VecDeque,
    ffi::OsString,
    fs,
    future::poll_fn,
    io,
    os::unix::fs::{DirBuilderExt, DirEntryExt},
    path::{Path, PathBuf},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

/// How many entries are read by one operation.
const BATCH: usize = 32;

/// Opens a folder, to be read entry by entry. See [`std::fs::read_dir`].
///
/// ```
/// use urgency::fs;
///
/// # fn main() -> std::io::Result<()> {
/// # let folder = std::env::temp_dir().join(format!("urgency-doc-dir-{}", std::process::id()));
/// urgency::block_on(async {
///     fs::create_dir_all(folder.join("inner")).await?;
///     fs::write(folder.join("file"), "text").await?;
///     let mut entries = fs::read_dir(&folder).await?;
///     let mut files = Vec::new();
///     while let Some(entry) = entries.next_entry().await? {
///         if entry.file_type().await?.is_file() {
///             files.push(entry.file_name());
///         }
///     }
///     assert_eq!(files, ["file"]);
///     fs::remove_dir_all(&folder).await
/// })
/// # }
/// ```
pub fn read_dir(path: impl AsRef<Path>) -> Offloaded<ReadDir> {
    with_path(path, |path| {
        Ok(ReadDir(State::Read(Batch::of(fs::read_dir(path)?))))
    })
}

/// The entries of a folder, in no particular order, without `.` and `..`; made by [`read_dir`].
///
/// It is no stream: [`next_entry`](Self::next_entry) gives one entry after the other.
pub struct ReadDir(State);

enum State {
    Read(Batch),
    Reads(Offloaded<Batch>),
}

/// Some entries that were read. `rest` has the others; it is `None` at the folder's end.
#[derive(Default)]
struct Batch {
    entries: VecDeque<io::Result<fs::DirEntry>>,
    rest: Option<fs::ReadDir>,
}

impl Batch {
    /// The next entries.
    fn of(mut rest: fs::ReadDir) -> Self {
        let entries: VecDeque<_> = rest.by_ref().take(BATCH).collect();
        let rest = (entries.len() == BATCH).then_some(rest);
        Batch { entries, rest }
    }
}

impl ReadDir {
    /// The next entry; `None` at the end. If the future is dropped, no entry is lost.
    ///
    /// # Errors
    ///
    /// An entry cannot be read: the next call goes on behind it. Or the runtime was shut down, and nothing more comes.
    pub async fn next_entry(&mut self) -> io::Result<Option<DirEntry>> {
        poll_fn(|cx| self.poll_next_entry(cx)).await
    }

    /// The form for hand-written futures: [`next_entry`](Self::next_entry) as a poll.
    pub fn poll_next_entry(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Option<DirEntry>>> {
        loop {
            match &mut self.0 {
                State::Read(batch) => match (batch.entries.pop_front(), batch.rest.take()) {
                    (Some(entry), rest) => {
                        batch.rest = rest;
                        return Poll::Ready(entry.map(|entry| Some(DirEntry(Arc::new(entry)))));
                    }
                    (None, Some(rest)) => {
                        self.0 = State::Reads(Offloaded::new(|| Ok(Batch::of(rest))));
                    }
                    (None, None) => return Poll::Ready(Ok(None)),
                },
                State::Reads(operation) => {
                    let batch = ready!(Pin::new(operation).poll(cx));
                    // After an error nothing is left.
                    self.0 = State::Read(Batch::default());
                    self.0 = State::Read(batch?);
                }
            }
        }
    }
}

/// An entry of a folder; [`ReadDir`] gives them.
pub struct DirEntry(Arc<fs::DirEntry>);

impl DirEntry {
    /// The folder's path as it was given, and the entry's name.
    pub fn path(&self) -> PathBuf {
        self.0.path()
    }

    /// The name alone.
    pub fn file_name(&self) -> OsString {
        self.0.file_name()
    }

    /// The number of the entry's inode.
    pub fn ino(&self) -> u64 {
        self.0.ino()
    }

    /// What is known of the file, or of the link if it is one. See [`std::fs::DirEntry::metadata`].
    pub fn metadata(&self) -> Offloaded<fs::Metadata> {
        let entry = self.0.clone();
        Offloaded::new(move || entry.metadata())
    }

    /// Whether it is a file, a folder, a link, or something else. See [`std::fs::DirEntry::file_type`].
    pub fn file_type(&self) -> Offloaded<fs::FileType> {
        let entry = self.0.clone();
        Offloaded::new(move || entry.file_type())
    }
}

/// How a folder is made: as [`std::fs::DirBuilder`], with an asynchronous [`create`](DirBuilder::create).
///
/// ```
/// use urgency::fs::{self, DirBuilder};
///
/// # fn main() -> std::io::Result<()> {
/// # let folder = std::env::temp_dir().join(format!("urgency-doc-mkdir-{}", std::process::id()));
/// urgency::block_on(async {
///     // Those above it as well, and for the owner only.
///     DirBuilder::new().recursive(true).mode(0o700).create(folder.join("inner")).await?;
///     fs::remove_dir_all(&folder).await
/// })
/// # }
/// ```
#[derive(Clone, Debug, Default)]
pub struct DirBuilder {
    recursive: bool,
    mode: Option<u32>,
}

impl DirBuilder {
    /// One folder, whose parent must be there.
    pub fn new() -> Self {
        DirBuilder::default()
    }

    /// Whether those above it are made as well, and whether a folder that is there already is no error.
    pub fn recursive(&mut self, recursive: bool) -> &mut Self {
        self.recursive = recursive;
        self
    }

    /// What is permitted with the folder: 0o777 otherwise, less the process's mask.
    pub fn mode(&mut self, mode: u32) -> &mut Self {
        self.mode = Some(mode);
        self
    }

    /// Makes the folder. See [`std::fs::DirBuilder::create`].
    pub fn create(&self, path: impl AsRef<Path>) -> Offloaded<()> {
        let mut builder = fs::DirBuilder::new();
        builder.recursive(self.recursive);
        self.mode.into_iter().for_each(|mode| {
            builder.mode(mode);
        });
        with_path(path, move |path| builder.create(path))
    }
}

debug_struct!(ReadDir, |it| reads: matches!(it.0, State::Reads(_)));
debug_struct!(DirEntry, |it| path: it.path());
