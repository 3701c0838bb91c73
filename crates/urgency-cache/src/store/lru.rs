//! The segments of one shard: four lists of items, newest first.
//!
//! memcached's segmented LRU, with its rules:
//!
//! - A new item goes to the head of **hot** (or to **temp**, if it lives for a short time only).
//! - A read changes no list. The first marks the item fetched, the second active. So the read path writes
//!   to the item's own header only, and a single scan over many items evicts nothing that is in use.
//! - From the tail of hot, an active item goes to **warm**, another to **cold**. From the tail of warm, an active item
//!   goes back to the head of warm, another to cold. From the tail of cold, an active item goes to warm, and another is
//!   evicted.
//! - Hot and warm hold a share of the bytes each; items above that share move on. The item at the tail moves on as well
//!   if it is much older than the oldest of cold.
//!
//! One rule differs: memcached moves an active cold item to warm when it is read, by a queue that a thread serves. Here
//! the item moves when it comes to the tail, which is before it could be evicted. (CLOCK and S3-FIFO do the same; reads
//! stay free of list work, and the order of eviction is the same but for ties.)

use super::heap::{Heap, Ref};

#[derive(Clone, Copy, Default)]
pub(crate) struct List {
    pub head: Ref,
    pub tail: Ref,
    pub items: u64,
    pub bytes: u64,
}

/// The segments of one shard.
#[derive(Default)]
pub(crate) struct Lru {
    pub lists: [List; 4],
}

impl Lru {
    /// Makes an item the newest of a segment.
    pub fn link(&mut self, heap: &mut Heap, segment: usize, r: Ref) {
        let list = &mut self.lists[segment];
        heap.set_segment(r, segment);
        heap.set_lru_prev(r, 0);
        heap.set_lru_next(r, list.head);
        if list.head == 0 {
            list.tail = r;
        } else {
            heap.set_lru_prev(list.head, r);
        }
        list.head = r;
        list.items += 1;
        list.bytes += heap.header(r).footprint();
    }

    /// Takes an item out of its segment.
    pub fn unlink(&mut self, heap: &mut Heap, r: Ref) {
        let list = &mut self.lists[heap.header(r).segment()];
        let (prev, next) = (heap.lru_prev(r), heap.lru_next(r));
        if prev == 0 {
            list.head = next;
        } else {
            heap.set_lru_next(prev, next);
        }
        if next == 0 {
            list.tail = prev;
        } else {
            heap.set_lru_prev(next, prev);
        }
        list.items -= 1;
        list.bytes -= heap.header(r).footprint();
    }

    /// The neighbours of an item learn that it is in another block, whose header is written already.
    pub fn moved(&mut self, heap: &mut Heap, to: Ref) {
        let list = &mut self.lists[heap.header(to).segment()];
        let (prev, next) = (heap.lru_prev(to), heap.lru_next(to));
        if prev == 0 {
            list.head = to;
        } else {
            heap.set_lru_next(prev, to);
        }
        if next == 0 {
            list.tail = to;
        } else {
            heap.set_lru_prev(next, to);
        }
    }

    /// Items in all segments.
    pub fn items(&self) -> u64 {
        self.lists.iter().map(|list| list.items).sum()
    }

    /// Bytes of the items in all segments.
    pub fn bytes(&self) -> u64 {
        self.lists.iter().map(|list| list.bytes).sum()
    }
}
