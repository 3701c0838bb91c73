//! Which forks of a stack come from code that has something to inherit, so that their thieves have it, too.
//!
//! `join` must not look whether there is anything to inherit: its cost is its few stores. But what code has changes in
//! frames of the stack, and the deque is a stack, too: a fork was made inside a frame if it lies at or above the index
//! at which the frame began. So a frame is noted when it is entered, and a thief asks which frame the stolen fork's
//! index is inside of. Code that has nothing to inherit, which is nearly all, enters no frame.
//!
//! # Rules
//!
//! 1. The owner enters and leaves; under the lock, since thieves look.
//! 2. A thief looks under the deque's lock, before the owner can see that the fork is gone: the `join` that made the
//!    fork has not ended, so its frames are here.
//! 3. A child of a scope may outlive the frame that spawned it, so it carries what it inherits. For a child, the look
//!    finds only the same, or what is further out.
//! 4. If forks from below a frame's beginning were run inside the frame (a `sync` of an outer scope), the frame begins
//!    further down: [`Frames::lower`].

use super::{Inherited, inherited};
use crate::sys::mutex::Mutex;
use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering::Relaxed},
};

type List = Vec<(usize, Option<Arc<Inherited>>)>;

/// See the module's text.
#[derive(Debug, Default)]
pub(crate) struct Frames {
    /// Whether there is any frame. A thief that found a fork sees the frames that the owner entered before it made the
    /// fork.
    any: AtomicBool,
    list: Mutex<List>,
}

impl Frames {
    /// From `index` on, forks are made by code that has `what`.
    pub(crate) fn enter(&self, index: usize, what: Option<Arc<Inherited>>) {
        self.list.lock().push((index, what));
        self.any.store(true, Relaxed);
    }

    /// The end of the frame that was entered last.
    pub(crate) fn leave(&self) {
        let mut list = self.list.lock();
        let left = list.pop();
        self.any.store(!list.is_empty(), Relaxed);
        drop(list);
        // The last reference to a local may go, and the local's drop is the program's code.
        drop(left);
    }

    /// A plain thread with this stack enters the runtime.
    pub(crate) fn enter_external(&self) {
        if let Some(here) = inherited() {
            self.enter(0, Some(here));
        }
    }

    /// The plain thread leaves the runtime: no frame of this stack is left.
    pub(crate) fn leave_external(&self) {
        if self.any.load(Relaxed) {
            self.leave();
        }
    }

    /// Rule 4: no fork lies at `index` or above any more.
    pub(crate) fn lower(&self, index: usize) {
        if self.any.load(Relaxed) {
            for (begins, _) in self.list.lock().iter_mut() {
                *begins = index.min(*begins);
            }
        }
    }

    /// What the code that made the fork at `index` has.
    #[inline]
    pub(crate) fn at(&self, index: usize) -> Option<Arc<Inherited>> {
        if !self.any.load(Relaxed) {
            return None;
        }
        let list = self.list.lock();
        let inside = list.iter().rev().find(|(begins, _)| *begins <= index);
        inside.and_then(|(_, what)| what.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn something() -> Option<Arc<Inherited>> {
        Some(Arc::default())
    }

    fn is(found: Option<Arc<Inherited>>, expected: &Option<Arc<Inherited>>) -> bool {
        found.as_ref().map(Arc::as_ptr) == expected.as_ref().map(Arc::as_ptr)
    }

    #[test]
    fn a_fork_is_inside_the_innermost_frame_that_began_before_it() {
        let frames = Frames::default();
        let (outer, inner) = (something(), something());
        assert!(frames.at(0).is_none());
        frames.enter(2, outer.clone());
        frames.enter(5, inner.clone());
        assert!(frames.at(1).is_none());
        assert!(is(frames.at(2), &outer) && is(frames.at(4), &outer));
        assert!(is(frames.at(5), &inner));
        frames.enter(7, None);
        assert!(frames.at(7).is_none());
        frames.leave();
        frames.leave();
        assert!(is(frames.at(9), &outer));
    }

    #[test]
    fn a_frame_whose_lower_forks_were_run_begins_further_down() {
        let frames = Frames::default();
        let inner = something();
        frames.enter(5, inner.clone());
        frames.lower(3);
        assert!(is(frames.at(3), &inner) && frames.at(2).is_none());
    }
}
