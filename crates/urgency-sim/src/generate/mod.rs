//! Computations to schedule.
//!
//! Shapes: [`fork_join`], [`futures`], [`map_reduce`] with latency, [`wavefront`], [`random`] with and
//! without inversions. Streams of arrivals: [`job_server`], [`memcached_like`], [`bing`] and
//! [`finance_like`]. And [`three_levels`], the fairness paper's experiment.
//!
//! Whatever is random comes from the seed that is given.

mod arrivals;
mod shapes;

pub(crate) use arrivals::{MOST_LOAD, MOST_RATE, Stream};
pub use arrivals::{Sizes, bing, finance_like, job_server, memcached_like};
pub use shapes::{Random, fork_join, futures, map_reduce, random, three_levels, wavefront};

use crate::dag::{Builder, Thread};

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
