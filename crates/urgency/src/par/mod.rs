//! Parallel algorithms over slices and ranges.
//!
//! | call | gives |
//! | --- | --- |
//! | [`for_each`] | nothing; the closure sees each item once |
//! | [`map`] | a `Vec` of the results, in order |
//! | [`reduce`], [`fold`] | the results combined, in order; the operation need not be commutative |
//! | [`scan`] | each element replaced by the combination of all up to it |
//! | [`sort`], [`sort_by`], [`sort_by_key`] | the slice sorted, stably |
//!
//! The items are the elements of `&[T]` or of `&mut [T]`, the numbers of a range of integers, the [`chunks`] and
//! [`chunks_mut`] of a slice, or two of these side by side ([`zip`], [`enumerate`]). Each function can be called from
//! anywhere, as [`join`](crate::join()), runs at the caller's level, and gives way to more urgent work between two
//! blocks of items.
//!
//! # Grain
//!
//! There is no cut-off to choose. A loop runs as a loop, in blocks of a few microseconds. Between two blocks it looks
//! at the attention word of its stack. If a worker is hungry, the loop forks off the later half of what is left. So
//! with free workers a loop forks as often as they ask. Without free workers a loop of short items forks once, before
//! its first item. A loop of long items keeps a fork ready for a worker that becomes free in the midst of an item.
//! Where no worker comes, that is one fork for each halving of the loop. (Lazy binary splitting, after Tzannes,
//! Caragea, Barua and Vishkin, with the thief's request instead of a look at the deque as long as items are short.)
//!
//! A single item is never split. More urgent work waits for the end of the item that runs, or takes its worker after a
//! millisecond: see [what that costs](crate#how-long-a-leaf-may-be). Let a long item call
//! [`scheduling_point`](crate::scheduling_point) every 100 µs or so, or fork itself.
//!
//! # Panics
//!
//! If a closure panics, the panic goes on in the caller after everything in parallel has ended; items that were not
//! begun are not begun any more, as far as the loops learn of it. Every result that was made is dropped once. A slice
//! that was being sorted or scanned holds valid elements; a sorted one the same as before, in some order.
//!
//! # Examples
//!
//! ```
//! use urgency::par;
//!
//! let squares = par::map(0..1000u64, |n| n * n);
//! let sum = par::reduce(&squares[..], |&n| n, |a, b| a + b);
//! assert_eq!(sum, Some(332_833_500));
//! ```

mod fold;
mod items;
mod map;
mod run;
mod scan;
mod sort;
mod zip;

pub use fold::{fold, for_each, reduce};
pub use items::{Chunks, ChunksMut, Items, chunks, chunks_mut};
pub use map::map;
pub use scan::scan;
pub use sort::{sort, sort_by, sort_by_key};
pub use zip::{Zip, enumerate, zip};
