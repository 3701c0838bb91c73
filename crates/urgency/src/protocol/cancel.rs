//! A cancel against a start: whichever comes second ends what has begun.
//!
//! # Protocol
//!
//! - A start puts the root into its container, *then* says so, *then*, behind a full barrier, looks for the mark of a
//!   cancel.
//! - A cancel sets the mark, *then*, behind a full barrier, looks whether the root is in.
//!
//! # Race
//!
//! *Cancel against start.* The barriers have an order. The second of the two looks after the first has said its part.
//! So at least one of them ends the job. Both may; an end is the same done twice. A cancel that finds the root not in
//! leaves the job alone: a container that is closed before its job has begun would count as the container of a job that
//! is over.
//!
//! A model fails without either barrier, and with a relaxed look of the cancel.

use crate::sys::{
    chaos,
    primitives::atomic::{
        AtomicBool,
        Ordering::{Acquire, Release, SeqCst},
        fence,
    },
};

/// See the module's text.
#[derive(Debug)]
pub(crate) struct Cancel {
    is_asked: AtomicBool,
    is_begun: AtomicBool,
}

impl Cancel {
    pub(crate) fn new() -> Self {
        Cancel {
            is_asked: AtomicBool::new(false),
            is_begun: AtomicBool::new(false),
        }
    }

    /// The root is in. Whether the caller has to end it.
    pub(crate) fn begun(&self) -> bool {
        self.is_begun.store(true, Release);
        fence(SeqCst);
        chaos::delay();
        self.is_asked.load(Acquire)
    }

    /// A cancel is asked for. [`Cancel::has_begun`] comes afterwards.
    pub(crate) fn ask(&self) {
        self.is_asked.store(true, Release);
        fence(SeqCst);
        chaos::delay();
    }

    /// Whether the thread that has asked has to end what runs.
    pub(crate) fn has_begun(&self) -> bool {
        self.is_begun.load(Acquire)
    }

    /// Whether a cancel was asked for.
    #[inline]
    pub(crate) fn is_asked(&self) -> bool {
        self.is_asked.load(Acquire)
    }
}

#[cfg(all(test, urgency_loom))]
mod loom_models {
    use super::*;
    use loom::{
        sync::{
            Arc,
            atomic::{AtomicUsize, Ordering::Relaxed},
        },
        thread,
    };

    /// A job starts while another thread cancels it.
    #[test]
    fn what_was_begun_and_cancelled_is_ended_after_its_root_is_in() {
        loom::model(|| {
            let job = Arc::new((Cancel::new(), AtomicUsize::new(0)));
            let cancels = thread::spawn({
                let job = job.clone();
                move || {
                    job.0.ask();
                    let ends = job.0.has_begun();
                    // The root is in where the job is ended.
                    (ends, !ends || job.1.load(Relaxed) == 1)
                }
            });
            job.1.store(1, Relaxed);
            let starter_ends = job.0.begun();
            let (canceller_ends, is_in) = cancels.join().unwrap();
            assert!(starter_ends || canceller_ends, "the job goes on");
            assert!(is_in, "a container without its root was closed");
        });
    }
}
