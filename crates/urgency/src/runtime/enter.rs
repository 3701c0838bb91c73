//! `Handle::enter`: a runtime for the free functions of a piece of synchronous code.
//!
//! A thread has a list of what it has entered. The last entry counts as long as the thread is in the same place as at
//! the entering: on the same stack and in the same task, or on none. So code that runs inside [`Handle::run`] finds the
//! runtime of its stack, also where the thread had entered another one before, and the innermost of both wins. A task
//! that runs on top of code that waits for it finds the runtime of its stack, too.
//!
//! The guards are dropped in the reverse order, which [`EnterGuard`] checks. In any order an entry goes with its guard:
//! a panic drops the guards of a vector in their order.

use super::{Handle, context::current_if_any};
use crate::{
    sched::{job::Job, stack::Stack},
    tasks::Header,
};
use std::{
    cell::{Cell, RefCell},
    marker::PhantomData,
    ptr::{self, NonNull},
    sync::{Arc, MutexGuard},
    thread,
};

/// A stack and the task that it runs, to be compared; nothing on a plain thread.
type Place = Option<(*const Stack, Option<NonNull<Header>>)>;

struct Entered {
    /// As in its guard.
    number: u64,
    job: Arc<Job>,
    place: Place,
}

thread_local! {
    static ENTERED: RefCell<Vec<Entered>> = const { RefCell::new(Vec::new()) };
    /// How many there are: one load tells the usual answer.
    static DEPTH: Cell<usize> = const { Cell::new(0) };
    /// The number of the last entry.
    static NUMBER: Cell<u64> = const { Cell::new(0) };
}

fn place() -> Place {
    Stack::with_own(|me| me.map(|me| (ptr::from_ref(me.shared()), me.task())))
}

/// The runtime that the calling code has entered, if it has.
#[inline]
pub(super) fn entered() -> Option<Arc<Job>> {
    if DEPTH.get() == 0 {
        return None;
    }
    let last = |entered: &RefCell<Vec<Entered>>| {
        let entered = entered.borrow();
        let last = entered.last().filter(|last| last.place == place());
        last.map(|last| last.job.clone())
    };
    ENTERED.try_with(last).ok().flatten()
}

/// For code that runs in the runtime of `job` from here on, on the stack where it was called: if the stack has entered
/// another one, it enters this one on top.
#[inline]
pub(super) fn entered_again(job: &Arc<Job>) -> Option<EnterGuard<'static>> {
    entered().map(|_| EnterGuard::new(job.clone()))
}

/// The calling code is inside a runtime until this is dropped; see [`Handle::enter`].
///
/// # Panics
///
/// The drop panics if a guard that was made later on this thread has not been dropped before. The runtime is left all
/// the same.
#[derive(Debug)]
#[must_use = "the runtime is left when the guard is dropped"]
pub struct EnterGuard<'a> {
    _entry: Entry,
    runtime: PhantomData<&'a Handle>,
}

/// What leaves the runtime. It has no lifetime, so the end of a guard's scope is no use of the runtime: a program may
/// shut a runtime down by value in the scope of a guard, as with Tokio's.
#[derive(Debug)]
struct Entry {
    number: u64,
    /// Not `Send`, as the guard of a lock: the entry is the thread's.
    thread: PhantomData<MutexGuard<'static, ()>>,
}

impl EnterGuard<'_> {
    fn new(job: Arc<Job>) -> Self {
        let (place, number) = (place(), NUMBER.get() + 1);
        NUMBER.set(number);
        ENTERED.with_borrow_mut(|all| all.push(Entered { number, job, place }));
        DEPTH.set(DEPTH.get() + 1);
        EnterGuard {
            _entry: Entry {
                number,
                thread: PhantomData,
            },
            runtime: PhantomData,
        }
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        let depth = DEPTH.get();
        DEPTH.set(depth - 1);
        let take = |entered: &RefCell<Vec<Entered>>| {
            let mut entered = entered.borrow_mut();
            let place = entered.iter().rposition(|one| one.number == self.number);
            place.map(|place| (place + 1, entered.remove(place)))
        };
        let taken = ENTERED.try_with(take).ok().flatten();
        // The entry is dropped behind this; it may be the last of its runtime.
        let place = taken.as_ref().map_or(depth, |&(place, _)| place);
        assert!(
            place == depth || thread::panicking(),
            "the guard of `enter` number {place} on this thread was dropped while there are {depth}: drop them in the \
             reverse of the order in which they were made"
        );
    }
}

impl Handle {
    /// From now on, until the guard is dropped, the free functions of this crate use this runtime where this thread
    /// calls them: `spawn`, `at`, `join`, [`Handle::current`], timers and sockets. A plain thread gets no worker by it,
    /// and nothing waits; [`run`](Self::run) is the form with a worker. On a stack of another runtime `join` and
    /// `scope` go on to fork there.
    ///
    /// In async code a guard cannot be kept across an `.await`.
    ///
    /// ```
    /// use urgency::{Runtime, runtime::Handle};
    ///
    /// let runtime = Runtime::builder().workers(2).build()?;
    /// assert!(Handle::try_current().is_err());
    /// let guard = runtime.enter();
    /// let workers = urgency::spawn(async { Runtime::current().stats().workers.len() });
    /// drop(guard);
    /// assert_eq!(workers.get().unwrap(), 2);
    /// # Ok::<(), urgency::BuildError>(())
    /// ```
    pub fn enter(&self) -> EnterGuard<'_> {
        EnterGuard::new(self.job.clone())
    }

    /// As [`current`](Self::current), but on a plain thread that has [entered](Self::enter) no runtime an error: no
    /// global runtime starts.
    ///
    /// # Errors
    ///
    /// On such a thread.
    ///
    /// ```
    /// use urgency::runtime::Handle;
    ///
    /// assert!(Handle::try_current().unwrap_err().is_missing_context());
    /// assert!(urgency::block_on(async { urgency::spawn(async { Handle::try_current() }).await }).unwrap().is_ok());
    /// ```
    pub fn try_current() -> Result<Handle, TryCurrentError> {
        match current_if_any() {
            Some(job) => Ok(Handle { job }),
            None => Err(TryCurrentError(())),
        }
    }
}

/// The calling code is in no runtime: the error of [`Handle::try_current`].
#[derive(Debug)]
pub struct TryCurrentError(());

impl TryCurrentError {
    /// Whether there is no runtime here: the only reason there is.
    pub fn is_missing_context(&self) -> bool {
        true
    }
}

error_text!(
    TryCurrentError,
    "the calling code is in no runtime: use `Handle::current`, which starts the global one here, or call this \
     inside of `Handle::run`, `Handle::block_on` or a guard of `Handle::enter`"
);
