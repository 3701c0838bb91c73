//! Emptying a page, for another shard, for the table, or for a limit that was lowered.
//!
//! The page is closed (`heap.rs`), then its blocks are taken one by one from its beginning. A live item moves into a
//! hole elsewhere in the shard. If there is no hole, items that are due are evicted until there is one; if that does
//! not help soon, the item itself is evicted. So the oldest items go, not the items that lay in the page. Between two
//! steps the shard is as usable as ever. The state is the page's number alone, because the emptied part is one free
//! block at the page's beginning.
//!
//! The chosen page is the one that holds the item that would be evicted next.
//!
//! # A table without memory
//!
//! When the limit is reached and the items become smaller, the table must grow at the expense of items.
//! A shard whose table was refused memory is *starved*: each write empties a few blocks, and the page that becomes
//! empty is handed to the table, before any item can take it.

use super::header::SPLIT;
use super::heap::{Heap, Ref};
use super::shard::Shard;

/// Blocks that a write into a starved shard empties.
const FEED: u64 = 8;
/// Evictions in the hope of a hole for an item that must move.
const TRIES: u32 = 3;

impl Shard {
    /// Closes the page of the item that would be evicted next. `false` if there is no page.
    pub fn close_coldest(&mut self, now: u32) -> bool {
        let page = self.victim(now).map(Heap::page_number).or_else(|| {
            (0..self.heap.page_end()).find(|page| self.heap.live_units(*page).is_some())
        });
        if let Some(page) = page {
            self.heap.close(page);
        }
        page.is_some()
    }

    /// Empties up to `budget` blocks of the closing page. Returns how many.
    pub fn empty_some(&mut self, now: u32, budget: u64) -> u64 {
        let Some(page) = self.heap.closing() else {
            return 0;
        };
        let (mut done, mut tries) = (0, 0);
        while done < budget {
            let Some(block) = self.heap.used_from(page, 0) else {
                break;
            };
            done += 1;
            let piece = self.heap.is_piece(block);
            let item = if piece {
                self.heap.piece_first(block)
            } else {
                block
            };
            if self.is_dead(item, now) {
                self.evict(item, now);
            } else if let Some(to) = self.new_block(block, item) {
                if piece {
                    self.move_piece(item, block, to);
                } else {
                    self.move_first(block, to);
                }
                self.count.items_moved += 1;
                tries = 0;
            } else if self.rules.evict {
                // Room for it first, in the order of the LRU; what goes may lie in this page, too.
                let before = self.heap.live_units(page);
                if tries == TRIES || !self.evict_one(now) {
                    self.evict(item, now);
                    tries = 0;
                } else if self.heap.live_units(page) == before {
                    tries += 1;
                }
            } else {
                self.heap.reopen();
                break;
            }
        }
        done
    }

    /// A block for the content of another; of the same length if the item has several, which are full.
    fn new_block(&mut self, block: Ref, item: Ref) -> Option<Ref> {
        let units = self.heap.units(block);
        let to = self.heap.alloc(units)?;
        if self.heap.units(to) != units && self.heap.header(item).marks() & SPLIT != 0 {
            self.heap.free(to);
            return None;
        }
        Some(to)
    }

    fn move_first(&mut self, from: Ref, to: Ref) {
        self.heap.copy_block(from, to);
        let hash = self.hash(self.heap.header(to).key());
        self.table.replace(hash, from, to);
        self.lru.moved(&mut self.heap, to);
        let mut piece = self.heap.header(to).more();
        while piece != 0 {
            self.heap.set_piece_first(piece, to);
            piece = self.heap.piece_next(piece);
        }
        self.heap.free(from);
    }

    fn move_piece(&mut self, item: Ref, from: Ref, to: Ref) {
        self.heap.copy_block(from, to);
        self.heap.set_piece(to);
        let mut piece = self.heap.header(item).more();
        if piece == from {
            self.heap.set_more(item, to);
        } else {
            while self.heap.piece_next(piece) != from {
                piece = self.heap.piece_next(piece);
            }
            self.heap.set_piece_next(piece, to);
        }
        self.heap.free(from);
    }

    /// Empties a whole page at once and gives it back. `false` if there is none to spare.
    pub fn surrender(&mut self, now: u32) -> bool {
        let pages = self.heap.page_count();
        if pages < 2 || !self.rules.evict || !self.close_coldest(now) {
            return false;
        }
        self.empty_some(now, u64::MAX);
        self.count.pages_moved += 1;
        self.heap.page_count() < pages
    }

    /// A bit of the work that gets a starved table a page.
    #[cold]
    pub fn feed_table(&mut self, now: u32) {
        self.heap.keep_grants(true);
        if self.heap.closing().is_none() && (!self.rules.evict || !self.close_coldest(now)) {
            self.stop_feeding();
            return;
        }
        self.empty_some(now, FEED);
        let granted = self.heap.granted();
        if granted > 0 {
            self.table.grant(granted);
            self.stop_feeding();
        }
    }

    fn stop_feeding(&mut self) {
        self.starved = false;
        self.heap.keep_grants(false);
    }
}
