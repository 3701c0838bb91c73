//! What waits for places in a bounded channel.

use super::{Sender, State};
use crate::sync::{
    hooks,
    lists::{Key, Left, Wakers},
};
use std::task::{Context, Poll};

/// See the module's text.
pub(super) struct Waiter<'a, T> {
    pub(super) sender: &'a Sender<T>,
    places: usize,
    key: Option<Key>,
}

impl<'a, T> Waiter<'a, T> {
    pub(super) fn new(sender: &'a Sender<T>, places: usize) -> Self {
        Waiter {
            sender,
            places,
            key: None,
        }
    }

    /// Whether it is in the queue.
    pub(super) fn waits(&self) -> bool {
        self.key.is_some()
    }

    /// Takes the places, or waits for them; with them, under the lock, it does what `fill` says. An error if the
    /// channel is closed.
    #[cold]
    pub(super) fn poll<R>(
        &mut self,
        cx: &Context<'_>,
        fill: impl FnOnce(&mut State<T>) -> R,
    ) -> Poll<Result<R, ()>> {
        let waker = cx.waker().clone();
        let level = hooks::level();
        let (channel, need) = (&self.sender.channel, self.places);
        let _unused;
        let mut state = channel.state.lock();
        let mut has_places = false;
        if self.key.is_some() {
            let (granted, unused) = state.waiting.poll(&mut self.key, waker);
            _unused = unused;
            match granted {
                Some(granted) => has_places = granted,
                None => return Poll::Pending,
            }
        } else if state.closed {
        } else if state.has_room(need, channel.capacity) {
            state.taken += need;
            has_places = true;
        } else {
            self.key = Some(state.waiting.enter(level, need, waker));
            return Poll::Pending;
        }
        if state.closed {
            state.taken -= if has_places { need } else { 0 };
            return Poll::Ready(Err(()));
        }
        Poll::Ready(Ok(fill(&mut state)))
    }

    /// Step 4 of the channel's text.
    #[cold]
    fn leave(&self, key: Key) {
        let channel = &self.sender.channel;
        let mut wakers = Wakers::default();
        let mut state = channel.state.lock();
        let left = state.waiting.leave(key);
        let vacated = match left {
            Left::Granted(true) => self.places,
            // The next may need fewer than there are.
            Left::Granted(false) | Left::Waiting(..) => 0,
        };
        channel.vacate(&mut state, vacated, &mut wakers);
        drop(state);
        wakers.wake();
        // The drop of its waker is the program's code.
        drop(left);
    }
}

impl<T> Drop for Waiter<'_, T> {
    fn drop(&mut self) {
        if let Some(key) = self.key.take() {
            self.leave(key);
        }
    }
}
