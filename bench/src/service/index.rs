//! What the reindex writes and searches read: a map behind a lock of the standard library.
//!
//! A *document* is 20 us of work. A *leaf* of the reindex computes so many documents without a scheduling point,
//! then writes all of them into the map under the lock. A search reads some entries under the lock.

use std::collections::HashMap;
use std::hint::black_box;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use urgency_measure::frame::units;

/// Units of work of a document.
const DOCUMENT: u64 = 20;
/// Documents in the index.
pub const DOCUMENTS: u64 = 16_000;
/// Entries that a search reads.
const HITS: u64 = 16;

/// Both halves, in whole leaves of `leaf` documents, of what is more than one leaf.
pub fn halves(documents: &Range<u64>, leaf: u64) -> Option<(Range<u64>, Range<u64>)> {
    let leaves = (documents.end - documents.start).div_ceil(leaf);
    let middle = documents.start + leaves / 2 * leaf;
    (leaves > 1).then_some((documents.start..middle, middle..documents.end))
}

/// The index.
pub struct Index {
    digests: Mutex<HashMap<u64, u64>>,
    written: AtomicU64,
}

impl Index {
    /// An index of [`DOCUMENTS`] for the rest of the process.
    pub fn new() -> &'static Self {
        let digests = (0..DOCUMENTS).map(|document| (document, 0)).collect();
        Box::leak(Box::new(Index {
            digests: Mutex::new(digests),
            written: AtomicU64::new(0),
        }))
    }

    /// One leaf of the reindex.
    pub fn write(&self, documents: Range<u64>) {
        let computed: Vec<_> = documents.map(|at| (at, units(DOCUMENT))).collect();
        self.written
            .fetch_add(computed.len() as u64, Ordering::Relaxed);
        self.lock().extend(computed);
    }

    /// What a search looks up.
    pub fn look_up(&self) {
        let digests = self.lock();
        let found = (0..HITS).map(|hit| digests.get(&(hit * (DOCUMENTS / HITS))));
        black_box(
            found
                .map(|digest| digest.expect("every document is there"))
                .sum::<u64>(),
        );
    }

    /// Documents written so far.
    pub fn written(&self) -> u64 {
        self.written.load(Ordering::Relaxed)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u64, u64>> {
        self.digests.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lengths(documents: Range<u64>, leaf: u64) -> Vec<u64> {
        match halves(&documents, leaf) {
            None => vec![documents.end - documents.start],
            Some((left, right)) => [lengths(left, leaf), lengths(right, leaf)].concat(),
        }
    }

    #[test]
    fn leaves_have_the_length_that_the_experiment_names() {
        for leaf in [5, 50, 500, 2000] {
            let all = lengths(0..DOCUMENTS, leaf);
            assert_eq!(all, vec![leaf; (DOCUMENTS / leaf) as usize]);
        }
        assert_eq!(lengths(0..7, 3), [3, 3, 1]);
    }
}
