//! What is asked: keys, their popularity, the share of gets, the sizes of values.
//!
//! A key's *number* runs from 0 to `keys - 1`. Its text is the number in decimal, with a prefix `k`, filled
//! with zeros to the key size. Popularity draws a *rank*; ranks are spread over the numbers by a fixed
//! permutation, because the fill writes the numbers in ascending order, and popular keys should not all be
//! the oldest items of the cache.
//!
//! The Zipf distribution (rank r with probability proportional to r^-s) is drawn by rejection-inversion
//! (Hörmann and Derflinger, 1996): no table, constant time, any exponent above 0. The sum of the weights is
//! bounded by an integral that can be inverted; a point under the integral is drawn, rounded to the nearest
//! rank, and rejected in the few cases in which it lies above that rank's weight.
//!
//! The size of a value is a function of random bits that come from the key and the version ([`crate::value`]), so a
//! reader of a value knows how long the value must be.

use crate::Error;
use serde::Serialize;
use std::{fmt, str::FromStr};

/// Bytes of the largest value that can be asked for.
pub const LARGEST_VALUE: usize = 8 << 20;

/// How popular each key is.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(into = "String")]
pub enum Popularity {
    /// Each key alike.
    Uniform,
    /// The key of rank r is asked for in proportion to r to the power of minus this exponent.
    Zipf(f64),
}

impl FromStr for Popularity {
    type Err = String;

    /// `uniform`, `zipf` (exponent 0.99) or `zipf:EXPONENT`.
    fn from_str(text: &str) -> Result<Self, String> {
        let allowed = "allowed: uniform, zipf, or zipf:EXPONENT with an exponent above 0 and up to 10, as in zipf:0.99";
        match text.split_once(':') {
            None if text == "uniform" => Ok(Popularity::Uniform),
            None if text == "zipf" => Ok(Popularity::Zipf(0.99)),
            Some(("zipf", exponent)) => match exponent.parse::<f64>() {
                Ok(exponent) if exponent > 0.0 && exponent <= 10.0 => {
                    Ok(Popularity::Zipf(exponent))
                }
                _ => Err(allowed.to_owned()),
            },
            _ => Err(allowed.to_owned()),
        }
    }
}

impl fmt::Display for Popularity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Popularity::Uniform => write!(f, "uniform"),
            Popularity::Zipf(exponent) => write!(f, "zipf:{exponent}"),
        }
    }
}

impl From<Popularity> for String {
    fn from(popularity: Popularity) -> String {
        popularity.to_string()
    }
}

/// Draws key numbers by popularity.
#[derive(Clone, Debug)]
pub struct Draw {
    keys: u32,
    stride: u64,
    zipf: Option<Zipf>,
}

impl Draw {
    /// Draws from `keys` keys. `keys` must not be 0.
    pub fn new(keys: u32, popularity: Popularity) -> Self {
        let zipf = match popularity {
            Popularity::Uniform => None,
            Popularity::Zipf(exponent) => Some(Zipf::new(f64::from(keys), exponent)),
        };
        Draw {
            keys,
            stride: coprime_stride(u64::from(keys)),
            zipf,
        }
    }

    /// The next key number.
    pub fn key(&self, random: &mut fastrand::Rng) -> u32 {
        match &self.zipf {
            None => random.u32(..self.keys),
            Some(zipf) => self.number(zipf.rank(random) - 1),
        }
    }

    /// The key number of a rank, counted from 0.
    pub fn number(&self, rank: u32) -> u32 {
        (u64::from(rank) * self.stride % u64::from(self.keys)) as u32
    }
}

/// A number near 0.618 `n` that shares no factor with `n`, so that its multiples modulo `n` are a permutation.
fn coprime_stride(n: u64) -> u64 {
    fn common(a: u64, b: u64) -> u64 {
        if b == 0 { a } else { common(b, a % b) }
    }
    let near = (n as f64 * 0.618) as u64;
    (near.max(1)..=n)
        .find(|&stride| common(stride, n) == 1)
        .unwrap_or(1)
}

/// Rejection-inversion for one number of ranks and one exponent.
#[derive(Clone, Debug)]
struct Zipf {
    ranks: f64,
    exponent: f64,
    area_first: f64,
    area_last: f64,
    certain: f64,
}

impl Zipf {
    fn new(ranks: f64, exponent: f64) -> Self {
        let mut zipf = Zipf {
            ranks,
            exponent,
            area_first: 0.0,
            area_last: 0.0,
            certain: 0.0,
        };
        zipf.area_first = zipf.area(1.5) - 1.0;
        zipf.area_last = zipf.area(ranks + 0.5);
        zipf.certain = 2.0 - zipf.area_inverse(zipf.area(2.5) - zipf.weight(2.0));
        zipf
    }

    fn weight(&self, rank: f64) -> f64 {
        rank.powf(-self.exponent)
    }

    /// The integral of the weight from 1 to x.
    fn area(&self, x: f64) -> f64 {
        let power = 1.0 - self.exponent;
        if power.abs() < 1e-9 {
            x.ln()
        } else {
            (x.powf(power) - 1.0) / power
        }
    }

    fn area_inverse(&self, area: f64) -> f64 {
        let power = 1.0 - self.exponent;
        if power.abs() < 1e-9 {
            area.exp()
        } else {
            (1.0 + area * power).powf(power.recip())
        }
    }

    /// A rank, counted from 1.
    fn rank(&self, random: &mut fastrand::Rng) -> u32 {
        loop {
            let area = self.area_last + random.f64() * (self.area_first - self.area_last);
            let x = self.area_inverse(area);
            let rank = x.round().clamp(1.0, self.ranks);
            if rank - x <= self.certain || area >= self.area(rank + 0.5) - self.weight(rank) {
                return rank as u32;
            }
        }
    }
}

/// How long values are.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(into = "String")]
pub struct ValueSizes {
    text: String,
    choice: SizeChoice,
}

#[derive(Clone, Debug, PartialEq)]
enum SizeChoice {
    Between(usize, usize),
    /// Sizes, each with the upper end of its part of the range of a `u64`.
    Mix(Vec<(u64, usize)>),
}

/// A mix in the manner of Facebook's pool ETC (Atikoglu et al., SIGMETRICS 2012): two fifths of the values
/// are tiny, half lie between 20 and 700 bytes, one in twenty is larger than a kilobyte.
const ETC: &str =
    "2:18,3:9,5:3,11:9,14:2,23:9,65:12,120:10,200:10,350:8,600:5,1100:3.3,2400:1.4,6000:0.3";

impl ValueSizes {
    /// The size that these random bits choose.
    pub fn size(&self, bits: u64) -> usize {
        match &self.choice {
            SizeChoice::Between(low, high) => {
                low + ((u128::from(bits) * (high - low + 1) as u128) >> 64) as usize
            }
            SizeChoice::Mix(sizes) => sizes[sizes.partition_point(|&(end, _)| end < bits)].1,
        }
    }

    /// The largest size.
    pub fn largest(&self) -> usize {
        match &self.choice {
            SizeChoice::Between(_, high) => *high,
            SizeChoice::Mix(sizes) => sizes.iter().map(|&(_, size)| size).max().unwrap_or(0),
        }
    }
}

impl FromStr for ValueSizes {
    type Err = String;

    /// `N`, `LOW-HIGH`, `etc`, or `SIZE:WEIGHT,SIZE:WEIGHT,...`.
    fn from_str(text: &str) -> Result<Self, String> {
        let refuse = || {
            format!(
                "allowed: a size in bytes up to {LARGEST_VALUE}, as in 100; a range, as in 10-1000; a mix SIZE:WEIGHT,SIZE:WEIGHT,..., as in 100:9,5000:1; or etc"
            )
        };
        let size = |text: &str| match text.trim().parse() {
            Ok(size) if size <= LARGEST_VALUE => Ok(size),
            _ => Err(refuse()),
        };
        let list = if text == "etc" { ETC } else { text };
        let choice = if list.contains(':') {
            let mut sizes = Vec::new();
            for part in list.split(',') {
                let (bytes, weight) = part.split_once(':').ok_or_else(refuse)?;
                match weight.trim().parse::<f64>() {
                    Ok(weight) if weight > 0.0 && weight <= 1e9 => {
                        sizes.push((size(bytes)?, weight));
                    }
                    _ => return Err(refuse()),
                }
            }
            let total: f64 = sizes.iter().map(|(_, weight)| weight).sum();
            let mut below = 0.0;
            let ends = sizes.into_iter().map(|(size, weight)| {
                below += weight / total;
                ((below * u64::MAX as f64) as u64, size)
            });
            let mut ends: Vec<_> = ends.collect();
            // Rounding must not leave bits without a size.
            ends.last_mut().ok_or_else(refuse)?.0 = u64::MAX;
            SizeChoice::Mix(ends)
        } else if let Some((low, high)) = list.split_once('-') {
            let (low, high) = (size(low)?, size(high)?);
            if low > high {
                return Err(refuse());
            }
            SizeChoice::Between(low, high)
        } else {
            let fixed = size(list)?;
            SizeChoice::Between(fixed, fixed)
        };
        Ok(ValueSizes {
            text: text.to_owned(),
            choice,
        })
    }
}

impl fmt::Display for ValueSizes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl From<ValueSizes> for String {
    fn from(sizes: ValueSizes) -> String {
        sizes.text
    }
}

/// Everything about the requests except when they are sent.
#[derive(Clone, Debug, Serialize)]
pub struct Workload {
    /// How many keys there are.
    pub keys: u32,
    /// Bytes of each key.
    pub key_size: usize,
    /// How popular each key is.
    pub popularity: Popularity,
    /// The share of gets among the requests, 0 to 1; the others are sets.
    pub gets: f64,
    /// How long values are.
    pub values: ValueSizes,
    /// Whether each value that is read is compared with what it must be.
    pub verify: bool,
    /// Chooses among equally likely loads; the same seed gives the same requests.
    pub seed: u64,
}

impl Workload {
    /// Refuses what cannot be asked for.
    ///
    /// # Errors
    ///
    /// [`Error::Option`] if there are no keys, if the key size has no room for the largest number or is above
    /// 250, or if the share is no share.
    pub fn check(&self) -> Result<(), Error> {
        let digits = self.keys.saturating_sub(1).to_string().len();
        if self.keys == 0 {
            return Err(Error::option("--keys", "0", "1 to 4294967295 keys"));
        }
        if !(digits + 1..=250).contains(&self.key_size) {
            return Err(Error::option(
                "--key-size",
                self.key_size,
                format!("{} to 250 bytes for {} keys", digits + 1, self.keys),
            ));
        }
        if !(0.0..=1.0).contains(&self.gets) {
            return Err(Error::option("--gets", self.gets, "a share from 0 to 1"));
        }
        Ok(())
    }

    /// Appends the text of key `number` to `to`.
    pub fn write_key(&self, number: u32, to: &mut Vec<u8>) {
        let start = to.len();
        to.resize(start + self.key_size, b'0');
        to[start] = b'k';
        let mut rest = number;
        let mut at = to.len();
        while rest > 0 {
            at -= 1;
            to[at] = b'0' + (rest % 10) as u8;
            rest /= 10;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(keys: u32, popularity: Popularity, draws: usize) -> Vec<usize> {
        let draw = Draw::new(keys, popularity);
        let mut random = fastrand::Rng::with_seed(3);
        let mut counts = vec![0; keys as usize];
        for _ in 0..draws {
            counts[draw.key(&mut random) as usize] += 1;
        }
        counts
    }

    #[test]
    fn ranks_are_drawn_in_proportion_to_their_zipf_weight() {
        for exponent in [0.5, 0.99, 1.0, 1.2, 3.0] {
            let keys = 100;
            let draws = 200_000;
            let counts = counts(keys, Popularity::Zipf(exponent), draws);
            let draw = Draw::new(keys, Popularity::Zipf(exponent));
            let weight = |rank: u32| f64::from(rank + 1).powf(-exponent);
            let total: f64 = (0..keys).map(weight).sum();
            for rank in 0..keys {
                let expected = weight(rank) / total * draws as f64;
                let found = counts[draw.number(rank) as usize] as f64;
                // Five standard deviations.
                let allowed = 5.0 * expected.sqrt() + 1.0;
                assert!(
                    (found - expected).abs() <= allowed,
                    "exponent {exponent}, rank {rank}: {found} instead of {expected}"
                );
            }
        }
    }

    #[test]
    fn uniform_keys_are_drawn_alike() {
        for count in counts(50, Popularity::Uniform, 100_000) {
            assert!((1775..2225).contains(&count), "{count}");
        }
    }

    #[test]
    fn each_rank_has_a_key_of_its_own() {
        for keys in [1, 2, 3, 10, 1000, 99_991, 100_000] {
            let draw = Draw::new(keys, Popularity::Zipf(1.0));
            let mut seen = vec![false; keys as usize];
            for rank in 0..keys {
                assert!(!std::mem::replace(
                    &mut seen[draw.number(rank) as usize],
                    true
                ));
            }
        }
    }

    #[test]
    fn sizes_stay_in_their_range_and_a_mix_keeps_its_weights() {
        let mut random = fastrand::Rng::with_seed(5);
        let range: ValueSizes = "10-13".parse().expect("a range");
        let mut seen = [0; 4];
        for _ in 0..4000 {
            seen[range.size(random.u64(..)) - 10] += 1;
        }
        assert!(seen.iter().all(|count| (800..1200).contains(count)));
        let mix: ValueSizes = "7:3,5000:1".parse().expect("a mix");
        let small = (0..10_000).filter(|_| mix.size(random.u64(..)) == 7);
        let small = small.count();
        assert!((7300..7700).contains(&small), "{small}");
        assert_eq!(
            (mix.size(0), mix.size(u64::MAX), mix.largest()),
            (7, 5000, 5000)
        );
        let etc: ValueSizes = "etc".parse().expect("the named mix");
        assert_eq!(etc.to_string(), "etc");
        let tiny = (0..10_000).filter(|_| etc.size(random.u64(..)) <= 14);
        let tiny = tiny.count();
        assert!((3800..4400).contains(&tiny), "{tiny}");
    }

    #[test]
    fn what_is_no_size_or_popularity_is_refused_with_what_is_allowed() {
        for text in [
            "", "x", "9-3", "1-", "5:0", "5:x", "-3", "99999999", "5:1,", "3,4",
        ] {
            let refusal = text.parse::<ValueSizes>().expect_err(text);
            assert!(refusal.contains("allowed"), "{text}: {refusal}");
        }
        for text in ["", "zipf:0", "zipf:-1", "zipf:x", "zipf:NaN", "normal"] {
            let refusal = text.parse::<Popularity>().expect_err(text);
            assert!(refusal.contains("allowed"), "{text}: {refusal}");
        }
    }

    #[test]
    fn keys_have_their_size_and_differ() {
        let workload = Workload {
            keys: 1000,
            key_size: 4,
            popularity: Popularity::Uniform,
            gets: 1.0,
            values: "1".parse().expect("a size"),
            verify: true,
            seed: 1,
        };
        workload
            .check()
            .expect("three digits and a prefix fit into four bytes");
        let mut key = Vec::new();
        workload.write_key(42, &mut key);
        assert_eq!(key, b"k042");
        let refusal = Workload {
            key_size: 3,
            ..workload
        }
        .check()
        .expect_err("no room");
        assert!(refusal.to_string().contains("4 to 250 bytes"), "{refusal}");
    }
}
