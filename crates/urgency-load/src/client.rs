//! The client: threads that run together, and what came of it.

use crate::record::Live;
use crate::shared::Shared;
use crate::traffic::{self, Pace, Request, Run};
use crate::value::Versions;
use crate::{Error, Load, Outcome, Workload, workload::Draw};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};
use urgency_measure::client::{Thread, Trouble};
use urgency_measure::machine;

/// How often a display is shown what happens.
const SHOW: Duration = Duration::from_millis(500);
/// What a fill may take.
const FILL: Duration = Duration::from_secs(120);

/// What a display is shown while a run is under way.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// Since the run began.
    pub elapsed: Duration,
    /// Replies per second since the last time.
    pub replies_per_s: f64,
    /// Their median latency, to a quarter octave.
    pub p50: Duration,
    /// The latency that 99 % of them did not exceed, to a quarter octave.
    pub p99: Duration,
}

/// Open connections to one server, and what is known about the values there.
///
/// ```no_run
/// use urgency_load::{Arrivals, Client, Load, Pace, Timing};
///
/// let load = Load { connections: 50, ..Load::new("127.0.0.1:11211".parse()?) };
/// let mut client = Client::connect(load)?;
/// client.fill(&mut |_| ())?;
/// let pace = Pace::Open(20_000.0, Arrivals::Poisson);
/// let outcome = client.run(pace, &Timing::seconds(10.0), &mut |_| ())?;
/// println!("p99 {} ms", outcome.latency.p99_ms);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Client {
    threads: Vec<Thread<Request>>,
    shared: Shared,
    runs: u64,
    logs: bool,
}

/// How long a run takes.
#[derive(Clone, Copy, Debug)]
pub struct Timing {
    /// Load before anything is recorded.
    pub ramp: Duration,
    /// Time that is recorded.
    pub duration: Duration,
    /// How long replies are awaited after the last request.
    pub grace: Duration,
}

impl Timing {
    /// So many recorded seconds after half a second of ramp, and 3 s of grace.
    pub fn seconds(seconds: f64) -> Self {
        Timing {
            ramp: Duration::from_millis(500),
            duration: Duration::from_secs_f64(seconds),
            grace: Duration::from_secs(3),
        }
    }
}

impl Client {
    /// Checks the load and opens all connections.
    ///
    /// # Errors
    ///
    /// [`Error::Option`], also for more keys than there is memory for; or [`Error::Client`]: the server is not there,
    /// or there are not enough descriptors.
    pub fn connect(load: Load) -> Result<Client, Error> {
        load.check()?;
        let versions = versions(&load.workload)?;
        allow_descriptors(load.connections, load.threads)?;
        let open = |index| traffic::open(index, &load);
        let threads = (0..load.threads).map(open).collect::<Result<_, _>>()?;
        let shared = Shared {
            draw: Draw::new(load.workload.keys, load.workload.popularity),
            versions,
            filled: AtomicBool::new(false),
            live: Live::new(),
            stop: AtomicBool::new(false),
            load,
        };
        Ok(Client {
            threads,
            shared,
            runs: 0,
            logs: false,
        })
    }

    /// The load.
    pub fn load(&self) -> &Load {
        &self.shared.load
    }

    /// Whether [`Outcome::events`] has each request of an open loop by itself from now on: 48 bytes of memory for each.
    pub fn log_requests(&mut self, logs: bool) {
        self.logs = logs;
    }

    /// Writes every key once, so that gets find what they look for and every version is known.
    ///
    /// # Errors
    ///
    /// The errors of [`run`](Client::run), and [`Error::Fill`] if not all keys are stored: the server refused one, or
    /// storing them took longer than two minutes.
    pub fn fill(&mut self, show: &mut dyn FnMut(&Progress)) -> Result<Outcome, Error> {
        let timing = Timing {
            ramp: Duration::ZERO,
            duration: FILL,
            grace: Duration::from_secs(3),
        };
        let outcome = self.run(Pace::Fill, &timing, show)?;
        let keys = u64::from(self.shared.load.workload.keys);
        if outcome.counts.stored < keys {
            return Err(Error::Fill {
                stored: outcome.counts.stored,
                keys,
                seconds: FILL.as_secs(),
                refusal: outcome.first_fault,
            });
        }
        self.shared.filled.store(true, Ordering::Relaxed);
        Ok(outcome)
    }

    /// One run over all connections. `show` is called now and then on the calling thread.
    ///
    /// # Errors
    ///
    /// A connection that cannot be opened again, breaks or is closed; a reply that is none; a request that
    /// the server does not understand. What a server may say (`SERVER_ERROR`) and wrong values are counted in
    /// the outcome instead.
    pub fn run(
        &mut self,
        pace: Pace,
        timing: &Timing,
        show: &mut dyn FnMut(&Progress),
    ) -> Result<Outcome, Error> {
        self.runs += 1;
        let run = Run {
            pace,
            ramp: timing.ramp,
            duration: timing.duration,
            grace: timing.grace,
            seed: self.runs,
            logs: self.logs,
        };
        let shared = &self.shared;
        shared.stop.store(false, Ordering::Relaxed);
        let start = Instant::now();
        let (done, ended) = channel();
        let results: Vec<_> = thread::scope(|scope| {
            let threads = self.threads.iter_mut().enumerate();
            let threads: Vec<_> = threads
                .map(|(index, thread)| {
                    let done = done.clone();
                    scope.spawn(move || {
                        let result = traffic::run(index, thread, shared, &run);
                        if result.is_err() {
                            shared.stop.store(true, Ordering::Relaxed);
                        }
                        // Nobody waits any more only if the calling thread has panicked.
                        let _ = done.send(());
                        result
                    })
                })
                .collect();
            // A thread that panics ends the watch by dropping its own.
            drop(done);
            watch(&shared.live, threads.len(), &ended, show);
            threads
                .into_iter()
                .map(|thread| {
                    thread
                        .join()
                        .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
                })
                .collect()
        });
        let elapsed = start.elapsed();
        let records = results.into_iter().collect::<Result<Vec<_>, _>>()?;
        let recorded = match pace {
            Pace::Fill => elapsed,
            _ => timing.duration,
        };
        Ok(Outcome::of(pace, recorded, elapsed, records))
    }
}

/// What is known of each key's value: nothing yet.
fn versions(workload: &Workload) -> Result<Vec<Mutex<Versions>>, Error> {
    let known = match workload.verify {
        true => workload.keys as usize,
        false => 0,
    };
    let mut versions = Vec::new();
    versions.try_reserve_exact(known).map_err(|_| {
        let each = size_of::<Mutex<Versions>>();
        let allowed =
            format!("as many keys as there is memory for, {each} bytes each, or --no-verify");
        Error::option("--keys", known, allowed)
    })?;
    versions.resize_with(known, Mutex::default);
    Ok(versions)
}

/// Shows progress until `threads` threads have ended.
fn watch(
    live: &Live,
    threads: usize,
    ended: &std::sync::mpsc::Receiver<()>,
    show: &mut dyn FnMut(&Progress),
) {
    let start = Instant::now();
    let (mut last, mut before) = (start, live.snapshot());
    let mut left = threads;
    while left > 0 {
        match ended.recv_timeout(SHOW.saturating_sub(last.elapsed())) {
            Ok(()) => left -= 1,
            Err(RecvTimeoutError::Disconnected) => return,
            Err(RecvTimeoutError::Timeout) => {
                let (now, after) = (Instant::now(), live.snapshot());
                let (replies, p50) = Live::between(&before, &after, 0.5);
                let (_, p99) = Live::between(&before, &after, 0.99);
                show(&Progress {
                    elapsed: now - start,
                    replies_per_s: replies as f64 / (now - last).as_secs_f64(),
                    p50,
                    p99,
                });
                (last, before) = (now, after);
            }
        }
    }
}

/// Raises this process's limit on open descriptors if it is too low for a client with so many connections and threads.
/// [`Client::connect`] does it as well. A program that starts a server for as many connections calls this before,
/// because children inherit the limit.
///
/// # Errors
///
/// [`Error::Client`] if the hard limit is below, or the system refuses.
pub fn allow_descriptors(connections: usize, threads: usize) -> Result<(), Error> {
    let needed = connections as u64 + threads as u64 + 32;
    machine::allow_descriptors(needed).map_err(|cause| {
        Trouble::System {
            what: "too many connections",
            cause,
        }
        .into()
    })
}
