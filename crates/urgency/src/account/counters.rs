//! Counters of one worker: what happened, and where its time went.
//!
//! Each worker has its own block. Only the stack that holds the worker writes it, inside the scheduler, so an increment
//! is a plain load and store. (Waits for locks are noted by code of the program, with locked instructions.) Readers see
//! values that are at most a moment old. Nothing here is on the path of an unstolen fork.

use crate::sys::primitives::atomic::{AtomicU64, Ordering};

/// A counter with one writer at a time.
#[derive(Debug, Default)]
pub(crate) struct Count(AtomicU64);

impl Count {
    /// Adds `n`. Only the worker's holder does this.
    #[inline]
    pub(crate) fn add(&self, n: u64) {
        self.0
            .store(self.0.load(Ordering::Relaxed) + n, Ordering::Relaxed);
    }

    /// Adds `n`, by code that may have lost the worker. For a count that is always added to in this way.
    pub(crate) fn add_as_any(&self, n: u64) {
        self.0.fetch_add(n, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// What a worker did at one level.
#[derive(Debug, Default)]
pub(crate) struct LevelCounters {
    /// Polls of async tasks.
    pub(crate) tasks: Count,
    /// Forks started after a steal.
    pub(crate) jobs: Count,
    /// Closures started on a stack of their own.
    pub(crate) closures: Count,
    /// Forks taken from a deque in the pool.
    pub(crate) steals: Count,
    /// Forks stolen back from the thief of the fork that a stack waits for.
    pub(crate) leaps: Count,
    /// Splits raised by a thief, for an owner that did not answer.
    pub(crate) raises: Count,
    /// Stacks taken over from the pool.
    pub(crate) mugs: Count,
    /// Stacks left for more urgent work.
    pub(crate) abandonments: Count,
    /// Times the worker was handed to another thread.
    pub(crate) hand_offs: Count,
    /// Times the worker was taken from a stack that did not check in.
    pub(crate) reliefs: Count,
    /// Times the worker was taken from a less urgent stack by an event.
    pub(crate) promotions: Count,
    /// Waits in the queue of a lock. Code of the program notes them, and its worker may be revoked at that moment.
    pub(crate) lock_waits: Count,
    /// Ticks of these waits.
    pub(crate) lock_waited: Count,
    /// Ticks in user code.
    pub(crate) running: Count,
    /// Ticks in which the worker ran at this level while more urgent work had asked for it.
    pub(crate) behind: Count,
    /// Ticks from ready to running.
    pub(crate) latency: Histogram,
}

/// Where a worker's time went, besides running.
#[derive(Debug, Default)]
pub(crate) struct WorkerCounters {
    /// Ticks inside the scheduler, with work in hand.
    pub(crate) scheduling: Count,
    /// Ticks looking for work.
    pub(crate) searching: Count,
    /// Ticks unused.
    pub(crate) asleep: Count,
}

/// A logarithmic histogram: eight buckets for each power of two, so a value is known to 12 %. The sum is exact.
#[derive(Debug)]
pub(crate) struct Histogram {
    buckets: Box<[Count]>,
    sum: Count,
}

const SUB_BITS: u32 = 3;
const BUCKETS: usize = 48 << SUB_BITS;

impl Default for Histogram {
    fn default() -> Self {
        Histogram {
            buckets: (0..BUCKETS).map(|_| Count::default()).collect(),
            sum: Count::default(),
        }
    }
}

impl Histogram {
    /// The bucket of a value.
    fn index(value: u64) -> usize {
        let value = value.max(1 << SUB_BITS);
        let exponent = 63 - value.leading_zeros();
        let mantissa = (value >> (exponent - SUB_BITS)) as usize & ((1 << SUB_BITS) - 1);
        let index = (((exponent - SUB_BITS) as usize) << SUB_BITS) + mantissa;
        index.min(BUCKETS - 1)
    }

    /// The largest value of a bucket.
    pub(crate) fn upper(index: usize) -> u64 {
        let exponent = (index >> SUB_BITS) as u32;
        let mantissa = (index & ((1 << SUB_BITS) - 1)) as u64 + (1 << SUB_BITS);
        ((mantissa + 1) << exponent) - 1
    }

    #[inline]
    pub(crate) fn record(&self, value: u64) {
        self.buckets[Self::index(value)].add(1);
        self.sum.add(value);
    }

    /// The sum of all values.
    pub(crate) fn sum(&self) -> u64 {
        self.sum.get()
    }

    /// The counts, bucket by bucket.
    pub(crate) fn counts(&self) -> impl Iterator<Item = u64> + '_ {
        self.buckets.iter().map(Count::get)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_lies_in_its_bucket_within_an_eighth() {
        for value in (0..40).flat_map(|shift| [1u64 << shift, (1 << shift) + 1, 3 << shift]) {
            let upper = Histogram::upper(Histogram::index(value));
            assert!(upper >= value, "{value} is above its bucket {upper}");
            assert!(
                upper <= value.max(8) + value.max(8) / 8,
                "{value} in bucket up to {upper}"
            );
        }
    }
}
