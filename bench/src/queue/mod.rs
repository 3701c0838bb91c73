//! The queue of a level: a FIFO that all workers of a shard share (Prompt I-Cilk, section 4, has one by fetch-and-add
//! over an array of arrays). Each thread pushes and pops in turns, as a worker puts one entry back and takes the next;
//! the queue begins with a hundred entries, so it is never empty.
//!
//! - `segments`: `crossbeam_queue::SegQueue`, which the pools have. An index is taken by a compare-and-swap in a loop,
//!   in a list of blocks of 31 entries that are freed.
//! - `fetch-add`: an index is taken by a fetch-and-add, in a list of segments of 1,024 slots that are used again. It is
//!   one queue of this kind, not the fastest that there can be. (Until 27 November 2026 it had the paper's array of
//!   arrays, and made each array within the time. Its figures from before have the first touch of that memory.)
//! - `mutex`: a `VecDeque` under a lock.

mod fetch_add;

use crossbeam_queue::SegQueue;
use fetch_add::FetchAdd;
use std::collections::VecDeque;
use std::sync::Mutex;
use std::thread;
use urgency_measure::{Bar, Experiment, Sample, Scale, timing};

/// Entries at the beginning.
const FILLED: u64 = 100;

/// A FIFO of numbers above [`fetch_add::TAKEN`] that threads share.
trait Queue: Sync {
    fn push(&self, entry: u64);
    fn pop(&self) -> Option<u64>;
}

impl Queue for SegQueue<u64> {
    fn push(&self, entry: u64) {
        SegQueue::push(self, entry);
    }

    fn pop(&self) -> Option<u64> {
        SegQueue::pop(self)
    }
}

impl Queue for Mutex<VecDeque<u64>> {
    fn push(&self, entry: u64) {
        self.lock().expect("nothing panics").push_back(entry);
    }

    fn pop(&self) -> Option<u64> {
        self.lock().expect("nothing panics").pop_front()
    }
}

/// Threads, and how often each pushes and pops.
#[derive(Clone, Copy)]
struct Config {
    threads: u64,
    pairs: u64,
}

impl Config {
    fn measure<Q: Queue>(&self, queue: impl Fn(&Config) -> Q) -> Sample {
        let Config { threads, pairs } = *self;
        let entries = FILLED + threads * pairs;
        let prepare = || {
            let queue = queue(self);
            (1..=FILLED).for_each(|entry| queue.push(entry + fetch_add::TAKEN));
            queue
        };
        let work = |queue: Q| {
            thread::scope(|scope| {
                for own in 0..threads {
                    let queue = &queue;
                    scope.spawn(move || {
                        for turn in 0..pairs {
                            queue.push(FILLED + own * pairs + turn + 1 + fetch_add::TAKEN);
                            queue.pop().expect("there are always some");
                        }
                    });
                }
            });
            queue
        };
        let verify = |queue: Q| {
            let left = std::iter::from_fn(|| queue.pop());
            let is_known = |entry: u64| (1..=entries).contains(&(entry - fetch_add::TAKEN));
            assert_eq!(left.filter(|entry| is_known(*entry)).count() as u64, FILLED);
        };
        let sample = timing::repeat_on(3, prepare, work, verify);
        sample.with_each("operation_ns", 2 * threads * pairs)
    }
}

/// By number of threads.
pub fn experiments(scale: Scale) -> Vec<Experiment> {
    let pairs = scale.pick(2_000_000, 2_000);
    let all = [1, 2, 8].map(|threads| {
        let pairs = pairs / threads;
        experiment(Config { threads, pairs })
    });
    all.into()
}

fn experiment(config: Config) -> Experiment {
    Experiment::new(
        format!("queue-{}", config.threads),
        format!(
            "a shared FIFO: {} thread(s) push and pop in turns",
            config.threads
        ),
    )
    .table("segments", &["operation_ns", "cpu_ns"])
    .contender("segments", move || {
        config.measure(|_| SegQueue::<u64>::new())
    })
    .contender("fetch-add", move || {
        config.measure(|config| FetchAdd::of(FILLED + config.threads * config.pairs))
    })
    .contender("mutex", move || {
        config.measure(|_| Mutex::new(VecDeque::<u64>::new()))
    })
    .bar(Bar::times_at_most(
        "segments",
        "operation_ns",
        1.0,
        &["fetch-add"],
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_first_in_first_out(queue: &impl Queue) {
        (2..5000).for_each(|entry| queue.push(entry));
        assert!((2..5000).all(|entry| queue.pop() == Some(entry)));
        assert_eq!(queue.pop(), None);
        queue.push(7);
        assert_eq!((queue.pop(), queue.pop()), (Some(7), None));
    }

    #[test]
    fn entries_come_out_of_every_queue_in_the_order_in_which_they_came_in() {
        is_first_in_first_out(&FetchAdd::of(6000));
        is_first_in_first_out(&SegQueue::new());
        is_first_in_first_out(&Mutex::new(VecDeque::new()));
    }
}
