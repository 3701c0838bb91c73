//! An open loop inside the measured process: what arrives there (calls, keystrokes, packets) arrives at times
//! that were drawn beforehand, whatever becomes of what arrived before.
//!
//! A [`Schedule`] holds these times. [`Schedule::pace`] writes the number of each arrival into a socket when it is
//! due ([`ARRIVAL`] bytes, least first), on a thread of its own in the class SCHED_FIFO where that is permitted (metric
//! `pacer_real_time`), so that what is measured cannot delay its own load. The other end of the socket
//! ([`socket`]) is read by what is measured.
//!
//! Rejected: a call from the pacer's thread (a `spawn`, a message into a channel). A thread that a runtime starts
//! meanwhile inherits the pacer's class, and preempts all others. [`Schedule::pace`] looks for such threads and panics.
//!
//! [`Stamps`] has a slot for each arrival, and takes the time from which it was due until something was done for it.
//! The thread that did it writes the slot, without a lock. What is not done `GRACE` after the last arrival counts
//! with all of its wait, and as `unanswered`.

use crate::class;
use crate::latencies::Latencies;
use crate::sample::Sample;
use std::io::{ErrorKind, Write as _};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use std::{fs, thread};

/// Bytes of the number of an arrival.
pub const ARRIVAL: usize = 8;

/// From the last arrival until the requests that are not done count as unanswered.
const GRACE: Duration = Duration::from_secs(3);
/// From the making of a schedule to its beginning, so that nothing is late because a thread has to start.
const LEAD: Duration = Duration::from_millis(100);

/// When things arrive.
pub struct Schedule {
    start: Instant,
    warm_up: Duration,
    due: Vec<Duration>,
}

/// What came of each arrival of a schedule.
pub struct Stamps(Vec<AtomicU64>);

impl Schedule {
    /// Arrivals at `due`, in ascending order, from now on; those before `warm_up` are not measured.
    pub fn new(due: Vec<Duration>, warm_up: Duration) -> Self {
        assert!(due.is_sorted(), "arrivals come one after the other");
        Schedule {
            start: Instant::now() + LEAD,
            warm_up,
            due,
        }
    }

    /// How many arrivals there are.
    pub fn arrivals(&self) -> usize {
        self.due.len()
    }

    /// When an arrival is due.
    pub fn due(&self, arrival: usize) -> Instant {
        self.start + self.due[arrival]
    }

    /// How long ago an arrival was due.
    pub fn age(&self, arrival: usize) -> Duration {
        self.due(arrival).elapsed()
    }

    /// An empty slot for each arrival.
    pub fn stamps(&self) -> Stamps {
        Stamps(self.due.iter().map(|_| AtomicU64::new(0)).collect())
    }

    /// Writes each arrival when it is due, and returns after the last one. `batch_per_s` is by how much `units`
    /// grew a second after the warm-up.
    pub fn pace(&self, units: &AtomicU64, socket: UnixStream) -> Sample {
        thread::scope(|threads| {
            let pacer = threads.spawn(|| self.write(socket));
            thread::sleep((self.start + self.warm_up).saturating_duration_since(Instant::now()));
            let (since, before) = (Instant::now(), units.load(Ordering::Relaxed));
            let paced = pacer.join().expect("the pacer does not panic");
            let done = units.load(Ordering::Relaxed) - before;
            paced.with("batch_per_s", done as f64 / since.elapsed().as_secs_f64())
        })
    }

    fn write(&self, mut socket: UnixStream) -> Sample {
        let real_time = class::enter_real_time(class::CLIENT).is_ok();
        class::sharpen_timers();
        socket
            .set_nonblocking(true)
            .expect("a socket can be non-blocking");
        let (mut late, mut pending) = (Latencies::new(), Vec::new());
        for arrival in 0..self.arrivals() {
            let due = self.due(arrival);
            thread::sleep(due.saturating_duration_since(Instant::now()));
            late.record(due.elapsed());
            pending.extend_from_slice(&(arrival as u64).to_le_bytes());
            // A socket that is full takes the rest with the next arrival: the loop is open.
            match socket.write(&pending) {
                Ok(written) => drop(pending.drain(..written)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) => panic!("nobody reads what arrives: {error}"),
            }
        }
        assert_eq!(
            real_time_threads(),
            u32::from(real_time),
            "threads of the program inherited the pacer's class"
        );
        socket
            .set_nonblocking(false)
            .expect("a socket can be blocking");
        socket.write_all(&pending).expect("what arrives is read");
        late.sample("pacer_late_")
            .with("pacer_real_time", f64::from(u8::from(real_time)))
    }

    /// The distribution of `stamps` after the warm-up, for the arrivals that `admits` names, and how many are
    /// `unanswered`. Waits for what is still to come.
    pub fn sample(&self, stamps: &Stamps, prefix: &str, admits: impl Fn(usize) -> bool) -> Sample {
        let (latencies, unanswered) = self.latencies(stamps, admits);
        latencies
            .sample(prefix)
            .with(format!("{prefix}unanswered"), unanswered as f64)
    }

    /// The share of what [`Schedule::sample`] looks at that was done within `limit`. To be asked after that.
    pub fn share_within(
        &self,
        stamps: &Stamps,
        limit: Duration,
        admits: impl Fn(usize) -> bool,
    ) -> f64 {
        let in_time = |&arrival: &usize| stamps.after(arrival).is_some_and(|after| after <= limit);
        let all: Vec<usize> = self.measured(admits).collect();
        all.iter().copied().filter(in_time).count() as f64 / all.len() as f64
    }

    fn latencies(&self, stamps: &Stamps, admits: impl Fn(usize) -> bool) -> (Latencies, u64) {
        let patience = self.due(self.arrivals() - 1) + GRACE;
        let (mut latencies, mut unanswered) = (Latencies::new(), 0);
        for arrival in self.measured(admits) {
            while stamps.after(arrival).is_none() && Instant::now() < patience {
                thread::sleep(Duration::from_millis(10));
            }
            unanswered += u64::from(stamps.after(arrival).is_none());
            latencies.record(stamps.after(arrival).unwrap_or_else(|| self.age(arrival)));
        }
        (latencies, unanswered)
    }

    fn measured(&self, admits: impl Fn(usize) -> bool) -> impl Iterator<Item = usize> {
        let after_warm_up = |&arrival: &usize| self.due[arrival] >= self.warm_up;
        (0..self.arrivals())
            .filter(after_warm_up)
            .filter(move |&arrival| admits(arrival))
    }
}

impl Stamps {
    /// What `arrival` was for is done; the first call counts.
    pub fn done(&self, schedule: &Schedule, arrival: usize) {
        // 0 means that it is not done.
        let after = (schedule.age(arrival).as_nanos() as u64).max(1);
        let _ = self.0[arrival].compare_exchange(0, after, Ordering::Relaxed, Ordering::Relaxed);
    }

    fn after(&self, arrival: usize) -> Option<Duration> {
        let after = self.0[arrival].load(Ordering::Relaxed);
        (after > 0).then(|| Duration::from_nanos(after))
    }
}

/// Two ends of a socket: for [`Schedule::pace`], and for what is measured.
pub fn socket() -> (UnixStream, UnixStream) {
    UnixStream::pair().expect("there are two more descriptors")
}

/// The arrival that was read.
pub fn arrival(bytes: [u8; ARRIVAL]) -> usize {
    u64::from_le_bytes(bytes) as usize
}

/// How many threads of this process are in the class SCHED_FIFO.
fn real_time_threads() -> u32 {
    let is_real_time = |stat: String| {
        // The second field, the name in parentheses, may hold spaces; the policy is the 41st, 1 is SCHED_FIFO.
        let (_, rest) = stat.rsplit_once(") ")?;
        Some(u32::from(rest.split(' ').nth(38)? == "1"))
    };
    let threads = fs::read_dir("/proc/self/task").expect("/proc is mounted");
    threads
        .filter_map(|thread| fs::read_to_string(thread.ok()?.path().join("stat")).ok())
        .filter_map(is_real_time)
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read as _;
    use std::sync::{Mutex, PoisonError};

    /// Real-time threads are counted over the whole process, so only one test may have some.
    static ALONE: Mutex<()> = Mutex::new(());

    fn schedule(warm_up_ms: u64) -> Schedule {
        let due = (0..20).map(Duration::from_millis).collect();
        Schedule::new(due, Duration::from_millis(warm_up_ms))
    }

    /// Paces, and calls `each` with every arrival as it is read.
    fn pace(schedule: &Schedule, mut each: impl FnMut(usize)) -> Sample {
        let (writes, mut reads) = socket();
        thread::scope(|threads| {
            let paced = threads.spawn(|| schedule.pace(&AtomicU64::new(0), writes));
            let mut bytes = [0; ARRIVAL];
            while reads.read_exact(&mut bytes).is_ok() {
                each(arrival(bytes));
            }
            paced.join().unwrap()
        })
    }

    #[test]
    fn every_arrival_comes_once_and_in_order_and_none_early() {
        let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let (schedule, mut seen) = (schedule(0), Vec::new());
        let paced = pace(&schedule, |arrival| {
            assert!(schedule.due(arrival) <= Instant::now());
            seen.push(arrival);
        });
        assert_eq!(seen, (0..20).collect::<Vec<_>>());
        assert_eq!(paced.get("pacer_late_count"), Some(20.0));
    }

    #[test]
    fn only_arrivals_after_the_warm_up_count_and_of_two_stamps_the_first() {
        let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let schedule = schedule(15);
        let stamps = schedule.stamps();
        pace(&schedule, |arrival| stamps.done(&schedule, arrival));
        let before = stamps.after(19);
        stamps.done(&schedule, 19);
        assert_eq!(stamps.after(19), before);
        let sample = schedule.sample(&stamps, "x_", |_| true);
        let get = |name| sample.get(name);
        assert_eq!(
            (get("x_count"), get("x_unanswered")),
            (Some(5.0), Some(0.0))
        );
        assert_eq!(
            schedule.share_within(&stamps, Duration::from_secs(60), |_| true),
            1.0
        );
    }

    #[test]
    fn a_reader_that_stops_for_a_while_does_not_stop_the_pacer() {
        let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let due = (0..20_000).map(Duration::from_micros).collect();
        let schedule = Schedule::new(due, Duration::ZERO);
        let (writes, mut reads) = socket();
        let read = thread::scope(|threads| {
            threads.spawn(|| schedule.pace(&AtomicU64::new(0), writes));
            // More than the socket holds, long after the last arrival.
            while Instant::now() < schedule.due(19_999) {
                thread::sleep(Duration::from_millis(1));
            }
            let mut bytes = Vec::new();
            reads.read_to_end(&mut bytes).unwrap();
            bytes
        });
        let arrivals = read.as_chunks().0.iter().map(|&bytes| arrival(bytes));
        assert!(arrivals.eq(0..20_000));
    }

    #[test]
    fn a_thread_that_inherits_the_pacers_class_is_found() {
        let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let found = thread::spawn(|| {
            let permitted = class::enter_real_time(class::CLIENT).is_ok();
            let (stop, wait) = std::sync::mpsc::channel::<()>();
            let inherits = thread::spawn(move || wait.recv());
            let found = real_time_threads();
            drop(stop);
            assert!(inherits.join().unwrap().is_err());
            (permitted, found)
        });
        let (permitted, found) = found.join().unwrap();
        assert!(found >= 2 * u32::from(permitted), "{found}");
    }
}
