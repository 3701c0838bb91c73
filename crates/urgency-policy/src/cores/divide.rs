//! Dividing a number of cores in proportion to weights, within bounds.
//!
//! The shares are found by *water-filling*: there is one level λ so that each claim gets λ times its weight, or its
//! bound if λ times its weight is beyond the bound. Together the claims get all cores, or as many as they take. All
//! sums are of whole numbers, so that equal claims get equal shares on every machine.

use alloc::{vec, vec::Vec};

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
        let shares = Exact::whole(total).divide(claims);
        shares.into_iter().map(Exact::part).collect()
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

    pub(super) fn part(self) -> Part {
        // The division of long numbers is ten times as long, and most are short.
        if let (Ok(pieces), Ok(of_a_core)) =
            (u64::try_from(self.pieces), u64::try_from(self.of_a_core))
        {
            return Part {
                whole: (pieces / of_a_core) as usize,
                fraction: (pieces % of_a_core) as f64 / of_a_core as f64,
            };
        }
        Part {
            whole: (self.pieces / self.of_a_core) as usize,
            fraction: (self.pieces % self.of_a_core) as f64 / self.of_a_core as f64,
        }
    }

    /// The shares of the claims: see [`Part::of`].
    pub(super) fn divide(self, claims: &[Claim]) -> Vec<Exact> {
        let core = self.of_a_core;
        let pieces = |pieces: i128| Exact {
            pieces,
            of_a_core: core,
        };
        let sum = |bound: fn(&Claim) -> usize| {
            let bounds = claims.iter().map(bound);
            bounds.fold(0usize, usize::saturating_add) as i128
        };
        if sum(|claim| claim.least) * core >= self.pieces {
            let mut left = self.pieces;
            let meet = |claim: &Claim| {
                let met = (claim.least as i128 * core).min(left);
                left -= met;
                pieces(met)
            };
            return claims.iter().map(meet).collect();
        }
        let total = self.pieces.min(sum(|claim| claim.most) * core);
        // In pieces; more than all is the same as all.
        let least = |i: usize| claims[i].least as i128 * core;
        let most = |i: usize| (claims[i].most as i128 * core).min(total).max(least(i));
        // Claims at a bound leave the division until none is left at one: first at the bounds that weigh more together.
        let mut parts = vec![pieces(0); claims.len()];
        let mut open: Vec<usize> = (0..claims.len()).collect();
        let mut left = total;
        while !open.is_empty() {
            let weights: i128 = open.iter().map(|&i| i128::from(claims[i].weight)).sum();
            // Multiplied by all weights: how much the share of a claim is below its least, or above its most.
            let off = |i: usize| {
                let share = i128::from(claims[i].weight) * left;
                share.clamp(least(i) * weights, most(i) * weights) - share
            };
            let offs: Vec<i128> = open.iter().map(|&i| off(i)).collect();
            let balance: i128 = offs.iter().sum();
            let leaves = |off: i128| match balance.signum() {
                0 => off != 0,
                side => off.signum() == side,
            };
            if !offs.iter().any(|&off| leaves(off)) {
                for &i in &open {
                    parts[i] = Exact {
                        pieces: i128::from(claims[i].weight) * left,
                        of_a_core: core * weights,
                    };
                }
                break;
            }
            let mut rest = Vec::new();
            for (&i, &off) in open.iter().zip(&offs) {
                if !leaves(off) {
                    rest.push(i);
                    continue;
                }
                parts[i] = pieces(if off > 0 { least(i) } else { most(i) });
                left -= parts[i].pieces;
            }
            open = rest;
        }
        parts
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
    let sum: f64 = parts.iter().map(|part| part.fraction).sum();
    // The sum is a whole number but for rounding.
    let whole = (sum + 0.5) as usize;
    let mut order: Vec<usize> = (0..parts.len())
        .filter(|&i| parts[i].fraction > 0.0)
        .collect();
    let by_key = |&a: &usize, &b: &usize| {
        let (a_key, b_key) = (key(a), key(b));
        let larger = b_key.0.cmp(&a_key.0).then(b_key.1.total_cmp(&a_key.1));
        larger.then(a.cmp(&b))
    };
    if whole < order.len() && whole > 0 {
        order.select_nth_unstable_by(whole - 1, by_key);
    }
    for &index in order.iter().take(whole) {
        counts[index] += 1;
    }
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
