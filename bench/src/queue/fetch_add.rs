//! A FIFO by fetch-and-add, in a list of segments that are used again.
//!
//! A pusher takes the next index of the tail and changes the slot of that index from EMPTY to its entry. If a popper
//! came first, the slot is TAKEN and the pusher goes on with its next index. A popper takes the next index of the head
//! and changes its slot to TAKEN. If it was EMPTY, its pusher is late and the popper goes on, unless the head has come
//! to the tail.
//!
//! An index is one of a *stretch* of [`SLOTS`] indices, and a word for each stretch says which segment has its slots.
//! A segment has many stretches, one after the other. A slot's word has a tag in its upper half, the number of the
//! stretch that wrote it, from 1, and in its lower half an entry or TAKEN. So a slot is EMPTY in its stretch if it has
//! what the segment's stretch before left: TAKEN, with that one's tag. Nothing is cleared.
//!
//! 1. *A segment is free once each of its slots is TAKEN in its stretch.* Each index has one popper, so no popper is
//!    late then. A late pusher of that stretch expects EMPTY, which no slot is any more: tags only grow.
//! 2. A stretch gets a segment once, under a lock: a free one, or a new one. Before that, segments that became free
//!    are looked for, the oldest stretch first. The pusher in the middle of a stretch does that for the next one, so
//!    that threads seldom wait for the lock.
//!
//! Some segments are made with the queue. It needs more only if it is long, or if a thread stands still in the middle
//! of an operation for thousands of others. So memory is seldom touched for the first time. What is not used again is
//! the word of a stretch, 8 bytes for 1,024 indices.

use super::Queue;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock};

/// No entry is this number or below.
pub const TAKEN: u64 = 1;

/// Slots of a segment.
const SLOTS: u64 = 1024;

/// Segments that are made with the queue.
const MADE: u64 = 16;

/// The lower half of a word.
const LOW: u64 = u32::MAX as u64;

fn tagged(tag: u64, low: u64) -> u64 {
    tag << 32 | low
}

/// A counter in a cache line of its own.
#[repr(align(128))]
struct Index(AtomicU64);

type Segment = Box<[AtomicU64]>;

/// Which segments may be given to a stretch.
struct Free {
    /// Numbers of segments, each with the tag that its slots have.
    segments: Vec<(u64, u64)>,
    /// So many have been made.
    made: u64,
    /// The oldest stretch whose segment is not free, as far as was seen.
    oldest: u64,
}

/// A slot for an index.
struct Slot<'a> {
    word: &'a AtomicU64,
    empty: u64,
    tag: u64,
}

/// See the module's text.
pub struct FetchAdd {
    head: Index,
    tail: Index,
    /// For each stretch 0, or in the lower half the number of its segment, from 1, and in the upper half the tag that
    /// the segment's slots had before.
    stretches: Box<[AtomicU64]>,
    segments: Box<[OnceLock<Segment>]>,
    free: Mutex<Free>,
}

impl FetchAdd {
    /// For so many entries in all its life; room for twice as many indices, since some are lost.
    pub fn of(entries: u64) -> Self {
        let stretches = 2 * entries.div_ceil(SLOTS) + 2;
        let queue = FetchAdd {
            head: Index(AtomicU64::new(0)),
            tail: Index(AtomicU64::new(0)),
            stretches: (0..stretches).map(|_| AtomicU64::new(0)).collect(),
            segments: (0..stretches.max(MADE)).map(|_| OnceLock::new()).collect(),
            free: Mutex::new(Free {
                segments: Vec::new(),
                made: 0,
                oldest: 0,
            }),
        };
        let mut free = queue.free.lock().expect("nothing panics");
        let all = (0..MADE).map(|_| queue.make(&mut free)).collect();
        free.segments = all;
        drop(free);
        queue
    }

    /// A new segment: its number, and the tag of its slots.
    fn make(&self, free: &mut Free) -> (u64, u64) {
        let slots = (0..SLOTS).map(|_| AtomicU64::new(tagged(0, TAKEN)));
        let is_first = self.segments[free.made as usize].set(slots.collect());
        is_first.expect("each is made once");
        free.made += 1;
        (free.made, 0)
    }

    /// The slots of the segment that a stretch's word names.
    fn slots(&self, word: u64) -> &[AtomicU64] {
        let segment = self.segments[(word & LOW) as usize - 1].get();
        segment.expect("it was made before a stretch got it")
    }

    /// Gives a stretch its segment, unless it has one: rule 2.
    #[cold]
    fn extend(&self, stretch: u64) {
        let mut free = self.free.lock().expect("nothing panics");
        if self.stretches[stretch as usize].load(Ordering::Relaxed) != 0 {
            return;
        }
        while let Some(number) = self.used_up(free.oldest) {
            free.oldest += 1;
            let tag = free.oldest;
            free.segments.push((number, tag));
        }
        let (number, tag) = match free.segments.pop() {
            Some(free) => free,
            None => self.make(&mut free),
        };
        self.stretches[stretch as usize].store(tagged(tag, number), Ordering::Release);
    }

    /// The segment of a stretch, if each of its slots is TAKEN in that stretch: rule 1.
    fn used_up(&self, stretch: u64) -> Option<u64> {
        let word = self.stretches[stretch as usize].load(Ordering::Relaxed);
        let is_passed = stretch < self.head.0.load(Ordering::Acquire) / SLOTS;
        let taken = tagged(stretch + 1, TAKEN);
        let is_taken = |slot: &AtomicU64| slot.load(Ordering::Acquire) == taken;
        let is_used_up = word != 0 && is_passed && self.slots(word).iter().all(is_taken);
        is_used_up.then_some(word & LOW)
    }

    fn slot(&self, index: u64) -> Slot<'_> {
        let stretch = index / SLOTS;
        let mut word = self.stretches[stretch as usize].load(Ordering::Acquire);
        if word == 0 {
            self.extend(stretch);
            word = self.stretches[stretch as usize].load(Ordering::Acquire);
        }
        Slot {
            word: &self.slots(word)[(index % SLOTS) as usize],
            empty: tagged(word >> 32, TAKEN),
            tag: stretch + 1,
        }
    }
}

impl Queue for FetchAdd {
    fn push(&self, entry: u64) {
        loop {
            let index = self.tail.0.fetch_add(1, Ordering::AcqRel);
            if index % SLOTS == SLOTS / 2 {
                self.extend(index / SLOTS + 1);
            }
            let Slot { word, empty, tag } = self.slot(index);
            let full = tagged(tag, entry);
            let filled = word.compare_exchange(empty, full, Ordering::Release, Ordering::Relaxed);
            if filled.is_ok() {
                return;
            }
        }
    }

    fn pop(&self) -> Option<u64> {
        while self.head.0.load(Ordering::Acquire) < self.tail.0.load(Ordering::Acquire) {
            let index = self.head.0.fetch_add(1, Ordering::AcqRel);
            let Slot { word, empty, tag } = self.slot(index);
            let found = word.swap(tagged(tag, TAKEN), Ordering::Acquire);
            if found != empty {
                return Some(found & LOW);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;
    use std::thread;

    fn made(queue: &FetchAdd) -> u64 {
        queue.free.lock().unwrap().made
    }

    #[test]
    fn a_queue_that_stays_short_needs_no_further_segments() {
        let entries = 10 * MADE * SLOTS;
        let queue = FetchAdd::of(entries);
        for entry in 0..entries {
            queue.push(entry + 2);
            assert_eq!(queue.pop(), Some(entry + 2));
        }
        assert_eq!(made(&queue), MADE);
        let stretches = queue.stretches.iter();
        let used = stretches.filter(|word| word.load(Ordering::Relaxed) != 0);
        assert!(used.count() as u64 > 9 * MADE);
    }

    #[test]
    fn a_queue_that_becomes_long_has_a_segment_for_each_stretch() {
        let entries = 3 * MADE * SLOTS;
        let queue = FetchAdd::of(entries);
        (0..entries).for_each(|entry| queue.push(entry + 2));
        assert_eq!(made(&queue), 3 * MADE + 1);
        assert!((0..entries).all(|entry| queue.pop() == Some(entry + 2)));
        assert_eq!(queue.pop(), None);
    }

    #[test]
    fn threads_that_push_and_pop_get_each_entry_once() {
        let (threads, own) = (4, 20 * SLOTS);
        // Of a queue that is often empty many indices are lost.
        let queue = FetchAdd::of(4 * threads * own);
        let seen: Vec<_> = (0..threads * own).map(|_| AtomicBool::new(false)).collect();
        let note = |entry: u64| {
            let twice = seen[entry as usize - 2].swap(true, Ordering::Relaxed);
            assert!(!twice, "{entry} came out twice");
        };
        thread::scope(|scope| {
            for thread in 0..threads {
                let (queue, note) = (&queue, &note);
                scope.spawn(move || {
                    for turn in 0..own {
                        queue.push(2 + thread * own + turn);
                        queue.pop().into_iter().for_each(note);
                    }
                });
            }
        });
        std::iter::from_fn(|| queue.pop()).for_each(note);
        assert!(seen.iter().all(|seen| seen.load(Ordering::Relaxed)));
    }
}
