//! One shard: a heap, a table and an LRU under one lock, and what keeps them consistent.
//!
//! # States of an item
//!
//! - **linked**: in the table and in one segment, its blocks written. Code outside this module sees no item in another
//!   state.
//! - **building**: its blocks are taken, and it is neither in the table nor in a segment; between [`Shard::place`] and
//!   the end of [`Shard::put`].
//! - **pinned**: in the table but in no segment: the old item, while its successor is being built from its value.
//!   Eviction goes by the segments, so it cannot meet the item.
//! - **dead**: linked, but expired or of an earlier flush generation. [`Shard::find`] does not return it. A look-up,
//!   the tail of a segment or the crawler removes it, whichever meets it first.
//!
//! # Flush
//!
//! Each item carries the generation of its shard at the time when it was stored. A flush adds one. A delayed flush adds
//! one at the first operation at or after its time; until that operation nothing can have been stored "after" the
//! flush. The generation has 16 bits: when it wraps, everything is removed at once, so that no old item comes back.

use std::hash::BuildHasher;
use std::sync::Arc;

use super::budget::Budget;
use super::header::{ACTIVE, FETCHED, Meta, SPLIT, footprint};
use super::heap::{Heap, Ref};
use super::lru::Lru;
use super::table::{NoRoom, Table};
use super::value::Pen;
use super::{Limits, Segment, StoreStats};

pub(crate) const HOT: usize = Segment::Hot as usize;
pub(crate) const WARM: usize = Segment::Warm as usize;
pub(crate) const COLD: usize = Segment::Cold as usize;
pub(crate) const TEMP: usize = Segment::Temp as usize;

/// What decides about items in a shard; the same in each.
#[derive(Clone)]
pub(crate) struct Rules {
    pub evict: bool,
    pub hot_percent: u64,
    pub warm_percent: u64,
    pub temporary_ttl: Option<u32>,
    pub hasher: foldhash::quality::RandomState,
}

impl Rules {
    pub fn new(limits: &Limits) -> Rules {
        Rules {
            evict: limits.evict,
            hot_percent: u64::from(limits.hot_percent),
            warm_percent: u64::from(limits.warm_percent),
            temporary_ttl: limits.temporary_ttl,
            hasher: foldhash::quality::RandomState::default(),
        }
    }
}

/// A key with its hash.
#[derive(Clone, Copy)]
pub(crate) struct Key<'a> {
    pub bytes: &'a [u8],
    pub hash: u64,
}

/// A value to be written: parts, perhaps around the value that is there.
#[derive(Clone, Copy, Default)]
pub(crate) struct Content<'a> {
    pub before: &'a [&'a [u8]],
    pub keep: bool,
    pub after: &'a [&'a [u8]],
}

/// One shard.
pub(crate) struct Shard {
    pub heap: Heap,
    pub table: Table,
    pub lru: Lru,
    pub count: StoreStats,
    pub rules: Rules,
    pub(super) building: [Ref; 2],
    pub(super) starved: bool,
    /// When the last write was.
    pub(super) written: u32,
    generation: u16,
    flush_at: Option<u32>,
}

impl Shard {
    pub fn new(rules: Rules, budget: &Arc<Budget>) -> Shard {
        Shard {
            heap: Heap::new(budget.clone()),
            table: Table::new(budget.clone()),
            lru: Lru::default(),
            count: StoreStats::default(),
            rules,
            building: [0; 2],
            starved: false,
            written: 0,
            generation: 0,
            flush_at: None,
        }
    }

    /// A flush at `at`, or now if that is over.
    pub fn flush(&mut self, at: u32, now: u32) {
        self.tick(now);
        self.flush_at = Some(at);
        self.tick(now);
    }

    /// Makes a delayed flush happen whose time has come.
    #[inline]
    pub fn tick(&mut self, now: u32) {
        if self.flush_at.is_some_and(|at| at <= now) {
            self.flush_now();
        }
    }

    #[cold]
    fn flush_now(&mut self) {
        self.flush_at = None;
        self.generation = self.generation.wrapping_add(1);
        if self.generation == 0 {
            for segment in [HOT, WARM, COLD, TEMP] {
                while self.lru.lists[segment].tail != 0 {
                    self.discard(self.lru.lists[segment].tail);
                }
            }
        }
    }

    #[inline]
    pub fn is_dead(&self, r: Ref, now: u32) -> bool {
        let header = self.heap.header(r);
        let expires = header.expires();
        (expires != 0 && expires <= now) || header.generation() != self.generation
    }

    pub fn hash(&self, key: &[u8]) -> u64 {
        self.rules.hasher.hash_one(key)
    }

    /// The live item of a key.
    #[inline]
    pub fn find(&mut self, key: Key<'_>, now: u32) -> Option<Ref> {
        self.tick(now);
        let r = self
            .table
            .find(key.hash, |r| self.heap.header(r).key() == key.bytes)?;
        if self.is_dead(r, now) {
            self.count_expired(r);
            self.discard(r);
            return None;
        }
        Some(r)
    }

    /// Counts a read of an item.
    #[inline]
    pub fn access(&mut self, r: Ref, now: u32) {
        let header = self.heap.header(r);
        let marks = header.marks();
        self.count.segments[header.segment()].hits += 1;
        if header.accessed() != now {
            self.heap.set_accessed(r, now);
        }
        if marks & (FETCHED | ACTIVE) != FETCHED | ACTIVE {
            self.heap.set_marks(
                r,
                if marks & FETCHED == 0 {
                    FETCHED
                } else {
                    ACTIVE
                },
                0,
            );
        }
    }

    pub(super) fn count_expired(&mut self, r: Ref) {
        if self.heap.header(r).marks() & FETCHED == 0 {
            self.count.expired_unfetched += 1;
        }
    }

    /// Removes a linked item. Returns the hole in which its first block was, unless that page went.
    pub fn discard(&mut self, r: Ref) -> Option<Ref> {
        let hash = self.hash(self.heap.header(r).key());
        self.table.remove(hash, r);
        self.lru.unlink(&mut self.heap, r);
        self.free_blocks(r)
    }

    /// Frees the blocks of an item that is not linked, the first one last.
    pub(super) fn free_blocks(&mut self, r: Ref) -> Option<Ref> {
        let mut piece = self.heap.header(r).more();
        while piece != 0 {
            let next = self.heap.piece_next(piece);
            self.heap.free(piece);
            piece = next;
        }
        self.heap.free(r)
    }

    fn segment_for(&self, meta: &Meta, now: u32) -> usize {
        match self.rules.temporary_ttl {
            Some(most) if meta.expires != 0 && meta.expires.saturating_sub(now) <= most => TEMP,
            _ => HOT,
        }
    }

    /// Stores an item for a key whose live item is `old`. If `stay`, and the new value takes as much
    /// room as the old one, the item keeps its place in the LRU.
    ///
    /// Without a value to keep, the old item is removed first, so that its memory is of use, unless nothing
    /// may be evicted.
    pub fn put(
        &mut self,
        key: Key<'_>,
        old: Option<Ref>,
        mut meta: Meta,
        content: Content<'_>,
        stay: bool,
        now: u32,
    ) -> Result<Ref, NoRoom> {
        let parts = content.before.iter().chain(content.after);
        let mut len = parts.map(|part| part.len()).sum::<usize>();
        meta.generation = self.generation;
        let segment = self.segment_for(&meta, now);
        let mut old = old;
        let mut kept_segment = 0;
        if let Some(r) = old {
            let header = self.heap.header(r);
            let was = header.footprint();
            let split = header.marks() & SPLIT != 0;
            kept_segment = header.segment();
            if content.keep {
                len += header.value_len();
            } else if !split && was == footprint(key.bytes.len(), len as u64) {
                if stay {
                    meta.marks = header.marks();
                } else {
                    self.lru.unlink(&mut self.heap, r);
                }
                self.write(r, key, &meta, len, content, r);
                if !stay {
                    self.lru.link(&mut self.heap, segment, r);
                    self.count.total_items += 1;
                }
                return Ok(r);
            }
            self.lru.unlink(&mut self.heap, r);
            if !content.keep && self.rules.evict {
                self.table.remove(key.hash, r);
                self.free_blocks(r);
                old = None;
            }
        }
        self.building[1] = old.unwrap_or(0);
        let placed = self.place(key, len, now);
        self.building = [0; 2];
        let linked = placed.and_then(|(r, split)| {
            if split {
                meta.marks |= SPLIT;
                self.count.split_items += 1;
            } else {
                meta.marks &= !SPLIT;
            }
            self.write(r, key, &meta, len, content, old.unwrap_or(0));
            match old {
                Some(old) => {
                    self.table.replace(key.hash, old, r);
                    self.free_blocks(old);
                }
                None => self.enter(key, r)?,
            }
            Ok(r)
        });
        match (linked, old) {
            (Ok(r), _) => {
                self.lru.link(&mut self.heap, segment, r);
                self.count.total_items += 1;
                Ok(r)
            }
            (Err(no_room), old) => {
                if let Some(old) = old {
                    self.lru.link(&mut self.heap, kept_segment, old);
                }
                self.starved |= matches!(no_room, NoRoom::Table);
                Err(no_room)
            }
        }
    }

    fn write(
        &mut self,
        r: Ref,
        key: Key<'_>,
        meta: &Meta,
        len: usize,
        content: Content<'_>,
        old: Ref,
    ) {
        self.heap.set_meta(r, meta, key.bytes.len(), len);
        self.heap.set_key(r, key.bytes);
        let mut pen = Pen::new(&self.heap, r);
        for part in content.before {
            pen.write(&mut self.heap, part);
        }
        if content.keep {
            pen.write_value(&mut self.heap, old);
        }
        for part in content.after {
            pen.write(&mut self.heap, part);
        }
    }

    /// Enters a built item into the table; makes room in its bucket if there is no memory for another.
    fn enter(&mut self, key: Key<'_>, r: Ref) -> Result<(), NoRoom> {
        while let Err(no_room) = self.table.insert(key.hash, r) {
            self.starved = true;
            let victim = self
                .table
                .neighbours(key.hash)
                .min_by_key(|r| self.heap.header(*r).accessed());
            match victim {
                Some(victim) if self.rules.evict => self.evict(victim, 0),
                _ => {
                    self.free_blocks(r);
                    return Err(no_room);
                }
            }
        }
        Ok(())
    }

    /// The share of the background work that a write does itself: O(1).
    #[inline]
    pub fn upkeep(&mut self, now: u32) {
        self.written = now;
        if self.table.is_growing() && self.split_one().is_err() {
            self.starved = true;
        }
        if self.starved {
            self.feed_table(now);
        }
        self.juggle(now, 2);
    }

    /// Splits one bucket of the table if it is growing. `false` if it is not.
    pub fn split_one(&mut self) -> Result<bool, NoRoom> {
        let (heap, hasher) = (&self.heap, &self.rules.hasher);
        self.table
            .split_one(|r| hasher.hash_one(heap.header(r).key()))
    }
}
