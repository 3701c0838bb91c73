//! Dividing a number of cores in proportion to weights, within bounds.
//!
//! The shares are found by *water-filling*: there is one level λ so that each claim gets λ times its weight, or its
//! bound if λ times its weight is beyond the bound. Together the claims get all cores, or as many as they take. All
//! sums are of whole numbers, so that equal claims get equal shares on every machine.

use alloc::{vec, vec::Vec};
use core::{
    cmp::Ordering,
    iter::Sum,
    ops::{Mul, Sub, SubAssign},
};

/// A claim on a number of cores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claim {
    /// Its weight relative to the others, 1 or more.
    pub weight: u32,
    /// At least so many.
    pub least: usize,
    /// At most so many; not below `least`.
    pub most: usize,
}

/// What a claim gets: so many cores, and a part of one more.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Part {
    /// The whole cores.
    pub whole: usize,
    /// The rest, from 0 to below 1.
    pub fraction: f64,
}

impl Part {
    /// Both together.
    pub fn share(self) -> f64 {
        self.whole as f64 + self.fraction
    }

    /// The shares of `total` cores. If the least claims are together more than that, they are met one after the
    /// other.
    ///
    /// ```
    /// use urgency_policy::cores::{Claim, Part};
    ///
    /// let claim = |weight, most| Claim { weight, least: 0, most };
    /// let parts = Part::of(9, &[claim(1, 8), claim(1, 8), claim(4, 2)]);
    /// assert_eq!(parts.iter().map(|part| part.share()).collect::<Vec<_>>(), [3.5, 3.5, 2.0]);
    /// ```
    pub fn of(total: usize, claims: &[Claim]) -> Vec<Part> {
        Exact::whole(total).divide(claims)
    }
}

/// A number of cores that need not be whole: so many of the equal pieces of a core.
#[derive(Clone, Copy, Debug)]
pub(super) struct Exact {
    pieces: i128,
    of_a_core: i128,
}

impl Exact {
    pub(super) fn whole(cores: usize) -> Self {
        Exact {
            pieces: cores as i128,
            of_a_core: 1,
        }
    }

    /// The shares of the claims: see [`Part::of`].
    pub(super) fn divide<S: Share>(self, claims: &[Claim]) -> Vec<S> {
        let core = self.of_a_core;
        let sum = |bound: fn(&Claim) -> usize| {
            let bounds = claims.iter().map(bound);
            bounds.fold(0usize, usize::saturating_add) as i128
        };
        if sum(|claim| claim.least) * core >= self.pieces {
            let mut left = self.pieces;
            let meet = |claim: &Claim| {
                let met = (claim.least as i128 * core).min(left);
                left -= met;
                S::of(met, core)
            };
            return claims.iter().map(meet).collect();
        }
        // More than all is the same as all.
        let all = (self.pieces + core - 1) / core;
        let weights: i128 = claims.iter().map(|claim| i128::from(claim.weight)).sum();
        let largest = all.saturating_mul(core).saturating_mul(weights);
        if largest.saturating_mul(claims.len() as i128) < i128::from(i64::MAX) {
            fill::<i64, S>(self, all as usize, claims)
        } else {
            fill::<i128, S>(self, all as usize, claims)
        }
    }
}

/// The numbers that a division is made with: most are short, and to multiply and divide long ones takes several times
/// as long.
pub(super) trait Whole:
    Copy + Ord + Sum + Sub<Output = Self> + Mul<Output = Self> + SubAssign
where
    Self: From<u32> + Into<i128>,
{
    /// A number that was found to be short enough.
    fn of(number: i128) -> Self;
    /// So many of the pieces of a core, of which it has `of_a_core`.
    fn part(self, of_a_core: Self) -> Part;
}

impl Whole for i64 {
    fn of(number: i128) -> Self {
        number as i64
    }

    fn part(self, of_a_core: Self) -> Part {
        Part {
            whole: (self / of_a_core) as usize,
            fraction: (self % of_a_core) as f64 / of_a_core as f64,
        }
    }
}

impl Whole for i128 {
    fn of(number: i128) -> Self {
        number
    }

    fn part(self, of_a_core: Self) -> Part {
        if let (Ok(pieces), Ok(of_a_core)) = (i64::try_from(self), i64::try_from(of_a_core)) {
            return pieces.part(of_a_core);
        }
        Part {
            whole: (self / of_a_core) as usize,
            fraction: (self % of_a_core) as f64 / of_a_core as f64,
        }
    }
}

/// What a division makes of a claim's pieces.
pub(super) trait Share: Clone {
    fn of<N: Whole>(pieces: N, of_a_core: N) -> Self;
}

impl Share for Part {
    fn of<N: Whole>(pieces: N, of_a_core: N) -> Self {
        pieces.part(of_a_core)
    }
}

/// It is divided once more.
impl Share for Exact {
    fn of<N: Whole>(pieces: N, of_a_core: N) -> Self {
        Exact {
            pieces: pieces.into(),
            of_a_core: of_a_core.into(),
        }
    }
}

/// A claim whose share is not decided.
struct Open<N> {
    place: usize,
    weight: N,
    least: N,
    most: N,
    /// Multiplied by all weights: how much its share is below its least, or above its most.
    off: N,
}

/// The water-filling, where the least claims leave something. No claim counts for more than `all` cores.
fn fill<N: Whole, S: Share>(of: Exact, all: usize, claims: &[Claim]) -> Vec<S> {
    let (core, zero) = (N::of(of.of_a_core), N::from(0));
    let claim = |(place, claim): (usize, &Claim)| {
        let least = N::of(claim.least as i128) * core;
        Open {
            place,
            weight: N::from(claim.weight),
            least,
            most: (N::of(claim.most.min(all) as i128) * core).max(least),
            off: zero,
        }
    };
    let mut open: Vec<Open<N>> = claims.iter().enumerate().map(claim).collect();
    let mut left = N::of(of.pieces).min(open.iter().map(|claim| claim.most).sum());
    let mut shares = vec![S::of(zero, core); claims.len()];
    // Claims at a bound leave the division until none is left at one: first at the bounds that weigh more together.
    loop {
        let weights: N = open.iter().map(|claim| claim.weight).sum();
        for claim in &mut open {
            let share = claim.weight * left;
            claim.off = share.clamp(claim.least * weights, claim.most * weights) - share;
        }
        let balance = open.iter().map(|claim| claim.off).sum::<N>().cmp(&zero);
        let before = open.len();
        open.retain(|claim| {
            let stays = match balance {
                Ordering::Equal => claim.off == zero,
                side => claim.off.cmp(&zero) != side,
            };
            if !stays {
                let bound = if claim.off > zero {
                    claim.least
                } else {
                    claim.most
                };
                shares[claim.place] = S::of(bound, core);
                left -= bound;
            }
            stays
        });
        if open.len() == before {
            for claim in &open {
                shares[claim.place] = S::of(claim.weight * left, core * weights);
            }
            return shares;
        }
    }
}

/// Divides `total` cores: [`Part::of`], and the cores that the fractions sum to go to the largest of them, the first of
/// equal ones.
///
/// ```
/// use urgency_policy::cores::{Claim, divide};
///
/// let claim = |weight| Claim { weight, least: 1, most: 64 };
/// assert_eq!(divide(8, &[claim(1), claim(1), claim(1)]), [3, 3, 2]);
/// assert_eq!(divide(8, &[claim(100), claim(1), claim(1)]), [6, 1, 1]);
/// ```
pub fn divide(total: usize, claims: &[Claim]) -> Vec<usize> {
    let parts = Part::of(total, claims);
    let mut counts: Vec<usize> = parts.iter().map(|part| part.whole).collect();
    hand_out(&parts, &mut counts, |index| (true, parts[index].fraction));
    counts
}

/// The fractions sum to a number of cores. These go one each to the claims that have a fraction, the largest `key`
/// first, and the first claim among equal ones.
pub(super) fn hand_out(parts: &[Part], counts: &mut [usize], key: impl Fn(usize) -> (bool, f64)) {
    let whole = sum_of_fractions(parts);
    let mut order = Vec::with_capacity(parts.len());
    let fractions = (0..parts.len()).filter(|&i| parts[i].fraction > 0.0);
    order.extend(fractions.map(|i| in_order(key(i), i)));
    if whole < order.len() && whole > 0 {
        order.select_nth_unstable(whole - 1);
    }
    for &number in order.iter().take(whole) {
        counts[number as u32 as usize] += 1;
    }
}

/// A key and its place as one number, which is compared faster than three: the smaller the larger the key is, and of
/// equal ones the place. Its lower half word is the place.
fn in_order((first, key): (bool, f64), place: usize) -> u128 {
    let bits = key.to_bits() as i64;
    // Numbers in the order of `f64::total_cmp`: the larger of two negative ones has the smaller bits.
    let rises = bits ^ ((bits >> 63) as u64 >> 1) as i64;
    let falls = !(rises as u64 ^ 1 << 63);
    u128::from(!first) << 96 | u128::from(falls) << 32 | place as u128
}

/// How many cores the fractions are together: a whole number but for rounding.
pub(super) fn sum_of_fractions(parts: &[Part]) -> usize {
    let sum: f64 = parts.iter().map(|part| part.fraction).sum();
    (sum + 0.5) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn any_claim() -> impl Strategy<Value = Claim> {
        (1u32..20, 0usize..6, 0usize..20).prop_map(|(weight, least, more)| Claim {
            weight,
            least,
            most: least + more,
        })
    }

    #[test]
    fn claims_without_bound_and_of_the_greatest_weight_divide_as_others() {
        let claim = |weight| Claim {
            weight,
            least: 0,
            most: usize::MAX,
        };
        let parts = Part::of(usize::MAX, &[claim(u32::MAX), claim(u32::MAX)]);
        assert!(
            parts.iter().all(|part| part.whole == usize::MAX / 2),
            "{parts:?}"
        );
    }

    proptest! {
        #[test]
        fn everything_is_divided_and_every_bound_is_kept(
            total in 0usize..200,
            claims in proptest::collection::vec(any_claim(), 0..12),
        ) {
            let counts = divide(total, &claims);
            let least: usize = claims.iter().map(|claim| claim.least).sum();
            let most: usize = claims.iter().map(|claim| claim.most).sum();
            prop_assert_eq!(counts.iter().sum::<usize>(), total.min(most));
            for (count, claim) in counts.iter().zip(&claims) {
                prop_assert!(*count <= claim.most);
                prop_assert!(least > total || *count >= claim.least);
            }
        }

        #[test]
        fn short_and_long_numbers_give_the_same(
            total in 1usize..200,
            claims in proptest::collection::vec(any_claim(), 1..12),
        ) {
            prop_assume!(claims.iter().map(|claim| claim.least).sum::<usize>() < total);
            let of = Exact::whole(total);
            let short = fill::<i64, Part>(of, total, &claims);
            prop_assert_eq!(short, fill::<i128, Part>(of, total, &claims));
        }

        #[test]
        fn a_claim_between_its_bounds_has_the_same_share_for_its_weight_as_any_other_and_nobody_beyond_has_more(
            total in 0usize..200,
            claims in proptest::collection::vec(any_claim(), 1..12),
        ) {
            prop_assume!(claims.iter().map(|claim| claim.least).sum::<usize>() < total);
            let parts = Part::of(total, &claims);
            let each = |index: usize| parts[index].share() / f64::from(claims[index].weight);
            for (a, one) in claims.iter().enumerate() {
                for (b, other) in claims.iter().enumerate() {
                    let may_fall = parts[a].share() > one.least as f64 + 1e-9;
                    let may_rise = parts[b].share() < other.most as f64 - 1e-9;
                    prop_assert!(!(may_fall && may_rise) || each(a) <= each(b) + 1e-9, "{parts:?}");
                }
            }
        }
    }
}
