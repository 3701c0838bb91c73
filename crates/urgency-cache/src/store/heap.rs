//! The memory of one shard: pages, cut into blocks.
//!
//! # Words
//!
//! - A **page** is 64 KiB from the `pool`. Its first 8 bytes count the units in use.
//! - A **unit** is 8 bytes. A **reference** is a page number (19 bits) and a unit in it (13 bits);
//!   0 refers to nothing, because no block starts at unit 0.
//! - A **block** is a run of units. It begins with a tag: its length in units, whether it is used,
//!   whether the block before it is free, and whether it continues an item ([`PIECE`]).
//! - A free block is in the list of its size class (links at bytes 4 and 8), and repeats its length in
//!   its last 4 bytes, so that the block after it finds its beginning.
//!
//! # Protocol
//!
//! Two neighbouring blocks are never both free: [`Heap::free`] merges. So a page whose items are all
//! gone is one block again, and goes back to the pool (one such page is kept for the next need).
//! [`Heap::alloc`] is good-fit: the first block of the first class whose blocks all fit, else one of
//! the first few of the class that may fit; the rest of it is a free block again. Both are O(1).
//!
//! A page that is to be emptied is *closed* ([`Heap::close`]): its free blocks are in no list, so
//! nothing new comes into it; when the last block is freed the page goes.
//!
//! # Why not slabs
//!
//! memcached cuts pages into chunks of one of about 40 sizes. That wastes up to a quarter of an item, and
//! memory that one size has is lost to the others until a page is moved. With shards, each would need
//! pages of each size. Here any hole serves any item, and because an item may be put into several
//! pieces (`place.rs`), every hole of 32 bytes and more is of use: there is no external fragmentation
//! that could keep an item out.

use std::sync::Arc;

use super::budget::Budget;
use super::pool::Page;

/// Where a block is; 0 is nowhere.
pub(crate) type Ref = u32;

/// Bytes of a page.
pub(crate) const PAGE: usize = 1 << 16;
/// Bytes of a unit.
pub(crate) const UNIT: usize = 8;
/// Units of the largest block: a page but for its first unit.
pub(crate) const LARGEST: u32 = (PAGE / UNIT) as u32 - 1;
/// What a page costs: itself, what the system's allocator adds, its places in the tables of a shard and of the pool.
pub(crate) const PAGE_COST: u64 = PAGE as u64 + 64 + 40;

const SIZE: u32 = (1 << 13) - 1;
const USED: u32 = 1 << 16;
const PREV_FREE: u32 = 1 << 17;
/// Tag bit of a block that continues an item.
pub(crate) const PIECE: u32 = 1 << 18;

const UNIT_BITS: u32 = 13;
const CLASSES: usize = 176;
/// Blocks looked at in a class whose blocks need not all fit.
const LOOKS: usize = 4;

/// The pages of one shard.
pub(crate) struct Heap {
    pages: Vec<Option<Box<Page>>>,
    vacant: Vec<u32>,
    heads: [Ref; CLASSES],
    map: [u64; 3],
    free_units: u64,
    empty: usize,
    closing: Option<u32>,
    grant: Option<u64>,
    budget: Arc<Budget>,
}

fn class(units: u32) -> usize {
    if units < 64 {
        units as usize
    } else {
        let log = units.ilog2();
        64 + ((log - 6) as usize) * 16 + ((units >> (log - 4)) & 15) as usize
    }
}

/// The first class whose blocks all have `units` or more.
fn class_up(units: u32) -> usize {
    if units < 64 {
        units as usize
    } else {
        class(units + (1 << (units.ilog2() - 4)) - 1)
    }
}

fn page_of(r: Ref) -> u32 {
    r >> UNIT_BITS
}

fn first_of(page: u32) -> Ref {
    (page << UNIT_BITS) | 1
}

fn unit_of(r: Ref) -> u32 {
    r & SIZE
}

impl Heap {
    pub fn new(budget: Arc<Budget>) -> Heap {
        Heap {
            pages: Vec::new(),
            vacant: Vec::new(),
            heads: [0; CLASSES],
            map: [0; 3],
            free_units: 0,
            empty: 0,
            closing: None,
            grant: None,
            budget,
        }
    }

    #[inline]
    fn page(&self, r: Ref) -> &[u8; PAGE] {
        &self.pages[page_of(r) as usize]
            .as_ref()
            .expect("a reference is into a page that is there")
            .0
    }

    #[inline]
    fn page_mut(&mut self, r: Ref) -> &mut [u8; PAGE] {
        &mut self.pages[page_of(r) as usize]
            .as_mut()
            .expect("a reference is into a page that is there")
            .0
    }

    /// The 32-bit word at byte `at` of a block.
    #[inline]
    pub fn word(&self, r: Ref, at: usize) -> u32 {
        let from = unit_of(r) as usize * UNIT + at;
        let bytes = &self.page(r)[from..from + 4];
        u32::from_ne_bytes(bytes.try_into().expect("four bytes"))
    }

    /// Sets the 32-bit word at byte `at` of a block.
    #[inline]
    pub fn set_word(&mut self, r: Ref, at: usize, value: u32) {
        let from = unit_of(r) as usize * UNIT + at;
        self.page_mut(r)[from..from + 4].copy_from_slice(&value.to_ne_bytes());
    }

    /// Units of a block.
    #[inline]
    pub fn units(&self, r: Ref) -> u32 {
        self.word(r, 0) & SIZE
    }

    /// Whether the used block continues an item.
    pub fn is_piece(&self, r: Ref) -> bool {
        self.word(r, 0) & PIECE != 0
    }

    /// Says that the used block continues an item.
    pub fn set_piece(&mut self, r: Ref) {
        self.set_word(r, 0, self.word(r, 0) | PIECE);
    }

    /// All bytes of a block, its tag included.
    #[inline]
    pub fn block(&self, r: Ref) -> &[u8] {
        let from = unit_of(r) as usize * UNIT;
        let page = self.page(r);
        let tag = u32::from_ne_bytes(page[from..from + 4].try_into().expect("four bytes"));
        &page[from..from + (tag & SIZE) as usize * UNIT]
    }

    /// All bytes of a block, its tag included.
    #[inline]
    pub fn block_mut(&mut self, r: Ref) -> &mut [u8] {
        let from = unit_of(r) as usize * UNIT;
        let page = self.page_mut(r);
        let tag = u32::from_ne_bytes(page[from..from + 4].try_into().expect("four bytes"));
        &mut page[from..from + (tag & SIZE) as usize * UNIT]
    }

    /// Copies the bytes of a block but for its tag to another of at least that length.
    pub fn copy_block(&mut self, from: Ref, to: Ref) {
        let len = self.units(from) as usize * UNIT - 4;
        let (a, b) = (
            unit_of(from) as usize * UNIT + 4,
            unit_of(to) as usize * UNIT + 4,
        );
        if page_of(from) == page_of(to) {
            self.page_mut(from).copy_within(a..a + len, b);
        } else {
            let places = [page_of(from) as usize, page_of(to) as usize];
            let [source, target] = self
                .pages
                .get_disjoint_mut(places)
                .expect("two pages that are there");
            let source = source.as_ref().expect("a page that is there");
            let target = target.as_mut().expect("a page that is there");
            target.0[b..b + len].copy_from_slice(&source.0[a..a + len]);
        }
    }

    fn set_footer(&mut self, r: Ref, units: u32) {
        self.set_word(r, units as usize * UNIT - 4, units);
    }

    fn next(&self, r: Ref) -> Option<Ref> {
        let unit = unit_of(r) + self.units(r);
        (unit <= LARGEST).then_some((page_of(r) << UNIT_BITS) | unit)
    }

    fn list(&mut self, r: Ref, units: u32) {
        let c = class(units);
        let head = self.heads[c];
        self.set_word(r, 4, 0);
        self.set_word(r, 8, head);
        if head != 0 {
            self.set_word(head, 4, r);
        }
        self.heads[c] = r;
        self.map[c / 64] |= 1 << (c % 64);
        self.free_units += u64::from(units);
    }

    fn unlist(&mut self, r: Ref, units: u32) {
        let (prev, next) = (self.word(r, 4), self.word(r, 8));
        if next != 0 {
            self.set_word(next, 4, prev);
        }
        if prev != 0 {
            self.set_word(prev, 8, next);
        } else {
            let c = class(units);
            self.heads[c] = next;
            if next == 0 {
                self.map[c / 64] &= !(1 << (c % 64));
            }
        }
        self.free_units -= u64::from(units);
    }

    fn first_class(&self, from: usize) -> Option<usize> {
        let mut bits = self.map.get(from / 64)? & (!0 << (from % 64));
        let mut word = from / 64;
        while bits == 0 {
            word += 1;
            bits = *self.map.get(word)?;
        }
        Some(word * 64 + bits.trailing_zeros() as usize)
    }

    fn last_class(&self) -> Option<usize> {
        (0..self.map.len())
            .rev()
            .find(|word| self.map[*word] != 0)
            .map(|word| word * 64 + 63 - self.map[word].leading_zeros() as usize)
    }

    fn find(&self, units: u32) -> Option<Ref> {
        if let Some(c) = self.first_class(class_up(units)) {
            return Some(self.heads[c]);
        }
        let mut r = self.heads[class(units)];
        for _ in 0..LOOKS {
            if r == 0 {
                return None;
            }
            if self.units(r) >= units {
                return Some(r);
            }
            r = self.word(r, 8);
        }
        None
    }

    /// Makes a used block of a free one; what is beyond `units` is free again if it is worth a block.
    fn carve(&mut self, r: Ref, units: u32) -> Ref {
        let tag = self.word(r, 0);
        let all = tag & SIZE;
        self.unlist(r, all);
        self.empty -= usize::from(all == LARGEST);
        let rest = all - units;
        let taken = if rest >= 2 {
            let after = r + units;
            self.set_word(after, 0, rest);
            self.set_footer(after, rest);
            self.list(after, rest);
            units
        } else {
            if let Some(next) = self.next(r) {
                self.set_word(next, 0, self.word(next, 0) & !PREV_FREE);
            }
            all
        };
        self.set_word(r, 0, taken | USED);
        self.add_live(page_of(r), taken as i32);
        r
    }

    fn add_live(&mut self, page: u32, units: i32) {
        let count = page << UNIT_BITS;
        self.set_word(count, 0, self.word(count, 0).wrapping_add_signed(units));
    }

    /// A used block of `units` to `units + 1`, if a hole of that length is there.
    pub fn alloc(&mut self, units: u32) -> Option<Ref> {
        debug_assert!((2..=LARGEST).contains(&units));
        self.find(units).map(|r| self.carve(r, units))
    }

    /// A used block of `most` units, or else a long one (not always the longest) of at least `least`.
    pub fn alloc_between(&mut self, least: u32, most: u32) -> Option<Ref> {
        if let Some(r) = self.alloc(most) {
            return Some(r);
        }
        let r = self.heads[self.last_class()?];
        let units = self.units(r);
        if units >= least {
            return Some(self.carve(r, units.min(most)));
        }
        self.alloc(least)
    }

    /// Frees a used block; returns the free block that it is in now, or `None` if its page went.
    pub fn free(&mut self, r: Ref) -> Option<Ref> {
        let tag = self.word(r, 0);
        debug_assert!(tag & USED != 0, "a block is freed once");
        let page = page_of(r);
        let closing = self.closing == Some(page);
        let (mut start, mut units) = (r, tag & SIZE);
        self.add_live(page, -(units as i32));
        if let Some(next) = self.next(r) {
            let tag = self.word(next, 0);
            if tag & USED == 0 {
                if !closing {
                    self.unlist(next, tag & SIZE);
                }
                units += tag & SIZE;
            } else {
                self.set_word(next, 0, tag | PREV_FREE);
            }
        }
        if tag & PREV_FREE != 0 {
            let before = u32::from_ne_bytes({
                let at = unit_of(r) as usize * UNIT - 4;
                self.page(r)[at..at + 4].try_into().expect("four bytes")
            });
            start -= before;
            if !closing {
                self.unlist(start, before);
            }
            units += before;
        }
        self.set_word(start, 0, units);
        self.set_footer(start, units);
        if units == LARGEST && (closing || self.empty > 0) {
            self.release(page);
            return None;
        }
        if !closing {
            self.list(start, units);
            self.empty += usize::from(units == LARGEST);
        }
        Some(start)
    }

    fn release(&mut self, page: u32) {
        if let Some(memory) = self.pages[page as usize].take() {
            self.budget.pool.put(memory);
        }
        self.vacant.push(page);
        if self.closing == Some(page) {
            self.closing = None;
            if let Some(granted) = &mut self.grant
                && *granted == 0
            {
                *granted = PAGE_COST;
                return;
            }
        }
        self.budget.give(PAGE_COST);
    }

    /// While `keep`, the cost of a closed page is not given back to the budget, but kept for
    /// [`granted`](Self::granted). Only one page's cost is kept at a time: the cost of further pages goes to the budget
    /// until `granted` is called.
    pub fn keep_grants(&mut self, keep: bool) {
        match (keep, self.grant) {
            (true, None) => self.grant = Some(0),
            (false, Some(granted)) => {
                self.budget.give(granted);
                self.grant = None;
            }
            _ => {}
        }
    }

    /// Takes the bytes of the budget that a closed page left since [`keep_grants`](Self::keep_grants) was turned on.
    pub fn granted(&mut self) -> u64 {
        self.grant.as_mut().map_or(0, std::mem::take)
    }

    /// Takes one more page from the pool, if the limit allows it.
    pub fn add_page(&mut self) -> bool {
        let page = match self.vacant.last() {
            Some(page) => *page,
            None => self.pages.len() as u32,
        };
        if page >= 1 << (32 - UNIT_BITS) || !self.budget.take(PAGE_COST) {
            return false;
        }
        let memory = self.budget.pool.take();
        if self.vacant.pop().is_some() {
            self.pages[page as usize] = Some(memory);
        } else {
            self.pages.push(Some(memory));
        }
        let r = first_of(page);
        self.set_word(page << UNIT_BITS, 0, 0);
        self.set_word(r, 0, LARGEST);
        self.set_footer(r, LARGEST);
        self.list(r, LARGEST);
        self.empty += 1;
        true
    }

    /// Bytes free in blocks that can be had.
    pub fn free_bytes(&self) -> u64 {
        self.free_units * UNIT as u64
    }

    /// Pages here.
    pub fn page_count(&self) -> usize {
        self.pages.len() - self.vacant.len()
    }

    /// Page numbers that may be in use: all below this.
    pub fn page_end(&self) -> u32 {
        self.pages.len() as u32
    }
}

impl Drop for Heap {
    fn drop(&mut self) {
        self.keep_grants(false);
        self.budget.give(PAGE_COST * self.page_count() as u64);
    }
}

mod walk;

#[cfg(test)]
mod check;
