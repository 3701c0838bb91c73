//! Background work, in small pieces.
//!
//! Each step holds one shard at a time, for a few items, and goes round the shards. None of this work is needed: a
//! write does its O(1) share by itself. With it, writes find their victim, their bucket and their page at once, and
//! items that are not asked for any more are removed.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering::Relaxed;

use super::header::FETCHED;
use super::heap::PAGE_COST;
use super::shard::{COLD, HOT, Shard, WARM};
use super::view::ItemView;
use super::{Store, StoreStats};

/// Items moved or buckets split while a shard is held.
const HOLD: u64 = 16;
/// Bytes of a class in [`Store::sizes`].
const SIZE_CLASS: u32 = 32;

/// What a step did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Done {
    /// The work done, in the unit of the step's budget.
    pub work: u64,
    /// Whether there is more to do now.
    pub more: bool,
}

/// How far a walk over all items has come. A new one is at the beginning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cursor {
    shard: usize,
    page: u32,
}

impl Store {
    /// Moves items between the segments of the LRU, so that a write finds its victim at once. At
    /// most about `budget` items.
    pub fn lru_step(&self, now: u32, budget: u64) -> Done {
        let mut work = 0;
        for _ in 0..self.shards.len() {
            let turn = self.lru_turn.fetch_add(1, Relaxed) % self.shards.len();
            let mut shard = self.shards[turn].0.lock();
            shard.tick(now);
            work += shard.juggle(now, HOLD) + shard.juggle_old(now, HOLD);
            if work >= budget {
                return Done { work, more: true };
            }
        }
        Done { work, more: false }
    }

    /// Removes expired and flushed items: looks at about `budget` items and moves the cursor on.
    /// `more` is false once the walk has come to its end; the cursor is at the beginning again.
    pub fn crawl_step(&self, cursor: &mut Cursor, now: u32, budget: u64) -> Done {
        self.walk_step(cursor, now, budget, |_| {})
    }

    /// Calls `visit` for about `budget` live items, in no useful order, while their shard is held (it must
    /// not call the store), and moves the cursor on. An item that is stored or moved in memory during the
    /// walk may be missed or seen twice. Expired and flushed items are removed on the way.
    pub fn walk_step(
        &self,
        cursor: &mut Cursor,
        now: u32,
        budget: u64,
        mut visit: impl FnMut(&ItemView<'_>),
    ) -> Done {
        let mut work = 0;
        while let Some(shard) = self.shards.get(cursor.shard) {
            if work >= budget {
                return Done { work, more: true };
            }
            let mut shard = shard.0.lock();
            shard.tick(now);
            if cursor.page < shard.heap.page_end() {
                work += shard.crawl_page(cursor.page, now, &mut visit);
                cursor.page += 1;
            } else {
                *cursor = Cursor {
                    shard: cursor.shard + 1,
                    page: 0,
                };
            }
        }
        *cursor = Cursor::default();
        Done { work, more: false }
    }

    /// How many items there are of each size: the upper bound in bytes of each class of 32 bytes that has
    /// some, and their number. It looks at every item.
    pub fn sizes(&self, now: u32) -> BTreeMap<u32, u64> {
        let mut sizes = BTreeMap::new();
        let mut cursor = Cursor::default();
        let mut more = true;
        while more {
            let step = self.walk_step(&mut cursor, now, HOLD, |item| {
                let class = (item.size() as u32).next_multiple_of(SIZE_CLASS);
                *sizes.entry(class).or_default() += 1;
            });
            more = step.more;
        }
        sizes
    }

    /// Grows the tables ahead of need, at most about `budget` buckets.
    pub fn grow_step(&self, budget: u64) -> Done {
        let mut work = 0;
        for _ in 0..self.shards.len() {
            if work >= budget {
                return Done { work, more: true };
            }
            let turn = self.grow_turn.load(Relaxed) % self.shards.len();
            let mut shard = self.shards[turn].0.lock();
            let mut split = 0;
            while split < HOLD {
                match shard.split_one() {
                    Ok(true) => split += 1,
                    Ok(false) => break,
                    Err(_) => {
                        let now = shard.written;
                        shard.feed_table(now);
                        break;
                    }
                }
            }
            work += split;
            if split < HOLD {
                self.grow_turn.fetch_add(1, Relaxed);
            }
        }
        Done {
            work,
            more: work > 0,
        }
    }

    /// Gives pages of shards that have too many to shards that have too few, or back to the system after the limit was
    /// lowered. Moves or evicts about `budget` items.
    pub fn rebalance_step(&self, now: u32, budget: u64) -> Done {
        let Some(number) = self.donor(now) else {
            return Done::default();
        };
        let mut work = 0;
        while work < budget {
            let mut shard = self.shards[number].0.lock();
            let pages = shard.heap.page_count();
            if shard.heap.closing().is_none() && !shard.close_coldest(now) {
                return Done { work, more: false };
            }
            work += shard.empty_some(now, HOLD).max(1);
            if shard.heap.closing().is_none() {
                // Without eviction and without holes the page stays.
                let gone = shard.heap.page_count() < pages;
                shard.count.pages_moved += u64::from(gone);
                return Done { work, more: gone };
            }
        }
        Done { work, more: true }
    }

    /// The shard that should give a page: one that has begun to; while the limit is exceeded that with most
    /// pages; else, if all memory is in use, that whose items wait longest to be evicted, if that is much
    /// longer than elsewhere.
    fn donor(&self, now: u32) -> Option<usize> {
        let over = self.budget.used() > self.budget.limit();
        let full = self.budget.used() + PAGE_COST > self.budget.limit();
        let (mut closing, mut most) = (None, (0, 0));
        let (mut oldest, mut youngest) = ((0, 0), u32::MAX);
        for (number, shard) in self.shards.iter().enumerate() {
            let shard = shard.0.lock();
            if shard.heap.closing().is_some() {
                closing = Some(number);
            }
            let pages = shard.heap.page_count();
            most = most.max((pages, number));
            let age = shard.age(COLD, now);
            youngest = youngest.min(age);
            if pages > 2 {
                oldest = oldest.max((age, number));
            }
        }
        if closing.is_some() {
            return closing;
        }
        if over {
            return (most.0 > 0).then_some(most.1);
        }
        (full && oldest.0 > 2 * youngest.saturating_add(10)).then_some(oldest.1)
    }
}

impl Shard {
    /// Moves items of hot and warm on that are much older than the oldest of cold.
    fn juggle_old(&mut self, now: u32, budget: u64) -> u64 {
        let cold = self.age(COLD, now);
        let mut moved = 0;
        for (segment, most) in [(HOT, cold / 5), (WARM, cold.saturating_mul(2))] {
            while moved < budget && cold > 0 && self.age(segment, now) > most {
                self.pull(segment, now);
                moved += 1;
            }
        }
        moved
    }

    /// Seconds since the oldest item of a segment was used.
    fn age(&self, segment: usize, now: u32) -> u32 {
        match self.lru.lists[segment].tail {
            0 => 0,
            tail => now.saturating_sub(self.heap.header(tail).accessed()),
        }
    }

    /// Looks at all items that begin in a page: removes the dead, shows the others. Returns how many.
    fn crawl_page(&mut self, page: u32, now: u32, visit: &mut impl FnMut(&ItemView<'_>)) -> u64 {
        let (mut from, mut seen) = (0, 0);
        while let Some(block) = self.heap.used_from(page, from) {
            from = self.heap.end_of(block);
            if self.heap.is_piece(block) {
                continue;
            }
            seen += 1;
            if !self.is_dead(block, now) {
                visit(&ItemView::new(&self.heap, block));
                continue;
            }
            self.count.crawler_reclaimed += 1;
            self.count.expired_unfetched +=
                u64::from(self.heap.header(block).marks() & FETCHED == 0);
            match self.discard(block) {
                Some(hole) => from = self.heap.end_of(hole),
                None => break,
            }
        }
        self.count.crawler_items_checked += seen;
        seen
    }

    /// Adds the numbers of this shard.
    pub fn add_to(&self, sum: &mut StoreStats, now: u32) {
        let count = &self.count;
        for (segment, list) in self.lru.lists.iter().enumerate() {
            let of = &mut sum.segments[segment];
            of.items += list.items;
            of.bytes += list.bytes;
            of.hits += count.segments[segment].hits;
            of.age = of.age.max(self.age(segment, now));
        }
        sum.curr_items += self.lru.items();
        sum.bytes += self.lru.bytes();
        sum.hash_bytes += self.table.bytes();
        sum.hash_is_expanding |= self.table.is_growing();
        sum.pages += self.heap.page_count() as u64;
        sum.free_bytes += self.heap.free_bytes();
        sum.total_items += count.total_items;
        sum.evictions += count.evictions;
        sum.evicted_nonzero += count.evicted_nonzero;
        sum.evicted_unfetched += count.evicted_unfetched;
        sum.evicted_active += count.evicted_active;
        sum.evicted_time = sum.evicted_time.max(count.evicted_time);
        sum.reclaimed += count.reclaimed;
        sum.expired_unfetched += count.expired_unfetched;
        sum.crawler_reclaimed += count.crawler_reclaimed;
        sum.crawler_items_checked += count.crawler_items_checked;
        sum.outofmemory += count.outofmemory;
        sum.moves_to_cold += count.moves_to_cold;
        sum.moves_to_warm += count.moves_to_warm;
        sum.moves_within_lru += count.moves_within_lru;
        sum.direct_reclaims += count.direct_reclaims;
        sum.pages_moved += count.pages_moved;
        sum.items_moved += count.items_moved;
        sum.split_items += count.split_items;
    }
}
