//! Two sequences of items side by side, as by [`Iterator::zip`].

use super::Items;
use std::{iter, ops::Range};

/// Two sequences of items in pairs; see [`zip`].
#[derive(Debug, Clone)]
pub struct Zip<A, B> {
    // They have the same length.
    first: A,
    second: B,
}

/// The items of both in pairs: the first of each, the second of each, and so on until one has no more.
///
/// # Examples
///
/// One step of a simulation reads the old state and writes the new one:
///
/// ```
/// use urgency::par;
///
/// let old = [1, 5, 2, 8];
/// let mut new = [0; 4];
/// par::for_each(par::zip(&old[..], &mut new[..]), |(old, new)| *new = old * 10);
/// assert_eq!(new, [10, 50, 20, 80]);
/// ```
pub fn zip<A: Items, B: Items>(mut first: A, mut second: B) -> Zip<A, B> {
    let both = first.len().min(second.len());
    drop((first.split_off(both), second.split_off(both)));
    Zip { first, second }
}

/// The items with their numbers, from 0 on.
///
/// # Examples
///
/// ```
/// use urgency::par;
///
/// let mut squares = [0; 5];
/// par::for_each(par::enumerate(&mut squares[..]), |(n, square)| *square = n * n);
/// assert_eq!(squares, [0, 1, 4, 9, 16]);
/// ```
pub fn enumerate<I: Items>(items: I) -> Zip<Range<usize>, I> {
    zip(0..items.len(), items)
}

impl<A: Items, B: Items> Items for Zip<A, B> {
    type Item = (A::Item, B::Item);
    type Iter = iter::Zip<A::Iter, B::Iter>;

    fn len(&self) -> usize {
        self.first.len()
    }

    fn split_off(&mut self, at: usize) -> Self {
        Zip {
            first: self.first.split_off(at),
            second: self.second.split_off(at),
        }
    }

    fn iter(self) -> Self::Iter {
        self.first.iter().zip(self.second.iter())
    }
}
