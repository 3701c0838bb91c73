//! The first and the last waiter of each level, for [`Lists`](super::lists::Lists).
//!
//! Nearly always all waiters have one level. Its list is *at home*: beside the queue's own fields, on the cache line
//! that the lock's holder has in any case. (In an allocation of its own, with 2 workers that share a semaphore, the
//! list was half of what handing a permit over waited for.) The other lists are behind it, in no order. There are as
//! many as levels waited here at the same time, and their cache line is not touched while there are none.
//!
//! # Rules
//!
//! 1. A level has at most one list. An empty list belongs to any level: home, when it is empty, becomes the list of a
//!    level that has none.
//! 2. The most urgent level whose list is not empty has the turn.

/// End of a list, or of the chain of vacant slots.
pub(super) const NONE: u32 = u32::MAX;

/// The places of the first and the last waiter of a level; both or neither are [`NONE`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Ends {
    pub(super) first: u32,
    pub(super) last: u32,
}

impl Ends {
    const EMPTY: Ends = Ends {
        first: NONE,
        last: NONE,
    };

    const fn is_empty(&self) -> bool {
        self.first == NONE
    }
}

/// See the module's text.
#[derive(Debug)]
#[repr(C)]
pub(super) struct Levels {
    home: Ends,
    home_level: u8,
    has_others: bool,
    others: Vec<(u8, Ends)>,
}

impl Levels {
    pub(super) const fn new() -> Self {
        Levels {
            home: Ends::EMPTY,
            home_level: 0,
            has_others: false,
            others: Vec::new(),
        }
    }

    /// The levels that have a waiter, each with its first waiter.
    fn waiting(&self) -> impl Iterator<Item = (u8, u32)> {
        std::iter::once((self.home_level, self.home))
            .chain(self.others.iter().copied())
            .filter(|(_, ends)| !ends.is_empty())
            .map(|(level, ends)| (level, ends.first))
    }

    /// As [`waiting`](Self::waiting), the most urgent first.
    pub(super) fn in_order(&self) -> Vec<(u8, u32)> {
        let mut waiting: Vec<_> = self.waiting().collect();
        waiting.sort_unstable();
        waiting
    }

    /// Rule 2: the level, and its first waiter.
    #[inline]
    pub(super) fn turn(&self) -> Option<(u8, u32)> {
        if self.has_others {
            return self.waiting().min();
        }
        (!self.home.is_empty()).then_some((self.home_level, self.home.first))
    }

    /// The most urgent level below this one that has a waiter.
    pub(super) fn below(&self, level: u8) -> Option<u8> {
        let below = self.waiting().filter(|(other, _)| *other > level);
        below.map(|(other, _)| other).min()
    }

    /// The list of a level; rule 1 if it has none.
    #[inline]
    pub(super) fn of(&mut self, level: u8) -> &mut Ends {
        if self.home_level == level {
            return &mut self.home;
        }
        self.of_other(level)
    }

    fn of_other(&mut self, level: u8) -> &mut Ends {
        let found = self.others.iter().position(|(other, _)| *other == level);
        if found.is_none() && self.home.is_empty() {
            self.home_level = level;
            return &mut self.home;
        }
        let at = found.unwrap_or(self.others.len());
        if at == self.others.len() {
            self.others.push((level, Ends::EMPTY));
            self.has_others = true;
        }
        &mut self.others[at].1
    }
}

#[cfg(all(test, not(urgency_loom)))]
mod tests {
    use super::*;

    fn waits(levels: &mut Levels, level: u8) {
        *levels.of(level) = Ends {
            first: level.into(),
            last: level.into(),
        };
    }

    #[test]
    fn the_most_urgent_level_has_the_turn_wherever_its_list_is() {
        let mut levels = Levels::new();
        assert_eq!(levels.turn(), None);
        for level in [3, 5, 1, 4] {
            waits(&mut levels, level);
        }
        assert_eq!(levels.in_order(), [(1, 1), (3, 3), (4, 4), (5, 5)]);
        for level in [1, 3, 4, 5] {
            assert_eq!(levels.turn(), Some((level, level.into())));
            *levels.of(level) = Ends::EMPTY;
        }
        assert_eq!(levels.turn(), None);
    }

    #[test]
    fn a_level_keeps_its_list_when_home_is_free_for_another() {
        let mut levels = Levels::new();
        waits(&mut levels, 7);
        waits(&mut levels, 2);
        *levels.of(7) = Ends::EMPTY;
        assert_eq!(levels.of(2).first, 2);
        waits(&mut levels, 9);
        assert_eq!(levels.in_order(), [(2, 2), (9, 9)]);
        assert_eq!(levels.others.len(), 1, "9 is at home");
    }
}
