//! `Scope::join_with_heartbeat_every::<1>` over the halves of the children.

use super::{Config, Node};
use crate::engines;
use chili::Scope;
use std::ops::Range;
use urgency_measure::Sample;

/// One sample.
pub fn run(config: Config) -> Sample {
    let pool = engines::chili::pool(config.workers);
    let mut scope = pool.scope();
    config.measure(|node| count(&mut scope, node))
}

fn count(scope: &mut Scope<'_>, node: Node) -> u64 {
    1 + below(scope, &node, node.children())
}

fn below(scope: &mut Scope<'_>, node: &Node, children: Range<u32>) -> u64 {
    match children.len() {
        0 => 0,
        1 => count(scope, node.child(children.start)),
        _ => {
            let middle = children.start.midpoint(children.end);
            let (a, b) = scope.join_with_heartbeat_every::<1, _, _, _, _>(
                |scope| below(scope, node, children.start..middle),
                |scope| below(scope, node, middle..children.end),
            );
            a + b
        }
    }
}
