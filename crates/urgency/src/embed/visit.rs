//! A visit: a closure of a waiting thread that runs on a stack of another host.
//!
//! The visit lies in the visitor's frame, which the visitor leaves only when [`Visit::execute`] has ended:
//!
//! 1. The visitor makes the visit, inserts it into the host's pool, and waits until the countdown is over.
//! 2. A stack of the host takes the visit, runs the closure, writes the result and counts down. That is its last
//!    access.
//! 3. The visitor takes the result, or resumes the panic.

use super::{Countdown, Host};
use crate::{
    protocol::lent::Lent,
    sched::poll_context::{self, Departure},
    sched::stack::{Me, Stack},
    sched::{Forked, Kind, Taken},
    sys::clock,
};
use std::panic::resume_unwind;

#[repr(C)]
struct Visit<F, R> {
    header: Forked,
    lent: Lent<F, R>,
    ended: Countdown,
}

/// Runs `f` on a stack of `host`, which the caller is not.
pub(super) fn visit<F, R>(host: &Host, f: F) -> R
where
    F: FnOnce(bool) -> R + Send,
    R: Send,
{
    let visit = Visit {
        header: Forked::new(&Visit::<F, R>::KIND),
        lent: Lent::new(f),
        ended: Countdown::new(1),
    };
    // SAFETY: it is alive until it has run, because this waits for that; its closure is `Send`, and no thread has it.
    let taken = unsafe { Taken::take((&raw const visit).cast()) };
    let mut forked = host.taken(taken, false);
    let is_of_host = |me: &Me<'_>| me.is_of(&host.job);
    // The caller waits: a shutdown that the visit calls must not wait for the caller's task.
    forked.origin.task = Stack::with_own(|me| me.filter(is_of_host).and_then(Me::origin));
    let visits = &host.job.core.threads.visits;
    let departure = if visits.are_short() {
        Departure::Short
    } else {
        Departure::Long
    };
    let since = clock::now();
    poll_context::departing(departure, || host.job.insert_fork(forked));
    visit.ended.wait();
    visits.learn(clock::now().saturating_sub(since));
    // SAFETY: the countdown is over, so the result is written, and this is the only place that takes it.
    match unsafe { visit.lent.take_result() } {
        Ok(result) => result,
        Err(panic) => resume_unwind(panic),
    }
}

impl<F, R> Visit<F, R>
where
    F: FnOnce(bool) -> R + Send,
    R: Send,
{
    const KIND: Kind = Kind {
        execute: Self::execute,
        stolen: Self::stolen,
        name: std::any::type_name::<F>,
    };

    /// # Safety
    /// As [`Kind::execute`]: once, while the visitor waits.
    unsafe fn execute(this: *const Forked) {
        let this = this.cast::<Self>();
        // SAFETY: the visitor waits, and keeps the visit, until the countdown is over; a visit is executed once.
        unsafe { (*this).lent.run() };
        // SAFETY: valid until the count is zero; not touched after that.
        unsafe { Countdown::one_ended(&raw const (*this).ended) };
    }

    /// # Safety
    /// As [`Kind::stolen`].
    unsafe fn stolen(this: *const Forked) -> *const Forked {
        // SAFETY: no other thread looks at the visit before it is inserted.
        unsafe { Forked::init_thief(this) };
        this
    }
}
