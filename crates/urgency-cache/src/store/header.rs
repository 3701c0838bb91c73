//! How an item lies in its blocks.
//!
//! The first block of an item:
//!
//! | byte | bytes | what |
//! | --- | --- | --- |
//! | 0 | 4 | the block's tag (`heap.rs`) |
//! | 4, 8 | 4, 4 | the neighbours in the LRU segment: towards its head, towards its tail |
//! | 12 | 4 | when it expires, 0 for never |
//! | 16 | 4 | when it was last used |
//! | 20 | 4 | length of the value |
//! | 24 | 4 | the client's flags |
//! | 28 | 1 | length of the key |
//! | 29 | 1 | marks: segment (2 bits), [`FETCHED`], [`ACTIVE`], [`STALE`], [`WON`], [`SPLIT`], [`BINARY_KEY`] |
//! | 30 | 2 | the flush generation in which it was stored |
//! | 32 | 8 | the CAS id |
//! | 40 | 4 | only if [`SPLIT`]: the next block |
//! | 40 or 44 | | the key, then the value |
//!
//! A block that continues an item: tag, first block (4), next block (8), then the value from byte 12.
//! Each block of an item is full but for the last.
//!
//! 40 bytes, where memcached has 48, or 56 with CAS ids; and no chain of the hash table in them.

use super::heap::{Heap, Ref, UNIT};

/// Bytes before the key in an item of one block.
pub(crate) const HEADER: usize = 40;
/// Bytes before the key in the first of several blocks.
pub(crate) const HEADER_SPLIT: usize = 44;
/// Bytes before the value in the other blocks.
pub(crate) const HEADER_PIECE: usize = 12;

/// Read since it was stored.
pub(crate) const FETCHED: u8 = 1 << 2;
/// Read twice or more since it was last looked at.
pub(crate) const ACTIVE: u8 = 1 << 3;
/// The client declared it stale.
pub(crate) const STALE: u8 = 1 << 4;
/// Somebody won the right to recache it.
pub(crate) const WON: u8 = 1 << 5;
/// In several blocks.
pub(crate) const SPLIT: u8 = 1 << 6;
/// The client stored it under an encoded key.
pub(crate) const BINARY_KEY: u8 = 1 << 7;
const SEGMENT: u8 = 3;

const PREV: usize = 4;
const NEXT: usize = 8;
const EXPIRES: usize = 12;
const ACCESSED: usize = 16;
const LEN: usize = 20;
const FLAGS: usize = 24;
const KEY_LEN: usize = 28;
const MARKS: usize = 29;
const GENERATION: usize = 30;
const CAS: usize = 32;
const MORE: usize = 40;

/// What is stored besides key and value.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Meta {
    pub flags: u32,
    pub expires: u32,
    pub accessed: u32,
    pub cas: u64,
    pub marks: u8,
    pub generation: u16,
}

/// Of an item whose blocks are being taken.
pub(crate) const BUILDING: Meta = Meta {
    flags: 0,
    expires: 0,
    accessed: 0,
    cas: 0,
    marks: SPLIT,
    generation: 0,
};

/// The first block of an item, as bytes.
#[derive(Clone, Copy)]
pub(crate) struct Header<'a>(pub &'a [u8]);

impl<'a> Header<'a> {
    #[inline]
    fn word(self, at: usize) -> u32 {
        u32::from_ne_bytes(self.0[at..at + 4].try_into().expect("four bytes"))
    }
    pub fn expires(self) -> u32 {
        self.word(EXPIRES)
    }
    pub fn accessed(self) -> u32 {
        self.word(ACCESSED)
    }
    pub fn value_len(self) -> usize {
        self.word(LEN) as usize
    }
    pub fn flags(self) -> u32 {
        self.word(FLAGS)
    }
    pub fn marks(self) -> u8 {
        self.0[MARKS]
    }
    pub fn segment(self) -> usize {
        usize::from(self.0[MARKS] & SEGMENT)
    }
    pub fn generation(self) -> u16 {
        u16::from_ne_bytes([self.0[GENERATION], self.0[GENERATION + 1]])
    }
    pub fn cas(self) -> u64 {
        u64::from_ne_bytes(self.0[CAS..CAS + 8].try_into().expect("eight bytes"))
    }
    #[inline]
    fn key_at(self) -> usize {
        if self.marks() & SPLIT == 0 {
            HEADER
        } else {
            HEADER_SPLIT
        }
    }
    #[inline]
    pub fn key(self) -> &'a [u8] {
        let at = self.key_at();
        &self.0[at..at + usize::from(self.0[KEY_LEN])]
    }
    /// Where the value begins.
    pub fn value_at(self) -> usize {
        self.key_at() + usize::from(self.0[KEY_LEN])
    }
    /// The next block, or 0.
    pub fn more(self) -> Ref {
        if self.marks() & SPLIT == 0 {
            0
        } else {
            self.word(MORE)
        }
    }
    /// Bytes that count for the item in segments and statistics.
    pub fn footprint(self) -> u64 {
        footprint(usize::from(self.0[KEY_LEN]), self.value_len() as u64)
    }
    pub fn meta(self) -> Meta {
        Meta {
            flags: self.flags(),
            expires: self.expires(),
            accessed: self.accessed(),
            cas: self.cas(),
            marks: self.marks(),
            generation: self.generation(),
        }
    }
}

/// Bytes that an item takes, header and rounding included.
pub(crate) fn footprint(key: usize, value: u64) -> u64 {
    ((HEADER + key) as u64 + value).next_multiple_of(UNIT as u64)
}

impl Heap {
    #[inline]
    pub fn header(&self, r: Ref) -> Header<'_> {
        Header(self.block(r))
    }

    fn put(&mut self, r: Ref, at: usize, bytes: &[u8]) {
        self.block_mut(r)[at..at + bytes.len()].copy_from_slice(bytes);
    }

    /// Writes everything but tag, links, key and value.
    pub fn set_meta(&mut self, r: Ref, meta: &Meta, key: usize, value: usize) {
        let block = self.block_mut(r);
        block[EXPIRES..EXPIRES + 4].copy_from_slice(&meta.expires.to_ne_bytes());
        block[ACCESSED..ACCESSED + 4].copy_from_slice(&meta.accessed.to_ne_bytes());
        block[LEN..LEN + 4].copy_from_slice(&(value as u32).to_ne_bytes());
        block[FLAGS..FLAGS + 4].copy_from_slice(&meta.flags.to_ne_bytes());
        block[KEY_LEN] = key as u8;
        block[MARKS] = meta.marks;
        block[GENERATION..GENERATION + 2].copy_from_slice(&meta.generation.to_ne_bytes());
        block[CAS..CAS + 8].copy_from_slice(&meta.cas.to_ne_bytes());
    }

    pub fn set_key(&mut self, r: Ref, key: &[u8]) {
        let at = self.header(r).key_at();
        self.put(r, at, key);
    }

    pub fn set_expires(&mut self, r: Ref, expires: u32) {
        self.set_word(r, EXPIRES, expires);
    }

    pub fn set_flags(&mut self, r: Ref, flags: u32) {
        self.set_word(r, FLAGS, flags);
    }

    pub fn set_cas(&mut self, r: Ref, cas: u64) {
        self.put(r, CAS, &cas.to_ne_bytes());
    }

    pub fn set_accessed(&mut self, r: Ref, now: u32) {
        self.set_word(r, ACCESSED, now);
    }

    pub fn set_marks(&mut self, r: Ref, set: u8, clear: u8) {
        let marks = self.header(r).marks();
        self.put(r, MARKS, &[marks & !clear | set]);
    }

    pub fn set_segment(&mut self, r: Ref, segment: usize) {
        self.set_marks(r, segment as u8, SEGMENT);
    }

    /// Towards the head of the segment.
    pub fn lru_prev(&self, r: Ref) -> Ref {
        self.word(r, PREV)
    }

    /// Towards the tail of the segment.
    pub fn lru_next(&self, r: Ref) -> Ref {
        self.word(r, NEXT)
    }

    pub fn set_lru_prev(&mut self, r: Ref, to: Ref) {
        self.set_word(r, PREV, to);
    }

    pub fn set_lru_next(&mut self, r: Ref, to: Ref) {
        self.set_word(r, NEXT, to);
    }

    pub fn set_more(&mut self, r: Ref, more: Ref) {
        self.set_word(r, MORE, more);
    }

    pub fn piece_first(&self, r: Ref) -> Ref {
        self.word(r, 4)
    }

    pub fn set_piece_first(&mut self, r: Ref, first: Ref) {
        self.set_word(r, 4, first);
    }

    pub fn piece_next(&self, r: Ref) -> Ref {
        self.word(r, 8)
    }

    pub fn set_piece_next(&mut self, r: Ref, next: Ref) {
        self.set_word(r, 8, next);
    }
}
