//! Aging: contexts are served in the order in which they became ready.
//!
//! Serving the oldest request first is what makes interactive servers meet their tail latencies;
//! the Prompt I-Cilk paper ("Work stealing without randomization", "Support for aging") gets it
//! from plain first-in-first-out queues and gives up randomised stealing for it.
//!
//! # Rules
//!
//! 1. Whatever becomes ready goes to the tail of the regular queue, and is taken from its head.
//! 2. The exception: an abandoned stack goes to the mugging queue. It was being served; at the tail
//!    of the regular queue it would stand behind contexts that became ready after it (it would be
//!    *de-aged*).
//! 3. The mugging queue is served before the regular one, first in, first out.
//! 4. A deque that still holds forks after a steal goes to the tail of the regular queue, so that the deques of a level
//!    take turns, each giving its oldest fork. A deque without forks is dropped; it comes back when its stack publishes
//!    a fork ([`Arrival::PublicForks`]).
//!
//! # What stays out of order
//!
//! A deque may stand in the regular queue for its forks, lose them all, and then become resumable: it keeps its old
//! place and so overtakes contexts that became ready before it. The paper leaves this so, because it is rare, and
//! because a queue from which only the head can be taken makes the pool fast. The runtime measures how often it
//! happens.

use super::{Arrival, Left, Place, PoolPolicy, Queue, Sight, Source, oldest_of};

/// First in, first out, abandoned stacks first; the default policy. It has no state.
///
/// ```
/// use urgency_policy::pool::{Aging, Arrival, Place, PoolPolicy, Queue, Sight, Source, oldest_of};
///
/// assert_eq!(Aging.place(Arrival::Task, 0), Place::Tail(Queue::Regular));
/// assert_eq!(Aging.place(Arrival::Abandoned, 0), Place::Tail(Queue::Mugging));
/// let both = Sight { mugging: true, regular: true, ..Sight::default() };
/// assert_eq!(Aging.take_from(both), Source::Head(Queue::Mugging));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Aging;

impl PoolPolicy for Aging {
    #[inline(always)]
    fn place(&mut self, arrival: Arrival, _own: usize) -> Place {
        match arrival {
            Arrival::Abandoned => Place::Tail(Queue::Mugging),
            _ => Place::Tail(Queue::Regular),
        }
    }

    #[inline(always)]
    fn take_from(&mut self, sight: Sight) -> Source {
        let has_entry = |queue| match queue {
            Queue::Mugging => sight.mugging,
            _ => sight.regular,
        };
        let found = oldest_of(|queue| has_entry(queue).then_some(()));
        found.map_or(Source::Nowhere, |((), queue)| Source::Head(queue))
    }

    #[inline(always)]
    fn after_steal(&mut self, left: Left) -> Place {
        match left {
            Left::Forks => Place::Tail(Queue::Regular),
            Left::Nothing => Place::Dropped,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::{collections::VecDeque, vec::Vec};
    use proptest::prelude::*;

    /// A pool as the runtime has it, with the arrival's number and its forks as the entry.
    #[derive(Default)]
    struct Pool {
        mugging: VecDeque<(usize, u32)>,
        regular: VecDeque<(usize, u32)>,
    }

    impl Pool {
        fn put(&mut self, place: Place, entry: (usize, u32)) {
            match place {
                Place::Tail(Queue::Mugging) => self.mugging.push_back(entry),
                Place::Tail(Queue::Regular) => self.regular.push_back(entry),
                Place::Dropped => {}
                other => panic!("{other:?} is no place of this pool"),
            }
        }

        fn take(&mut self) -> Option<(usize, u32)> {
            let sight = Sight {
                mugging: !self.mugging.is_empty(),
                regular: !self.regular.is_empty(),
                ..Sight::default()
            };
            match Aging.take_from(sight) {
                Source::Head(Queue::Mugging) => self.mugging.pop_front(),
                Source::Head(Queue::Regular) => self.regular.pop_front(),
                _ => None,
            }
        }
    }

    fn any_arrival() -> impl Strategy<Value = Arrival> {
        prop_oneof![
            Just(Arrival::Abandoned),
            Just(Arrival::Resumable),
            Just(Arrival::Task),
            Just(Arrival::Root),
            Just(Arrival::PublicForks),
            Just(Arrival::Suspended),
            Just(Arrival::Yielded),
            Just(Arrival::YieldedFar),
        ]
    }

    #[test]
    fn an_empty_pool_gives_nothing() {
        assert_eq!(Pool::default().take(), None);
    }

    proptest! {
        #[test]
        fn abandoned_stacks_come_first_and_all_others_in_the_order_of_their_arrival(
            arrivals in proptest::collection::vec(any_arrival(), 0..50),
        ) {
            let mut pool = Pool::default();
            for (number, arrival) in arrivals.iter().enumerate() {
                pool.put(Aging.place(*arrival, 0), (number, 0));
            }
            let served: Vec<_> = core::iter::from_fn(|| pool.take()).map(|(n, _)| n).collect();
            let mut expected: Vec<_> = (0..arrivals.len()).collect();
            expected.sort_by_key(|&n| (arrivals[n] != Arrival::Abandoned, n));
            prop_assert_eq!(served, expected);
        }

        #[test]
        fn deques_with_jobs_take_turns_until_all_jobs_are_stolen(
            jobs in proptest::collection::vec(1u32..5, 1..20),
        ) {
            let mut pool = Pool::default();
            for (number, jobs) in jobs.iter().enumerate() {
                pool.put(Aging.place(Arrival::PublicForks, 0), (number, *jobs));
            }
            let mut stolen = Vec::new();
            while let Some((number, left)) = pool.take() {
                stolen.push(number);
                let rest = if left > 1 { Left::Forks } else { Left::Nothing };
                pool.put(Aging.after_steal(rest), (number, left - 1));
            }
            let turns = (0..4).flat_map(|turn| jobs.iter().enumerate().map(move |j| (turn, j)));
            let expected: Vec<_> = turns
                .filter(|(turn, (_, jobs))| *turn < **jobs)
                .map(|(_, (number, _))| number)
                .collect();
            prop_assert_eq!(stolen, expected);
        }
    }
}
