//! `for_each`, `fold` and `reduce`: loops that keep one value at most.

use super::{
    items::Items,
    run::{Sink, run},
};

/// Calls `f` with each item, in parallel.
///
/// # Panics
///
/// With a panic of `f`.
///
/// # Examples
///
/// ```
/// let mut numbers = [1, 2, 3];
/// urgency::par::for_each(&mut numbers[..], |n| *n *= 2);
/// assert_eq!(numbers, [2, 4, 6]);
/// ```
pub fn for_each<I: Items>(items: I, f: impl Fn(I::Item) + Sync) {
    fold(items, || (), |(), item| f(item), |(), ()| ());
}

/// Folds runs of neighbouring items, each from a new `start()`, in parallel, and combines the results of neighbouring
/// runs. How many runs there are depends on how often workers were hungry, so `start()` is to be neutral for `combine`.
///
/// # Panics
///
/// With a panic of a closure.
///
/// # Examples
///
/// ```
/// let words = ["urgent", "work", "goes", "first"];
/// let text = urgency::par::fold(&words[..], String::new, |text, word| text + word, |a, b| a + &b);
/// assert_eq!(text, "urgentworkgoesfirst");
/// ```
pub fn fold<I: Items, A: Send>(
    items: I,
    start: impl Fn() -> A + Sync,
    fold: impl Fn(A, I::Item) -> A + Sync,
    combine: impl Fn(A, A) -> A + Sync,
) -> A {
    let calls = Calls {
        start,
        fold,
        combine,
    };
    let sink = Fold {
        value: None,
        calls: &calls,
    };
    run(items, sink).value.unwrap_or_else(&calls.start)
}

/// Combines what `map` makes of each item, in order; `None` if there is no item. `combine` is to be associative.
///
/// # Panics
///
/// With a panic of a closure.
///
/// # Examples
///
/// ```
/// let longest = urgency::par::reduce(&["a", "ccc", "bb"][..], |word| word.len(), usize::max);
/// assert_eq!(longest, Some(3));
/// ```
pub fn reduce<I: Items, R: Send>(
    items: I,
    map: impl Fn(I::Item) -> R + Sync,
    combine: impl Fn(R, R) -> R + Sync,
) -> Option<R> {
    fold(
        items,
        || None,
        |sum: Option<R>, item| {
            let next = map(item);
            Some(match sum {
                Some(sum) => combine(sum, next),
                None => next,
            })
        },
        |a, b| match (a, b) {
            (Some(a), Some(b)) => Some(combine(a, b)),
            (a, b) => a.or(b),
        },
    )
}

/// The closures of a fold.
struct Calls<S, F, C> {
    start: S,
    fold: F,
    combine: C,
}

/// The value of one run; `None` before its first item.
struct Fold<'a, A, S, F, C> {
    value: Option<A>,
    calls: &'a Calls<S, F, C>,
}

impl<T, A, S, F, C> Sink<T> for Fold<'_, A, S, F, C>
where
    A: Send,
    S: Fn() -> A + Sync,
    F: Fn(A, T) -> A + Sync,
    C: Fn(A, A) -> A + Sync,
{
    type Out = Self;

    fn feed(&mut self, block: impl Iterator<Item = T>) {
        let value = self.value.take().unwrap_or_else(&self.calls.start);
        self.value = Some(block.fold(value, &self.calls.fold));
    }

    fn split_off(&mut self, _: usize) -> Self {
        Fold {
            value: None,
            calls: self.calls,
        }
    }

    fn finish(self) -> Self {
        self
    }

    fn combine(earlier: Self, later: Self) -> Self {
        let calls = earlier.calls;
        let value = match (earlier.value, later.value) {
            (Some(a), Some(b)) => Some((calls.combine)(a, b)),
            (a, b) => a.or(b),
        };
        Fold { value, calls }
    }
}
