//! Packets: numbers, each encoded by what came before it. Decoding goes over a packet many times, as a decoder with so
//! many refinements does; aggregating a decoded packet sorts its numbers. Decoding has no branches, so how long a
//! pass takes does not depend on what a processor has learnt of the packet.

use std::hint::black_box;

/// Numbers of a packet.
const NUMBERS: usize = 1024;

/// An encoded packet, with what it must come to.
pub struct Packet {
    words: Vec<u64>,
    passes: u32,
    sum: u64,
    median: u64,
}

/// The numbers of a packet.
pub struct Decoded(Vec<u64>);

/// What a window tells about its packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Aggregate {
    /// The packets.
    pub packets: u64,
    /// The sum of all numbers.
    pub sum: u64,
    /// The sum of the packets' medians.
    pub medians: u64,
}

/// The state of a decoder after a word.
fn advance(state: u64, word: u64) -> u64 {
    let state = (state ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (state ^ (state >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9)
}

impl Packet {
    /// A random packet that is decoded in so many passes.
    pub fn random(random: &mut fastrand::Rng, passes: u32) -> Self {
        let mut numbers: Vec<u64> = (0..NUMBERS).map(|_| random.u64(..1 << 30)).collect();
        let mut state = 0;
        let words = numbers.iter().map(|number| {
            let word = number ^ (state >> 34);
            state = advance(state, word);
            word
        });
        let words = words.collect();
        let sum = numbers.iter().sum();
        numbers.sort_unstable();
        Packet {
            words,
            passes,
            sum,
            median: numbers[NUMBERS / 2],
        }
    }

    /// Decodes the packet; panics if a pass has another result than the one before.
    pub fn decode(&self) -> Decoded {
        let mut numbers = Vec::with_capacity(NUMBERS);
        for _ in 0..self.passes {
            numbers.clear();
            let mut state = 0;
            for &word in black_box(&self.words) {
                numbers.push(word ^ (state >> 34));
                state = advance(state, word);
            }
            assert_eq!(numbers.iter().sum::<u64>(), self.sum, "a wrong result");
        }
        Decoded(numbers)
    }

    /// What a window of this packet alone tells.
    pub fn expected(&self) -> Aggregate {
        Aggregate {
            packets: 1,
            sum: self.sum,
            medians: self.median,
        }
    }
}

impl Decoded {
    /// What a window of this packet alone tells: one leaf, of some 5 us for each of `passes`.
    pub fn aggregate(&self, passes: u32) -> Aggregate {
        let mut median = 0;
        for _ in 0..passes {
            let mut numbers = black_box(&self.0).clone();
            numbers.sort_unstable();
            median = numbers[NUMBERS / 2];
        }
        Aggregate {
            packets: 1,
            sum: self.0.iter().sum(),
            medians: median,
        }
    }
}

impl Aggregate {
    /// What a window of both tells.
    pub fn and(self, other: Aggregate) -> Aggregate {
        Aggregate {
            packets: self.packets + other.packets,
            sum: self.sum + other.sum,
            medians: self.medians + other.medians,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_decoded_packet_aggregates_to_what_was_encoded() {
        let mut random = fastrand::Rng::with_seed(1);
        let [a, b] = [1, 3].map(|passes| Packet::random(&mut random, passes));
        let both = a.decode().aggregate(1).and(b.decode().aggregate(2));
        assert_eq!(both, a.expected().and(b.expected()));
        assert_eq!(both.packets, 2);
    }
}
