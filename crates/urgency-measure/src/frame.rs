//! The frame loop: what a game or a video editor computes, as `urgency demo` and `urgency-bench frame` run it.
//!
//! - A *frame* has [`STAGES`] stages of [`ITEMS`] items that can be drawn in parallel: 12 ms of processor time. It is
//!   due each [`FRAME`], and late when the next one is due.
//! - *Audio*: a buffer is filled each [`AUDIO`].
//! - [`DECODERS`] *decoders* compute pieces of 5 to 80 ms, one after the other, without a look at anything else.
//!
//! This module has the work only. What schedules it is the contender's: threads, pools, or a runtime.
//!
//! Work is counted in *units*, each a chain of arithmetic that takes about a microsecond on the machine on which
//! Urgency is developed. It is an amount and not a time: a contender that is preempted computes the same.
//!
//! ```
//! use urgency_measure::frame::{ITEMS, Stage};
//!
//! let stage = Stage::default();
//! (0..ITEMS).for_each(|item| stage.draw(item)); // In parallel, if something runs them so.
//! stage.verify();
//! ```

use crate::machine::now_ns;
use std::hint::black_box;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// From one frame to the next: 60 a second.
pub const FRAME: Duration = Duration::from_nanos(16_666_667);
/// From one buffer of audio to the next.
pub const AUDIO: Duration = Duration::from_millis(5);
/// Items of a stage.
pub const ITEMS: u64 = 200;
/// Stages of a frame, one after the other.
pub const STAGES: u64 = 3;
/// Decoders.
pub const DECODERS: u64 = 4;
/// Units of decoding between two counts of [`decoded`], or two scheduling points of a decoder that checks in.
pub const GRAIN: u64 = 100;
/// Units of an audio callback.
const CALLBACK: u64 = 100;
/// Lengths of a decoder's pieces in turn, in thousands of units.
const PIECES: [u64; 5] = [5, 10, 20, 40, 80];
/// Steps of one unit.
const STEPS: u32 = 780;

static DECODED: AtomicU64 = AtomicU64::new(0);

/// Computes so many units. No compiler shortens it, and the result can be verified.
pub fn units(count: u64) -> u64 {
    let mut value = black_box(count);
    for _ in 0..count {
        for _ in 0..STEPS {
            value ^= value >> 29;
            value = value.wrapping_mul(0xbf58_476d_1ce4_e5b9);
        }
        value = black_box(value);
    }
    value
}

/// How long a unit takes here and now, in nanoseconds: the best of ten times a thousand.
pub fn unit_ns() -> f64 {
    let thousand = |_| {
        let start = now_ns();
        black_box(units(1000));
        now_ns() - start
    };
    let best = (0..10).map(thousand).min();
    best.expect("ten were measured") as f64 / 1000.0
}

/// Units of an item: 16, and 100 for one in twenty, so 20.2 on average, and 600 items make 12 ms.
fn cost(item: u64) -> u64 {
    if item % 20 == 7 { 100 } else { 16 }
}

/// What the items of a stage add up to.
#[derive(Debug, Default)]
pub struct Stage(AtomicU64);

impl Stage {
    /// Draws one item, of a number below [`ITEMS`].
    pub fn draw(&self, item: u64) {
        let drawn = units(cost(item)) & 0xffff;
        self.0.fetch_add(drawn, Ordering::Relaxed);
    }

    /// Looks whether each item was drawn once.
    ///
    /// # Panics
    ///
    /// If an item was not drawn, or drawn wrongly.
    pub fn verify(&self) {
        static EXPECTED: OnceLock<u64> = OnceLock::new();
        let sum = || (0..ITEMS).map(|item| units(cost(item)) & 0xffff).sum();
        let drawn = self.0.load(Ordering::Relaxed);
        assert_eq!(drawn, *EXPECTED.get_or_init(sum), "a stage is incomplete");
    }
}

/// Fills a buffer of audio: 100 units.
pub fn fill_buffer() {
    black_box(units(CALLBACK));
}

/// Decodes a decoder's piece number `piece`; calls `check_in` after each [`GRAIN`].
pub fn decode(decoder: u64, piece: u64, check_in: impl Fn()) {
    let length = PIECES[((decoder + piece) % PIECES.len() as u64) as usize] * 1000;
    for _ in 0..length / GRAIN {
        black_box(units(GRAIN));
        DECODED.fetch_add(1, Ordering::Relaxed);
        check_in();
    }
}

/// Grains that this process has decoded so far.
pub fn decoded() -> u64 {
    DECODED.load(Ordering::Relaxed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[should_panic(expected = "a stage is incomplete")]
    fn a_stage_without_one_of_its_items_is_noticed() {
        let stage = Stage::default();
        (1..ITEMS).for_each(|item| stage.draw(item));
        stage.verify();
    }

    #[test]
    fn a_frame_is_twelve_thousand_units() {
        let frame = STAGES * (0..ITEMS).map(cost).sum::<u64>();
        assert_eq!(frame, 12_120);
    }

    #[test]
    fn a_piece_counts_its_grains_and_checks_in_after_each() {
        let checked_in = AtomicU64::new(0);
        let before = decoded();
        decode(0, 0, || {
            checked_in.fetch_add(1, Ordering::Relaxed);
        });
        assert_eq!(checked_in.load(Ordering::Relaxed), 5000 / GRAIN);
        assert!(decoded() - before >= 5000 / GRAIN);
    }
}
