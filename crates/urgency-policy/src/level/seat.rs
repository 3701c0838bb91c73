//! A worker's seat: its primary level, and what the worker does while that level has no work.

use super::LevelPolicy;

/// What a worker does while its primary level has no work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Otherwise {
    /// It serves the most urgent level that has work.
    Donate,
    /// Nothing.
    Wait,
}

/// No rank: prompt.
const NONE: u8 = u64::BITS as u8;

/// Which level a worker serves, until it gets another seat.
///
/// All schedules but prompt give a worker a *primary level* for some time, and differ in when and how. The
/// rest is the same for all, and is here:
///
/// - While the primary level has work, the worker serves it, whatever else is ready. It does not abandon work of its
///   primary level: that is what makes a share.
/// - While the primary level has no work, the worker *donates*: it behaves as a prompt worker, until its primary level
///   has work again. (Fairness in Responsive Parallelism, section 3.2: "donate to the highest available priority".) Or
///   it *waits*: the worker belongs to the level, as in I-Cilk's two-level scheduler and in staged programs.
/// - A worker without a primary level is prompt.
/// - A level that is *ahead* ([`Advance`](super::Advance)) comes before a less urgent primary level.
///
/// A worker that waits never takes work of another level. But a worker that was moved goes on with what it runs until
/// its new level has work. (I-Cilk suspends at once and steals in vain. To stay is kinder to that baseline.)
///
/// ```
/// use urgency_policy::level::{LevelPolicy, Otherwise, Seat};
///
/// let mut seat = Seat::at(2, Otherwise::Donate);
/// assert_eq!(seat.serve(0b101), Some(2), "its own level, though a more urgent one has work");
/// assert_eq!(seat.abandon_for(0b101, 2), None, "and it stays there");
/// assert_eq!(seat.serve(0b011), Some(0), "a donation");
/// assert_eq!(seat.abandon_for(0b110, 1), Some(2), "back to its own level");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seat {
    primary: u8,
    otherwise: Otherwise,
    /// The levels that are ahead; of interest are those above the primary one.
    ahead: u64,
}

impl Seat {
    /// The seat without a primary level.
    pub const PROMPT: Seat = Seat {
        primary: NONE,
        otherwise: Otherwise::Donate,
        ahead: 0,
    };

    /// The seat with the level of this rank as its primary.
    ///
    /// # Panics
    ///
    /// If `primary` is not below 64.
    pub const fn at(primary: u8, otherwise: Otherwise) -> Self {
        assert!(primary < NONE, "a rank is below 64");
        Seat {
            primary,
            otherwise,
            ahead: 0,
        }
    }

    /// The same seat while these levels are ahead. Only levels that are more urgent than the primary one count.
    ///
    /// ```
    /// use urgency_policy::level::{LevelPolicy, Otherwise, Seat};
    ///
    /// let mut seat = Seat::at(2, Otherwise::Donate).with_ahead(0b001);
    /// assert_eq!(seat.abandon_for(0b111, 2), Some(0), "it has used little of its share");
    /// assert_eq!(seat.abandon_for(0b110, 0), None, "and is not driven away");
    /// assert_eq!(seat.abandon_for(0b110, 2), None, "level 1 is not ahead");
    /// ```
    #[must_use]
    #[inline]
    pub const fn with_ahead(self, levels: u64) -> Self {
        let above = match self.primary {
            NONE => 0,
            primary => (1 << primary) - 1,
        };
        Seat {
            ahead: levels & above,
            ..self
        }
    }

    /// Whether the level of this rank comes before the primary one.
    pub fn is_ahead(self, rank: u8) -> bool {
        self.ahead
            .checked_shr(u32::from(rank))
            .is_some_and(|bits| bits & 1 == 1)
    }

    /// The rank of its primary level, if it has one.
    pub fn primary(self) -> Option<u8> {
        (self.primary != NONE).then_some(self.primary)
    }

    /// What its worker does while the primary level has no work. Means nothing without one.
    pub fn otherwise(self) -> Otherwise {
        self.otherwise
    }

    /// Whether a free worker in this seat would serve one of these levels.
    #[inline]
    pub fn serves_any(self, with_work: u64) -> bool {
        let mut seat = self;
        seat.serve(with_work).is_some()
    }

    /// Whether it is worth alerting a worker in this seat, which serves `current`, when work arrives at the
    /// level of rank `arrived`: whether [`abandon_for`](LevelPolicy::abandon_for) would go there if
    /// nothing else were ready.
    #[inline(always)]
    pub fn is_drawn_by(self, arrived: u8, current: u8) -> bool {
        let mut seat = self;
        seat.abandon_for(1 << arrived, current).is_some()
    }
}

impl Default for Seat {
    /// [`Seat::PROMPT`].
    fn default() -> Self {
        Seat::PROMPT
    }
}

impl LevelPolicy for Seat {
    #[inline(always)]
    fn serve(&mut self, with_work: u64) -> Option<u8> {
        if with_work & self.ahead != 0 {
            return super::Prompt.serve(with_work & self.ahead);
        }
        // For the prompt seat the shift has no result, and the rest is `Prompt`.
        let own = with_work.checked_shr(u32::from(self.primary));
        if own.is_some_and(|bits| bits & 1 == 1) {
            return Some(self.primary);
        }
        match self.otherwise {
            Otherwise::Donate => super::Prompt.serve(with_work),
            Otherwise::Wait => None,
        }
    }

    #[inline(always)]
    fn abandon_for(&mut self, with_work: u64, current: u8) -> Option<u8> {
        if let Some(ahead) = super::Prompt.abandon_for(with_work & self.ahead, current) {
            return Some(ahead);
        }
        if self.primary == current || self.is_ahead(current) {
            return None;
        }
        let own = with_work.checked_shr(u32::from(self.primary));
        if own.is_some_and(|bits| bits & 1 == 1) {
            return Some(self.primary);
        }
        match self.otherwise {
            Otherwise::Donate => super::Prompt.abandon_for(with_work, current),
            Otherwise::Wait => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{super::Prompt, *};
    use proptest::prelude::*;

    fn any_levels() -> impl Strategy<Value = u64> {
        prop_oneof![
            any::<u64>(),
            (any::<u64>(), 0u32..64).prop_map(|(w, s)| w << s),
            (0u32..64).prop_map(|bit| 1 << bit),
            Just(0),
        ]
    }

    proptest! {
        #[test]
        fn a_seat_without_a_primary_level_is_prompt(w in any_levels(), current in 0u8..64) {
            prop_assert_eq!(Seat::default().serve(w), Prompt.serve(w));
            prop_assert_eq!(Seat::default().abandon_for(w, current), Prompt.abandon_for(w, current));
        }

        #[test]
        fn a_donation_goes_to_the_most_urgent_level_with_work(w in any_levels(), primary in 0u8..64) {
            let mut seat = Seat::at(primary, Otherwise::Donate);
            let own = w >> primary & 1 == 1;
            let top = (0..64).find(|rank| w >> rank & 1 == 1);
            prop_assert_eq!(seat.serve(w), if own { Some(primary) } else { top });
        }

        #[test]
        fn work_of_the_primary_level_is_never_abandoned_and_always_drawn_to(
            w in any_levels(),
            primary in 0u8..64,
            current in 0u8..64,
            wait in any::<bool>(),
        ) {
            let otherwise = if wait { Otherwise::Wait } else { Otherwise::Donate };
            let mut seat = Seat::at(primary, otherwise);
            prop_assert_eq!(seat.abandon_for(w, primary), None);
            if current != primary && w >> primary & 1 == 1 {
                prop_assert_eq!(seat.abandon_for(w, current), Some(primary));
            }
            if let Some(level) = seat.abandon_for(w, current) {
                prop_assert!(w >> level & 1 == 1 && level != current);
            }
        }

        #[test]
        fn a_seat_that_waits_serves_its_primary_level_only(w in any_levels(), primary in 0u8..64) {
            let served = Seat::at(primary, Otherwise::Wait).serve(w);
            prop_assert_eq!(served, (w >> primary & 1 == 1).then_some(primary));
        }
    }
}
