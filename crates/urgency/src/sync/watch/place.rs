//! Where the value of a `watch` is, and how it is changed in its place.
//!
//! [`send_modify`](super::Sender::send_modify) and its relatives need the value for themselves. They lock the place
//! and look whether a snapshot exists. If one does, they unlock, wait until a snapshot is dropped, and look again.
//!
//! The closure that changes the value is the program's, and runs under the lock. It may fork or wait, and so leave its
//! worker. So the lock is a [`Mutex`] of the runtime's: whatever waits for it suspends its stack and raises the
//! closure, and a closure that asks for its own place is named. (It was a mutex of the library's own, for which
//! threads sleep: forty readers beside a closure that forks hung at a limit of sixteen threads.)
//!
//! `protocol/asked_back.rs` has why a writer that waits is told of the last snapshot.

use super::look::Ref;
use crate::{
    protocol::asked_back::AskedBack,
    sched::poll_context::is_waiting_refused,
    sync::{Mutex, MutexGuard, notify::Notify},
};
use std::{
    panic::{AssertUnwindSafe, RefUnwindSafe, UnwindSafe, catch_unwind, resume_unwind},
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    thread,
};

/// In the version: there will be no other value.
pub(super) const ENDED: u64 = 1;
pub(super) const NEXT: u64 = 2;

pub(super) struct Place<T> {
    value: Mutex<Arc<T>>,
    /// Changed under the lock of `value`. Only `ENDED` is set without the lock, by the last sender: after it nothing
    /// changes any more.
    pub(super) version: AtomicU64,
    pub(super) senders: AtomicUsize,
    pub(super) receivers: AtomicUsize,
    pub(super) changed: Notify,
    /// The last receiver went.
    pub(super) abandoned: Notify,
    /// Writers that need the value for themselves.
    pub(super) modifying: AskedBack,
    /// A snapshot was dropped, while a writer waited for that.
    pub(super) returned: Notify,
}

/// A value is changed under the lock only, and a panic then leaves it as the panicking code left it.
impl<T> RefUnwindSafe for Place<T> {}
impl<T> UnwindSafe for Place<T> {}

impl<T> Place<T> {
    pub(super) fn new(value: T) -> Self {
        Place {
            value: Mutex::new(Arc::new(value)),
            version: AtomicU64::new(0),
            senders: AtomicUsize::new(1),
            receivers: AtomicUsize::new(0),
            changed: Notify::new(),
            abandoned: Notify::new(),
            modifying: AskedBack::new(),
            returned: Notify::new(),
        }
    }

    /// The value. A waker and a policy may not suspend, and send: they try until other threads let go of the value.
    #[track_caller]
    fn locked(&self) -> MutexGuard<'_, Arc<T>> {
        while is_waiting_refused() {
            match self.value.try_lock() {
                Ok(value) => return value,
                Err(_) => thread::yield_now(),
            }
        }
        self.value.blocking_lock()
    }

    #[track_caller]
    pub(super) fn latest(&self) -> (Arc<T>, u64) {
        let value = self.locked();
        (value.clone(), self.version.load(Ordering::Acquire))
    }

    /// A snapshot for a reader that has seen `seen`.
    #[track_caller]
    pub(super) fn look(&self, seen: u64) -> Ref<'_, T> {
        let (value, version) = self.latest();
        Ref {
            value: Some(value),
            version: version & !ENDED,
            changed: version & !ENDED != seen,
            place: self,
        }
    }

    #[track_caller]
    pub(super) fn replace(&self, new: Arc<T>) -> Arc<T> {
        let mut value = self.locked();
        let old = std::mem::replace(&mut *value, new);
        self.version.fetch_add(NEXT, Ordering::AcqRel);
        drop(value);
        self.changed.notify_waiters();
        old
    }

    /// The value itself, when no snapshot of it is left.
    pub(super) fn unwrap(&self, old: Arc<T>) -> T {
        let mut old = Some(old);
        self.alone(|| match Arc::try_unwrap(old.take()?) {
            Ok(value) => Some(value),
            Err(shared) => {
                old = Some(shared);
                None
            }
        })
    }

    /// Changes the value in its place; `change` says whether the readers are told of it.
    pub(super) fn modify(&self, change: impl FnOnce(&mut T) -> bool) -> bool {
        let mut change = Some(change);
        let changed = self.alone(|| {
            let mut value = self.locked();
            let value = Arc::get_mut(&mut value)?;
            let change = change.take()?;
            let changed = catch_unwind(AssertUnwindSafe(|| change(value)));
            if matches!(changed, Ok(true)) {
                self.version.fetch_add(NEXT, Ordering::AcqRel);
            }
            Some(changed)
        });
        let changed = changed.unwrap_or_else(|panic| resume_unwind(panic));
        if changed {
            self.changed.notify_waiters();
        }
        changed
    }

    /// Calls `attempt` until it succeeds, each time after a snapshot was dropped.
    fn alone<R>(&self, mut attempt: impl FnMut() -> Option<R>) -> R {
        if let Some(result) = attempt() {
            return result;
        }
        let asking = self.modifying.ask();
        loop {
            let returned = self.returned.notified();
            asking.listens();
            if let Some(result) = attempt() {
                return result;
            }
            crate::block_on(returned);
        }
    }
}
