//! The account of tasks that wait for what they hold themselves: see raw.rs, step 7.

use std::{
    panic::Location,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

static AVERTED: AtomicU64 = AtomicU64::new(0);
static SUSPECTED: AtomicU64 = AtomicU64::new(0);
// Of `std`: loom makes no lock in a constant.
static LAST: Mutex<Option<&'static Location<'static>>> = Mutex::new(None);

/// How often, in this process, a task waited for a mutex that it held itself in another of its futures; see
/// [`self_deadlocks`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SelfDeadlocks {
    /// The lock had been handed to another future of the task that was not polled; the one that was polled
    /// took it over.
    pub averted: u64,
    /// Another future of the task had the guard. If that future is never polled again, the task waits for ever. If it
    /// is polled again (as in [`join_all`](crate::future::join_all)), all is well.
    pub suspected: u64,
    /// Where the mutex was last waited for so.
    pub last: Option<&'static Location<'static>>,
}

/// The account of *futures-locks*: a future that stands in the queue of a mutex, or holds it, is kept in a
/// variable and not polled, while the task that owns it waits for the same mutex in another branch. Without
/// help that task waits for ever.
///
/// ```
/// use std::pin::pin;
/// use urgency::{select, sync::{Mutex, self_deadlocks}, yield_now};
///
/// static LOG: Mutex<Vec<&str>> = Mutex::new(Vec::new());
///
/// let holder = LOG.blocking_lock();
/// let task = urgency::spawn(async {
///     let mut first = pin!(LOG.lock());
///     select! {
///         biased;
///         _ = &mut first => {}
///         () = yield_now() => {} // `first` stands in the queue, and is not polled any more
///     }
///     LOG.lock().await.push("second");
/// });
/// drop(holder);
/// task.get()?; // the second took over what was handed to the first
/// # let _ = self_deadlocks();
/// # Ok::<(), urgency::JoinError>(())
/// ```
pub fn self_deadlocks() -> SelfDeadlocks {
    let last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
    SelfDeadlocks {
        averted: AVERTED.load(Relaxed),
        suspected: SUSPECTED.load(Relaxed),
        last: *last,
    }
}

#[cold]
pub(super) fn averted(caller: &'static Location<'static>) {
    note(&AVERTED, caller);
}

#[cold]
pub(super) fn suspected(caller: &'static Location<'static>) {
    note(&SUSPECTED, caller);
}

fn note(count: &AtomicU64, caller: &'static Location<'static>) {
    let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
    // Under the lock: a snapshot that counts it names it, too.
    count.fetch_add(1, Relaxed);
    *last = Some(caller);
}
