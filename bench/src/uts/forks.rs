//! `join` of Urgency and of rayon over the halves of the children.

use super::{Config, Node};
use crate::engines::Join;
use std::ops::Range;
use urgency_measure::Sample;

/// One sample.
pub fn run(engine: impl Join, config: Config) -> Sample {
    engine.run(config.workers, || {
        config.measure(|node| count(engine, node))
    })
}

/// Nodes of the tree below and including `node`.
pub fn count(engine: impl Join, node: Node) -> u64 {
    1 + below(engine, &node, node.children())
}

fn below(engine: impl Join, node: &Node, children: Range<u32>) -> u64 {
    match children.len() {
        0 => 0,
        1 => count(engine, node.child(children.start)),
        _ => {
            let middle = children.start.midpoint(children.end);
            let (a, b) = engine.join(
                || below(engine, node, children.start..middle),
                || below(engine, node, middle..children.end),
            );
            a + b
        }
    }
}
