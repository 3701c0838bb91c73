//! What becomes of what arrives: a slot for each arrival, with the time when it was due and how much later something
//! was done for it.
//!
//! The thread that did it writes the slot, without a lock: a lock would let what is measured wait for itself.

use crate::events::{Event, Events, UNANSWERED};
use crate::machine::now_ns;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

/// Arrivals of one process, at most.
pub const MOST: usize = 1 << 16;

/// A slot for each arrival.
pub struct Stamps {
    slots: Vec<Slot>,
    expected: AtomicUsize,
    done: AtomicUsize,
}

#[derive(Default)]
struct Slot {
    /// In nanoseconds of the monotonic clock; 0: nothing is expected here.
    due: AtomicU64,
    /// How much later it was done, at least 1; 0: not yet.
    after: AtomicU64,
}

impl Default for Stamps {
    fn default() -> Self {
        Stamps {
            slots: (0..MOST).map(|_| Slot::default()).collect(),
            expected: AtomicUsize::new(0),
            done: AtomicUsize::new(0),
        }
    }
}

impl Stamps {
    /// Something is to be done for `arrival`, which is due at `due`.
    pub fn expect(&self, arrival: usize, due: u64) {
        let slot = self.slots.get(arrival);
        let slot = slot.unwrap_or_else(|| panic!("a process has room for {MOST} arrivals"));
        slot.due.store(due, Ordering::Relaxed);
        self.expected.fetch_add(1, Ordering::Relaxed);
    }

    /// As [`Stamps::expect`], for arrivals numbered on from `first`.
    pub fn expect_all(&self, first: usize, due: &[u64]) {
        for (arrival, &due) in (first..).zip(due) {
            self.expect(arrival, due);
        }
    }

    /// What `arrival` was for is done; the first call counts.
    pub fn done(&self, arrival: usize) {
        let (slot, after) = (&self.slots[arrival], self.age(arrival).max(1));
        let first = slot
            .after
            .compare_exchange(0, after, Ordering::Relaxed, Ordering::Relaxed);
        if first.is_ok() {
            self.done.fetch_add(1, Ordering::Release);
        }
    }

    /// How long ago `arrival` was due.
    pub fn since(&self, arrival: usize) -> Duration {
        Duration::from_nanos(self.age(arrival))
    }

    /// When `arrival` was due.
    pub fn due(&self, arrival: usize) -> u64 {
        self.slots[arrival].due.load(Ordering::Relaxed)
    }

    /// Whether everything that is expected is done.
    pub fn are_done(&self) -> bool {
        self.done.load(Ordering::Acquire) == self.expected.load(Ordering::Relaxed)
    }

    /// All arrivals as events of `series`. What is not done counts with all of its wait, and as unanswered.
    pub fn events(&self, series: &str) -> Events {
        let (mut events, now) = (Events::default(), now_ns());
        let unanswered = format!("{series}{UNANSWERED}");
        events.add(series, []);
        for slot in &self.slots {
            let due = slot.due.load(Ordering::Relaxed);
            let after = slot.after.load(Ordering::Relaxed);
            let event = |latency| Event { due, latency };
            match (due, after) {
                (0, _) => {}
                (_, 0) => {
                    let waits = event(now.saturating_sub(due));
                    events.add(series, [waits]);
                    events.add(&unanswered, [waits]);
                }
                _ => events.add(series, [event(after)]),
            }
        }
        events
    }

    fn age(&self, arrival: usize) -> u64 {
        now_ns().saturating_sub(self.due(arrival))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_two_stamps_the_first_counts_and_what_has_none_is_unanswered_with_all_of_its_wait() {
        let (stamps, due) = (Stamps::default(), now_ns() - 1_000_000);
        assert!(stamps.are_done());
        stamps.expect(3, due);
        stamps.expect(5, due);
        stamps.done(3);
        let first = stamps.events("x").of("x")[0].latency;
        stamps.done(3);
        assert!(!stamps.are_done());
        let events = stamps.events("x");
        assert_eq!(
            (events.of("x").len(), events.of("x")[0].latency),
            (2, first)
        );
        let silent = events.of("x_unanswered");
        assert_eq!((silent.len(), silent[0].due), (1, due));
        assert!(silent[0].latency >= 1_000_000);
        stamps.done(5);
        assert!(stamps.are_done());
        assert!(stamps.events("x").of("x_unanswered").is_empty());
    }
}
