//! Pool policies as values: what a mechanism needs to know of one, and any implementation behind one type.

use super::{Kind, KindError, Order, Overflow, PlanError, PoolPolicy, Sharing, plan::MOST_SHARED};
use crate::dice::Dice;
use alloc::{boxed::Box, sync::Arc};
use core::{any::Any, fmt, ops::Deref, str::FromStr};

/// The structures that a policy talks about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// A mugging queue and a regular queue for each level. [`Place::Tail`](super::Place::Tail) and
    /// [`Source::Head`](super::Source::Head) with these two are the places and sources.
    Central,
    /// A set of deques for each worker, at each level, and one shared queue for what yields far.
    /// [`Source::OwnDeque`](super::Source::OwnDeque) and [`Source::Steal`](super::Source::Steal) are the sources.
    Deques,
    /// A queue for each worker, at each level, with a slot, and shared queues.
    Queues(QueueLayout),
}

/// What the queues of [`Layout::Queues`] are like.
///
/// ```
/// use urgency_policy::pool::QueueLayout;
///
/// let none_is_shared = QueueLayout { shared: 0, ..QueueLayout::default() };
/// assert!(none_is_shared.check().is_err());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueLayout {
    /// How many shared queues there are, 1 to 64.
    pub shared: usize,
    /// How many entries a worker's queue holds.
    pub capacity: usize,
    /// A worker's queue is sorted by depth in the DAG, the least first; else by arrival.
    pub by_depth: bool,
    /// Nobody steals: work comes to a worker by [`Shed::Deal`](super::Shed::Deal) only.
    pub is_dealt: bool,
    /// The shared queues have no lock.
    pub is_lock_free: bool,
    /// Where the policy answers [`Place::Full`](super::Place::Full), the spawner gives its turn to what is queued.
    pub spawners_wait: bool,
}

impl QueueLayout {
    /// Whether its numbers are in their ranges.
    ///
    /// # Errors
    ///
    /// If one is not.
    pub fn check(&self) -> Result<(), PlanError> {
        if self.capacity == 0 {
            return Err(PlanError::Capacity);
        }
        if !(1..=MOST_SHARED).contains(&self.shared) {
            return Err(PlanError::SharedQueues(self.shared));
        }
        Ok(())
    }
}

impl Default for QueueLayout {
    /// Unbounded queues in the order of arrival, and one shared queue with a lock.
    fn default() -> Self {
        QueueLayout {
            shared: 1,
            capacity: usize::MAX,
            by_depth: false,
            is_dealt: false,
            is_lock_free: false,
            spawners_wait: false,
        }
    }
}

/// A choice of an order within a level.
///
/// A [`PoolPolicy`] is one worker's view. A [`PoolOrder`] is the choice that a user makes: it says which structures the
/// policy talks about ([`Layout`]), and makes a policy for each worker. [`Kind`] is the built-in one. [`AnyOrder`]
/// holds any of them.
///
/// # What a mechanism does with an answer that does not fit
///
/// An answer may name a queue or a worker that the layout does not have. A place that does not exist is the tail of the
/// own queue; under [`Layout::Central`] it is the tail of the regular queue. In a source that does not exist there is
/// nothing. A worker that finds nothing takes the oldest entry of any queue before it sleeps. A policy is asked under a
/// lock of its worker, so it must not call into the runtime, and it should not take long. The runtime does not ask a
/// policy again that has panicked: its worker goes on without, as if no answer fitted.
///
/// ```
/// use urgency_policy::{
///     dice::Dice,
///     pool::{Aging, AnyOrder, Arrival, Layout, Left, Place, PoolOrder, PoolPolicy, Queue, Sight, Source},
/// };
///
/// /// The two central queues in turn: what was abandoned does not keep everything else waiting.
/// #[derive(Debug)]
/// struct InTurn;
///
/// struct Turns(bool);
///
/// impl PoolOrder for InTurn {
///     fn layout(&self) -> Layout {
///         Layout::Central
///     }
///     fn policy(&self, _: usize, _: usize, _: &Dice) -> Box<dyn PoolPolicy + Send> {
///         Box::new(Turns(false))
///     }
/// }
///
/// impl PoolPolicy for Turns {
///     fn place(&mut self, arrival: Arrival, own: usize) -> Place {
///         Aging.place(arrival, own)
///     }
///     fn take_from(&mut self, sight: Sight) -> Source {
///         self.0 = !self.0;
///         let regular = sight.regular && (self.0 || !sight.mugging);
///         Aging.take_from(Sight { mugging: sight.mugging && !regular, regular, ..sight })
///     }
///     fn after_steal(&mut self, left: Left) -> Place {
///         Aging.after_steal(left)
///     }
/// }
///
/// let order = AnyOrder::from(InTurn);
/// let mut policy = order.policy(0, 4, &Dice::new(1));
/// let both = Sight { mugging: true, regular: true, ..Sight::default() };
/// assert_eq!(policy.take_from(both), Source::Head(Queue::Regular));
/// assert_eq!(policy.take_from(both), Source::Head(Queue::Mugging));
/// ```
pub trait PoolOrder: fmt::Debug + Send + Sync {
    /// The structures that its policies talk about. They never change.
    fn layout(&self) -> Layout;

    /// The policy of one worker of so many. Lots come from `dice`, which is the same for all workers:
    /// [`Dice::split`] makes a worker's own.
    fn policy(&self, me: usize, workers: usize, dice: &Dice) -> Box<dyn PoolPolicy + Send>;

    /// Whether its numbers are in their ranges.
    ///
    /// # Errors
    ///
    /// If one is not.
    fn check(&self) -> Result<(), PlanError> {
        Ok(())
    }
}

impl PoolOrder for Kind {
    fn layout(&self) -> Layout {
        match self {
            Kind::Aging => Layout::Central,
            Kind::Proactive { .. } => Layout::Deques,
            Kind::Queues(plan) => Layout::Queues(QueueLayout {
                shared: plan.shared_queues(),
                capacity: plan.capacity,
                by_depth: plan.order == Order::Deepest,
                is_dealt: plan.sharing == Sharing::Deal,
                is_lock_free: matches!(plan.overflow, Overflow::LockFree(_)),
                spawners_wait: plan.overflow == Overflow::Wait,
            }),
        }
    }

    fn policy(&self, me: usize, workers: usize, dice: &Dice) -> Box<dyn PoolPolicy + Send> {
        Box::new(Kind::policy(*self, me, workers, dice))
    }

    fn check(&self) -> Result<(), PlanError> {
        Kind::check(*self)
    }
}

/// Any order within a level. Clones share it.
#[derive(Clone, Debug)]
pub struct AnyOrder {
    order: Arc<dyn PoolOrder>,
    kind: Option<Kind>,
}

impl AnyOrder {
    /// The built-in kind that it is, if it is one. A mechanism may have code of its own for a kind, as the runtime has
    /// for [`Kind::Aging`]: [`Aged`](super::Aged).
    ///
    /// ```
    /// use urgency_policy::pool::{AnyOrder, Kind};
    ///
    /// assert_eq!(AnyOrder::default().kind(), Some(Kind::Aging));
    /// ```
    pub fn kind(&self) -> Option<Kind> {
        self.kind
    }

    /// Whether its numbers and its layout's are in their ranges.
    ///
    /// # Errors
    ///
    /// If one is not.
    pub fn check(&self) -> Result<(), PlanError> {
        self.checked_layout().map(drop)
    }

    /// Its layout, for a mechanism that makes the structures: these are the numbers that were checked, whatever the
    /// order says when it is asked again.
    ///
    /// ```
    /// use urgency_policy::pool::{AnyOrder, Layout};
    ///
    /// assert_eq!(AnyOrder::default().checked_layout(), Ok(Layout::Central));
    /// ```
    ///
    /// # Errors
    ///
    /// As [`check`](Self::check).
    pub fn checked_layout(&self) -> Result<Layout, PlanError> {
        let layout = self.order.layout();
        if let Layout::Queues(queues) = layout {
            queues.check()?;
        }
        self.order.check()?;
        Ok(layout)
    }
}

impl<O: PoolOrder + 'static> From<O> for AnyOrder {
    fn from(order: O) -> Self {
        AnyOrder {
            kind: (&order as &dyn Any).downcast_ref().copied(),
            order: Arc::new(order),
        }
    }
}

impl Default for AnyOrder {
    /// [`Kind::Aging`].
    fn default() -> Self {
        Kind::Aging.into()
    }
}

impl Deref for AnyOrder {
    type Target = dyn PoolOrder;

    fn deref(&self) -> &Self::Target {
        &*self.order
    }
}

impl FromStr for AnyOrder {
    type Err = KindError;

    /// One of [`Kind::NAMED`].
    fn from_str(name: &str) -> Result<Self, KindError> {
        name.parse::<Kind>().map(Self::from)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Plan, Sight};
    use super::*;

    #[derive(Debug)]
    struct Of(usize, usize);

    impl PoolOrder for Of {
        fn layout(&self) -> Layout {
            Layout::Queues(QueueLayout {
                shared: self.0,
                capacity: self.1,
                ..QueueLayout::default()
            })
        }

        fn policy(&self, me: usize, workers: usize, dice: &Dice) -> Box<dyn PoolPolicy + Send> {
            PoolOrder::policy(&Kind::Queues(Plan::FIFO), me, workers, dice)
        }
    }

    #[test]
    fn a_layout_out_of_range_is_named_and_an_own_order_is_no_kind() {
        let check = |shared, capacity| AnyOrder::from(Of(shared, capacity)).check();
        assert_eq!(check(64, 1), Ok(()));
        assert_eq!(check(65, 1), Err(PlanError::SharedQueues(65)));
        assert_eq!(check(0, 1), Err(PlanError::SharedQueues(0)));
        assert_eq!(check(1, 0), Err(PlanError::Capacity));
        assert_eq!(AnyOrder::from(Of(1, 1)).kind(), None);
    }

    #[test]
    fn a_kind_behind_the_open_trait_decides_as_it_does_itself() {
        for (name, kind, _) in Kind::NAMED {
            let order: AnyOrder = name.parse().unwrap();
            let dice = Dice::new(4);
            let (mut open, mut own) = (order.policy(1, 8, &dice), kind.policy(1, 8, &dice));
            for step in 0..200 {
                let sight = Sight::at_step(step);
                assert_eq!(open.take_from(sight), own.take_from(sight), "{name}");
                assert_eq!(open.shed(step % 20), own.shed(step % 20), "{name}");
            }
            assert_eq!(order.check(), Ok(()));
        }
    }
}
