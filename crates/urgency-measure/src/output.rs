//! What a command gives: words on standard output, and files.

use std::{
    fmt::Display,
    fs::{self, OpenOptions},
    io::{self, Write as _},
    path::Path,
};

/// Writes a text to standard output. That its reader has read enough, as `head` has, is no failure: what else a command
/// does goes on.
///
/// # Errors
///
/// The text cannot be written: the disk is full, for instance.
///
/// ```
/// urgency_measure::output::say("a line\n")?;
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn say(text: impl Display) -> io::Result<()> {
    let mut output = io::stdout().lock();
    match write!(output, "{text}").and_then(|()| output.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        said => said,
    }
}

/// Whether a file could be written now: a run whose result cannot be kept must fail at once, not at its end. A file
/// that exists is not changed. One that did not is removed again, at the end of all symbolic links, which stay.
///
/// # Errors
///
/// Why it cannot be written.
///
/// ```
/// use urgency_measure::output::probe;
///
/// assert!(probe("/no/such/directory/result.json").is_err());
/// ```
pub fn probe(path: impl AsRef<Path>) -> io::Result<()> {
    let path = path.as_ref();
    let existed = path.exists();
    OpenOptions::new().append(true).create(true).open(path)?;
    match existed {
        true => Ok(()),
        false => fs::canonicalize(path).and_then(fs::remove_file),
    }
}
