//! What the user sees while the demo runs.
//!
//! On a terminal: one line that is redrawn, with what the current turn is doing, and one line that stays for
//! each finished turn. Elsewhere (a file, a pipe, a CI log) only the lines that stay.

use std::{
    io::{IsTerminal, Write, stdout},
    time::Instant,
};

const BAR: usize = 10;
const CLEAR: &str = "\r\x1b[2K";

/// The display.
pub struct Progress {
    redraws: bool,
    since: Instant,
    seconds: f64,
}

impl Progress {
    /// A display of a run that will take so many seconds.
    pub fn new(seconds: f64) -> Self {
        Progress {
            redraws: stdout().is_terminal(),
            since: Instant::now(),
            seconds,
        }
    }

    /// Shows what is going on now.
    pub fn live(&self, text: &str) {
        if self.redraws {
            let bar = bar(self.since.elapsed().as_secs_f64() / self.seconds);
            show(&format!("{CLEAR}{bar} {text}"));
        }
    }

    /// Leaves a line.
    pub fn line(&self, text: &str) {
        let clear = if self.redraws { CLEAR } else { "" };
        show(&format!("{clear}{text}\n"));
    }
}

fn bar(share: f64) -> String {
    let full = (share.clamp(0.0, 1.0) * BAR as f64).round() as usize;
    format!("[{}{}]", "#".repeat(full), ".".repeat(BAR - full))
}

fn show(text: &str) {
    let mut out = stdout().lock();
    // A display that cannot be seen must not stop the measurement.
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bar_fills_and_never_overflows() {
        assert_eq!(bar(0.0), format!("[{}]", ".".repeat(10)));
        assert_eq!(bar(0.5), format!("[#####{}]", ".".repeat(5)));
        assert_eq!(bar(7.0), format!("[{}]", "#".repeat(10)));
    }
}
