//! Adaptive: workers are allotted to levels each quantum, by how well each level used its own.

use super::{Otherwise, Seat};
use crate::order::MAX_LEVELS;
use alloc::{vec, vec::Vec};
use core::fmt;

/// The numbers of the adaptive scheduler. The defaults are its source's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Parameters {
    /// The time between two allotments in nanoseconds; 1 ms by default.
    pub quantum: u64,
    /// Which part of its workers' time a level must use to be efficient, 0 to 1; 0.9 by default.
    pub utilisation: f64,
    /// By how much a desire grows and shrinks, above 1; 2 by default.
    pub growth: f64,
    /// The desire of a level that gets work, in workers; 1 by default. Also the least desire.
    pub initial: usize,
}

impl Default for Parameters {
    fn default() -> Self {
        Parameters {
            quantum: 1_000_000,
            utilisation: 0.9,
            growth: 2.0,
            initial: 1,
        }
    }
}

/// Which of the [`Parameters`] is out of its range.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum AdaptiveError {
    /// The number of levels is not between 1 and 64.
    LevelCount(usize),
    /// The quantum is zero.
    Quantum,
    /// The utilisation bound is not between 0 and 1.
    Utilisation(f64),
    /// The growth factor is not above 1, or not finite.
    Growth(f64),
    /// The initial desire is zero.
    Initial,
}

impl fmt::Display for AdaptiveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::LevelCount(given) => write!(
                f,
                "an adaptive schedule of {given} levels was asked for; it can have 1 to {MAX_LEVELS}"
            ),
            Self::Quantum => write!(
                f,
                "the quantum is 0 ns; it must be longer: 500,000 to 1,000,000 is usual"
            ),
            Self::Utilisation(given) => write!(
                f,
                "the utilisation bound is {given}; it is a part of the whole, between 0 and 1"
            ),
            Self::Growth(given) => write!(f, "the growth factor is {given}; it must be above 1"),
            Self::Initial => write!(
                f,
                "the initial desire is 0 workers; with less than 1 a level would never start"
            ),
        }
    }
}

impl core::error::Error for AdaptiveError {}

/// What a level did in the quantum that ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Use {
    /// How long its workers ran its work, in nanoseconds, all together.
    pub busy: u64,
    /// Whether it has any work that is ready or running now. What only waits does not count.
    pub has_work: bool,
}

/// Allots workers to levels.
///
/// This is the upper half of Adaptive I-Cilk (the Prompt I-Cilk paper, section 2, "The Adaptive I-Cilk
/// Scheduler Design"), which Prompt is compared with. A level has a *desire*, the number of workers that it
/// asks for. At the end of each quantum, from the most urgent level down:
///
/// 1. **inefficient**, it used less than the utilisation bound of what it had: its desire shrinks by the
///    growth factor;
/// 2. **efficient and satisfied**, it used them and had as many as it wanted: its desire grows by the factor;
/// 3. **efficient but deprived**, it used them and had fewer: its desire stays.
///
/// A level without work has no desire; a level that gets work starts with the initial desire. Then levels are granted
/// what they want in the order of urgency while there are workers. Spare workers are dealt evenly to the levels with
/// work, and the workers that are left over go to the most urgent of these levels. Workers stay where they are if they
/// can.
///
/// The published variants differ below this: *adaptive* steals at random among worker-owned deques
/// ([`Proactive`](crate::pool::Proactive)), *adaptive + aging* resumes each worker's own deques in the order
/// in which they became resumable (the same with [`Pick::Oldest`](crate::pool::Pick)), and *adaptive greedy*
/// has prompt's central pool ([`Aging`](crate::pool::Aging)).
///
/// ```
/// use urgency_policy::level::{Adaptive, Parameters, Seat, Use};
///
/// let mut adaptive = Adaptive::new(2, Parameters::default())?;
/// let mut seats = vec![Seat::PROMPT; 4];
/// let works = Use { busy: 4_000_000, has_work: true };
/// let idle = Use::default();
/// adaptive.reallocate(&[idle, works], &mut seats);
/// assert!(seats.iter().all(|seat| seat.primary() == Some(1)), "the others have nothing to do");
/// # Ok::<(), urgency_policy::level::AdaptiveError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Adaptive {
    parameters: Parameters,
    /// By rank, in workers.
    desire: Vec<f64>,
    /// By rank: how many workers it had in the quantum that ends.
    granted: Vec<usize>,
}

impl Adaptive {
    /// For so many levels.
    ///
    /// # Errors
    ///
    /// If a number is out of its range.
    pub fn new(levels: usize, parameters: Parameters) -> Result<Self, AdaptiveError> {
        if levels == 0 || levels > MAX_LEVELS {
            return Err(AdaptiveError::LevelCount(levels));
        }
        if parameters.quantum == 0 {
            return Err(AdaptiveError::Quantum);
        }
        if !(0.0..=1.0).contains(&parameters.utilisation) {
            return Err(AdaptiveError::Utilisation(parameters.utilisation));
        }
        if !(parameters.growth > 1.0 && parameters.growth.is_finite()) {
            return Err(AdaptiveError::Growth(parameters.growth));
        }
        if parameters.initial == 0 {
            return Err(AdaptiveError::Initial);
        }
        Ok(Adaptive {
            parameters,
            desire: vec![0.0; levels],
            granted: vec![0; levels],
        })
    }

    /// The time between two allotments in nanoseconds.
    pub fn quantum(&self) -> u64 {
        self.parameters.quantum
    }

    /// How many levels it has.
    pub fn levels(&self) -> usize {
        self.desire.len()
    }

    /// How many workers each level wants, by rank.
    pub fn desires(&self) -> impl Iterator<Item = usize> {
        self.desire.iter().map(|&desire| desire as usize)
    }

    /// A quantum is over: `used` says by rank what each level did in it. Gives each worker its seat for
    /// the next one.
    ///
    /// # Panics
    ///
    /// If `used` has not one entry for each level.
    pub fn reallocate(&mut self, used: &[Use], seats: &mut [Seat]) {
        assert_eq!(used.len(), self.desire.len(), "one entry for each level");
        self.learn(used, seats.len());
        let grants = self.grants(used, seats.len());
        move_few(&grants, seats);
        self.granted = grants;
    }

    fn learn(&mut self, used: &[Use], workers: usize) {
        let Parameters {
            quantum,
            utilisation,
            growth,
            initial,
        } = self.parameters;
        let least = initial as f64;
        for (rank, used) in used.iter().enumerate() {
            let (had, desire) = (self.granted[rank], &mut self.desire[rank]);
            if !used.has_work {
                *desire = 0.0;
            } else if *desire == 0.0 {
                *desire = least;
            } else if (used.busy as f64) < utilisation * had as f64 * quantum as f64 {
                *desire = (*desire / growth).max(least);
            } else if had as f64 >= *desire {
                *desire = (*desire * growth).min(workers as f64).max(least);
            }
        }
    }

    fn grants(&self, used: &[Use], workers: usize) -> Vec<usize> {
        let mut left = workers;
        let mut grants: Vec<usize> = self
            .desire
            .iter()
            .map(|&desire| {
                let granted = (desire as usize).min(left);
                left -= granted;
                granted
            })
            .collect();
        let working = used.iter().filter(|used| used.has_work).count();
        if let Some(each) = left.checked_div(working) {
            let mut odd = left % working;
            for (grant, used) in grants.iter_mut().zip(used) {
                if used.has_work {
                    *grant += each + core::mem::take(&mut odd);
                }
            }
        }
        grants
    }
}

/// Seats the workers so that each level has its grant, and moves as few as possible. Workers for which there
/// is no grant keep their seats.
fn move_few(grants: &[usize], seats: &mut [Seat]) {
    let mut open = grants.to_vec();
    let mut to_move = Vec::new();
    for (worker, seat) in seats.iter().enumerate() {
        match seat.primary().map(usize::from) {
            Some(rank) if open.get(rank).is_some_and(|&open| open > 0) => open[rank] -= 1,
            _ => to_move.push(worker),
        }
    }
    let mut to_move = to_move.into_iter();
    for (rank, open) in open.into_iter().enumerate() {
        let rank = u8::try_from(rank).expect("there are at most 64 levels");
        for worker in to_move.by_ref().take(open) {
            seats[worker] = Seat::at(rank, Otherwise::Wait);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const QUANTUM: u64 = 1_000_000;

    fn seated(seats: &[Seat], rank: u8) -> usize {
        seats.iter().filter(|s| s.primary() == Some(rank)).count()
    }

    fn busy(workers: f64) -> Use {
        Use {
            busy: (workers * QUANTUM as f64) as u64,
            has_work: true,
        }
    }

    #[test]
    fn an_efficient_level_doubles_its_desire_and_an_inefficient_one_halves_it() {
        let mut adaptive = Adaptive::new(2, Parameters::default()).unwrap();
        let mut seats = vec![Seat::PROMPT; 16];
        let desires = |a: &Adaptive| a.desires().collect::<Vec<_>>();
        adaptive.reallocate(&[busy(0.0), busy(0.0)], &mut seats);
        assert_eq!(desires(&adaptive), [1, 1]);
        for expected in [2, 4, 8] {
            let had = seated(&seats, 0) as f64;
            adaptive.reallocate(&[busy(had), busy(0.0)], &mut seats);
            assert_eq!(desires(&adaptive), [expected, 1]);
        }
        adaptive.reallocate(&[busy(1.0), busy(0.0)], &mut seats);
        assert_eq!(desires(&adaptive), [4, 1]);
    }

    #[test]
    fn an_efficient_level_that_got_less_than_it_wanted_keeps_its_desire() {
        let mut adaptive = Adaptive::new(
            2,
            Parameters {
                initial: 3,
                ..Parameters::default()
            },
        )
        .unwrap();
        let mut seats = vec![Seat::PROMPT; 4];
        adaptive.reallocate(&[busy(0.0), busy(0.0)], &mut seats);
        assert_eq!((seated(&seats, 0), seated(&seats, 1)), (3, 1));
        adaptive.reallocate(&[busy(0.0), busy(1.0)], &mut seats);
        assert_eq!(adaptive.desires().collect::<Vec<_>>(), [3, 3]);
    }

    #[test]
    fn numbers_out_of_their_range_are_named() {
        let with = |parameters| Adaptive::new(1, parameters).unwrap_err();
        let usual = Parameters::default();
        assert_eq!(
            Adaptive::new(0, usual).unwrap_err(),
            AdaptiveError::LevelCount(0)
        );
        assert_eq!(
            with(Parameters {
                quantum: 0,
                ..usual
            }),
            AdaptiveError::Quantum
        );
        assert_eq!(
            with(Parameters {
                growth: 1.0,
                ..usual
            }),
            AdaptiveError::Growth(1.0)
        );
        assert_eq!(
            with(Parameters {
                initial: 0,
                ..usual
            }),
            AdaptiveError::Initial
        );
        assert_eq!(
            with(Parameters {
                utilisation: 1.5,
                ..usual
            }),
            AdaptiveError::Utilisation(1.5)
        );
    }

    proptest! {
        #[test]
        fn urgent_desires_are_granted_first_and_no_worker_is_left_over(
            quanta in proptest::collection::vec(
                proptest::collection::vec((0.0f64..20.0, any::<bool>()), 4),
                1..30,
            ),
            workers in 1usize..40,
        ) {
            let mut adaptive = Adaptive::new(4, Parameters::default()).unwrap();
            let mut seats = vec![Seat::PROMPT; workers];
            for quantum in quanta {
                let used: Vec<Use> = quantum
                    .iter()
                    .map(|&(workers, has_work)| Use { has_work, ..busy(workers) })
                    .collect();
                let before = seats.clone();
                adaptive.reallocate(&used, &mut seats);
                if used.iter().all(|used| !used.has_work) {
                    prop_assert_eq!(&before, &seats);
                    continue;
                }
                let mut left = workers;
                for (rank, desire) in adaptive.desires().enumerate() {
                    let got = seated(&seats, rank as u8);
                    prop_assert!(got >= desire.min(left), "level {rank} wants {desire}, has {got}");
                    prop_assert!(used[rank].has_work || got == 0);
                    left -= desire.min(left);
                }
                // No worker moves whose level could have kept it.
                for rank in 0..4 {
                    let stayed = before.iter().zip(&seats).filter(|(b, s)| {
                        b.primary() == Some(rank) && s.primary() == Some(rank)
                    });
                    let could = seated(&before, rank).min(seated(&seats, rank));
                    prop_assert_eq!(stayed.count(), could);
                }
            }
        }
    }
}
