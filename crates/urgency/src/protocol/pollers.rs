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
//!
//! # Named race
//!
//! *Refused under leave*: a thread that is refused is counted for a moment. A thread that comes out in this moment, or
//! that has something to be waited for, finds it counted, and sends none. So rule 2 holds for the refused one as well.
//! (It did not look where it ended as one spare thread too many: relief was armed, nobody was in the poller, and the
//! program stood still.)

use crate::sys::{
    chaos,
    primitives::atomic::{AtomicUsize, Ordering::SeqCst, fence},
};

/// See the module's text.
#[derive(Debug)]
pub(crate) struct Pollers(AtomicUsize);

impl Pollers {
    pub(crate) fn new() -> Self {
        Pollers(AtomicUsize::new(0))
    }

    /// Rule 1, where `most` threads may be counted: whether the calling one stays.
    pub(crate) fn enter(&self, most: usize) -> bool {
        let stays = self.0.fetch_add(1, SeqCst) < most;
        chaos::delay();
        if !stays {
            self.leave();
        }
        stays
    }

    /// The calling thread is there no more: rule 2. What it looks at afterwards is behind a full barrier.
    pub(crate) fn leave(&self) {
        self.0.fetch_sub(1, SeqCst);
        fence(SeqCst);
        chaos::delay();
    }

    /// How many are counted.
    pub(crate) fn count(&self) -> usize {
        self.0.load(SeqCst)
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
    use loom::{
        model,
        sync::{Arc, atomic::AtomicBool},
        thread,
    };

    struct Model {
        pollers: Pollers,
        /// There is something to be waited for.
        waited_for: AtomicBool,
        /// A thread was sent into the poller.
        sent: AtomicBool,
    }

    impl Model {
        /// Rules 2 and 3.
        fn look(&self) {
            if self.waited_for.load(SeqCst) && !self.pollers.is_any() {
                self.sent.store(true, SeqCst);
            }
        }
    }

    /// One thread comes out of the poller, one is refused or stays, and one has something to be waited for.
    #[test]
    fn a_thread_is_in_the_poller_or_one_is_sent() {
        model(|| {
            let model = Arc::new(Model {
                pollers: Pollers::new(),
                waited_for: AtomicBool::new(false),
                sent: AtomicBool::new(false),
            });
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
            assert!(model.pollers.is_any() || model.sent.load(SeqCst));
        });
    }
}
