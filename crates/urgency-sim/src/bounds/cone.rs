//! What a thread's response depends on: its competitors and its own span.
//!
//! The response of a spawned thread begins when all that its first vertex waits for has run. The response of a root
//! begins with its release. So a root has no ancestors here: what its first vertex waits for may run after its release,
//! and is part of its cone as if the root had begun with a vertex without work.
//!
//! The span also has what the thread waits for that is no work. One part is the release of another root, reckoned from
//! the release of the thread's own root, for the response begins no earlier. The other is the latency of I/O that one
//! of its ancestors began: the ancestor has run when the response begins, so no more than the latency is left.

use crate::dag::{Dag, Thread, Vertex};

/// The quantities of the theorems for one thread a with first vertex s and last vertex t.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Cone {
    /// By level: the work of vertices that may run in parallel with a: no proper ancestor of s, no proper
    /// descendant of t.
    pub competitors: Vec<u64>,
    /// The longest path to t among vertices that are no proper ancestors of s, with latencies (of edges from ancestors
    /// of s, too) and with the releases of other roots.
    pub span: u64,
    /// A vertex that a waits for though it is of a less urgent level: the DAG is ill-formed for a.
    pub inversion: Option<Vertex>,
    /// A vertex that a waits for at another level than its own.
    pub foreign: Option<Vertex>,
}

impl Cone {
    pub(super) fn of(dag: &Dag, thread: Thread) -> Cone {
        let info = &dag.threads()[thread as usize];
        let before = match info.release {
            Some(_) => vec![false; dag.len()],
            None => ancestors(dag, info.first),
        };
        let needed = ancestors(dag, info.last);
        let mut after = vec![false; dag.len()];
        let mut competitors = vec![0; dag.levels()];
        let mut done = vec![0u64; dag.len()];
        let own = dag.threads()[info.root as usize].release.unwrap_or(0);
        for root in dag.threads() {
            let release = root.release.unwrap_or(0);
            done[root.first as usize] = release.saturating_sub(own);
        }
        let (mut inversion, mut foreign) = (None, None);
        for &vertex in &dag.sorted {
            let at = vertex as usize;
            let level = dag.level(vertex);
            let is_after = after[at];
            for edge in dag.edges(vertex) {
                after[edge.to as usize] |= is_after || vertex == info.last;
            }
            if before[at] {
                for edge in dag.edges(vertex).iter().filter(|e| e.to != info.first) {
                    let target = &mut done[edge.to as usize];
                    *target = (*target).max(edge.latency);
                }
                continue;
            }
            if !is_after {
                competitors[usize::from(level)] += dag.work(vertex);
            }
            let counts = needed[at] || vertex == info.last;
            if !counts {
                continue;
            }
            if level > info.level {
                inversion = inversion.or(Some(vertex));
            }
            if level != info.level {
                foreign = foreign.or(Some(vertex));
            }
            let end = done[at] + dag.work(vertex);
            done[at] = end;
            for edge in dag.edges(vertex) {
                let target = &mut done[edge.to as usize];
                *target = (*target).max(end + edge.latency);
            }
        }
        Cone {
            competitors,
            span: done[info.last as usize],
            inversion,
            foreign,
        }
    }

    /// The work of competitors at this rank and above.
    pub(super) fn down_to(&self, level: u8) -> u64 {
        self.competitors[..=usize::from(level)].iter().sum()
    }
}

/// Which vertices must run before this one.
fn ancestors(dag: &Dag, vertex: Vertex) -> Vec<bool> {
    let mut is = vec![false; dag.len()];
    for &from in dag.sorted.iter().rev() {
        is[from as usize] = dag
            .edges(from)
            .iter()
            .any(|edge| edge.to == vertex || is[edge.to as usize]);
    }
    is
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dag::Builder;

    #[test]
    fn competitors_are_what_may_run_in_parallel_and_the_span_is_the_longest_way_to_the_end() {
        let mut dag = Builder::new();
        let main = dag.root(1, 0);
        let fork = dag.step(main, 10);
        let a = dag.spawn(fork, 0);
        dag.step(a, 5);
        dag.step_after(a, 100, 7);
        dag.step(main, 20);
        dag.get(main, a, 40);
        let dag = dag.build().unwrap();
        let cone = Cone::of(&dag, a);
        assert_eq!(cone.competitors, [12, 20]);
        assert_eq!((cone.span, cone.inversion), (112, None));
    }

    #[test]
    fn waiting_for_a_less_urgent_thread_is_an_inversion() {
        let mut dag = Builder::new();
        let a = dag.root(0, 0);
        let fork = dag.step(a, 1);
        let low = dag.spawn(fork, 1);
        let work = dag.step(low, 9);
        dag.get(a, low, 1);
        let dag = dag.build().unwrap();
        assert_eq!(Cone::of(&dag, a).inversion, Some(work));
        assert_eq!(Cone::of(&dag, low).inversion, None);
    }
}
