//! Model of the invariant of `reserved_seats.rs`: an inserter, the seat assigner and a worker that goes idle.

use super::{idle::Idle, ready::Ready};
use loom::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU8, Ordering::*, fence},
    },
    thread,
};

/// The level at which the entry arrives, and to which the seat assigner moves the worker.
const LEVEL: u8 = 1;

struct Model {
    idle: Idle,
    ready: Ready,
    entry: AtomicBool,
    seat: AtomicU8,
}

impl Model {
    fn is_offered(&self) -> bool {
        self.ready.levels_after_writes() >> LEVEL & 1 == 1 && self.entry.load(Acquire)
    }

    /// What an insertion and the seat assigner do alike: claim the worker if its seat serves the level.
    fn claim(&self) -> bool {
        self.idle.contains(0) && self.seat.load(Relaxed) == LEVEL && self.idle.claim_exactly(0)
    }
}

#[test]
fn a_worker_that_is_moved_to_a_level_while_work_arrives_there_does_not_sleep() {
    loom::model(|| {
        let model = Arc::new(Model {
            idle: Idle::new(1, 1),
            ready: Ready::new(),
            entry: AtomicBool::new(false),
            seat: AtomicU8::new(0),
        });
        let (its, theirs) = (model.clone(), model.clone());
        let inserter = thread::spawn(move || {
            its.entry.store(true, Release);
            its.ready.announce(LEVEL);
            its.claim()
        });
        let assigner = thread::spawn(move || {
            theirs.seat.store(LEVEL, Relaxed);
            fence(SeqCst);
            theirs.is_offered() && theirs.claim()
        });
        model.idle.release(0);
        let found =
            model.seat.load(Relaxed) == LEVEL && model.is_offered() && model.idle.claim_exactly(0);
        let (inserted, moved) = (inserter.join().unwrap(), assigner.join().unwrap());
        assert_eq!(
            u32::from(found) + u32::from(inserted) + u32::from(moved),
            1,
            "the worker sleeps beside its work, or was started twice"
        );
    });
}
