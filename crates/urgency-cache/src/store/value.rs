//! Reading and writing values that may lie in several blocks.

use super::header::HEADER_PIECE;
use super::heap::{Heap, Ref};

/// The parts of a value, in order.
pub struct Parts<'a> {
    heap: &'a Heap,
    here: &'a [u8],
    next: Ref,
    left: usize,
}

impl<'a> Parts<'a> {
    #[inline]
    pub(super) fn new(heap: &'a Heap, r: Ref) -> Parts<'a> {
        let header = heap.header(r);
        Parts {
            heap,
            here: &header.0[header.value_at()..],
            next: header.more(),
            left: header.value_len(),
        }
    }
}

impl<'a> Iterator for Parts<'a> {
    type Item = &'a [u8];

    #[inline]
    fn next(&mut self) -> Option<&'a [u8]> {
        while self.left > 0 {
            let part = &self.here[..self.here.len().min(self.left)];
            self.left -= part.len();
            if self.left > 0 {
                self.here = &self.heap.block(self.next)[HEADER_PIECE..];
                self.next = self.heap.piece_next(self.next);
            }
            if !part.is_empty() {
                return Some(part);
            }
        }
        None
    }
}

/// A place in a value, for writing from the front to the back.
pub(crate) struct Pen {
    block: Ref,
    at: usize,
    next: Ref,
}

impl Pen {
    pub fn new(heap: &Heap, r: Ref) -> Pen {
        let header = heap.header(r);
        Pen {
            block: r,
            at: header.value_at(),
            next: header.more(),
        }
    }

    /// Writes `bytes` here. The value is long enough.
    pub fn write(&mut self, heap: &mut Heap, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let block = heap.block_mut(self.block);
            let n = bytes.len().min(block.len() - self.at);
            block[self.at..self.at + n].copy_from_slice(&bytes[..n]);
            self.at += n;
            bytes = &bytes[n..];
            if !bytes.is_empty() {
                self.block = self.next;
                self.next = heap.piece_next(self.block);
                self.at = HEADER_PIECE;
            }
        }
    }

    /// Writes the value of another item here.
    pub fn write_value(&mut self, heap: &mut Heap, of: Ref) {
        let header = heap.header(of);
        let (mut block, mut at, mut next, mut left) =
            (of, header.value_at(), header.more(), header.value_len());
        let mut buffer = [0; 1024];
        while left > 0 {
            let here = &heap.block(block)[at..];
            let n = here.len().min(left).min(buffer.len());
            buffer[..n].copy_from_slice(&here[..n]);
            let done = n == here.len();
            (at, left) = (at + n, left - n);
            self.write(heap, &buffer[..n]);
            if done && left > 0 {
                (block, at) = (next, HEADER_PIECE);
                next = heap.piece_next(block);
            }
        }
    }
}
