//! Room for an item: holes, pages, eviction, and several pieces if it must be.
//!
//! # Protocol
//!
//! 1. A hole that fits. 2. A page from the system. 3. Evict from the tail of cold, up to [`TRIES`] times, and
//!    look again after each. 4. Take what holes there are, and lay the item into several blocks.
//!
//! Step 4 is what makes memory of any shape usable; steps 1 to 3 keep it rare. The first block must hold the
//! header and the key (294 bytes at most). If evicting from the tail does not make a hole that long, the
//! neighbours in memory of an evicted item go as well ([`Shard::dig`]): so a write after millions of
//! tiny items evicts a few of them, never a large share.
//!
//! A large item evicts only as much of its own shard as is its part: the store gathers pages
//! from all shards first (`Store::gather`).

use super::header::{ACTIVE, FETCHED, HEADER, HEADER_PIECE, HEADER_SPLIT};
use super::heap::{LARGEST, Ref, UNIT};
use super::shard::{COLD, HOT, Key, Shard, TEMP, WARM};
use super::table::NoRoom;

/// Evictions for one item in the hope of a hole that holds it whole.
const TRIES: u32 = 4;
/// Evictions in the hope of a hole for the first block, before its neighbours are evicted.
const DIG_AFTER: u32 = 8;
/// Active items at the tail that are spared in a row.
const SPARED: u32 = 5;
/// Units of a piece that is worth having if there is any choice.
const PIECE_UNITS: u32 = 64;
/// Units of the smallest piece.
const PIECE_LEAST: u32 = 4;

fn units(bytes: usize) -> u32 {
    bytes.div_ceil(UNIT).min(u32::MAX as usize) as u32
}

impl Shard {
    /// Takes blocks for an item. The second value says whether there are several.
    pub(super) fn place(
        &mut self,
        key: Key<'_>,
        len: usize,
        now: u32,
    ) -> Result<(Ref, bool), NoRoom> {
        let whole = units(HEADER + key.bytes.len() + len);
        if whole <= LARGEST {
            for tries in 0.. {
                if let Some(r) = self.heap.alloc(whole) {
                    return Ok((r, false));
                }
                if self.heap.add_page() {
                    continue;
                }
                if tries >= TRIES || !self.evict_one(now) {
                    break;
                }
            }
        }
        let first = self.place_pieces(key.bytes.len(), len, now)?;
        Ok((first, true))
    }

    fn place_pieces(&mut self, key: usize, len: usize, now: u32) -> Result<Ref, NoRoom> {
        let most = units(HEADER_SPLIT + key + len).min(LARGEST);
        let least = units(HEADER_SPLIT + key);
        let first = self.hole(least.min(most), most, now).ok_or(NoRoom::Heap)?;
        self.building[0] = first;
        self.heap.set_meta(first, &super::header::BUILDING, 0, 0);
        self.heap.set_more(first, 0);
        let mut left = len.saturating_sub(self.heap.block(first).len() - HEADER_SPLIT - key);
        let mut last = first;
        while left > 0 {
            let most = units(HEADER_PIECE + left).clamp(PIECE_LEAST, LARGEST);
            let least = (most / 16).clamp(PIECE_LEAST, PIECE_UNITS);
            let hole = self
                .hole(least, most, now)
                .or_else(|| self.heap.alloc_between(PIECE_LEAST, most));
            let Some(piece) = hole else {
                self.free_blocks(first);
                return Err(NoRoom::Heap);
            };
            self.heap.set_piece(piece);
            self.heap.set_piece_first(piece, first);
            self.heap.set_piece_next(piece, 0);
            if last == first {
                self.heap.set_more(first, piece);
            } else {
                self.heap.set_piece_next(last, piece);
            }
            last = piece;
            left = left.saturating_sub(self.heap.block(piece).len() - HEADER_PIECE);
        }
        Ok(first)
    }

    /// A block of at least `least` and at most about `most` units.
    fn hole(&mut self, least: u32, most: u32, now: u32) -> Option<Ref> {
        for tries in 0.. {
            if let Some(r) = self.heap.alloc_between(least, most) {
                return Some(r);
            }
            if self.heap.add_page() {
                continue;
            }
            if tries >= DIG_AFTER && self.dig(least, now) {
                continue;
            }
            if !self.evict_one(now) {
                break;
            }
        }
        None
    }

    /// Evicts the item at the tail and then its neighbours in memory, until there is a hole of `least` units.
    fn dig(&mut self, least: u32, now: u32) -> bool {
        if !self.rules.evict {
            return false;
        }
        let Some(victim) = self.victim(now) else {
            return false;
        };
        self.count.evictions += 1;
        let Some(mut hole) = self.discard(victim) else {
            return true;
        };
        let mut from_start = false;
        while self.heap.units(hole) < least {
            let page = super::heap::Heap::page_number(hole);
            let Some(block) = self.heap.used_after(hole).or_else(|| {
                from_start = !from_start;
                self.heap.used_from(page, 0).filter(|_| from_start)
            }) else {
                return false;
            };
            let item = if self.heap.is_piece(block) {
                self.heap.piece_first(block)
            } else {
                block
            };
            if self.building.contains(&item) {
                return false;
            }
            self.count.evictions += 1;
            match self.discard(item) {
                None => return true,
                Some(at) if item == block => hole = at,
                Some(_) => match self.heap.hole_at(block) {
                    Some(at) => hole = at,
                    None => return true,
                },
            }
        }
        true
    }

    /// Removes one item from the tail of a segment: a dead one if the tail has one, else the one to
    /// be evicted. `false` if there is none, or eviction is not allowed.
    pub(super) fn evict_one(&mut self, now: u32) -> bool {
        if !self.rules.evict {
            return self.reclaim_one(now);
        }
        let victim = self.victim(now);
        victim.map(|r| self.evict(r, now)).is_some()
    }

    /// The item to be evicted next. A few active ones at the tail get their second chance on the way, whichever
    /// segment it is: the upkeep may not have been there yet.
    pub(super) fn victim(&mut self, now: u32) -> Option<Ref> {
        for _ in 0..SPARED {
            let tail = self.oldest()?;
            let header = self.heap.header(tail);
            let (active, segment) = (header.marks() & ACTIVE != 0, header.segment());
            if !active || segment == TEMP || self.is_dead(tail, now) {
                return Some(tail);
            }
            self.keep_warm(tail, segment);
        }
        self.oldest()
    }

    /// The tail of the first segment that has one, in the order in which they are evicted from.
    fn oldest(&self) -> Option<Ref> {
        let tails = [COLD, HOT, WARM, TEMP].map(|segment| self.lru.lists[segment].tail);
        tails.into_iter().find(|r| *r != 0)
    }

    fn reclaim_one(&mut self, now: u32) -> bool {
        for segment in [COLD, HOT, WARM, TEMP] {
            let mut r = self.lru.lists[segment].tail;
            for _ in 0..SPARED {
                if r == 0 {
                    break;
                }
                if self.is_dead(r, now) {
                    self.evict(r, now);
                    return true;
                }
                r = self.heap.lru_prev(r);
            }
        }
        false
    }

    /// Removes an item to make room, and counts it: as reclaimed if it is dead at `now`, else as evicted.
    pub(super) fn evict(&mut self, r: Ref, now: u32) {
        if self.is_dead(r, now) {
            self.count.reclaimed += 1;
            self.count_expired(r);
        } else {
            let header = self.heap.header(r);
            self.count.evictions += 1;
            self.count.evicted_nonzero += u64::from(header.expires() != 0);
            self.count.evicted_unfetched += u64::from(header.marks() & FETCHED == 0);
            self.count.evicted_active += u64::from(header.marks() & ACTIVE != 0);
            self.count.evicted_time = now.saturating_sub(header.accessed());
        }
        self.count.direct_reclaims += 1;
        self.discard(r);
    }

    /// Moves an item to the head of a segment; it is not active any more.
    pub(super) fn relink(&mut self, r: Ref, segment: usize) {
        self.lru.unlink(&mut self.heap, r);
        self.heap.set_marks(r, 0, ACTIVE);
        self.lru.link(&mut self.heap, segment, r);
    }

    /// Moves up to `budget` items from the tails of hot and warm whose segment holds more than its
    /// share. Returns how many.
    pub(super) fn juggle(&mut self, now: u32, budget: u64) -> u64 {
        let all = self.lru.bytes();
        let hot = all * self.rules.hot_percent / 100;
        let warm = all * self.rules.warm_percent / 100;
        let mut moved = 0;
        while moved < budget {
            if self.lru.lists[HOT].bytes > hot {
                self.pull(HOT, now);
            } else if self.lru.lists[WARM].bytes > warm {
                self.pull(WARM, now);
            } else {
                break;
            }
            moved += 1;
        }
        moved
    }

    /// Moves the item at the tail of hot or warm on, or removes it if it is dead.
    pub(super) fn pull(&mut self, segment: usize, now: u32) {
        let tail = self.lru.lists[segment].tail;
        if tail == 0 {
            return;
        }
        if self.is_dead(tail, now) {
            self.count.reclaimed += 1;
            self.count_expired(tail);
            self.discard(tail);
        } else if self.heap.header(tail).marks() & ACTIVE == 0 {
            self.relink(tail, COLD);
            self.count.moves_to_cold += 1;
        } else {
            self.keep_warm(tail, segment);
        }
    }

    /// Moves an active item of a segment to the head of warm.
    fn keep_warm(&mut self, r: Ref, segment: usize) {
        self.relink(r, WARM);
        let same = segment == WARM;
        self.count.moves_within_lru += u64::from(same);
        self.count.moves_to_warm += u64::from(!same);
    }
}
