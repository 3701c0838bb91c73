//! What every built-in policy keeps, whatever happens; and what a decision that breaks a rule is told.

use super::*;
use crate::dice::Dice;
use alloc::{string::ToString, vec::Vec};
use proptest::prelude::*;

/// What happens at random.
#[derive(Clone, Copy, Debug)]
enum Step {
    Start {
        weight: u32,
        priority: u8,
        min: usize,
        more: usize,
    },
    Exit(usize),
    Change(usize, usize),
    Timer {
        busy: u64,
    },
    Core(usize, bool),
}

fn any_step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (1u32..9, 0u8..3, 0usize..3, 0usize..12)
            .prop_map(|(weight, priority, min, more)| Step::Start { weight, priority, min, more }),
        3 => any::<usize>().prop_map(Step::Exit),
        1 => (any::<usize>(), 1usize..12).prop_map(|(job, max)| Step::Change(job, max)),
        3 => (0u64..=100).prop_map(|busy| Step::Timer { busy }),
        1 => (any::<usize>(), any::<bool>()).prop_map(|(core, on)| Step::Core(core, on)),
    ]
}

/// Does the steps, and checks after each what every policy promises.
fn keeps_its_promises(name: &str, count: usize, steps: &[Step]) {
    let mut policy = named(name, 7, 3).unwrap();
    let mut cores = Cores::new(count);
    let (mut next, mut now, mut gone) = (0, 0, false);
    for step in steps {
        now += 1_000_000;
        cores.set_now(now);
        let pick = |cores: &Cores, lot: usize| {
            let jobs = cores.jobs();
            (!jobs.is_empty()).then(|| jobs[lot % jobs.len()].id())
        };
        let event = match *step {
            Step::Start {
                weight,
                priority,
                min,
                more,
            } => {
                let id = JobId(next);
                next += 1;
                let max_cores = (min + more).max(1);
                let task = (name.ends_with("elastic") || name == "job-boundary").then(|| Task {
                    longest: 40_000_000,
                    ..Task::new(10_000_000 * (more as u64 + 1), 1_000_000, 20_000_000)
                });
                let task = task.filter(|_| next % 3 > 0);
                // Some are alone, some in one of two groups.
                let group = Group::new(next % 3).weight(weight);
                let demand = Demand {
                    weight,
                    group: (next % 3 > 0).then_some(group),
                    priority,
                    min_cores: min,
                    max_cores,
                    deadline: None,
                    task,
                };
                if cores.clone().start(&mut policy, id, demand).is_err() {
                    continue;
                }
                let first = cores.resting().first().copied();
                let entered = match first.filter(|_| weight % 2 == 0) {
                    Some(first) => cores.enter_again(id, first, demand),
                    None => cores.enter(id, demand),
                };
                entered.map(|()| Event::Start(id)).unwrap()
            }
            Step::Exit(lot) => {
                let Some(id) = pick(&cores, lot) else {
                    continue;
                };
                let leaves = if lot % 2 == 0 {
                    Cores::rest
                } else {
                    Cores::exit
                };
                leaves(&mut cores, id).unwrap();
                Event::Exit(id)
            }
            Step::Change(lot, max) => {
                let Some(id) = pick(&cores, lot) else {
                    continue;
                };
                let old = *cores.job(id).unwrap().demand();
                let demand = Demand {
                    max_cores: max,
                    min_cores: old.min_cores.min(max),
                    ..old
                };
                if cores.change(&mut policy, id, demand).is_err() {
                    continue;
                }
                Event::Request(Request::Demand(id))
            }
            Step::Timer { busy } => {
                for job in cores.jobs().to_vec() {
                    let all = job.cores() as u64 * 1_000_000;
                    let work = all * busy / 100;
                    let usage = Usage {
                        interval: 1_000_000,
                        work,
                        waste: all - work,
                        ..Usage::default()
                    };
                    cores.measure(job.id(), usage).unwrap();
                }
                Event::Timer
            }
            Step::Core(core, on) => {
                gone |= !on;
                cores.set_available(core % count, on).unwrap();
                Event::Request(Request::Cores)
            }
        };
        let decision = cores
            .decide(&mut policy, event)
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        let timer = decision.timer();
        assert!(timer.is_none_or(|at| at > now));
        if !policy.is_partitioned() {
            assert!((0..count).all(|core| cores.owner(core).is_none()));
            continue;
        }
        let available: Vec<usize> = cores.available().collect();
        for job in cores.jobs() {
            let is_its = |&core: &usize| cores.owner(core) == Some(job.id());
            let owned: Vec<usize> = (0..count).filter(is_its).collect();
            assert_eq!(owned.len(), job.cores(), "{name}: the table counts");
            assert!(owned.iter().all(|core| available.contains(core)));
            assert!(job.cores() <= job.demand().max_cores, "{name}: {job:?}");
            let waits = name == "static" && job.cores() == 0;
            assert!(
                gone || waits || job.cores() >= job.demand().min_cores,
                "{name}: {job:?}"
            );
        }
        let is_known = |core: &usize| {
            cores
                .owner(*core)
                .is_none_or(|owner| cores.job(owner).is_some())
        };
        assert!(
            (0..count).all(|core| is_known(&core)),
            "{name}: an owner that has ended"
        );
        // Without this nothing runs any more, and nothing happens that the policy would be asked about.
        let all_wait = cores.jobs().iter().all(|job| job.cores() == 0);
        assert!(
            cores.jobs().is_empty() || available.is_empty() || !all_wait,
            "{name}: no job has a core, and {} are available",
            available.len()
        );
        if policy.is_work_conserving() {
            let free = available.iter().any(|&core| cores.owner(core).is_none());
            let hungry = cores
                .jobs()
                .iter()
                .any(|job| job.cores() < job.demand().max_cores);
            assert!(
                !(free && hungry),
                "{name}: a core is idle and a job would take it"
            );
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn one_owner_bounds_kept_and_no_core_idle_where_that_is_promised(
        count in 1usize..24,
        steps in proptest::collection::vec(any_step(), 1..60),
    ) {
        for (name, _) in NAMED {
            keeps_its_promises(name, count, &steps);
        }
    }

    #[test]
    fn the_same_events_give_the_same_decisions(
        count in 1usize..24,
        starts in proptest::collection::vec(1u32..9, 1..20),
    ) {
        for (name, _) in NAMED {
            let run = || {
                let (mut policy, mut cores) = (named(name, 3, 4).unwrap(), Cores::new(count));
                let mut moves = Vec::new();
                for (id, &weight) in (0u64..).zip(&starts) {
                    cores.start(&mut policy, JobId(id), Demand { weight, ..Demand::default() }).unwrap();
                    moves.extend_from_slice(cores.decide(&mut policy, Event::Start(JobId(id))).unwrap().moves());
                }
                moves
            };
            prop_assert_eq!(run(), run());
        }
    }
}

/// Every job that has no core gets one while others end: how many ends the longest wait takes.
#[test]
fn no_job_of_a_queue_that_moves_starves() {
    for name in ["shares", "drep", "feedback", "static", "steal-boundary"] {
        let (mut policy, mut cores, mut dice) =
            (named(name, 7, 2).unwrap(), Cores::new(4), Dice::new(2));
        let mut first_core = Vec::new();
        let (mut ends, mut now) = (0u64, 0);
        for id in 0..400u64 {
            now += 1_000_000;
            cores.set_now(now);
            cores
                .start(&mut policy, JobId(id), Demand::default())
                .unwrap();
            cores.decide(&mut policy, Event::Start(JobId(id))).unwrap();
            first_core.push((ends, None));
            let mut note = |cores: &Cores, ends| {
                for job in cores.jobs().iter().filter(|job| job.cores() > 0) {
                    first_core[job.id().0 as usize].1.get_or_insert(ends);
                }
            };
            note(&cores, ends);
            for _ in 0..5 {
                now += 4_000_000;
                cores.set_now(now);
                for (id, had) in cores
                    .jobs()
                    .iter()
                    .map(|job| (job.id(), job.cores() as u64))
                    .collect::<Vec<_>>()
                {
                    let work = had * 4_000_000;
                    cores
                        .measure(
                            id,
                            Usage {
                                interval: 4_000_000,
                                work,
                                waste: 0,
                                ..Usage::default()
                            },
                        )
                        .unwrap();
                }
                cores.decide(&mut policy, Event::Timer).unwrap();
                note(&cores, ends);
            }
            // Ten jobs are there at any time; one with a core ends.
            let running = cores.jobs().iter().filter(|job| job.cores() > 0);
            let running: Vec<JobId> = running.map(|job| job.id()).collect();
            if cores.jobs().len() > 10 {
                let ended = running[dice.below(running.len() as u64) as usize];
                cores.exit(ended).unwrap();
                ends += 1;
                cores.decide(&mut policy, Event::Exit(ended)).unwrap();
                note(&cores, ends);
            }
        }
        let waits = first_core[..380]
            .iter()
            .map(|(from, first)| first.map(|first| first - from));
        let longest = waits.map(|wait| wait.expect("it got a core")).max();
        assert!(
            longest <= Some(12),
            "{name}: a job waited for {longest:?} ends"
        );
    }
}

/// Does what it is told.
struct Told(fn(&Cores, &mut Decision) -> Result<(), DecisionError>);

impl CorePolicy for Told {
    fn decide(
        &mut self,
        _: Event,
        cores: &Cores,
        decision: &mut Decision,
    ) -> Result<(), DecisionError> {
        (self.0)(cores, decision)
    }
}

fn two_jobs() -> Cores {
    let mut cores = Cores::new(4);
    let bounded = Demand {
        min_cores: 1,
        max_cores: 2,
        ..Demand::default()
    };
    cores.start(&mut Unpartitioned, JobId(1), bounded).unwrap();
    cores
        .start(&mut Unpartitioned, JobId(2), Demand::default())
        .unwrap();
    let mut first = Told(|_, decision| decision.give(0, JobId(1)));
    cores.decide(&mut first, Event::Timer).unwrap();
    cores
}

#[test]
fn a_decision_that_breaks_a_rule_changes_nothing_and_says_which() {
    type Decide = fn(&Cores, &mut Decision) -> Result<(), DecisionError>;
    let cases: [(Decide, &str); 11] = [
        (|_, d| d.give(4, JobId(1)), "core 4; there are 4"),
        (|_, d| d.give(3, JobId(1)), "core 3, which is not available"),
        (|_, d| d.give(1, JobId(9)), "job 9, which does not run"),
        (
            |_, d| d.give(1, JobId(1)).and_then(|()| d.give(1, JobId(2))),
            "core 1 to job 1 and then to job 2",
        ),
        (
            |_, d| (0..3).try_for_each(|core| d.give(core, JobId(1))),
            "give job 1 3 core(s), and its max_cores is 2",
        ),
        (|_, d| d.give(0, None), "leave it 0, and its min_cores is 1"),
        (
            |cores, d| d.give_counts(cores, &[1]),
            "1 counts for 2 job(s)",
        ),
        (
            |cores, d| d.give_counts(cores, &[1, 3]),
            "gave away 4 cores, and 3 are available",
        ),
        (
            |_, d| d.set_cache_ways(JobId(1), 1),
            "cannot partition its cache",
        ),
        (
            |_, d| d.set_bandwidth(JobId(1), 10),
            "limited memory bandwidth",
        ),
        (|cores, d| d.set_timer(cores.now()), "it must be later"),
    ];
    for (decide, expected) in cases {
        let mut cores = two_jobs();
        cores.set_available(3, false).unwrap();
        let error = cores
            .decide(&mut Told(decide), Event::Timer)
            .unwrap_err()
            .to_string();
        assert!(error.contains(expected), "{error}, not {expected}");
        assert_eq!(
            (0..4).map(|core| cores.owner(core)).collect::<Vec<_>>(),
            [Some(JobId(1)), None, None, None]
        );
        assert_eq!(cores.job(JobId(1)).unwrap().cores(), 1);
    }
}

#[test]
fn cache_ways_and_bandwidth_are_checked_against_the_machine_and_listed() {
    let cache = CacheControl {
        ways: 11,
        least: 2,
        sparse: false,
    };
    let bandwidth = BandwidthControl {
        least: 10,
        step: 10,
    };
    let mut cores = two_jobs().with_controls(Some(cache), Some(bandwidth));
    let mut policy = Told(|_, d| {
        d.set_cache_ways(JobId(1), 0b111)?;
        d.set_bandwidth(JobId(2), 30)
    });
    let decision = cores.decide(&mut policy, Event::Timer).unwrap();
    assert_eq!(decision.cache_ways(), [(JobId(1), 0b111)]);
    assert_eq!(decision.bandwidths(), [(JobId(2), 30)]);
    for decide in [
        (|_, d| d.set_cache_ways(JobId(1), 0b101)) as fn(&Cores, &mut Decision) -> _,
        |_, d| d.set_cache_ways(JobId(1), 0),
        |_, d| d.set_cache_ways(JobId(1), 1 << 11 | 1 << 10),
        |_, d| d.set_bandwidth(JobId(1), 35),
        |_, d| d.set_bandwidth(JobId(1), 0),
        |_, d| d.set_bandwidth(JobId(1), 110),
    ] {
        assert!(cores.decide(&mut Told(decide), Event::Timer).is_err());
    }
}

#[test]
fn a_job_that_cannot_be_promised_its_least_cores_does_not_start() {
    let mut cores = two_jobs();
    let demand = Demand {
        min_cores: 4,
        ..Demand::default()
    };
    let refused = cores.start(&mut Unpartitioned, JobId(3), demand);
    assert_eq!(refused, Err(Refusal::MinCores { asked: 4, left: 3 }));
    let old = cores.start(&mut Unpartitioned, JobId(2), Demand::default());
    assert_eq!(
        old,
        Err(Refusal::OldId {
            given: JobId(2),
            last: JobId(2)
        })
    );
    assert_eq!(cores.jobs().len(), 2);
}

#[test]
fn few_cores_move_when_counts_change() {
    let mut cores = Cores::new(8);
    for id in 1..=3 {
        cores
            .start(&mut Unpartitioned, JobId(id), Demand::default())
            .unwrap();
    }
    for (decide, moves) in [
        (
            (|c, d| d.give_counts(c, &[4, 4, 0])) as fn(&Cores, &mut Decision) -> _,
            8,
        ),
        (|c, d| d.give_counts(c, &[3, 3, 2]), 2),
        (|c, d| d.give_counts(c, &[3, 3, 2]), 0),
        (|c, d| d.give_counts(c, &[1, 3, 3]), 2),
        (|c, d| d.give_counts(c, &[2, 3, 3]), 1),
    ] {
        assert_eq!(
            cores
                .decide(&mut Told(decide), Event::Timer)
                .unwrap()
                .moves()
                .len(),
            moves
        );
    }
}

/// At a start it gives each of two jobs two cores. Then it tells a decision of another table, or puts the decision of
/// before in the place of the new one.
struct Astray(Option<Decision>, Cores);

impl CorePolicy for Astray {
    fn decide(
        &mut self,
        event: Event,
        _: &Cores,
        decision: &mut Decision,
    ) -> Result<(), DecisionError> {
        match event {
            Event::Start(job) => {
                let first = 2 * (job.0 as usize - 1);
                decision.give(first, job)?;
                decision.give(first + 1, job)?;
            }
            Event::Timer => decision.fit(&self.1)?,
            _ => *decision = self.0.take().unwrap(),
        }
        self.0 = Some(decision.clone());
        Ok(())
    }
}

#[test]
fn the_table_shows_what_each_job_owns_whatever_a_policy_does_with_its_decision() {
    let limited = Demand {
        max_cores: 1,
        ..Demand::default()
    };
    // Its job has the name of one that has no such limit here.
    let mut other = Cores::new(4);
    other.start(&mut Unpartitioned, JobId(1), limited).unwrap();
    let (mut cores, mut astray) = (Cores::new(4), Astray(None, other));
    for id in [1, 2] {
        let job = JobId(id);
        cores.start(&mut astray, job, Demand::default()).unwrap();
        cores.decide(&mut astray, Event::Start(job)).unwrap();
    }
    cores.decide(&mut astray, Event::Timer).unwrap();
    assert_eq!(cores.counts(), [1, 2], "job 1 has lost a core");
    cores.exit(JobId(1)).unwrap();
    let replaced = cores.decide(&mut astray, Event::Exit(JobId(1)));
    assert_eq!(replaced.unwrap_err(), DecisionError::Replaced);
    assert_eq!(cores.counts(), [2]);
    for core in 0..4 {
        cores.set_available(core, false).unwrap();
    }
    assert_eq!(cores.counts(), [0]);
}
