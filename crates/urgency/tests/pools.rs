//! Orders within a level other than aging: which order, nothing lost, nothing left behind, yields that come
//! to their end.

mod common;
#[path = "common/one_by_one.rs"]
mod one_by_one;
#[path = "common/program.rs"]
mod program;

use common::{Random, ends, quiet};
use one_by_one::order;
use program::run_random;
use std::sync::{
    Arc, Mutex,
    atomic::{AtomicBool, AtomicUsize, Ordering::*},
};
use urgency::{
    BuildError, LevelId, Runtime,
    policy::{
        Adaptive, Amount, AnyOrder, Asking, Criterion, FixedShares, Kind, Order, Otherwise,
        Overflow, Parameters, Pick, Plan, PlanError, Rounds, Schedule, Sharing, Victims,
    },
    yield_far, yield_now,
};
urgency::levels! { Two: Upper > Lower }
urgency::levels! { Four: L0 > L1 > L2 > L3 }

fn with(kind: impl Into<AnyOrder>, workers: usize) -> Runtime {
    let builder = Runtime::builder().workers(workers);
    builder.pool(kind).build().unwrap()
}

fn named(name: &str) -> Kind {
    name.parse().unwrap()
}

#[test]
#[cfg_attr(urgency_chaos, ignore = "chaos changes the order")]
fn each_order_is_the_one_that_its_name_says() {
    ends(|| {
        assert_eq!(order(Kind::Aging, 6), [0, 1, 2, 3, 4, 5]);
        assert_eq!(order(named("fifo"), 6), [0, 1, 2, 3, 4, 5]);
        assert_eq!(order(named("lifo"), 6), [5, 4, 3, 2, 1, 0]);
        assert_eq!(order(named("parsimonious"), 6), [5, 4, 3, 2, 1, 0]);
        assert_eq!(order(named("proactive-newest"), 6), [5, 4, 3, 2, 1, 0]);
        assert_eq!(order(named("slot"), 6), [5, 0, 1, 2, 3, 4]);
        let thirds = Kind::Queues(Plan::FIFO.in_order(Order::Reverse { every: 3 }));
        // The closure was the first of three, and its result wakes nobody of the runtime.
        assert_eq!(order(thirds, 6), [5, 4, 0, 1, 2, 3]);
        let mut small = Plan::FIFO.in_order(Order::Newest);
        small = small.bounded(2, Overflow::Shared(1));
        assert_eq!(order(Kind::Queues(small), 6), [1, 0, 2, 3, 4, 5]);
    });
}

/// Children of a closure that spins without a scheduling point, on the other worker, whatever their queue.
#[test]
fn under_every_kind_nothing_is_left_behind_a_long_run() {
    ends(|| {
        for (name, kind, _) in Kind::NAMED {
            println!("{name}");
            let runtime = with(kind, 2);
            let spinner = runtime.spawn_fn(|| {
                let ran = Arc::new(AtomicUsize::new(0));
                for _ in 0..3 {
                    let ran = ran.clone();
                    urgency::spawn(async move { ran.fetch_add(1, Relaxed) }).detach();
                }
                while ran.load(Relaxed) < 3 {
                    std::hint::spin_loop();
                }
            });
            spinner.get().unwrap();
        }
    });
}

#[test]
fn under_every_kind_a_spinning_task_gets_out_of_the_way_by_a_far_yield() {
    ends(|| {
        for (name, kind, _) in Kind::NAMED {
            println!("{name}");
            let runtime = with(kind, 1);
            let flag = Arc::new(AtomicBool::new(false));
            let theirs = flag.clone();
            let spinner = runtime.spawn(async move {
                let mut yields = 0;
                while !theirs.load(Relaxed) {
                    yield_far().await;
                    yields += 1;
                }
                yields
            });
            let setter = runtime.spawn(async move {
                yield_now().await;
                flag.store(true, Relaxed);
            });
            setter.get().unwrap();
            spinner.get().unwrap();
        }
    });
}

#[test]
fn two_tasks_that_wake_each_other_in_the_slot_do_not_keep_a_third_from_running() {
    ends(|| {
        let runtime = with(named("slot"), 1);
        let stop = Arc::new(AtomicBool::new(false));
        let (there, here) = (urgency::sync::Notify::new(), urgency::sync::Notify::new());
        let both = Arc::new((there, here));
        let ends = [true, false].map(|first| {
            let (both, stop) = (both.clone(), stop.clone());
            runtime.spawn(async move {
                let (mine, other) = if first {
                    (&both.0, &both.1)
                } else {
                    (&both.1, &both.0)
                };
                while !stop.load(Relaxed) {
                    other.notify_one();
                    mine.notified().await;
                }
                other.notify_one();
            })
        });
        let stopped = stop.clone();
        let third = runtime.spawn(async move { stopped.store(true, Relaxed) });
        third.get().unwrap();
        for end in ends {
            end.get().unwrap();
        }
    });
}

#[test]
fn under_every_kind_tasks_that_yield_far_let_an_older_one_run() {
    ends(|| {
        for (name, kind, _) in Kind::NAMED {
            println!("{name}");
            let runtime = with(kind, 2);
            let flag = Arc::new(AtomicBool::new(false));
            let all = runtime.spawn_fn(move || {
                let theirs = flag.clone();
                let setter = urgency::spawn(async move { theirs.store(true, Relaxed) });
                // More of them than workers: each would be the newest after its yield.
                let spinners: Vec<_> = (0..4)
                    .map(|_| {
                        let flag = flag.clone();
                        urgency::spawn(async move {
                            while !flag.load(Relaxed) {
                                yield_far().await;
                            }
                        })
                    })
                    .collect();
                setter.get().unwrap();
                spinners
                    .into_iter()
                    .for_each(|spinner| spinner.get().unwrap());
            });
            all.get().unwrap();
        }
    });
}

/// Spawns what follows it, so many times.
fn chain(links: usize, ended: Arc<AtomicUsize>) {
    urgency::spawn(async move {
        if links == 0 {
            ended.fetch_add(1, Relaxed);
        } else {
            chain(links - 1, ended);
        }
    })
    .detach();
}

/// Spawns two of the same, so many times.
fn tree(depth: usize, ended: Arc<AtomicUsize>) {
    urgency::spawn(async move {
        if depth == 0 {
            ended.fetch_add(1, Relaxed);
        } else {
            tree(depth - 1, ended.clone());
            tree(depth - 1, ended);
        }
    })
    .detach();
}

#[test]
fn spawners_do_not_wait_for_each_other_at_a_bounded_queue() {
    ends(|| {
        for workers in [1, 2] {
            let runtime = with(Kind::Queues(Plan::FIFO.bounded(8, Overflow::Wait)), workers);
            let ended = Arc::new(AtomicUsize::new(0));
            let theirs = ended.clone();
            runtime
                .spawn_fn(move || {
                    (0..64).for_each(|_| chain(20, theirs.clone()));
                    tree(8, theirs);
                })
                .get()
                .unwrap();
            while ended.load(Relaxed) < 64 + 256 {
                std::thread::yield_now();
            }
            let threads = runtime.stats().threads_peak;
            assert!(threads < 40, "{threads} threads for queues of 8");
        }
    });
}

#[test]
#[cfg_attr(urgency_chaos, ignore = "chaos relieves the spawner")]
fn a_bounded_queue_makes_its_spawner_wait_and_all_is_run() {
    ends(|| {
        let plan = Plan::FIFO.bounded(8, Overflow::Wait);
        let runtime = Arc::new(with(Kind::Queues(plan), 1));
        let inner = runtime.clone();
        let ran = Arc::new(AtomicUsize::new(0));
        let theirs = ran.clone();
        let spawner = runtime.spawn_fn(move || {
            let mut most = 0;
            for _ in 0..200 {
                let ran = theirs.clone();
                urgency::spawn(async move { ran.fetch_add(1, Relaxed) }).detach();
                most = most.max(inner.stats().levels[0].queued);
            }
            most
        });
        let most = spawner.get().unwrap();
        assert!(most <= 9, "{most} were queued");
        while ran.load(Relaxed) < 200 {
            std::thread::yield_now();
        }
    });
}

#[test]
#[cfg_attr(urgency_chaos, ignore = "chaos changes the order")]
fn levels_have_kinds_of_their_own() {
    ends(|| {
        let runtime = Runtime::builder()
            .workers(1)
            .levels::<Two>()
            .pool(named("lifo"))
            .pool_at(Upper, Kind::Aging)
            .build()
            .unwrap();
        let order = |level: LevelId| loop {
            let before = runtime.stats().total().reliefs;
            let ran = Arc::new(Mutex::new(Vec::new()));
            let theirs = ran.clone();
            let spawner = runtime.at(level).spawn_fn(move || {
                let spawn = |i| {
                    let ran = theirs.clone();
                    urgency::spawn(async move { ran.lock().unwrap().push(i) })
                };
                (0..8).map(spawn).collect::<Vec<_>>()
            });
            for handle in spawner.get().unwrap() {
                handle.get().unwrap();
            }
            // As in `order`.
            if runtime.stats().total().reliefs == before {
                return Arc::into_inner(ran).unwrap().into_inner().unwrap();
            }
        };
        assert_eq!(order(Upper.into()), (0..8).collect::<Vec<_>>());
        assert_eq!(order(Lower.into()), (0..8).rev().collect::<Vec<_>>());
    });
}

#[test]
fn a_number_out_of_its_range_is_named() {
    let build = |kind| Runtime::builder().pool(kind).build().map(drop);
    let mix = Kind::Queues(Plan::FIFO.in_order(Order::Mix { newest: 120 }));
    assert_eq!(build(mix), Err(BuildError::Pool(PlanError::Percent(120))));
    let none = Kind::Queues(Plan::FIFO.bounded(8, Overflow::Shared(0)));
    let error = build(none).unwrap_err();
    assert!(error.to_string().contains("1 to 64"), "{error}");
    let level = urgency::LevelId::new(3).unwrap();
    let built = Runtime::builder().pool_at(level, Kind::Aging).build();
    assert_eq!(
        built.map(drop),
        Err(BuildError::NoSuchLevel { level, levels: 1 })
    );
}

#[test]
fn under_every_kind_random_programs_give_their_serial_results() {
    quiet();
    let even = Criterion::from_shares(&[0.25; 4]).unwrap();
    let schedules: [Schedule; 3] = [
        Schedule::Prompt,
        even.into(),
        Adaptive::new(4, Parameters::default()).unwrap().into(),
    ];
    let rounds = if cfg!(debug_assertions) { 1 } else { 10 };
    for seed in 0..rounds {
        for (number, (name, kind, _)) in Kind::NAMED.into_iter().enumerate() {
            let workers = 1 + (number + seed) % 4;
            let runtime = Runtime::builder()
                .workers(workers)
                .levels::<Four>()
                .pool(kind)
                .schedule(schedules[number % 3].clone())
                .build()
                .unwrap();
            println!("{name}, {workers} workers, seed {seed}");
            ends(move || run_random(runtime, seed as u64, 60));
        }
    }
}

fn one_of<T: Copy>(random: &mut Random, all: &[T]) -> T {
    all[random.below(all.len() as u64) as usize]
}

fn any_kind(random: &mut Random) -> Kind {
    let few = 1 + random.below(6) as usize;
    let every = 1 + random.below(9) as u32;
    let orders = [
        Order::Oldest,
        Order::Newest,
        Order::Slot { most: every },
        Order::Alternating,
        Order::Mix {
            newest: random.below(101) as u8,
        },
        Order::Reverse { every },
        Order::Deepest,
    ];
    let steal = |victims, amount| Sharing::Steal {
        victims,
        amount,
        least: few,
    };
    let request = |asking| Sharing::Request { asking, load: few };
    let ways = [
        steal(Victims::All, Amount::One),
        steal(Victims::Neighbours(few), Amount::Half),
        request(Asking::Simple),
        request(Asking::Sticky),
        request(Asking::Advertised),
        Sharing::Deal,
    ];
    let overflows = [
        Overflow::Grow,
        Overflow::Wait,
        Overflow::Shared(few),
        Overflow::LockFree(few),
    ];
    let picks = [Pick::Random, Pick::Newest, Pick::Oldest];
    match random.below(6) {
        0 => Kind::Aging,
        1 => Kind::Proactive {
            owner: one_of(random, &picks),
            thief: one_of(random, &picks),
        },
        _ => Kind::Queues(Plan {
            order: one_of(random, &orders),
            sharing: one_of(random, &ways),
            capacity: one_of(random, &[1, few, 128]),
            overflow: one_of(random, &overflows),
            look: one_of(random, &[0, 1, every]),
        }),
    }
}

fn any_schedule(random: &mut Random, workers: usize) -> Schedule {
    let parts: [f64; 4] = std::array::from_fn(|_| random.below(8) as f64 + 0.1);
    let sum: f64 = parts.iter().sum();
    let criterion = Criterion::from_shares(&parts.map(|part| part / sum)).unwrap();
    let length = 1 + random.below(3_000_000);
    let rounds = Rounds::new(criterion.clone()).with_length(length);
    match random.below(6) {
        0 => Schedule::Prompt,
        1 => rounds.into(),
        2 => rounds.independent(length).into(),
        3 => {
            let parameters = Parameters {
                quantum: 50_000 + length,
                utilisation: 0.1 + 0.1 * random.below(9) as f64,
                growth: 1.1 + random.below(4) as f64,
                initial: 1 + random.below(4) as usize,
            };
            Adaptive::new(4, parameters).unwrap().into()
        }
        4 if workers >= 4 => {
            let more = workers - 3;
            FixedShares::of_workers(&[1, 1, more, 1], Otherwise::Wait).into()
        }
        _ => FixedShares::new(&criterion, Otherwise::Donate).into(),
    }
}

#[test]
fn under_any_policies_random_programs_give_their_serial_results() {
    quiet();
    let seeds = if cfg!(debug_assertions) { 40 } else { 400 };
    for seed in 0..seeds {
        let mut random = Random::new(seed);
        let workers = 1 + random.below(5) as usize;
        let schedule = any_schedule(&mut random, workers);
        let mut builder = Runtime::builder().workers(workers).levels::<Four>();
        println!("seed {seed}: {workers} workers, {schedule:?}");
        builder = builder.schedule(schedule);
        for level in 0..4 {
            let kind = any_kind(&mut random);
            println!("  level {level}: {kind:?}");
            builder = builder.pool_at(LevelId::new(level).unwrap(), kind);
        }
        let runtime = builder.build().unwrap();
        ends(move || run_random(runtime, seed, 60));
    }
}
