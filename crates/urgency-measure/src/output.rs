//! Words on standard output.

use std::{
    fmt::Display,
    io::{self, Write as _},
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
