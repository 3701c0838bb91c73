//! What is read: a whole file, or what comes through a pipe. All of it is in memory, so what has no end is refused.

use super::{Stop, failed, wrong};
use std::{
    fmt,
    fs::File,
    io::{self, Read},
    os::unix::fs::FileTypeExt,
    path::Path,
};

/// A trace has so many bytes at most: the largest computation of `--size` is written in some 2.4 GB.
pub(super) const MOST_OF_A_TRACE: u64 = 4 << 30;

/// A table of costs has so many bytes at most.
pub(super) const MOST_OF_A_TABLE: u64 = 1 << 20;

/// What is not read to its end.
#[derive(Debug)]
enum Endless {
    Device,
    Longer { most: u64 },
}

impl fmt::Display for Endless {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Endless::Device => write!(f, "is a device, and may have no end: name a file or a pipe"),
            Endless::Longer { most } => write!(
                f,
                "has more than {most} bytes, and all of it is in memory: name a smaller one"
            ),
        }
    }
}

/// The text of the file that an option names.
pub(super) fn text(option: &str, path: impl AsRef<Path>, most: u64) -> Result<String, Stop> {
    let path = path.as_ref();
    let cannot = |cause: io::Error| failed(format!("{option} {path:?} cannot be read: {cause}"));
    let endless = |what: Endless| wrong(format!("{option} {path:?} {what}"));
    let file = File::open(path).map_err(cannot)?;
    let about = file.metadata().map_err(cannot)?;
    let kind = about.file_type();
    if kind.is_char_device() || kind.is_block_device() {
        return Err(endless(Endless::Device));
    }
    let mut text = String::with_capacity(about.len().min(most) as usize);
    let mut bounded = file.take(most + 1);
    bounded.read_to_string(&mut text).map_err(cannot)?;
    match bounded.limit() {
        0 => Err(endless(Endless::Longer { most })),
        _ => Ok(text),
    }
}
