//! One contender of a sliced run: a process group that is stopped but for its slices.

use crate::child::{Child, Error};
use crate::events::Events;
use crate::machine::now_ns;
use crate::sample::Sample;
use nix::sys::signal::Signal;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

/// From going on until load begins: what became due while the group was stopped is done by then.
const SETTLE: Duration = Duration::from_millis(15);
/// How long a slice may take to drain, and a contender to get ready or to end.
const PATIENCE: Duration = Duration::from_secs(60);

/// A contender that is alive.
#[derive(Debug)]
pub struct Member {
    child: Child,
    events: PathBuf,
}

impl Member {
    /// Starts it, lets it warm up, and stops it. Its events will be in the file `events`.
    ///
    /// # Errors
    ///
    /// Why it did not get ready.
    pub fn start(who: &str, command: Command, events: PathBuf) -> Result<Self, Error> {
        let child = Child::start_group(who, command)?;
        let mut member = Member { child, events };
        member.wait()?;
        member.child.signal(Signal::SIGSTOP);
        Ok(member)
    }

    /// One slice of so much load.
    ///
    /// # Errors
    ///
    /// Why it was not drained. The member is of no more use.
    pub fn slice(&mut self, length: Duration) -> Result<(), Error> {
        self.child.signal(Signal::SIGCONT);
        let start = now_ns() + SETTLE.as_nanos() as u64;
        let end = start + length.as_nanos() as u64;
        self.child.tell_line(&format!("{start} {end}"))?;
        self.wait()?;
        self.child.signal(Signal::SIGSTOP);
        Ok(())
    }

    /// Lets it end: its sample, and what it logged.
    ///
    /// # Errors
    ///
    /// What is missing, and why.
    pub fn end(mut self) -> Result<(Sample, Events), String> {
        self.child.signal(Signal::SIGCONT);
        self.child.close_input();
        let sample = self
            .child
            .hear(PATIENCE)
            .map_err(|error| error.to_string())?;
        let events = Events::read(&self.events)
            .map_err(|error| format!("its events {}: {error}", self.events.display()))?;
        Ok((sample, events))
    }

    fn wait(&mut self) -> Result<(), Error> {
        match self.child.hear_line(PATIENCE)?.as_str() {
            "drained" => Ok(()),
            // What it said before it failed is not what it failed of.
            line => match self.child.check_alive(Duration::ZERO) {
                Ok(()) => Err(self.child.unexpected(line)),
                Err(ended) => Err(ended),
            },
        }
    }
}
