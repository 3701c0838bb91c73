//! What one thread of the client asks for, and what it makes of the replies.
//!
//! In the open loop a request goes to a connection drawn at random, as if each connection were an independent user; how
//! late the thread came to it is the client's *lag*. In the closed loop each reply makes the next request due.
//!
//! A run has a ramp, whose requests count for nothing, then the recorded time, then a grace in which replies
//! are awaited. What is still without a reply then is `unanswered`, and its latency is the time that it
//! waited.
//!
//! Beside that latency stands the server's own: from the time at which the request was *sent* until the kernel had the
//! reply. The difference between the two is the client's own delay, on both ways, and what waited in the client because
//! its connection had as many requests under way as it may. Over a Unix socket the kernel has no stamps, and a thread
//! that comes late to replies is in both.

use crate::judge::settle;
use crate::protocol::{Command, Malformed};
use crate::record::Record;
use crate::shared::Shared;
use crate::{Arrivals, Error, Load};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use urgency_measure::class;
use urgency_measure::client::{Due, Place, Thread, Times, Traffic, Trouble};
use urgency_measure::machine::thread_cpu_time;

/// When requests are due.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pace {
    /// So many per second over all threads, whatever the server does.
    Open(f64, Arrivals),
    /// The next one when a reply has come.
    Closed,
    /// A set for each key, once, in the closed loop.
    Fill,
}

/// One run of a thread.
#[derive(Clone, Copy, Debug)]
pub struct Run {
    /// When requests are due.
    pub pace: Pace,
    /// Load before anything is recorded.
    pub ramp: Duration,
    /// Time that is recorded; of a fill, what it may take.
    pub duration: Duration,
    /// How long replies are awaited after the last request.
    pub grace: Duration,
    /// Makes the random choices of this run differ from the choices of other runs.
    pub seed: u64,
}

/// A request.
#[derive(Clone, Copy, Debug)]
pub struct Request {
    /// What it asks for.
    pub command: Command,
    /// Which key.
    pub key: u32,
    /// A set: its version. A get: the lowest version that it may return. Known when it is sent.
    pub version: u32,
}

/// The thread of this number with its share of the connections.
///
/// # Errors
///
/// [`Error::Client`].
pub fn open(index: usize, load: &Load) -> Result<Thread<Request>, Error> {
    let share =
        load.connections / load.threads + usize::from(index < load.connections % load.threads);
    Ok(Thread::open(&load.server, &[share], load.waiting)?)
}

/// One run of the thread of this number, on the calling thread.
///
/// # Errors
///
/// The connections' errors. A server's errors and wrong values are counted instead.
pub fn run(
    index: usize,
    thread: &mut Thread<Request>,
    shared: &Shared,
    run: &Run,
) -> Result<Record, Error> {
    let load = &shared.load;
    if let Some(cpus) = &load.cpus {
        cpus.bind().map_err(|cause| Trouble::System {
            what: "the client cannot be bound to --cpus",
            cause,
        })?;
    }
    let class = class::enter(load.class, load.waiting);
    let cpu = thread_cpu_time();
    let depth = match run.pace {
        Pace::Fill => load.pipeline.max(16),
        _ => load.pipeline,
    };
    let mut asking = Asking::new(index, thread.connections(), shared, run);
    thread.run(depth, run.grace, &mut asking)?;
    let mut record = asking.record;
    record.class = class;
    record.cpu = (thread_cpu_time() - cpu).saturating_sub(thread.take_spun_in_vain());
    Ok(record)
}

/// The state of one run.
struct Asking<'a> {
    shared: &'a Shared,
    pace: Pace,
    connections: usize,
    record: Record,
    random: fastrand::Rng,
    due: Option<Due>,
    next_fill: u32,
    record_from: Instant,
    end: Instant,
}

impl<'a> Asking<'a> {
    fn new(index: usize, connections: usize, shared: &'a Shared, run: &Run) -> Self {
        let load = &shared.load;
        let seed = load.workload.seed ^ (run.seed << 8) ^ ((index as u64 + 1) << 40);
        let start = Instant::now();
        let due = match run.pace {
            Pace::Open(per_s, arrivals) => {
                let share = per_s * connections as f64 / load.connections as f64;
                Some(Due::new(share, arrivals, start, !seed))
            }
            Pace::Closed | Pace::Fill => None,
        };
        Asking {
            shared,
            pace: run.pace,
            connections,
            record: Record::new(),
            random: fastrand::Rng::with_seed(seed),
            due,
            next_fill: index as u32,
            record_from: start + run.ramp,
            end: start + run.ramp + run.duration,
        }
    }

    /// A request of the mix.
    fn ask(&mut self, due: Instant) -> Request {
        let command = match self.random.f64() < self.shared.load.workload.gets {
            true => Command::Get,
            false => Command::Set,
        };
        let key = self.shared.draw.key(&mut self.random);
        self.request(due, command, key)
    }

    fn request(&mut self, due: Instant, command: Command, key: u32) -> Request {
        if due >= self.record_from {
            self.record.counts.requests += 1;
        }
        Request {
            command,
            key,
            version: 0,
        }
    }
}

impl Traffic for Asking<'_> {
    type Request = Request;
    type Error = Error;

    fn end(&self) -> Instant {
        self.end
    }

    fn is_done(&self) -> bool {
        self.pace == Pace::Fill && self.next_fill >= self.shared.load.workload.keys
    }

    fn is_stopped(&self) -> bool {
        self.shared.stop.load(Ordering::Relaxed)
    }

    fn next_due(&self) -> Option<Instant> {
        let due = self.due.as_ref()?.next();
        (due < self.end).then_some(due)
    }

    fn take(&mut self, due: Instant, now: Instant) -> (Place, Request) {
        self.due.as_mut().expect("the loop is open").advance();
        if due >= self.record_from {
            self.record.lag(now - due);
        }
        let connection = self.random.usize(..self.connections);
        (Place::On(connection), self.ask(due))
    }

    fn next_on(&mut self, _connection: usize, now: Instant) -> Option<Request> {
        if self.due.is_some() || now >= self.end {
            return None;
        }
        if self.pace != Pace::Fill {
            return Some(self.ask(now));
        }
        let (key, load) = (self.next_fill, &self.shared.load);
        if key >= load.workload.keys {
            return None;
        }
        self.next_fill = key.saturating_add(load.threads as u32);
        Some(self.request(now, Command::Set, key))
    }

    fn write(&mut self, request: &mut Request, to: &mut Vec<u8>) {
        request.version = self.shared.write(request, to);
    }

    fn receive(
        &mut self,
        request: &Request,
        times: Times,
        bytes: &[u8],
    ) -> Result<Option<usize>, Error> {
        let (shared, command) = (self.shared, request.command);
        let reply = shared.load.protocol.reply(command, bytes);
        let reply = reply.map_err(|Malformed(line)| Error::Malformed {
            command: command.name(),
            line,
        })?;
        let Some((reply, length)) = reply else {
            return Ok(None);
        };
        let Times {
            due,
            sent,
            replied,
            now,
        } = times;
        let latency = now.saturating_duration_since(due);
        shared.live.note(latency);
        // The closed loop's last replies come after its end; its throughput is of its time.
        let counts = due >= self.record_from && (self.due.is_some() || now < self.end);
        if counts {
            let from_send = replied.saturating_duration_since(sent);
            self.record.latency(command, latency, from_send);
            self.record.counts.answered += 1;
        }
        settle(shared, request, reply, &mut self.record, counts)?;
        Ok(Some(length))
    }

    fn unanswered(&mut self, request: &Request, due: Instant, now: Instant) {
        if due >= self.record_from {
            let waited = now - due;
            self.record.latency(request.command, waited, waited);
            self.record.counts.unanswered += 1;
        }
    }
}
