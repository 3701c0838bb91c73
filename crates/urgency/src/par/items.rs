//! What the algorithms run over: something with a length, that can be cut in two and iterated.

use std::{mem, ops::Range, slice};

/// Items in an order, for the algorithms of this module.
///
/// # Examples
///
/// ```
/// use urgency::par::Items;
///
/// let mut low = 0..10u32;
/// let high = low.split_off(4);
/// assert_eq!((low, high), (0..4, 4..10));
///
/// // The closure says of which type the numbers are.
/// assert_eq!(urgency::par::map(0..3, |n| u64::count_ones(n)), [0, 1, 1]);
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is nothing to run over in parallel",
    label = "of a vector or an array write `&items[..]` or `&mut items[..]`",
    note = "slices, their `chunks` and `chunks_mut`, and ranges of numbers can be cut in two",
    note = "in the place of an iterator's `zip` and `enumerate` there are `par::zip` and `par::enumerate`"
)]
#[allow(clippy::len_without_is_empty, reason = "nobody asks that")]
pub trait Items: Send + Sized {
    /// One item.
    type Item;
    /// The sequential loop.
    type Iter: Iterator<Item = Self::Item>;

    /// How many items there are.
    fn len(&self) -> usize;

    /// Keeps the first `at` items and returns the rest.
    ///
    /// # Panics
    ///
    /// If there are fewer.
    fn split_off(&mut self, at: usize) -> Self;

    /// All of them, in order.
    fn iter(self) -> Self::Iter;
}

impl<'a, T: Sync> Items for &'a [T] {
    type Item = &'a T;
    type Iter = slice::Iter<'a, T>;

    fn len(&self) -> usize {
        <[T]>::len(self)
    }

    fn split_off(&mut self, at: usize) -> Self {
        let (low, high) = self.split_at(at);
        *self = low;
        high
    }

    fn iter(self) -> Self::Iter {
        <[T]>::iter(self)
    }
}

impl<'a, T: Send> Items for &'a mut [T] {
    type Item = &'a mut T;
    type Iter = slice::IterMut<'a, T>;

    fn len(&self) -> usize {
        <[T]>::len(self)
    }

    fn split_off(&mut self, at: usize) -> Self {
        let (low, high) = mem::take(self).split_at_mut(at);
        *self = low;
        high
    }

    fn iter(self) -> Self::Iter {
        <[T]>::iter_mut(self)
    }
}

/// Ranges by one implementation for all numbers: so the closure that takes the numbers may say of which type they are.
impl<N: Number> Items for Range<N>
where
    Range<N>: Iterator<Item = N>,
{
    type Item = N;
    type Iter = Self;

    /// # Panics
    /// If there are more than `usize::MAX` numbers.
    fn len(&self) -> usize {
        self.start.count_to(self.end)
    }

    fn split_off(&mut self, at: usize) -> Self {
        assert!(at <= Items::len(self), "a range is split inside");
        let middle = self.start.advanced_by(at);
        let high = middle..self.end.max(middle);
        self.end = middle;
        high
    }

    fn iter(self) -> Self::Iter {
        self
    }
}

/// The integers of ranges.
pub trait Number: Copy + Ord + Send {
    /// How many numbers there are from this one up to `end`.
    fn count_to(self, end: Self) -> usize;

    /// The number `by` above this one, which there is.
    fn advanced_by(self, by: usize) -> Self;
}

macro_rules! numbers {
    ($wide:ty: $($number:ty),*) => {$(
        impl Number for $number {
            fn count_to(self, end: Self) -> usize {
                if end <= self {
                    return 0;
                }
                let count = end as $wide - self as $wide;
                usize::try_from(count).expect("a range of at most usize::MAX numbers")
            }

            fn advanced_by(self, by: usize) -> Self {
                <$number>::try_from(self as $wide + by as $wide).expect("inside the range")
            }
        }
    )*};
}

numbers!(usize: usize);
numbers!(i128: u8, u16, u32, u64, i8, i16, i32, i64, isize);

/// The chunks of a slice; see [`chunks`].
#[derive(Debug, Clone)]
pub struct Chunks<'a, T> {
    slice: &'a [T],
    size: usize,
}

/// The chunks of a mutable slice; see [`chunks_mut`].
#[derive(Debug)]
pub struct ChunksMut<'a, T> {
    slice: &'a mut [T],
    size: usize,
}

/// The slice in chunks of `size` elements, the last one with what is left.
///
/// # Panics
///
/// If `size` is 0: a chunk has 1 element or more.
///
/// # Examples
///
/// ```
/// use urgency::par;
/// let sums = par::map(par::chunks(&[1, 2, 3, 4, 5], 2), |chunk| chunk.iter().sum::<i32>());
/// assert_eq!(sums, [3, 7, 5]);
/// ```
#[track_caller]
pub fn chunks<T: Sync>(slice: &[T], size: usize) -> Chunks<'_, T> {
    assert_size(size, "chunks");
    Chunks { slice, size }
}

/// As [`chunks`], of a slice that may be changed.
///
/// # Panics
///
/// If `size` is 0: a chunk has 1 element or more.
///
/// # Examples
///
/// ```
/// use urgency::par;
/// let mut rows = [3, 1, 2, 6, 5, 4];
/// par::for_each(par::chunks_mut(&mut rows, 3), |row| row.sort());
/// assert_eq!(rows, [1, 2, 3, 4, 5, 6]);
/// ```
#[track_caller]
pub fn chunks_mut<T: Send>(slice: &mut [T], size: usize) -> ChunksMut<'_, T> {
    assert_size(size, "chunks_mut");
    ChunksMut { slice, size }
}

#[track_caller]
fn assert_size(size: usize, function: &str) {
    assert!(
        size != 0,
        "`par::{function}` was called with a `size` of 0, and a chunk has 1 element or more: if the size is computed, \
         use `size.max(1)`"
    );
}

impl<'a, T: Sync> Items for Chunks<'a, T> {
    type Item = &'a [T];
    type Iter = slice::Chunks<'a, T>;

    fn len(&self) -> usize {
        self.slice.len().div_ceil(self.size)
    }

    fn split_off(&mut self, at: usize) -> Self {
        assert!(at <= self.len(), "chunks are split inside");
        let element = at.saturating_mul(self.size).min(self.slice.len());
        Chunks {
            slice: Items::split_off(&mut self.slice, element),
            size: self.size,
        }
    }

    fn iter(self) -> Self::Iter {
        self.slice.chunks(self.size)
    }
}

impl<'a, T: Send> Items for ChunksMut<'a, T> {
    type Item = &'a mut [T];
    type Iter = slice::ChunksMut<'a, T>;

    fn len(&self) -> usize {
        self.slice.len().div_ceil(self.size)
    }

    fn split_off(&mut self, at: usize) -> Self {
        assert!(at <= self.len(), "chunks are split inside");
        let element = at.saturating_mul(self.size).min(self.slice.len());
        ChunksMut {
            slice: Items::split_off(&mut self.slice, element),
            size: self.size,
        }
    }

    fn iter(self) -> Self::Iter {
        self.slice.chunks_mut(self.size)
    }
}
