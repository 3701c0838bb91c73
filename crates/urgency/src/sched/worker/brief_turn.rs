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
    /// How many pieces of brief work it may still take before all others, in the byte above of which level, and in the
    /// bit above whether tasks that compute are among them.
    left: AtomicU32,
    /// In ticks.
    began: AtomicU64,
    /// When it will have given the stacks that it was taken from as much time as its turns took, in ticks.
    owes_until: AtomicU64,
}

impl BriefTurn {
    /// Brief work of this level goes first from now on, as much as may in one turn, and after that tasks that compute
    /// (`takes_computing`).
    pub(in crate::sched) fn begin(&self, level: u8, takes_computing: bool) {
        let turn = u32::from(takes_computing) << 16 | u32::from(level) << 8 | MOST_IN_TURN;
        self.left.store(turn, Ordering::Relaxed);
        self.began.store(clock::now(), Ordering::Relaxed);
    }

    /// Of which level brief work goes first, if any.
    pub(in crate::sched) fn level(&self) -> Option<u8> {
        let turn = self.left.load(Ordering::Relaxed);
        (turn != 0).then_some((turn >> 8) as u8)
    }

    /// Whether tasks that compute have a place in the turn.
    pub(in crate::sched) fn takes_computing(&self) -> bool {
        self.left.load(Ordering::Relaxed) >> 16 != 0
    }

    /// The worker has looked for brief work. If there was none the turn is over, and the worker owes as much time as it
    /// took, at most so many ticks. (It had no other turn until it had given that back: a request that came 20 us after
    /// the turn of another one waited for relief, a millisecond.)
    pub(in crate::sched) fn took(&self, some: bool, most: u64) {
        let turn = self.left.load(Ordering::Relaxed);
        if some && turn & 0xff > 1 {
            return self.left.store(turn - 1, Ordering::Relaxed);
        }
        self.left.store(0, Ordering::Relaxed);
        let began = self.began.load(Ordering::Relaxed);
        let length = clock::now().saturating_sub(began);
        // Nothing was given back during the turn.
        let owed = self.owes_until.load(Ordering::Relaxed).max(began);
        let until = owed + length + length.min(most);
        self.owes_until.store(until, Ordering::Relaxed);
    }

    /// How much time it owes, in ticks.
    pub(in crate::sched) fn owes(&self) -> u64 {
        let until = self.owes_until.load(Ordering::Relaxed);
        until.saturating_sub(clock::now())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_is_over_when_it_is_used_up_or_nothing_is_left_and_what_turns_took_is_owed() {
        let turn = BriefTurn::default();
        let second = clock::ticks(1e9);
        assert!(turn.level().is_none() && turn.owes() == 0);
        turn.begin(3, true);
        for _ in 0..MOST_IN_TURN {
            assert!(turn.level() == Some(3) && turn.takes_computing());
            turn.took(true, second);
        }
        assert!(turn.level().is_none() && !turn.takes_computing());
        for turns in 1..4 {
            turn.begin(0, false);
            assert!(turn.level() == Some(0) && !turn.takes_computing());
            turn.began.fetch_sub(2 * second, Ordering::Relaxed);
            // As if the time of the turn had passed.
            let owes_until = turn.owes_until.load(Ordering::Relaxed);
            let earlier = owes_until.saturating_sub(2 * second);
            turn.owes_until.store(earlier, Ordering::Relaxed);
            turn.took(false, second);
            let owed = (turn.owes() as f64 / second as f64).round();
            assert!(turn.level().is_none());
            assert_eq!(owed, f64::from(turns));
        }
    }
}
