//! What a task inherits from the code that spawns it: a deadline, and locals.
//!
//! The calling thread knows what the code that runs on it has. A future that has something of its own puts it into the
//! thread for the time of each poll, and a closure for the time of its run. Spawning looks into the thread, with one
//! load: if there is nothing, the task is as usual; otherwise the task is wrapped. A stack never changes its thread, so
//! a closure that waits, or is abandoned, keeps what it has.
//!
//! A fork that another stack steals has what the code that made it had, at no cost for `join` (frames.rs).
//!
//! *The deadline of a child*: a task that was spawned under a deadline and is still there at that time is
//! cancelled, as by its handle. (Its output has no room for an error.) If the time is over when a task or a closure
//! is about to begin, it never does: work that waited in vain under overload must make room. The timer is set when
//! a task first has to wait. A closure is not cut off once it has started. At a shutdown there is no timer to be
//! had; then the task ends with it.
//!
//! The drop of a future or a closure is part of the work, and has what its polls had.

use super::local::Values;
use crate::{
    record::RecordedThread,
    sched::{run, stack::Stack},
    time::{Sleep, Timeout, sleep_until},
};
use std::{
    cell::{Cell, RefCell},
    future::Future,
    mem::{self, ManuallyDrop},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Instant,
};

/// See the module's text.
#[derive(Clone, Debug, Default)]
pub(crate) struct Inherited {
    pub(super) deadline: Option<Instant>,
    pub(super) values: Values,
    /// The recorded thread whose code this is; see `record`.
    pub(crate) recorded: Option<Arc<RecordedThread>>,
}

thread_local! {
    static HERE: RefCell<Option<Arc<Inherited>>> = const { RefCell::new(None) };
    /// Whether there is anything.
    static ANY: Cell<bool> = const { Cell::new(false) };
}

/// What the calling code has, if it has anything.
#[inline]
pub(crate) fn inherited() -> Option<Arc<Inherited>> {
    if !ANY.get() {
        return None;
    }
    HERE.try_with(|here| here.borrow().clone()).ok().flatten()
}

/// `f` as code that has what the calling code has, wherever it runs.
#[inline]
pub(crate) fn inheriting<R>(f: impl FnOnce() -> R) -> impl FnOnce() -> R {
    let inherited = inherited();
    move || run_as(inherited, f)
}

/// Runs `f` as code that has exactly this.
#[inline]
pub(crate) fn run_as<R>(what: Option<Arc<Inherited>>, f: impl FnOnce() -> R) -> R {
    if what.is_none() && !ANY.get() {
        return f();
    }
    run_inside(what, f)
}

/// As [`run_as`], where it makes a difference.
#[cold]
fn run_inside<R>(what: Option<Arc<Inherited>>, f: impl FnOnce() -> R) -> R {
    let entered = Stack::with_current(|me| {
        me.is_some_and(|me| {
            me.frames.enter(me.deque.bottom(), what.clone());
            true
        })
    });
    let _before = Before {
        here: replace(what),
        entered,
    };
    f()
}

/// Runs `f` as code that has what the calling code has, but for a deadline.
pub(crate) fn without_deadline<R>(f: impl FnOnce() -> R) -> R {
    match inherited().filter(|here| here.deadline.is_some()) {
        None => f(),
        Some(here) => {
            let mut here = Inherited::clone(&here);
            here.deadline = None;
            run_inside(Some(Arc::new(here)), f)
        }
    }
}

fn replace(what: Option<Arc<Inherited>>) -> Option<Arc<Inherited>> {
    ANY.set(what.is_some());
    HERE.try_with(|here| here.replace(what)).ok().flatten()
}

/// Puts back what was there before.
struct Before {
    here: Option<Arc<Inherited>>,
    /// The stack has a frame more.
    entered: bool,
}

impl Drop for Before {
    fn drop(&mut self) {
        let gone = replace(mem::take(&mut self.here));
        if self.entered {
            Stack::with_current(|me| me.expect("a stack's code ends there").frames.leave());
        }
        drop(gone);
    }
}

impl Inherited {
    /// Runs `f` as code that has this.
    pub(crate) fn run<R>(self: &Arc<Self>, f: impl FnOnce() -> R) -> R {
        run_inside(Some(self.clone()), f)
    }

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

/// A future that has something.
#[derive(Debug)]
pub(super) struct Within<F> {
    /// Pinned when the whole is: there is no access by `&mut` but for polling and dropping it in place.
    future: ManuallyDrop<F>,
    inherited: Arc<Inherited>,
}

impl<F> Within<F> {
    pub(super) fn new(future: F, inherited: Arc<Inherited>) -> Self {
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

/// The result of `future`, unless it takes longer than until `at`, or until a deadline that the calling code has
/// already. All tasks that `future` spawns have the same deadline: tasks that are still there then are cancelled, and
/// what has not begun then never runs. (A closure that has begun runs to its end.)
///
/// # Errors
///
/// The future's output is [`Elapsed`](crate::time::error::Elapsed) when the time is over. `future` is cancelled by
/// being dropped.
///
/// ```
/// use std::time::{Duration, Instant};
/// use urgency::life::{deadline, with_deadline};
///
/// let soon = Instant::now() + Duration::from_millis(2);
/// let result = urgency::block_on(with_deadline(soon, async move {
///     let child = urgency::spawn(async move {
///         assert_eq!(deadline(), Some(soon));
///         std::future::pending::<()>().await
///     });
///     child.await
/// }));
/// // The time is over: the child was cancelled, or the whole was first.
/// assert!(!matches!(result, Ok(Ok(()))));
/// ```
pub fn with_deadline<F: IntoFuture>(at: Instant, future: F) -> WithDeadline<F::IntoFuture> {
    let mut inherited = inherited().map_or_else(Inherited::default, |here| Inherited::clone(&here));
    let at = inherited.deadline.map_or(at, |before| before.min(at));
    inherited.deadline = Some(at);
    WithDeadline {
        within: Within::new(
            crate::time::timeout_at(at.into(), future),
            Arc::new(inherited),
        ),
    }
}

/// The deadline of the calling code: the earliest of its own deadlines and the deadlines of the code that spawned it.
/// `None`: it may take as long as it takes.
pub fn deadline() -> Option<Instant> {
    inherited().and_then(|here| here.deadline)
}

/// The future of [`with_deadline`].
#[derive(Debug)]
#[must_use = "futures do nothing unless awaited"]
pub struct WithDeadline<F> {
    /// As in `Within`.
    within: Within<Timeout<F>>,
}

impl<F: Future> Future for WithDeadline<F> {
    type Output = Result<F::Output, crate::time::error::Elapsed>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        // SAFETY: the only field is pinned with the whole.
        unsafe { self.map_unchecked_mut(|this| &mut this.within) }.poll(cx)
    }
}
