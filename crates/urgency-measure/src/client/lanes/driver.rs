//! The other side of the client's process: starts it, tells it when there is load, and takes what it logged.

use super::{GRACE, Lanes};
use crate::child::{Child, Error};
use crate::events::Events;
use crate::loaded::Loaded;
use crate::sample::Sample;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// How long the client may be silent after the time that it has.
const PATIENCE: Duration = Duration::from_secs(10);

/// A client of lanes in a process of its own.
#[derive(Debug)]
pub struct Client {
    child: Child,
    opened: u64,
    drained: u64,
}

/// What a client says while there is load.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Heard {
    /// So many were answered, with p50 and p99 in milliseconds.
    Report(u64, f64, f64),
    /// All replies have come, or were given up.
    Drained,
}

/// What a client says at its end.
#[derive(Debug, Serialize, Deserialize)]
pub struct Done {
    /// Every latency.
    pub events: Events,
    /// Whether it ran in the class SCHED_FIFO.
    pub is_real_time: bool,
    /// The class that it ran in, in words.
    pub class: String,
}

impl Client {
    /// Starts it: this program, as `subcommand` with `lanes` as its task. `who` is its name in errors.
    ///
    /// # Errors
    ///
    /// [`Error::Start`].
    pub fn start(who: &str, subcommand: &str, lanes: &Lanes) -> Result<Self, Error> {
        Ok(Client {
            child: Child::with_task(who, subcommand, lanes)?,
            opened: 0,
            drained: 0,
        })
    }

    /// Lets it send from `start` until before `end`.
    ///
    /// # Errors
    ///
    /// [`Error::Ended`].
    pub fn open(&mut self, start: u64, end: u64) -> Result<(), Error> {
        self.opened += 1;
        self.child.tell_line(&format!("{start} {end}"))
    }

    /// Waits for what it says next, in a stretch that is this long.
    ///
    /// # Errors
    ///
    /// [`Error::Ended`], [`Error::Silent`], [`Error::Unexpected`].
    pub fn hear(&mut self, length: Duration) -> Result<Heard, Error> {
        let line = self.child.hear_line(length + GRACE + PATIENCE)?;
        self.heard(&line)
    }

    fn heard(&mut self, line: &str) -> Result<Heard, Error> {
        if line == "drained" {
            self.drained += 1;
            return Ok(Heard::Drained);
        }
        let report = serde_json::from_str(line);
        let (answered, p50, p99) = report.map_err(|_| self.child.unexpected(line))?;
        Ok(Heard::Report(answered, p50, p99))
    }

    /// Whether all replies have come, or were given up.
    ///
    /// # Errors
    ///
    /// [`Error::Ended`], [`Error::Unexpected`].
    pub fn is_drained(&mut self) -> Result<bool, Error> {
        while let Some(line) = self.child.next_line()? {
            self.heard(&line)?;
        }
        Ok(self.drained == self.opened)
    }

    /// Ends it, also in a stretch: every latency.
    ///
    /// # Errors
    ///
    /// [`Error::Ended`], [`Error::Silent`], [`Error::Unexpected`].
    pub fn end(mut self) -> Result<Done, Error> {
        self.child.close_input();
        loop {
            let line = self.child.hear_line(GRACE + PATIENCE)?;
            if let Ok(done) = serde_json::from_str(&line) {
                return Ok(done);
            }
            self.heard(&line)?;
        }
    }
}

/// A server in this process under the load of a client.
#[derive(Debug)]
pub struct Served<U> {
    client: Client,
    units: U,
}

impl<U: Fn() -> u64> Served<U> {
    /// Starts the client of the server that `lanes` names; `units` says how much less urgent work is done so far.
    ///
    /// # Panics
    ///
    /// If the client cannot be started: the sample fails then.
    pub fn start(lanes: &Lanes, units: U) -> Self {
        Served {
            client: working(Client::start("the load client", "--lanes", lanes)),
            units,
        }
    }
}

impl<U: Fn() -> u64> Loaded for Served<U> {
    fn open(&mut self, start: u64, end: u64) {
        working(self.client.open(start, end));
    }

    fn is_drained(&mut self) -> bool {
        working(self.client.is_drained())
    }

    fn units(&self) -> u64 {
        (self.units)()
    }

    fn foreign_threads(&self) -> f64 {
        Child::THREADS
    }

    fn events(self) -> (Events, Sample) {
        let Done {
            events,
            is_real_time,
            ..
        } = working(self.client.end());
        let sample = Sample::new().with("client_real_time", f64::from(u8::from(is_real_time)));
        (events, sample)
    }
}

/// In a contender's process a client that fails is a sample that fails.
fn working<T>(result: Result<T, Error>) -> T {
    result.unwrap_or_else(|error| panic!("{error}"))
}
