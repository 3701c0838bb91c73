//! Prompt: always the most urgent level that has work.
//!
//! "Prompt" is the scheduling principle of the responsive-parallelism papers: no core does less
//! urgent work while more urgent work is ready. Together with greediness (no core is idle while
//! anything is ready) it is what the response-time bounds of well-ordered programs rest on. The
//! Prompt I-Cilk paper (section 4, "Supporting promptness and elasticization") approximates it by
//! looking at one word at each scheduling point, and found that cheap enough to do always.
//!
//! - A free worker serves the lowest set bit.
//! - A busy worker abandons what it runs if, and only if, a *strictly* more urgent level has work.
//!   Work of its own level never makes a worker abandon: that would only reorder the level.
//!
//! If the levels are partially ordered, "more urgent" is the order of ranks, a topological order of
//! the levels. That is a choice within the principle, which leaves the order of incomparable levels
//! open: any total order that extends the partial one is prompt for it.
//!
//! Both answers are a `trailing_zeros` and a compare. That no level has work needs no case of its
//! own: `trailing_zeros` of 0 is 64, which is no rank and below every level.

use super::LevelPolicy;

/// Serves the most urgent level that has work; the default policy. It has no state.
///
/// ```
/// use urgency_policy::level::{LevelPolicy, Prompt};
///
/// let interactive_and_batch = 0b101;
/// assert_eq!(Prompt.serve(interactive_and_batch), Some(0));
/// // A worker at level 2 moves up, a worker at level 0 goes on.
/// assert_eq!(Prompt.abandon_for(interactive_and_batch, 2), Some(0));
/// assert_eq!(Prompt.abandon_for(interactive_and_batch, 0), None);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Prompt;

impl LevelPolicy for Prompt {
    #[inline(always)]
    fn serve(&mut self, with_work: u64) -> Option<u8> {
        let top = with_work.trailing_zeros() as u8;
        (top < u64::BITS as u8).then_some(top)
    }

    #[inline(always)]
    fn abandon_for(&mut self, with_work: u64, current: u8) -> Option<u8> {
        let top = with_work.trailing_zeros() as u8;
        (top < current).then_some(top)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_free_worker_with_nothing_to_serve_may_sleep() {
        assert_eq!(Prompt.serve(0), None);
    }

    #[test]
    fn a_busy_worker_goes_on_when_no_level_has_work() {
        for current in 0..64 {
            assert_eq!(Prompt.abandon_for(0, current), None);
        }
    }

    #[test]
    fn work_of_the_same_level_never_makes_a_worker_abandon() {
        for current in 0..64 {
            assert_eq!(Prompt.abandon_for(1 << current, current), None);
        }
    }

    fn any_levels() -> impl Strategy<Value = u64> {
        // Uniform words nearly always have a low bit set; sparse ones reach the other cases.
        prop_oneof![
            any::<u64>(),
            (any::<u64>(), 0u32..64).prop_map(|(w, s)| w << s),
            (0u32..64).prop_map(|bit| 1 << bit),
            Just(0),
        ]
    }

    proptest! {
        #[test]
        fn a_free_worker_never_serves_a_level_while_a_more_urgent_one_has_work(w in any_levels()) {
            match Prompt.serve(w) {
                Some(level) => {
                    prop_assert!(w >> level & 1 == 1, "level {level} has no work");
                    for above in 0..level {
                        prop_assert!(w >> above & 1 == 0, "{above} has work, {level} was served");
                    }
                }
                None => prop_assert_eq!(w, 0),
            }
        }

        #[test]
        fn a_busy_worker_abandons_exactly_for_the_most_urgent_level_above_it(
            w in any_levels(),
            current in 0u8..64,
        ) {
            let above = (0..current).find(|level| w >> level & 1 == 1);
            prop_assert_eq!(Prompt.abandon_for(w, current), above);
        }
    }
}
