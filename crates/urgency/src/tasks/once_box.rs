//! A word that becomes a box when it is first needed.
//!
//! For what few tasks have: a million tasks without it cost a million words. (`OnceLock<Box<T>>` is two.)
//!
//! # States
//!
//! Null, then the address of the box until the word is dropped. Any thread may make the box; of several that do so at
//! once, one sets the word, and the others drop what they made and use that one's.

use crate::sys::primitives::atomic::{
    AtomicPtr,
    Ordering::{AcqRel, Acquire},
};
use std::{marker::PhantomData, ptr};

/// See the module's text.
pub(super) struct OnceBox<T> {
    word: AtomicPtr<T>,
    owns: PhantomData<Box<T>>,
}

impl<T> OnceBox<T> {
    pub(super) fn new() -> Self {
        OnceBox {
            word: AtomicPtr::new(ptr::null_mut()),
            owns: PhantomData,
        }
    }

    /// What is in the box, if there is one.
    #[inline]
    pub(super) fn get(&self) -> Option<&T> {
        // SAFETY: null, or a box that lives as long as `self`, and that is only ever shared. Acquire: pairs with the
        // exchange of the thread that made it.
        unsafe { self.word.load(Acquire).as_ref() }
    }

    /// What is in the box, which is made if there is none.
    pub(super) fn get_or_make(&self, make: impl FnOnce() -> T) -> &T {
        if let Some(there) = self.get() {
            return there;
        }
        let new = Box::into_raw(Box::new(make()));
        match self
            .word
            .compare_exchange(ptr::null_mut(), new, AcqRel, Acquire)
        {
            // SAFETY: as in `get`.
            Ok(_) => unsafe { &*new },
            Err(there) => {
                // SAFETY: made above, and no other thread has seen it.
                drop(unsafe { Box::from_raw(new) });
                // SAFETY: as in `get`; it is not null, or the exchange would not have failed.
                unsafe { &*there }
            }
        }
    }
}

impl<T> Drop for OnceBox<T> {
    fn drop(&mut self) {
        let there = self.word.load(Acquire);
        if !there.is_null() {
            // SAFETY: it came from a box, and nothing is shared with a word that is dropped.
            drop(unsafe { Box::from_raw(there) });
        }
    }
}

#[cfg(all(test, urgency_loom))]
mod loom_models {
    use super::*;
    use crate::sys::primitives::{Arc, atomic::AtomicUsize};
    use loom::{sync::atomic::Ordering::Relaxed, thread};

    /// Counts how many there are.
    struct Counted(Arc<AtomicUsize>);

    impl Counted {
        fn new(count: &Arc<AtomicUsize>) -> Self {
            count.fetch_add(1, Relaxed);
            Counted(count.clone())
        }
    }

    impl Drop for Counted {
        fn drop(&mut self) {
            self.0.fetch_sub(1, Relaxed);
        }
    }

    #[test]
    fn of_two_threads_that_make_the_box_both_get_the_same_and_one_is_left() {
        loom::model(|| {
            let once = Arc::new(OnceBox::new());
            let count = Arc::new(AtomicUsize::new(0));
            let (theirs, counts) = (once.clone(), count.clone());
            let address = |once: &OnceBox<Counted>, count: &Arc<AtomicUsize>| {
                ptr::from_ref(once.get_or_make(|| Counted::new(count))).addr()
            };
            let other = thread::spawn(move || address(&theirs, &counts));
            let own = address(&once, &count);
            assert_eq!(other.join().unwrap(), own);
            assert_eq!(count.load(Relaxed), 1);
            drop(once);
            assert_eq!(count.load(Relaxed), 0);
        });
    }
}
