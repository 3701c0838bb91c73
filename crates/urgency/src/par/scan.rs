//! `scan`: prefix sums, in place.
//!
//! 1. The slice is scanned as by [`super::for_each`]: each run of neighbouring elements on its own. What is left of a
//!    run is its length and the combination of all its elements.
//! 2. From the second run on, the combination of everything before it is put before each of its elements.
//!
//! So the work is the sequential loop's if no worker is hungry, and at most twice as much.

use super::{
    for_each,
    items::Items,
    run::{Sink, run},
};

/// Replaces each element by the combination of all elements up to it, itself included. `combine` gets the earlier
/// one first, and is to be associative.
///
/// # Panics
///
/// With a panic of `combine` or of `clone`. The elements are then old or new ones.
///
/// # Examples
///
/// ```
/// let mut numbers = [1, 2, 3, 4];
/// urgency::par::scan(&mut numbers, |a, b| a + b);
/// assert_eq!(numbers, [1, 3, 6, 10]);
/// ```
pub fn scan<T: Clone + Send + Sync>(slice: &mut [T], combine: impl Fn(&T, &T) -> T + Sync) {
    let runs = run(
        &mut *slice,
        Scan {
            runs: Vec::new(),
            length: 0,
            last: None,
            combine: &combine,
        },
    );
    let mut rest = slice;
    let mut before: Option<T> = None;
    for Run { length, last } in runs {
        let mut elements = std::mem::take(&mut rest);
        rest = elements.split_off(length);
        let all = match &before {
            None => last,
            Some(before) => {
                for_each(elements, |element: &mut T| {
                    *element = combine(before, element)
                });
                combine(before, &last)
            }
        };
        before = Some(all);
    }
}

/// A run that was scanned on its own.
struct Run<T> {
    length: usize,
    last: T,
}

struct Scan<'a, T, C> {
    runs: Vec<Run<T>>,
    length: usize,
    last: Option<T>,
    combine: &'a C,
}

impl<'b, T, C> Sink<&'b mut T> for Scan<'_, T, C>
where
    T: Clone + Send + Sync + 'b,
    C: Fn(&T, &T) -> T + Sync,
{
    type Out = Vec<Run<T>>;

    fn feed(&mut self, block: impl Iterator<Item = &'b mut T>) {
        for element in block {
            if let Some(last) = &self.last {
                *element = (self.combine)(last, element);
            }
            self.last = Some(element.clone());
            self.length += 1;
        }
    }

    fn split_off(&mut self, _: usize) -> Self {
        Scan {
            runs: Vec::new(),
            length: 0,
            last: None,
            combine: self.combine,
        }
    }

    fn finish(mut self) -> Vec<Run<T>> {
        let length = self.length;
        self.runs.extend(self.last.map(|last| Run { length, last }));
        self.runs
    }

    fn combine(mut earlier: Vec<Run<T>>, later: Vec<Run<T>>) -> Vec<Run<T>> {
        earlier.extend(later);
        earlier
    }
}
