//! How many threads are in the poller, or on their way in or out.
//!
//! While there is something to be waited for, a thread is counted here, or a thread sees that none is, and sends one.
//!
//! # Rules
//!
//! 1. A thread that goes in counts itself. If enough others are counted, it is *refused*, and counts itself out.
//! 2. A thread that has counted itself out, refused or not, *then* looks whether any is counted: before it runs what it
//!    has found, waits as a spare thread, or ends.
//! 3. A thread that has made something to be waited for *then* looks whether any is counted.
//! 4. A thread that finds none counted *sends* one, unless one is sent already. A thread that is sent takes that note
//!    away as soon as it runs. *Then* it looks, as in rule 2. If none can be sent, the sender takes the note away.
//!
//! # Named races
//!
//! *Refused under leave*: a thread that is refused is counted for a moment. A thread that comes out in this moment, or
//! that has something to be waited for, finds it counted, and sends none. So rule 2 holds for the refused one as well.
//! (It did not look where it ended as one spare thread too many: relief was armed, nobody was in the poller, and the
//! program stood still.)
//!
//! *Sent again under way*: a new thread may wait for a processor for milliseconds, and is counted by nobody. (Each
//! thread that looked meanwhile made one more: beside three processes that compute, a runtime with one worker had 14
//! threads, of which 9 had not run yet.)

use crate::sys::{
    chaos,
    primitives::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst, fence},
};

/// See the module's text.
#[derive(Debug)]
pub(crate) struct Pollers {
    counted: AtomicUsize,
    /// A thread is sent, and has not run yet.
    sent: AtomicBool,
}

impl Pollers {
    pub(crate) fn new() -> Self {
        Pollers {
            counted: AtomicUsize::new(0),
            sent: AtomicBool::new(false),
        }
    }

    /// Rule 1, where `most` threads may be counted: whether the calling one stays.
    pub(crate) fn enter(&self, most: usize) -> bool {
        let stays = self.counted.fetch_add(1, SeqCst) < most;
        chaos::delay();
        if !stays {
            self.leave();
        }
        stays
    }

    /// The calling thread is there no more: rule 2. What it looks at afterwards is behind a full barrier.
    pub(crate) fn leave(&self) {
        self.counted.fetch_sub(1, SeqCst);
        fence(SeqCst);
        chaos::delay();
    }

    /// Rule 4: whether the caller, which has found none counted, is to send one.
    pub(crate) fn send(&self) -> bool {
        chaos::delay();
        !self.sent.swap(true, SeqCst)
    }

    /// Rule 4: the calling thread may be the one that was sent, or none could be. What it looks at afterwards is behind
    /// a full barrier.
    pub(crate) fn arrive(&self) {
        chaos::delay();
        self.sent.swap(false, SeqCst);
        fence(SeqCst);
    }

    /// How many are counted.
    pub(crate) fn count(&self) -> usize {
        self.counted.load(SeqCst)
    }

    /// Whether any is counted, behind a full barrier: rules 2 and 3.
    pub(crate) fn is_any(&self) -> bool {
        fence(SeqCst);
        self.count() != 0
    }
}

#[cfg(all(test, urgency_loom))]
mod loom_models {
    use super::*;
    use loom::{model, sync::Arc, thread};

    struct Model {
        pollers: Pollers,
        /// There is something to be waited for.
        waited_for: AtomicBool,
        /// A thread was sent into the poller, and runs after all others.
        goes_last: AtomicBool,
    }

    impl Model {
        fn new() -> Arc<Self> {
            Arc::new(Model {
                pollers: Pollers::new(),
                waited_for: AtomicBool::new(false),
                goes_last: AtomicBool::new(false),
            })
        }

        /// Rules 2 to 4.
        fn look(&self) {
            if self.waited_for.load(SeqCst) && !self.pollers.is_any() && self.pollers.send() {
                self.goes_last.store(true, SeqCst);
            }
        }

        /// Goes in, if there is something to be waited for.
        fn go_in(&self) {
            if self.waited_for.load(SeqCst) && !self.pollers.enter(1) {
                self.look();
            }
        }
    }

    /// One thread comes out of the poller, one is refused or stays, and one has something to be waited for.
    #[test]
    fn a_thread_is_in_the_poller_or_one_is_sent() {
        model(|| {
            let model = Model::new();
            assert!(model.pollers.enter(1));
            let leaves = model.clone();
            let leaves = thread::spawn(move || {
                leaves.pollers.leave();
                leaves.look();
            });
            let comes = model.clone();
            let comes = thread::spawn(move || {
                if !comes.pollers.enter(1) {
                    comes.look();
                }
            });
            model.waited_for.store(true, SeqCst);
            model.look();
            leaves.join().unwrap();
            comes.join().unwrap();
            assert!(model.pollers.is_any() || model.goes_last.load(SeqCst));
        });
    }

    /// One thread was sent and begins to run, and one has something to be waited for.
    #[test]
    fn a_thread_that_is_sent_is_relied_on_until_it_looks() {
        model(|| {
            let model = Model::new();
            assert!(model.pollers.send());
            let arrives = model.clone();
            let arrives = thread::spawn(move || {
                arrives.pollers.arrive();
                arrives.go_in();
            });
            model.waited_for.store(true, SeqCst);
            model.look();
            arrives.join().unwrap();
            assert!(model.pollers.is_any() || model.goes_last.load(SeqCst));
        });
    }
}
