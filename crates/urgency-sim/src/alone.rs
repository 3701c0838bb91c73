//! What a root would take on a machine of its own: the other half of a stretch.
//!
//! A root's *job* is the root and what it spawned, directly or not. On P workers of its own its last vertex
//! can have run, at the earliest, after the longest path to it and after a P-th part of all work that it
//! waits for, both within the job: nothing of the schedule that is measured is in that. So a stretch against
//! it is never less than against any real run alone, and never below 1. (A greedy run alone takes at most the
//! sum of the two, by Brent.)
//!
//! What a job waits for outside of itself, the request before it on a connection say, is no work of its own:
//! that wait is in the response.

use crate::dag::{Dag, NONE, Thread};

/// By thread, in nanoseconds: the least time that a root could take alone. 0 for threads that are none.
pub(crate) fn alone(dag: &Dag, workers: usize) -> Vec<u64> {
    let job: Vec<Thread> = dag
        .thread_of
        .iter()
        .map(|&t| dag.threads()[t as usize].root)
        .collect();
    let mut is_needed = vec![false; dag.len()];
    for root in dag
        .threads()
        .iter()
        .filter(|thread| thread.release.is_some())
    {
        is_needed[root.last as usize] = true;
    }
    for &vertex in dag.sorted.iter().rev() {
        let within = |to: u32| is_needed[to as usize] && job[to as usize] == job[vertex as usize];
        is_needed[vertex as usize] |= dag.edges(vertex).iter().any(|edge| within(edge.to));
    }
    let mut work = vec![0u64; dag.threads().len()];
    let mut span = vec![0u64; dag.threads().len()];
    let mut ready = vec![0u64; dag.len()];
    for &vertex in dag
        .sorted
        .iter()
        .filter(|&&vertex| is_needed[vertex as usize])
    {
        let root = job[vertex as usize];
        let done = ready[vertex as usize] + dag.work(vertex);
        work[root as usize] += dag.work(vertex);
        if vertex == dag.threads()[root as usize].last {
            span[root as usize] = done;
        }
        for edge in dag
            .edges(vertex)
            .iter()
            .filter(|edge| job[edge.to as usize] == root)
        {
            let at = &mut ready[edge.to as usize];
            *at = (*at).max(done + edge.latency);
        }
    }
    debug_assert!(job.iter().all(|&root| root != NONE));
    let parts = work.into_iter().map(|work| work.div_ceil(workers as u64));
    parts.zip(span).map(|(part, span)| part.max(span)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{dag::Builder, generate};

    #[test]
    fn it_is_the_longer_one_of_the_span_and_a_part_of_the_work() {
        let dag = generate::fork_join(6, 2, 10);
        assert_eq!(alone(&dag, 1)[0], dag.total_work());
        assert_eq!(alone(&dag, 4)[0], dag.total_work().div_ceil(4));
        assert_eq!(alone(&dag, 1000)[0], dag.span());
        assert!(alone(&dag, 4)[1..].iter().all(|&time| time == 0));
    }

    #[test]
    fn neither_another_job_nor_what_nobody_waits_for_is_part_of_it() {
        let mut dag = Builder::new();
        let first = dag.root(0, 0);
        let before = dag.step(first, 100);
        let second = dag.root(0, 50);
        let start = dag.step(second, 10);
        dag.edge(before, start, 0);
        let forgotten = dag.spawn(start, 1);
        dag.step(forgotten, 1000);
        dag.step_after(second, 5, 10);
        let dag = dag.build().unwrap();
        assert_eq!(alone(&dag, 1), [100, 25, 0]);
    }
}
