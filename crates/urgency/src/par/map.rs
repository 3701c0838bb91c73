//! `map`: a result for each item, in a `Vec`.
//!
//! The results are written into the spare room of one `Vec`. A [`Filled`] owns a run of them from its first slot on:
//! if it is dropped, by a panic somewhere, it drops them. Neighbouring runs are joined when both are full; the run of
//! all slots gives them to the `Vec`.

use super::{
    items::Items,
    run::{Sink, run},
};
use std::{
    marker::PhantomData,
    mem::{self, MaybeUninit},
    ptr,
};

/// What `f` makes of each item, in order.
///
/// # Panics
///
/// With a panic of `f`; what it made of other items is dropped.
///
/// # Examples
///
/// ```
/// assert_eq!(urgency::par::map(0..4u32, |n| n * n), [0, 1, 4, 9]);
/// ```
pub fn map<I: Items, R: Send>(items: I, f: impl Fn(I::Item) -> R + Sync) -> Vec<R> {
    let count = items.len();
    let mut results = Vec::with_capacity(count);
    let slots = &mut results.spare_capacity_mut()[..count];
    let all = run(items, Map::new(slots, &f));
    assert_eq!(
        all.filled, count,
        "`Items` that gives fewer items than its length says"
    );
    mem::forget(all);
    // SAFETY: as many slots were filled, and nobody else drops them: the `Filled` is forgotten.
    unsafe { results.set_len(count) };
    results
}

/// The slots of a run of items, those filled so far first.
struct Filled<'a, R> {
    slots: *mut R,
    filled: usize,
    count: usize,
    owned: PhantomData<&'a mut [MaybeUninit<R>]>,
}

// SAFETY: it is an exclusive borrow of slots for results that are `Send`.
unsafe impl<R: Send> Send for Filled<'_, R> {}

impl<R> Drop for Filled<'_, R> {
    fn drop(&mut self) {
        // SAFETY: the first `filled` slots hold results that this owns.
        unsafe { ptr::slice_from_raw_parts_mut(self.slots, self.filled).drop_in_place() };
    }
}

struct Map<'a, R, F> {
    results: Filled<'a, R>,
    f: &'a F,
}

impl<'a, R, F> Map<'a, R, F> {
    fn new(slots: &'a mut [MaybeUninit<R>], f: &'a F) -> Self {
        Map {
            results: Filled {
                slots: slots.as_mut_ptr().cast(),
                filled: 0,
                count: slots.len(),
                owned: PhantomData,
            },
            f,
        }
    }
}

impl<'a, T, R, F> Sink<T> for Map<'a, R, F>
where
    R: Send,
    F: Fn(T) -> R + Sync,
{
    type Out = Filled<'a, R>;

    fn feed(&mut self, block: impl Iterator<Item = T>) {
        let results = &mut self.results;
        for item in block {
            assert!(
                results.filled < results.count,
                "`Items` that gives more items than its length says"
            );
            let result = (self.f)(item);
            // SAFETY: the slot is one of ours, and not filled yet.
            unsafe { results.slots.add(results.filled).write(result) };
            results.filled += 1;
        }
    }

    fn split_off(&mut self, at: usize) -> Self {
        let results = &mut self.results;
        let kept = results.filled + at;
        assert!(kept <= results.count, "a run of slots is split inside");
        let later = Filled {
            // SAFETY: inside the slots, or one past the last.
            slots: unsafe { results.slots.add(kept) },
            filled: 0,
            count: results.count - kept,
            owned: PhantomData,
        };
        results.count = kept;
        Map {
            results: later,
            f: self.f,
        }
    }

    fn finish(self) -> Filled<'a, R> {
        self.results
    }

    fn combine(mut earlier: Filled<'a, R>, later: Filled<'a, R>) -> Filled<'a, R> {
        // What is not full is not joined: `later` drops its own.
        if earlier.filled == earlier.count {
            earlier.filled += later.filled;
            earlier.count += later.count;
            mem::forget(later);
        }
        earlier
    }
}
