//! Yielding, in two forms: once, and until something else has happened.
//!
//! Under aging, the default, they are the same: the task goes to the tail of its level, behind everything
//! that is ready. Other orders within a level ([`policy`](crate::policy)) would hand a yielded task back
//! before what it waits for has run: a worker's own queue at once, a stack-like one for ever. There the near
//! form goes to the end of the worker's own queue, if its order has an end that is taken last, and the far
//! one to a queue that all workers share and look at less often. (The OCaml dissertation, section 4.4.4.)
//!
//! A task that wakes itself while it runs yields, whatever it calls. Which form it means is told to the
//! insertion through a thread-local, since both happen in the same poll.

use crate::sched::arrival;
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
/// let runtime = urgency::Runtime::builder().workers(1).pool("lifo".parse()?).build()?;
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
