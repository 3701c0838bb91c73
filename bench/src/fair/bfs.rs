//! Breadth-first search of a random graph with sixteen edges out of each node: one frontier after the other,
//! its nodes in parallel, each node claimed by one compare-exchange. Nearly every access to a distance misses
//! the caches.

use super::kernel::Kernel;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use urgency::par;

const DEGREE: usize = 16;
/// Nodes of a frontier that are expanded without a fork.
const GRAIN: usize = 256;
const UNREACHED: u32 = u32::MAX;

/// The graph, and each node's distance from node 0.
pub struct Bfs {
    edges: Vec<u32>,
    distance: Vec<AtomicU32>,
}

impl Bfs {
    /// A graph of so many nodes.
    pub fn new(nodes: usize) -> Self {
        let mut random = fastrand::Rng::with_seed(17);
        let mut target = || random.u32(0..nodes as u32);
        Bfs {
            edges: (0..nodes * DEGREE).map(|_| target()).collect(),
            distance: (0..nodes).map(|_| AtomicU32::new(UNREACHED)).collect(),
        }
    }

    fn next(&self, node: u32) -> &[u32] {
        let from = node as usize * DEGREE;
        &self.edges[from..from + DEGREE]
    }

    /// The nodes that `nodes` reach first.
    fn expand(&self, nodes: &[u32], distance: u32) -> Vec<u32> {
        let claims = |&&node: &&u32| {
            let slot = &self.distance[node as usize];
            slot.load(Relaxed) == UNREACHED
                && slot
                    .compare_exchange(UNREACHED, distance, Relaxed, Relaxed)
                    .is_ok()
        };
        let targets = nodes.iter().flat_map(|&node| self.next(node));
        targets.filter(claims).copied().collect()
    }
}

/// The parts in one piece, copied in parallel.
fn concat(parts: &[Vec<u32>]) -> Vec<u32> {
    let mut whole = vec![0; parts.iter().map(Vec::len).sum()];
    let mut rest = &mut whole[..];
    let mut places = Vec::with_capacity(parts.len());
    for part in parts {
        let place;
        (place, rest) = rest.split_at_mut(part.len());
        places.push((place, part));
    }
    par::for_each(&mut places[..], |(place, part)| place.copy_from_slice(part));
    drop(places);
    whole
}

impl Kernel for Bfs {
    fn run(&mut self) {
        self.distance[0] = AtomicU32::new(0);
        let (mut frontier, mut distance) = (vec![0], 0);
        while !frontier.is_empty() {
            distance += 1;
            let found = par::map(par::chunks(&frontier, GRAIN), |nodes| {
                self.expand(nodes, distance)
            });
            frontier = concat(&found);
        }
    }

    fn verify(&self) {
        // Distances are right iff no edge skips one and each node but the first has a predecessor at the
        // distance before.
        let distance = |node: u32| self.distance[node as usize].load(Relaxed);
        let mut has_predecessor = vec![false; self.distance.len()];
        has_predecessor[0] = true;
        for node in 0..self.distance.len() as u32 {
            let here = distance(node);
            if here == UNREACHED {
                continue;
            }
            for &next in self.next(node) {
                assert!(distance(next) <= here + 1, "an edge skips a distance");
                has_predecessor[next as usize] |= distance(next) == here + 1;
            }
        }
        let reached = (0..self.distance.len()).filter(|&node| distance(node as u32) != UNREACHED);
        for node in reached {
            assert!(has_predecessor[node], "node {node} was not reached");
        }
    }
}
