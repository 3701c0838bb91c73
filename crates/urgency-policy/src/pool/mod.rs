//! Within a level: which ready context comes next.
//!
//! Each level has one pool for all workers, made of two queues, and a worker that serves the level
//! takes from its heads:
//!
//! - the **mugging queue**: stacks that were abandoned for more urgent work. They could go on at
//!   once, so whoever takes one continues it (*mugs* it).
//! - the **regular queue**: everything else that is ready.
//!
//! A policy decides three things, all of them about plain data, so that a queue can be anything:
//!
//! 1. a context became ready: where does it go ([`PoolPolicy::place`])?
//! 2. a worker wants one: from which queue ([`PoolPolicy::take_from`])?
//! 3. a worker took a deque from a queue and stole from it: what becomes of the deque
//!    ([`PoolPolicy::after_steal`])?
//!
//! The mechanism keeps these promises: an entry is worked on by one worker only, even if its deque
//! stands in both queues (the claim of a deque is atomic), and an entry that turns out to be empty
//! is dropped without asking.

mod aging;

pub use aging::Aging;

/// What became ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Arrival {
    /// A stack whose worker left it for more urgent work. It waited for nothing.
    Abandoned,
    /// A stack whose wait is over, with its deque.
    Resumable,
    /// An async task that was woken or created.
    Task,
    /// A closure that has no stack yet: the first job of a new computation.
    Root,
    /// A deque that got public jobs while it stood in no queue; its stack is running or suspended.
    PublicJobs,
}

/// One of the two queues of a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Queue {
    /// The abandoned stacks.
    Mugging,
    /// Everything else.
    Regular,
}

/// Where a context goes: the end of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Place {
    /// Behind everything that is in this queue.
    Tail(Queue),
    /// Nowhere: it is not ready any more, and comes back by a new [`Arrival`].
    Dropped,
}

/// Which queues of a pool have entries, as far as the worker can see.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Occupied {
    /// The mugging queue has an entry.
    pub mugging: bool,
    /// The regular queue has an entry.
    pub regular: bool,
}

/// What a thief left in the deque that it stole from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Left {
    /// At least one job that can be stolen.
    Jobs,
    /// Nothing.
    Nothing,
}

/// In which order the ready contexts of one level are served. See the [module's text](self).
pub trait PoolPolicy {
    /// A context became ready: where does it go?
    fn place(&mut self, arrival: Arrival) -> Place;

    /// A worker wants a context: from the head of which queue? `None` if there is none, and only
    /// then.
    fn take_from(&mut self, occupied: Occupied) -> Option<Queue>;

    /// A worker took a deque from the head of a queue, and stole its oldest job or continued its
    /// stack: what becomes of the deque?
    fn after_steal(&mut self, left: Left) -> Place;
}
