//! Counting requests without sharing a cache line.
//!
//! A connection counts in a [`Tally`] of its own, plain numbers, and adds it to the server's [`Counters`] before it
//! sends the answers. So `stats` on another connection sees every request whose answer a client has received.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
#[allow(missing_docs, reason = "the names are those of memcached's statistics")]
pub enum Count {
    GetCmds,
    GetHits,
    GetMisses,
    SetCmds,
    FlushCmds,
    TouchCmds,
    TouchHits,
    TouchMisses,
    MetaCmds,
    DeleteHits,
    DeleteMisses,
    IncrHits,
    IncrMisses,
    DecrHits,
    DecrMisses,
    CasHits,
    CasMisses,
    CasBadval,
    StoreTooLarge,
    StoreNoMemory,
    BytesRead,
    BytesWritten,
    ConnYields,
    IdleKicks,
}

impl Count {
    /// Requests for a value, with how many found one and how many did not.
    pub const GET: [Count; 3] = [Count::GetCmds, Count::GetHits, Count::GetMisses];
    /// Requests that touch an item, likewise.
    pub const TOUCH: [Count; 3] = [Count::TouchCmds, Count::TouchHits, Count::TouchMisses];
}

const COUNTS: usize = Count::IdleKicks as usize + 1;

/// Counters that connections add to; more than there are processors on most machines.
const SHARDS: usize = 16;

/// The counts of one connection since it last reported them.
#[derive(Debug, Default)]
pub struct Tally {
    counts: [u64; COUNTS],
    changed: u32,
}

impl Tally {
    /// Counts one.
    #[inline]
    pub fn add(&mut self, count: Count) {
        self.add_many(count, 1);
    }

    /// Counts a request that did, or did not, find its item.
    #[inline]
    pub fn add_found(&mut self, [all, hits, misses]: [Count; 3], found: bool) {
        self.add(all);
        self.add(if found { hits } else { misses });
    }

    /// Counts `many`.
    #[inline]
    pub fn add_many(&mut self, count: Count, many: u64) {
        self.counts[count as usize] += many;
        self.changed |= 1 << count as u32;
    }
}

#[derive(Debug, Default)]
#[repr(align(128))]
struct Shard {
    counts: [AtomicU64; COUNTS],
}

/// The counts of the server.
#[derive(Debug, Default)]
pub struct Counters {
    shards: [Shard; SHARDS],
}

impl Counters {
    /// Adds what connection `number` has counted, and clears its tally.
    #[inline]
    pub fn report(&self, number: u64, tally: &mut Tally) {
        let shard = &self.shards[number as usize % SHARDS];
        while tally.changed != 0 {
            let index = tally.changed.trailing_zeros() as usize;
            tally.changed &= tally.changed - 1;
            let many = std::mem::take(&mut tally.counts[index]);
            shard.counts[index].fetch_add(many, Relaxed);
        }
    }

    /// The sum.
    pub fn get(&self, count: Count) -> u64 {
        let of = |shard: &Shard| shard.counts[count as usize].load(Relaxed);
        self.shards.iter().map(of).sum()
    }

    /// The sum of all requests for items.
    pub fn requests(&self) -> u64 {
        use Count::*;
        let counts = [
            GetCmds,
            SetCmds,
            TouchCmds,
            MetaCmds,
            DeleteHits,
            DeleteMisses,
            IncrHits,
            IncrMisses,
            DecrHits,
            DecrMisses,
        ];
        counts.iter().map(|&count| self.get(count)).sum()
    }

    /// Sets all back to 0.
    pub fn reset(&self) {
        for count in self.shards.iter().flat_map(|shard| &shard.counts) {
            count.store(0, Relaxed);
        }
    }
}
