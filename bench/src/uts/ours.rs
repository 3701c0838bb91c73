//! `urgency::join` over the halves of the children.

use super::{Config, Node};
use crate::engines;
use std::ops::Range;
use urgency_measure::Sample;

/// One sample.
pub fn run(config: Config) -> Sample {
    engines::ours::run(config.workers, || config.measure(count))
}

/// Nodes of the tree below and including `node`.
pub fn count(node: Node) -> u64 {
    1 + below(&node, node.children())
}

fn below(node: &Node, children: Range<u32>) -> u64 {
    match children.len() {
        0 => 0,
        1 => count(node.child(children.start)),
        _ => {
            let middle = children.start.midpoint(children.end);
            let (a, b) = urgency::join(
                || below(node, children.start..middle),
                || below(node, middle..children.end),
            );
            a + b
        }
    }
}
