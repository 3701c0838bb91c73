//! At which level, and as which, the forks of code run that has other code on top of it.
//!
//! Where no other thread can be had, a stack that waits runs what is ready, and a provided thread runs what it gives a
//! turn to. That code has a level of its own, by which its waits are judged, too. Meanwhile thieves find forks of both
//! in the deque. The forks of the code below lie below the index at which the other code began. (They were run with the
//! levels of the code on top. A fork of less urgent code waited for a task of its level, and was told that this is an
//! inversion.)
//!
//! # Rules
//!
//! 1. The owner notes the levels of the code below, under the deque's lock, *then* changes its own. It has its own
//!    again, *then* takes the note away.
//! 2. A thief looks under the deque's lock: a fork has the levels of the first note whose end is above it, or else the
//!    stack's own.
//! 3. Where all forks from some index on are gone, what is forked there is of the code that runs: the notes end there.

use super::{Me, Stack};
use crate::sys::{
    mutex::Mutex,
    primitives::atomic::{AtomicBool, Ordering::Relaxed},
};

/// The levels of code that has other code on top.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Levels {
    pub(super) level: u8,
    pub(super) waits_as: u8,
}

/// See the module's text.
#[derive(Debug, Default)]
pub(super) struct Covered {
    /// Whether there is any note: most stacks never have one.
    any: AtomicBool,
    /// Up to which index the forks are of that code. The ends do not fall.
    notes: Mutex<Vec<(usize, Levels)>>,
}

impl Covered {
    /// Rule 2: the levels of the fork at this index, if it is of code that has other code on top.
    #[inline]
    pub(super) fn at(&self, index: usize) -> Option<Levels> {
        if !self.any.load(Relaxed) {
            return None;
        }
        let notes = self.notes.lock();
        let found = notes.iter().find(|(end, _)| index < *end);
        found.map(|(_, levels)| *levels)
    }

    fn begin(&self, end: usize, levels: Levels) {
        self.notes.lock().push((end, levels));
        self.any.store(true, Relaxed);
    }

    fn end(&self) {
        let mut notes = self.notes.lock();
        notes.pop();
        self.any.store(!notes.is_empty(), Relaxed);
    }

    /// Rule 3.
    fn lower(&self, index: usize) {
        if self.any.load(Relaxed) {
            for (end, _) in self.notes.lock().iter_mut() {
                *end = index.min(*end);
            }
        }
    }
}

impl Stack {
    fn levels(&self) -> Levels {
        Levels {
            level: self.level(),
            waits_as: self.waits_as(),
        }
    }
}

impl Me<'_> {
    /// `f` runs code at this level, as this one, on top of what the stack runs. It ends with the levels from before.
    pub(crate) fn covered<R>(self, level: u8, waits_as: u8, f: impl FnOnce() -> R) -> R {
        let (end, below) = (self.deque.bottom(), self.levels());
        // A deque whose first index is free holds no fork.
        if end == 0 || below == (Levels { level, waits_as }) {
            return f();
        }
        let notes = &self.covered;
        self.deque().without_thieves(|| notes.begin(end, below));
        let result = f();
        self.deque().without_thieves(|| notes.end());
        result
    }

    /// All forks from `index` on are gone, and what is forked there is of the code that runs now.
    pub(crate) fn has_no_fork_from(self, index: usize) {
        self.frames.lower(index);
        self.covered.lower(index);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fork_has_the_levels_of_the_innermost_code_that_has_other_code_on_top() {
        let levels = |level| Levels { level, waits_as: 0 };
        let covered = Covered::default();
        assert_eq!(covered.at(0), None);
        covered.begin(2, levels(3));
        covered.begin(5, levels(1));
        assert_eq!(covered.at(1), Some(levels(3)));
        assert_eq!(covered.at(2), Some(levels(1)));
        assert_eq!(covered.at(5), None);
        covered.lower(4);
        assert_eq!((covered.at(3), covered.at(4)), (Some(levels(1)), None));
        covered.end();
        covered.end();
        assert_eq!(covered.at(0), None);
    }
}
