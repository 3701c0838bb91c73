//! The order of aging as one function, which a mechanism inlines.

use super::Queue;

/// One level as a worker looks at it under aging.
///
/// [`Aging`](super::Aging) decides about two queues. A fast runtime has more places than these: a worker puts the tasks
/// that it makes ready into a *ring* of its own first, because that takes no shared cache line. So the oldest
/// context of a level may be in the queue, in the worker's own ring, or in another one's. [`Aged::next`] is the
/// order in which they are looked at; a mechanism implements the looks. Every look is asked only when the order
/// comes to it, so that a mechanism whose looks are inlined pays for the looks it makes and for nothing else.
///
/// # Rules
///
/// 1. Now and then a ring of somebody else first, if it is much older ([`Aged::much_older_elsewhere`]). A mechanism
///    decides how often; without it a worker that is never done would never see one.
/// 2. The mugging queue. What it holds was being served.
/// 3. The own ring, if its oldest task became ready before all that the regular queue can still give
///    ([`comes_first`]).
/// 4. The regular queue, until an entry stands for work: entries are hints.
/// 5. The own ring.
/// 6. The ring with the oldest task.
///
/// ```
/// use std::collections::VecDeque;
/// use urgency_policy::pool::{Aged, Queue};
///
/// /// Numbers, which are when they became ready.
/// struct Level { mugging: VecDeque<u64>, regular: VecDeque<u64>, ring: VecDeque<u64> }
///
/// impl Aged for Level {
///     type Entry = u64;
///     type Work = u64;
///     fn pop(&mut self, queue: Queue) -> Option<u64> {
///         match queue {
///             Queue::Mugging => self.mugging.pop_front(),
///             _ => self.regular.pop_front(),
///         }
///     }
///     fn claim(&mut self, entry: u64, _: Queue) -> Option<u64> { Some(entry) }
///     fn own_goes_first(&mut self) -> bool {
///         self.mugging.is_empty() && self.ring.front() < self.regular.front().or(Some(&u64::MAX))
///     }
///     fn pop_own(&mut self) -> Option<u64> { self.ring.pop_front() }
///     // With one worker there is no other ring: as the trait has it.
///     fn much_older_elsewhere(&mut self) -> Option<u64> { None }
///     fn oldest_elsewhere(&mut self) -> Option<u64> { None }
/// }
///
/// let mut level = Level { mugging: [5].into(), regular: [2, 4].into(), ring: [1, 3].into() };
/// let served: Vec<u64> = std::iter::from_fn(|| level.next()).collect();
/// assert_eq!(served, [5, 1, 2, 3, 4]);
/// ```
pub trait Aged {
    /// What stands in a queue.
    type Entry;
    /// What a worker runs.
    type Work;

    /// Takes the oldest entry of the mugging or the regular queue.
    fn pop(&mut self, queue: Queue) -> Option<Self::Entry>;

    /// Finds out whether an entry of this queue still stands for work, and takes that.
    fn claim(&mut self, entry: Self::Entry, from: Queue) -> Option<Self::Work>;

    /// Whether the own ring has a task that comes before both queues; see [`comes_first`]. Never, without rings.
    #[inline(always)]
    fn own_goes_first(&mut self) -> bool {
        false
    }

    /// Takes the oldest task of the own ring. There is none without rings.
    #[inline(always)]
    fn pop_own(&mut self) -> Option<Self::Work> {
        None
    }

    /// Takes the task of another ring that is much older than what this worker would run otherwise, if it is time to
    /// look.
    #[inline(always)]
    fn much_older_elsewhere(&mut self) -> Option<Self::Work> {
        None
    }

    /// Takes the oldest task of any ring.
    #[inline(always)]
    fn oldest_elsewhere(&mut self) -> Option<Self::Work> {
        None
    }

    /// The next work of this level, in the order of aging.
    #[inline(always)]
    fn next(&mut self) -> Option<Self::Work> {
        if let Some(work) = self.much_older_elsewhere() {
            return Some(work);
        }
        if self.own_goes_first()
            && let Some(work) = self.pop_own()
        {
            return Some(work);
        }
        while let Some((entry, queue)) = oldest_of(|queue| self.pop(queue)) {
            if let Some(work) = self.claim(entry, queue) {
                return Some(work);
            }
        }
        if let Some(work) = self.pop_own() {
            return Some(work);
        }
        self.oldest_elsewhere()
    }
}

/// What `pop` takes from the mugging queue, or else from the regular one, and from which it was.
#[inline(always)]
pub fn oldest_of<E>(mut pop: impl FnMut(Queue) -> Option<E>) -> Option<(E, Queue)> {
    if let Some(entry) = pop(Queue::Mugging) {
        return Some((entry, Queue::Mugging));
    }
    pop(Queue::Regular).map(|entry| (entry, Queue::Regular))
}

/// Whether a task that became ready at `since` comes before both queues: nothing was abandoned, and what the regular
/// queue can still give became ready later. A queue from which one can only take the head tells of that only when it
/// gave its last entry, `given`: what is left is younger. `since` is the largest number for an empty ring.
///
/// ```
/// use urgency_policy::pool::comes_first;
///
/// let (empty, full) = (|| true, || false);
/// assert!(comes_first(7, empty, || 8, full), "the queue gave something younger already");
/// assert!(!comes_first(7, empty, || 6, full), "it may have something older");
/// assert!(comes_first(7, empty, || 6, empty));
/// assert!(!comes_first(7, full, || 8, empty), "an abandoned stack comes first");
/// ```
#[inline(always)]
pub fn comes_first(
    since: u64,
    mugging_is_empty: impl FnOnce() -> bool,
    given: impl FnOnce() -> u64,
    regular_is_empty: impl FnOnce() -> bool,
) -> bool {
    mugging_is_empty() && (since < given() || regular_is_empty())
}

#[cfg(test)]
mod tests {
    use super::super::{Aging, Arrival, Place, PoolPolicy, Sight, Source};
    use super::*;
    use alloc::{collections::VecDeque, vec::Vec};
    use proptest::prelude::*;

    /// A level with rings; what stands in it is when it became ready, and whether it is stale.
    #[derive(Clone, Default)]
    struct Level {
        mugging: VecDeque<(u64, bool)>,
        regular: VecDeque<(u64, bool)>,
        given: u64,
        own: VecDeque<u64>,
        other: VecDeque<u64>,
    }

    impl Aged for Level {
        type Entry = (u64, bool);
        type Work = u64;

        fn pop(&mut self, queue: Queue) -> Option<(u64, bool)> {
            match queue {
                Queue::Mugging => self.mugging.pop_front(),
                _ => {
                    let entry = self.regular.pop_front()?;
                    self.given = entry.0;
                    Some(entry)
                }
            }
        }

        fn claim(&mut self, (since, is_stale): (u64, bool), _: Queue) -> Option<u64> {
            (!is_stale).then_some(since)
        }

        fn own_goes_first(&mut self) -> bool {
            let since = self.own.front().copied().unwrap_or(u64::MAX);
            comes_first(
                since,
                || self.mugging.is_empty(),
                || self.given,
                || self.regular.is_empty(),
            )
        }

        fn pop_own(&mut self) -> Option<u64> {
            self.own.pop_front()
        }

        fn oldest_elsewhere(&mut self) -> Option<u64> {
            self.other.pop_front()
        }
    }

    proptest! {
        #[test]
        fn everything_live_is_served_once_abandoned_stacks_first_and_no_task_before_an_older_one_of_its_place(
            places in proptest::collection::vec((0usize..4, any::<bool>()), 0..60),
        ) {
            let mut level = Level::default();
            for (since, &(place, is_stale)) in (1u64..).zip(&places) {
                match place {
                    0 => level.mugging.push_back((since, is_stale)),
                    1 => level.regular.push_back((since, is_stale)),
                    2 => level.own.push_back(since),
                    _ => level.other.push_back(since),
                }
            }
            let abandoned = level.mugging.iter().filter(|(_, is_stale)| !is_stale).count();
            let live = |place| {
                let of = places.iter().filter(move |(of, is_stale)| *of == place && !(place < 2 && *is_stale));
                of.count()
            };
            let served: Vec<u64> = core::iter::from_fn(|| level.next()).collect();
            prop_assert_eq!(served.len(), (0..4).map(live).sum::<usize>());
            let place_of = |since: u64| places[since as usize - 1].0;
            prop_assert!(served[..abandoned].iter().all(|&since| place_of(since) == 0));
            for place in 0..4 {
                let of: Vec<u64> = served.iter().copied().filter(|&since| place_of(since) == place).collect();
                prop_assert!(of.is_sorted(), "{of:?}");
            }
        }

        /// With one worker, whose own ring and the queue are all that there is: the very policy that the other
        /// mechanism asks step by step serves the same sequence.
        #[test]
        fn without_rings_the_function_and_the_policy_serve_the_same_sequence(
            arrivals in proptest::collection::vec((any::<bool>(), any::<bool>()), 0..60),
        ) {
            let mut level = Level::default();
            for (since, &(is_abandoned, is_stale)) in (1u64..).zip(&arrivals) {
                let arrival = if is_abandoned { Arrival::Abandoned } else { Arrival::Task };
                match Aging.place(arrival, 0) {
                    Place::Tail(Queue::Mugging) => level.mugging.push_back((since, is_stale)),
                    _ => level.regular.push_back((since, is_stale)),
                }
            }
            let mut step_by_step = level.clone();
            let mut asked = Vec::new();
            loop {
                let sight = Sight {
                    mugging: !step_by_step.mugging.is_empty(),
                    regular: !step_by_step.regular.is_empty(),
                    ..Sight::default()
                };
                let Source::Head(queue) = Aging.take_from(sight) else { break };
                let (since, is_stale) = step_by_step.pop(queue).expect("the policy saw it");
                if !is_stale {
                    asked.push(since);
                }
            }
            prop_assert_eq!(core::iter::from_fn(|| level.next()).collect::<Vec<_>>(), asked);
        }
    }
}
