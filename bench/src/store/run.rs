//! A run: entries in ascending order of their keys, in blocks of 64, each encoded with a checksum, with the blocks'
//! first keys as an index and a Bloom filter over all keys. What a log-structured store writes once and never changes.
//!
//! [`merge`] is the heart of compaction: it decodes a range of keys of many runs, keeps the newest version of each
//! key, and encodes the result. It is one sequential leaf, without a scheduling point.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;

/// A version of a key's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The key.
    pub key: u64,
    /// The higher, the newer.
    pub version: u64,
    /// Follows from the two (see [`Entry::new`]), so that any copy can be verified.
    pub value: [u64; 4],
}

/// Entries of a block.
const BLOCK: usize = 64;
/// Bits of the filter for each key, of which [`PROBES`] are set.
const FILTER_BITS: usize = 10;
const PROBES: u32 = 5;

impl Entry {
    /// The entry of a key in a version.
    pub fn new(key: u64, version: u64) -> Self {
        let first = mix(key ^ version.rotate_left(32));
        let value = [first, first ^ key, first ^ version, !first];
        Entry {
            key,
            version,
            value,
        }
    }

    /// Panics if the value does not belong to the key and version.
    pub fn verify(&self) {
        assert_eq!(*self, Entry::new(self.key, self.version), "a wrong value");
    }

    /// Adds up to the digest of a set of entries, in any order.
    pub fn digest(&self) -> u64 {
        mix(self.key.wrapping_add(mix(self.version))) ^ self.value[3]
    }
}

/// A finaliser of 64 bits (splitmix64's).
pub fn mix(mut bits: u64) -> u64 {
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

/// Where a block is, and what it must add up to.
struct Block {
    first: u64,
    bytes: Range<usize>,
    sum: u64,
}

/// An immutable sorted run.
pub struct Run {
    bytes: Vec<u8>,
    blocks: Vec<Block>,
    filter: Vec<u64>,
    /// The least and the greatest key.
    range: (u64, u64),
    /// Entries.
    pub len: usize,
    /// Of all entries.
    pub digest: u64,
}

impl Run {
    /// Encodes entries that come in ascending order of their keys.
    pub fn of(entries: &[Entry]) -> Self {
        let mut filter = vec![0; (entries.len() * FILTER_BITS).div_ceil(64).max(1)];
        let (mut bytes, mut blocks, mut digest) = (Vec::new(), Vec::new(), 0_u64);
        for block in entries.chunks(BLOCK) {
            let start = bytes.len();
            let mut before = block[0].key;
            for entry in block {
                put_number(&mut bytes, entry.key - before);
                put_number(&mut bytes, entry.version);
                for word in entry.value {
                    bytes.extend_from_slice(&word.to_le_bytes());
                }
                before = entry.key;
                digest = digest.wrapping_add(entry.digest());
                for bit in bits(entry.key, filter.len()) {
                    filter[bit / 64] |= 1 << (bit % 64);
                }
            }
            let bytes_of_block = start..bytes.len();
            blocks.push(Block {
                first: block[0].key,
                sum: checksum(&bytes[bytes_of_block.clone()]),
                bytes: bytes_of_block,
            });
        }
        let key = |entry: Option<&Entry>| entry.map_or(0, |entry| entry.key);
        Run {
            bytes,
            blocks,
            filter,
            range: (key(entries.first()), key(entries.last())),
            len: entries.len(),
            digest,
        }
    }

    /// What a file of the run holds.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The entry of a key, if the run has one.
    pub fn get(&self, key: u64) -> Option<Entry> {
        let might_be_there = (self.range.0..=self.range.1).contains(&key)
            && bits(key, self.filter.len()).all(|bit| self.filter[bit / 64] >> (bit % 64) & 1 == 1);
        if !might_be_there {
            return None;
        }
        self.from(key)
            .next()
            .filter(|entry| entry.key == key)
            .inspect(Entry::verify)
    }

    /// The entries from a key on.
    pub fn from(&self, key: u64) -> Entries<'_> {
        // The last block that begins at or before the key may hold it; its entries before the key are skipped.
        let after = self.blocks.partition_point(|block| block.first <= key);
        let mut entries = Entries {
            run: self,
            next: after.saturating_sub(1),
            rest: &[],
            before: 0,
        };
        let mut at_key = entries.clone();
        while let Some(entry) = at_key.next() {
            if entry.key >= key {
                break;
            }
            entries = at_key.clone();
        }
        entries
    }
}

/// Entries of a run in order.
#[derive(Clone)]
pub struct Entries<'run> {
    run: &'run Run,
    /// The block after the one that is decoded.
    next: usize,
    rest: &'run [u8],
    before: u64,
}

impl Iterator for Entries<'_> {
    type Item = Entry;

    fn next(&mut self) -> Option<Entry> {
        if self.rest.is_empty() {
            let block = self.run.blocks.get(self.next)?;
            self.next += 1;
            self.rest = &self.run.bytes[block.bytes.clone()];
            self.before = block.first;
            assert_eq!(checksum(self.rest), block.sum, "a damaged block");
        }
        let key = self.before + take_number(&mut self.rest);
        let version = take_number(&mut self.rest);
        let (value, rest) = self.rest.split_at(32);
        let word = |at: usize| {
            let bytes = value[8 * at..8 * at + 8].try_into();
            u64::from_le_bytes(bytes.expect("a slice of 8 bytes"))
        };
        (self.rest, self.before) = (rest, key);
        Some(Entry {
            key,
            version,
            value: [word(0), word(1), word(2), word(3)],
        })
    }
}

/// The newest version of each key of a range, of all runs.
pub fn merge<'run>(runs: impl IntoIterator<Item = &'run Run>, keys: Range<u64>) -> Run {
    let mut sources: Vec<_> = runs.into_iter().map(|run| run.from(keys.start)).collect();
    let count = sources.len();
    let mut heads = BinaryHeap::new();
    let mut advance = |heads: &mut BinaryHeap<_>, source: usize| {
        let entry = sources[source].next().filter(|entry| entry.key < keys.end);
        if let Some(entry) = entry {
            // Least key first, of one key the newest version.
            heads.push((Reverse(entry.key), entry.version, source, entry.value));
        }
    };
    (0..count).for_each(|source| advance(&mut heads, source));
    let mut merged: Vec<Entry> = Vec::new();
    while let Some((Reverse(key), version, source, value)) = heads.pop() {
        advance(&mut heads, source);
        if merged.last().is_none_or(|last| last.key != key) {
            merged.push(Entry {
                key,
                version,
                value,
            });
        }
    }
    Run::of(&merged)
}

/// The bits of a key in a filter of so many words.
fn bits(key: u64, words: usize) -> impl Iterator<Item = usize> {
    let hash = mix(key);
    let step = hash.rotate_left(32) | 1;
    (0..u64::from(PROBES)).map(move |probe| {
        let hash = hash.wrapping_add(step.wrapping_mul(probe));
        (hash % (words as u64 * 64)) as usize
    })
}

fn checksum(bytes: &[u8]) -> u64 {
    let add = |sum: u64, byte: &u8| (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, add)
}

/// Seven bits a byte, the least first.
fn put_number(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

fn take_number(bytes: &mut &[u8]) -> u64 {
    let (mut number, mut shift) = (0, 0);
    loop {
        let (&byte, rest) = bytes.split_first().expect("a block ends after a number");
        *bytes = rest;
        number |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return number;
        }
        shift += 7;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_gives_back_what_was_put_into_it_and_nothing_else() {
        let entries: Vec<_> = (0..1000).map(|n| Entry::new(3 * n + 5, n % 7)).collect();
        let run = Run::of(&entries);
        assert_eq!(run.from(0).collect::<Vec<_>>(), entries);
        assert_eq!(run.from(500).next(), Some(Entry::new(500, 165 % 7)));
        assert_eq!(run.from(501).next(), Some(Entry::new(503, 166 % 7)));
        for key in 0..3010 {
            let expected = entries.iter().find(|entry| entry.key == key).copied();
            assert_eq!(run.get(key), expected, "key {key}");
        }
    }

    #[test]
    fn a_merge_keeps_the_newest_version_of_each_key_of_its_range() {
        let run = |step: u64, version| {
            let entries: Vec<_> = (0..500).map(|n| Entry::new(n * step, version)).collect();
            Run::of(&entries)
        };
        let runs = [run(2, 1), run(3, 3), run(5, 2)];
        let merged = merge(&runs, 100..700);
        let expected = (100..700).filter_map(|key| {
            let newest = runs.iter().filter_map(|run| run.get(key));
            newest.max_by_key(|entry| entry.version)
        });
        assert_eq!(
            merged.from(0).collect::<Vec<_>>(),
            expected.collect::<Vec<_>>()
        );
    }
}
