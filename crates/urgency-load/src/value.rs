//! Values that prove themselves.
//!
//! A value is a function of the key's number and a *version*: its size, and each of its bytes. The version
//! travels in the item's flags, a 32-bit number that a server stores with the item and returns as it is. So a
//! reader knows from the flags what the bytes must be, even for a value of one byte, and finds another key's
//! value, a mix of two versions, a wrong length, and a single wrong bit.
//!
//! Words of 8 bytes come from a counter mixed with the key and the version (the finaliser of SplitMix64:
//! Steele, Lea, Flood 2014), so two versions agree in no word except by chance.
//!
//! ## Which versions may be read
//!
//! [`Versions`] is the history of one key as its writers know it. Sets of one key may overlap, and then
//! nobody knows which one the server took last. Such sets form a *group*: it begins with a set while no other
//! is under way, and ends when none is. When a group has ended and all its sets were stored, what the server
//! holds is at least the first version of the group; from then on that is the *floor*. A get that was sent
//! when the floor was f must not return a version below f: the server would have forgotten an acknowledged
//! set. Nor may it return one that was never sent.

use crate::workload::ValueSizes;

/// Mixes the bits of a number so that each input bit changes about half of the output bits.
fn mix(mut bits: u64) -> u64 {
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

fn start(key: u32, version: u32) -> u64 {
    mix((u64::from(key) << 32 | u64::from(version)).wrapping_add(STEP))
}

fn words(key: u32, version: u32) -> impl Iterator<Item = [u8; 8]> {
    let mut counter = start(key, version);
    std::iter::repeat_with(move || {
        counter = counter.wrapping_add(STEP);
        mix(counter).to_le_bytes()
    })
}

/// Bytes of the value of `key` in `version`.
pub fn size(sizes: &ValueSizes, key: u32, version: u32) -> usize {
    sizes.size(mix(!start(key, version)))
}

/// Appends the `size` bytes of the value of `key` in `version` to `to`.
pub fn write(key: u32, version: u32, size: usize, to: &mut Vec<u8>) {
    let start = to.len();
    to.resize(start + size, 0);
    for (chunk, word) in to[start..].chunks_mut(8).zip(words(key, version)) {
        chunk.copy_from_slice(&word[..chunk.len()]);
    }
}

/// Where `value` first differs from the value of `key` in `version`: a position, or none if it is as it must be.
pub fn first_difference(sizes: &ValueSizes, key: u32, version: u32, value: &[u8]) -> Option<usize> {
    let differing = value
        .chunks(8)
        .zip(words(key, version))
        .position(|(chunk, word)| chunk != &word[..chunk.len()]);
    let expected = size(sizes, key, version);
    match differing {
        Some(word) => Some(word * 8),
        None if value.len() != expected => Some(value.len().min(expected)),
        None => None,
    }
}

/// The history of one key: what was sent and what may be read. Versions count from 1; 0 means never written.
#[derive(Clone, Copy, Debug, Default)]
pub struct Versions {
    sent: u32,
    group: u32,
    under_way: u32,
    group_failed: bool,
    floor: u32,
}

impl Versions {
    /// A set is about to be sent; returns its version.
    pub fn send(&mut self) -> u32 {
        self.sent = self.sent.wrapping_add(1);
        if self.under_way == 0 {
            self.group = self.sent;
            self.group_failed = false;
        }
        self.under_way += 1;
        self.sent
    }

    /// A set was answered.
    pub fn answered(&mut self, stored: bool) {
        self.group_failed |= !stored;
        self.under_way = self.under_way.saturating_sub(1);
        if self.under_way == 0 && !self.group_failed {
            self.floor = self.group;
        }
    }

    /// The lowest version that a get sent now may return.
    pub fn floor(&self) -> u32 {
        self.floor
    }

    /// The highest version that was sent.
    pub fn sent(&self) -> u32 {
        self.sent
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes() -> ValueSizes {
        "0-300".parse().expect("a range")
    }

    #[test]
    fn a_value_proves_its_key_its_version_its_length_and_each_of_its_bits() {
        let sizes = sizes();
        for key in 0..40 {
            for version in 1..6 {
                let size = size(&sizes, key, version);
                let mut value = Vec::new();
                write(key, version, size, &mut value);
                assert_eq!(first_difference(&sizes, key, version, &value), None);
                if size > 8 {
                    assert!(first_difference(&sizes, key + 1, version, &value).is_some());
                    assert!(first_difference(&sizes, key, version + 1, &value).is_some());
                    let cut = &value[..size - 1];
                    assert_eq!(first_difference(&sizes, key, version, cut), Some(size - 1));
                    let mut flipped = value.clone();
                    flipped[size - 1] ^= 4;
                    let found = first_difference(&sizes, key, version, &flipped);
                    assert_eq!(found, Some((size - 1) / 8 * 8));
                }
                value.push(0);
                assert!(first_difference(&sizes, key, version, &value).is_some());
            }
        }
    }

    #[test]
    fn a_torn_value_of_two_versions_is_found() {
        let sizes: ValueSizes = "256".parse().expect("a size");
        let (mut old, mut new) = (Vec::new(), Vec::new());
        write(9, 1, 256, &mut old);
        write(9, 2, 256, &mut new);
        new[128..].copy_from_slice(&old[128..]);
        assert_eq!(first_difference(&sizes, 9, 2, &new), Some(128));
    }

    #[test]
    fn the_floor_rises_when_a_set_is_acknowledged() {
        let mut versions = Versions::default();
        assert_eq!(versions.send(), 1);
        assert_eq!(versions.floor(), 0);
        versions.answered(true);
        assert_eq!((versions.floor(), versions.sent()), (1, 1));
    }

    #[test]
    fn of_overlapping_sets_any_may_be_the_last() {
        let mut versions = Versions::default();
        versions.send();
        versions.answered(true);
        versions.send();
        versions.send();
        versions.answered(true);
        assert_eq!(versions.floor(), 1);
        versions.send();
        versions.answered(true);
        versions.answered(true);
        assert_eq!((versions.floor(), versions.sent()), (2, 4));
    }

    #[test]
    fn a_set_that_was_not_stored_does_not_raise_the_floor() {
        let mut versions = Versions::default();
        versions.send();
        versions.answered(true);
        versions.send();
        versions.answered(false);
        assert_eq!(versions.floor(), 1);
        versions.send();
        versions.answered(true);
        assert_eq!(versions.floor(), 3);
    }
}
