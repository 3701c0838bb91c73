//! Where a thread may run, while a hand-off has called it to its giver's processor, or away from it.
//!
//! A thread that is about to sleep may call the receiver of its worker to its own processor: it *binds* the receiver's
//! thread there before it wakes it. A thread that goes on computing calls the receiver of another worker to any other
//! processor in the same way. The receiver frees itself when it has the delivery. What it may run on otherwise is
//! kept here meanwhile.
//!
//! # Rules
//!
//! 1. Only a thread with the right to deliver calls (see [`Mailbox`](super::mailbox), rule 1), before it delivers. So
//!    at most one call is outstanding.
//! 2. The receiver goes home after each delivery, before it runs anything.
//! 3. A thread that makes another one *stays at home* while it does so: it goes home first if it has been called, and
//!    is not called until the other one is made.
//!
//! # Named race
//!
//! - *Called before it sleeps*: a stack that waits may have a delivery before its thread sleeps. The thread is on its
//!   way to give its own worker away, and may have to make a thread for that. A new thread inherits the processors of
//!   its maker, so without rule 3 it would be bound to one processor for good: nobody keeps a home for it. (Until 24
//!   November 2026 there was no such rule. Beside a contended lock, both workers came to such threads of one processor
//!   within seconds, and the other processor idled.)
//!
//! The receiver's own lock orders both sides. A giver that finds it held does not wait: then the receiver's thread is
//! awake, and needs no call.

use super::own::Own;
use crate::sys::mutex::Mutex;

/// See the module's text. `P` is a set of processors.
#[derive(Debug)]
pub(crate) struct Home<P>(Mutex<Option<P>>);

impl<P> Home<P> {
    pub(crate) fn new() -> Self {
        Home(Mutex::new(None))
    }

    /// Calls the thread by `bind`, which binds it and returns where it may run otherwise, or returns `None` and leaves
    /// it as it is. Rule 1.
    pub(crate) fn call(&self, bind: impl FnOnce() -> Option<P>) {
        if let Some(mut home) = self.0.try_lock() {
            debug_assert!(home.is_none(), "two calls of one thread");
            *home = bind();
        }
    }
}

impl<P> Own<'_, Home<P>> {
    /// If the thread was called, it is freed by `free`. Rule 2.
    pub(crate) fn go(self, free: impl FnOnce(&P)) {
        self.stay(free, || ());
    }

    /// As [`Own::go`], and the thread is not called before `make` returns. Rule 3.
    pub(crate) fn stay<R>(self, free: impl FnOnce(&P), make: impl FnOnce() -> R) -> R {
        let mut home = self.0.lock();
        if let Some(home) = home.take() {
            free(&home);
        }
        make()
    }
}

#[cfg(all(test, urgency_loom))]
mod loom_models {
    use super::*;
    use crate::{
        protocol::{mailbox::Mailbox, own::own_in_model},
        sys::primitives::{
            atomic::{AtomicUsize, Ordering},
            thread,
        },
    };
    use loom::sync::Arc;
    use std::num::NonZero;

    const ALL: usize = 0b11;
    const HERE: usize = 0b01;

    /// A receiver's thread makes another one before it sleeps, while a giver calls it and delivers.
    #[test]
    fn a_thread_that_is_called_while_it_makes_another_one_binds_neither() {
        loom::model(|| {
            let parts = Arc::new((Home::new(), Mailbox::new(), AtomicUsize::new(ALL)));
            let theirs = parts.clone();
            let receiver = thread::spawn(move || {
                let (home, mailbox, allowed) = &*theirs;
                let free = |home: &usize| allowed.store(*home, Ordering::SeqCst);
                let own = own_in_model(home);
                let inherited = own.stay(free, || {
                    thread::yield_now();
                    allowed.load(Ordering::SeqCst)
                });
                own_in_model(mailbox).receive();
                own.go(free);
                (inherited, allowed.load(Ordering::SeqCst))
            });
            let (home, mailbox, allowed) = &*parts;
            home.call(|| Some(allowed.swap(HERE, Ordering::SeqCst)));
            mailbox.deliver(NonZero::new(3).unwrap(), receiver.thread());
            assert_eq!(receiver.join().unwrap(), (ALL, ALL));
        });
    }
}
