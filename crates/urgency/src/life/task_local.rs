//! `task_local!`: a value that a future has in its own polls, and that nothing inherits, as in Tokio.
//!
//! 1. A key is a thread-local pointer to the innermost [`Entered`] of that key. A scope has one on its native stack for
//!    the time of a poll, a drop or a call, and takes it away at the end of that time, also if it unwinds.
//! 2. A stack never changes its thread. So these are nested as the calls of the thread are, and the innermost one lives
//!    as long as the code that runs inside it.
//! 3. A stack that waits may run another task on top of the wait. That task is not inside the scope. So an `Entered`
//!    names the task around it, and counts only for code of that task (as in `spawn/name.rs`).
//!
//! Rejected: a cell with the value, as Tokio has. It is borrowed while `with` runs, and code that waits in there may
//! run a task that enters a scope of the same key.

use crate::{spawn::task_of_stack, tasks::Id};
use std::{
    cell::Cell,
    fmt,
    future::Future,
    mem,
    pin::Pin,
    ptr,
    task::{Context, Poll},
    thread,
};

/// A value for a future, which it has in its polls and when it is dropped. A key is declared as by
/// `std::thread_local`, without a first value.
///
/// Nothing inherits it: a task that the future spawns has no value, nor has a closure that runs on another thread. A
/// [`Local`](crate::life::Local) is inherited. The methods are [`LocalKey`](crate::task::LocalKey)'s.
///
/// ```
/// urgency::task_local! {
///     static REQUEST: u64;
///     /// Need not be `Sync`.
///     pub static STEPS: std::cell::Cell<u32>;
/// }
///
/// let steps = urgency::block_on(REQUEST.scope(7, STEPS.scope(Default::default(), async {
///     assert_eq!(REQUEST.get(), 7);
///     let child = urgency::spawn(async { REQUEST.try_get().is_err() });
///     assert!(child.await.unwrap());
///     STEPS.with(|steps| steps.set(steps.get() + 1));
///     STEPS.with(|steps| steps.get())
/// })));
/// assert_eq!(steps, 1);
/// ```
#[macro_export]
macro_rules! task_local {
    () => {};
    ($(#[$attribute:meta])* $vis:vis static $name:ident: $type:ty $(; $($rest:tt)*)?) => {
        $(#[$attribute])*
        $vis static $name: $crate::life::LocalKey<$type> = {
            ::std::thread_local! {
                static INNERMOST: $crate::life::Innermost<$type> =
                    const { $crate::life::Innermost::new() };
            }
            $crate::life::LocalKey::new(INNERMOST)
        };
        $($crate::task_local! { $($rest)* })?
    };
}

/// The innermost scope of a key that a thread has entered, or null.
#[doc(hidden)]
pub struct Innermost<T>(Cell<*const Entered<T>>);

impl<T> Innermost<T> {
    #[doc(hidden)]
    pub const fn new() -> Self {
        Innermost(Cell::new(ptr::null()))
    }
}

/// A scope that is entered, on the native stack of the code that entered it.
struct Entered<T> {
    /// The task around it.
    task: Option<Id>,
    /// Null if the value was taken.
    value: *const T,
}

/// A key of [`task_local!`](crate::task_local), which is how it is made: the place of a value for each future.
///
/// ```
/// urgency::task_local! {
///     static USER: String;
/// }
///
/// fn greet() -> String {
///     USER.try_with(|name| format!("Hello, {name}")).unwrap_or("Hello".into())
/// }
///
/// let inside = urgency::block_on(USER.scope("Ada".into(), async { greet() }));
/// assert_eq!(inside, "Hello, Ada");
/// assert_eq!(USER.sync_scope("Bob".into(), greet), "Hello, Bob");
/// assert_eq!(greet(), "Hello");
/// ```
pub struct LocalKey<T: 'static> {
    innermost: thread::LocalKey<Innermost<T>>,
}

debug_struct!([T] LocalKey<T>);

impl<T: 'static> LocalKey<T> {
    #[doc(hidden)]
    pub const fn new(innermost: thread::LocalKey<Innermost<T>>) -> Self {
        LocalKey { innermost }
    }

    /// `future` as code that has this value, in its polls and when it is dropped. It hides the value of a scope around
    /// it. The value is dropped with the future that this gives.
    pub fn scope<F: Future>(&'static self, value: T, future: F) -> TaskLocalFuture<T, F> {
        TaskLocalFuture {
            key: self,
            value: Some(value),
            future: Some(future),
        }
    }

    /// As [`scope`](Self::scope), for a closure.
    pub fn sync_scope<R>(&'static self, value: T, f: impl FnOnce() -> R) -> R {
        self.enter(Some(&value), f)
    }

    /// Runs `f` with the value of the calling code.
    ///
    /// # Panics
    ///
    /// If the calling code has none; [`try_with`](Self::try_with) gives an error there.
    #[track_caller]
    pub fn with<R>(&'static self, f: impl FnOnce(&T) -> R) -> R {
        match self.try_with(f) {
            Ok(result) => result,
            Err(error) => panic!("{error}"),
        }
    }

    /// Runs `f` with the value of the calling code.
    ///
    /// # Errors
    ///
    /// If the calling code has none: it is in no scope of this key, or the value was taken
    /// ([`TaskLocalFuture::take_value`]).
    pub fn try_with<R>(&'static self, f: impl FnOnce(&T) -> R) -> Result<R, AccessError> {
        let innermost = self.innermost.with(|innermost| innermost.0.get());
        // SAFETY: null, or on this thread's native stack, below this call. `enter` takes it away before it
        // ends, and ends only after this call. The same holds for the value, which `enter` borrows, and which is
        // lent on this thread only.
        let value = unsafe {
            innermost
                .as_ref()
                .filter(|scope| scope.task == task_of_stack())
                .and_then(|scope| scope.value.as_ref())
        };
        value.map(f).ok_or(AccessError(()))
    }

    /// Runs `f` as code that has this value, or none.
    fn enter<R>(&'static self, value: Option<&T>, f: impl FnOnce() -> R) -> R {
        struct Before<T: 'static> {
            key: &'static LocalKey<T>,
            outer: *const Entered<T>,
        }
        impl<T> Drop for Before<T> {
            fn drop(&mut self) {
                self.key.innermost.with(|here| here.0.set(self.outer));
            }
        }

        let entered = Entered {
            task: task_of_stack(),
            value: value.map_or(ptr::null(), ptr::from_ref),
        };
        // Declared after what it points to, so that it is dropped before it.
        let _before = Before {
            key: self,
            outer: self
                .innermost
                .with(|here| here.0.replace(&raw const entered)),
        };
        f()
    }
}

impl<T: Clone + 'static> LocalKey<T> {
    /// The value of the calling code, as [`with`](Self::with) finds it.
    ///
    /// # Panics
    ///
    /// If the calling code has none; [`try_get`](Self::try_get) gives an error there.
    #[track_caller]
    pub fn get(&'static self) -> T {
        self.with(T::clone)
    }

    /// As [`get`](Self::get).
    ///
    /// # Errors
    ///
    /// As [`try_with`](Self::try_with).
    pub fn try_get(&'static self) -> Result<T, AccessError> {
        self.try_with(T::clone)
    }
}

/// The future of [`LocalKey::scope`].
#[must_use = "futures do nothing unless awaited"]
pub struct TaskLocalFuture<T: 'static, F> {
    key: &'static LocalKey<T>,
    /// Never pinned.
    value: Option<T>,
    /// Pinned when the whole is. `None` once it is done.
    future: Option<F>,
}

debug_struct!([T: 'static, F] TaskLocalFuture<T, F>);

impl<T: 'static, F> TaskLocalFuture<T, F> {
    /// Takes the value out: of a future that is done, or that goes on without it. `None` if it was taken before.
    ///
    /// ```
    /// use std::pin::pin;
    ///
    /// urgency::task_local! {
    ///     static LOG: std::cell::RefCell<Vec<&'static str>>;
    /// }
    ///
    /// let mut work = pin!(LOG.scope(Default::default(), async {
    ///     LOG.with(|log| log.borrow_mut().push("begun"));
    /// }));
    /// urgency::block_on(work.as_mut());
    /// assert_eq!(work.take_value().unwrap().into_inner(), ["begun"]);
    /// ```
    pub fn take_value(self: Pin<&mut Self>) -> Option<T> {
        // SAFETY: `future` is not touched, and `value` is never pinned.
        unsafe { self.get_unchecked_mut() }.value.take()
    }
}

impl<T: 'static, F: Future> Future for TaskLocalFuture<T, F> {
    type Output = F::Output;

    #[track_caller]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        // SAFETY: `future` is only polled pinned, and dropped in place; the rest is never pinned.
        let this = unsafe { self.get_unchecked_mut() };
        let TaskLocalFuture { key, value, future } = this;
        key.enter(value.as_ref(), || {
            let inner = future.as_mut().expect("it is not polled after its end");
            // SAFETY: as above.
            let polled = unsafe { Pin::new_unchecked(inner) }.poll(cx);
            if polled.is_ready() {
                *future = None;
            }
            polled
        })
    }
}

impl<T: 'static, F> Drop for TaskLocalFuture<T, F> {
    fn drop(&mut self) {
        let TaskLocalFuture { key, value, future } = self;
        if mem::needs_drop::<F>() && future.is_some() {
            // In place, so that it may be pinned.
            key.enter(value.as_ref(), || *future = None);
        }
    }
}

/// The calling code has no value of a [`LocalKey`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccessError(());

impl fmt::Display for AccessError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "the calling code has no value of this task-local: it is in no `scope` of the key",
        )
    }
}

impl std::error::Error for AccessError {}
