//! What snapshots have shown of times that only grow.

use crate::sys::primitives::atomic::{AtomicU64, Ordering};

/// The most that has been shown of each time of each worker, in ticks.
///
/// A snapshot that cannot tell a time for sure has found less than the truth. An earlier one may have found more, and
/// that was not more than the truth either: so the larger one is shown. There is no lock, since a child of `fork(2)`
/// may take a snapshot.
#[derive(Debug)]
pub(crate) struct Shown(Box<[AtomicU64]>);

impl Shown {
    /// Nothing has been shown of so many times.
    pub(crate) fn new(times: usize) -> Self {
        Shown((0..times).map(|_| AtomicU64::new(0)).collect())
    }

    /// A snapshot has found so many ticks in this place. What it shows.
    pub(crate) fn show(&self, place: usize, found: u64) -> u64 {
        self.0[place].fetch_max(found, Ordering::Relaxed).max(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_shown_is_never_taken_back() {
        let shown = Shown::new(2);
        let found = [3, 9, 5, 12].map(|found| shown.show(1, found));
        assert_eq!(found, [3, 9, 9, 12]);
        assert_eq!(shown.show(0, 1), 1);
    }
}
