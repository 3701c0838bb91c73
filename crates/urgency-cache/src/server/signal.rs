//! Two ways to wake a task: once for all ([`Stop`]), and again and again ([`Kick`]).
//!
//! Both follow the same rule. The waking thread sets the flag first and then takes the wakers. The waiting task leaves
//! its waker first and then looks at the flag. So at least one of the two sees the other.
//!
//! [`Kick::kick`] leaves out even the store if the flag is set, so it orders nothing: the sleeper may take the flag and
//! yet not see what the caller wrote before. `kick` is for data that is written under a lock which the sleeper takes
//! when it looks (a store's shards); data that is written to an atomic goes with [`Kick::wake`].

use parking_lot::Mutex;
use std::{
    future::poll_fn,
    mem,
    sync::atomic::{AtomicBool, AtomicU8, Ordering},
    task::{Poll, Waker},
};

/// How a server ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Ending {
    /// At once.
    Now = 1,
    /// When the clients have gone, or a little later.
    Graceful = 2,
}

/// An event that happens once, for any number of waiting tasks.
#[derive(Debug, Default)]
pub struct Stop {
    ending: AtomicU8,
    waiting: Mutex<Vec<Waker>>,
}

impl Stop {
    /// Makes it happen; only the first call counts.
    pub fn stop(&self, how: Ending) {
        let _ = self
            .ending
            .compare_exchange(0, how as u8, Ordering::AcqRel, Ordering::Acquire);
        let waiting = mem::take(&mut *self.waiting.lock());
        waiting.into_iter().for_each(Waker::wake);
    }

    fn ending(&self) -> Option<Ending> {
        match self.ending.load(Ordering::Acquire) {
            0 => None,
            1 => Some(Ending::Now),
            _ => Some(Ending::Graceful),
        }
    }

    /// Waits for it.
    pub async fn stopped(&self) -> Ending {
        poll_fn(|cx| {
            if self.ending().is_none() {
                self.waiting.lock().push(cx.waker().clone());
            }
            self.ending().map_or(Poll::Pending, Poll::Ready)
        })
        .await
    }
}

/// A task that sleeps until there is something to do.
#[derive(Debug, Default)]
pub struct Kick {
    asked: AtomicBool,
    sleeper: Mutex<Option<Waker>>,
}

impl Kick {
    /// Says that there is something to do, under a lock. Costs a load if that was said before.
    #[inline]
    pub fn kick(&self) {
        if !self.asked.load(Ordering::Relaxed) {
            self.wake();
        }
    }

    /// Says that there is something to do. The woken task sees everything that the caller wrote before.
    #[cold]
    pub fn wake(&self) {
        self.asked.store(true, Ordering::SeqCst);
        let sleeper = self.sleeper.lock().take();
        if let Some(sleeper) = sleeper {
            sleeper.wake();
        }
    }

    /// Waits until there is something to do. One task at a time.
    pub async fn kicked(&self) {
        poll_fn(|cx| {
            *self.sleeper.lock() = Some(cx.waker().clone());
            if self.asked.swap(false, Ordering::SeqCst) {
                Poll::Ready(())
            } else {
                Poll::Pending
            }
        })
        .await;
    }
}
