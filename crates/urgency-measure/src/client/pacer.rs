//! An open loop inside the measured process: what arrives there (calls, keystrokes, packets) arrives at times
//! that were drawn beforehand, whatever becomes of what arrived before.
//!
//! A [`Pacer`] draws the times of each stretch of load, and writes the number of each arrival into a socket when it is
//! due ([`ARRIVAL`] bytes, least first), on a thread of its own in the class SCHED_FIFO where that is permitted (metric
//! `pacer_real_time`), so that what is measured cannot delay its own load. The other end of the socket
//! ([`socket`]) is read by what is measured, a [`Paced`] program. It is [`Loaded`]: in slices or in whole runs.
//!
//! Rejected: a call from the pacer's thread (a `spawn`, a message into a channel). A thread that a runtime starts
//! meanwhile inherits the pacer's class, and preempts all others. The pacer looks for such threads and panics.

use crate::class;
use crate::events::Events;
use crate::latencies::Latencies;
use crate::loaded::Loaded;
use crate::machine::{now_ns, sleep_until_ns};
use crate::sample::Sample;
use std::fs;
use std::io::{ErrorKind, Write as _};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Bytes of the number of an arrival.
pub const ARRIVAL: usize = 8;

/// From the end of a stretch until what is not done of it counts as unanswered, unless the program says otherwise.
const GRACE: Duration = Duration::from_secs(3);

/// A program at which something arrives.
pub trait Paced: Send + Sync + 'static {
    /// Arrivals are to come, numbered on from `first`; each is due at its time, in nanoseconds of the monotonic clock.
    fn expect(&self, first: usize, due: &[u64]);
    /// Whether everything that was expected is done.
    fn is_done(&self) -> bool;
    /// Units of less urgent work done so far.
    fn units(&self) -> u64;
    /// From the end of a stretch until what is not done of it counts as unanswered.
    fn patience(&self) -> Duration {
        GRACE
    }
    /// What came of it all, and what else is to be said.
    fn events(&self) -> (Events, Sample);
}

/// What arrives at a program, and when.
pub struct Pacer<P> {
    program: Arc<P>,
    draw: Draw,
    next: usize,
    end: u64,
    orders: Sender<Vec<Arrival>>,
    writer: JoinHandle<Sample>,
}

/// When things arrive in a stretch of load of this length: times from its beginning, in ascending order.
type Draw = Box<dyn FnMut(Duration) -> Vec<Duration>>;

struct Arrival {
    number: usize,
    due: u64,
}

impl<P: Paced> Pacer<P> {
    /// What `draw` draws for each stretch arrives at the other end of `socket`.
    pub fn new(
        program: Arc<P>,
        socket: UnixStream,
        draw: impl FnMut(Duration) -> Vec<Duration> + 'static,
    ) -> Self {
        let (orders, ordered) = channel();
        Pacer {
            program,
            draw: Box::new(draw),
            next: 0,
            end: 0,
            orders,
            writer: thread::spawn(move || write(socket, &ordered)),
        }
    }
}

impl<P: Paced> Loaded for Pacer<P> {
    fn open(&mut self, start: u64, end: u64) {
        let drawn = (self.draw)(Duration::from_nanos(end - start));
        assert!(drawn.is_sorted(), "arrivals come one after the other");
        let due: Vec<u64> = drawn
            .iter()
            .map(|at| start + at.as_nanos() as u64)
            .collect();
        let first = self.next;
        (self.next, self.end) = (first + due.len(), end);
        self.program.expect(first, &due);
        let arrivals = (first..).zip(due);
        let arrivals = arrivals.map(|(number, due)| Arrival { number, due });
        // The thread ends early by a panic only, which `events` passes on.
        let _ = self.orders.send(arrivals.collect());
    }

    fn is_drained(&mut self) -> bool {
        let is_over = now_ns() >= self.end;
        let patience = self.program.patience().as_nanos() as u64;
        is_over && (self.program.is_done() || now_ns() > self.end + patience)
    }

    fn units(&self) -> u64 {
        self.program.units()
    }

    fn foreign_threads(&self) -> f64 {
        1.0
    }

    fn events(self) -> (Events, Sample) {
        drop(self.orders);
        let paced = self.writer.join().expect("the pacer does not panic");
        let (events, more) = self.program.events();
        (events, more.with_all("", &paced))
    }
}

/// Times from the beginning, each a gap after the one before.
pub fn by_gaps(length: Duration, gap: impl FnMut() -> Duration) -> Vec<Duration> {
    let gaps = std::iter::repeat_with(gap);
    let times = gaps.scan(Duration::ZERO, |at, gap| {
        *at += gap;
        Some(*at)
    });
    times.take_while(|&at| at < length).collect()
}

/// Draws a Poisson process with so many arrivals a second; the same seed gives the same times.
pub fn poisson(per_s: f64, seed: u64) -> impl FnMut(Duration) -> Vec<Duration> {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut gap = move || Duration::from_secs_f64(-(1.0 - random.f64()).ln() / per_s);
    move |length| by_gaps(length, &mut gap)
}

/// Writes each arrival when it is due.
fn write(mut socket: UnixStream, ordered: &Receiver<Vec<Arrival>>) -> Sample {
    let real_time = class::enter_real_time(class::CLIENT).is_ok();
    class::sharpen_timers();
    let is_set = socket.set_nonblocking(true);
    is_set.expect("a socket can be non-blocking");
    let (mut late, mut pending) = (Latencies::new(), Vec::new());
    let mut put = |pending: &mut Vec<u8>| match socket.write(pending) {
        Ok(written) => drop(pending.drain(..written)),
        Err(error) if error.kind() == ErrorKind::WouldBlock => {}
        Err(error) => panic!("nobody reads what arrives: {error}"),
    };
    for arrivals in ordered {
        let mut patience = 0;
        for Arrival { number, due } in arrivals {
            while now_ns() < due {
                sleep_until_ns(due);
            }
            late.record(Duration::from_nanos(now_ns().saturating_sub(due)));
            pending.extend_from_slice(&(number as u64).to_le_bytes());
            // A socket that is full takes the rest with the next arrival: the loop is open.
            put(&mut pending);
            patience = due + GRACE.as_nanos() as u64;
        }
        while !pending.is_empty() && now_ns() < patience {
            thread::sleep(Duration::from_millis(1));
            put(&mut pending);
        }
        assert_eq!(
            real_time_threads(),
            u32::from(real_time),
            "threads of the program inherited the pacer's class"
        );
    }
    late.sample("pacer_late_")
        .with("pacer_real_time", f64::from(u8::from(real_time)))
}

/// Two ends of a socket: for a [`Pacer`], and for what is measured.
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
    use crate::client::stamps::Stamps;
    use std::io::Read as _;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::{Mutex, PoisonError};

    /// Real-time threads are counted over the whole process, so only one test may have some.
    static ALONE: Mutex<()> = Mutex::new(());

    /// Notes what it reads while it may.
    #[derive(Default)]
    struct Reader {
        stamps: Stamps,
        due: Mutex<Vec<u64>>,
        seen: Mutex<Vec<usize>>,
        pauses: AtomicBool,
    }

    impl Paced for Reader {
        fn expect(&self, first: usize, due: &[u64]) {
            assert_eq!(first, self.due.lock().unwrap().len());
            self.due.lock().unwrap().extend(due);
            self.stamps.expect_all(first, due);
        }

        fn is_done(&self) -> bool {
            self.stamps.are_done()
        }

        fn units(&self) -> u64 {
            0
        }

        fn events(&self) -> (Events, Sample) {
            (self.stamps.events("x"), Sample::new())
        }
    }

    /// A reader, and a pacer with an arrival in each `gap` of its stretches.
    fn paced(gap: Duration) -> (Arc<Reader>, Pacer<Reader>) {
        let reader = Arc::new(Reader::default());
        let (writes, mut reads) = socket();
        let theirs = reader.clone();
        thread::spawn(move || {
            let mut bytes = [0; ARRIVAL];
            while reads.read_exact(&mut bytes).is_ok() {
                while theirs.pauses.load(Ordering::Relaxed) {
                    thread::sleep(Duration::from_millis(1));
                }
                let number = arrival(bytes);
                assert!(theirs.due.lock().unwrap()[number] <= now_ns());
                theirs.seen.lock().unwrap().push(number);
                theirs.stamps.done(number);
            }
        });
        let draw = move |length| by_gaps(length, || gap);
        (reader.clone(), Pacer::new(reader, writes, draw))
    }

    fn stretch(pacer: &mut Pacer<Reader>, length: Duration) {
        let start = now_ns();
        pacer.open(start, start + length.as_nanos() as u64);
        while !pacer.is_drained() {
            thread::sleep(Duration::from_millis(1));
        }
    }

    #[test]
    fn every_arrival_of_every_stretch_comes_once_and_in_order_and_none_early() {
        let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let (reader, mut pacer) = paced(Duration::from_millis(1));
        stretch(&mut pacer, Duration::from_millis(11));
        stretch(&mut pacer, Duration::from_millis(21));
        let (events, sample) = pacer.events();
        assert_eq!(*reader.seen.lock().unwrap(), (0..30).collect::<Vec<_>>());
        assert_eq!(events.of("x").len(), 30);
        assert_eq!(sample.get("pacer_late_count"), Some(30.0));
    }

    #[test]
    fn a_reader_that_stops_for_a_while_does_not_stop_the_pacer() {
        let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let (reader, mut pacer) = paced(Duration::from_micros(1));
        reader.pauses.store(true, Ordering::Relaxed);
        let start = now_ns();
        // More than the socket holds.
        pacer.open(start, start + 20_001_000);
        thread::sleep(Duration::from_millis(60));
        assert!(!pacer.is_drained());
        reader.pauses.store(false, Ordering::Relaxed);
        while !pacer.is_drained() {
            thread::sleep(Duration::from_millis(1));
        }
        assert!(reader.seen.lock().unwrap().iter().copied().eq(0..20_000));
        pacer.events();
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
