//! Shares: the default. Weights, bounds, priorities, and no core without a job.

use super::{
    Claim, CorePolicy, Cores, Decision, DecisionError, Desire, Event, FeedbackParameters, Job,
    ParametersError, Part, group, learnt::Learnt,
};
use alloc::{vec, vec::Vec};

/// Weights, bounds and priorities.
///
/// The vocabulary comes from production systems (weight, priority, least and most cores); the desires are the
/// feedback of the AMCilk paper (section V-C), and the division is weighted dynamic equi-partitioning over them.
///
/// # Rules
///
/// 1. Every job has its least cores; if too few are available for that, the more urgent ones first, and of equals the
///    oldest.
/// 2. The rest goes to the jobs of the most urgent priority, in proportion to their weights, to each at most what it
///    desires (`desire.rs`) and at most its most cores. What they leave goes to the next priority.
///    Jobs of one [`Group`](super::Group) get the share of the group together, and divide it by their own weights.
/// 3. What all desires leave is dealt by the same rules up to the most cores: a job that suddenly can use more has it
///    already, and a core is without a job only if every job has its most.
/// 4. Fractions are kept over time: jobs take turns at the cores that cannot be divided.
/// 5. A job that rests saves up core time at the rate of its share, at most an interval on each core. Until that is
///    spent it has what it can use beyond its part, from the other jobs of its priority (`burst.rs`).
///
/// # What it promises
///
/// - It is work-conserving.
/// - Least and most cores are kept.
/// - Over time, a job that uses its cores gets at least its weighted share among the jobs of its priority, but for one
///   core during one interval, and for what others have saved: an interval on each core for each job that rested. So no
///   job of the most urgent priority starves, however many there are. A job of a less urgent priority gets nothing
///   while more urgent ones use everything, unless it has least cores.
/// - So does a group whose jobs use their cores, among the groups of its priority, however many jobs each has; and
///   each of these jobs among the jobs of its group.
/// - A job that was quiet begins with its part at once, whatever it could use before, and with what it saved; what it
///   still owes for having had more than its part it pays first.
///
/// ```
/// use urgency_policy::cores::{Cores, Demand, Event, JobId, Shares};
///
/// let (mut cores, mut shares) = (Cores::new(8), Shares::default());
/// let requests = Demand { weight: 3, ..Demand::default() };
/// let backup = Demand { priority: 1, min_cores: 1, ..Demand::default() };
/// for (id, demand) in [(1, requests), (2, Demand::default()), (3, backup)] {
///     cores.start(&mut shares, JobId(id), demand)?;
///     cores.decide(&mut shares, Event::Start(JobId(id)))?;
/// }
/// assert_eq!(cores.counts(), [5, 2, 1], "7 to 3:1 is 5.25 to 1.75; they take turns");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Shares {
    learnt: Learnt,
}

impl Shares {
    /// With these numbers for the feedback.
    ///
    /// # Errors
    ///
    /// If one is out of its range.
    pub fn new(parameters: FeedbackParameters) -> Result<Self, ParametersError> {
        let learnt = Learnt::new(parameters)?;
        Ok(Shares { learnt })
    }

    /// What the jobs can use, in their order.
    fn claims(&self, cores: &Cores) -> Vec<Claim> {
        let desires = self.learnt.desires.values();
        let claim = |(job, desire): (&Job, &Desire)| {
            let (least, most) = (job.demand().min_cores, job.demand().max_cores);
            Claim {
                weight: job.demand().weight,
                least,
                most: desire.cores().min(most).max(least),
            }
        };
        cores.jobs().iter().zip(desires).map(claim).collect()
    }
}

/// The shares of all jobs, in their order.
fn parts(cores: &Cores, claims: &[Claim]) -> Vec<Part> {
    let available = cores.available().count();
    let parts = by_priority(cores, available, claims);
    if parts.iter().map(|part| part.share()).sum::<f64>() + 0.5 > available as f64 {
        return parts;
    }
    // Every desire is met, so the parts are whole numbers.
    let met = |((claim, part), job): ((&Claim, Part), &Job)| Claim {
        least: part.whole,
        most: job.demand().max_cores.max(part.whole),
        ..*claim
    };
    let claims: Vec<Claim> = claims
        .iter()
        .zip(parts)
        .zip(cores.jobs())
        .map(met)
        .collect();
    by_priority(cores, available, &claims)
}

/// The shares of all jobs, the more urgent ones first.
fn by_priority(cores: &Cores, available: usize, claims: &[Claim]) -> Vec<Part> {
    let (jobs, order) = (cores.jobs(), cores.by_urgency());
    let priority = |index: usize| jobs[index].demand().priority;
    let mut parts = vec![Part::default(); jobs.len()];
    // What the jobs that have not had their turn have at least is not there for the others.
    let mut promised: usize = claims.iter().map(|claim| claim.least).sum();
    let mut left = available;
    for class in order.chunk_by(|&a, &b| priority(a) == priority(b)) {
        let theirs: Vec<Claim> = class.iter().map(|&index| claims[index]).collect();
        let least: usize = theirs.iter().map(|claim| claim.least).sum();
        promised -= least;
        let total = left.saturating_sub(promised).max(least.min(left));
        let groups = class.iter().map(|&index| jobs[index].demand().group);
        let shares = group::divide(total, &theirs, groups);
        let taken: f64 = shares.iter().map(|part| part.share()).sum();
        left -= (taken + 0.5) as usize;
        for (&index, share) in class.iter().zip(shares) {
            parts[index] = share;
        }
    }
    parts
}

impl CorePolicy for Shares {
    fn decide(
        &mut self,
        event: Event,
        cores: &Cores,
        decision: &mut Decision,
    ) -> Result<(), DecisionError> {
        // A job that was quiet begins with its part: it desires as much as one that has just started.
        self.learnt.learn(event, cores, false);
        let claims = self.claims(cores);
        let parts = parts(cores, &claims);
        let mut counts = self.learnt.counts(event, &parts, cores);
        self.learnt.burst(&mut counts, &claims, cores);
        // One job alone has nothing to share.
        self.learnt.give(&counts, cores, decision, 2)
    }

    fn is_work_conserving(&self) -> bool {
        true
    }

    fn refuses(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Demand, Group, JobId, Usage};
    use super::*;

    /// Starts jobs and gives them as much to do in each interval as they have parallelism, `rounds` times; the mean
    /// number of cores of each.
    fn means(cores: usize, jobs: &[(Demand, usize)], rounds: u32) -> Vec<f64> {
        let (mut cores, mut shares) = (Cores::new(cores), Shares::default());
        for (id, (demand, _)) in (0u64..).zip(jobs) {
            cores.start(&mut shares, JobId(id), *demand).unwrap();
            cores.decide(&mut shares, Event::Start(JobId(id))).unwrap();
        }
        let interval = FeedbackParameters::default().interval;
        let mut sums = vec![0; jobs.len()];
        for round in 1..=u64::from(rounds) {
            for (id, (_, parallelism)) in (0u64..).zip(jobs) {
                let had = cores.job(JobId(id)).unwrap().cores();
                sums[id as usize] += had;
                let work = had.min(*parallelism) as u64 * interval;
                let waste = had as u64 * interval - work;
                let usage = Usage {
                    interval,
                    work,
                    waste,
                    ..Usage::default()
                };
                cores.measure(JobId(id), usage).unwrap();
            }
            cores.set_now(round * interval);
            cores.decide(&mut shares, Event::Timer).unwrap();
        }
        sums.iter()
            .map(|&sum| sum as f64 / f64::from(rounds))
            .collect()
    }

    fn close(means: &[f64], expected: &[f64]) {
        let near = means.iter().zip(expected).all(|(m, e)| (m - e).abs() < 0.1);
        assert!(near, "{means:?}, not {expected:?}");
    }

    fn weight(weight: u32) -> Demand {
        Demand {
            weight,
            ..Demand::default()
        }
    }

    #[test]
    fn busy_jobs_get_their_weighted_shares_over_time_though_cores_are_whole() {
        close(
            &means(2, &[(weight(1), 9), (weight(1), 9), (weight(1), 9)], 300),
            &[2.0 / 3.0; 3],
        );
        close(
            &means(8, &[(weight(3), 99), (weight(1), 99)], 300),
            &[6.0, 2.0],
        );
        close(
            &means(7, &[(weight(5), 99), (weight(1), 99)], 300),
            &[35.0 / 6.0, 7.0 / 6.0],
        );
    }

    #[test]
    fn two_groups_have_their_shares_over_time_however_many_jobs_they_have() {
        let of = |id, demand| Demand {
            group: Some(Group::new(id)),
            ..demand
        };
        let [one, four] = [(of(1, weight(1)), 9), (of(2, weight(1)), 9)];
        close(
            &means(2, &[four, one, four, four, four], 1000),
            &[0.25, 1.0, 0.25, 0.25, 0.25],
        );
        let heavy = (of(2, weight(3)), 9);
        close(&means(2, &[heavy, one, four], 1000), &[0.75, 1.0, 0.25]);
        // A group whose job needs one core only leaves the rest.
        let narrow = (of(1, weight(1)), 1);
        let means = means(8, &[narrow, heavy, four], 1000);
        assert!(means[0] < 4.1 && means[1] > 2.9 * means[2], "{means:?}");
    }

    /// Each turn of the first job begins a piece of ten intervals, with which its thread goes on beside the cores.
    #[test]
    fn what_a_job_runs_beside_its_cores_is_of_its_share() {
        const ROUNDS: u64 = 2000;
        let interval = FeedbackParameters::default().interval;
        let (mut cores, mut shares) = (Cores::new(2), Shares::default());
        for id in (0..4).map(JobId) {
            cores.start(&mut shares, id, weight(1)).unwrap();
            cores.decide(&mut shares, Event::Start(id)).unwrap();
        }
        let (mut had, mut left) = (0, 0);
        for round in 1..=ROUNDS {
            for id in 0..4 {
                let owned = cores.job(JobId(id)).unwrap().cores() as u64;
                let mut beside = 0;
                if id == 0 {
                    left += owned * 10;
                    beside = left.min(1);
                    left -= beside;
                    had += owned + beside;
                }
                let usage = Usage {
                    interval,
                    work: owned * interval,
                    beside: beside * interval,
                    ..Usage::default()
                };
                cores.measure(JobId(id), usage).unwrap();
            }
            cores.set_now(round * interval);
            cores.decide(&mut shares, Event::Timer).unwrap();
        }
        close(&[had as f64 / ROUNDS as f64], &[0.5]);
    }

    /// Two jobs have a core each, so there is nothing to take turns at, and what one owes the other is not paid.
    #[test]
    fn jobs_have_their_shares_of_what_no_longer_divides_however_long_one_ran_beside_its_cores() {
        let interval = FeedbackParameters::default().interval;
        let (mut cores, mut shares) = (Cores::new(2), Shares::default());
        let mut had = [0.0; 3];
        for id in 0..2 {
            cores.start(&mut shares, JobId(id), weight(1)).unwrap();
            cores.decide(&mut shares, Event::Start(JobId(id))).unwrap();
        }
        for round in 1..=12_000 {
            cores.set_now(round * interval);
            if round == 10_000 {
                cores.start(&mut shares, JobId(2), weight(1)).unwrap();
                cores.decide(&mut shares, Event::Start(JobId(2))).unwrap();
            }
            let owned: Vec<_> = cores.counts();
            for (id, &owned) in (0..).zip(&owned) {
                let beside = if id == 0 && round < 10_000 {
                    interval / 2
                } else {
                    0
                };
                let usage = Usage {
                    interval,
                    work: owned as u64 * interval,
                    beside,
                    ..Usage::default()
                };
                cores.measure(JobId(id), usage).unwrap();
                had[id as usize] += if round > 11_000 {
                    owned as f64 / 1000.0
                } else {
                    0.0
                };
            }
            cores.decide(&mut shares, Event::Timer).unwrap();
        }
        close(&had, &[2.0 / 3.0; 3]);
    }

    /// A job that has learnt to desire one core rests. It comes back beside a job that uses everything.
    #[test]
    fn a_job_that_was_quiet_begins_with_its_weights_part_at_once() {
        let interval = FeedbackParameters::default().interval;
        let (mut cores, mut shares) = (Cores::new(8), Shares::default());
        for id in 0..2 {
            cores.start(&mut shares, JobId(id), weight(1)).unwrap();
            cores.decide(&mut shares, Event::Start(JobId(id))).unwrap();
        }
        for round in 1..=20 {
            for job in cores.jobs().to_vec() {
                let owned = job.cores() as u64;
                let busy = if job.id() == JobId(0) { 1 } else { owned };
                let usage = Usage {
                    interval,
                    work: busy * interval,
                    waste: (owned - busy) * interval,
                    ..Usage::default()
                };
                cores.measure(job.id(), usage).unwrap();
            }
            cores.set_now(round * interval);
            cores.decide(&mut shares, Event::Timer).unwrap();
        }
        assert!(cores.counts()[0] < 4);
        cores.rest(JobId(0)).unwrap();
        cores.decide(&mut shares, Event::Exit(JobId(0))).unwrap();
        cores.enter_again(JobId(2), JobId(0), weight(1)).unwrap();
        cores.decide(&mut shares, Event::Start(JobId(2))).unwrap();
        assert_eq!(cores.counts(), [4, 4]);
    }

    /// The owners of two cores, after each of these events at a tenth of an interval after the one before.
    fn owners_after(events: impl IntoIterator<Item = Event>) -> Vec<[u64; 2]> {
        let (mut cores, mut shares) = (Cores::new(2), Shares::default());
        let tenth = FeedbackParameters::default().interval / 10;
        let after = |(event, now): (Event, u64)| {
            cores.set_now(now * tenth);
            match event {
                Event::Start(id) => cores.start(&mut shares, id, weight(1)).unwrap(),
                Event::Exit(id) => cores.exit(id).unwrap(),
                Event::Timer | Event::Request(_) => {}
            }
            cores.decide(&mut shares, event).unwrap();
            let mut owners = [0, 1].map(|core| cores.owner(core).map_or(0, |id| id.0));
            owners.sort_unstable();
            owners
        };
        events.into_iter().zip(0..).map(after).collect()
    }

    #[test]
    fn a_turn_lasts_until_the_interval_ends_but_for_one_that_a_job_takes_as_it_starts() {
        let start = |id| Event::Start(JobId(id));
        let events = [1, 2, 3, 4, 5].map(start).into_iter();
        let owners = owners_after(events.chain([Event::Exit(JobId(4)), Event::Timer]));
        assert_eq!(owners[1], [1, 2]);
        assert_eq!(owners[2], [1, 3], "no other job waits: it begins at once");
        assert_eq!(
            owners[3],
            [1, 4],
            "one has waited for longer, and there are two cores"
        );
        assert_eq!(
            owners[4],
            [1, 4],
            "two have waited for longer, and no turn is over"
        );
        assert_eq!(
            owners[5],
            [1, 2],
            "the core is free for the job that waited longest"
        );
        assert_eq!(
            owners[6],
            [2, 3],
            "all turns are over, and the first has had a core all the time"
        );
    }

    #[test]
    fn of_forty_busy_jobs_on_two_cores_none_starves() {
        close(&means(2, &[(weight(1), 9); 40], 2000), &[0.05; 40]);
    }

    #[test]
    fn what_a_job_cannot_use_goes_to_the_others() {
        let means = means(38, &[(weight(1), 8), (weight(1), 99)], 200);
        assert!(means[0] < 16.0 && means[1] > 22.0, "{means:?}");
    }

    #[test]
    fn a_less_urgent_job_gets_its_least_cores_and_what_others_leave() {
        let batch = |min_cores| Demand {
            priority: 1,
            min_cores,
            ..Demand::default()
        };
        close(
            &means(8, &[(weight(1), 99), (batch(1), 99)], 50),
            &[7.0, 1.0],
        );
        close(
            &means(8, &[(weight(1), 99), (batch(0), 99)], 50),
            &[8.0, 0.0],
        );
        let idle = Demand {
            max_cores: 3,
            ..Demand::default()
        };
        close(&means(8, &[(idle, 99), (batch(0), 99)], 50), &[3.0, 5.0]);
    }

    #[test]
    fn a_job_alone_has_everything_and_no_timer() {
        let (mut cores, mut shares) = (Cores::new(4), Shares::default());
        cores
            .start(&mut shares, JobId(1), Demand::default())
            .unwrap();
        let decision = cores.decide(&mut shares, Event::Start(JobId(1))).unwrap();
        assert_eq!((decision.moves().len(), decision.timer()), (4, None));
    }

    #[test]
    fn starts_and_exits_do_not_put_off_the_timer() {
        let (mut cores, mut shares) = (Cores::new(4), Shares::default());
        let mut timers = Vec::new();
        let interval = FeedbackParameters::default().interval;
        for id in 0..5 {
            cores.set_now(interval / 4 * id);
            cores
                .start(&mut shares, JobId(id), Demand::default())
                .unwrap();
            let decision = cores.decide(&mut shares, Event::Start(JobId(id))).unwrap();
            timers.extend(decision.timer());
        }
        assert_eq!(timers, [interval / 4 * 5; 4]);
    }
}
