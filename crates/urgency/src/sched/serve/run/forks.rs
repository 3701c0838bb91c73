//! Forks of a stack: whether a worker is to have one; and how the stack runs a fork that it stole, what that fork left
//! in the deque, and its own oldest.

use super::check;
use crate::{
    account::overruns::Name,
    protocol::{
        attention::SHARE,
        deque::{Popped, Stolen},
    },
    sched::{StolenFork, forks::held_back::Asked, inherit::inheriting::run_as, stack::Me},
    tasks::{caught, discard_payload},
};

/// Whether a worker is to have a fork of `me`.
pub(crate) fn asked_for_forks(me: Me<'_>) -> Asked {
    let job = me.runtime();
    if !me.attention.is_pending(SHARE) && !job.is_anybody_hungry(me.level()) {
        Asked::Not
    } else if job.holds_back(me) {
        Asked::Later
    } else {
        Asked::Now
    }
}

/// Runs a fork that the calling stack stole, and what it spawned here into the scopes that it belongs to. Returns its
/// name.
pub(crate) fn run_stolen(me: Me<'_>, stolen: StolenFork) -> Name {
    me.runtime().watch_hidden();
    let kind = stolen.taken.kind();
    let outer = me.set_fork(Some(kind));
    let kept = stolen.origin.inherited.clone();
    me.covered(me.level(), stolen.origin.waits_as, || {
        let waits_as = me.waits_as();
        let below = me.set_origin(stolen.origin.task);
        let base = me.deque.bottom();
        me.set_waits_as(stolen.origin.waits_as);
        me.begins_fork(&stolen.origin);
        run_as(stolen.origin.inherited, || {
            me.on_top(|| stolen.taken.run(me.shared()));
        });
        run_pushed_above(me, base);
        below.iter().for_each(|below| me.set_below(below));
        me.set_waits_as(waits_as);
    });
    me.set_fork(outer);
    // The code that forked it may have gone on: then this drops the program's values, and must not unwind.
    if kept.is_some()
        && let Some(payload) = caught(|| drop(kept))
    {
        discard_payload(payload);
    }
    kind.name
}

/// Runs the forks that the calling stack pushed above `base` and no thief took, youngest first.
pub(crate) fn run_pushed_above(me: Me<'_>, base: usize) {
    if me.deque.bottom() > base {
        me.on_top(|| run_each_above(me, base));
    }
}

fn run_each_above(me: Me<'_>, base: usize) {
    while me.deque.bottom() > base {
        check(me);
        let index = me.deque.bottom() - 1;
        // SAFETY: the index is the youngest.
        if unsafe { me.pop_fork(index) } == Popped::Stolen {
            me.was_stolen();
            // Everything older was stolen before it.
            // SAFETY: the pop has just shown it.
            unsafe { me.deque().start_over(base) };
            return;
        }
        // SAFETY: just popped as ours.
        let forked = unsafe { me.deque().popped(index) };
        me.child_memory().took_back(forked);
        // SAFETY: a popped fork is ours to run, once; only children of scopes lie here, and they are self-contained.
        unsafe {
            let execute = (*forked).kind.execute;
            execute(forked);
        }
    }
}

/// Runs the oldest fork of the calling stack's own deque, if there is one: taken as a thief takes it, since it may be
/// the right-hand side of a `join` further out.
pub(crate) fn run_own_oldest(me: Me<'_>) -> bool {
    check(me);
    let (Stolen::Forked(taken, _), origin) = me.steal(true, || true) else {
        return false;
    };
    run_stolen(me, StolenFork::new(taken, origin));
    true
}
