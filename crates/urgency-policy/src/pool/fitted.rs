//! A policy whose answers fit: each names what the layout has.
//!
//! A policy of a program's own may name a queue or a worker that does not exist. A mechanism that makes structures by
//! numbers asks it through [`Fitted`], and needs no more checks. What a mechanism does when a policy finds nothing, the
//! *sweep*, is in [`LOOKS`] and [`around`].

use super::{Arrival, Chooser, Layout, Left, Place, PoolPolicy, Queue, Shed, Sight, Source};

/// How many looks of a worker in a row may find nothing before the worker *sweeps*: it takes the oldest entry of any
/// queue that has one. It does so at once when its policy says that there is nowhere to look.
///
/// ```
/// assert_eq!(urgency_policy::pool::LOOKS, 16);
/// ```
pub const LOOKS: u32 = 16;

/// In which order a worker sweeps the queues of so many workers: its own first. After these come the shared queues by
/// their numbers; of the central ones the mugging queue is the first.
///
/// ```
/// assert!(urgency_policy::pool::around(2, 4).eq([2, 3, 0, 1]));
/// ```
pub fn around(me: usize, workers: usize) -> impl Iterator<Item = usize> {
    (0..workers).map(move |step| (me + step) % workers)
}

/// The policy of one worker, whose answers are made to fit.
///
/// 1. A place that does not exist is the [usual one](Layout::usual_place).
/// 2. A source that does not exist is [`Source::Nowhere`]. One that exists and has nothing is left as it is: the policy
///    is asked again.
/// 3. A number of no deque is the last deque.
/// 4. A worker that does not exist is given nothing, and asked for nothing.
///
/// What becomes of a deque after a steal is no matter of numbers, and left as it is.
///
/// ```
/// use urgency_policy::pool::{Aging, Arrival, Fitted, Layout, Place, PoolPolicy};
///
/// // Aging speaks of the central queues. Where each worker has deques, they do not exist.
/// let mut policy = Fitted::new((Layout::Deques, 4), 1, Aging);
/// assert_eq!(policy.place(Arrival::Task, 0), Place::Worker(1));
/// assert_eq!(Layout::Deques.usual_place(1), Place::Worker(1));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fitted<P> {
    layout: Layout,
    workers: usize,
    me: usize,
    policy: P,
}

impl<P> Fitted<P> {
    /// The policy of worker `me`, for these structures of so many workers.
    pub fn new((layout, workers): (Layout, usize), me: usize, policy: P) -> Self {
        Fitted {
            layout,
            workers,
            me,
            policy,
        }
    }
}

impl Layout {
    /// Where an entry of worker `me` goes of which no policy says anything: to the own queue, or to the regular one.
    pub fn usual_place(self, me: usize) -> Place {
        match self {
            Layout::Central => Place::Tail(Queue::Regular),
            Layout::Deques | Layout::Queues(_) => Place::Worker(me),
        }
    }

    /// Whether this is one of the queues that all workers share.
    fn has(self, queue: Queue) -> bool {
        match (self, queue) {
            (Layout::Central, queue) => matches!(queue, Queue::Mugging | Queue::Regular),
            (Layout::Deques, queue) => queue == Queue::Shared(0),
            (Layout::Queues(queues), Queue::Shared(number)) => number < queues.shared,
            (Layout::Queues(_), Queue::Mugging | Queue::Regular) => false,
        }
    }
}

impl<P: PoolPolicy> PoolPolicy for Fitted<P> {
    fn place(&mut self, arrival: Arrival, own: usize) -> Place {
        let place = self.policy.place(arrival, own);
        let is_central = self.layout == Layout::Central;
        let fits = match place {
            Place::Tail(queue) => self.layout.has(queue),
            Place::Worker(worker) => !is_central && worker < self.workers,
            Place::Slot => !is_central,
            Place::Full => matches!(self.layout, Layout::Queues(it) if it.spawners_wait),
            Place::Dropped => false,
        };
        match fits {
            true => place,
            false => self.layout.usual_place(self.me),
        }
    }

    fn take_from(&mut self, sight: Sight) -> Source {
        let source = self.policy.take_from(sight);
        let is_central = self.layout == Layout::Central;
        let fits = match source {
            Source::Head(queue) => self.layout.has(queue),
            Source::Steal { victim, .. } => !is_central && victim < self.workers,
            Source::Own(_) | Source::OwnDeque | Source::Advert { .. } => !is_central,
            Source::Nowhere => true,
        };
        match fits {
            true => source,
            false => Source::Nowhere,
        }
    }

    fn choose(&mut self, deques: usize, chooser: Chooser) -> usize {
        let nth = self.policy.choose(deques, chooser);
        nth.min(deques.saturating_sub(1))
    }

    fn after_steal(&mut self, left: Left) -> Place {
        self.policy.after_steal(left)
    }

    fn shed(&mut self, own: usize) -> Shed {
        match self.policy.shed(own) {
            Shed::Ask(other) | Shed::Deal(other) if other >= self.workers => Shed::Keep,
            shed => shed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Amount, End, QueueLayout};
    use super::*;

    /// Says the same at each question.
    #[derive(Clone, Copy)]
    struct Says(Place, Source, usize, Shed);

    impl PoolPolicy for Says {
        fn place(&mut self, _: Arrival, _: usize) -> Place {
            self.0
        }

        fn take_from(&mut self, _: Sight) -> Source {
            self.1
        }

        fn choose(&mut self, _: usize, _: Chooser) -> usize {
            self.2
        }

        fn after_steal(&mut self, _: Left) -> Place {
            self.0
        }

        fn shed(&mut self, _: usize) -> Shed {
            self.3
        }
    }

    const ME: usize = 1;
    const WORKERS: usize = 3;

    fn queues(shared: usize, spawners_wait: bool) -> Layout {
        Layout::Queues(QueueLayout {
            shared,
            spawners_wait,
            ..QueueLayout::default()
        })
    }

    fn fitted(layout: Layout, says: Says) -> Fitted<Says> {
        Fitted::new((layout, WORKERS), ME, says)
    }

    fn place(layout: Layout, place: Place) -> Place {
        let says = Says(place, Source::Nowhere, 0, Shed::Keep);
        fitted(layout, says).place(Arrival::Task, 0)
    }

    fn source(layout: Layout, source: Source) -> Source {
        let says = Says(Place::Dropped, source, 0, Shed::Keep);
        fitted(layout, says).take_from(Sight::default())
    }

    /// Of all queues, these are there.
    fn check_queues(layout: Layout, there: &[Queue]) {
        let numbers = [0, 1, 2, 3, 63, 64, usize::MAX].map(Queue::Shared);
        for queue in [Queue::Mugging, Queue::Regular].into_iter().chain(numbers) {
            let is_there = there.contains(&queue);
            let (tail, head) = (Place::Tail(queue), Source::Head(queue));
            let expected = match is_there {
                true => (tail, head),
                false => (layout.usual_place(ME), Source::Nowhere),
            };
            let got = (place(layout, tail), source(layout, head));
            assert_eq!(got, expected, "{layout:?}: {queue:?}");
        }
    }

    #[test]
    fn each_layout_has_its_own_shared_queues() {
        check_queues(Layout::Central, &[Queue::Mugging, Queue::Regular]);
        check_queues(Layout::Deques, &[Queue::Shared(0)]);
        check_queues(queues(1, false), &[Queue::Shared(0)]);
        check_queues(queues(3, true), &[0, 1, 2].map(Queue::Shared));
    }

    #[test]
    fn a_place_that_does_not_exist_is_the_own_queue_or_the_regular_one() {
        let regular = Place::Tail(Queue::Regular);
        let own = Place::Worker(ME);
        for spot in [Place::Worker(2), Place::Slot, Place::Full, Place::Dropped] {
            assert_eq!(place(Layout::Central, spot), regular, "{spot:?}");
        }
        for layout in [Layout::Deques, queues(2, false), queues(2, true)] {
            assert_eq!(place(layout, Place::Worker(2)), Place::Worker(2));
            assert_eq!(place(layout, Place::Worker(3)), own);
            assert_eq!(place(layout, Place::Worker(usize::MAX)), own);
            assert_eq!(place(layout, Place::Slot), Place::Slot);
            assert_eq!(place(layout, Place::Dropped), own);
        }
        assert_eq!(place(Layout::Deques, Place::Full), own);
        assert_eq!(place(queues(2, false), Place::Full), own);
        assert_eq!(place(queues(2, true), Place::Full), Place::Full);
    }

    #[test]
    fn a_source_that_does_not_exist_is_nowhere() {
        let amount = Amount::One;
        let steal = |victim| Source::Steal {
            victim,
            amount,
            least: 1,
        };
        let advert = Source::Advert { amount };
        let own = [
            Source::Own(End::Slot),
            Source::OwnDeque,
            advert,
            steal(0),
            steal(2),
        ];
        for from in own {
            assert_eq!(source(Layout::Central, from), Source::Nowhere, "{from:?}");
            assert_eq!(source(Layout::Deques, from), from);
            assert_eq!(source(queues(1, false), from), from);
        }
        for layout in [Layout::Central, Layout::Deques, queues(1, false)] {
            assert_eq!(source(layout, steal(3)), Source::Nowhere);
            assert_eq!(source(layout, steal(usize::MAX)), Source::Nowhere);
            assert_eq!(source(layout, Source::Nowhere), Source::Nowhere);
        }
    }

    #[test]
    fn a_number_of_no_deque_is_the_last_one() {
        let mut policy = fitted(
            Layout::Deques,
            Says(Place::Slot, Source::Nowhere, 7, Shed::Keep),
        );
        let chosen = [0, 1, 7, 8, 9].map(|deques| policy.choose(deques, Chooser::Thief));
        assert_eq!(chosen, [0, 0, 6, 7, 7]);
    }

    #[test]
    fn nothing_is_given_to_a_worker_that_does_not_exist() {
        let shed = |shed| {
            fitted(
                queues(1, false),
                Says(Place::Slot, Source::Nowhere, 0, shed),
            )
            .shed(9)
        };
        assert_eq!(shed(Shed::Advertise), Shed::Advertise);
        for with in [Shed::Ask, Shed::Deal] {
            assert_eq!(shed(with(2)), with(2));
            assert_eq!(shed(with(3)), Shed::Keep);
            assert_eq!(shed(with(usize::MAX)), Shed::Keep);
        }
    }

    #[test]
    fn a_built_in_policy_always_fits() {
        use super::super::{AnyOrder, Kind};
        use crate::dice::Dice;
        for (name, kind, _) in Kind::NAMED {
            let order = AnyOrder::from(kind);
            let layout = order.checked_layout().unwrap();
            let policy = || order.policy(ME, WORKERS, &Dice::new(5));
            let (mut own, mut fitted) = (policy(), Fitted::new((layout, WORKERS), ME, policy()));
            for step in 0..500 {
                let arrivals = [Arrival::Task, Arrival::YieldedFar, Arrival::Abandoned];
                let (arrival, len) = (arrivals[step % 3], step % 300);
                let sight = Sight::at_step(step);
                let place = own.place(arrival, len);
                assert_eq!(fitted.place(arrival, len), place, "{name}");
                assert_eq!(fitted.take_from(sight), own.take_from(sight), "{name}");
                assert_eq!(fitted.shed(len), own.shed(len), "{name}");
            }
        }
    }

    #[test]
    fn a_sweep_begins_at_the_own_queue_and_goes_once_around() {
        assert!(around(1, 3).eq([1, 2, 0]));
        assert!(around(0, 1).eq([0]));
    }
}
