//! The index of one shard: from the hash of a key to the block of its item.
//!
//! # Layout
//!
//! A bucket is a cache line: ten references, ten 16-bit tags (bits of the hash that did not choose the bucket), and the
//! number of an overflow bucket. A look-up loads one line, compares ten tags, and goes to the item only where one
//! agrees: two cache misses for a hit, one for a miss.
//!
//! # Growth
//!
//! Linear hashing, in phases. When there are more than [`FULL`] items for each bucket, the table begins
//! to double: buckets are split one after the other (`split` is the next), each into itself and one at
//! the end. [`Table::split_one`] is the unit of work. Each insertion does one while a doubling is under way,
//! so that it ends before the buckets hold eight, whatever the background does; the background does
//! it faster. Nothing is ever copied as a whole, and no memory is needed twice: buckets come in
//! chunks of 4 KiB.
//!
//! A bucket that runs full continues in an overflow bucket. With [`FULL`] items each in the mean one in ten
//! does.
//!
//! # When there is no memory
//!
//! [`Table::insert`] says so if it needs an overflow bucket and the limit forbids it; the caller evicts an
//! item of that very bucket. Splitting never needs more overflow buckets than it frees.

use std::sync::Arc;

use super::budget::Budget;
use super::heap::Ref;

const SLOTS: usize = 10;
const CHUNK: usize = 64;
/// Items for each bucket in the mean when a doubling begins.
const FULL: u64 = 7;
const CHUNK_COST: u64 = (CHUNK * size_of::<Bucket>()) as u64 + 64 + 24;

#[repr(C, align(64))]
#[derive(Clone, Copy)]
struct Bucket {
    refs: [Ref; SLOTS],
    tags: [u16; SLOTS],
    /// One more than the number of the overflow bucket; 0 for none. Links the free ones, too.
    over: u32,
}

const EMPTY: Bucket = Bucket {
    refs: [0; SLOTS],
    tags: [0; SLOTS],
    over: 0,
};

type Chunk = Box<[Bucket; CHUNK]>;

/// No memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoRoom {
    /// For a bucket.
    Table,
    /// For a block.
    Heap,
}

/// The index of one shard.
pub(crate) struct Table {
    chunks: Vec<Chunk>,
    over: Vec<Chunk>,
    over_free: u32,
    mask: u32,
    split: u32,
    growing: bool,
    items: u64,
    moved: Vec<Ref>,
    granted: u64,
    budget: Arc<Budget>,
}

fn tag(hash: u64) -> u16 {
    (hash >> 32) as u16
}

impl Bucket {
    #[inline]
    fn candidates(&self, tag: u16) -> u32 {
        let mut found = 0;
        for (i, t) in self.tags.iter().enumerate() {
            found |= u32::from(*t == tag) << i;
        }
        found
    }

    fn position(&self, r: Ref) -> Option<usize> {
        self.refs.iter().position(|x| *x == r)
    }
}

impl Table {
    /// What a new table takes of the budget.
    pub const COST: u64 = CHUNK_COST;

    /// A table of one chunk. Its memory is taken from the budget unasked.
    pub fn new(budget: Arc<Budget>) -> Table {
        Table {
            chunks: vec![Box::new([EMPTY; CHUNK])],
            over: Vec::new(),
            over_free: 0,
            mask: CHUNK as u32 - 1,
            split: 0,
            growing: false,
            items: 0,
            moved: Vec::new(),
            granted: 0,
            budget,
        }
    }

    #[inline]
    fn index(&self, hash: u64) -> u32 {
        let i = hash as u32 & self.mask;
        if i < self.split {
            hash as u32 & (2 * self.mask + 1)
        } else {
            i
        }
    }

    #[inline]
    fn bucket(&self, i: u32) -> &Bucket {
        &self.chunks[i as usize / CHUNK][i as usize % CHUNK]
    }

    fn bucket_mut(&mut self, i: u32) -> &mut Bucket {
        &mut self.chunks[i as usize / CHUNK][i as usize % CHUNK]
    }

    fn over(&self, number: u32) -> &Bucket {
        let i = number as usize - 1;
        &self.over[i / CHUNK][i % CHUNK]
    }

    fn over_mut(&mut self, number: u32) -> &mut Bucket {
        let i = number as usize - 1;
        &mut self.over[i / CHUNK][i % CHUNK]
    }

    /// The item with this hash for which `is` says yes.
    #[inline]
    pub fn find(&self, hash: u64, mut is: impl FnMut(Ref) -> bool) -> Option<Ref> {
        let tag = tag(hash);
        let mut bucket = self.bucket(self.index(hash));
        loop {
            let mut found = bucket.candidates(tag);
            while found != 0 {
                let r = bucket.refs[found.trailing_zeros() as usize];
                if r != 0 && is(r) {
                    return Some(r);
                }
                found &= found - 1;
            }
            if bucket.over == 0 {
                return None;
            }
            bucket = self.over(bucket.over);
        }
    }

    /// Adds an item. The key must not be there.
    pub fn insert(&mut self, hash: u64, r: Ref) -> Result<(), NoRoom> {
        self.put(self.index(hash), tag(hash), r)?;
        self.items += 1;
        if self.items > FULL * (u64::from(self.mask) + 1) {
            self.growing = true;
        }
        Ok(())
    }

    fn put(&mut self, i: u32, tag: u16, r: Ref) -> Result<(), NoRoom> {
        let mut bucket = self.bucket_mut(i);
        let mut number = 0;
        loop {
            if let Some(slot) = bucket.position(0) {
                bucket.refs[slot] = r;
                bucket.tags[slot] = tag;
                return Ok(());
            }
            if bucket.over == 0 {
                break;
            }
            number = bucket.over;
            bucket = self.over_mut(number);
        }
        let new = self.new_over()?;
        let last = if number == 0 {
            self.bucket_mut(i)
        } else {
            self.over_mut(number)
        };
        last.over = new;
        let bucket = self.over_mut(new);
        bucket.refs[0] = r;
        bucket.tags[0] = tag;
        Ok(())
    }

    fn new_over(&mut self) -> Result<u32, NoRoom> {
        if self.over_free == 0 {
            if !self.take() {
                return Err(NoRoom::Table);
            }
            let first = (self.over.len() * CHUNK) as u32 + 1;
            self.over.push(Box::new([EMPTY; CHUNK]));
            for number in (first..first + CHUNK as u32).rev() {
                self.free_over(number);
            }
        }
        let number = self.over_free;
        self.over_free = self.over(number).over;
        *self.over_mut(number) = EMPTY;
        Ok(number)
    }

    fn take(&mut self) -> bool {
        if self.granted >= CHUNK_COST {
            self.granted -= CHUNK_COST;
            return true;
        }
        self.budget.take(CHUNK_COST)
    }

    /// Hands over bytes that are taken from the budget already.
    pub fn grant(&mut self, bytes: u64) {
        self.granted += bytes;
    }

    fn free_over(&mut self, number: u32) {
        let free = self.over_free;
        *self.over_mut(number) = Bucket {
            over: free,
            ..EMPTY
        };
        self.over_free = number;
    }

    /// Forgets an item.
    pub fn remove(&mut self, hash: u64, r: Ref) {
        let i = self.index(hash);
        let (mut before, mut number) = (0, 0);
        loop {
            let bucket = if number == 0 {
                self.bucket_mut(i)
            } else {
                self.over_mut(number)
            };
            if let Some(slot) = bucket.position(r) {
                bucket.refs[slot] = 0;
                let after = bucket.over;
                if number != 0 && bucket.refs == [0; SLOTS] {
                    let last = if before == 0 {
                        self.bucket_mut(i)
                    } else {
                        self.over_mut(before)
                    };
                    last.over = after;
                    self.free_over(number);
                }
                self.items -= 1;
                return;
            }
            (before, number) = (number, bucket.over);
            assert!(number != 0, "an item that is removed is in the table");
        }
    }

    /// Says that an item is in another block now.
    pub fn replace(&mut self, hash: u64, old: Ref, new: Ref) {
        let i = self.index(hash);
        let mut bucket = self.bucket_mut(i);
        loop {
            if let Some(slot) = bucket.position(old) {
                bucket.refs[slot] = new;
                return;
            }
            let number = bucket.over;
            assert!(number != 0, "an item that is moved is in the table");
            bucket = self.over_mut(number);
        }
    }

    /// Items that share a bucket with this hash.
    pub fn neighbours(&self, hash: u64) -> impl Iterator<Item = Ref> + use<'_> {
        self.bucket(self.index(hash))
            .refs
            .iter()
            .copied()
            .filter(|r| *r != 0)
    }

    /// Whether a doubling is under way.
    pub fn is_growing(&self) -> bool {
        self.growing
    }

    /// Splits one bucket, if a doubling is under way. `hash` gives the hash of an item.
    pub fn split_one(&mut self, hash: impl Fn(Ref) -> u64) -> Result<bool, NoRoom> {
        if !self.growing {
            return Ok(false);
        }
        let (low, high) = (self.split, self.split + self.mask + 1);
        if high as usize == self.chunks.len() * CHUNK {
            if high > u32::MAX / 4 {
                self.growing = false;
                return Ok(false);
            }
            if !self.take() {
                return Err(NoRoom::Table);
            }
            self.chunks.push(Box::new([EMPTY; CHUNK]));
        }
        let mut moved = std::mem::take(&mut self.moved);
        let bucket = self.bucket_mut(low);
        moved.extend(bucket.refs.iter().filter(|r| **r != 0));
        let mut number = std::mem::replace(bucket, EMPTY).over;
        while number != 0 {
            let bucket = self.over(number);
            moved.extend(bucket.refs.iter().filter(|r| **r != 0));
            let next = bucket.over;
            self.free_over(number);
            number = next;
        }
        self.split += 1;
        for r in moved.drain(..) {
            let hash = hash(r);
            self.put(self.index(hash), tag(hash), r)
                .expect("two buckets need no more overflow than the one they were");
        }
        self.moved = moved;
        if self.split > self.mask {
            self.mask = 2 * self.mask + 1;
            self.split = 0;
            self.growing = self.items > FULL * (u64::from(self.mask) + 1);
        }
        Ok(true)
    }

    /// Items in the table.
    #[cfg(test)]
    pub fn len(&self) -> u64 {
        self.items
    }

    /// Bytes of the table.
    pub fn bytes(&self) -> u64 {
        (self.chunks.len() + self.over.len()) as u64 * CHUNK_COST
    }

    /// Bytes taken from the budget.
    pub fn taken(&self) -> u64 {
        self.bytes() + self.granted
    }

    /// Items that the table holds before it doubles.
    pub fn capacity(&self) -> u64 {
        FULL * (u64::from(self.mask) + 1)
    }
}

impl Drop for Table {
    fn drop(&mut self) {
        self.budget.give(self.taken());
    }
}
