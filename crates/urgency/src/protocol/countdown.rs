//! The count of a scope's children that others have: when it is over, the scope may end.
//!
//! # Rules
//!
//! 1. A child is counted before its parent ends, or, if it was pushed without a count, before the scope's owner can see
//!    it gone from the deque. So the count is not zero while a counted child can still spawn.
//! 2. Each counted child ends once. The thread for which [`end`](Countdown::end) is `true` wakes the owner. It touches
//!    the scope no more: the owner may have seen the count already, and the scope may be gone. So a thread that needs
//!    anything of the scope takes it before. A thread that would rather not take it for nothing first ends by
//!    [`end_unless_last`](Countdown::end_unless_last), which changes nothing where the child seems to be the last.
//! 3. What a child wrote before its end is visible to the owner when the count [is over](Countdown::is_over). (Each end
//!    is a read-modify-write, so the owner that reads the last one's count synchronises with all.)
//! 4. The owner looks, announces its wait (`protocol/suspension.rs`), and waits; a wake-up may come before.

use crate::sys::primitives::atomic::{AtomicUsize, Ordering};

/// See the module's text.
#[derive(Debug)]
pub(crate) struct Countdown(AtomicUsize);

impl Countdown {
    pub(crate) fn new() -> Self {
        Countdown(AtomicUsize::new(0))
    }

    /// So many children are counted already.
    pub(crate) fn of(count: usize) -> Self {
        Countdown(AtomicUsize::new(count))
    }

    /// One more child is counted: rule 1.
    #[inline]
    pub(crate) fn begin(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    /// A counted child has ended. Whether it was the last: rule 2.
    #[inline]
    pub(crate) fn end(&self) -> bool {
        self.0.fetch_sub(1, Ordering::Release) == 1
    }

    /// A counted child has ended, unless it seems to be the last one. Then nothing has changed, and [`Countdown::end`]
    /// follows: rule 2.
    #[inline]
    pub(crate) fn end_unless_last(&self) -> bool {
        let one_less = |old: usize| (old > 1).then(|| old - 1);
        let ended = self
            .0
            .fetch_update(Ordering::Release, Ordering::Relaxed, one_less);
        ended.is_ok()
    }

    /// Whether all counted children have ended.
    #[inline]
    pub(crate) fn is_over(&self) -> bool {
        self.0.load(Ordering::Acquire) == 0
    }
}

#[cfg(all(test, urgency_loom))]
mod loom_models {
    use super::*;
    use crate::protocol::{own::own_in_model, suspension::Suspension};
    use loom::{cell::UnsafeCell, sync::Arc, thread};

    struct Model {
        children: Countdown,
        owner: Suspension,
        results: [UnsafeCell<u32>; 2],
    }

    impl Model {
        /// What a child does. Whether the owner has been woken from a wait.
        fn runs(&self, child: usize) -> bool {
            // SAFETY: each child has a result of its own; loom checks it.
            self.results[child].with_mut(|result| unsafe { *result = 1 });
            self.children.end() && self.owner.wake()
        }
    }

    /// A child that was stolen spawns another one, and both end while the owner waits.
    #[test]
    fn an_owner_that_is_not_woken_sees_what_all_children_wrote() {
        loom::model(|| {
            let model = Arc::new(Model {
                children: Countdown::new(),
                owner: Suspension::new(),
                results: [UnsafeCell::new(0), UnsafeCell::new(0)],
            });
            model.children.begin();
            let first = model.clone();
            let child = thread::spawn(move || {
                first.children.begin();
                let second = first.clone();
                let grandchild = thread::spawn(move || second.runs(1));
                let woke = first.runs(0);
                (woke, grandchild)
            });
            let mut waits = false;
            if !model.children.is_over() {
                waits = own_in_model(&model.owner).suspend();
            }
            if !waits {
                assert!(model.children.is_over());
                for result in &model.results {
                    // SAFETY: the children have ended; loom checks it.
                    assert_eq!(result.with(|result| unsafe { *result }), 1);
                }
            }
            let (woke, grandchild) = child.join().unwrap();
            let woke = usize::from(woke) + usize::from(grandchild.join().unwrap());
            assert_eq!(
                woke,
                usize::from(waits),
                "the owner sleeps, or is woken twice"
            );
            assert!(model.children.is_over());
        });
    }

    /// The owner frees the scope as soon as it sees that the count is over.
    #[test]
    fn a_child_that_takes_something_of_the_scope_before_its_end_finds_the_scope() {
        loom::model(|| {
            let scope = Arc::new((Countdown::of(2), UnsafeCell::new(1)));
            let children = [(); 2].map(|()| {
                let scope = scope.clone();
                thread::spawn(move || {
                    let (children, waiter) = &*scope;
                    if children.end_unless_last() {
                        return false;
                    }
                    // SAFETY: the count is not over, so the owner has not freed it; loom checks it.
                    let waiter = waiter.with(|it| unsafe { *it });
                    children.end() && waiter == 1
                })
            });
            let (left, waiter) = &*scope;
            if left.is_over() {
                // SAFETY: nobody looks at it any more; loom checks it.
                waiter.with_mut(|it| unsafe { *it = 0 });
            }
            let woken = children.map(|it| it.join().unwrap());
            assert_eq!(woken.iter().filter(|woken| **woken).count(), 1);
            assert!(left.is_over());
        });
    }
}
