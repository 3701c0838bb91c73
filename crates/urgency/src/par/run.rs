//! The loop behind the algorithms.
//!
//! 1. The loop takes a block of items from the front and feeds it to its *sink*, which keeps the results.
//! 2. Between two blocks the loop compares its attention word. If more urgent work waits, it gives way. If a worker is
//!    hungry, it cuts off the later half of what is left, with a sink of its own, and forks that half with `join`: the
//!    push is a scheduling point, so the half is public at once. Then the loop goes on with the earlier half.
//! 3. If the next item may be *long*, and the stack has no fork that waits, the loop forks the later half although no
//!    worker is hungry. A worker that becomes hungry during the item finds the fork (`sched/serve/search.rs`). An item
//!    may be long if the one before took more than [`LONG`], or if no item of the loop has been timed yet.
//! 4. At its end the loop returns what its sink has, combined with what the forked halves have, in order.
//!
//! The block grows while it takes less than [`SHORT`] and shrinks while it takes more than [`LONG`]: that bounds the
//! time without a look at the attention word, at the cost of a clock reading for each block. The parts of a loop share
//! what they learnt of its pace.
//!
//! # Rejected
//!
//! - A look at the own deque before each block, as in the paper on lazy splitting (fork when it is empty). It forks
//!   log n times where items are short and no worker is hungry.
//! - To fork only where a worker is hungry. A worker that became hungry in the middle of an item of 50 ms idled until
//!   the item's end. So did a worker that had been started for something else when the loop began, and came in vain.

use super::items::Items;
use crate::{
    runtime::as_stack,
    sched::{
        forks::held_back::Asked,
        serve::run::{asked_for_forks, check},
        stack::Me,
    },
    sys::clock,
};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// A block that takes less time than this, in nanoseconds, is followed by one twice as long; if it takes less than a
/// sixteenth of it, by one eight times as long.
const SHORT: f64 = 3_000.0;
/// A block that takes more time than this, in nanoseconds, is followed by one half as long.
const LONG: f64 = 12_000.0;

/// What a loop does with its items, and keeps of them.
pub(super) trait Sink<T>: Send + Sized {
    /// What is left of it at the end.
    type Out: Send;

    /// Takes the next items.
    fn feed(&mut self, block: impl Iterator<Item = T>);

    /// Cuts off the sink for the items from the one on that comes `at` places after the next.
    fn split_off(&mut self, at: usize) -> Self;

    /// There are no more items.
    fn finish(self) -> Self::Out;

    /// What came of two neighbouring runs of items, the earlier one first.
    fn combine(earlier: Self::Out, later: Self::Out) -> Self::Out;
}

/// Feeds all items to the sink, or to parts of it, in parallel.
pub(super) fn run<I: Items, S: Sink<I::Item>>(items: I, sink: S) -> S::Out {
    as_stack(|me| {
        check(me);
        blocks(me, items, sink, &AtomicUsize::new(1))
    })
}

/// `pace` is the length of a block, for all parts of the loop; 1 if items are long, or none has been timed.
fn blocks<I: Items, S: Sink<I::Item>>(
    me: Me<'_>,
    mut items: I,
    mut sink: S,
    pace: &AtomicUsize,
) -> S::Out {
    let per_nanosecond = clock::ticks_per_nanosecond();
    let (short, long) = (
        (SHORT * per_nanosecond) as u64,
        (LONG * per_nanosecond) as u64,
    );
    let mut grain = pace.load(Relaxed);
    let mut may_be_long = grain == 1;
    let mut began = clock::now();
    loop {
        let len = items.len();
        if me.attention.is_wanted() {
            if len > 1 && asked_for_forks(me) == Asked::Now {
                return halves(items, sink, len / 2, pace);
            }
            check(me);
            began = clock::now();
        }
        if may_be_long && len > 1 && me.deque.seems_empty() {
            return halves(items, sink, len / 2, pace);
        }
        if len <= grain {
            feed(&mut sink, items);
            return sink.finish();
        }
        let rest = items.split_off(grain);
        feed(&mut sink, items);
        items = rest;
        let now = clock::now();
        let took = now.saturating_sub(began);
        began = now;
        may_be_long = grain == 1 && took > long;
        let next = if took < short / 16 {
            grain.saturating_mul(8)
        } else if took < short {
            grain.saturating_mul(2)
        } else if took > long {
            (grain / 2).max(1)
        } else {
            grain
        };
        if next != grain {
            grain = next;
            pace.store(grain, Relaxed);
        }
    }
}

/// The items' own loop, on its own: inlined among the above, it has fewer registers (a lexer of 8 KiB of text took 8 %
/// longer).
#[inline(never)]
fn feed<I: Items, S: Sink<I::Item>>(sink: &mut S, block: I) {
    sink.feed(block.iter());
}

fn halves<I: Items, S: Sink<I::Item>>(
    mut items: I,
    mut sink: S,
    at: usize,
    pace: &AtomicUsize,
) -> S::Out {
    let (later_items, later_sink) = (items.split_off(at), sink.split_off(at));
    let on_this_stack = move |items, sink| move || as_stack(|me| blocks(me, items, sink, pace));
    let (earlier, later) = crate::join(
        on_this_stack(items, sink),
        on_this_stack(later_items, later_sink),
    );
    S::combine(earlier, later)
}
