//! The seat assigner: gives each worker its seat, if the schedule between levels is not simply prompt.
//!
//! A worker's *seat* (`urgency_policy::level::Seat`) says what it serves when it is free, and for what it is
//! alerted when it is busy. Under prompt, the default, every seat is the prompt one and nothing here runs. Otherwise
//! the seat assigner holds the schedule (`urgency_policy::level::Schedule`), under one lock, and asks it
//!
//! - **in rounds** (fairly prompt, winner takes all): for each worker by itself, when its round is over;
//! - **in quanta** (adaptive): for all workers at once, with what each level used;
//! - **once** (fixed shares).
//!
//! Seats are for all workers of a core. A job that has a part of them sits on the same seats in turn: see
//! [`turning`](super::turning).
//!
//! Seats that *wait* for their level instead of donating have rules of their own: `reserved_seats.rs`. So have
//! rounds: `rounds.rs`.
//!
//! # Protocol
//!
//! 1. The relief timer is armed while work waits and no worker is idle that would serve it: only then is a level owed
//!    anything. So rounds and quanta end where the timer expires ([`Job::end_periods`]). Under quanta the timer is also
//!    armed while one worker runs and another is idle: the idle worker may be of more use at another level. In rounds
//!    it is also armed while two workers run different levels: one level may owe the other time, though all work that
//!    waits is in the two stacks' deques. An idle runtime does not tick.
//! 2. Each expiry, 1 ms apart, ends the rounds that have lasted as long as the schedule says (5 ms by
//!    default). A schedule with quanta has the timer expire where a quantum ends. Quanta lie on a grid that goes on
//!    while nothing expires: work that comes after a silence waits for a part of a quantum.
//! 3. A worker whose new seat draws it elsewhere is alerted (PREEMPT), and abandons its stack at its next scheduling
//!    point. For a relief period the worker is not revoked (`is_settled` in `rounds.rs`): a stack whose worker was
//!    revoked is in no pool until it checks in, and the next round may be its level's. If the stack comes to no
//!    scheduling point by the next expiry, relief revokes the worker, as from any stack that does not check in. The
//!    worker then serves by its seat, and goes back to the stack when the level that drew it elsewhere has no work
//!    left.
//! 4. What a level used in a quantum is what its workers' own counters say, and the time since each busy worker's
//!    current span began. After a silence it is scaled to one quantum.
//! 5. A schedule of the program's own is asked as [`policy_code`](super::policy_code) says, and not again once it has
//!    panicked: the workers are prompt. Its code may end its own runtime, and so may another thread while it is asked.
//!    The end of a job takes the lock only if no thread has it; and a thread that has had the lock looks for the end of
//!    the job ([`Job::end_schedule`]).
//!
//! For a thread that alerts workers, a seat is a hint: the code that decides for a worker reads the seat again.

use super::seating::Seating;
use crate::protocol::attention::PREEMPT;
use crate::sys::primitives::atomic::{AtomicBool, AtomicU64, Ordering, fence};
use crate::{
    sched::{
        core::RELIEF_PERIOD,
        job::Job,
        policy_code::{as_policy, drop_policy},
        worker::{NO_LEVEL, Worker},
    },
    sys::{clock, mutex::Mutex},
};
use crossbeam_utils::CachePadded;
use std::{
    any::Any,
    mem,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    time::Duration,
};
use urgency_policy::level::{Criterion, LevelPolicy, Otherwise, Period, Schedule, Seat, Use};

/// Of any longer quantum, in ticks: centuries. Sums of a time and quanta do not overflow.
const LONGEST_QUANTUM: u64 = 1 << 60;

/// See the module's text.
#[derive(Debug)]
pub(crate) struct SeatAssigner {
    /// What each worker is to serve.
    of_workers: Box<[CachePadded<Seating>]>,
    /// Under this lock only a schedule of the program's own panics, and then all of the state is replaced
    /// ([`Job::asking`]).
    state: Mutex<State>,
    /// Seats are not all prompt.
    is_on: AtomicBool,
    /// Some seat may wait.
    waits: AtomicBool,
    /// The length of a quantum in ticks; 0 without quanta.
    quantum: AtomicU64,
    /// When the current quantum ends, in ticks.
    quantum_end: AtomicU64,
    /// There are rounds.
    has_rounds: AtomicBool,
    /// The levels that donors miss; see `rounds.rs`.
    pub(super) missed: AtomicU64,
}

#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) schedule: Schedule,
    /// How long a round or a quantum is, in nanoseconds.
    length: u64,
    /// When the quantum began, in ticks.
    began: u64,
    /// How long each level had run by then, in ticks.
    ran: Vec<u64>,
    /// In rounds: how long each worker had run each level at the last expiry, in ticks.
    pub(super) ran_by: Vec<u64>,
    /// In rounds: how long each worker has run in its own, in nanoseconds.
    pub(super) round_ran: Vec<u64>,
    /// When the seats went on by one worker, in ticks.
    pub(super) turned: u64,
}

/// A schedule that has panicked, and its panic.
type Broken = (Schedule, Box<dyn Any + Send>);

/// Asks a schedule, which may be code of the program's.
///
/// # Panics
///
/// If that code does.
pub(super) fn ask<R>(schedule: &mut Schedule, question: impl FnOnce(&mut Schedule) -> R) -> R {
    if !matches!(schedule, Schedule::Own(_)) {
        return question(schedule);
    }
    as_policy(|| question(schedule)).unwrap_or_else(|payload| resume_unwind(payload))
}

impl SeatAssigner {
    pub(in crate::sched) fn new(workers: usize) -> Self {
        SeatAssigner {
            of_workers: (0..workers).map(|_| CachePadded::default()).collect(),
            state: Mutex::default(),
            is_on: AtomicBool::new(false),
            waits: AtomicBool::new(false),
            quantum: AtomicU64::new(0),
            quantum_end: AtomicU64::new(0),
            has_rounds: AtomicBool::new(false),
            missed: AtomicU64::new(0),
        }
    }

    /// Which levels a worker is drawn to.
    #[inline]
    pub(crate) fn of(&self, worker: &Worker) -> Seat {
        if self.is_on() {
            self.seating(worker).seat()
        } else {
            Seat::PROMPT
        }
    }

    #[inline]
    pub(super) fn seating(&self, worker: &Worker) -> &Seating {
        &self.of_workers[worker.id]
    }

    /// The worker has this seat from now on. A schedule of the program's own may call itself work-conserving and give
    /// seats that wait: it is not, from the first of them on.
    pub(super) fn give(&self, worker: &Worker, seat: Seat) {
        if seat.otherwise() == Otherwise::Wait && seat.primary().is_some() {
            self.waits.store(true, Ordering::Relaxed);
        }
        self.seating(worker).set(seat);
    }

    /// Whether a donor misses forks of this level.
    #[inline]
    pub(crate) fn is_missed(&self, level: u8) -> bool {
        self.missed.load(Ordering::Relaxed) >> level & 1 == 1
    }

    /// Workers of another job would come for forks of any level.
    pub(in crate::sched) fn all_are_missed(&self) {
        if self.missed.load(Ordering::Relaxed) != u64::MAX {
            self.missed.store(u64::MAX, Ordering::SeqCst);
        }
    }

    /// A stack has put its deque into the pool of this level.
    #[inline]
    pub(crate) fn no_longer_missed(&self, level: u8) {
        if self.is_missed(level) {
            let others = !(1 << level);
            self.missed.fetch_and(others, Ordering::SeqCst);
        }
    }

    /// The worker has taken work of `level`. Until it goes there only this says so.
    #[inline]
    pub(crate) fn is_bound_for(&self, worker: &Worker, level: u8) {
        if self.of(worker).primary().is_some() && self.has_rounds() {
            worker.set_bound(level);
        }
    }

    /// The worker comes to the scheduler from `serves`, or goes there and nothing is more urgent. Returns for how long
    /// more urgent work has wanted it, in ticks.
    #[inline]
    pub(crate) fn no_longer_wanted(&self, worker: &Worker, serves: u8, now: u64) -> u64 {
        worker.no_longer_wanted(|| self.of(worker), serves, now)
    }

    /// Whether seats are not all prompt.
    #[inline]
    pub(crate) fn is_on(&self) -> bool {
        self.is_on.load(Ordering::Relaxed)
    }

    /// Whether a seat may wait for its level while others have work.
    #[inline]
    pub(crate) fn waits(&self) -> bool {
        self.waits.load(Ordering::Relaxed)
    }

    /// Whether the schedule has rounds.
    pub(crate) fn has_rounds(&self) -> bool {
        self.has_rounds.load(Ordering::Relaxed)
    }

    /// Whether the schedule has quanta.
    pub(crate) fn has_quanta(&self) -> bool {
        self.quantum.load(Ordering::Relaxed) != 0
    }

    /// After what time the relief timer is to expire.
    pub(crate) fn until_expiry(&self) -> Duration {
        let quantum = self.quantum.load(Ordering::Relaxed);
        if quantum == 0 {
            return RELIEF_PERIOD;
        }
        let (now, end) = (clock::now(), self.quantum_end.load(Ordering::Relaxed));
        let left = if end > now {
            end - now
        } else {
            let left = quantum - (now - end) % quantum;
            self.quantum_end.store(now + left, Ordering::Relaxed);
            left
        };
        RELIEF_PERIOD.min(clock::to_duration(left))
    }
}

impl Job {
    /// From now on this schedule holds, which fits the runtime. If it is the program's own and panics, the workers are
    /// prompt, and the panic goes on.
    pub(crate) fn set_schedule(&self, mut schedule: Schedule) {
        let mut state = self.seats.state.lock();
        mem::swap(&mut state.schedule, &mut schedule);
        let broken = self.asking(&mut state, |state| self.begin_schedule(state));
        drop(state);
        drop_policy(schedule);
        self.end_schedule();
        self.reseated();
        if let Some((schedule, payload)) = broken {
            drop_policy(schedule);
            resume_unwind(payload);
        }
    }

    /// Runs `ask`, which asks the schedule. If that panics, the workers are prompt from then on. Returns the schedule,
    /// broken off in the middle, and the panic: both are dropped after the lock.
    fn asking(&self, state: &mut State, ask: impl FnOnce(&mut State)) -> Option<Broken> {
        let payload = catch_unwind(AssertUnwindSafe(|| ask(state))).err()?;
        let schedule = mem::take(&mut state.schedule);
        self.begin_schedule(state);
        Some((schedule, payload))
    }

    /// The schedule has just been put there.
    fn begin_schedule(&self, state: &mut State) {
        let now = clock::now();
        let period = ask(&mut state.schedule, |it| it.period());
        let (length, quantum) = match period {
            Period::Never => (0, 0),
            Period::EachWorker(nanos) => (nanos, 0),
            Period::AllWorkers(nanos) => {
                let quantum = clock::ticks(nanos as f64);
                (nanos, quantum.clamp(1, LONGEST_QUANTUM))
            }
        };
        let ran = (0..self.pools.len()).map(|level| self.run_ticks(level as u8, now));
        *state = State {
            schedule: mem::take(&mut state.schedule),
            length,
            began: now,
            ran: ran.collect(),
            ran_by: Vec::new(),
            round_ran: Vec::new(),
            turned: now,
        };
        let seats = &self.seats;
        let has_rounds = matches!(period, Period::EachWorker(_));
        seats.has_rounds.store(has_rounds, Ordering::Relaxed);
        seats.quantum.store(quantum, Ordering::Relaxed);
        seats.quantum_end.store(now + quantum, Ordering::Relaxed);
        let waits = !ask(&mut state.schedule, |it| it.is_work_conserving());
        seats.waits.store(waits, Ordering::Relaxed);
        let is_on = !matches!(state.schedule, Schedule::Prompt);
        seats.is_on.store(is_on, Ordering::Relaxed);
        if is_on {
            // A seat has a worker of its own.
            self.core.idle.set_held(usize::MAX);
        }
        let (count, levels) = (self.core.workers.len(), self.pools.ready.levels());
        for worker in &self.core.workers {
            // Rounds begin at an expiry.
            let seat = match period {
                Period::EachWorker(_) => Seat::PROMPT,
                _ => ask(&mut state.schedule, |it| it.seat(worker.id, count, levels)),
            };
            self.seats.give(worker, seat);
            self.seats.seating(worker).set_ahead(0);
            self.seats
                .seating(worker)
                .since()
                .store(0, Ordering::Relaxed);
        }
    }

    /// If the job has ended, its workers are prompt: no timer may expire any more that would move a worker to a stack
    /// that has to unwind. Called when it has ended, and by each thread that has had the lock: rule 5. Of two threads
    /// the later one sees, behind its barrier, that the lock is free or that the job has ended.
    pub(in crate::sched) fn end_schedule(&self) {
        fence(Ordering::SeqCst);
        if self.seats.is_on()
            && self.closing.load(Ordering::Relaxed)
            && let Some(mut state) = self.seats.state.try_lock()
        {
            let ended = mem::take(&mut state.schedule);
            self.begin_schedule(&mut state);
            drop(state);
            drop_policy(ended);
            self.reseated();
        }
    }

    /// From the next round on, this criterion holds.
    pub(crate) fn set_criterion(&self, criterion: Criterion) {
        let mut state = self.seats.state.lock();
        if let Schedule::FairlyPrompt(rounds) = &mut state.schedule {
            rounds.change(criterion);
            drop(state);
            return self.end_schedule();
        }
        drop(state);
        self.set_schedule(criterion.into());
    }

    /// Seats were written. Alerts each busy worker whose new seat does not keep it where it is, and starts idle workers
    /// whose seats serve a level with work.
    fn reseated(&self) {
        if self.alert_drawn() != 0 {
            self.start_idle();
        }
        self.show_forks_to_idle();
    }

    /// Alerts each busy worker whose new seat does not keep it where it is. Returns the levels with work, ordered after
    /// the seats.
    pub(in crate::sched) fn alert_drawn(&self) -> u64 {
        let levels = self.pools.ready.levels_after_writes();
        for worker in self.workers() {
            self.alert_if_drawn(worker, levels);
        }
        levels
    }

    pub(super) fn alert_if_drawn(&self, worker: &Worker, levels: u64) {
        let serves = worker.level_in(self);
        if serves != NO_LEVEL
            && let Some(above) = self.seats.of(worker).abandon_for(levels, serves)
            && let Some(stack) = self.core.holder(worker)
        {
            worker.want(above, clock::now());
            stack.attention.request(PREEMPT);
        }
    }

    /// The relief timer expired: steps 2 and 3 of the module's text. Comes before any thread can arm it again.
    pub(crate) fn end_periods(&self) {
        if !self.seats.is_on() {
            return;
        }
        let mut state = self.seats.state.lock();
        // Not by another question: an own schedule may have changed its mind, and what is here has not.
        let broken = self.asking(&mut state, |state| {
            if self.seats.has_rounds() {
                self.end_rounds(state, state.length);
                return;
            }
            if self.seats.has_quanta() {
                self.end_quantum(state, state.length);
            }
            self.turn_seats(state);
        });
        drop(state);
        self.end_schedule();
        if let Some((schedule, payload)) = broken {
            // The panic has been printed. The schedule is not asked again.
            self.reseated();
            drop_policy(schedule);
            drop_policy(payload);
        }
    }

    fn end_quantum(&self, state: &mut State, length: u64) {
        let now = clock::now();
        let quantum = self.seats.quantum.load(Ordering::Relaxed);
        let end = self.seats.quantum_end.load(Ordering::Relaxed);
        // As in `end_rounds`.
        if now + quantum / 8 < end {
            return;
        }
        let next = end + quantum * (now.saturating_sub(end) / quantum + 1);
        self.seats.quantum_end.store(next, Ordering::Relaxed);
        let lasted = now.saturating_sub(state.began).max(1);
        state.began = now;
        let seats = self.core.workers.iter().map(|worker| self.seats.of(worker));
        let mut seats: Vec<Seat> = seats.collect();
        let asleep = self.asleep(&seats);
        let used: Vec<Use> = (0..self.pools.len())
            .map(|at| {
                let level = at as u8;
                let ran = self.run_ticks(level, now);
                let busy = ran.saturating_sub(std::mem::replace(&mut state.ran[at], ran));
                let slept = asleep.iter().filter(|worker| worker.level() == level);
                let slept = slept.map(|worker| now.saturating_sub(worker.since()).min(lasted));
                let busy = busy.saturating_sub(slept.sum());
                let works = |worker: &Worker| {
                    worker.level() == level && !asleep.iter().any(|it| it.id == worker.id)
                };
                Use {
                    busy: (busy as f64 / lasted as f64 * length as f64) as u64,
                    has_work: self.is_queued(level) || self.workers().any(works),
                }
            })
            .collect();
        ask(&mut state.schedule, |it| it.reallocate(&used, &mut seats));
        self.give_seats(seats, now);
    }

    /// The workers have these seats from now on, in order.
    pub(super) fn give_seats(&self, seats: Vec<Seat>, now: u64) {
        for (worker, seat) in self.core.workers.iter().zip(seats) {
            if self.seats.of(worker) != seat {
                self.seats.give(worker, seat);
                self.seats
                    .seating(worker)
                    .since()
                    .store(now, Ordering::Relaxed);
            }
        }
        self.alert_drawn();
        self.show_forks_to_idle();
    }

    /// The workers whose stacks have not answered for a while, and sleep in the kernel. The kernel is asked only while
    /// something waits for which no worker has a seat: relief gives it no worker before that. (A level whose closures
    /// sleep kept its seats for good, and what they slept for was below.)
    fn asleep(&self, seats: &[Seat]) -> Vec<&Worker> {
        let waits = self.levels_queued();
        if waits == 0 || seats.iter().any(|seat| seat.serves_any(waits)) {
            return Vec::new();
        }
        let sleeps = |worker: &&Worker| {
            let stack = self.core.holder(worker).filter(|stack| stack.is_of(self));
            worker.level() != NO_LEVEL
                && stack.is_some_and(|stack| stack.is_silent() && stack.sleeps())
        };
        self.workers().filter(sleeps).collect()
    }

    /// How long a level has run on all workers together, in ticks.
    fn run_ticks(&self, level: u8, now: u64) -> u64 {
        let of = |worker: &Worker| self.run_ticks_of(worker, level, now);
        self.core.workers.iter().map(|worker| of(worker)).sum()
    }
}
