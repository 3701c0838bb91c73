//! Elastic real-time scheduling: no admitted task misses a deadline, and periods give way when cores are short.

use super::{
    Claim, CorePolicy, Cores, Decision, DecisionError, Demand, Event, Job, JobId, Refusal, Task,
    divide,
};
use alloc::{vec, vec::Vec};

/// Real-time tasks with elastic periods.
///
/// The AMCilk paper (section V-B) implements the elastic scheduling of Orr, Baruah, Gill, Agrawal and others
/// (reference 22 there) for parallel tasks, after Buttazzo's for sequential ones. A [`Task`] has work C and span L in
/// each iteration, a period between T (as it likes) and the longest that it tolerates, and an elasticity E.
///
/// # Rules
///
/// 1. *Federated scheduling*: on m cores of its own, a greedy schedule ends an iteration within (C − L) / m + L. So
///    a task needs ⌈(C − L) / (T − L)⌉ cores for a period T, whatever the others do.
/// 2. *Admission*: a task is admitted if all tasks, each with its longest period, and all other jobs' least cores fit
///    onto the cores. A task that wants to change its demand is admitted anew.
/// 3. *Compression*: every task has the cores for its longest period. The others are dealt one by one, each to the
///    task for which it lowers (1/E) (U_max − U)² most: U = C/T is the utilisation that its cores allow, U_max
///    the one that it would like. A task then has the shortest period that its cores can keep ([`CorePolicy::period`]).
/// 4. Jobs that are no tasks have what the tasks leave: first the jobs of the most urgent priority, in equal parts by
///    weight, then the jobs of the next one. While a priority has more jobs than cores, the oldest have one each until
///    they end.
///
/// # What it promises
///
/// A task whose iterations have at most work C and span L, and come at least the [period](CorePolicy::period)
/// apart, ends each of them within that period: if the mechanism schedules greedily on the task's cores, and moves
/// a core in at most the *allowance* that is taken off each period. Periodic and sporadic tasks need the same
/// number of cores: the argument never uses that a release comes on time.
///
/// The default allowance is 0: the promise of [`Elastic::default`] is for a machine that moves a core in no time. The
/// runtime moves one at the next scheduling point of the code that has it, and takes it away from code that comes to
/// none after half a millisecond, most often within two. So with the default a task keeps its deadlines beside jobs
/// whose code checks in, up to some microseconds for each move. Beside code that does not check in, in a loop without
/// scheduling points or in a long call, an iteration may be late by those milliseconds: take them off by
/// [`with_allowance`](Elastic::with_allowance).
///
/// The runtime's tasks learn their periods from `Handle::period` and release their iterations by `jobs::Iterations`.
///
/// A demand that is changed holds from the next release on that is decided after it, since the cores come from tasks
/// whose own demand is kept with the fewer ones only by their longer periods.
///
/// ```
/// use urgency_policy::cores::{CorePolicy, Cores, Demand, Elastic, Event, JobId, Refusal, Task};
///
/// let mut elastic = Elastic::default();
/// let mut cores = Cores::new(8);
/// let mut start = |id, task| -> Result<(), Refusal> {
///     cores.start(&mut elastic, JobId(id), Demand { task: Some(task), ..Demand::default() })?;
///     cores.decide(&mut elastic, Event::Start(JobId(id))).unwrap();
///     Ok(())
/// };
/// // 6 cores for its period, 3 for twice the period.
/// start(1, Task { longest: 20_000_000, ..Task::new(55_000_000, 1_000_000, 10_000_000) })?;
/// start(2, Task::new(40_000_000, 1_000_000, 10_000_000))?;
/// assert_eq!(start(3, Task::new(40_000_000, 1_000_000, 10_000_000)), Err(Refusal::Cores { needed: 5, left: 0 }));
/// assert_eq!(elastic.period(JobId(1), &cores), Some(19_000_000), "compressed, the other is rigid");
/// # Ok::<(), Refusal>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Elastic {
    allowance: u64,
}

impl Elastic {
    /// Takes so many nanoseconds off each period: the longest time that the mechanism needs to move a core. 0 is for
    /// the machine of the theory.
    ///
    /// ```
    /// use urgency_policy::cores::{Cores, Demand, Elastic, JobId, Task};
    ///
    /// // 5 cores keep a period of 10 ms. The 4 ms that are left of it without the allowance would take 13.
    /// let demand = Demand { task: Some(Task::new(40_000_000, 1_000_000, 10_000_000)), ..Demand::default() };
    /// let mut cores = Cores::new(8);
    /// assert!(cores.start(&mut Elastic::with_allowance(6_000_000), JobId(1), demand).is_err());
    /// cores.start(&mut Elastic::default(), JobId(1), demand)?;
    /// # Ok::<(), urgency_policy::cores::Refusal>(())
    /// ```
    pub fn with_allowance(nanos: u64) -> Self {
        Elastic { allowance: nanos }
    }

    /// The least cores of a job: as many as its longest period needs, or as it asks for.
    fn least(&self, demand: &Demand) -> Option<usize> {
        let Some(task) = demand.task else {
            return Some(demand.min_cores);
        };
        let cores = task.least_cores(task.longest.checked_sub(self.allowance)?)?;
        Some(cores.max(demand.min_cores))
    }

    /// The cores beyond which nothing improves: those for the period that the task likes.
    fn most(&self, demand: &Demand) -> usize {
        let liked = demand.task.and_then(|task| {
            let period = task.period.checked_sub(self.allowance)?;
            task.least_cores(period)
        });
        liked.unwrap_or(usize::MAX).min(demand.max_cores)
    }

    /// The period that `cores` can keep.
    fn kept(&self, task: &Task, cores: usize) -> u64 {
        let period = task
            .least_period(cores.max(1))
            .saturating_add(self.allowance);
        period.clamp(task.period, task.longest)
    }

    /// By how much one more core lowers the task's distance from the utilisation that it would like.
    fn gain(&self, task: &Task, cores: usize) -> f64 {
        let utilisation = |period: u64| task.work as f64 / period as f64;
        let distance = |cores| utilisation(task.period) - utilisation(self.kept(task, cores));
        let (now, then) = (distance(cores), distance(cores + 1));
        (now * now - then * then) / f64::from(task.elasticity)
    }

    /// How many cores each job gets.
    fn counts(&self, cores: &Cores) -> Vec<usize> {
        let jobs = cores.jobs();
        let mut left = cores.available().count();
        let mut counts = vec![0; jobs.len()];
        // Both rounds end with everything that was promised, unless cores have gone: then the urgent jobs have theirs.
        let order = cores.by_urgency();
        let promised: [&dyn Fn(&Job) -> usize; 2] = [&|job| job.demand().min_cores, &|job| {
            self.least(job.demand()).unwrap_or(usize::MAX)
        }];
        for promised in promised {
            for &index in &order {
                let more = promised(&jobs[index]).saturating_sub(counts[index]);
                let more = more.min(left);
                counts[index] += more;
                left -= more;
            }
        }
        let tasks = || {
            jobs.iter()
                .enumerate()
                .filter_map(|(i, job)| Some((i, job, job.demand().task?)))
        };
        while left > 0 {
            let grows = |&(i, job, _): &(usize, &Job, Task)| counts[i] < self.most(job.demand());
            let gains = tasks()
                .filter(grows)
                .map(|(i, _, task)| (i, self.gain(&task, counts[i])));
            // The first of equal ones.
            let best = gains.rev().max_by(|a, b| a.1.total_cmp(&b.1));
            let Some((index, _)) = best else { break };
            counts[index] += 1;
            left -= 1;
        }
        let is_rest = |&index: &usize| jobs[index].demand().task.is_none();
        let rest: Vec<usize> = order.into_iter().filter(is_rest).collect();
        let priority = |index: usize| jobs[index].demand().priority;
        for class in rest.chunk_by(|&a, &b| priority(a) == priority(b)) {
            left = Self::divide_rest(cores, class, &mut counts, left);
        }
        counts
    }

    /// These jobs get what is left, and have their least cores. Returns what they leave.
    fn divide_rest(cores: &Cores, class: &[usize], counts: &mut [usize], left: usize) -> usize {
        let jobs = cores.jobs();
        let claim = |&index: &usize| Claim {
            weight: jobs[index].demand().weight,
            least: counts[index],
            most: jobs[index].demand().max_cores.max(counts[index]),
        };
        let claims: Vec<Claim> = class.iter().map(claim).collect();
        let mut left = left + claims.iter().map(|claim| claim.least).sum::<usize>();
        for (&index, count) in class.iter().zip(divide(left, &claims)) {
            counts[index] = count;
            left -= count;
        }
        left
    }
}

impl CorePolicy for Elastic {
    fn admit(&mut self, id: JobId, demand: &Demand, cores: &Cores) -> Result<(), Refusal> {
        let needed = match (self.least(demand), demand.task) {
            (Some(needed), _) => needed,
            (None, task) => {
                let (span, period) = task.map_or((0, 0), |task| (task.span, task.longest));
                let span = span.saturating_add(self.allowance);
                return Err(Refusal::Span { span, period });
            }
        };
        let others = cores.jobs().iter().filter(|job| job.id() != id);
        let taken = others.filter_map(|job| self.least(job.demand())).sum();
        let left = cores.available().count().saturating_sub(taken);
        if needed > left.min(demand.max_cores) {
            let left = left.min(demand.max_cores);
            return Err(Refusal::Cores { needed, left });
        }
        Ok(())
    }

    /// The shortest period that the cores of this task keep, between the one that it likes and its longest.
    fn period(&self, job: JobId, cores: &Cores) -> Option<u64> {
        let index = cores.jobs().iter().position(|it| it.id() == job)?;
        let task = cores.jobs()[index].demand().task?;
        Some(self.kept(&task, self.counts(cores)[index]))
    }

    fn decide(
        &mut self,
        event: Event,
        cores: &Cores,
        decision: &mut Decision,
    ) -> Result<(), DecisionError> {
        if event == Event::Timer {
            return Ok(());
        }
        decision.give_counts(cores, &self.counts(cores))
    }
}

#[cfg(test)]
mod tests {
    use super::super::Request;
    use super::*;
    use proptest::prelude::*;

    fn task(task: Task) -> Demand {
        Demand {
            task: Some(task),
            ..Demand::default()
        }
    }

    /// Starts the tasks that are admitted; how many.
    fn started(cores: &mut Cores, elastic: &mut Elastic, tasks: &[Task]) -> usize {
        let mut count = 0;
        for (id, &one) in (0u64..).zip(tasks) {
            if cores.start(elastic, JobId(id), task(one)).is_ok() {
                cores.decide(elastic, Event::Start(JobId(id))).unwrap();
                count += 1;
            }
        }
        count
    }

    #[test]
    fn the_more_elastic_of_two_equal_tasks_gives_way_first() {
        let (mut cores, mut elastic) = (Cores::new(9), Elastic::default());
        let one = Task {
            longest: 40_000_000,
            ..Task::new(60_000_000, 1_000_000, 10_000_000)
        };
        let tasks = [
            one,
            Task {
                elasticity: 4,
                ..one
            },
        ];
        assert_eq!(started(&mut cores, &mut elastic, &tasks), 2);
        let [stiff, soft] = [0, 1].map(|id| cores.job(JobId(id)).unwrap().cores());
        assert!(stiff > soft && stiff + soft == 9, "{stiff} and {soft}");
        let period = |id| elastic.period(JobId(id), &cores);
        assert!(period(0) < period(1));
    }

    #[test]
    fn a_task_that_becomes_more_urgent_takes_cores_from_the_elastic_ones_and_gives_them_back() {
        let (mut cores, mut elastic) = (Cores::new(8), Elastic::default());
        let calm = Task::new(30_000_000, 500_000, 30_000_000);
        let soft = Task {
            longest: 60_000_000,
            ..Task::new(70_000_000, 500_000, 10_000_000)
        };
        assert_eq!(started(&mut cores, &mut elastic, &[calm, soft]), 2);
        let count = |cores: &Cores, id| cores.job(JobId(id)).unwrap().cores();
        assert_eq!((count(&cores, 0), count(&cores, 1)), (1, 7));
        for (period, expected) in [(10_000_000, (4, 4)), (30_000_000, (1, 7))] {
            let changed = task(Task {
                period,
                longest: period,
                ..calm
            });
            cores.change(&mut elastic, JobId(0), changed).unwrap();
            let event = Event::Request(Request::Demand(JobId(0)));
            cores.decide(&mut elastic, event).unwrap();
            assert_eq!((count(&cores, 0), count(&cores, 1)), expected);
        }
        let beyond = task(Task::new(30_000_000, 500_000, 4_000_000));
        assert!(matches!(
            cores.change(&mut elastic, JobId(0), beyond),
            Err(Refusal::Cores { needed: 9, left: 6 })
        ));
        assert_eq!(
            cores.job(JobId(0)).unwrap().demand().task.unwrap().period,
            30_000_000
        );
    }

    #[test]
    fn a_task_whose_span_is_too_long_for_its_period_is_refused_with_the_allowance_named() {
        let (mut cores, mut elastic) = (Cores::new(8), Elastic::with_allowance(300_000));
        let tight = Task::new(20_000_000, 800_000, 1_000_000);
        let refused = cores.start(&mut elastic, JobId(0), task(tight));
        assert_eq!(
            refused,
            Err(Refusal::Span {
                span: 1_100_000,
                period: 1_000_000
            })
        );
    }

    #[test]
    fn of_what_the_tasks_leave_a_more_urgent_job_has_its_part_first() {
        let mut elastic = Elastic::default();
        let mut cores = Cores::new(2);
        for id in 0..2 {
            let calm = Demand {
                priority: 9,
                ..Demand::default()
            };
            cores.start(&mut elastic, JobId(id), calm).unwrap();
            let event = Event::Start(JobId(id));
            cores.decide(&mut elastic, event).unwrap();
        }
        let urgent = Demand {
            max_cores: 1,
            ..Demand::default()
        };
        cores.start(&mut elastic, JobId(2), urgent).unwrap();
        cores.decide(&mut elastic, Event::Start(JobId(2))).unwrap();
        assert_eq!(elastic.counts(&cores), [1, 0, 1]);
    }

    #[test]
    fn other_jobs_have_what_the_tasks_leave() {
        let (mut cores, mut elastic) = (Cores::new(8), Elastic::default());
        cores
            .start(&mut elastic, JobId(1), Demand::default())
            .unwrap();
        cores.decide(&mut elastic, Event::Start(JobId(1))).unwrap();
        assert_eq!(cores.jobs()[0].cores(), 8);
        cores
            .start(
                &mut elastic,
                JobId(2),
                task(Task::new(30_000_000, 1_000_000, 11_000_000)),
            )
            .unwrap();
        cores.decide(&mut elastic, Event::Start(JobId(2))).unwrap();
        assert_eq!((cores.jobs()[0].cores(), cores.jobs()[1].cores()), (5, 3));
    }

    proptest! {
        // Of equal tasks the first in the table has the odd core, and tasks enter again in any order.
        #[test]
        fn the_period_of_a_task_that_is_last_of_all_is_kept_beside_any_of_the_others_in_any_order(
            tasks in proptest::collection::vec(
                (10u64..60, 5u64..20, 2u64..5, 1u32..3).prop_map(|(work, period, longer, elasticity)| Task {
                    longest: period * longer * 1_000_000,
                    elasticity,
                    ..Task::new(work * 1_000_000, 1_000_000, period * 1_000_000)
                }), 1..4),
            twins in any::<bool>(),
            count in 2usize..20,
            order in Just((0..6).collect::<Vec<u64>>()).prop_shuffle(),
            there in prop_oneof![Just(u16::MAX), any::<u16>()],
        ) {
            let tasks: Vec<_> = if twins { tasks.repeat(2) } else { tasks };
            let (mut cores, mut elastic) = (Cores::new(count), Elastic::default());
            started(&mut cores, &mut elastic, &tasks);
            let admitted: Vec<(JobId, Demand)> =
                cores.jobs().iter().map(|job| (job.id(), *job.demand())).collect();
            let table = |jobs: &mut dyn Iterator<Item = &(JobId, Demand)>| {
                let mut all = Cores::new(count);
                jobs.for_each(|&(id, demand)| all.enter(id, demand).unwrap());
                all
            };
            for own in &admitted {
                let others = || admitted.iter().filter(move |it| it.0 != own.0);
                let mut renamed = table(&mut others());
                renamed.enter(JobId(99), own.1).unwrap();
                let kept = elastic.period(JobId(99), &renamed);
                let mut shuffled: Vec<_> = admitted.iter().enumerate()
                    .filter(|(i, it)| it.0 == own.0 || there >> i & 1 == 1)
                    .collect();
                shuffled.sort_by_key(|(i, _)| order[i % order.len()]);
                // Names grow in the order of entry.
                let mut some = Cores::new(count);
                for (name, (_, it)) in (0..).zip(&shuffled) {
                    some.enter(JobId(name), it.1).unwrap();
                }
                let name = shuffled.iter().position(|(_, it)| it.0 == own.0).unwrap();
                let now = elastic.period(JobId(name as u64), &some);
                prop_assert!(now <= kept, "{now:?} now, {kept:?} kept");
            }
        }

        #[test]
        fn every_admitted_task_has_the_cores_for_its_period_and_a_period_between_its_bounds(
            tasks in proptest::collection::vec(
                (1u64..100, 1u64..100, 1u64..100, 1u64..4, 1u32..5).prop_map(|(work, span, period, longer, elasticity)| Task {
                    longest: period * longer * 1_000_000,
                    elasticity,
                    ..Task::new(work.max(span) * 1_000_000, span * 1_000_000, period * 1_000_000)
                }), 1..12),
            count in 1usize..40,
            allowance in 0u64..500_000,
        ) {
            let (mut cores, mut elastic) = (Cores::new(count), Elastic::with_allowance(allowance));
            started(&mut cores, &mut elastic, &tasks);
            for job in cores.jobs() {
                let task = job.demand().task.unwrap();
                let period = elastic.period(job.id(), &cores).unwrap();
                prop_assert!((task.period..=task.longest).contains(&period));
                let m = job.cores() as u64;
                prop_assert!(task.work.min((task.work - task.span).div_ceil(m) + task.span) + allowance <= period
                    || (m == 1 && task.work + allowance <= period), "{m} cores for {task:?} at {period}");
            }
        }
    }
}
