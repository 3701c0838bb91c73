//! What work inherits from the code that spawns it: a deadline, locals, and a thread of a recording.
//!
//! The calling thread knows what the code that runs on it has. A future that has something of its own puts it into the
//! thread for the time of each poll, and a closure for the time of its run (`sched/inherit/inheriting.rs`). Spawning
//! looks into the thread, with one load: if there is nothing, the task is as usual; otherwise the task is wrapped
//! (`spawn/carried.rs`). A stack never changes its thread, so a closure that waits, or is abandoned, keeps what it has.
//!
//! A fork that another stack steals has what the code that made it had, at no cost for `join` (frames.rs).

mod frames;
pub(crate) mod record;
mod values;

pub(crate) use frames::Frames;
pub(crate) use values::Values;

use record::RecordedThread;
use std::{
    cell::{Cell, RefCell},
    sync::Arc,
    time::Instant,
};

/// See the module's text.
#[derive(Clone, Debug, Default)]
pub(crate) struct Inherited {
    pub(crate) deadline: Option<Instant>,
    pub(crate) values: Values,
    /// The recorded thread whose code this is; see `record`.
    pub(crate) recorded: Option<Arc<RecordedThread>>,
}

thread_local! {
    static INHERITED: RefCell<Option<Arc<Inherited>>> = const { RefCell::new(None) };
    /// Whether there is anything.
    static ANY: Cell<bool> = const { Cell::new(false) };
}

/// What the calling code has, if it has anything.
#[inline]
pub(crate) fn inherited() -> Option<Arc<Inherited>> {
    if !ANY.get() {
        return None;
    }
    INHERITED
        .try_with(|here| here.borrow().clone())
        .ok()
        .flatten()
}

/// From now on the calling code has `what`. Returns what it had.
pub(crate) fn replace(what: Option<Arc<Inherited>>) -> Option<Arc<Inherited>> {
    ANY.set(what.is_some());
    INHERITED.try_with(|here| here.replace(what)).ok().flatten()
}

/// Whether the calling code has anything.
#[inline]
pub(crate) fn is_any() -> bool {
    ANY.get()
}
