//! Running code as code that inherits something: meanwhile the calling thread has what is inherited, and so does the
//! thread's stack, for what is forked inside (`inherit/frames.rs`).

use crate::inherit::{self, Inherited, inherited, replace};
use crate::sched::stack::Stack;
use std::{mem, sync::Arc};

/// `f` as code that has what the calling code has, wherever it runs.
#[inline]
pub(crate) fn inheriting<R>(f: impl FnOnce() -> R) -> impl FnOnce() -> R {
    let inherited = inherited();
    move || run_as(inherited, f)
}

/// Runs `f` as code that has exactly this.
#[inline]
pub(crate) fn run_as<R>(what: Option<Arc<Inherited>>, f: impl FnOnce() -> R) -> R {
    if what.is_none() && !inherit::is_any() {
        return f();
    }
    run_inside(what, f)
}

/// As [`run_as`], where it makes a difference.
#[cold]
pub(crate) fn run_inside<R>(what: Option<Arc<Inherited>>, f: impl FnOnce() -> R) -> R {
    let entered = Stack::with_current(|me| {
        me.is_some_and(|me| {
            me.frames.enter(me.deque.bottom(), what.clone());
            true
        })
    });
    let _before = Before {
        here: replace(what),
        entered,
    };
    f()
}

/// Puts back what was there before.
struct Before {
    here: Option<Arc<Inherited>>,
    /// The stack has a frame more.
    entered: bool,
}

impl Drop for Before {
    fn drop(&mut self) {
        let gone = replace(mem::take(&mut self.here));
        if self.entered {
            Stack::with_current(|me| me.expect("a stack's code ends there").frames.leave());
        }
        drop(gone);
    }
}

impl Inherited {
    /// Runs `f` as code that has this.
    pub(crate) fn run<R>(self: &Arc<Self>, f: impl FnOnce() -> R) -> R {
        run_inside(Some(self.clone()), f)
    }
}
