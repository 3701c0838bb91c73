//! How many workers a division gives each job, for what a test says was seen: no worker runs.

use super::*;
use std::{
    collections::VecDeque,
    ops::{Deref, DerefMut},
    panic::resume_unwind,
    sync::mpsc::{Sender, channel},
};
use urgency_policy::cores::{CorePolicy, Decision, Drep, Feedback, StaticEqual};

const MS: u64 = 1_000_000;

/// What was seen of a job, and what it asks for and has done.
#[derive(Clone, Copy)]
struct Busy {
    seen: Seen,
    demand: Demand,
    done: Done,
}

impl Asked for [Busy] {
    fn demand(&self, place: usize) -> Demand {
        self[place].demand
    }

    fn done(&self, place: usize) -> Done {
        self[place].done
    }
}

impl Deref for Busy {
    type Target = Seen;

    fn deref(&self) -> &Seen {
        &self.seen
    }
}

impl DerefMut for Busy {
    fn deref_mut(&mut self) -> &mut Seen {
        &mut self.seen
    }
}

fn busy(life: u64, weight: u32, workers: usize) -> Busy {
    let demand = Demand {
        weight,
        ..Demand::default()
    };
    let seen = Seen {
        life,
        changes: 0,
        serving: workers,
        workers,
        wants: 9,
    };
    let done = Done::default();
    Busy { seen, demand, done }
}

fn decide(division: &mut Division, now: u64, available: usize, jobs: &mut [Busy]) -> Vec<Move> {
    let mut seen: Vec<_> = jobs.iter().map(|job| job.seen).collect();
    // As if each demand had changed since the look before, perhaps to the same.
    seen.iter_mut().for_each(|seen| seen.changes = now);
    let moves = division.decide(now, available, &mut seen, jobs);
    for (job, seen) in jobs.iter_mut().zip(seen) {
        job.seen = seen;
    }
    moves
}

fn shares(workers: usize) -> Division {
    Division::new(workers, Box::new(Shares::default()))
}

fn workers(seen: &[Busy]) -> Vec<usize> {
    seen.iter().map(|seen| seen.workers).collect()
}

#[test]
fn a_job_has_rested_since_its_last_worker_left_and_not_since_the_look_that_finds_it_with_work_again()
 {
    let given = |has_rested: bool| {
        let mut division = shares(2);
        let mut jobs = [busy(1, 1, 1), busy(2, 1, 1)];
        decide(&mut division, MS, 2, &mut jobs);
        if has_rested {
            division.have_rested(vec![(2 * MS, 1)]);
        }
        (jobs[0].serving, jobs[0].workers, jobs[0].wants) = (0, 0, 1);
        (jobs[1].serving, jobs[1].workers) = (2, 2);
        decide(&mut division, 9 * MS, 2, &mut jobs);
        division.entitled(0)
    };
    assert_eq!([given(false), given(true)], [1, 2]);
}

#[test]
fn weights_of_three_to_one_are_three_workers_and_one() {
    let mut seen = [busy(1, 3, 4), busy(2, 1, 0)];
    let moves = decide(&mut shares(4), MS, 4, &mut seen);
    assert_eq!(moves, [Move { from: 0, to: 1 }]);
    assert_eq!(workers(&seen), [3, 1]);
}

#[test]
fn a_job_gets_no_more_workers_than_it_can_use_and_they_come_back_when_it_can() {
    let (mut division, mut seen) = (shares(8), [busy(1, 1, 8), busy(2, 1, 0)]);
    seen[1].wants = 1;
    decide(&mut division, MS, 8, &mut seen);
    assert_eq!(
        workers(&seen),
        [7, 1],
        "four are its part, and it wants one"
    );
    seen[1].wants = 9;
    decide(&mut division, 2 * MS, 8, &mut seen);
    assert_eq!(workers(&seen), [4, 4]);
}

/// Three jobs with work for one worker each have it for a third of the looks.
fn assert_three_take_turns(mut division: Division) {
    let mut seen = [busy(1, 1, 1), busy(2, 1, 0), busy(3, 1, 0)];
    let mut had = [0, 0, 0];
    for look in 1..3_000 {
        decide(&mut division, look * MS, 1, &mut seen);
        for (seen, had) in seen.iter_mut().zip(&mut had) {
            *had += seen.workers;
            seen.done.ran += seen.workers as u64 * MS;
            seen.wants = 9;
        }
    }
    assert!(had.iter().all(|had| (900..1100).contains(had)), "{had:?}");
}

#[test]
fn what_does_not_divide_goes_round() {
    assert_three_take_turns(shares(1));
}

#[test]
fn a_worker_on_its_way_is_not_wasted_by_the_job_that_waits_for_it() {
    let mut division = shares(2);
    let mut seen = [busy(1, 3, 2), busy(2, 1, 0)];
    // The moves of a look are carried out three looks later.
    let mut on_their_way = VecDeque::from([[2, 0]; 3]);
    for look in 1..100 {
        decide(&mut division, look * MS, 2, &mut seen);
        on_their_way.push_back([seen[0].workers, seen[1].workers]);
        let serving = on_their_way.pop_front().unwrap();
        for (place, (seen, serving)) in seen.iter_mut().zip(serving).enumerate() {
            seen.done.ran += serving as u64 * MS;
            seen.serving = serving;
            seen.wants = 9;
            let usage = division
                .cores
                .job(division.known[place].id)
                .unwrap()
                .usage();
            // The look that sees the worker come is a millisecond late here.
            assert!(usage.waste <= MS, "look {look}, job {place}: {usage:?}");
        }
    }
}

#[test]
fn a_demand_that_changes_counts_at_the_next_look() {
    let (mut division, mut seen) = (shares(4), [busy(1, 1, 4), busy(2, 1, 0)]);
    decide(&mut division, MS, 4, &mut seen);
    assert_eq!(workers(&seen), [2, 2]);
    seen[1].demand.weight = 3;
    decide(&mut division, 2 * MS, 4, &mut seen);
    assert_eq!(workers(&seen), [1, 3]);
    seen[1].demand.max_cores = 2;
    decide(&mut division, 3 * MS, 4, &mut seen);
    assert_eq!(workers(&seen), [2, 2]);
}

#[test]
fn workers_in_reserve_are_not_divided() {
    let mut seen = [busy(1, 1, 2), busy(2, 1, 0)];
    decide(&mut shares(8), MS, 2, &mut seen);
    assert_eq!(workers(&seen), [1, 1]);
}

#[test]
fn every_job_that_is_gone_is_out_of_the_table() {
    let mut division = Division::new(4, Box::new(Drep::new(1)));
    decide(&mut division, MS, 4, &mut [busy(1, 1, 4), busy(2, 1, 0)]);
    decide(&mut division, 2 * MS, 4, &mut [busy(3, 1, 4)]);
    decide(&mut division, 3 * MS, 4, &mut []);
    assert!(division.cores.jobs().is_empty() && division.known.is_empty());
    assert_eq!(division.report.decisions, 6, "three starts, three exits");
}

#[test]
fn a_demand_is_refused_that_the_policy_or_the_workers_cannot_keep() {
    let least = |min_cores| Demand {
        min_cores,
        ..Demand::default()
    };
    let refused = shares(4).admit(least(2), &[least(1), least(2)]);
    assert_eq!(refused, Err(Refusal::MinCores { asked: 2, left: 1 }));
    let mut halves = Division::new(4, Box::new(StaticEqual::new(2).unwrap()));
    let refused = halves.admit(least(3), &[]);
    assert_eq!(refused, Err(Refusal::Cores { needed: 3, left: 2 }));
    assert_eq!(halves.admit(least(2), &[least(2)]), Ok(()));
}

#[test]
fn a_job_that_starts_while_too_few_workers_are_there_has_its_least_when_they_are_back() {
    let least = |life, workers| {
        let mut seen = busy(life, 1, workers);
        seen.demand.min_cores = 2;
        seen
    };
    let (mut division, mut seen) = (shares(4), [least(1, 4), least(2, 0)]);
    decide(&mut division, MS, 1, &mut seen[..1]);
    decide(&mut division, 2 * MS, 1, &mut seen);
    seen[1].wants = 9;
    decide(&mut division, 3 * MS, 4, &mut seen);
    assert_eq!(workers(&seen), [2, 2]);
}

#[test]
fn while_too_few_workers_are_there_a_late_urgent_job_has_its_least_before_an_older_one() {
    let least = |life, priority, workers| {
        let mut seen = busy(life, 1, workers);
        (seen.demand.min_cores, seen.demand.priority) = (1, priority);
        seen
    };
    let (mut division, mut seen) = (shares(2), [least(1, 1, 1), least(2, 0, 0)]);
    decide(&mut division, MS, 1, &mut seen[..1]);
    decide(&mut division, 2 * MS, 1, &mut seen);
    assert_eq!(workers(&seen), [0, 1]);
}

/// A job in a test: it works for so many looks, and then has no work at one.
struct Pausing {
    seen: Busy,
    work: f64,
    left: f64,
}

impl Pausing {
    fn new(life: u64, work: f64) -> Self {
        let mut seen = busy(life, 1, 0);
        seen.wants = 1;
        let left = work;
        Pausing { seen, work, left }
    }
}

/// Four jobs share a worker. One has pieces that take 20 looks, and each goes on beside the worker. All pause.
#[test]
fn what_a_job_ran_beside_the_workers_is_of_its_share_though_all_jobs_pause() {
    let mut division = shares(1);
    let mut jobs = [20.0, 5.0, 5.0, 5.0];
    let mut jobs: Vec<_> = (0..)
        .zip(&mut jobs)
        .map(|(l, w)| Pausing::new(l, *w))
        .collect();
    let mut had = 0.0;
    for look in 1..=8_000 {
        // A job without work at this look comes back at the next one.
        let (working, pausing): (Vec<_>, Vec<_>) = jobs.iter_mut().partition(|job| job.left > 0.0);
        for job in pausing {
            (job.left, job.seen.wants, job.seen.workers) = (job.work, 1, 0);
        }
        let mut seen: Vec<_> = working.iter().map(|job| job.seen).collect();
        decide(&mut division, look * MS, 1, &mut seen);
        // A worker that no job has goes where the policy says.
        if seen.iter().all(|seen| seen.workers == 0) {
            let gets = |place: &usize| division.entitled(*place) > 0 && seen[*place].wants > 0;
            let place = (0..seen.len()).find(gets);
            let place = place.or((0..seen.len()).find(|&place| seen[place].wants > 0));
            if let Some(place) = place {
                (seen[place].workers, seen[place].wants) = (1, 0);
            }
        }
        let is_beside = |seen: &Busy, job: &Pausing| {
            job.work == 20.0 && seen.workers == 0 && job.left < job.work
        };
        let threads = seen
            .iter()
            .zip(&working)
            .filter(|(seen, job)| seen.workers == 1 || is_beside(seen, job));
        let speed = 1.0 / threads.count() as f64;
        for (seen, job) in seen.iter_mut().zip(working) {
            seen.serving = seen.workers;
            if is_beside(seen, job) {
                seen.done.beside += (speed * MS as f64) as u64;
            } else if seen.workers == 1 {
                seen.done.ran += MS;
            } else {
                seen.wants = 1;
                job.seen = *seen;
                continue;
            }
            seen.wants = 0;
            job.left -= speed;
            had += if job.work == 20.0 { speed } else { 0.0 };
            job.seen = *seen;
        }
    }
    let part = had / 8_000.0;
    assert!((0.2..0.3).contains(&part), "{part} instead of a quarter");
}

/// A service with one request at a time.
#[test]
fn a_job_that_paused_has_as_many_workers_as_it_had_learnt_to_desire() {
    let mut division = Division::new(8, Box::new(Feedback::default()));
    let mut one = busy(1, 1, 0);
    one.wants = 1;
    let mut first_looks = Vec::new();
    for burst in 0..20 {
        for look in 0..4 {
            decide(&mut division, (burst * 5 + look) * MS, 8, &mut [one]);
            if look == 0 {
                first_looks.push(division.entitled(0));
            }
            (one.serving, one.workers, one.wants) = (1, 1, 0);
            one.done.ran += MS;
        }
        decide(&mut division, (burst * 5 + 4) * MS, 8, &mut []);
        (one.serving, one.workers, one.wants) = (0, 0, 1);
    }
    assert_eq!(first_looks[0], 8);
    assert!(
        first_looks[10..].iter().all(|&had| had <= 2),
        "{first_looks:?}"
    );
}

#[test]
fn of_jobs_that_have_ended_nothing_is_kept() {
    let mut division = shares(4);
    for life in 0..100 {
        decide(
            &mut division,
            life * MS,
            4,
            &mut [busy(life, 1, 4), busy(1_000, 1, 0)],
        );
        // The only job without work never had any.
        division.forget_ended([5_000].into_iter());
    }
    assert!(division.resting.len() <= 1 && division.cores.resting().len() <= 1);
}

/// Gives away a worker that there is not.
struct Wrong;

impl CorePolicy for Wrong {
    fn decide(&mut self, _: Event, _: &Cores, to: &mut Decision) -> Result<(), DecisionError> {
        to.give(99, None)
    }
}

struct Panics;

impl CorePolicy for Panics {
    fn decide(&mut self, _: Event, _: &Cores, _: &mut Decision) -> Result<(), DecisionError> {
        resume_unwind(Box::new("on purpose"))
    }
}

#[test]
fn shares_answer_instead_of_an_answer_that_breaks_a_rule_and_it_is_reported() {
    let mut division = Division::new(4, Box::new(Wrong));
    let mut seen = [busy(1, 3, 4), busy(2, 1, 0)];
    decide(&mut division, MS, 4, &mut seen);
    assert_eq!(workers(&seen), [3, 1]);
    let unknown = DecisionError::UnknownCore { core: 99, cores: 4 };
    assert_eq!(division.report.rejected, Some(unknown));
    assert_eq!(division.report.rejections, 2, "two starts");
}

#[test]
fn under_a_policy_that_is_always_wrong_jobs_take_turns_at_what_does_not_divide() {
    assert_three_take_turns(Division::new(1, Box::new(Wrong)));
}

/// Wrong at its first answer only; then all workers go to the newest job.
#[derive(Default)]
struct WrongOnce(bool);

impl CorePolicy for WrongOnce {
    fn decide(&mut self, _: Event, cores: &Cores, to: &mut Decision) -> Result<(), DecisionError> {
        if !std::mem::replace(&mut self.0, true) {
            return to.give(99, None);
        }
        let newest = cores.jobs().last().map(|job| job.id());
        cores.available().try_for_each(|core| to.give(core, newest))
    }
}

#[test]
fn a_policy_that_was_wrong_once_is_asked_again() {
    let mut division = Division::new(4, Box::new(WrongOnce::default()));
    let mut seen = [busy(1, 1, 4), busy(2, 1, 0)];
    decide(&mut division, MS, 4, &mut seen);
    assert_eq!(
        (workers(&seen), division.report.rejections),
        (vec![0, 4], 1)
    );
}

#[test]
fn shares_decide_after_a_policy_has_panicked() {
    let mut division = Division::new(4, Box::new(Panics));
    let mut seen = [busy(1, 1, 4), busy(2, 1, 0)];
    decide(&mut division, MS, 4, &mut seen);
    assert_eq!(workers(&seen), [2, 2]);
    assert!(division.report.panicked);
}

/// Notes at which times it was asked at the end of an interval. Each answer sets the end anew, once it is over.
struct Clocked(Sender<u64>, u64);

impl CorePolicy for Clocked {
    fn decide(
        &mut self,
        event: Event,
        cores: &Cores,
        to: &mut Decision,
    ) -> Result<(), DecisionError> {
        if event == Event::Timer {
            self.0.send(cores.now()).unwrap();
        }
        if self.1 <= cores.now() {
            self.1 = cores.now() + 2 * MS;
        }
        to.set_timer(self.1)
    }
}

#[test]
fn jobs_that_start_at_each_look_do_not_put_off_the_end_of_an_interval() {
    let (ended, ends) = channel();
    let mut division = Division::new(1, Box::new(Clocked(ended, 0)));
    for look in 1..10 {
        decide(&mut division, look * MS, 1, &mut [busy(look, 1, 1)]);
    }
    assert_eq!(
        ends.try_iter().collect::<Vec<_>>(),
        [3, 5, 7, 9].map(|look| look * MS)
    );
}
