//! Bursts: what a job that was quiet may have above its share, at once.
//!
//! A job that rests saves up core time at the rate of its share, as much as one interval on each core. When it comes
//! back it may have more cores than its part, as many as it can use, until its savings are spent. So a request of half
//! a millisecond has all cores beside a job that never rests, as it would have them from a kernel that divides time
//! between threads, and both jobs have their shares over time.
//!
//! 1. A burst is paid in advance: a core more costs its time until the interval ends, and is lent if the savings reach.
//!    The job that gets it has at most its share of the time that it rested and worked, and its savings end at a bound.
//! 2. The cores are lent by jobs of the same priority without such savings, the ones with the most cores first, and in
//!    turn. None lends of its least cores. What is lent is not owed: while the other job rested the lenders had more
//!    than their shares.
//! 3. Debts come first: a job that owes core time saves nothing (`credit.rs`).

use super::{Claim, Cores};
use alloc::vec::Vec;

/// What one job has saved.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Savings {
    /// In core-nanoseconds.
    saved: f64,
    /// How many cores it has lent (below 0) or got since the last decision.
    got: isize,
}

impl Savings {
    /// So much time has passed. Returns what the burst has taken beyond the savings: it ended late.
    pub(super) fn spend(&mut self, passed: f64) -> f64 {
        if self.got <= 0 {
            return 0.0;
        }
        let left = self.saved - self.got as f64 * passed;
        self.saved = left.max(0.0);
        -left.min(0.0)
    }

    /// The job comes back, and was entitled to so much while it rested.
    pub(super) fn after_rest(self, entitled: f64) -> Self {
        Savings {
            saved: self.saved + entitled.max(0.0),
            got: 0,
        }
    }

    pub(super) fn limit(&mut self, most: f64) {
        self.saved = self.saved.min(most);
    }

    /// How many of so many cores are the job's without bursts.
    pub(super) fn owned_of(self, cores: usize) -> usize {
        cores.saturating_add_signed(-self.got)
    }

    /// Whether the savings pay for a core for so long, in nanoseconds.
    pub(super) fn pays(self, time: u64) -> bool {
        self.saved >= time.max(1) as f64
    }

    /// For how many they do.
    fn buys(self, time: u64) -> usize {
        (self.saved / time.max(1) as f64) as usize
    }
}

/// Raises `counts` where savings pay for it until the interval ends, which is in so many nanoseconds. The lenders take
/// turns by `turn`. Whether any core is lent.
pub(super) fn lend(
    counts: &mut [usize],
    claims: &[Claim],
    mut savings: Vec<&mut Savings>,
    cores: &Cores,
    (left, turn): (u64, &mut usize),
) -> bool {
    let before = *turn;
    savings.iter_mut().for_each(|its| its.got = 0);
    let priority = |place: usize| cores.jobs()[place].demand().priority;
    for place in 0..counts.len() {
        let bought = counts[place].saturating_add(savings[place].buys(left));
        let most = claims[place].most.min(bought);
        while counts[place] < most {
            let lends = |&lender: &usize| {
                priority(lender) == priority(place)
                    && !savings[lender].pays(left)
                    && counts[lender] > claims[lender].least
            };
            let in_turn = (0..counts.len()).map(|at| (at + *turn) % counts.len());
            let Some(lender) = in_turn.filter(lends).max_by_key(|&at| counts[at]) else {
                break;
            };
            *turn = turn.wrapping_add(1);
            (counts[lender], counts[place]) = (counts[lender] - 1, counts[place] + 1);
            savings[lender].got -= 1;
            savings[place].got += 1;
        }
    }
    *turn != before
}

#[cfg(test)]
mod tests {
    use super::super::{Cores, Demand, Event, FeedbackParameters, JobId, Shares};
    use alloc::{vec, vec::Vec};
    use proptest::prelude::*;

    /// Jobs under *shares*, of which each use begins and ends at once. Times are in tenths of an interval.
    struct Jobs {
        cores: Cores,
        shares: Shares,
        now: u64,
        timer: Option<u64>,
        last: u64,
        /// The names, while they work, and what each has had, in cores times nanoseconds.
        jobs: Vec<(Option<JobId>, u64)>,
    }

    const TENTH: u64 = 200_000;

    impl Jobs {
        fn new(cores: usize, demands: &[Demand]) -> Self {
            assert_eq!(FeedbackParameters::default().interval, 10 * TENTH);
            let mut all = Jobs {
                cores: Cores::new(cores),
                shares: Shares::default(),
                now: 0,
                timer: None,
                last: 0,
                jobs: Vec::new(),
            };
            for (id, &demand) in (0..).map(JobId).zip(demands) {
                all.cores.start(&mut all.shares, id, demand).unwrap();
                all.jobs.push((Some(id), 0));
                all.decide(Event::Start(id));
            }
            all.last = demands.len() as u64;
            all
        }

        fn decide(&mut self, event: Event) {
            let decision = self.cores.decide(&mut self.shares, event).unwrap();
            self.timer = decision.timer().or(self.timer);
        }

        /// The job has no work from now on, or has some again.
        fn turns(&mut self, job: usize) {
            match self.jobs[job].0.take() {
                Some(id) => {
                    self.cores.rest(id).unwrap();
                    self.decide(Event::Exit(id));
                }
                None => {
                    let (id, first) = (JobId(self.last), JobId(job as u64));
                    self.last += 1;
                    let demand = Demand::default();
                    self.cores.enter_again(id, first, demand).unwrap();
                    self.jobs[job].0 = Some(id);
                    self.decide(Event::Start(id));
                }
            }
        }

        fn pass(&mut self, tenths: u64) {
            for _ in 0..tenths {
                for place in 0..self.jobs.len() {
                    self.jobs[place].1 += self.count(place) as u64 * TENTH;
                }
                self.now += TENTH;
                self.cores.set_now(self.now);
                if self.timer.take_if(|at| *at <= self.now).is_some() {
                    self.decide(Event::Timer);
                }
            }
        }

        fn count(&self, job: usize) -> usize {
            let job = self.jobs[job].0.and_then(|id| self.cores.job(id));
            job.map_or(0, |job| job.cores())
        }

        fn counts(&self) -> Vec<usize> {
            (0..self.jobs.len()).map(|job| self.count(job)).collect()
        }
    }

    #[test]
    fn a_job_that_was_quiet_has_all_cores_until_its_savings_are_spent() {
        let mut jobs = Jobs::new(2, &[Demand::default(); 2]);
        assert_eq!(
            jobs.counts(),
            [1, 1],
            "a job that has just started has saved nothing"
        );
        jobs.turns(0);
        jobs.pass(15);
        assert_eq!(jobs.counts(), [0, 2]);
        jobs.turns(0);
        assert_eq!(
            jobs.counts(),
            [2, 0],
            "three halves of an interval pay for one core more"
        );
        jobs.pass(10);
        assert_eq!(jobs.counts(), [1, 1], "and not for a second interval");
        jobs.pass(100);
        assert_eq!(jobs.counts(), [1, 1]);
        jobs.turns(0);
        jobs.pass(1000);
        jobs.turns(0);
        jobs.pass(20);
        assert_eq!(
            jobs.counts(),
            [1, 1],
            "an interval on each core is the most that is saved"
        );
    }

    #[test]
    fn no_job_lends_its_least_cores_and_the_jobs_with_the_most_lend_first() {
        let keeps = Demand {
            min_cores: 1,
            ..Demand::default()
        };
        let heavy = Demand {
            weight: 4,
            ..Demand::default()
        };
        let mut jobs = Jobs::new(7, &[Demand::default(), keeps, heavy, Demand::default()]);
        assert_eq!(jobs.counts(), [1, 1, 4, 1]);
        jobs.turns(0);
        jobs.pass(12);
        jobs.turns(0);
        assert_eq!(jobs.counts(), [2, 1, 3, 1], "the savings are of one core");
        jobs.turns(0);
        jobs.pass(1000);
        jobs.turns(0);
        assert_eq!(jobs.counts(), [6, 1, 0, 0]);
    }

    #[test]
    fn lenders_take_turns() {
        let mut jobs = Jobs::new(3, &[Demand::default(); 3]);
        let mut lent = [0u32; 3];
        for _ in 0..30 {
            jobs.turns(0);
            jobs.pass(11);
            jobs.turns(0);
            for (lent, count) in lent.iter_mut().zip(jobs.counts()) {
                *lent += u32::from(count == 0);
            }
            jobs.pass(10);
        }
        assert!(lent[1].abs_diff(lent[2]) <= 1 && lent[0] == 0, "{lent:?}");
        assert!(lent[1] > 5);
    }

    proptest! {
        #[test]
        fn a_job_that_always_works_has_its_share_but_for_what_others_may_save(
            cores in 1usize..6,
            others in 1usize..5,
            turns in proptest::collection::vec((0usize..5, 1u64..40), 1..200),
        ) {
            let mut jobs = Jobs::new(cores, &vec![Demand::default(); others + 1]);
            for (job, tenths) in turns {
                jobs.turns(job % others);
                jobs.pass(tenths);
            }
            let share = cores as u64 * jobs.now / (others as u64 + 1);
            // Each of the others has an interval on each core, and turns are whole intervals.
            let saved = (others * cores + others + cores) as u64 * 10 * TENTH;
            let had = jobs.jobs[others].1;
            prop_assert!(had + saved >= share, "{had} of {share}");
        }
    }
}
