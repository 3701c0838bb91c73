//! What the core set's policy wants, and which workers have to go for it.
//!
//! Decisions over what was seen of the jobs; the mechanism around them is in the module above. At each look this
//! compares the jobs that have work with the jobs of the look before, asks the [`CorePolicy`], and keeps its table.
//!
//! | seen | event |
//! |---|---|
//! | a job has work that had none | [`Event::Start`] |
//! | a job has no work and no worker any more: it *rests* | [`Event::Exit`] |
//! | its demand has changed | [`Request::Demand`] |
//! | workers come from the reserve, or go there | [`Request::Cores`] |
//! | code of the program asks (`at_once.rs`, event 4) | [`Request::Own`] |
//! | the time has come that the policy set | [`Event::Timer`], after the jobs were measured |
//!
//! *Waste* is the time of workers that the policy gave a job and the job did not use. While a job wants more workers
//! than serve it, the workers that it has yet to get are no waste of the job: a move takes a millisecond or two of an
//! interval of four. (When they were, a job that the turns had just come to seemed to need fewer workers, and a weight
//! of nine had an equal part.)
//!
//! To the policy a worker is a core. Workers are alike, so of its answer only the *number* of each job counts: a job
//! that could use more workers, and has fewer than the policy gave it, gets one of a job that has more than that. What
//! a job does not use others keep until it wants it. A start has a new [`JobId`], so a job that comes back is the
//! youngest. To the table it is still the same job, of which a policy may keep what it has learnt
//! ([`PerJob`](urgency_policy::cores::PerJob)), and what its threads ran beside its workers until they ended is counted
//! at the next measurement. `resting.rs` says since when a job rests.
//!
//! An answer that breaks a rule is not carried out: [`Shares`] answer that event instead. They know all jobs and take
//! turns as usual, so no job is left without workers by a policy whose every answer is wrong. (When a wrong answer
//! changed nothing, a job that started under a policy that is not work-conserving might have nothing for good: it hung,
//! and so did the code that waited for it.) The policy is asked again at the next event. A policy that panics is not:
//! [`Shares`] replace it. [`Report`] says both.

use super::manner::{Manner, keep_until_end, next_turn};
use super::plans::Plan;
use crate::{
    sched::policy_code::{as_policy, drop_policy},
    tasks::discard_payload,
};
#[cfg(doc)]
use urgency_policy::cores::CorePolicy;
use urgency_policy::cores::{
    BandwidthControl, Boundary, BoxedPolicy, CacheControl, Cores, DecisionError, Demand, Event,
    Job, JobId, Refusal, Request, Shares, Usage,
};

/// What was seen of a job that has work.
#[derive(Debug, Clone, Copy)]
pub(super) struct Seen {
    /// Tells it apart from all others, and from the jobs that had its container before.
    pub(super) life: u64,
    /// How often its demand has changed.
    pub(super) changes: u64,
    /// How many workers serve it.
    pub(super) serving: usize,
    /// How many workers it will have when all moves are done.
    pub(super) workers: usize,
    /// How many more it could use at once.
    pub(super) wants: usize,
}

/// What is asked about the job at a place of what was seen, when it is needed. A look comes often, and to most jobs
/// nothing has happened since the one before.
pub(super) trait Asked {
    /// When it starts, and when it has changed.
    fn demand(&self, place: usize) -> Demand;

    /// When it starts, and when an interval ends.
    fn done(&self, place: usize) -> Done;
}

/// What a job has done so far.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Done {
    /// For how long its code has run, in nanoseconds of workers' time.
    pub(super) ran: u64,
    /// For how long its threads have run beside its workers, in nanoseconds.
    pub(super) beside: u64,
    /// How many iterations have ended after their deadlines.
    pub(super) late: u64,
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
    /// How many did. [`Shares`] answered instead.
    pub(crate) rejections: u64,
    /// It panicked, and [`Shares`] decide.
    pub(crate) panicked: bool,
}

/// A job of the table.
#[derive(Debug)]
struct Known {
    life: u64,
    id: JobId,
    demand: Demand,
    /// How often that had changed.
    changes: u64,
    /// How many workers the policy gave it.
    has: usize,
    /// How many of these had come, if it waits for more.
    usable: usize,
    /// Since when it is measured.
    since: u64,
    /// What it had done then.
    done: Done,
    /// How much of the workers' time the policy gave it since, and it could use, in nanoseconds.
    given: u64,
    /// How many workers it keeps until it ends, at a job boundary.
    keeps: usize,
    /// The move at which it last got a worker, or lost one.
    turn: u64,
}

/// See the module's text.
pub(super) struct Division {
    policy: BoxedPolicy,
    name: &'static str,
    /// Answer the events whose answers by the policy break a rule.
    stand_in: Shares,
    pub(super) manner: Manner,
    cores: Cores,
    /// In the order of what was seen last.
    known: Vec<Known>,
    /// They have no work. Each has the name under which it started first.
    resting: Vec<Known>,
    last: JobId,
    looked: u64,
    /// How many moves there were.
    moves: u64,
    timer: Option<u64>,
    /// What code of the program asked for since the last look.
    requests: Vec<u64>,
    /// What the decisions since the last plan say of cache and bandwidth, if anything carries it out.
    pub(super) limits: Option<Plan>,
    pub(super) report: Report,
}

debug_struct!(Division, |it| cores: it.cores, report: it.report);

impl Division {
    pub(super) fn new(workers: usize, policy: BoxedPolicy) -> Self {
        Division {
            manner: Manner::of(&*policy),
            name: policy.name(),
            policy,
            stand_in: Shares::default(),
            limits: None,
            cores: Cores::new(workers),
            known: Vec::new(),
            resting: Vec::new(),
            last: JobId(0),
            looked: 0,
            moves: 0,
            timer: None,
            requests: Vec::new(),
            report: Report::default(),
        }
    }

    /// The machine can do this with its cache and memory, and plans are made of what the policy says of it.
    pub(super) fn with_controls(
        mut self,
        (cache, bandwidth): (Option<CacheControl>, Option<BandwidthControl>),
    ) -> Self {
        self.cores = self.cores.with_controls(cache, bandwidth);
        self.limits = Some(Plan::default());
        self
    }

    /// The name of the job at this place of what was seen.
    pub(super) fn id(&self, place: usize) -> JobId {
        self.known[place].id
    }

    /// Whether a job of this name is in the table.
    pub(super) fn knows(&self, id: JobId) -> bool {
        self.cores.job(id).is_some()
    }

    /// Whether a job may have this demand beside these others, if all have work at once. A policy that panics refuses,
    /// and stays: the jobs that run have its guarantees.
    pub(super) fn admit(&mut self, demand: Demand, others: &[Demand]) -> Result<(), Refusal> {
        let mut all = Cores::new(self.cores.count());
        for (id, &other) in (0..).zip(others) {
            // What was admitted stays, whatever the policy says now.
            let _ = all.enter(JobId(id), other);
        }
        let id = JobId(others.len() as u64);
        let policy = &mut self.policy;
        let admitted = as_policy(|| all.start(policy, id, demand));
        admitted.unwrap_or_else(|payload| {
            discard_payload(payload);
            Err(Refusal::Panicked { policy: self.name })
        })
    }

    /// The period that the policy keeps for a job of this demand beside these others, if all have work at once, on so
    /// many workers. The job is the last in the table: of equal jobs the first may have a core more, and the table that
    /// decides has them in any order. A policy that panics says nothing.
    pub(super) fn period(&self, own: Demand, others: &[Demand], available: usize) -> Option<u64> {
        let mut all = Cores::new(self.cores.count());
        for (id, &demand) in (0..).zip(others.iter().chain([&own])) {
            let _ = all.enter(JobId(id), demand);
        }
        let id = JobId(others.len() as u64);
        for core in available..all.count() {
            let _ = all.set_available(core, false);
        }
        let period = as_policy(|| self.policy.period(id, &all));
        period.unwrap_or_else(|payload| {
            discard_payload(payload);
            None
        })
    }

    /// The policy is to hear of this at the next look.
    pub(super) fn hear(&mut self, request: u64) {
        self.requests.push(request);
    }

    /// Decides at `now`, in nanoseconds, about so many workers that are not in reserve. All jobs that have work or
    /// workers are in `seen`.
    pub(super) fn decide(
        &mut self,
        now: u64,
        available: usize,
        seen: &mut [Seen],
        jobs: &(impl Asked + ?Sized),
    ) -> Vec<Move> {
        // An answer to a start or an end may set the time anew.
        let is_time = self.timer.is_some_and(|at| at <= now);
        self.account(now);
        self.meet(seen, jobs);
        self.set_available(available);
        for number in std::mem::take(&mut self.requests) {
            self.ask(Event::Request(Request::Own(number)));
        }
        if is_time {
            self.timer = None;
            self.measure(jobs);
            self.ask(Event::Timer);
        }
        for (known, seen) in self.known.iter_mut().zip(&*seen) {
            let waits = seen.wants > 0 || seen.workers > seen.serving;
            known.usable = if waits { seen.serving } else { usize::MAX };
            known.has = self.cores.job(known.id).map_or(0, Job::cores);
        }
        if self.manner.boundary == Boundary::Job {
            self.keep_until_end();
        }
        let before = self.moves;
        let mut moves = Vec::new();
        while let Some(next) = self.next(seen, before) {
            self.moves += 1;
            seen[next.from].workers -= 1;
            seen[next.to].workers += 1;
            seen[next.to].wants -= 1;
            self.known[next.from].turn = self.moves;
            self.known[next.to].turn = self.moves;
            moves.push(next);
        }
        moves
    }

    /// How many workers the job at this place of what was seen is to have: what the policy gave it, at a job boundary
    /// once other jobs have ended; without a partition any number.
    pub(super) fn entitled(&self, place: usize) -> usize {
        let known = &self.known[place];
        match self.manner.boundary {
            _ if !self.manner.is_partitioned => usize::MAX,
            Boundary::Job => known.keeps,
            Boundary::Point | Boundary::Steal => known.has,
        }
    }

    /// Whether a job has more workers than the policy gave it.
    pub(super) fn has_any_too_many(&self, seen: &[Seen]) -> bool {
        (0..seen.len()).any(|place| self.above(seen, place) > 0)
    }

    fn above(&self, seen: &[Seen], place: usize) -> usize {
        seen[place].workers.saturating_sub(self.entitled(place))
    }

    fn keep_until_end(&mut self) {
        let wanted: Vec<_> = self.known.iter().map(|known| known.has).collect();
        let mut keeps: Vec<_> = self.known.iter().map(|known| known.keeps).collect();
        keep_until_end(self.cores.available().count(), &mut keeps, &wanted);
        for (known, keeps) in self.known.iter_mut().zip(keeps) {
            known.keeps = keeps;
        }
    }

    fn next(&self, seen: &[Seen], before: u64) -> Option<Move> {
        if !self.manner.is_partitioned {
            let turns: Vec<_> = self.known.iter().map(|known| known.turn).collect();
            return next_turn(seen, &turns, before);
        }
        let below = |&place: &usize| self.entitled(place).saturating_sub(seen[place].workers);
        let above = |&place: &usize| self.above(seen, place);
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
            known.given += passed * known.has.min(known.usable) as u64;
        }
    }

    /// Jobs that end, jobs that start, and demands that change. Afterwards `known` is in the order of `seen`. Jobs that
    /// stay are in the same order at each look.
    fn meet(&mut self, seen: &[Seen], jobs: &(impl Asked + ?Sized)) {
        let mut left = seen;
        let goes = |known: &mut Known| {
            let place = left.iter().position(|seen| seen.life == known.life);
            left = place.map_or(left, |place| &left[place + 1..]);
            place.is_none()
        };
        let gone: Vec<_> = self.known.extract_if(.., goes).collect();
        gone.into_iter().for_each(|known| self.let_rest(known));
        for (place, seen) in seen.iter().enumerate() {
            let known = self.known.get(place);
            if known.is_none_or(|known| known.life != seen.life) {
                let started = self.start(seen, jobs.demand(place), jobs.done(place));
                self.known.insert(place, started);
            } else if known.is_some_and(|known| known.changes != seen.changes) {
                self.change(place, seen, jobs.demand(place));
            }
        }
    }

    fn change(&mut self, place: usize, seen: &Seen, demand: Demand) {
        let known = &mut self.known[place];
        known.changes = seen.changes;
        // It was admitted.
        if known.demand != demand && self.cores.promise(known.id, demand).is_ok() {
            known.demand = demand;
            let id = known.id;
            self.ask(Event::Request(Request::Demand(id)));
        }
    }

    fn start(&mut self, seen: &Seen, demand: Demand, done: Done) -> Known {
        self.last = JobId(self.last.0 + 1);
        let id = self.last;
        let place = self.resting.iter().position(|it| it.life == seen.life);
        let rested = place.map(|place| self.resting.swap_remove(place));
        // It was admitted when it was built, beside all others on all workers.
        let entered = match &rested {
            Some(rested) => self.cores.enter_again(id, rested.id, demand),
            None => self.cores.enter(id, demand),
        };
        entered.expect("a demand that was admitted is valid");
        self.ask(Event::Start(id));
        let counted = rested.map_or(done, |rested| rested.done);
        Known {
            life: seen.life,
            id,
            demand,
            changes: seen.changes,
            has: 0,
            usable: usize::MAX,
            since: self.looked,
            done: Done {
                ran: done.ran,
                ..counted
            },
            given: 0,
            keeps: 0,
            turn: 0,
        }
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
    fn measure(&mut self, jobs: &(impl Asked + ?Sized)) {
        for (place, known) in self.known.iter_mut().enumerate() {
            let (now, before) = (jobs.done(place), known.done);
            let work = now.ran.saturating_sub(before.ran);
            let usage = Usage {
                interval: self.looked.saturating_sub(known.since),
                work,
                waste: known.given.saturating_sub(work),
                late: now.late.saturating_sub(before.late),
                beside: now.beside.saturating_sub(before.beside),
            };
            let _ = self.cores.measure(known.id, usage);
            (known.since, known.given, known.done) = (self.looked, 0, now);
        }
    }

    fn ask(&mut self, event: Event) {
        self.report.decisions += 1;
        let (cores, policy) = (&mut self.cores, &mut self.policy);
        let limits = &mut self.limits;
        let decided = as_policy(|| {
            let decision = cores.decide(policy, event)?;
            if let Some(limits) = limits {
                let bandwidths = decision.bandwidths().iter().copied();
                limits.ways.extend(decision.cache_ways().iter().copied());
                limits.bandwidths.extend(bandwidths);
            }
            Ok::<_, DecisionError>(decision.timer())
        });
        match decided {
            Ok(Ok(timer)) => self.timer = timer.or(self.timer),
            Ok(Err(error)) => self.answer_instead(event, error),
            Err(payload) => {
                discard_payload(payload);
                self.replace_policy();
                self.ask(event);
            }
        }
    }

    /// The policy's answer broke this rule.
    #[cold]
    fn answer_instead(&mut self, event: Event, error: DecisionError) {
        self.report.rejected = Some(error);
        self.report.rejections += 1;
        let decision = self.cores.decide(&mut self.stand_in, event);
        let timer = decision.expect("shares keep the rules").timer();
        self.timer = timer.or(self.timer);
    }

    #[cold]
    fn replace_policy(&mut self) {
        self.report.panicked = true;
        let shares = Box::new(std::mem::take(&mut self.stand_in));
        let panicked = std::mem::replace(&mut self.policy, shares);
        drop_policy(panicked);
        self.name = self.policy.name();
        self.manner = Manner::of(&*self.policy);
    }
}

mod resting;

#[cfg(all(test, not(urgency_loom)))]
mod tests;
