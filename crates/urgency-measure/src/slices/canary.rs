//! Canaries: on each processor a thread that wants to run twice in a millisecond, above everything that is measured.
//!
//! It is in the class SCHED_FIFO, more urgent than any load client. When it is late all the same, the guest did
//! not have the processor: the host had taken it (or the guest's kernel did not schedule at all). That interval
//! is *spoilt*. What the canaries cannot see is a theft that begins and ends between two of their looks, so one
//! shorter than half a millisecond may pass. They cost some 0.5 % of each processor, the same for all contenders.
//!
//! Where the class is not permitted there are no canaries, and nothing is left out.

use crate::class::{self, Cpus};
use crate::machine::{self, now_ns};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// From one look to the next.
const PERIOD: Duration = Duration::from_micros(500);
/// A look that is later than this was kept from the processor.
const LATE: Duration = Duration::from_micros(150);

/// An interval of the monotonic clock, in nanoseconds, in which the host had a processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spoilt {
    /// When the canary should have run.
    pub start: u64,
    /// When it ran.
    pub end: u64,
}

/// Canaries on all processors, until they are dropped.
#[derive(Debug)]
pub struct Canaries {
    seen: Arc<Mutex<Vec<Spoilt>>>,
    ends: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Canaries {
    /// Starts one on each processor that this thread may use; none where the class SCHED_FIFO is not permitted.
    pub fn start() -> Self {
        Self::on(&Cpus::allowed().expect("the affinity can be read"))
    }

    /// The same on these processors.
    pub fn on(processors: &Cpus) -> Self {
        let (seen, ends) = (Arc::<Mutex<_>>::default(), Arc::<AtomicBool>::default());
        let start = |processor: Cpus| {
            let (seen, ends) = (seen.clone(), ends.clone());
            std::thread::spawn(move || {
                let is_there = processor.bind().is_ok();
                if is_there && class::enter_real_time(class::CANARY).is_ok() {
                    look(&seen, &ends);
                }
            })
        };
        let count = processors.numbers().len();
        let threads = processors.in_turn().take(count).map(start).collect();
        Canaries {
            seen,
            ends,
            threads,
        }
    }

    /// All that was spoilt so far.
    pub fn spoilt(&self) -> Vec<Spoilt> {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.clone()
    }
}

impl Drop for Canaries {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // It only looks at the clock.
            let _ = thread.join();
        }
    }
}

fn look(seen: &Mutex<Vec<Spoilt>>, ends: &AtomicBool) {
    let mut next = now_ns();
    while !ends.load(Ordering::Relaxed) {
        next += PERIOD.as_nanos() as u64;
        machine::sleep_until_ns(next);
        let now = now_ns();
        if now - next > LATE.as_nanos() as u64 {
            let spoilt = Spoilt {
                start: next,
                end: now,
            };
            seen.lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push(spoilt);
            next = now;
        }
    }
}
