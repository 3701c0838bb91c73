//! What the core set's policy wants, and which workers have to go for it.
//!
//! Decisions over what was seen of the jobs; the mechanism around them is in the module above. At each look this
//! compares the jobs that have work with the jobs of the look before, asks the [`CorePolicy`], and keeps its table.
//!
//! | seen | event |
//! |---|---|
//! | a job has work that had none | [`Event::Start`] |
//! | a job has no work and no worker any more | [`Event::Exit`] |
//! | its demand has changed, or it has more work than its workers and did not have that before | [`Request::Demand`] |
//! | workers come from the reserve, or go there | [`Request::Cores`] |
//! | the time has come that the policy set | [`Event::Timer`], after the jobs were measured |
//!
//! *Waste* is the time of workers that the policy gave a job and the job did not use. While a job wants more workers
//! than serve it, the workers that it has yet to get are no waste of the job: a move takes a millisecond or two of an
//! interval of four. (When they were, a job that the turns had just come to seemed to need fewer workers, and a weight
//! of nine had an equal part.)
//!
//! To the policy a worker is a core. Workers are alike, so of its answer only the *number* of each job counts: a job
//! that could use more workers, and has fewer than the policy gave it, gets one of a job that has more than that. What
//! a job does not use others keep until it wants it. A start has a new [`JobId`]; a job that comes back is owed nothing
//! for the time before.
//!
//! An answer that breaks a rule changes nothing, and [`Shares`] replaces a policy that panics: [`Report`] says so.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    thread,
};
use urgency_policy::cores::{
    BoxedPolicy, CorePolicy, Cores, DecisionError, Demand, Event, JobId, Refusal, Request, Shares,
    Unpartitioned, Usage,
};

/// What was seen of a job that has work.
#[derive(Debug, Clone, Copy)]
pub(super) struct Seen {
    /// Tells it apart, for as long as it lives.
    pub(super) job: usize,
    pub(super) demand: Demand,
    /// How many workers serve it.
    pub(super) serving: usize,
    /// How many workers it will have when all moves are done.
    pub(super) workers: usize,
    /// How many more it could use at once.
    pub(super) wants: usize,
    /// For how long its code has run so far, in nanoseconds of workers' time.
    pub(super) ran: u64,
}

/// A worker of the one goes to the other; both are places in what was seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Move {
    pub(super) from: usize,
    pub(super) to: usize,
}

/// How the policy did.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Report {
    /// How often it was asked.
    pub(crate) decisions: u64,
    /// The last of its answers that broke a rule.
    pub(crate) rejected: Option<DecisionError>,
    /// It panicked, and [`Shares`] decides.
    pub(crate) panicked: bool,
}

/// A job of the table.
#[derive(Debug)]
struct Known {
    job: usize,
    id: JobId,
    wanted: bool,
    /// How many of the workers that the policy gave it had come, if it waits for more.
    usable: usize,
    /// Since when it is measured.
    since: u64,
    /// Its running time then.
    ran: u64,
    /// How much of the workers' time the policy gave it since, and it could use, in nanoseconds.
    given: u64,
}

/// See the module's text.
pub(super) struct Division {
    policy: BoxedPolicy,
    cores: Cores,
    /// In the order of what was seen last.
    known: Vec<Known>,
    last: JobId,
    looked: u64,
    timer: Option<u64>,
    pub(super) report: Report,
}

debug_struct!(Division, |it| cores: it.cores, report: it.report);

impl Division {
    pub(super) fn new(workers: usize, policy: BoxedPolicy) -> Self {
        Division {
            policy,
            cores: Cores::new(workers),
            known: Vec::new(),
            last: JobId(0),
            looked: 0,
            timer: None,
            report: Report::default(),
        }
    }

    /// Whether the policy leaves no worker without a job that could have it.
    pub(super) fn is_work_conserving(&self) -> bool {
        self.policy.is_work_conserving()
    }

    /// Whether a job may have this demand beside these others, if all have work at once. A panic of the policy is
    /// returned.
    pub(super) fn admit(
        &mut self,
        demand: Demand,
        others: &[Demand],
    ) -> thread::Result<Result<(), Refusal>> {
        let mut all = Cores::new(self.cores.count());
        for (id, &other) in (0..).zip(others) {
            // What was admitted stays, whatever the policy says now.
            let _ = all.start(&mut Unpartitioned, JobId(id), other);
        }
        let id = JobId(others.len() as u64);
        let policy = &mut self.policy;
        catch_unwind(AssertUnwindSafe(|| all.start(policy, id, demand)))
    }

    /// Decides at `now`, in nanoseconds, about so many workers that are not in reserve. All jobs that have work or
    /// workers are in `seen`.
    pub(super) fn decide(&mut self, now: u64, available: usize, seen: &mut [Seen]) -> Vec<Move> {
        self.account(now);
        self.forget_ended(seen);
        self.learn(seen);
        self.set_available(available);
        if self.timer.is_some_and(|at| at <= now) {
            self.timer = None;
            self.measure(seen);
            self.ask(Event::Timer);
        }
        for (known, seen) in self.known.iter_mut().zip(&*seen) {
            let waits = seen.wants > 0 || seen.workers > seen.serving;
            known.usable = if waits { seen.serving } else { usize::MAX };
        }
        let mut moves = Vec::new();
        while let Some(next) = self.next(seen) {
            seen[next.from].workers -= 1;
            seen[next.to].workers += 1;
            seen[next.to].wants -= 1;
            moves.push(next);
        }
        moves
    }

    /// How many workers the policy gave the job at this place of what was seen.
    pub(super) fn entitled(&self, place: usize) -> usize {
        let job = self.cores.job(self.known[place].id);
        job.map_or(0, |job| job.cores())
    }

    fn next(&self, seen: &[Seen]) -> Option<Move> {
        let below = |&place: &usize| self.entitled(place).saturating_sub(seen[place].workers);
        let above = |&place: &usize| seen[place].workers.saturating_sub(self.entitled(place));
        let wanting = (0..seen.len()).filter(|&place| seen[place].wants > 0);
        let to = wanting.max_by_key(below).filter(|to| below(to) > 0)?;
        let from = (0..seen.len()).max_by_key(above);
        let from = from.filter(|from| above(from) > 0)?;
        Some(Move { from, to })
    }

    /// Adds the time since the last look.
    fn account(&mut self, now: u64) {
        let passed = now.saturating_sub(self.looked);
        self.looked = now;
        self.cores.set_now(now);
        for known in &mut self.known {
            let given = self.cores.job(known.id).map_or(0, |job| job.cores());
            known.given += passed * given.min(known.usable) as u64;
        }
    }

    fn forget_ended(&mut self, seen: &[Seen]) {
        let goes_on = |known: &Known| seen.iter().any(|seen| seen.job == known.job);
        let all = std::mem::take(&mut self.known);
        let (on, ended): (Vec<_>, Vec<_>) = all.into_iter().partition(goes_on);
        self.known = on;
        for ended in ended {
            // A job that the policy did not let start is in no table.
            if self.cores.exit(ended.id).is_ok() {
                self.ask(Event::Exit(ended.id));
            }
        }
    }

    /// Jobs that start, and demands that change. Afterwards `known` is in the order of `seen`.
    fn learn(&mut self, seen: &[Seen]) {
        let mut before = std::mem::take(&mut self.known);
        for seen in seen {
            let place = before.iter().position(|known| known.job == seen.job);
            let known = match place {
                Some(place) => before.swap_remove(place),
                None => self.start(seen),
            };
            self.known.push(known);
            let place = self.known.len() - 1;
            let wants = seen.wants > 0;
            let more = wants && !std::mem::replace(&mut self.known[place].wanted, wants);
            if self.change(place, seen) || more {
                self.ask(Event::Request(Request::Demand(self.known[place].id)));
            }
        }
    }

    fn start(&mut self, seen: &Seen) -> Known {
        self.last = JobId(self.last.0 + 1);
        let id = self.last;
        let policy = &mut self.policy;
        let cores = &mut self.cores;
        let started = catch_unwind(AssertUnwindSafe(|| cores.start(policy, id, seen.demand)));
        match started {
            Ok(Ok(())) => {}
            // It was admitted when it was built. A policy that thinks otherwise now decides without guarantees.
            Ok(Err(_)) => {
                let _ = self.cores.start(&mut Unpartitioned, id, seen.demand);
            }
            Err(_) => {
                self.replace_policy();
                let _ = self.cores.start(&mut Unpartitioned, id, seen.demand);
            }
        }
        self.ask(Event::Start(id));
        Known {
            job: seen.job,
            id,
            wanted: seen.wants > 0,
            usable: usize::MAX,
            since: self.looked,
            ran: seen.ran,
            given: 0,
        }
    }

    /// Whether the job's demand is another one than before.
    fn change(&mut self, place: usize, seen: &Seen) -> bool {
        let id = self.known[place].id;
        let old = self.cores.job(id).map(|job| *job.demand());
        // Its change was admitted, too.
        old.is_some_and(|old| old != seen.demand)
            && self
                .cores
                .change(&mut Unpartitioned, id, seen.demand)
                .is_ok()
    }

    /// The workers with the lowest numbers stand for all that are not in reserve.
    fn set_available(&mut self, available: usize) {
        if self.cores.available().count() == available {
            return;
        }
        for core in 0..self.cores.count() {
            let _ = self.cores.set_available(core, core < available);
        }
        self.ask(Event::Request(Request::Cores));
    }

    /// What each job did since it was measured last.
    fn measure(&mut self, seen: &[Seen]) {
        for (known, seen) in self.known.iter_mut().zip(seen) {
            let work = seen.ran.saturating_sub(known.ran);
            let usage = Usage {
                interval: self.looked.saturating_sub(known.since),
                work,
                waste: known.given.saturating_sub(work),
                misses: 0,
            };
            let _ = self.cores.measure(known.id, usage);
            (known.since, known.ran, known.given) = (self.looked, seen.ran, 0);
        }
    }

    fn ask(&mut self, event: Event) {
        self.report.decisions += 1;
        let (cores, policy) = (&mut self.cores, &mut self.policy);
        let decided = catch_unwind(AssertUnwindSafe(|| {
            cores.decide(policy, event).map(|decision| decision.timer())
        }));
        match decided {
            Ok(Ok(timer)) => self.timer = timer.or(self.timer),
            Ok(Err(error)) => self.report.rejected = Some(error),
            Err(_) => {
                self.replace_policy();
                self.ask(event);
            }
        }
    }

    #[cold]
    fn replace_policy(&mut self) {
        self.report.panicked = true;
        self.policy = Box::new(Shares::default());
    }
}

#[cfg(all(test, not(urgency_loom)))]
mod tests {
    use super::*;
    use std::{collections::VecDeque, panic::resume_unwind};
    use urgency_policy::cores::{Decision, Drep, StaticEqual};

    const MS: u64 = 1_000_000;

    fn busy(job: usize, weight: u32, workers: usize) -> Seen {
        let demand = Demand {
            weight,
            ..Demand::default()
        };
        Seen {
            job,
            demand,
            serving: workers,
            workers,
            wants: 9,
            ran: 0,
        }
    }

    fn shares(workers: usize) -> Division {
        Division::new(workers, Box::new(Shares::default()))
    }

    fn workers(seen: &[Seen]) -> Vec<usize> {
        seen.iter().map(|seen| seen.workers).collect()
    }

    #[test]
    fn weights_of_three_to_one_are_three_workers_and_one() {
        let mut seen = [busy(1, 3, 4), busy(2, 1, 0)];
        let moves = shares(4).decide(MS, 4, &mut seen);
        assert_eq!(moves, [Move { from: 0, to: 1 }]);
        assert_eq!(workers(&seen), [3, 1]);
    }

    #[test]
    fn a_job_gets_no_more_workers_than_it_can_use_and_they_come_back_when_it_can() {
        let (mut division, mut seen) = (shares(8), [busy(1, 1, 8), busy(2, 1, 0)]);
        seen[1].wants = 1;
        division.decide(MS, 8, &mut seen);
        assert_eq!(
            workers(&seen),
            [7, 1],
            "four are its part, and it wants one"
        );
        seen[1].wants = 9;
        division.decide(2 * MS, 8, &mut seen);
        assert_eq!(workers(&seen), [4, 4]);
    }

    #[test]
    fn what_does_not_divide_goes_round() {
        let mut division = shares(1);
        let mut seen = [busy(1, 1, 1), busy(2, 1, 0), busy(3, 1, 0)];
        let mut had = [0, 0, 0];
        for look in 1..3_000 {
            division.decide(look * MS, 1, &mut seen);
            for (seen, had) in seen.iter_mut().zip(&mut had) {
                *had += seen.workers;
                seen.ran += seen.workers as u64 * MS;
                seen.wants = 9;
            }
        }
        assert!(had.iter().all(|had| (900..1100).contains(had)), "{had:?}");
    }

    #[test]
    fn a_worker_on_its_way_is_not_wasted_by_the_job_that_waits_for_it() {
        let mut division = shares(2);
        let mut seen = [busy(1, 3, 2), busy(2, 1, 0)];
        // The moves of a look are carried out three looks later.
        let mut on_their_way = VecDeque::from([[2, 0]; 3]);
        for look in 1..100 {
            division.decide(look * MS, 2, &mut seen);
            on_their_way.push_back([seen[0].workers, seen[1].workers]);
            let serving = on_their_way.pop_front().unwrap();
            for (place, (seen, serving)) in seen.iter_mut().zip(serving).enumerate() {
                seen.ran += serving as u64 * MS;
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
        division.decide(MS, 4, &mut seen);
        assert_eq!(workers(&seen), [2, 2]);
        seen[1].demand.weight = 3;
        division.decide(2 * MS, 4, &mut seen);
        assert_eq!(workers(&seen), [1, 3]);
        seen[1].demand.max_cores = 2;
        division.decide(3 * MS, 4, &mut seen);
        assert_eq!(workers(&seen), [2, 2]);
    }

    #[test]
    fn workers_in_reserve_are_not_divided() {
        let mut seen = [busy(1, 1, 2), busy(2, 1, 0)];
        shares(8).decide(MS, 2, &mut seen);
        assert_eq!(workers(&seen), [1, 1]);
    }

    #[test]
    fn every_job_that_is_gone_is_out_of_the_table() {
        let mut division = Division::new(4, Box::new(Drep::new(1)));
        division.decide(MS, 4, &mut [busy(1, 1, 4), busy(2, 1, 0)]);
        division.decide(2 * MS, 4, &mut [busy(3, 1, 4)]);
        division.decide(3 * MS, 4, &mut []);
        assert!(division.cores.jobs().is_empty() && division.known.is_empty());
        assert_eq!(division.report.decisions, 6, "three starts, three exits");
    }

    #[test]
    fn a_demand_is_refused_that_the_policy_or_the_workers_cannot_keep() {
        let least = |min_cores| Demand {
            min_cores,
            ..Demand::default()
        };
        let refused = shares(4).admit(least(2), &[least(1), least(2)]).unwrap();
        assert_eq!(refused, Err(Refusal::MinCores { asked: 2, left: 1 }));
        let mut halves = Division::new(4, Box::new(StaticEqual::new(2).unwrap()));
        let refused = halves.admit(least(3), &[]).unwrap();
        assert_eq!(refused, Err(Refusal::Cores { needed: 3, left: 2 }));
        assert_eq!(halves.admit(least(2), &[least(2)]).unwrap(), Ok(()));
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
    fn an_answer_that_breaks_a_rule_changes_nothing_and_is_reported() {
        let mut division = Division::new(4, Box::new(Wrong));
        let moves = division.decide(MS, 4, &mut [busy(1, 1, 4), busy(2, 1, 0)]);
        assert!(moves.is_empty());
        let unknown = DecisionError::UnknownCore { core: 99, cores: 4 };
        assert_eq!(division.report.rejected, Some(unknown));
    }

    #[test]
    fn shares_decide_after_a_policy_has_panicked() {
        let mut division = Division::new(4, Box::new(Panics));
        let mut seen = [busy(1, 1, 4), busy(2, 1, 0)];
        division.decide(MS, 4, &mut seen);
        assert_eq!(workers(&seen), [2, 2]);
        assert!(division.report.panicked);
    }
}
