//! The simulation: one loop over events.
//!
//! Time is in nanoseconds. At one moment all *ends* come first (of vertices, latencies, quanta; releases),
//! then all *decisions*: so a worker that chooses sees everything that is ready at that moment, and with zero
//! costs a schedule is exactly the step-by-step one of the theorems.
//!
//! The mechanism mirrors the runtime's, in three layouts:
//!
//! - **central** ([`Layout::Central`]) and **proactive** ([`Layout::Deques`]): a worker's forks are in its active
//!   deque. A thread that waits takes the deque with it (suspended); when its wait is over the deque is resumable.
//!   In the first, deques stand in the level's two queues; in the second, in workers' sets.
//! - **queues** ([`Layout::Queues`]): a ready vertex is an entry of some worker's queue; nothing is suspended.
//!
//! The files: `mod` keeps time and accounts; [`ready`] puts what became ready where the policy says; [`find`] looks
//! where the policy says; [`seats`] has seats, quanta and sleep, [`rounds`] rounds; [`contest`] sees when the first
//! level has run dry; [`deques`] and [`queues`] are the structures.
//!
//! # What is exact and what is not
//!
//! - Claims are made at the moment of the decision; their cost is paid afterwards. Operations on one
//!   queue, or on one victim, wait for each other (`free_at`), which is where contention comes from.
//! - What a worker sees of the levels is always true: a bit is cleared at once. In the runtime it may lag.
//! - A round or a quantum takes effect at a worker's next scheduling point; `check_in` bounds how far that
//!   is.

mod contest;
mod deques;
mod find;
mod own;
mod queues;
mod ready;
mod rounds;
mod seats;

use crate::{
    alone::alone,
    dag::{Dag, NONE, Thread, Vertex},
    machine::{Machine, MachineError},
    report::{Report, Response, Span},
    serial,
};
use contest::Contest;
use deques::Deques;
use queues::LocalQueues;
use rounds::Accounts;
use std::{
    cmp::{Ordering, Reverse},
    collections::{BinaryHeap, VecDeque},
};
use urgency_policy::{
    dice::Dice,
    level::{Period, Schedule, Seat},
    pool::{Layout, PoolPolicy, QueueLayout},
};

/// After so many quanta in a row with nothing running and nothing to come, nothing ever will.
const MOST_VAIN_QUANTA: u32 = 100;

/// What happens at a moment.
#[derive(Clone, Copy, Debug)]
enum Event {
    /// A worker ran its vertex, or a slice of it.
    Done(u32),
    /// A latency is over: one more of a vertex's parents.
    Over(Vertex),
    Release(Thread),
    Quantum,
    /// A worker decides what to do next.
    Decide(u32),
}

#[derive(Clone, Copy, Debug)]
struct Timed {
    time: u64,
    /// 0 for ends, 1 for decisions.
    class: u8,
    number: u64,
    event: Event,
}

impl Timed {
    fn key(&self) -> (u64, u8, u64) {
        (self.time, self.class, self.number)
    }
}

impl Ord for Timed {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key().cmp(&other.key())
    }
}

impl PartialOrd for Timed {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Timed {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Timed {}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// It runs a vertex, or is on its way to one.
    Busy,
    /// It will decide at a known time.
    Looking,
    /// Since when.
    Asleep(u64),
}

struct Worker {
    policy: Box<dyn PoolPolicy + Send>,
    seat: Seat,
    seated_at: u64,
    /// How long it has run in its round.
    round_ran: u64,
    /// How much of its slice is accounted for.
    counted: u64,
    /// The level that it serves, or served last.
    level: u8,
    state: State,
    /// What it runs.
    running: Vertex,
    started: u64,
    /// How long it runs now; 0 once that is in the report.
    slice: u64,
    /// What it will run next, if it is not drawn elsewhere.
    next: Vertex,
    /// What it ran last.
    last: Vertex,
    /// Its active deque.
    active: u32,
    failed: u32,
    asked_by: Option<usize>,
    /// What did not fit into its queue.
    overhang: VecDeque<Vertex>,
    spins: u32,
    next_deal: u64,
}

struct Engine<'a> {
    dag: &'a Dag,
    machine: &'a Machine,
    schedule: Schedule,
    period: Period,
    layout: Layout,
    /// What the queues are like, if it is the layout with queues.
    plan: Option<QueueLayout>,
    now: u64,
    number: u64,
    events: BinaryHeap<Reverse<Timed>>,
    pending: Vec<u32>,
    left: Vec<u64>,
    unfinished: usize,
    /// How many are under way.
    latencies: usize,
    busy_in_quantum: Vec<u64>,
    accounts: Accounts,
    contest: Contest,
    vain_quanta: u32,
    /// By level: entries that a worker could find.
    visible: Vec<usize>,
    with_work: u64,
    workers: Vec<Worker>,
    sleeping: Vec<u32>,
    idle: usize,
    deques: Deques,
    queues: LocalQueues,
    /// By thread: the worker that ran it last.
    home: Vec<u32>,
    /// By vertex: the suspended deque that waits for it.
    waits_in: Vec<u32>,
    before: Vec<Vertex>,
    dice: Dice,
    report: Report,
}

/// Schedules a computation on a machine.
///
/// # Errors
///
/// If there is no such machine, or if it starves a level for good.
pub fn run(dag: &Dag, machine: &Machine) -> Result<Report, MachineError> {
    machine.check()?;
    if let Schedule::Adaptive(adaptive) = &machine.schedule {
        let schedule = adaptive.desires().count();
        if schedule < dag.levels() {
            return Err(MachineError::Levels {
                schedule,
                dag: dag.levels(),
            });
        }
    }
    if let Schedule::Own(own) = &machine.schedule {
        own.check(dag.levels(), machine.workers)
            .map_err(MachineError::Schedule)?;
    }
    let layout = machine.pool.checked_layout();
    Engine::new(dag, machine, layout.map_err(MachineError::Pool)?).run()
}

impl<'a> Engine<'a> {
    fn new(dag: &'a Dag, machine: &'a Machine, layout: Layout) -> Self {
        let dice = Dice::new(machine.seed);
        let levels = dag.levels();
        let shared = match layout {
            Layout::Queues(plan) => plan.shared,
            Layout::Deques => 1,
            Layout::Central => 0,
        };
        let least = alone(dag, machine.workers);
        let worker = |me| Worker {
            policy: own::policy_of((&machine.pool, layout), me, machine.workers, &dice),
            seat: Seat::PROMPT,
            seated_at: 0,
            round_ran: 0,
            counted: 0,
            level: 0,
            state: State::Asleep(0),
            running: NONE,
            started: 0,
            slice: 0,
            next: NONE,
            last: NONE,
            active: NONE,
            failed: 0,
            asked_by: None,
            overhang: VecDeque::new(),
            spins: 0,
            next_deal: machine.deal_interval,
        };
        let response = |(number, thread): (usize, &crate::dag::ThreadInfo)| Response {
            thread: number as Thread,
            level: thread.level,
            ready: thread.release.unwrap_or(0),
            done: 0,
            root: thread.release.is_some(),
            alone: least[number],
        };
        Engine {
            dag,
            machine,
            period: match machine.schedule.period() {
                // A quantum of no time would never be over: in the runtime it is the least that there is, too.
                Period::AllWorkers(quantum) => Period::AllWorkers(quantum.max(1)),
                period => period,
            },
            schedule: machine.schedule.clone(),
            layout,
            plan: match layout {
                Layout::Queues(plan) => Some(plan),
                _ => None,
            },
            now: 0,
            number: 0,
            events: BinaryHeap::new(),
            pending: dag.parents.clone(),
            left: dag.work.clone(),
            unfinished: dag.len(),
            latencies: 0,
            busy_in_quantum: vec![0; levels],
            accounts: Accounts::new(machine.workers, levels),
            contest: Contest::new(dag.work_by_level()),
            vain_quanta: 0,
            visible: vec![0; levels],
            with_work: 0,
            workers: (0..machine.workers).map(worker).collect(),
            // Worker 0 is woken first.
            sleeping: (0..machine.workers as u32).rev().collect(),
            idle: machine.workers,
            deques: Deques::new(machine.workers, levels),
            queues: LocalQueues::new(machine.workers, levels, shared),
            home: vec![NONE; dag.threads.len()],
            waits_in: vec![NONE; dag.len()],
            before: serial::predecessors(dag),
            dice: dice.split(u64::MAX),
            report: Report {
                workers: machine.workers,
                responses: dag.threads.iter().enumerate().map(response).collect(),
                levels: (0..levels).map(|_| Default::default()).collect(),
                digest: 0xcbf2_9ce4_8422_2325,
                ..Report::default()
            },
        }
    }

    fn run(mut self) -> Result<Report, MachineError> {
        for (number, thread) in self.dag.threads.iter().enumerate() {
            if let Some(time) = thread.release {
                // The release is one more parent.
                self.pending[thread.first as usize] += 1;
                self.at(time, 0, Event::Release(number as Thread));
            }
        }
        if !matches!(self.schedule, Schedule::Prompt) {
            for me in 0..self.workers.len() {
                self.take_seat(me);
            }
        }
        self.begin_quantum();
        while self.unfinished > 0 {
            let Some(Reverse(timed)) = self.events.pop() else {
                return Err(MachineError::Starved {
                    vertices: self.unfinished,
                });
            };
            self.advance(timed.time);
            match timed.event {
                Event::Done(worker) => self.done(worker as usize),
                Event::Over(vertex) => {
                    self.latencies -= 1;
                    self.parent_done(vertex, None);
                }
                Event::Release(thread) => {
                    let vertex = self.dag.threads[thread as usize].first;
                    self.parent_done(vertex, None);
                }
                Event::Quantum => {
                    if self.is_stuck() {
                        return Err(MachineError::Starved {
                            vertices: self.unfinished,
                        });
                    }
                    self.quantum();
                }
                Event::Decide(worker) => self.decide(worker as usize),
            }
        }
        let end = self.now;
        for worker in &self.workers {
            if let State::Asleep(since) = worker.state {
                self.report.asleep += end - since;
            }
        }
        self.report.makespan = end;
        self.report.summarise(self.dag.levels());
        Ok(self.report)
    }

    fn at(&mut self, time: u64, class: u8, event: Event) {
        self.number += 1;
        self.events.push(Reverse(Timed {
            time,
            class,
            number: self.number,
            event,
        }));
    }

    fn advance(&mut self, time: u64) {
        let passed = time - self.now;
        if passed > 0 {
            let ready: usize = self.visible.iter().sum();
            self.report.idle_while_ready += passed * self.idle.min(ready) as u64;
            self.now = time;
        }
    }

    /// Only quanta are left, and they change nothing any more.
    fn is_stuck(&mut self) -> bool {
        let moves = !self.events.is_empty() || self.idle < self.workers.len();
        self.vain_quanta = if moves { 0 } else { self.vain_quanta + 1 };
        self.vain_quanta > MOST_VAIN_QUANTA
    }

    /// A worker ran its vertex, or a slice of it.
    fn done(&mut self, me: usize) {
        self.count_run(me);
        let worker = &mut self.workers[me];
        let (vertex, slice) = (worker.running, std::mem::take(&mut worker.slice));
        worker.counted = 0;
        let level = self.dag.level(vertex);
        worker.last = vertex;
        self.report.work += slice;
        self.report.levels[usize::from(level)].busy += slice;
        self.contested(level, slice);
        let worker = &mut self.workers[me];
        if self.report.schedule.len() < self.machine.record {
            self.report.schedule.push(Span {
                worker: me as u32,
                thread: self.dag.thread_of[vertex as usize],
                level,
                start: self.now - slice,
                end: self.now,
            });
        }
        self.left[vertex as usize] -= slice;
        if self.left[vertex as usize] > 0 {
            worker.next = vertex;
        } else {
            self.finished(me, vertex);
        }
        self.at(self.now, 1, Event::Decide(me as u32));
    }

    /// All of a vertex has run: its thread goes on, waits, or ends, and others become ready.
    fn finished(&mut self, me: usize, vertex: Vertex) {
        self.unfinished -= 1;
        let thread = self.dag.thread_of[vertex as usize];
        self.home[thread as usize] = me as u32;
        let next = self.dag.next[vertex as usize];
        if next == NONE {
            self.report.responses[thread as usize].done = self.now;
        }
        self.enable_targets(me, vertex);
        if next != NONE && self.workers[me].next == NONE && self.pending[next as usize] > 0 {
            self.suspend(me, next);
        }
    }

    /// A worker starts to run a vertex, so many nanoseconds from now.
    fn start(&mut self, me: usize, vertex: Vertex, delay: u64) {
        let left = self.left[vertex as usize];
        let slice = self.machine.check_in.map_or(left, |most| left.min(most));
        self.report.scheduling += delay;
        let worker = &mut self.workers[me];
        if worker.state != State::Busy {
            worker.state = State::Busy;
            self.idle -= 1;
        }
        worker.failed = 0;
        worker.spins = 0;
        worker.running = vertex;
        worker.next = NONE;
        worker.slice = slice;
        worker.counted = 0;
        worker.started = self.now + delay;
        worker.level = self.dag.level(vertex);
        let starts = left == self.dag.work[vertex as usize];
        let before = self.before[vertex as usize];
        if starts && before != NONE && worker.last != before {
            self.report.deviations += 1;
        }
        let started = worker.started;
        for part in [u64::from(vertex), me as u64, started] {
            self.report.digest = (self.report.digest ^ part).wrapping_mul(0x0100_0000_01b3);
        }
        self.at(started + slice, 0, Event::Done(me as u32));
    }
}
