//! The compute that never ends, and the meter that counts its units.

use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};
use urgency_measure::timing::serial_fib;

/// Argument of fib at each leaf of the fork-join compute.
pub const LEAF: u32 = 16;
/// The fork-join tree has two to this power leaves.
pub const TREE_DEPTH: u32 = 8;
/// Argument of fib in one unit of a sequential loop: about 0.1 ms.
pub const LOOP_LEAF: u32 = 23;

/// Counts units of compute.
pub struct Meter(AtomicU64);

/// The process's meter.
pub static METER: Meter = Meter(AtomicU64::new(0));

impl Meter {
    /// One unit more.
    pub fn count(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    /// Units so far.
    pub fn units(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// One unit of sequential compute.
pub fn serial_leaf() {
    assert_eq!(serial_fib(black_box(LOOP_LEAF)), 28_657, "wrong result");
    METER.count();
}

/// A loop that never ends and never checks in.
pub fn endless_loop() {
    loop {
        serial_leaf();
    }
}
