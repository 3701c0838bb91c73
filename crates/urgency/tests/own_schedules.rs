//! Schedules of a program's own that answer what none of the built-in ones does: nothing is lost, and nothing panics.

mod common;

use common::{ends, quiet};
use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering::*},
    },
    thread,
    time::Duration,
};
use urgency::{
    BuildError, Runtime, Shutdown,
    life::PanicPolicy,
    policy::{LevelSchedule, Otherwise, Schedule},
};
use urgency_policy::level::{Period, Seat, Use};

urgency::levels! { Two: Upper > Lower }

fn two(workers: usize, schedule: impl Into<Schedule>) -> Runtime {
    let builder = Runtime::builder().workers(workers).levels::<Two>();
    builder.schedule(schedule).build().unwrap()
}

/// Each worker waits for the level of its number, as `FixedShares` would have it; it does not say so.
#[derive(Clone, Debug)]
struct Silent {
    period: Period,
}

impl LevelSchedule for Silent {
    fn period(&self) -> Period {
        self.period
    }

    fn seat(&mut self, worker: usize, _: usize, _: u64) -> Seat {
        Seat::at((worker % 2) as u8, Otherwise::Wait)
    }
}

#[test]
fn seats_that_wait_lose_no_wake_up_though_their_schedule_says_that_it_conserves_work() {
    for workers in [2, 8] {
        ends(move || {
            let runtime = two(
                workers,
                Schedule::own(Silent {
                    period: Period::Never,
                }),
            );
            for round in 0..3000 {
                let upper = runtime.at(Upper).spawn(async move { round });
                let lower = runtime.at(Lower).spawn(async move { round });
                assert_eq!(upper.get().unwrap() + lower.get().unwrap(), 2 * round);
                if round % 100 == 0 {
                    thread::sleep(Duration::from_millis(1));
                }
            }
        });
    }
}

/// All workers wait for one level, and for the other one in the next round.
#[derive(Clone, Debug, Default)]
struct InTurn {
    rounds: usize,
}

impl LevelSchedule for InTurn {
    fn period(&self) -> Period {
        Period::EachWorker(5_000_000)
    }

    fn seat(&mut self, _: usize, _: usize, _: u64) -> Seat {
        self.rounds += 1;
        Seat::at((self.rounds % 2) as u8, Otherwise::Wait)
    }

    fn is_work_conserving(&self) -> bool {
        false
    }
}

#[test]
fn the_round_of_a_worker_that_waits_ends_while_other_levels_have_work() {
    for workers in [1, 2] {
        ends(move || {
            let runtime = two(workers, Schedule::own(InTurn::default()));
            for round in 0..40 {
                let upper = runtime.at(Upper).spawn(async move {
                    for _ in 0..20 {
                        common::fib(18);
                        urgency::yield_now().await;
                    }
                    round
                });
                let lower = runtime.at(Lower).spawn(async move { round });
                assert_eq!(upper.get().unwrap() + lower.get().unwrap(), 2 * round);
            }
        });
    }
}

#[test]
fn a_quantum_may_be_longer_than_the_clock_lasts() {
    ends(|| {
        for nanos in [u64::MAX, u64::MAX / 2, u64::MAX / 3, 1, 0] {
            let runtime = two(
                2,
                Schedule::own(Silent {
                    period: Period::AllWorkers(nanos),
                }),
            );
            let upper = runtime.at(Upper).spawn_fn(|| common::fib(24));
            let lower = runtime.at(Lower).spawn_fn(|| common::fib(24));
            assert_eq!(upper.get().unwrap(), lower.get().unwrap());
        }
    });
}

/// Says each period once, and the last one from then on.
#[derive(Clone, Debug)]
struct ChangesItsMind {
    periods: [Period; 2],
    said: Arc<AtomicUsize>,
    asked: Arc<AtomicUsize>,
}

impl LevelSchedule for ChangesItsMind {
    fn period(&self) -> Period {
        self.periods[self.said.fetch_add(1, SeqCst).min(1)]
    }

    fn seat(&mut self, worker: usize, _: usize, _: u64) -> Seat {
        self.asked.fetch_add(1, SeqCst);
        Seat::at((worker % 2) as u8, Otherwise::Donate)
    }

    fn reallocate(&mut self, _: &[Use], _: &mut [Seat]) {
        self.asked.fetch_add(1, SeqCst);
    }
}

#[test]
fn the_period_that_a_schedule_says_first_holds() {
    let (rounds, quanta) = (Period::EachWorker(1_000_000), Period::AllWorkers(1_000_000));
    for periods in [[rounds, quanta], [quanta, rounds], [rounds, Period::Never]] {
        ends(move || {
            let own = ChangesItsMind {
                periods,
                said: Arc::default(),
                asked: Arc::default(),
            };
            let asked = own.asked.clone();
            let runtime = two(2, Schedule::own(own));
            let end = Arc::new(AtomicBool::new(false));
            let spin = |_| {
                let end = end.clone();
                runtime.at(Lower).spawn_fn(move || {
                    while !end.load(SeqCst) {
                        urgency::scheduling_point();
                    }
                })
            };
            let tasks: Vec<_> = (0..4).map(spin).collect();
            // It is asked at one expiry after the other: it has neither panicked nor been left alone.
            common::until(|| asked.load(SeqCst) > 20);
            end.store(true, SeqCst);
            tasks.into_iter().for_each(|task| task.get().unwrap());
        });
    }
}

#[derive(Clone, Debug)]
struct Panics {
    asked: Arc<AtomicUsize>,
}

impl LevelSchedule for Panics {
    fn period(&self) -> Period {
        Period::AllWorkers(1_000_000)
    }

    fn reallocate(&mut self, _: &[Use], _: &mut [Seat]) {
        self.asked.fetch_add(1, SeqCst);
    }

    fn seat(&mut self, worker: usize, _: usize, _: u64) -> Seat {
        self.asked.fetch_add(1, SeqCst);
        assert_eq!(worker, 0, "on purpose");
        Seat::at(1, Otherwise::Wait)
    }

    fn is_work_conserving(&self) -> bool {
        false
    }
}

#[test]
fn a_schedule_that_panics_when_it_is_set_is_not_asked_again() {
    quiet();
    ends(|| {
        let runtime = two(2, Schedule::Prompt);
        let asked = Arc::new(AtomicUsize::new(0));
        let own = Schedule::own(Panics {
            asked: asked.clone(),
        });
        let set = catch_unwind(AssertUnwindSafe(|| runtime.set_schedule(own)));
        assert!(set.is_err(), "the code that set it learns of it");
        let spin = |turns: usize| async move {
            for _ in 0..turns {
                urgency::yield_now().await;
            }
        };
        let tasks: Vec<_> = (0..6)
            .map(|number| match number % 2 {
                0 => runtime.at(Upper).spawn(spin(20_000)),
                _ => runtime.at(Lower).spawn(spin(20_000)),
            })
            .collect();
        tasks.into_iter().for_each(|task| task.get().unwrap());
        assert_eq!(asked.load(SeqCst), 2, "for two workers");
    });
}

/// Any seats, any answers, by lot.
#[derive(Clone, Debug)]
struct Nonsense {
    period: Period,
    says: bool,
    state: u64,
}

impl Nonsense {
    fn draw(&mut self) -> u64 {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        self.state
    }

    fn any(&mut self) -> Seat {
        let level = match self.draw() % 8 {
            0 => return Seat::PROMPT,
            1 => (self.draw() % 64) as u8,
            _ => (self.draw() % 2) as u8,
        };
        let otherwise = match self.draw() % 2 {
            0 => Otherwise::Wait,
            _ => Otherwise::Donate,
        };
        Seat::at(level, otherwise).with_ahead(self.draw())
    }
}

impl LevelSchedule for Nonsense {
    fn period(&self) -> Period {
        self.period
    }

    fn seat(&mut self, _: usize, _: usize, _: u64) -> Seat {
        self.any()
    }

    fn settle(&mut self, _: &[u64]) -> u64 {
        self.draw()
    }

    fn reallocate(&mut self, _: &[Use], seats: &mut [Seat]) {
        seats.iter_mut().for_each(|seat| *seat = self.any());
    }

    fn is_work_conserving(&self) -> bool {
        self.says
    }
}

#[test]
fn under_a_schedule_by_lot_all_work_is_done() {
    let seed = common::number("URGENCY_TEST_SEED", 7);
    for period in [
        Period::EachWorker(0),
        Period::EachWorker(2_000_000),
        Period::AllWorkers(0),
        Period::AllWorkers(2_000_000),
    ] {
        for (workers, says) in [(1, true), (2, false), (2, true), (8, false), (64, true)] {
            ends(move || {
                let state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
                let own = Nonsense {
                    period,
                    says,
                    state,
                };
                let runtime = two(workers, Schedule::own(own));
                let tasks: Vec<_> = (0..40u64)
                    .map(|number| {
                        let level = if number % 2 == 0 {
                            runtime.at(Upper)
                        } else {
                            runtime.at(Lower)
                        };
                        match number % 3 {
                            0 => level.spawn_fn(move || common::fib(10 + number % 10)),
                            1 => level.spawn(async move {
                                for _ in 0..20 {
                                    urgency::yield_now().await;
                                }
                                common::fib(10 + number % 10)
                            }),
                            _ => level.spawn_fn(move || {
                                let n = 10 + number % 10;
                                let (a, b) =
                                    urgency::join(|| common::fib(n - 1), || common::fib(n - 2));
                                a + b
                            }),
                        }
                    })
                    .collect();
                for (number, task) in (0..).zip(tasks) {
                    assert_eq!(task.get().unwrap(), common::fib(10 + number % 10));
                }
            });
        }
    }
}

#[derive(Debug)]
struct PanicsAsItIsCloned;

impl Clone for PanicsAsItIsCloned {
    fn clone(&self) -> Self {
        panic!("on purpose")
    }
}

impl LevelSchedule for PanicsAsItIsCloned {
    fn period(&self) -> Period {
        Period::Never
    }

    fn seat(&mut self, _: usize, _: usize, _: u64) -> Seat {
        Seat::at(0, Otherwise::Wait)
    }
}

#[test]
fn a_runtime_that_could_not_be_built_keeps_no_place_on_the_workers_of_another() {
    quiet();
    ends(|| {
        let first = Runtime::builder().workers(1).build().unwrap();
        let beside = || {
            Runtime::builder()
                .share_workers_with(&first)
                .levels::<Two>()
        };
        let third = beside();
        let second = beside().schedule(Schedule::own(PanicsAsItIsCloned));
        assert!(catch_unwind(AssertUnwindSafe(|| second.build())).is_err());
        first.shutdown(Shutdown::Drain);
        let built = third.build().map(drop);
        assert_eq!(built.unwrap_err(), BuildError::SharedWorkersEnded);
    });
}

/// One of its drops panics.
#[derive(Clone, Debug)]
struct PanicsOnceDropped(Arc<AtomicBool>);

impl Drop for PanicsOnceDropped {
    fn drop(&mut self) {
        assert!(!self.0.swap(false, SeqCst), "on purpose");
    }
}

impl LevelSchedule for PanicsOnceDropped {
    fn period(&self) -> Period {
        Period::Never
    }

    fn seat(&mut self, _: usize, _: usize, _: u64) -> Seat {
        Seat::at(0, Otherwise::Donate)
    }
}

#[test]
fn a_runtime_whose_builder_panics_when_it_is_dropped_is_gone() {
    quiet();
    ends(|| {
        let kept = Arc::new(());
        let its = kept.clone();
        let on_panic = PanicPolicy::call(move |_| _ = &its);
        let schedule = PanicsOnceDropped(Arc::new(AtomicBool::new(true)));
        let builder = Runtime::builder().workers(1).levels::<Two>();
        let builder = builder.on_panic(on_panic).schedule(Schedule::own(schedule));
        assert!(catch_unwind(AssertUnwindSafe(|| builder.build())).is_err());
        common::until(|| Arc::strong_count(&kept) == 1);
    });
}
