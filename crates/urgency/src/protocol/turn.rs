//! The turn to decide: one thread at a time has it, and news that comes meanwhile is not lost.
//!
//! A thread with news must not wait for the turn: it may hold locks for which the thread with the turn waits, or have
//! the turn itself. So it leaves the news, and the thread with the turn looks after it has given the turn back.
//!
//! # Protocol
//!
//! - Teller: 1. set `news`, by a swap; 2. a full barrier; 3. try to take the turn. If it is taken, the teller is done.
//! - Thread that took the turn for news: 1. clear `news`; 2. look at everything.
//! - Thread that gives the turn back, for whatever it took it: 1. give it back; 2. a full barrier; 3. look at `news`.
//!   If there is any, try to take the turn, as a teller does.
//!
//! A thread may decide often for others in this way. So it may leave the rest to the relief timer (`decide_news`).
//!
//! # Races
//!
//! - *A teller against the thread that gives back.* The teller finds the turn taken, and the other thread has looked at
//!   `news` already? The teller's barrier comes after its news, the other's after it gave back. If the teller's is
//!   first, the other one sees the news. If it is second, the teller finds the turn free, or taken anew by a thread
//!   that has not given it back.
//! - *Two tellers.* The one that gets the turn clears the news of both, and its look has to see both. A plain store by
//!   one would hide from that thread what came before the store of the other.
//!
//! A model fails without either barrier, and with a store for the swap.

use crate::sys::{
    chaos,
    mutex::{Mutex, MutexGuard},
    primitives::atomic::{AtomicBool, Ordering, fence},
};

/// See the module's text. `T` is what decides.
#[derive(Debug)]
pub(crate) struct Turn<T> {
    decides: Mutex<T>,
    news: AtomicBool,
}

impl<T> Turn<T> {
    pub(crate) fn new(decides: T) -> Self {
        Turn {
            decides: Mutex::new(decides),
            news: AtomicBool::new(false),
        }
    }

    /// Waits for the turn. [`Turn::give_back`] comes afterwards.
    pub(crate) fn take(&self) -> MutexGuard<'_, T> {
        self.decides.lock()
    }

    /// Something has happened about which is to be decided. [`Turn::take_for_news`] comes next.
    pub(crate) fn tell(&self) {
        self.news.swap(true, Ordering::AcqRel);
        fence(Ordering::SeqCst);
        chaos::delay();
    }

    /// Whether there is news that no thread has looked at.
    pub(crate) fn has_news(&self) -> bool {
        self.news.load(Ordering::Relaxed)
    }

    /// The turn, if there is news; the caller decides about all of it. `None` as well if another thread has the turn:
    /// that thread looks at the news.
    pub(crate) fn take_for_news(&self) -> Option<MutexGuard<'_, T>> {
        while self.has_news() {
            let decides = self.decides.try_lock()?;
            if self.news.swap(false, Ordering::AcqRel) {
                return Some(decides);
            }
            self.give_back(decides);
        }
        None
    }

    /// Gives the turn back. The caller looks for news afterwards, by [`Turn::take_for_news`].
    pub(crate) fn give_back(&self, decides: MutexGuard<'_, T>) {
        drop(decides);
        chaos::delay();
        fence(Ordering::SeqCst);
    }
}

#[cfg(all(test, urgency_loom))]
mod loom_models {
    use super::*;
    use loom::{
        sync::{
            Arc,
            atomic::{AtomicUsize, Ordering::*},
        },
        thread,
    };

    /// How many things have happened; what decides notes how many of them it saw.
    struct Model {
        happened: AtomicUsize,
        turn: Turn<usize>,
    }

    impl Model {
        fn new() -> Arc<Self> {
            Arc::new(Model {
                happened: AtomicUsize::new(0),
                turn: Turn::new(0),
            })
        }

        fn tell(&self) {
            self.happened.fetch_add(1, Relaxed);
            self.turn.tell();
            self.decide();
        }

        fn decide(&self) {
            while let Some(mut seen) = self.turn.take_for_news() {
                *seen = self.happened.load(Relaxed);
                self.turn.give_back(seen);
            }
        }

        fn seen(&self) -> usize {
            *self.turn.take()
        }
    }

    #[test]
    fn what_two_threads_tell_at_once_is_decided_about() {
        loom::model(|| {
            let model = Model::new();
            let other = model.clone();
            let teller = thread::spawn(move || other.tell());
            model.tell();
            teller.join().unwrap();
            assert_eq!(model.seen(), 2);
        });
    }

    #[test]
    fn what_is_told_while_a_thread_has_the_turn_for_something_else_is_decided_about() {
        loom::model(|| {
            let model = Model::new();
            let other = model.clone();
            let teller = thread::spawn(move || other.tell());
            let turn = model.turn.take();
            model.turn.give_back(turn);
            model.decide();
            teller.join().unwrap();
            assert_eq!(model.seen(), 1);
        });
    }
}
