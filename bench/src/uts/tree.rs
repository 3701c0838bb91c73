//! The tree's arithmetic, as the benchmark's definition has it.

use sha1::{Digest as _, Sha1};
use std::ops::Range;

const ROOT_SEED: u32 = 19;
const BRANCHING: f64 = 4.0;
const MOST_CHILDREN: u32 = 100;

/// A node: its hash and its depth.
#[derive(Clone, Copy)]
pub struct Node {
    hash: [u8; 20],
    depth: u32,
    leaves_from: u32,
}

impl Node {
    /// The root of the tree whose nodes have no children from depth `leaves_from` on.
    pub fn root(leaves_from: u32) -> Node {
        let mut seed = [0; 20];
        seed[16..].copy_from_slice(&ROOT_SEED.to_be_bytes());
        Node {
            hash: Sha1::digest(seed).into(),
            depth: 0,
            leaves_from,
        }
    }

    /// The numbers of this node's children: geometrically distributed, drawn from the hash's last 31 bits.
    pub fn children(&self) -> Range<u32> {
        if self.depth >= self.leaves_from {
            return 0..0;
        }
        let [.., a, b, c, d] = self.hash;
        let uniform = f64::from(u32::from_be_bytes([a, b, c, d]) & 0x7fff_ffff) / 2_147_483_648.0;
        let stop = 1.0 / (1.0 + BRANCHING);
        let count = ((1.0 - uniform).ln() / (1.0_f64 - stop).ln()).floor();
        0..(count as u32).min(MOST_CHILDREN)
    }

    /// Child number `index`.
    pub fn child(&self, index: u32) -> Node {
        let hash = Sha1::new()
            .chain_update(self.hash)
            .chain_update(index.to_be_bytes())
            .finalize();
        Node {
            hash: hash.into(),
            depth: self.depth + 1,
            leaves_from: self.leaves_from,
        }
    }
}
