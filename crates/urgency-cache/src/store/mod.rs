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
//! - The steps ([`Store::lru_step`], [`Store::crawl_step`], [`Store::grow_step`], [`Store::rebalance_step`]) are
//!   background work in small pieces. The program calls them in a loop when there is time. The store is correct, and
//!   stays below its limit, even if they are never called.
//!
//! # Inside, from below
//!
//! - `budget`: the limit, one number; `pool`: the pages that no shard uses.
//! - `heap`: pages cut into blocks; `header`, `value`: an item in its blocks.
//! - `table`: from hash to block; `lru`: segments; `shard`: these and a heap under one lock.
//! - `place`: room for an item; `empty`: pages are emptied.
//! - `step`: the background work.
//!
//! A key belongs to one of up to [`SHARDS_MOST`] shards by its hash. The shards' locks are the only locks. The caller's
//! code runs under one only in the closures of `get`, `get_if` and `walk_step`, and during the life of an [`Entry`].
//! Only [`Entry::set`] and its like ever try for a second lock: a large item takes pages from other shards, with
//! `try_lock`, so there is no order to keep.
//!
//! A reader takes the shard's lock as well. Lock-free reads were rejected: they need items that outlive their
//! removal (reference counts or epochs: a write to shared memory or a delay of the reuse), and the memory
//! limit would not be hard. The section is some 100 ns, and with 2 workers and 32 shards one in 300
//! operations meets another.
//!
//! Do not call the store from inside the closures of `get`, `get_if` and `walk_step`, nor while an [`Entry`]
//! lives: the same shard may be asked for, and its lock is not reentrant.

mod budget;
mod empty;
mod entry;
mod header;
mod heap;
mod item;
mod limits;
mod lru;
mod place;
mod pool;
mod shard;
mod stats;
mod step;
mod table;
mod value;
mod view;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

use parking_lot::Mutex;

pub use entry::Entry;
pub use item::{KEY_MOST, NewItem, StoreError};
pub use limits::{ITEM_SIZE_LEAST, ITEM_SIZE_MOST, Limits, LimitsError, MEMORY_LEAST, SHARDS_MOST};
pub use stats::{Segment, SegmentStats, StoreStats};
pub use step::{Cursor, Done};
pub use value::Parts;
pub use view::ItemView;

use budget::Budget;
use heap::PAGE;
use shard::{Key, Rules, Shard};

/// A shard on cache lines of its own.
#[repr(align(128))]
struct Padded(Mutex<Shard>);

#[repr(align(128))]
struct Counter(AtomicU64);

/// A cache with a hard memory limit. See the [module](self).
pub struct Store {
    limits: Limits,
    rules: Rules,
    shards: Box<[Padded]>,
    budget: Arc<Budget>,
    lru_turn: AtomicUsize,
    grow_turn: AtomicUsize,
    next_cas: Counter,
}

impl Store {
    /// An empty store.
    ///
    /// # Errors
    /// A [`LimitsError`] names the limit that cannot be, its value and what is allowed.
    pub fn new(limits: &Limits) -> Result<Store, LimitsError> {
        let shards = limits.check()?;
        let budget = Arc::new(Budget::new(limits.memory));
        budget.force(fixed_cost(shards));
        let rules = Rules::new(limits);
        Ok(Store {
            limits: limits.clone(),
            shards: (0..shards)
                .map(|_| Padded(Mutex::new(Shard::new(rules.clone(), &budget))))
                .collect(),
            rules,
            budget,
            lru_turn: AtomicUsize::new(0),
            grow_turn: AtomicUsize::new(0),
            next_cas: Counter(AtomicU64::new(1)),
        })
    }

    /// The limits now.
    pub fn limits(&self) -> Limits {
        Limits {
            memory: self.budget.limit(),
            ..self.limits.clone()
        }
    }

    fn key<'a>(&self, bytes: &'a [u8]) -> Key<'a> {
        use std::hash::BuildHasher;
        Key {
            bytes,
            hash: self.rules.hasher.hash_one(bytes),
        }
    }

    fn number(&self, hash: u64) -> usize {
        (hash >> 48) as usize & (self.shards.len() - 1)
    }

    fn cas(&self, cas: Option<u64>) -> u64 {
        cas.unwrap_or_else(|| self.next_cas.0.fetch_add(1, Relaxed))
    }

    /// Reads an item: calls `read` with it while its shard is held, and counts the access. `None`
    /// if there is no such item. The closure copies and returns; it must not call the store.
    #[inline]
    pub fn get<R>(&self, key: &[u8], now: u32, read: impl FnOnce(&ItemView<'_>) -> R) -> Option<R> {
        self.get_if(key, now, |item| Some(read(item))).flatten()
    }

    /// The same, but `read` may decline: if it returns `None`, this was no access. `Some(None)` then; `None`
    /// if there is no such item.
    #[inline]
    pub fn get_if<R>(
        &self,
        key: &[u8],
        now: u32,
        read: impl FnOnce(&ItemView<'_>) -> Option<R>,
    ) -> Option<Option<R>> {
        let key = self.key(key);
        let mut shard = self.shards[self.number(key.hash)].0.lock();
        let r = shard.find(key, now)?;
        let result = read(&ItemView::new(&shard.heap, r));
        if result.is_some() {
            shard.access(r, now);
        }
        Some(result)
    }

    /// Exclusive access to a key.
    pub fn entry<'a>(&'a self, key: &'a [u8], now: u32) -> Entry<'a> {
        let key = self.key(key);
        let mut shard = self.shards[self.number(key.hash)].0.lock();
        let item = shard.find(key, now);
        Entry {
            store: self,
            shard,
            key,
            now,
            item,
            wrote: false,
        }
    }

    /// Everything stored before `at` is gone once `now >= at`; a flush of the past or the present
    /// happens at once. A later call replaces one that is still to come.
    pub fn flush_all(&self, at: u32, now: u32) {
        for shard in &self.shards {
            shard.0.lock().flush(at, now);
        }
    }

    /// Changes the memory limit. What is above a lower one goes page by page, in
    /// [`rebalance_step`](Self::rebalance_step); until then nothing more is taken from the system.
    ///
    /// # Errors
    /// As [`Store::new`].
    pub fn set_memory_limit(&self, bytes: u64) -> Result<(), LimitsError> {
        let limits = Limits {
            memory: bytes,
            shards: Some(self.shards.len() as u32),
            ..self.limits.clone()
        };
        limits.check()?;
        self.budget.set_limit(bytes);
        Ok(())
    }

    /// Takes pages from the other shards, in turn, until this one has room for `size` bytes in
    /// holes and whole pages, as far as they have some to spare and are not held by others just now.
    /// Whether it got any.
    fn gather(&self, hash: u64, shard: &mut Shard, size: u64, now: u32) -> bool {
        let mine = self.number(hash);
        let count = self.shards.len();
        let mut turns = 4 * (count as u64 + size / PAGE as u64);
        let mut other = mine;
        let mut got = false;
        while shard.heap.free_bytes() < size + size / 64 && turns > 0 {
            turns -= 1;
            if shard.heap.add_page() {
                got = true;
                continue;
            }
            other = (other + 1) % count;
            if other != mine
                && let Some(mut other) = self.shards[other].0.try_lock()
            {
                other.surrender(now);
            }
        }
        got
    }

    /// The numbers, added up over the shards, one after the other.
    pub fn stats(&self, now: u32) -> StoreStats {
        let mut sum = StoreStats {
            limit: self.budget.limit(),
            allocated: self.budget.used(),
            page_size: PAGE as u64,
            shards: self.shards.len() as u64,
            ..StoreStats::default()
        };
        let mut capacity = 0;
        for shard in &self.shards {
            let shard = shard.0.lock();
            shard.add_to(&mut sum, now);
            capacity += shard.table.capacity();
        }
        sum.hash_power_level = capacity.max(1).ilog2();
        sum
    }

    /// Sets back the counters; sizes and numbers of items stay.
    pub fn reset_stats(&self) {
        for shard in &self.shards {
            shard.0.lock().count = StoreStats::default();
        }
    }
}

/// Bytes that a store of so many shards takes before it holds anything.
fn fixed_cost(shards: u32) -> u64 {
    u64::from(shards) * (size_of::<Padded>() as u64 + table::Table::COST)
        + size_of::<Store>() as u64
}

#[cfg(test)]
mod check;
#[cfg(test)]
mod model_tests;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod thread_tests;
