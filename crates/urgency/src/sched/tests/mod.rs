//! What an operation of a program costs the scheduler, counted: [`steps`] counts how many workers are looked at,
//! [`costs`] are the tests, [`breadth`] by levels and stacks, and [`below`] by rings. What one expiry of relief does:
//! [`expiries`]. By how much an entry is overtaken: [`overtaking`]. And stacks for the tests of the scheduler's rooms.

mod below;
mod breadth;
mod costs;
pub(super) mod expiries;
mod overtaking;
pub(super) mod steps;

use super::{
    job::Job,
    stack::{Binding, Stack},
};
use std::sync::Arc;

/// A stack of this job, which the calling thread is.
pub(super) fn stack_of(job: &Arc<Job>) -> (Binding, Arc<Stack>) {
    let stack = Stack::new(&job.core);
    // SAFETY: the stack is new.
    let mut binding = unsafe { Binding::new(stack.clone()) };
    binding.take_up(job.clone());
    (binding, stack)
}

/// The same, in user code at this level, and its worker was revoked.
pub(super) fn revoked_at(job: &Arc<Job>, level: u8) -> (Binding, Arc<Stack>) {
    let (binding, stack) = stack_of(job);
    binding.me().set_level(level);
    binding.me().attention().leave(0, 8);
    assert_eq!(stack.attention.revoke(None), Some(0));
    (binding, stack)
}
