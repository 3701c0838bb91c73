//! The compute that never ends, and the meter that counts its units.
//!
//! A *unit* is one `fib(18)` by the definition, without any shortcut: 8361 calls. In fork-join compute each
//! of its calls is a fork, and a tree of forks over 256 units stands above, again and again; the three
//! contenders run the same lines over their own `join`. In sequential compute (and under plain threads, which
//! have no `join`) a unit is the plain recursion.
//!
//! The meter is one counter per process. A unit takes tens of microseconds, so counting it costs nothing.

use std::{
    hint::black_box,
    sync::atomic::{AtomicU64, Ordering},
};

const ARGUMENT: u32 = 18;
const RESULT: u32 = 2584;
const TREE_DEPTH: u32 = 8;

static UNITS: AtomicU64 = AtomicU64::new(0);

/// A runtime's way to run two closures in parallel.
pub trait Join: Copy + Send + Sync {
    /// Runs both and returns both results.
    fn join<A: Send, B: Send>(
        self,
        a: impl FnOnce() -> A + Send,
        b: impl FnOnce() -> B + Send,
    ) -> (A, B);
}

/// Units computed by this process so far.
pub fn units() -> u64 {
    UNITS.load(Ordering::Relaxed)
}

/// Fork-join compute without end.
pub fn fork_join(join: impl Join) -> ! {
    loop {
        tree(join, TREE_DEPTH);
    }
}

/// Sequential compute without end, which never calls into any runtime.
pub fn sequential() -> ! {
    loop {
        count_unit(fib(black_box(ARGUMENT)));
    }
}

fn tree(join: impl Join, depth: u32) {
    if depth == 0 {
        count_unit(forking_fib(join, black_box(ARGUMENT)));
    } else {
        join.join(|| tree(join, depth - 1), || tree(join, depth - 1));
    }
}

fn forking_fib(join: impl Join, n: u32) -> u32 {
    if n < 2 {
        return n;
    }
    let (a, b) = join.join(|| forking_fib(join, n - 1), || forking_fib(join, n - 2));
    a + b
}

fn fib(n: u32) -> u32 {
    if n < 2 { n } else { fib(n - 1) + fib(n - 2) }
}

fn count_unit(result: u32) {
    assert_eq!(result, RESULT, "the compute went wrong");
    UNITS.fetch_add(1, Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Copy)]
    struct InTurn;

    impl Join for InTurn {
        fn join<A: Send, B: Send>(
            self,
            a: impl FnOnce() -> A + Send,
            b: impl FnOnce() -> B + Send,
        ) -> (A, B) {
            (a(), b())
        }
    }

    #[test]
    fn a_tree_counts_one_unit_per_leaf() {
        let before = units();
        tree(InTurn, 3);
        assert_eq!(units() - before, 8);
    }

    #[test]
    fn forked_and_plain_units_compute_the_same() {
        assert_eq!(forking_fib(InTurn, ARGUMENT), RESULT);
        assert_eq!(fib(ARGUMENT), RESULT);
    }
}
