//! How a worker changes threads: stacks that wait, and the threads that take their workers over.
//!
//! A worker is a permission, and no stack changes its thread. So whenever a stack waits, is left for more urgent work,
//! or can go on, a worker goes from one thread to another. What is decided here is to which.
//!
//! Read [`wait`] first: a stack waits, is abandoned, comes back. Then [`hand_off`]: the three steps in which a worker
//! goes to another thread; [`threads`]: which spare thread it is, and when one is made; [`thread_options`]: how;
//! [`without_thread`]: what if none can be had; [`block`]: synchronous code waits; [`external`]: plain threads that
//! enter; [`lending`]: one of them polls tasks while it waits.
//!
//! Before a stack parks, its thread looks for the worker's next work in [`serve`](super::serve), which is also how a
//! stack that can go on gets back into the pool. A spare waits in [`poll`](super::poll) if a thread should be there. A
//! thread that gets a worker asks [`machine`](super::machine) where to run, and [`rescue`](super::rescue) whether its
//! class in the kernel fits the work.

pub(crate) mod block;
pub(super) mod external;
mod hand_off;
mod lending;
pub(crate) mod thread_options;
pub(super) mod threads;
mod wait;
mod without_thread;
