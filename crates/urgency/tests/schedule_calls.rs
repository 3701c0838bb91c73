//! What a schedule between levels does inside of its own methods hangs nothing: another schedule is an error, a wait is
//! a panic that says so, after which the workers are prompt, and the end of the runtime comes after the call.

mod common;

use common::{ends, panics, quiet, still_works, until};
use std::{
    fmt,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering::SeqCst},
        mpsc::channel,
    },
};
use urgency::{
    BuildError, Criterion, JoinHandle, Runtime, block_on, join,
    policy::{LevelSchedule, Otherwise, Schedule, ScheduleError},
    scheduling_point,
};
use urgency_policy::level::{Period, Seat, Use};

urgency::levels! { Two: Upper > Lower }

type Call = Box<dyn FnOnce() + Send>;

/// Makes one call, inside of a method that a runtime asks.
#[derive(Clone)]
struct Calls {
    period: Period,
    call: Arc<Mutex<Option<Call>>>,
    made: Arc<AtomicBool>,
}

impl fmt::Debug for Calls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Calls({:?})", self.period)
    }
}

impl Calls {
    fn new(period: Period) -> Self {
        Calls {
            period,
            call: Arc::default(),
            made: Arc::default(),
        }
    }

    fn make(&self, call: impl FnOnce() + Send + 'static) {
        *self.call.lock().unwrap() = Some(Box::new(call));
    }

    fn makes(&self) {
        let call = self.call.lock().unwrap().take();
        if let Some(call) = call {
            call();
            self.made.store(true, SeqCst);
        }
    }
}

impl LevelSchedule for Calls {
    fn period(&self) -> Period {
        self.period
    }

    fn seat(&mut self, worker: usize, _: usize, _: u64) -> Seat {
        self.makes();
        Seat::at((worker % 2) as u8, Otherwise::Donate)
    }

    fn reallocate(&mut self, _: &[Use], _: &mut [Seat]) {
        self.makes();
    }
}

const PERIODS: [Period; 2] = [Period::EachWorker(1_000_000), Period::AllWorkers(1_000_000)];

fn two(workers: usize, schedule: Calls) -> Runtime {
    let builder = Runtime::builder().workers(workers).levels::<Two>();
    builder.schedule(Schedule::own(schedule)).build().unwrap()
}

/// Work of both levels, for more workers than there are, until it is told to end: rounds and quanta end meanwhile.
fn busy(runtime: &Runtime, workers: usize) -> (Vec<JoinHandle<()>>, Arc<AtomicBool>) {
    let end = Arc::new(AtomicBool::new(false));
    let spin = |number: usize| {
        let end = end.clone();
        let at = match number % 2 {
            0 => runtime.at(Upper),
            _ => runtime.at(Lower),
        };
        at.spawn_fn(move || {
            while !end.load(SeqCst) {
                scheduling_point();
            }
        })
    };
    ((0..2 * workers).map(spin).collect(), end)
}

/// Runs `call` inside of a method that is asked at an expiry, with one worker and with two.
fn inside(call: impl Fn(&Runtime) + Send + Clone + 'static, is_made: bool) {
    quiet();
    for (workers, period) in [1, 2].into_iter().flat_map(|n| PERIODS.map(|p| (n, p))) {
        let call = call.clone();
        ends(move || {
            let schedule = Calls::new(period);
            let runtime = two(workers, schedule.clone());
            let (tasks, end) = busy(&runtime, workers);
            let (its, has_begun) = (runtime.clone(), Arc::new(AtomicBool::new(false)));
            let begins = has_begun.clone();
            schedule.make(move || {
                begins.store(true, SeqCst);
                call(&its);
            });
            until(|| has_begun.load(SeqCst));
            if is_made {
                until(|| schedule.made.load(SeqCst));
            }
            end.store(true, SeqCst);
            tasks.into_iter().for_each(|task| task.get().unwrap());
            still_works(&runtime);
            assert_eq!(schedule.made.load(SeqCst), is_made);
        });
    }
}

fn deciding() -> BuildError {
    BuildError::Schedule(ScheduleError::Deciding)
}

fn fork() {
    join(|| (), || ());
}

fn halves() -> Criterion {
    Criterion::from_shares(&[0.5, 0.5]).unwrap()
}

#[test]
fn another_schedule_is_refused_inside_of_a_schedule() {
    inside(
        |runtime| {
            assert_eq!(runtime.set_schedule(Schedule::Prompt), Err(deciding()));
            assert_eq!(runtime.set_fairness(halves()), Err(deciding()));
        },
        true,
    );
}

#[test]
fn another_schedule_of_another_runtime_is_refused_inside_of_a_schedule() {
    ends(|| {
        let schedules = PERIODS.map(Calls::new);
        let [one, other] = schedules.clone().map(|schedule| two(1, schedule));
        let all = [&one, &other].map(|runtime| busy(runtime, 1));
        for (schedule, runtime) in schedules.iter().zip([&other, &one]) {
            let runtime = runtime.clone();
            schedule.make(move || {
                assert_eq!(runtime.set_schedule(Schedule::Prompt), Err(deciding()));
            });
        }
        until(|| schedules.iter().all(|schedule| schedule.made.load(SeqCst)));
        for (tasks, end) in all {
            end.store(true, SeqCst);
            tasks.into_iter().for_each(|task| task.get().unwrap());
        }
    });
}

#[test]
fn a_wait_or_a_fork_inside_of_a_schedule_is_a_panic_and_the_runtime_goes_on() {
    inside(|_| block_on(std::future::pending::<()>()), false);
    // A task that has ended is not waited for.
    inside(
        |runtime| drop(runtime.spawn(std::future::pending::<()>()).get()),
        false,
    );
    inside(|_| fork(), false);
    inside(|runtime| runtime.run(|| ()), false);
}

#[test]
fn the_code_that_sets_a_schedule_which_waits_hears_of_it() {
    for workers in [1, 2] {
        ends(move || {
            let builder = Runtime::builder().workers(workers).levels::<Two>();
            let runtime = builder.build().unwrap();
            let set = |call: fn()| {
                let schedule = Calls::new(Period::Never);
                schedule.make(call);
                let text = panics(|| runtime.set_schedule(Schedule::own(schedule)));
                assert!(
                    text.contains("a policy may neither fork nor wait"),
                    "{text}"
                );
            };
            let wait = || block_on(std::future::pending::<()>());
            set(wait);
            set(fork);
            runtime.run(|| {
                set(wait);
                set(fork);
            });
            still_works(&runtime);
        });
    }
}

#[test]
fn a_task_that_a_schedule_spawns_runs() {
    let (tell, told) = channel();
    inside(
        move |runtime| {
            let tell = tell.clone();
            let task = runtime.spawn_fn(move || tell.send(()).unwrap());
            task.detach();
        },
        true,
    );
    assert_eq!(told.iter().count(), 4);
}

#[test]
fn a_schedule_that_drops_the_last_handle_of_its_runtime_ends_it() {
    for (workers, period) in [1, 2].into_iter().flat_map(|n| PERIODS.map(|p| (n, p))) {
        ends(move || {
            let schedule = Calls::new(period);
            let runtime = two(workers, schedule.clone());
            let (tasks, end) = busy(&runtime, workers);
            let handle = runtime.handle().clone();
            schedule.make(move || drop(runtime));
            until(|| schedule.made.load(SeqCst));
            end.store(true, SeqCst);
            for task in tasks {
                // It has begun, and ends by itself, or is cancelled.
                drop(task.get());
            }
            assert!(handle.spawn(async {}).get().is_err());
        });
    }
}

/// Calls `at_end` when its last clone is dropped.
#[derive(Clone, Debug)]
struct Ends(#[allow(dead_code, reason = "dropped")] Arc<AtEnd>);

struct AtEnd(Mutex<Option<Call>>);

impl fmt::Debug for AtEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AtEnd")
    }
}

impl Drop for AtEnd {
    fn drop(&mut self) {
        self.0
            .get_mut()
            .unwrap()
            .take()
            .into_iter()
            .for_each(|call| call());
    }
}

impl LevelSchedule for Ends {
    fn period(&self) -> Period {
        Period::Never
    }

    fn seat(&mut self, _: usize, _: usize, _: u64) -> Seat {
        Seat::PROMPT
    }
}

#[test]
fn a_schedule_that_waits_when_it_is_dropped_is_told_and_the_runtime_goes_on() {
    quiet();
    for workers in [1, 2] {
        ends(move || {
            let (tell, told) = channel();
            let builder = Runtime::builder().workers(workers).levels::<Two>();
            let runtime = builder.build().unwrap();
            let its = runtime.clone();
            let at_end = move || {
                let text = panics(fork);
                let refused = its.set_schedule(Schedule::Prompt);
                tell.send((text, refused)).unwrap();
                panic!("on purpose");
            };
            let schedule = Ends(Arc::new(AtEnd(Mutex::new(Some(Box::new(at_end))))));
            runtime.set_schedule(Schedule::own(schedule)).unwrap();
            runtime.run(|| runtime.set_fairness(halves()).unwrap());
            let (text, refused) = told.recv().unwrap();
            assert!(
                text.contains("a policy may neither fork nor wait"),
                "{text}"
            );
            assert_eq!(refused, Err(deciding()));
            still_works(&runtime);
        });
    }
}
