//! Whether events come from many descriptors, or from a few.
//!
//! A worker without work looks at the kernel's queue again and again for a while, in case the next event comes soon
//! (`sched/serve/idle_spin.rs`). That pays while one peer waits for each answer: its next message comes some
//! microseconds later, and a thread that sleeps meanwhile costs the peer a wake-up. Beside a *crowd* of peers it does
//! not pay. While a thread is being woken, further requests arrive, and one wake-up serves them all; a worker that
//! looks all the time serves each by itself, and takes the processor time for the looks, and often the processor, from
//! the peers.
//!
//! The last [`MEMORY`] events decide: if all of them were of different descriptors, it is a crowd.

/// So many events are remembered.
const MEMORY: usize = 4;

/// No descriptor's key.
const NONE: u64 = u64::MAX;

/// See the module's text.
#[derive(Debug)]
pub(crate) struct Crowd {
    keys: [u64; MEMORY],
    next: usize,
}

impl Crowd {
    pub(crate) const fn new() -> Self {
        Crowd {
            keys: [NONE; MEMORY],
            next: 0,
        }
    }

    /// An event of the descriptor with this key came.
    #[inline]
    pub(crate) fn note(&mut self, key: u64) {
        self.keys[self.next] = key;
        self.next = (self.next + 1) % MEMORY;
    }

    /// Whether the last events were of different descriptors.
    pub(crate) fn is_one(&self) -> bool {
        let keys = &self.keys;
        !keys.contains(&NONE) && (1..MEMORY).all(|at| !keys[..at].contains(&keys[at]))
    }
}

#[cfg(all(test, not(urgency_loom)))]
mod tests {
    use super::*;

    fn after(keys: &[u64]) -> bool {
        let mut crowd = Crowd::new();
        keys.iter().for_each(|key| crowd.note(*key));
        crowd.is_one()
    }

    #[test]
    fn one_peer_or_three_in_turns_are_no_crowd_and_four_are() {
        assert!(!after(&[]));
        assert!(!after(&[7; 9]));
        assert!(!after(&[1, 2, 3]));
        assert!(!after(&[1, 2, 3, 1, 2, 3, 1]));
        assert!(after(&[1, 2, 3, 4]));
        assert!(after(&[7, 7, 7, 4, 3, 2, 1]));
    }

    #[test]
    fn a_crowd_ends_when_one_peer_goes_on_alone() {
        assert!(!after(&[1, 2, 3, 4, 4]));
        assert!(!after(&[1, 2, 3, 4, 4, 4, 4]));
    }
}
