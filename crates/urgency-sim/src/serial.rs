//! The serial execution, which deviations are counted against.

use crate::dag::{Dag, NONE, Vertex};

/// For each vertex the one that a serial execution runs before it; [`NONE`] for the first of a root.
///
/// One worker runs each vertex's first target next, keeps the others on a stack, and waits for no latency.
pub(crate) fn predecessors(dag: &Dag) -> Vec<Vertex> {
    let mut before = vec![NONE; dag.len()];
    let mut pending = dag.parents.clone();
    let mut roots: Vec<Vertex> = dag
        .threads
        .iter()
        .filter(|thread| thread.release.is_some())
        .map(|thread| thread.first)
        .filter(|&first| pending[first as usize] == 0)
        .collect();
    roots.reverse();
    let mut stack = roots;
    let mut last = NONE;
    while let Some(vertex) = stack.pop() {
        let thread = &dag.threads[dag.thread_of[vertex as usize] as usize];
        let is_start = thread.release.is_some() && thread.first == vertex;
        before[vertex as usize] = if is_start { NONE } else { last };
        last = vertex;
        for edge in dag.edges(vertex).iter().rev() {
            let pending = &mut pending[edge.to as usize];
            *pending -= 1;
            if *pending == 0 {
                stack.push(edge.to);
            }
        }
    }
    before
}
