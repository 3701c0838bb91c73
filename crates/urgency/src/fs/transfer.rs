//! What one operation of a file does: a read, a write or a seek. It has the buffer's memory meanwhile (`file.rs`).

use std::{
    fs,
    io::{self, Read, Seek, SeekFrom, Write},
};

/// Reads anew; nothing is ahead.
pub(super) fn read(mut file: &fs::File, bytes: &mut Vec<u8>, wanted: usize) -> io::Result<usize> {
    bytes.resize(wanted, 0);
    let result = loop {
        match file.read(bytes) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => break result,
        }
    };
    bytes.truncate(*result.as_ref().unwrap_or(&0));
    result
}

pub(super) fn write(
    mut file: &fs::File,
    bytes: &mut Vec<u8>,
    ahead: usize,
    source: Vec<u8>,
) -> io::Result<()> {
    if ahead != 0 {
        seek(file, bytes, ahead, SeekFrom::Current(0))?;
    }
    let result = file.write_all(&source);
    // The larger memory is kept, for the next read.
    if bytes.capacity() < source.capacity() {
        *bytes = source;
    }
    bytes.clear();
    result
}

pub(super) fn seek(
    mut file: &fs::File,
    bytes: &mut Vec<u8>,
    ahead: usize,
    to: SeekFrom,
) -> io::Result<u64> {
    bytes.drain(..bytes.len() - ahead);
    let position = file.seek(match to {
        SeekFrom::Current(by) => SeekFrom::Current(by.saturating_sub(ahead as i64)),
        absolute => absolute,
    })?;
    bytes.clear();
    Ok(position)
}
