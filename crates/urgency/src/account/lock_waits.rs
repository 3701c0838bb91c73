//! How often code waited for a lock, and for how long.
//!
//! It is counted by code of the program, whose worker may be revoked at that moment. So these are no counters of a
//! worker, which only its holder writes. Only what enters the queue of a lock comes here, and that costs a suspension.

use crate::sys::primitives::atomic::{AtomicU64, Ordering::Relaxed};

/// By level.
#[derive(Debug)]
pub(crate) struct LockWaits(Box<[AtLevel]>);

#[derive(Debug)]
struct AtLevel {
    times: AtomicU64,
    ticks: AtomicU64,
}

impl LockWaits {
    /// No code has waited, at any of so many levels.
    pub(crate) fn new(levels: usize) -> Self {
        let none = || AtLevel {
            times: AtomicU64::new(0),
            ticks: AtomicU64::new(0),
        };
        LockWaits((0..levels).map(|_| none()).collect())
    }

    /// Code of this level has waited for so many ticks.
    pub(crate) fn add(&self, level: u8, ticks: u64) {
        if let Some(at) = self.0.get(usize::from(level)) {
            at.times.fetch_add(1, Relaxed);
            at.ticks.fetch_add(ticks, Relaxed);
        }
    }

    /// How often, and for how many ticks together.
    pub(crate) fn of(&self, level: u8) -> (u64, u64) {
        let at = &self.0[usize::from(level)];
        (at.times.load(Relaxed), at.ticks.load(Relaxed))
    }
}
