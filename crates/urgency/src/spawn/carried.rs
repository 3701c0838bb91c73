//! A task that inherits something (`inherit/`): its future or its closure, wrapped where it is spawned.
//!
//! The wrapper puts what is inherited into the calling thread, for the time of each poll and of the drop.
//!
//! *The deadline of a child*: a task that was spawned under a deadline and is still there at that time is
//! cancelled, as by its handle. (Its output has no room for an error.) If the time is over when a task or a closure is
//! about to begin, it never begins: work that waited in vain under overload must make room. The timer is set when a
//! task first has to wait. A closure is not cut off once it has started. At a shutdown no timer can be had; then the
//! task ends with the runtime.
//!
//! The drop of a future or a closure is part of the work, and has what its polls had.

use crate::{
    inherit::Inherited,
    sched::serve::run,
    time::{Sleep, sleep_until},
};
use std::{
    future::Future,
    mem::{self, ManuallyDrop},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Instant,
};

impl Inherited {
    /// Runs `f`, the closure of a task that inherits this.
    pub(crate) fn run_closure<R>(self: &Arc<Self>, f: impl FnOnce() -> R) -> R {
        match &self.recorded {
            None => self.run(f),
            Some(recorded) => recorded.run(|| self.run(f)),
        }
    }

    /// `future`, as a task that inherits this.
    pub(crate) fn carry<F: Future>(self: Arc<Self>, future: F) -> Carried<F> {
        Carried {
            limit: self.deadline.map(|at| sleep_until(at.into())),
            has_begun: false,
            future: Within::new(future, self),
        }
    }

    /// `closure`, as the run of a task that inherits this.
    pub(crate) fn carry_closure<F>(self: Arc<Self>, closure: F) -> CarriedClosure<F> {
        CarriedClosure {
            closure: Some(closure),
            inherited: self,
        }
    }

    fn is_too_late(&self) -> bool {
        self.deadline.is_some_and(|at| at <= Instant::now())
    }
}

/// Cancels the task that is being polled. Takes effect when this poll returns, pending.
fn cancel_this_task() {
    run::with_current_task(|task| {
        if let Some(task) = task {
            task.cancel();
        }
    });
}

/// A future whose code has something that it, and the tasks it spawns, inherit: a deadline
/// ([`with_deadline`](crate::life::with_deadline)) or a local ([`Local::with`](crate::life::Local::with)). The future
/// has it in its polls and when it is dropped.
///
/// ```
/// use urgency::life::{Local, Within};
///
/// static TENANT: Local<u32> = Local::new();
///
/// let work: Within<_> = TENANT.with(7, async { *TENANT.get().expect("it is inherited") });
/// assert_eq!(urgency::block_on(work), 7);
/// ```
#[derive(Debug)]
#[must_use = "futures do nothing unless awaited"]
pub struct Within<F> {
    /// Pinned when the whole is: there is no access by `&mut` but for polling and dropping it in place.
    future: ManuallyDrop<F>,
    inherited: Arc<Inherited>,
}

impl<F> Within<F> {
    pub(crate) fn new(future: F, inherited: Arc<Inherited>) -> Self {
        Within {
            future: ManuallyDrop::new(future),
            inherited,
        }
    }
}

impl<F> Drop for Within<F> {
    fn drop(&mut self) {
        let Within { future, inherited } = self;
        // SAFETY: dropped here only, in place, and never used after it.
        inherited.run(|| unsafe { ManuallyDrop::drop(future) });
    }
}

impl<F: Future> Future for Within<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        // SAFETY: `future` is only ever accessed pinned, and moves with the whole only.
        let (future, inherited) = unsafe {
            let this = self.get_unchecked_mut();
            (Pin::new_unchecked(&mut *this.future), &this.inherited)
        };
        inherited.run(|| future.poll(cx))
    }
}

/// The future of a task that inherits something.
pub(crate) struct Carried<F> {
    /// As in `Within`.
    future: Within<F>,
    limit: Option<Sleep>,
    has_begun: bool,
}

impl<F: Future> Future for Carried<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        match self.future.inherited.recorded.clone() {
            None => self.poll_plain(cx),
            Some(recorded) => recorded.poll(cx, |cx| self.poll_plain(cx)),
        }
    }
}

impl<F: Future> Carried<F> {
    fn poll_plain(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        // SAFETY: as in `Within`; the rest is Unpin.
        let (future, limit, has_begun) = unsafe {
            let this = self.get_unchecked_mut();
            let future = Pin::new_unchecked(&mut this.future);
            (future, &mut this.limit, &mut this.has_begun)
        };
        if !mem::replace(has_begun, true) && future.inherited.is_too_late() {
            cancel_this_task();
            return Poll::Pending;
        }
        if let Poll::Ready(output) = future.poll(cx) {
            return Poll::Ready(output);
        }
        // Too late, or shut down: either ends the task.
        if let Some(limit) = limit
            && limit.poll_unless_shut(cx).is_ready()
        {
            cancel_this_task();
        }
        Poll::Pending
    }
}

/// The closure of a task that inherits something, as a future: its one poll is the run.
pub(crate) struct CarriedClosure<F> {
    /// Until it runs. Never pinned.
    closure: Option<F>,
    inherited: Arc<Inherited>,
}

impl<F> Unpin for CarriedClosure<F> {}

impl<F: FnOnce() -> T, T> Future for CarriedClosure<F> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<T> {
        if self.inherited.is_too_late() {
            cancel_this_task();
            return Poll::Pending;
        }
        let closure = self
            .closure
            .take()
            .expect("ready at its first poll, or dropped after it");
        Poll::Ready(self.inherited.run_closure(closure))
    }
}

impl<F> Drop for CarriedClosure<F> {
    fn drop(&mut self) {
        if let Some(closure) = self.closure.take() {
            self.inherited.run(|| drop(closure));
        }
    }
}
