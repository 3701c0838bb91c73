//! Walking over the blocks of a page, and closing a page.
//!
//! Blocks lie side by side, so a page can be walked from its first block, or from the end of any; a place where a block
//! once began is no longer a beginning after a merge.

use super::*;

impl Heap {
    /// Units in use in a page; `None` if there is no such page.
    pub fn live_units(&self, page: u32) -> Option<u32> {
        self.pages.get(page as usize)?.as_ref()?;
        Some(self.word(page << UNIT_BITS, 0))
    }

    /// The page that a block is in.
    pub fn page_number(r: Ref) -> u32 {
        page_of(r)
    }

    /// The first used block of a page at unit `from` (0 for the beginning) or later, where `from` is
    /// 0 or the end of a block.
    pub fn used_from(&self, page: u32, from: u32) -> Option<Ref> {
        self.pages.get(page as usize)?.as_ref()?;
        if from > LARGEST {
            return None;
        }
        let mut r = (page << UNIT_BITS) | from.max(1);
        while self.word(r, 0) & USED == 0 {
            r = self.next(r)?;
        }
        Some(r)
    }

    /// The free block that covers the place of a block that was freed; `None` if its page went.
    pub fn hole_at(&self, r: Ref) -> Option<Ref> {
        self.live_units(page_of(r))?;
        let mut at = first_of(page_of(r));
        while at + self.units(at) <= r {
            at = self.next(at)?;
        }
        Some(at)
    }

    /// The unit after a block.
    pub fn end_of(&self, r: Ref) -> u32 {
        unit_of(r) + self.units(r)
    }

    /// The block right after this one, if it is used.
    pub fn used_after(&self, r: Ref) -> Option<Ref> {
        self.next(r).filter(|next| self.word(*next, 0) & USED != 0)
    }

    /// Closes a page: nothing new comes into it, and it goes when its last block does. One page at
    /// a time is closing. An empty page goes at once.
    pub fn close(&mut self, page: u32) {
        if self.closing == Some(page) {
            return;
        }
        self.reopen();
        let mut at = Some(first_of(page));
        while let Some(r) = at {
            let tag = self.word(r, 0);
            if tag & USED == 0 {
                self.unlist(r, tag & SIZE);
            }
            at = self.next(r);
        }
        self.closing = Some(page);
        if self.live_units(page) == Some(0) {
            self.empty -= 1;
            self.release(page);
        }
    }

    /// The page that is closing.
    pub fn closing(&self) -> Option<u32> {
        self.closing
    }

    /// Gives up closing: the free blocks of that page can be had again.
    pub fn reopen(&mut self) {
        let Some(page) = self.closing.take() else {
            return;
        };
        let mut at = Some(first_of(page));
        while let Some(r) = at {
            let tag = self.word(r, 0);
            if tag & USED == 0 {
                self.list(r, tag & SIZE);
            }
            at = self.next(r);
        }
    }
}
