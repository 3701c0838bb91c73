//! The cache itself: keys and values, the memory limit, eviction, expiry.
//!
//! # The contract
//!
//! A [`Store`] is shared by reference between any number of threads. It has no clock, no tasks and
//! no threads of its own:
//!
//! - The caller passes `now`, in seconds. It starts at 2 or more, so that `expires: 1` means "has
//!   expired already", and never goes back. An item is dead once `expires <= now`; 0 is never.
//! - [`Store::get`] reads: the closure sees the item while its shard is held, and copies.
//! - [`Store::entry`] is exclusive access to one key, for everything else.
//! - The steps ([`Store::lru_step`], [`Store::crawl_step`], [`Store::grow_step`],
//!   [`Store::rebalance_step`]) are background work in small pieces. Somebody calls them in a loop
//!   when there is time. The store is correct, and stays below its limit, if nobody does.
//!
//! Do not call the store from inside the closure of `get`, nor while an [`Entry`] lives: the same
//! shard may be asked for, and its lock is not reentrant.

mod entry;
mod item;
mod limits;
mod shard;
mod stats;
mod step;
mod view;

use std::hash::BuildHasher;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use parking_lot::Mutex;

pub use entry::Entry;
pub use item::{KEY_MOST, NewItem, StoreError};
pub use limits::{ITEM_SIZE_LEAST, ITEM_SIZE_MOST, Limits, LimitsError, MEMORY_LEAST, SHARDS_MOST};
pub use stats::{Segment, SegmentStats, StoreStats};
pub use step::{Cursor, Done};
pub use view::ItemView;

use shard::Shard;

/// A cache with a hard memory limit. See the [module](self).
pub struct Store {
    limits: Limits,
    memory: AtomicU64,
    shards: Box<[Mutex<Shard>]>,
    hasher: foldhash::quality::RandomState,
    next_cas: AtomicU64,
}

impl Store {
    /// An empty store.
    ///
    /// # Errors
    /// A [`LimitsError`] names the limit that cannot be, its value and what is allowed.
    pub fn new(limits: &Limits) -> Result<Store, LimitsError> {
        limits.check()?;
        Ok(Store {
            limits: limits.clone(),
            memory: AtomicU64::new(limits.memory),
            shards: (0..16).map(|_| Mutex::default()).collect(),
            hasher: foldhash::quality::RandomState::default(),
            next_cas: AtomicU64::new(1),
        })
    }

    /// The limits now.
    pub fn limits(&self) -> Limits {
        Limits {
            memory: self.memory.load(Relaxed),
            ..self.limits.clone()
        }
    }

    fn shard(&self, key: &[u8]) -> &Mutex<Shard> {
        &self.shards[self.hasher.hash_one(key) as usize % self.shards.len()]
    }

    fn shard_limit(&self) -> u64 {
        (self.memory.load(Relaxed) / self.shards.len() as u64).max(2 * self.limits.item_size_max)
    }

    fn cas(&self, cas: Option<u64>) -> u64 {
        cas.unwrap_or_else(|| self.next_cas.fetch_add(1, Relaxed))
    }

    /// Reads an item: calls `read` with it while its shard is held, and counts the access. `None`
    /// if there is no such item. The closure copies and returns; it must not call the store.
    pub fn get<R>(&self, key: &[u8], now: u32, read: impl FnOnce(&ItemView<'_>) -> R) -> Option<R> {
        let mut shard = self.shard(key).lock();
        if !shard.live(key, now) {
            return None;
        }
        let stored = shard.map.get_mut(key)?;
        let result = read(&ItemView { key, stored });
        stored.fetched = true;
        stored.accessed = now;
        Some(result)
    }

    /// Exclusive access to a key.
    pub fn entry<'a>(&'a self, key: &'a [u8], now: u32) -> Entry<'a> {
        let mut shard = self.shard(key).lock();
        let live = shard.live(key, now);
        Entry {
            store: self,
            shard,
            key,
            now,
            live,
        }
    }

    /// Everything stored before `at` is gone once `now >= at`; a flush of the past or the present
    /// happens at once. A later call replaces one that is still to come.
    pub fn flush_all(&self, at: u32, now: u32) {
        for shard in &self.shards {
            let mut shard = shard.lock();
            shard.flush_at = Some(at);
            shard.tick(now);
        }
    }

    /// Changes the memory limit. A lower one is reached by [`rebalance_step`](Self::rebalance_step).
    ///
    /// # Errors
    /// As [`Store::new`].
    pub fn set_memory_limit(&self, bytes: u64) -> Result<(), LimitsError> {
        Limits {
            memory: bytes,
            ..self.limits.clone()
        }
        .check()?;
        self.memory.store(bytes, Relaxed);
        Ok(())
    }

    /// The numbers, added up over the shards, one after the other.
    pub fn stats(&self, now: u32) -> StoreStats {
        let _ = now;
        let mut sum = StoreStats {
            limit: self.memory.load(Relaxed),
            ..StoreStats::default()
        };
        for shard in &self.shards {
            let shard = shard.lock();
            sum.curr_items += shard.map.len() as u64;
            sum.bytes += shard.bytes;
            sum.total_items += shard.stats.total_items;
            sum.evictions += shard.stats.evictions;
            sum.outofmemory += shard.stats.outofmemory;
        }
        sum.shards = self.shards.len() as u64;
        sum
    }

    /// Counts and sets back the counters that memcached's `stats reset` does.
    pub fn reset_stats(&self) {
        for shard in &self.shards {
            shard.lock().stats = StoreStats::default();
        }
    }
}

#[cfg(test)]
mod tests;
