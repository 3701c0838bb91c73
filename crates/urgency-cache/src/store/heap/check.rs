//! What must hold in a heap at any time, for the tests.

use super::*;

impl Heap {
    /// Fails unless pages, blocks, counts and lists agree. Returns the units in use.
    pub fn check(&self) -> u64 {
        let mut used = 0;
        let mut free = 0;
        let mut empty = 0;
        for page in 0..self.page_end() {
            let Some(live) = self.live_units(page) else {
                continue;
            };
            let (mut at, mut sum, mut before_free) = (Some(first_of(page)), 0, false);
            let mut end = 1;
            while let Some(r) = at {
                let tag = self.word(r, 0);
                let units = tag & SIZE;
                assert!(units >= 2, "a block has two units at least");
                assert_eq!(
                    tag & PREV_FREE != 0,
                    before_free,
                    "the tag says what is before it"
                );
                before_free = tag & USED == 0;
                if before_free {
                    assert!(tag & PREV_FREE == 0, "no two free blocks side by side");
                    if self.closing != Some(page) {
                        free += u64::from(units);
                    }
                    empty += usize::from(units == LARGEST);
                } else {
                    sum += units;
                }
                end = self.end_of(r);
                at = self.next(r);
            }
            assert_eq!(end, LARGEST + 1, "the blocks fill the page");
            assert_eq!(live, sum, "the page counts its units in use");
            used += u64::from(sum);
        }
        assert_eq!(free, self.free_units);
        assert_eq!(empty, self.empty);
        let mut listed = 0;
        for c in 0..CLASSES {
            assert_eq!(self.heads[c] != 0, self.map[c / 64] & (1 << (c % 64)) != 0);
            let (mut r, mut before) = (self.heads[c], 0);
            while r != 0 {
                assert_eq!(class(self.units(r)), c);
                assert_eq!(self.word(r, 4), before);
                listed += u64::from(self.units(r));
                (before, r) = (r, self.word(r, 8));
            }
        }
        assert_eq!(listed, free, "each free block is in its list");
        used
    }
}
