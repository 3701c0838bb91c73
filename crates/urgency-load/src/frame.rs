//! What the scene computes, in units of a microsecond (`harness/work.rs`).

use crate::harness::work::units;
use std::hint::black_box;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// Forked items of a stage.
pub const ITEMS: u64 = 200;
/// Stages of a frame, one after the other.
pub const STAGES: u64 = 3;
/// Decoders.
pub const DECODERS: u64 = 4;
/// Units of an audio callback.
const CALLBACK: u64 = 100;
/// Units of decoding between two looks at the meter, or two scheduling points of a decoder that checks in.
const GRAIN: u64 = 100;
/// Lengths of a decoder's pieces in turn, in thousands of units.
const PIECES: [u64; 5] = [5, 10, 20, 40, 80];

/// Units of an item: 16, and 100 for one in twenty, so 20.2 on average, and 600 items make 12 ms.
fn cost(item: u64) -> u64 {
    if item % 20 == 7 { 100 } else { 16 }
}

/// What the items of a stage add up to.
#[derive(Default)]
pub struct Stage(AtomicU64);

impl Stage {
    /// Draws one item.
    pub fn draw(&self, item: u64) {
        self.0
            .fetch_add(units(cost(item)) & 0xffff, Ordering::Relaxed);
    }

    /// Panics if an item was not drawn, or drawn wrongly.
    pub fn verify(&self) {
        static EXPECTED: OnceLock<u64> = OnceLock::new();
        let sum = || (0..ITEMS).map(|item| units(cost(item)) & 0xffff).sum();
        let drawn = self.0.load(Ordering::Relaxed);
        assert_eq!(drawn, *EXPECTED.get_or_init(sum), "a stage is incomplete");
    }
}

/// Fills a buffer of audio.
pub fn callback() {
    black_box(units(CALLBACK));
}

/// Grains of decoding done so far.
pub static DECODED: AtomicU64 = AtomicU64::new(0);

/// A decoder's piece number `piece`; `check_in` is called after each 100 units.
pub fn decode(decoder: u64, piece: u64, check_in: impl Fn()) {
    let length = PIECES[((decoder + piece) % PIECES.len() as u64) as usize] * 1000;
    for _ in 0..length / GRAIN {
        black_box(units(GRAIN));
        DECODED.fetch_add(1, Ordering::Relaxed);
        check_in();
    }
}
