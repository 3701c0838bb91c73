//! Computations to schedule.
//!
//! Shapes: [`fork_join`], [`futures`], [`map_reduce`] with latency, [`wavefront`], [`random`] with and
//! without inversions. Streams of arrivals: [`job_server`], [`memcached_like`], [`bing`] and
//! [`finance_like`]. And [`three_levels`], the fairness paper's experiment.
//!
//! Whatever is random comes from the seed that is given.
//!
//! # Panics
//!
//! Each of them panics, with the cause, if its numbers make no computation: work and longest path are above
//! [`LONGEST`](crate::dag::LONGEST) together, or there are more than 64 levels. All vertices are in memory.

mod arrivals;
mod shapes;

pub(crate) use arrivals::{MOST_LOAD, MOST_RATE, Stream};
pub use arrivals::{Sizes, bing, finance_like, job_server, memcached_like};
pub use shapes::{Random, fork_join, futures, map_reduce, random, three_levels, wavefront};

use crate::dag::{Builder, Dag, Thread};

/// The computation. What was asked for may make none: it takes too long, or has too many levels.
fn built(dag: Builder) -> Dag {
    dag.build().unwrap_or_else(|error| {
        panic!("numbers were given that make no computation: {error}; lower them")
    })
}

/// A balanced binary fork-join tree in the work-first order, in an existing thread: so many leaves, each with
/// `leaf` ns of work, inner nodes with `inner` ns before and after. Ends with a vertex of the thread.
pub(crate) fn tree(dag: &mut Builder, thread: Thread, leaves: u64, leaf: u64, inner: u64) {
    let level = dag.level_of(thread);
    if leaves <= 1 {
        dag.step(thread, leaf);
        return;
    }
    let fork = dag.step(thread, inner);
    let child = dag.spawn(fork, level);
    tree(dag, child, leaves / 2, leaf, inner);
    tree(dag, thread, leaves - leaves / 2, leaf, inner);
    dag.sync(thread, child, inner);
}

/// How many vertices [`tree`] makes.
pub(crate) fn tree_vertices(leaves: u64) -> u64 {
    3 * leaves.max(1) - 2
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::catch_unwind;
    use urgency_policy::dice::Dice;

    #[test]
    fn numbers_that_make_no_computation_are_refused_with_the_cause() {
        let refused = |make: fn() -> Dag| {
            let panicked = catch_unwind(make).unwrap_err();
            panicked.downcast_ref::<String>().unwrap().clone()
        };
        for make in [
            || fork_join(3, 2, u64::MAX),
            || futures(3, u64::MAX, 1),
            || map_reduce(3, u64::MAX, u64::MAX, u64::MAX),
            || wavefront(3, 3, u64::MAX),
            || three_levels(2, 100, 10, 20, u64::MAX),
            || {
                let within = u64::MAX;
                random(
                    Random {
                        within,
                        ..Random::default()
                    },
                    1,
                )
            },
            || {
                let work = u64::MAX;
                random(
                    Random {
                        work,
                        ..Random::default()
                    },
                    1,
                )
            },
        ] {
            let text = refused(make);
            assert!(text.contains("make no computation"), "{text}");
            assert!(text.contains("ns together; that is the most"), "{text}");
        }
        let levels = refused(|| {
            random(
                Random {
                    levels: 200,
                    ..Random::default()
                },
                1,
            )
        });
        assert!(levels.contains("ranks are 0 to 63"), "{levels}");
        let deep = refused(|| fork_join(u32::MAX, 1, 1));
        assert!(deep.contains("depth of 4294967295"), "{deep}");
    }

    #[test]
    fn sizes_of_any_base_are_drawn() {
        let sizes = Sizes { base: u64::MAX };
        let mut dice = Dice::new(1);
        assert!((0..100).all(|_| sizes.draw(&mut dice) >= u64::MAX / 200 - 100));
    }
}
