//! Single computations.

use super::{built, tree};
use crate::dag::{Builder, Dag, Thread};
use urgency_policy::dice::Dice;

/// Trees are made by recursion.
const MOST_DEPTH: u32 = 1000;

/// A fork-join tree of this depth in which each inner node forks `branching` children, in the work-first
/// order; each vertex has `work` ns.
///
/// # Panics
///
/// If `branching` is 0, or `depth` is above 1,000.
pub fn fork_join(depth: u32, branching: u32, work: u64) -> Dag {
    assert!(
        depth <= MOST_DEPTH,
        "a tree with a depth of {depth} was asked for; it can be 0 to {MOST_DEPTH}"
    );
    assert!(branching > 0, "an inner node has at least one child");
    fn node(dag: &mut Builder, thread: Thread, depth: u32, branching: u32, work: u64) {
        let mut fork = dag.step(thread, work);
        if depth == 0 {
            return;
        }
        let mut children = Vec::new();
        for number in 0..branching {
            let child = dag.spawn(fork, 0);
            node(dag, child, depth - 1, branching, work);
            children.push(child);
            if number + 1 < branching {
                fork = dag.step(thread, work);
            }
        }
        let join = dag.sync(thread, children[0], work);
        for &child in &children[1..] {
            dag.also_joins(join, child);
        }
    }
    let mut dag = Builder::new();
    let root = dag.root(0, 0);
    node(&mut dag, root, depth, branching, work);
    built(dag)
}

/// A thread that creates `count` futures one after the other and touches each some creations later, at random; each
/// future is a chain of up to eight vertices and may itself touch an earlier one. Vertices have `work` ns.
pub fn futures(count: u32, work: u64, seed: u64) -> Dag {
    let mut dice = Dice::new(seed);
    let mut dag = Builder::new();
    let main = dag.root(0, 0);
    let mut open: Vec<Thread> = Vec::new();
    let mut made: Vec<Thread> = Vec::new();
    for _ in 0..count {
        let create = dag.step(main, work);
        let future = dag.spawn(create, 0);
        dag.step(future, work);
        for _ in 0..dice.below(8) {
            dag.step(future, work);
        }
        if !made.is_empty() && dice.below(4) == 0 {
            let earlier = made[dice.below(made.len() as u64) as usize];
            dag.get(future, earlier, work);
        }
        open.push(future);
        made.push(future);
        if open.len() > 4 && dice.below(2) == 0 {
            let touched = open.swap_remove(dice.below(open.len() as u64) as usize);
            dag.get(main, touched, work);
        }
    }
    for future in open {
        dag.get(main, future, work);
    }
    built(dag)
}

/// The latency-hiding paper's benchmark: a fork-join tree whose leaves wait `latency` ns for I/O and then compute for
/// `leaf` ns; inner vertices have `inner` ns.
pub fn map_reduce(leaves: u64, latency: u64, leaf: u64, inner: u64) -> Dag {
    fn map(dag: &mut Builder, thread: Thread, leaves: u64, io: (u64, u64), inner: u64) {
        if leaves <= 1 {
            dag.step(thread, inner);
            dag.step_after(thread, io.0, io.1);
            return;
        }
        let fork = dag.step(thread, inner);
        let child = dag.spawn(fork, 0);
        map(dag, child, leaves / 2, io, inner);
        map(dag, thread, leaves - leaves / 2, io, inner);
        dag.sync(thread, child, inner);
    }
    let mut dag = Builder::new();
    let root = dag.root(0, 0);
    map(&mut dag, root, leaves, (latency, leaf), inner);
    built(dag)
}

/// A wavefront over a grid: each row is a future that the row above creates with its first cell, and each
/// cell waits for the one above it. Cells have `work` ns.
pub fn wavefront(rows: u32, columns: u32, work: u64) -> Dag {
    let mut dag = Builder::new();
    let first = dag.root(0, 0);
    let mut above: Vec<u32> = Vec::new();
    let mut thread = first;
    for row in 0..rows.max(1) {
        let mut cells = Vec::new();
        if row > 0 {
            thread = dag.spawn(above[0], 0);
        }
        for column in 0..columns.max(1) {
            let cell = dag.step(thread, work);
            if column > 0
                && let Some(&over) = above.get(column as usize)
            {
                dag.edge(over, cell, 0);
            }
            cells.push(cell);
        }
        above = cells;
    }
    built(dag)
}

/// The parameters of [`random`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Random {
    /// About how many vertices.
    pub vertices: u32,
    /// How many levels.
    pub levels: u8,
    /// The most work of a vertex in nanoseconds.
    pub work: u64,
    /// The most latency of an I/O edge in nanoseconds.
    pub latency: u64,
    /// Whether threads may wait for less urgent ones.
    pub inversions: bool,
    /// How many roots, released at random times within `within` ns.
    pub roots: u32,
    /// When the last root is released at the latest, in nanoseconds.
    pub within: u64,
}

impl Default for Random {
    fn default() -> Self {
        Random {
            vertices: 1000,
            levels: 3,
            work: 1,
            latency: 20,
            inversions: false,
            roots: 4,
            within: 100,
        }
    }
}

/// Random threads that spawn, get, and wait for I/O. A thread gets only threads that it spawned itself, so the DAG is
/// well-formed unless inversions are asked for.
pub fn random(parameters: Random, seed: u64) -> Dag {
    let mut dice = Dice::new(seed);
    let mut dag = Builder::new();
    let levels = u64::from(parameters.levels.max(1));
    let work = |dice: &mut Dice| 1 + dice.below(parameters.work.max(1));
    let mut active: Vec<(Thread, u8, Vec<Thread>)> = Vec::new();
    for _ in 0..parameters.roots.max(1) {
        let level = dice.below(levels) as u8;
        let release = dice.below(parameters.within.saturating_add(1));
        let root = dag.root(level, release);
        dag.step(root, work(&mut dice));
        active.push((root, level, Vec::new()));
    }
    let mut vertices = parameters.roots;
    while vertices < parameters.vertices {
        vertices += 1;
        let at = dice.below(active.len() as u64) as usize;
        let (thread, level, _) = active[at];
        match dice.below(10) {
            0..=3 => {
                let from = dag.step(thread, work(&mut dice));
                let child_level = dice.below(levels) as u8;
                let child = dag.spawn(from, child_level);
                dag.step(child, work(&mut dice));
                vertices += 1;
                active[at].2.push(child);
                active.push((child, child_level, Vec::new()));
            }
            4..=5 => {
                let may = |child: &Thread, dag: &Builder| {
                    parameters.inversions || dag.level_of(*child) <= level
                };
                let found = active[at].2.iter().position(|child| may(child, &dag));
                let Some(found) = found else {
                    dag.step(thread, work(&mut dice));
                    continue;
                };
                let child = active[at].2.swap_remove(found);
                // Nothing is added to a thread that is waited for.
                if let Some(done) = active.iter().position(|(other, ..)| *other == child) {
                    active.swap_remove(done);
                }
                dag.get(thread, child, work(&mut dice));
            }
            6 if parameters.latency > 0 => {
                let latency = 1 + dice.below(parameters.latency);
                dag.step_after(thread, latency, work(&mut dice));
            }
            _ => {
                dag.step(thread, work(&mut dice));
            }
        }
    }
    built(dag)
}

/// The fairness paper's experiment: a request every `period` ns at level 0, an endless parallel sink at level
/// 1 (as much work as all workers could do in `time`), and a kernel at level 2 with `kernel` ns of work.
/// Leaves have `grain` ns. The sink is thread 0, the kernel thread 1.
pub fn three_levels(workers: usize, time: u64, period: u64, kernel: u64, grain: u64) -> Dag {
    let mut dag = Builder::new();
    let sink = dag.root(1, 0);
    let compute = dag.root(2, 0);
    let leaves = (time.saturating_mul(workers as u64) / grain.max(1)).max(1);
    tree(&mut dag, sink, leaves, grain, 1);
    tree(&mut dag, compute, (kernel / grain.max(1)).max(1), grain, 1);
    for at in (0..time).step_by(period.max(1) as usize) {
        let request = dag.root(0, at);
        dag.step(request, grain);
    }
    built(dag)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_have_the_work_and_span_that_follow_from_their_definition() {
        let tree = fork_join(3, 2, 1);
        // 8 leaves; each of the 7 inner nodes forks twice and joins.
        assert_eq!(tree.total_work(), 8 + 7 * 3);
        // Two forks and a join at each of three levels, and the leaf.
        assert_eq!(tree.span(), 3 * 3 + 1);
        let reduce = map_reduce(4, 100, 10, 1);
        assert_eq!(reduce.total_work(), 4 * 11 + 3 * 2);
        assert_eq!(reduce.span(), 2 + 1 + 100 + 10 + 2);
        let grid = wavefront(5, 7, 3);
        assert_eq!(
            (grid.total_work(), grid.span()),
            (5 * 7 * 3, (5 + 7 - 1) * 3)
        );
    }

    #[test]
    fn random_computations_are_the_same_for_the_same_seed() {
        let p = Random::default();
        assert_eq!(random(p, 5), random(p, 5));
        assert_ne!(random(p, 5), random(p, 6));
    }
}
