//! A FIFO by fetch-and-add.
//!
//! A slot is EMPTY, holds an entry, or is TAKEN; it goes from EMPTY to one of the others once. A pusher takes the next
//! index of the tail and changes that slot from EMPTY to its entry. If a popper came first, the slot is TAKEN and the
//! pusher goes on with its next index. A popper takes the next index of the head and changes that slot to TAKEN. If it
//! was EMPTY, its pusher is late and the popper goes on, unless the head has come to the tail.

use super::Queue;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

const EMPTY: u64 = 0;
/// No entry is this number or below.
pub const TAKEN: u64 = 1;

/// Slots of one of the arrays.
const SLOTS: u64 = 1024;

/// A counter in a cache line of its own.
#[repr(align(128))]
struct Index(AtomicU64);

/// See the module's text.
pub struct FetchAdd {
    head: Index,
    tail: Index,
    arrays: Box<[OnceLock<Box<[AtomicU64]>>]>,
}

impl FetchAdd {
    /// For so many entries in all its life; room for twice as many indices, since some are lost.
    pub fn of(entries: u64) -> Self {
        let arrays = 2 * entries.div_ceil(SLOTS) + 1;
        FetchAdd {
            head: Index(AtomicU64::new(0)),
            tail: Index(AtomicU64::new(0)),
            arrays: (0..arrays).map(|_| OnceLock::new()).collect(),
        }
    }

    fn slot(&self, index: u64) -> &AtomicU64 {
        let array = &self.arrays[(index / SLOTS) as usize];
        let slots = array.get_or_init(|| (0..SLOTS).map(|_| AtomicU64::new(EMPTY)).collect());
        &slots[(index % SLOTS) as usize]
    }
}

impl Queue for FetchAdd {
    fn push(&self, entry: u64) {
        loop {
            let slot = self.slot(self.tail.0.fetch_add(1, Ordering::AcqRel));
            let filled = slot.compare_exchange(EMPTY, entry, Ordering::Release, Ordering::Relaxed);
            if filled.is_ok() {
                return;
            }
        }
    }

    fn pop(&self) -> Option<u64> {
        while self.head.0.load(Ordering::Acquire) < self.tail.0.load(Ordering::Acquire) {
            let slot = self.slot(self.head.0.fetch_add(1, Ordering::AcqRel));
            let entry = slot.swap(TAKEN, Ordering::Acquire);
            if entry != EMPTY {
                return Some(entry);
            }
        }
        None
    }
}
