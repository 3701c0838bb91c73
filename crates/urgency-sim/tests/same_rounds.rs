//! The runtime and the simulator settle rounds alike: what each of them asks of a schedule is what the policy says.
//!
//! A schedule in fair rounds writes down how it is used: time that is moved, settlements, charges, seats. One worker
//! runs two levels that have work all the time. What was written down is replayed: a fresh copy of the schedule gets
//! the times that were measured, and `Settlement` decides what is moved. Each mechanism must have decided the same.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};
use urgency::Runtime;
use urgency_policy::level::{Criterion, LevelSchedule, Period, Rounds, Schedule, Seat, Settlement};
use urgency_sim::{Machine, dag, run};

urgency::levels! { Two: Upper > Lower }

/// So many calls are compared.
const CALLS: usize = 300;

/// A use of the schedule, with what it answered.
#[derive(Clone, Debug, PartialEq)]
enum Call {
    Moved { ran: u8, primary: u8, nanos: u64 },
    Settled { ran: Vec<u64>, ahead: u64 },
    Charged { primary: Option<u8>, nanos: u64 },
    Seated { primary: Option<u8> },
}

#[derive(Clone, Debug)]
struct Listening {
    rounds: Rounds,
    calls: Arc<Mutex<Vec<Call>>>,
}

impl Listening {
    fn new() -> Self {
        let criterion = Criterion::from_shares(&[0.7, 0.3]).unwrap();
        Listening {
            rounds: Rounds::new(criterion),
            calls: Arc::default(),
        }
    }

    fn note(&self, call: Call) {
        self.calls.lock().unwrap().push(call);
    }

    fn take(&self) -> Vec<Call> {
        let mut calls = std::mem::take(&mut *self.calls.lock().unwrap());
        calls.truncate(CALLS);
        calls
    }
}

impl LevelSchedule for Listening {
    fn period(&self) -> Period {
        Period::EachWorker(self.rounds.length())
    }

    fn seat(&mut self, _: usize, _: usize, _: u64) -> Seat {
        let seat = self.rounds.seat();
        self.note(Call::Seated {
            primary: seat.primary(),
        });
        seat
    }

    fn charge(&mut self, seat: Seat, nanos: u64) {
        let primary = seat.primary();
        if let Some(level) = primary {
            self.rounds.charge(level, nanos);
        }
        self.note(Call::Charged { primary, nanos });
    }

    fn settle(&mut self, ran: &[u64]) -> u64 {
        let ahead = self.rounds.settle(ran);
        self.note(Call::Settled {
            ran: ran.to_vec(),
            ahead,
        });
        ahead
    }

    fn move_time(&mut self, ran: u8, primary: u8, nanos: u64) {
        self.rounds.move_time(ran, primary, nanos);
        self.note(Call::Moved {
            ran,
            primary,
            nanos,
        });
    }
}

/// What one worker asks whose levels always have work, if the same time passes.
fn replay(calls: &[Call]) -> Vec<Call> {
    let fresh = Listening::new();
    let mut schedule = Schedule::own(fresh.clone());
    let mut seat = Seat::PROMPT;
    for call in calls {
        match call {
            // Whether it comes is for the settlement to say.
            Call::Moved { .. } => {}
            Call::Settled { ran, .. } => {
                let mut settlement = Settlement::new(2, 0b11, 0b11);
                for (level, nanos) in (0u8..).zip(ran) {
                    settlement.ran(&mut schedule, seat, 0b11, level, *nanos);
                }
                seat = seat.with_ahead(settlement.end(&mut schedule));
            }
            Call::Charged { nanos, .. } => schedule.charge(seat, *nanos),
            Call::Seated { .. } => seat = schedule.seat(0, 1, 0b11),
        }
    }
    fresh.take()
}

#[track_caller]
fn is_what_the_policy_says(calls: &[Call]) {
    assert_eq!(calls.len(), CALLS);
    let count = |is: fn(&Call) -> bool| calls.iter().filter(|call| is(call)).count();
    assert!(count(|call| matches!(call, Call::Moved { .. })) > 0);
    assert!(count(|call| matches!(call, Call::Charged { .. })) > 5);
    let replayed = replay(calls);
    for (number, (ours, policys)) in calls.iter().zip(&replayed).enumerate() {
        assert_eq!(ours, policys, "call {number} of {calls:#?}");
    }
}

#[test]
fn the_runtime_settles_rounds_as_the_policy_says() {
    let listening = Listening::new();
    let runtime = Runtime::builder().workers(1).levels::<Two>();
    let runtime = runtime.schedule(Schedule::own(listening.clone()));
    let runtime = runtime.build().unwrap();
    let ends = Arc::new(AtomicBool::new(false));
    let spin = |ends: Arc<AtomicBool>| async move {
        while !ends.load(Ordering::Relaxed) {
            urgency::yield_now().await;
        }
    };
    let tasks: Vec<_> = (0..8)
        .map(|number| match number % 2 {
            0 => runtime.at(Upper).spawn(spin(ends.clone())),
            _ => runtime.at(Lower).spawn(spin(ends.clone())),
        })
        .collect();
    while listening.calls.lock().unwrap().len() < CALLS {
        thread::sleep(Duration::from_millis(10));
    }
    is_what_the_policy_says(&listening.take());
    ends.store(true, Ordering::Relaxed);
    for task in tasks {
        task.get().unwrap();
    }
}

#[test]
fn the_simulator_settles_rounds_as_the_policy_says() {
    let listening = Listening::new();
    let mut dag = dag::Builder::new();
    for number in 0..8 {
        let thread = dag.root(number % 2, 0);
        for _ in 0..5000 {
            let vertex = dag.step(thread, 30_000);
            dag.yields(vertex, dag::Yields::Near);
        }
    }
    let machine = Machine {
        workers: 1,
        schedule: Schedule::own(listening.clone()),
        ..Machine::default()
    };
    run(&dag.build().unwrap(), &machine).unwrap();
    is_what_the_policy_says(&listening.take());
}
