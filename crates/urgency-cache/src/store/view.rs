//! An item under its shard's lock.

use super::header::{BINARY_KEY, FETCHED, Header, STALE, WON};
use super::heap::{Heap, Ref};
use super::value::Parts;

/// An item, seen while its shard is held: everything in it is of one moment. Copy what you need.
pub struct ItemView<'a> {
    heap: &'a Heap,
    at: Ref,
    header: Header<'a>,
}

impl<'a> ItemView<'a> {
    #[inline]
    pub(super) fn new(heap: &'a Heap, at: Ref) -> ItemView<'a> {
        ItemView {
            heap,
            at,
            header: heap.header(at),
        }
    }
    /// The key.
    pub fn key(&self) -> &'a [u8] {
        self.header.key()
    }
    /// The client's flags.
    pub fn flags(&self) -> u32 {
        self.header.flags()
    }
    /// The CAS id.
    pub fn cas(&self) -> u64 {
        self.header.cas()
    }
    /// When it expires, in seconds on the caller's clock; 0 for never.
    pub fn expires(&self) -> u32 {
        self.header.expires()
    }
    /// When it was last read or written, in seconds on the caller's clock. In the closure of
    /// [`Store::get`](super::Store::get) it is the time before this read.
    pub fn accessed(&self) -> u32 {
        self.header.accessed()
    }
    /// Whether it was read since it was stored. In the closure of
    /// [`Store::get`](super::Store::get) this read does not count.
    pub fn was_fetched(&self) -> bool {
        self.header.marks() & FETCHED != 0
    }
    /// Whether it is marked stale (meta protocol).
    pub fn is_stale(&self) -> bool {
        self.header.marks() & STALE != 0
    }
    /// Whether somebody has won the right to recache it (meta protocol).
    pub fn is_won(&self) -> bool {
        self.header.marks() & WON != 0
    }
    /// Whether the client that stored it sent the key in base 64 (meta protocol).
    pub fn has_binary_key(&self) -> bool {
        self.header.marks() & BINARY_KEY != 0
    }
    /// The segment of the LRU that it is in.
    pub fn segment(&self) -> super::Segment {
        super::Segment::ALL[self.header.segment()]
    }
    /// Bytes of the value.
    pub fn value_len(&self) -> usize {
        self.header.value_len()
    }
    /// The value in order; one that is large, or fills a gap, comes in several parts.
    pub fn value(&self) -> Parts<'a> {
        Parts::new(self.heap, self.at)
    }
    /// Bytes that the item takes in the memory, header and rounding included.
    pub fn size(&self) -> usize {
        self.header.footprint() as usize
    }
    /// Appends the value to `to`.
    pub fn copy_to(&self, to: &mut Vec<u8>) {
        to.reserve(self.value_len());
        for part in self.value() {
            to.extend_from_slice(part);
        }
    }
}
