//! The memory limit: one number that everything taken from the system is counted against first.
//!
//! Code that needs memory calls [`Budget::take`] and allocates only if the answer is yes. Code that frees memory calls
//! [`Budget::give`]. So the sum is never above the limit at the time of an allocation. After the limit was lowered,
//! `take` says no until enough was given back.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::pool::Pool;

/// Bytes in use and bytes allowed, and the pages that are not in use.
pub(crate) struct Budget {
    used: AtomicU64,
    limit: AtomicU64,
    pub pool: Pool,
}

impl Budget {
    pub fn new(limit: u64) -> Budget {
        Budget {
            used: AtomicU64::new(0),
            limit: AtomicU64::new(limit),
            pool: Pool::default(),
        }
    }

    /// Counts `bytes` if they fit below the limit.
    pub fn take(&self, bytes: u64) -> bool {
        let limit = self.limit();
        self.used
            .fetch_update(Relaxed, Relaxed, |used| {
                (used + bytes <= limit).then_some(used + bytes)
            })
            .is_ok()
    }

    /// Counts `bytes` without asking.
    pub fn force(&self, bytes: u64) {
        self.used.fetch_add(bytes, Relaxed);
    }

    pub fn give(&self, bytes: u64) {
        self.used.fetch_sub(bytes, Relaxed);
    }

    pub fn used(&self) -> u64 {
        self.used.load(Relaxed)
    }

    pub fn limit(&self) -> u64 {
        self.limit.load(Relaxed)
    }

    pub fn set_limit(&self, limit: u64) {
        self.limit.store(limit, Relaxed);
    }
}
