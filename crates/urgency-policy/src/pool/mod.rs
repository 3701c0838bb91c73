//! Within a level: which ready context comes next, and from where.
//!
//! Where ready contexts stand differs between the families of schedulers, so a policy answers with a *place*
//! and a *source*, and the mechanism has the structures:
//!
//! | structure | whose | policies |
//! |---|---|---|
//! | the **mugging queue** (abandoned stacks) and the **regular queue** (everything else) | one of each for a level | [`Aging`] |
//! | a set of **deques**, active, suspended and resumable | each worker's, at each level | [`Proactive`] |
//! | a **queue** of tasks, and perhaps a **slot** for one | each worker's, at each level | [`Queues`] |
//! | **shared queues** for what overflows or was yielded | one or several for a level | [`Queues`], [`Proactive`] |
//! | **adverts**: a queue of the numbers of overloaded workers | one for a level | [`Queues`] |
//!
//! A policy decides five things, all of them about plain data. A worker keeps one value of it.
//!
//! 1. a context became ready, or waits with forks that others may take: where does it go ([`PoolPolicy::place`])?
//! 2. a worker wants a context: where does it look ([`PoolPolicy::take_from`])? Asked again, with [`Sight::failed`]
//!    counting, until the worker finds one or gives up.
//! 3. the worker looks at another one with several deques: at which deque ([`PoolPolicy::choose`])?
//! 4. a worker took a deque from a queue and stole from it: what becomes of the deque
//!    ([`PoolPolicy::after_steal`])?
//! 5. a busy worker comes to a scheduling point: does it give something away ([`PoolPolicy::shed`])?
//!
//! The mechanism keeps these promises: an entry is worked on by one worker only, even if its deque
//! stands in both queues (the claim of a deque is atomic), and an entry that turns out to be empty
//! is dropped without asking.

use alloc::boxed::Box;

mod aged;
mod aging;
mod fitted;
mod kind;
mod lag;
mod open;
mod order;
mod plan;
mod proactive;
mod queues;
mod sharing;

pub use aged::{Aged, comes_first, oldest_of};
pub use aging::Aging;
pub use fitted::{Fitted, LOOKS, around};
pub use kind::{Kind, KindError, Policy};
pub use lag::{FREE, lagging};
pub use open::{AnyOrder, Layout, PoolOrder, QueueLayout};
pub use order::{End, Order, Picker};
pub use plan::{Overflow, Plan, PlanError};
pub use proactive::{Pick, Proactive};
pub use queues::Queues;
pub use sharing::{Amount, Asking, Sharing, Victims, deal};

/// What became ready, or stealable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Arrival {
    /// A stack whose worker left it for more urgent work: it waited for nothing. Or a stack that was handed a lock, for
    /// which others may wait in turn.
    Abandoned,
    /// A stack whose wait is over, with its deque.
    Resumable,
    /// A stack that begins to wait, with forks in its deque.
    Suspended,
    /// An async task that was woken or created, or another entry of a worker's queue.
    Task,
    /// A closure that has no stack yet: the beginning of a new computation.
    Root,
    /// A deque that got public forks while it stood in no queue; its stack is running or suspended.
    PublicForks,
    /// A context that gives way to others of its level once.
    Yielded,
    /// A context that gives way until something else has happened: it spins for an event that another
    /// context of its level brings about. (The dissertation's slow form, section 4.4.4: a local queue would
    /// hand it straight back, and a stack-like one for ever.)
    YieldedFar,
}

/// A queue that all workers share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Queue {
    /// The abandoned stacks.
    Mugging,
    /// Everything else.
    Regular,
    /// One of the queues for what overflows, by its number.
    Shared(usize),
}

/// Where a context goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Place {
    /// Behind everything that is in this queue.
    Tail(Queue),
    /// To the worker with this number: behind what is in its queue, or among its deques.
    Worker(usize),
    /// Into the slot of the worker that asks; what is there goes to the end of its queue.
    Slot,
    /// The worker's queue is full: it waits until there is room.
    Full,
    /// Nowhere: it is not ready any more, and comes back by a new [`Arrival`].
    Dropped,
}

/// What a worker that looks for work can see of its level.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Sight {
    /// The mugging queue has an entry.
    pub mugging: bool,
    /// The regular queue has an entry.
    pub regular: bool,
    /// Which of the first 64 shared queues have an entry.
    pub shared: u64,
    /// Somebody advertised that it is overloaded.
    pub adverts: bool,
    /// How many entries the worker's own queue has, or how many resumable deques are its own.
    pub own: usize,
    /// The worker's own slot is taken.
    pub slot: bool,
    /// The worker that asked this one for help, if one did since the last look.
    pub asked_by: Option<usize>,
    /// How many looks in a row found nothing.
    pub failed: u32,
}

/// Where a worker looks for work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Source {
    /// At the head of a shared queue.
    Head(Queue),
    /// In its own queue or slot.
    Own(End),
    /// Among its own resumable deques; which one is asked by [`PoolPolicy::choose`].
    OwnDeque,
    /// At another worker.
    Steal {
        /// Its number.
        victim: usize,
        /// How much of its queue.
        amount: Amount,
        /// Only if its queue has at least so many.
        least: usize,
    },
    /// At the worker that advertised first.
    Advert {
        /// How much of its queue.
        amount: Amount,
    },
    /// Nowhere, for now.
    Nowhere,
}

/// The worker for which a deque is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Chooser {
    /// Its own worker, to go on with it.
    Owner,
    /// Another one, to steal from it or to mug it: to go on with its abandoned stack.
    Thief,
}

/// What a thief left in the deque that it stole from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Left {
    /// At least one fork that can be stolen.
    Forks,
    /// Nothing.
    Nothing,
}

/// What a busy worker gives away at a scheduling point.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Shed {
    /// Nothing.
    Keep,
    /// It asks the worker with this number to steal from it.
    Ask(usize),
    /// It advertises that it is overloaded.
    Advertise,
    /// It sends its oldest entries, as many as [`deal`] counts, to the worker with this number, if that worker has
    /// none.
    Deal(usize),
}

/// In which order the ready contexts of one level are served. The text of the module says more.
///
/// The runtime calls the methods in the middle of the scheduler. They may spawn: no policy is asked where such work
/// goes. They may neither wait nor fork, which panics. A policy that panics is not asked again: its worker's entries go
/// to the own queue, or to the regular one.
pub trait PoolPolicy {
    /// A context became ready or stealable at this worker, whose queue has `own` entries: where does it
    /// go?
    fn place(&mut self, arrival: Arrival, own: usize) -> Place;

    /// The worker wants a context: where does it look?
    fn take_from(&mut self, sight: Sight) -> Source;

    /// Which of so many deques, numbered from the one that became stealable or resumable first?
    fn choose(&mut self, deques: usize, chooser: Chooser) -> usize {
        let _ = (deques, chooser);
        0
    }

    /// A worker took a deque from the head of a queue, and stole its oldest fork or continued its stack: what becomes
    /// of the deque?
    ///
    /// The simulator asks this. The runtime does not: there a deque with forks arrives anew, as
    /// [`Arrival::PublicForks`].
    fn after_steal(&mut self, left: Left) -> Place;

    /// The worker, whose queue has `own` entries, is busy and comes to a scheduling point: does it give
    /// something away?
    fn shed(&mut self, own: usize) -> Shed {
        let _ = own;
        Shed::Keep
    }
}

impl<P: PoolPolicy + ?Sized> PoolPolicy for Box<P> {
    fn place(&mut self, arrival: Arrival, own: usize) -> Place {
        (**self).place(arrival, own)
    }

    fn take_from(&mut self, sight: Sight) -> Source {
        (**self).take_from(sight)
    }

    fn choose(&mut self, deques: usize, chooser: Chooser) -> usize {
        (**self).choose(deques, chooser)
    }

    fn after_steal(&mut self, left: Left) -> Place {
        (**self).after_steal(left)
    }

    fn shed(&mut self, own: usize) -> Shed {
        (**self).shed(own)
    }
}

#[cfg(test)]
impl Sight {
    /// Another one at each step of a test.
    fn at_step(step: usize) -> Self {
        Sight {
            mugging: step.is_multiple_of(7),
            regular: step.is_multiple_of(3),
            shared: u64::from(step.is_multiple_of(5)),
            own: step % 4,
            failed: (step % 9) as u32,
            ..Sight::default()
        }
    }
}
