//! `Shared<T>`: a handle for any number of waiters.
//!
//! Built on the single-owner handle, so that tasks which are not shared pay nothing, neither in memory nor in time: the
//! handle's one waiter slot holds the waker of a *room*, in which the real waiters queue. The end of the task empties
//! the room in the order of arrival.
//!
//! ```text
//! Shared (clones) -> Inner { handle, result } -> task -> waiter slot -> Room <- Inner
//! ```
//!
//! The room knows nothing of the handle, so there is no cycle: when the last clone goes, the
//! handle is dropped, which detaches the task.
//!
//! # A poll
//!
//! 1. The result is known? Clone it, with no lock held.
//! 2. In the room already? Nothing to do. Otherwise ask `may_wait`, and enter the room (or replace the waker
//!    there, at the old place in the queue).
//! 3. *Then* look at the task, under the lock of the handle. Finished: move the result from the
//!    handle to `result`. The order matters: a task that finishes after the look finds the waiter
//!    in the room, and one that emptied the room before we entered is seen as finished.
//! 4. `waiting_for` notes the wait, by the ticket of the place in the queue: a task may wait in several places.
//!
//! *A handle that was waited for before it was shared*: its slot still holds that waiter's waker, and a full
//! slot means that the room's is in it. So the room's takes its place before there is a clone.
//!
//! A panic is one value and cannot be cloned: the first waiter gets the task's own payload, the
//! others a `String` with its message, each as the value in an error.

use super::{JoinHandle, TaskRef, cell::contained, hooks, join_error::JoinError};
use crate::{rank::LevelId, sys::mutex::Mutex};
use std::{
    collections::BTreeMap,
    future::Future,
    mem,
    pin::Pin,
    // Not the one of `primitives`: `Waker::from` knows only this one.
    sync::{Arc, OnceLock},
    task::{Context, Poll, Wake, Waker},
};

/// The result of a task, for any number of waiters; made by [`JoinHandle::share`].
///
/// Each clone can be awaited, or asked by [`get`](Shared::get), any number of times; each time gives
/// a clone of the result. Waiters are woken in the order in which they began to wait.
/// If the task panicked, the error of the first waiter has the panic as it was, the error of every other one its
/// message.
///
/// When the last clone is dropped, the task is detached: it goes on, and its result is dropped.
///
/// ```
/// let index = urgency::spawn_fn(|| vec![1, 2, 3]).share();
/// let readers: Vec<_> = (0..3)
///     .map(|n| {
///         let index = index.clone();
///         urgency::spawn(async move { index.await.unwrap()[n] })
///     })
///     .collect();
/// let sum: i32 = readers.into_iter().map(|reader| reader.get().unwrap()).sum();
/// assert_eq!(sum, 6);
/// ```
pub struct Shared<T: 'static> {
    inner: Arc<Inner<T>>,
    /// This clone's ticket in the room, while it waits.
    ticket: Option<u64>,
}

struct Inner<T: 'static> {
    handle: Mutex<JoinHandle<T>>,
    task: TaskRef,
    room: Arc<Room>,
    result: OnceLock<Result<T, JoinError>>,
}

#[derive(Default)]
struct Room(Mutex<Queue>);

#[derive(Default)]
struct Queue {
    next_ticket: u64,
    waiters: BTreeMap<u64, Waker>,
}

impl Wake for Room {
    fn wake(self: Arc<Self>) {
        let waiters = mem::take(&mut self.0.lock().waiters);
        for (_, waker) in waiters {
            // A waker may be the program's code: its panic must not cost the others their wake-up.
            contained(|| waker.wake());
        }
    }
}

impl<T: Clone + Send + Sync + 'static> Shared<T> {
    pub(super) fn new(mut handle: JoinHandle<T>) -> Self {
        let task = handle.task().clone();
        let room: Arc<Room> = Arc::default();
        if task.header().state.look().has_waiter() {
            // No lock is held: the old waker is dropped there. If the task is finished, no waker is needed any more.
            handle.register(&Waker::from(room.clone()));
            hooks::waited_for(&task, 0);
        }
        let inner = Inner {
            handle: Mutex::new(handle),
            task,
            room,
            result: OnceLock::new(),
        };
        Shared {
            inner: Arc::new(inner),
            ticket: None,
        }
    }

    /// A clone of the result if the task has finished, without waiting. `None`: not yet.
    ///
    /// # Errors
    /// The task panicked, was cancelled, or its runtime was shut down.
    pub fn try_get(&self) -> Option<Result<T, JoinError>> {
        self.inner.look(None).then(|| self.inner.known())
    }
}

impl<T: 'static> Shared<T> {
    /// Whether the result is there: the task returned, panicked, or was cancelled.
    pub fn is_finished(&self) -> bool {
        self.inner.task.is_finished()
    }

    /// Asks the task to end, for all waiters; see [`JoinHandle::abort`].
    pub fn abort(&self) {
        self.inner.task.cancel();
    }

    /// Makes the task as urgent as the caller; see [`JoinHandle::boost`].
    pub fn boost(&self) {
        hooks::boost(&self.inner.task);
    }

    /// The level at which the task runs now.
    pub fn level(&self) -> LevelId {
        self.inner.task.level_id()
    }

    /// Whether `waker` waits in the room already. If so, and the task was unfinished before, it will
    /// be woken.
    fn is_in_room(&self, waker: &Waker) -> bool {
        self.ticket.is_some_and(|ticket| {
            let queue = self.inner.room.0.lock();
            let own = queue.waiters.get(&ticket);
            own.is_some_and(|own| own.will_wake(waker))
        })
    }

    /// Leaves the room, with nothing of others run under its lock.
    fn leave(&mut self) {
        if let Some(ticket) = self.ticket.take() {
            hooks::waited_for(&self.inner.task, ticket);
            let waker = self.inner.room.0.lock().waiters.remove(&ticket);
            drop(waker);
        }
    }
}

impl<T: 'static> Inner<T> {
    /// Whether the result is known now. With a waker: the room's, for the slot of the task.
    fn look(&self, waker: Option<&Waker>) -> bool {
        if self.result.get().is_some() {
            return true;
        }
        let mut handle = self.handle.lock();
        let finished = match waker {
            Some(waker) if !handle.task().header().state.look().has_waiter() => {
                handle.register(waker)
            }
            _ => handle.is_finished(),
        };
        if finished && self.result.get().is_none() {
            let result = handle.take_result().expect("only this line takes it");
            // Cannot be set already: looked at under the same lock.
            let _ = self.result.set(result);
        }
        finished
    }

    /// As [`Inner::known`], in a poll. A task that ends with its runtime is not told that the awaited one did.
    fn known_in_poll(&self) -> Poll<Result<T, JoinError>>
    where
        T: Clone,
    {
        let known = self.known();
        if known.as_ref().is_err_and(JoinError::is_cancelled)
            && hooks::ends_with_runtime(&self.task)
        {
            return Poll::Pending;
        }
        Poll::Ready(known)
    }

    /// The known result.
    fn known(&self) -> Result<T, JoinError>
    where
        T: Clone,
    {
        let known = self.result.get().expect("looked at before").as_ref();
        known.cloned().map_err(JoinError::hand_out)
    }
}

impl<T: Clone + Send + Sync + 'static> Future for Shared<T> {
    type Output = Result<T, JoinError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        if this.inner.look(None) {
            this.leave();
            return this.inner.known_in_poll();
        }
        if this.is_in_room(cx.waker()) {
            return Poll::Pending;
        }
        if let Err(kind) = hooks::may_wait(&this.inner.task) {
            return Poll::Ready(Err(JoinError::refused(this.inner.task.id(), kind, None)));
        }
        let waker = cx.waker().clone();
        let (ticket, old) = {
            let mut queue = this.inner.room.0.lock();
            let ticket = *this.ticket.get_or_insert(queue.next_ticket);
            queue.next_ticket = queue.next_ticket.max(ticket + 1);
            (ticket, queue.waiters.insert(ticket, waker))
        };
        drop(old);
        if this
            .inner
            .look(Some(&Waker::from(Arc::clone(&this.inner.room))))
        {
            this.leave();
            return this.inner.known_in_poll();
        }
        hooks::waiting_for(&this.inner.task, ticket);
        Poll::Pending
    }
}

impl<T: 'static> Clone for Shared<T> {
    /// Another handle to the same result; it begins to wait when it is polled.
    fn clone(&self) -> Self {
        Shared {
            inner: Arc::clone(&self.inner),
            ticket: None,
        }
    }
}

impl<T: 'static> Drop for Shared<T> {
    fn drop(&mut self) {
        self.leave();
    }
}

debug_struct!(
    [T: 'static] Shared<T>,
    |it| level: it.inner.task.level(), finished: it.is_finished()
);
