//! Yielding, in two forms: once, and until something else has happened.
//!
//! Under aging, the default, they are the same: the task goes to the tail of its level, behind everything
//! that is ready. Other orders within a level ([`policy`](crate::policy)) would hand a yielded task back before what it
//! waits for has run: a worker's own queue at once, a stack-like queue for ever. Under these orders the near form puts
//! the task at the end of the worker's own queue, if the order has an end that is taken last. The far form puts it into
//! a queue that all workers share and look at less often. (The OCaml dissertation, section 4.4.4.)
//!
//! A task that wakes itself while it runs yields, whatever it calls. A thread-local tells the insertion which form the
//! task means, since both happen in the same poll.

use crate::sched::{order::arrival, serve::run, stack::Stack};
use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll},
};

/// Lets the other ready contexts of this level go first: the task goes to the tail of its level's queue.
///
/// # Examples
///
/// ```
/// urgency::spawn(async {
///     for _ in 0..10 {
///         urgency::yield_now().await;
///     }
/// })
/// .get()?;
/// # Ok::<(), urgency::JoinError>(())
/// ```
pub fn yield_now() -> YieldNow {
    YieldNow {
        has_yielded: false,
        is_far: false,
    }
}

/// Lets other work of this level go first until some of it has been done: for a task that spins for what
/// another one brings about.
///
/// Under the default order it is [`yield_now`].
///
/// # Examples
///
/// ```
/// use std::sync::{Arc, atomic::{AtomicBool, Ordering::Relaxed}};
///
/// let runtime = urgency::Runtime::builder().workers(1).pool("lifo".parse::<urgency::policy::Kind>()?).build()?;
/// let flag = Arc::new(AtomicBool::new(false));
/// let theirs = flag.clone();
/// let spins = runtime.spawn(async move {
///     while !theirs.load(Relaxed) {
///         urgency::yield_far().await; // under last-in first-out, `yield_now` might never let the other one run
///     }
/// });
/// runtime.spawn(async move { flag.store(true, Relaxed) }).detach();
/// spins.get()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn yield_far() -> YieldNow {
    YieldNow {
        has_yielded: false,
        is_far: true,
    }
}

/// The future of [`yield_now`] and [`yield_far`].
#[derive(Debug)]
#[must_use = "a future does nothing unless it is awaited"]
pub struct YieldNow {
    has_yielded: bool,
    is_far: bool,
}

impl Future for YieldNow {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if self.has_yielded {
            return Poll::Ready(());
        }
        self.has_yielded = true;
        arrival::yields(self.is_far);
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

/// Declares a scheduling point in code that neither forks, spawns nor waits: a long loop that calls
/// this now and then is prompt, and needs no relief. It costs a load and a branch.
///
/// # Examples
///
/// ```
/// let mut sum = 0u64;
/// for i in 0..1_000_000 {
///     sum = sum.wrapping_add(i * i);
///     urgency::scheduling_point();
/// }
/// assert_eq!(sum, 333_332_833_333_500_000);
/// ```
#[inline]
pub fn scheduling_point() {
    Stack::with_current(|me| {
        if let Some(me) = me {
            run::check(me);
        }
    });
}
