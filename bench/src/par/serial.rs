//! The sequential loops.

use super::{Loops, uneven, work};

/// See the module's text.
pub struct Serial;

impl Loops for Serial {
    fn map(len: u64) -> Vec<u64> {
        (0..len).map(work).collect()
    }

    fn reduce(len: u64) -> u64 {
        (0..len).map(work).fold(0, u64::wrapping_add)
    }

    fn skewed(len: u64) -> u64 {
        (0..len).map(uneven).fold(0, u64::wrapping_add)
    }

    fn sort(numbers: &mut [u64]) {
        numbers.sort();
    }
}
