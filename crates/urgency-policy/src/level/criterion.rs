//! The fairness criterion: which share of the processors each level is entitled to.

use crate::order::MAX_LEVELS;
use alloc::{vec, vec::Vec};
use core::fmt;

/// How many parts the whole has: shares are multiples of about one millionth.
///
/// ```
/// use urgency_policy::level::{Criterion, SCALE};
///
/// let criterion = Criterion::from_shares(&[0.25, 0.75])?;
/// assert_eq!(criterion.parts(), [SCALE / 4, SCALE / 4 * 3]);
/// # Ok::<(), urgency_policy::level::CriterionError>(())
/// ```
pub const SCALE: u32 = 1 << 20;

/// How far a sum of shares may be from 1, and a sum of reciprocal stretches above it: what decimal
/// fractions lose in binary.
const TOLERANCE: f64 = 1e-6;

/// The share of each level, by rank.
///
/// A criterion is a distribution over the levels (Fairness in Responsive Parallelism, section 3.1). A level
/// with share F is stretched by at most 1/F: its work takes at most 1/F times as long as on a machine of
/// its own. So the same thing can be said in two ways:
///
/// - as **shares**, which sum to 1;
/// - as **tolerated stretches**, each at least 1, of which the reciprocals sum to at most 1. What they leave
///   goes to the most urgent level; that can only improve a stretch. A level that tolerates any stretch says
///   infinity: it is promised nothing, and lives on donations.
///
/// Shares are kept as whole parts of [`SCALE`] that sum to it exactly (the parts that rounding loses go to
/// the largest remainders), so that draws are integer arithmetic and the same everywhere. A share above zero
/// gets at least one part.
///
/// ```
/// use urgency_policy::level::{Criterion, CriterionError};
///
/// let fair = Criterion::from_shares(&[0.5, 0.25, 0.25])?;
/// assert_eq!((fair.share(0), fair.share_down_to(1)), (0.5, 0.75));
/// assert_eq!(Criterion::winner_takes_all(2)?.share(0), 1.0);
///
/// // Two planners, as in the fairness paper; the control loop gets what they leave.
/// let planners = Criterion::from_stretches(&[f64::INFINITY, 1.5, 6.0])?;
/// assert!((planners.share(0) - 1.0 / 6.0).abs() < 1e-5);
///
/// let greedy = Criterion::from_stretches(&[1.5, 2.0]);
/// assert!(matches!(greedy, Err(CriterionError::Infeasible { sum }) if sum > 1.16));
/// # Ok::<(), CriterionError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Criterion {
    parts: Vec<u32>,
}

impl Criterion {
    /// The criterion with these shares, by rank.
    ///
    /// # Errors
    ///
    /// If there is none or more than [`MAX_LEVELS`], if one is negative, infinite or no number, or if they
    /// do not sum to 1 (up to a millionth). The text of the error says what to do to these numbers.
    pub fn from_shares(shares: &[f64]) -> Result<Self, CriterionError> {
        check_count(shares.len())?;
        for (rank, &share) in shares.iter().enumerate() {
            if !(0.0..=f64::MAX).contains(&share) {
                return Err(CriterionError::Share { rank, share });
            }
        }
        let sum: f64 = shares.iter().sum();
        if !(1.0 - TOLERANCE..=1.0 + TOLERANCE).contains(&sum) {
            return Err(CriterionError::Sum { sum });
        }
        Ok(Criterion {
            parts: apportion(shares, sum),
        })
    }

    /// The criterion under which no level is stretched more than it tolerates, by rank.
    ///
    /// # Errors
    ///
    /// If there is none or more than [`MAX_LEVELS`], if one is below 1 or no number, or if the set is
    /// infeasible: the reciprocals sum to more than 1.
    pub fn from_stretches(stretches: &[f64]) -> Result<Self, CriterionError> {
        check_count(stretches.len())?;
        for (rank, &stretch) in stretches.iter().enumerate() {
            if stretch.is_nan() || stretch < 1.0 {
                return Err(CriterionError::Stretch { rank, stretch });
            }
        }
        let mut shares: Vec<f64> = stretches.iter().map(|stretch| 1.0 / stretch).collect();
        let sum: f64 = shares.iter().sum();
        if sum > 1.0 + TOLERANCE {
            return Err(CriterionError::Infeasible { sum });
        }
        shares[0] += (1.0 - sum).max(0.0);
        let sum = shares.iter().sum();
        Ok(Criterion {
            parts: apportion(&shares, sum),
        })
    }

    /// Everything to the most urgent of so many levels: this is prompt, in rounds.
    ///
    /// # Errors
    ///
    /// If `levels` is 0 or more than [`MAX_LEVELS`].
    pub fn winner_takes_all(levels: usize) -> Result<Self, CriterionError> {
        check_count(levels)?;
        let mut parts = vec![0; levels];
        parts[0] = SCALE;
        Ok(Criterion { parts })
    }

    /// The share of the level of this rank, 0 to 1; 0 for a rank that is not among the levels.
    pub fn share(&self, rank: u8) -> f64 {
        let parts = self.parts.get(usize::from(rank));
        parts.map_or(0.0, |&parts| f64::from(parts) / f64::from(SCALE))
    }

    /// The share of this rank and all that are more urgent: what Theorem 3 of the paper divides by.
    pub fn share_down_to(&self, rank: u8) -> f64 {
        (0..=rank).map(|rank| self.share(rank)).sum()
    }

    /// The share of each level in parts of [`SCALE`], by rank.
    pub fn parts(&self) -> &[u32] {
        &self.parts
    }
}

fn check_count(given: usize) -> Result<(), CriterionError> {
    if given == 0 || given > MAX_LEVELS {
        return Err(CriterionError::Count { given });
    }
    Ok(())
}

/// Whole parts that sum to [`SCALE`], by largest remainder; a positive share gets at least one.
fn apportion(shares: &[f64], sum: f64) -> Vec<u32> {
    let scaled = |share: f64| share / sum * f64::from(SCALE);
    let mut parts: Vec<u32> = shares
        .iter()
        .map(|&share| (scaled(share) as u32).max(u32::from(share > 0.0)))
        .collect();
    loop {
        let total: u32 = parts.iter().sum();
        let due = |rank: &usize| scaled(shares[*rank]) - f64::from(parts[*rank]);
        let by_due = |a: &usize, b: &usize| due(a).total_cmp(&due(b)).then(b.cmp(a));
        match total.cmp(&SCALE) {
            core::cmp::Ordering::Equal => return parts,
            core::cmp::Ordering::Less => {
                let most = (0..parts.len()).filter(|&rank| shares[rank] > 0.0);
                let rank = most.max_by(by_due).expect("the shares sum to 1");
                parts[rank] += 1;
            }
            core::cmp::Ordering::Greater => {
                let most = (0..parts.len()).filter(|&rank| parts[rank] > 1);
                let rank = most.min_by(by_due).expect("64 levels fit into the scale");
                parts[rank] -= 1;
            }
        }
    }
}

/// Why a list of shares or stretches is no fairness criterion.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum CriterionError {
    /// There is no level, or there are more than [`MAX_LEVELS`].
    Count {
        /// How many there are.
        given: usize,
    },
    /// A share is negative, infinite or no number.
    Share {
        /// The level's rank.
        rank: usize,
        /// The share.
        share: f64,
    },
    /// The shares do not sum to 1.
    Sum {
        /// Their sum: 0 if no level has a share, infinite if it is larger than any `f64`.
        sum: f64,
    },
    /// A stretch is below 1 or no number.
    Stretch {
        /// The level's rank.
        rank: usize,
        /// The stretch.
        stretch: f64,
    },
    /// No machine can keep all these stretches: their reciprocals sum to more than 1.
    Infeasible {
        /// The sum of the reciprocals.
        sum: f64,
    },
}

impl fmt::Display for CriterionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Count { given } => write!(
                f,
                "a fairness criterion for {given} levels was asked for; give one number for each of 1 to {MAX_LEVELS} levels"
            ),
            Self::Share { rank, share } => write!(
                f,
                "the share of the level of rank {rank} is {}; a share is a number between 0 and 1",
                Short(*share)
            ),
            Self::Sum { sum: 0.0 } => f.write_str(
                "all shares are 0; give at least one level a share above 0, so that they sum to 1",
            ),
            Self::Sum { sum } if sum.is_infinite() => f.write_str(
                "the shares are too large to be added up; they must sum to 1: divide each by the largest of them, then by the \
                 sum of the quotients",
            ),
            Self::Sum { sum } => write!(
                f,
                "the shares sum to {sum}; they must sum to 1: divide each by {sum}",
                sum = Short(*sum)
            ),
            Self::Stretch { rank, stretch } => write!(
                f,
                "the tolerated stretch of the level of rank {rank} is {}; it must be at least 1 (nothing runs faster than \
                 alone), or infinity for a level that is promised nothing",
                Short(*stretch)
            ),
            Self::Infeasible { sum } => write!(
                f,
                "no schedule keeps these stretches: their reciprocals sum to {sum}, and may sum to 1 at most; multiply each by {sum}"
            ),
        }
    }
}

impl core::error::Error for CriterionError {}

/// A number as the shortest text that gives it back, with an exponent where it would have hundreds of digits.
struct Short(f64);

impl fmt::Display for Short {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Short(number) = *self;
        let is_usual = number == 0.0 || !number.is_finite() || (1e-5..1e15).contains(&number.abs());
        if is_usual {
            write!(f, "{number}")
        } else {
            write!(f, "{number:e}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;
    use proptest::prelude::*;

    #[test]
    fn infeasible_stretches_are_rejected_with_the_sum_that_they_violate() {
        let error = Criterion::from_stretches(&[2.0, 2.0, 4.0]).unwrap_err();
        assert_eq!(error, CriterionError::Infeasible { sum: 1.25 });
        assert!(error.to_string().contains("sum to 1.25"));
    }

    #[test]
    fn what_stretches_leave_goes_to_the_most_urgent_level() {
        let criterion = Criterion::from_stretches(&[10.0, 4.0, 4.0]).unwrap();
        assert_eq!(criterion.share(1), 0.25);
        assert_eq!(criterion.share(0), 0.5);
    }

    #[test]
    fn shares_that_do_not_sum_to_one_are_rejected_with_their_sum() {
        let error = Criterion::from_shares(&[0.5, 0.25]).unwrap_err();
        assert_eq!(error, CriterionError::Sum { sum: 0.75 });
    }

    #[test]
    fn a_share_or_stretch_out_of_its_range_is_named() {
        let shares = Criterion::from_shares(&[1.5, -0.5]);
        assert_eq!(
            shares,
            Err(CriterionError::Share {
                rank: 1,
                share: -0.5
            })
        );
        let stretches = Criterion::from_stretches(&[2.0, 0.5]);
        assert_eq!(
            stretches,
            Err(CriterionError::Stretch {
                rank: 1,
                stretch: 0.5
            })
        );
        assert!(Criterion::from_shares(&[f64::NAN]).is_err());
        assert!(Criterion::from_stretches(&[f64::NAN]).is_err());
        assert_eq!(
            Criterion::from_shares(&[]),
            Err(CriterionError::Count { given: 0 })
        );
    }

    #[test]
    fn the_advice_of_each_error_fits_the_numbers_that_were_given() {
        let smallest = f64::from_bits(1);
        let huge = f64::MAX;
        let table: &[(&[f64], &str)] = &[
            (
                &[],
                "for 0 levels was asked for; give one number for each of 1 to 64",
            ),
            (
                &[0.0],
                "all shares are 0; give at least one level a share above 0",
            ),
            (
                &[0.0, -0.0, 0.0],
                "all shares are 0; give at least one level",
            ),
            (
                &[0.5, -0.25],
                "rank 1 is -0.25; a share is a number between 0 and 1",
            ),
            (&[0.5, -huge], "rank 1 is -1.7976931348623157e308; a share"),
            (&[-smallest], "rank 0 is -5e-324; a share"),
            (&[0.5, f64::NAN], "rank 1 is NaN; a share is a number"),
            (&[f64::INFINITY, 0.5], "rank 0 is inf; a share is a number"),
            (
                &[0.0, smallest],
                "sum to 5e-324; they must sum to 1: divide each by 5e-324",
            ),
            (
                &[1e300, 3e300],
                "sum to 4e300; they must sum to 1: divide each by 4e300",
            ),
            (
                &[1.5, 1.0],
                "sum to 2.5; they must sum to 1: divide each by 2.5",
            ),
            (
                &[huge, huge],
                "divide each by the largest of them, then by the sum",
            ),
        ];
        for (shares, advice) in table {
            let text = Criterion::from_shares(shares).unwrap_err().to_string();
            assert!(text.contains(advice), "{shares:?}: {text}");
            assert!(text.len() < 160, "{shares:?}: {text}");
        }
        for stretch in [smallest, -huge, f64::NEG_INFINITY, f64::NAN, 0.0] {
            let text = Criterion::from_stretches(&[stretch])
                .unwrap_err()
                .to_string();
            assert!(text.len() < 200, "{stretch:e}: {text}");
        }
    }

    /// Does to the shares what the error says.
    fn follow(shares: &[f64], advice: &str) -> Vec<f64> {
        if advice.contains("the largest of them") {
            let largest = shares.iter().copied().fold(0.0, f64::max);
            let quotients: Vec<f64> = shares.iter().map(|share| share / largest).collect();
            let sum: f64 = quotients.iter().sum();
            return quotients.iter().map(|share| share / sum).collect();
        }
        let by = advice.rsplit(' ').next().unwrap().parse::<f64>().unwrap();
        shares.iter().map(|share| share / by).collect()
    }

    proptest! {
        #[test]
        fn shares_that_follow_the_advice_are_a_criterion(
            bits in proptest::collection::vec(0..=f64::MAX.to_bits(), 1..=64),
            scale in 0u32..3,
        ) {
            // All exponents alike; then all subnormal; then all close to the largest.
            let number = |bits: u64| f64::from_bits(match scale {
                0 => bits,
                1 => bits % f64::MIN_POSITIVE.to_bits(),
                _ => f64::MAX.to_bits() - (bits >> 10),
            });
            let shares: Vec<f64> = bits.into_iter().map(number).collect();
            prop_assume!(shares.iter().any(|&share| share > 0.0));
            if let Err(error) = Criterion::from_shares(&shares) {
                let advice = error.to_string();
                prop_assert!(advice.len() < 160, "{}", advice);
                let again = Criterion::from_shares(&follow(&shares, &advice));
                prop_assert!(again.is_ok(), "{}: {:?}", advice, again);
            }
        }

        #[test]
        fn parts_sum_to_the_whole_and_are_within_64_of_the_shares(
            weights in proptest::collection::vec(0u32..1000, 1..=64),
        ) {
            let sum: u32 = weights.iter().sum();
            prop_assume!(sum > 0);
            let shares: Vec<f64> = weights.iter().map(|&w| f64::from(w) / f64::from(sum)).collect();
            let criterion = Criterion::from_shares(&shares).unwrap();
            prop_assert_eq!(criterion.parts().iter().sum::<u32>(), SCALE);
            for (rank, share) in shares.iter().enumerate() {
                let off = f64::from(criterion.parts()[rank]) - share * f64::from(SCALE);
                prop_assert!(off.abs() <= 64.0, "{off}");
                prop_assert_eq!(criterion.parts()[rank] > 0, weights[rank] > 0);
            }
        }
    }
}
