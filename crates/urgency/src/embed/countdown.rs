//! A countdown: one thread waits for a number of closures, wherever they run.
//!
//! # Rules
//!
//! 1. The thread that makes a countdown is the one that waits for it.
//! 2. A closure that counts down was counted for one, so the countdown is alive until then. The decrement that shows
//!    zero is the last access. A closure that seems to be the last copies what it needs to wake the waiter before it
//!    decrements (`protocol/countdown.rs`, which has the models).
//! 3. The waiter is a stack, which suspends, or a plain thread, which parks.

use crate::{
    fork::innermost_base,
    protocol::countdown,
    sched::{
        serve::run::{self, check},
        stack::{Me, Stack},
    },
};
use std::{
    ptr,
    sync::Arc,
    thread::{self, Thread},
};

/// Counts closures that have not ended. The thread that made the countdown can wait until there are none.
///
/// # Examples
///
/// ```
/// use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
/// use urgency::{Runtime, embed::{Countdown, Host}};
///
/// let runtime = Runtime::builder().workers(2).build()?;
/// let (host, sum) = (Host::of(&runtime), AtomicU32::new(0));
/// let ended = Countdown::new(10);
/// for number in 1..=10 {
///     // SAFETY: `wait` returns when all closures have ended with their borrows.
///     unsafe {
///         host.spawn_unchecked(|| {
///             sum.fetch_add(1, Relaxed);
///             Countdown::one_ended(&ended);
///         });
///     }
/// }
/// ended.wait();
/// assert_eq!(sum.into_inner(), 10);
/// # Ok::<(), urgency::BuildError>(())
/// ```
pub struct Countdown {
    left: countdown::Countdown,
    waiter: Waiter,
    /// Where the waiting stack's deque began.
    base: usize,
}

enum Waiter {
    /// The stack of the thread that made the countdown. The thread keeps the stack.
    Stack(*const Stack),
    Thread(Thread),
}

/// The waiter that is to be woken, kept alive.
enum Sleeper {
    Stack(Arc<Stack>),
    Thread(Thread),
}

// SAFETY: the pointer is used as a reference to a stack, which is `Sync`.
unsafe impl Send for Waiter {}
// SAFETY: as above.
unsafe impl Sync for Waiter {}

impl Sleeper {
    fn wake(&self) {
        match self {
            Sleeper::Stack(stack) => stack.wake(),
            Sleeper::Thread(thread) => thread.unpark(),
        }
    }
}

impl Waiter {
    fn here() -> Self {
        Stack::with_current(|me| match me {
            Some(me) => Waiter::Stack(me.shared()),
            None => Waiter::Thread(thread::current()),
        })
    }

    /// The waiter that is to be woken; `None` if it is the calling stack, which does not sleep.
    ///
    /// # Safety
    /// The countdown is not over, and the thread that made it has not left its runtime.
    unsafe fn sleeper(&self) -> Option<Sleeper> {
        match self {
            Waiter::Stack(stack) if Stack::is_current(*stack) => None,
            // SAFETY: by the caller's promise, the stack's thread has not left.
            Waiter::Stack(stack) => Some(Sleeper::Stack(unsafe { &**stack }.arc())),
            Waiter::Thread(thread) => Some(Sleeper::Thread(thread.clone())),
        }
    }
}

impl Countdown {
    /// A countdown from `count`, for which the calling thread will wait.
    pub fn new(count: usize) -> Self {
        Countdown {
            left: countdown::Countdown::of(count),
            waiter: Waiter::here(),
            base: Stack::with_current(|me| me.map_or(0, |me| me.deque.bottom())),
        }
    }

    /// One more is to end. Only while the count is not zero.
    #[inline]
    pub fn one_more(&self) {
        self.left.begin();
    }

    /// One has ended.
    ///
    /// # Safety
    ///
    /// `this` is valid, and the caller was counted for one: this is called once for each. When it returns, the
    /// countdown may be gone. And the thread that made the countdown has not left its runtime since: it waits on its
    /// stack.
    pub unsafe fn one_ended(this: *const Self) {
        // SAFETY: valid while the count holds ours.
        let left = unsafe { &(*this).left };
        if left.end_unless_last() {
            return;
        }
        // SAFETY: as above, and the caller's promise that the thread has not left.
        let sleeper = unsafe { (*this).waiter.sleeper() };
        // SAFETY: as above; this is the last access.
        if unsafe { (*this).left.end() }
            && let Some(sleeper) = sleeper
        {
            sleeper.wake();
        }
    }

    /// Waits until the count is zero. A stack first runs what lies on its deque since the countdown was made
    /// (unless a `join` or a scope that began since then is not over), and suspends then; nothing else runs
    /// on top of it.
    ///
    /// # Panics
    ///
    /// On another thread than the one that made the countdown.
    pub fn wait(&self) {
        match &self.waiter {
            Waiter::Stack(stack) => {
                Stack::with_current(|me| {
                    let me = me.filter(|me| ptr::eq(me.shared(), *stack));
                    self.wait_on(me.expect("a countdown is waited for by the thread that made it"));
                });
            }
            Waiter::Thread(thread) => {
                assert_eq!(
                    thread.id(),
                    thread::current().id(),
                    "a countdown is waited for by the thread that made it"
                );
                while !self.left.is_over() {
                    thread::park();
                }
            }
        }
    }

    fn wait_on(&self, me: Me<'_>) {
        check(me);
        // A scope that is open relies on the index at which it began. The countdown may be older than the scope, and
        // may be of another time: any code of the thread may wait for it.
        let base = self.base.max(innermost_base(me));
        // A `join` that is not over relies on the indices of its forks. Then this stack does not run them; other stacks
        // do.
        if me.deque().is_boxed_above(base) {
            me.has_no_fork_from(base);
            run::run_pushed_above(me, base);
        }
        let job = me.runtime();
        while !self.left.is_over() {
            job.come_in(me);
            if !self.left.is_over() {
                job.suspend(me);
            }
            job.go_on(me);
        }
    }
}

debug_struct!(Countdown, |it| is_over: it.left.is_over());
