//! The serial program.

use super::{Config, Node};
use urgency_measure::Sample;

/// One sample.
pub fn run(config: Config) -> Sample {
    config.measure(count)
}

/// Nodes of the tree below and including `node`.
pub fn count(node: Node) -> u64 {
    1 + node
        .children()
        .map(|index| count(node.child(index)))
        .sum::<u64>()
}
