//! Sorting: a stable merge sort.
//!
//! 1. The slice is halved by `join` down to leaves, which the standard library sorts, stably.
//! 2. Two sorted halves are merged into a buffer of the same length: the middle element of the longer half is searched
//!    in the shorter one, which cuts both in two pairs that are merged in parallel.
//! 3. The merged elements are moved back.
//!
//! The elements always stay in the slice, bit by bit, while the buffer holds copies that are never dropped; the way
//! back cannot panic. So when a comparison panics, the slice holds each element once, in some order.
//!
//! A leaf is an eighth of a worker's share: a few leaves for each worker balance the load, and each level of halving
//! costs two moves of every element. Small slices are one leaf.

use crate::{join, sys::abort::AbortOnPanic};
use std::{cmp::Ordering, mem::MaybeUninit, ptr};

/// Slices up to this length are sorted by the standard library alone.
const LEAST: usize = if cfg!(miri) { 32 } else { 4096 };
/// Merges of up to this many elements are not cut.
const MERGE: usize = 2 * LEAST;
/// How many leaves there are for each worker.
const LEAVES: usize = 8;

/// Sorts the slice, in parallel. Stable: equal elements keep their order.
///
/// # Panics
///
/// With a panic of `cmp`. The slice then holds the same elements, in some order.
///
/// # Examples
///
/// ```
/// let mut numbers = [5, 3, 4, 1, 2];
/// urgency::par::sort(&mut numbers);
/// assert_eq!(numbers, [1, 2, 3, 4, 5]);
/// ```
pub fn sort<T: Ord + Send>(slice: &mut [T]) {
    sort_less(slice, &|a, b| a.lt(b), &|leaf| leaf.sort());
}

/// As [`sort`], by a comparison.
///
/// # Panics
///
/// With a panic of `compare`. The slice then holds the same elements, in some order.
///
/// # Examples
///
/// ```
/// let mut numbers = [1, 3, 2];
/// urgency::par::sort_by(&mut numbers, |a, b| b.cmp(a));
/// assert_eq!(numbers, [3, 2, 1]);
/// ```
pub fn sort_by<T: Send>(slice: &mut [T], compare: impl Fn(&T, &T) -> Ordering + Sync) {
    let is_less = |a: &T, b: &T| compare(a, b) == Ordering::Less;
    sort_less(slice, &is_less, &|leaf| leaf.sort_by(&compare));
}

/// As [`sort`], by a key, which is made anew for each comparison.
///
/// # Panics
///
/// With a panic of `key` or of `cmp`. The slice then holds the same elements, in some order.
///
/// # Examples
///
/// ```
/// let mut words = ["three", "two", "one", "four"];
/// urgency::par::sort_by_key(&mut words, |word| word.len());
/// assert_eq!(words, ["two", "one", "four", "three"]);
/// ```
pub fn sort_by_key<T: Send, K: Ord>(slice: &mut [T], key: impl Fn(&T) -> K + Sync) {
    let is_less = |a: &T, b: &T| key(a).lt(&key(b));
    sort_less(slice, &is_less, &|leaf| leaf.sort_by_key(&key));
}

/// The two closures say the same.
fn sort_less<T, L, S>(slice: &mut [T], is_less: &L, sort_leaf: &S)
where
    T: Send,
    L: Fn(&T, &T) -> bool + Sync,
    S: Fn(&mut [T]) + Sync,
{
    if slice.len() <= LEAST || size_of::<T>() == 0 {
        return sort_leaf(slice);
    }
    crate::runtime::as_stack(|me| {
        let leaves = me.runtime().core.workers.len() * LEAVES;
        let leaf = slice.len().div_ceil(leaves).max(LEAST);
        let mut buffer = Vec::with_capacity(slice.len());
        let buffer = &mut buffer.spare_capacity_mut()[..slice.len()];
        halve(slice, buffer, leaf, is_less, sort_leaf);
    });
}

fn halve<T, L, S>(
    slice: &mut [T],
    buffer: &mut [MaybeUninit<T>],
    leaf: usize,
    is_less: &L,
    sort_leaf: &S,
) where
    T: Send,
    L: Fn(&T, &T) -> bool + Sync,
    S: Fn(&mut [T]) + Sync,
{
    if slice.len() <= leaf {
        return sort_leaf(slice);
    }
    let middle = slice.len() / 2;
    {
        let (low, high) = slice.split_at_mut(middle);
        let (low_buffer, high_buffer) = buffer.split_at_mut(middle);
        join(
            || halve(low, low_buffer, leaf, is_less, sort_leaf),
            || halve(high, high_buffer, leaf, is_less, sort_leaf),
        );
    }
    let (low, high) = slice.split_at(middle);
    if !is_less(&high[0], &low[middle - 1]) {
        return;
    }
    merge(Shared(low), Shared(high), buffer, is_less);
    AbortOnPanic::during("a sort was interrupted while it moved elements", || {
        move_back(buffer, slice)
    });
}

/// Elements that are compared on several threads. Their type is `Send` and need not be `Sync`: no two threads have a
/// reference to one element at the same time, see [`merge`].
struct Shared<'a, T>(&'a [T]);

// SAFETY: as its documentation says, the thread that gets a run is the only one to look at its elements.
unsafe impl<T: Send> Send for Shared<'_, T> {}

/// Merges two sorted runs into `into`, which is as long as both together. The runs are cut without overlap, so each
/// element is looked at by one thread at a time.
fn merge<T, L>(
    Shared(low): Shared<'_, T>,
    Shared(high): Shared<'_, T>,
    into: &mut [MaybeUninit<T>],
    is_less: &L,
) where
    T: Send,
    L: Fn(&T, &T) -> bool + Sync,
{
    debug_assert_eq!(low.len() + high.len(), into.len());
    if into.len() <= MERGE {
        return merge_leaf(low, high, into, is_less);
    }
    // Of equal elements, `low`'s come first. So the cut is after the elements of `high` that are less than the middle
    // of `low`, or after the elements of `low` that are not greater than the middle of `high`.
    let (at_low, at_high) = if low.len() >= high.len() {
        let at = low.len() / 2;
        (at, high.partition_point(|h| is_less(h, &low[at])))
    } else {
        let at = high.len() / 2;
        (low.partition_point(|l| !is_less(&high[at], l)), at)
    };
    let (low_a, low_b) = low.split_at(at_low);
    let (high_a, high_b) = high.split_at(at_high);
    let (into_a, into_b) = into.split_at_mut(at_low + at_high);
    let (low_a, low_b, high_a, high_b) =
        (Shared(low_a), Shared(low_b), Shared(high_a), Shared(high_b));
    join(
        move || merge(low_a, high_a, into_a, is_less),
        move || merge(low_b, high_b, into_b, is_less),
    );
}

/// Merges on this stack.
fn merge_leaf<T, L: Fn(&T, &T) -> bool>(
    low: &[T],
    high: &[T],
    into: &mut [MaybeUninit<T>],
    is_less: &L,
) {
    let (mut l, mut h) = (0, 0);
    let mut slots = into.iter_mut();
    while l < low.len() && h < high.len() {
        let from_high = is_less(&high[h], &low[l]);
        let source = if from_high { &high[h] } else { &low[l] };
        h += usize::from(from_high);
        l += usize::from(!from_high);
        copy(
            std::slice::from_ref(source),
            slots.next().map(std::slice::from_mut),
        );
    }
    let rest = slots.into_slice();
    let (rest_low, rest_high) = rest.split_at_mut(low.len() - l);
    copy(&low[l..], Some(rest_low));
    copy(&high[h..], Some(rest_high));
}

/// Copies elements bit by bit. The copies are never dropped.
fn copy<T>(from: &[T], to: Option<&mut [MaybeUninit<T>]>) {
    let to = to.expect("as many slots as elements");
    assert_eq!(from.len(), to.len(), "as many slots as elements");
    // SAFETY: both are as long, and different memory. The copies are `MaybeUninit`, so nobody drops them.
    unsafe { ptr::copy_nonoverlapping(from.as_ptr(), to.as_mut_ptr().cast(), from.len()) };
}

/// Moves the elements back from the buffer, which holds each element of the slice once.
fn move_back<T: Send>(buffer: &mut [MaybeUninit<T>], slice: &mut [T]) {
    if buffer.len() > MERGE * 4 {
        let middle = buffer.len() / 2;
        let (from_a, from_b) = buffer.split_at_mut(middle);
        let (to_a, to_b) = slice.split_at_mut(middle);
        join(|| move_back(from_a, to_a), || move_back(from_b, to_b));
        return;
    }
    // SAFETY: both are as long, and different memory. Each element is in the buffer once, so it is in the slice once
    // again when all parts are moved. Nothing unwinds in between: no code of the program's is called, and where a
    // `join` panics, in a child of `fork(2)`, the caller aborts.
    unsafe { ptr::copy_nonoverlapping(buffer.as_ptr().cast(), slice.as_mut_ptr(), slice.len()) };
}
