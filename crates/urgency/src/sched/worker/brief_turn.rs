//! A worker's turn of brief work. The rules are in `rescue/turns.rs`.

use crate::sys::{
    clock,
    primitives::atomic::{AtomicU32, AtomicU64, Ordering},
};

/// How many pieces of brief work go first in one turn.
pub(in crate::sched) const MOST_IN_TURN: u32 = 64;

/// See the module's text. Written by the worker's holder, or its claimer.
#[derive(Debug, Default)]
pub(in crate::sched) struct BriefTurn {
    /// How many pieces of brief work it may still take before all others, and in the byte above of which level.
    left: AtomicU32,
    /// In ticks.
    began: AtomicU64,
    /// Until when it has no other turn, in ticks.
    rests_until: AtomicU64,
    /// Since when its stack has held it, in ticks.
    held_since: AtomicU64,
}

impl BriefTurn {
    /// Brief work of this level goes first from now on, as much as may in one turn.
    pub(in crate::sched) fn begin(&self, level: u8) {
        let turn = u32::from(level) << 8 | MOST_IN_TURN;
        self.left.store(turn, Ordering::Relaxed);
        self.began.store(clock::now(), Ordering::Relaxed);
    }

    /// Of which level brief work goes first, if any.
    pub(in crate::sched) fn level(&self) -> Option<u8> {
        let turn = self.left.load(Ordering::Relaxed);
        (turn != 0).then_some((turn >> 8) as u8)
    }

    /// The worker has looked for brief work. If there was none the turn is over, and the worker rests from turns for as
    /// long as this one took, or for so many ticks.
    pub(in crate::sched) fn took(&self, some: bool, most: u64) {
        let turn = self.left.load(Ordering::Relaxed);
        if some && turn & 0xff > 1 {
            return self.left.store(turn - 1, Ordering::Relaxed);
        }
        self.left.store(0, Ordering::Relaxed);
        let now = clock::now();
        let length = now.saturating_sub(self.began.load(Ordering::Relaxed));
        let until = now + length.min(most);
        self.rests_until.store(until, Ordering::Relaxed);
    }

    /// A stack holds the worker from now on.
    pub(in crate::sched) fn has_new_holder(&self) {
        self.held_since.store(clock::now(), Ordering::Relaxed);
    }

    /// Since when its stack has held it, in ticks.
    pub(in crate::sched) fn held_since(&self) -> u64 {
        self.held_since.load(Ordering::Relaxed)
    }

    /// Whether the worker has rested from its last turn.
    pub(in crate::sched) fn has_rested(&self) -> bool {
        clock::now() >= self.rests_until.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_is_over_when_it_is_used_up_or_nothing_is_left_and_then_the_worker_rests() {
        let turn = BriefTurn::default();
        assert!(turn.level().is_none() && turn.has_rested());
        turn.begin(3);
        for _ in 0..MOST_IN_TURN {
            assert_eq!(turn.level(), Some(3));
            turn.took(true, 0);
        }
        assert!(turn.level().is_none() && turn.has_rested());
        turn.begin(0);
        assert_eq!(turn.level(), Some(0));
        turn.began.store(0, Ordering::Relaxed);
        turn.took(false, clock::ticks(60e9));
        assert!(turn.level().is_none() && !turn.has_rested());
    }
}
