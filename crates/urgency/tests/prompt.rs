//! Levels at run time: promptness, aging, inversions, boost. Guarantees are tested by counts, not clocks.

mod common;

use common::{
    REAL_TIME, USUAL, class_of, ends, fib, in_child, is_child, may_enter, my_folder, one_shot,
    with_levels,
};
use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering::*},
        mpsc,
    },
    time::Duration,
};
use urgency::{JoinErrorKind, JoinHandle, LevelId, Runtime, join, yield_now};

urgency::levels! { pub App: Interactive > Query > Batch; Interactive > Audit }

fn runtime(workers: usize) -> Runtime {
    with_levels::<App>(workers)
}

/// Endless fork-join work at `level` until the flag is set.
fn endless(runtime: &Runtime, level: impl Into<LevelId>, stop: &Arc<AtomicBool>) -> JoinHandle<()> {
    let stop = stop.clone();
    runtime.at(level).spawn_fn(move || {
        while !stop.load(Relaxed) {
            fib(15);
        }
    })
}

#[test]
fn a_worker_below_moves_up_at_its_next_scheduling_point() {
    let runtime = runtime(2);
    let stop = Arc::new(AtomicBool::new(false));
    let compute: Vec<_> = (0..2).map(|_| endless(&runtime, Batch, &stop)).collect();
    for i in 0..500 {
        // If the computation had to end first, this would wait for ever.
        let urgent = runtime.at(Interactive).spawn_fn(move || i * 2);
        assert_eq!(urgent.get().unwrap(), i * 2);
    }
    stop.store(true, Relaxed);
    for handle in compute {
        handle.get().unwrap();
    }
    let stats = runtime.stats();
    let batch = &stats.levels[usize::from(LevelId::from(Batch).rank())].total;
    assert!(batch.abandonments > 0, "{batch:?}");
}

#[test]
fn the_most_urgent_ready_work_runs_first() {
    let runtime = runtime(1);
    let order = Arc::new(Mutex::new(Vec::new()));
    let log = order.clone();
    let holder = runtime.at(Interactive).spawn_fn(move || {
        let levels: [LevelId; 4] = [Batch.into(), Query.into(), Interactive.into(), Batch.into()];
        levels.map(|level| {
            let log = log.clone();
            urgency::at(level).spawn(async move { log.lock().unwrap().push(level) })
        })
    });
    for handle in holder.get().unwrap() {
        handle.get().unwrap();
    }
    let ran = order.lock().unwrap().clone();
    assert!(ran.is_sorted(), "{ran:?}");
}

/// How often a task ran before one that had become ready earlier, and how often relief intervened.
fn reorderings() -> (usize, u64) {
    const TASKS: usize = 1000;
    let runtime = runtime(1);
    let order = Arc::new(Mutex::new(Vec::new()));
    let log = order.clone();
    // The spawning closure is more urgent than the tasks: they start when it has made them all.
    let handles = runtime.at(Interactive).spawn_fn(move || {
        let task = |i| {
            let log = log.clone();
            urgency::at(Batch).spawn(async move {
                for _ in 0..3 {
                    log.lock().unwrap().push(i);
                    yield_now().await;
                }
            })
        };
        (0..TASKS).map(task).collect::<Vec<_>>()
    });
    for handle in handles.get().unwrap() {
        handle.get().unwrap();
    }
    let ran = order.lock().unwrap();
    assert_eq!(ran.len(), 3 * TASKS);
    let rounds = ran.chunks(TASKS).flat_map(|round| round.windows(2));
    let reordered = rounds.filter(|pair| pair[0] > pair[1]).count();
    (reordered, runtime.stats().total().reliefs)
}

/// The exceptions: a stack's ring and the pool are merged by age to within an entry, which shows where
/// the ring overflows. Relief reorders, too, so only an attempt without it counts.
#[test]
#[cfg_attr(urgency_chaos, ignore = "chaos changes the order")]
fn within_a_level_contexts_run_in_the_order_in_which_they_became_ready() {
    let undisturbed = (0..200)
        .map(|_| reorderings())
        .find(|(_, reliefs)| *reliefs == 0);
    let (reordered, _) = undisturbed.expect("one of 200 attempts needs no relief");
    assert!(reordered <= 8, "{reordered} of 3000 polls came too early");
}

/// Closures wait in `get`, each for a task of its own, and the tasks end one after the other. For each
/// closure in the order in which it went on: how many that became resumable after it went on before it. And
/// how often relief or a turn of brief work took a worker from a closure that went on.
fn overtaken(workers: usize) -> (Vec<usize>, u64) {
    const CLOSURES: usize = 60;
    let runtime = runtime(workers);
    let [ended, resumed] = [(); 2].map(|()| Arc::new(Mutex::new(Vec::new())));
    let waiting = Arc::new(AtomicUsize::new(0));
    let mut tell = Vec::new();
    let closures: Vec<_> = (0..CLOSURES)
        .map(|i| {
            let (tell_it, told) = one_shot();
            tell.push(Some(tell_it));
            let ended = ended.clone();
            let task = runtime.at(Batch).spawn(async move {
                told.await;
                ended.lock().unwrap().push(i);
            });
            let (resumed, waiting) = (resumed.clone(), waiting.clone());
            runtime.at(Batch).spawn_fn(move || {
                waiting.fetch_add(1, SeqCst);
                task.get().unwrap();
                resumed.lock().unwrap().push(i);
            })
        })
        .collect();
    while waiting.load(SeqCst) < CLOSURES {
        std::thread::yield_now();
    }
    let wakes = runtime.at(Interactive).spawn_fn(move || {
        for i in (0..CLOSURES).map(|i| i * 7 % CLOSURES) {
            tell[i].take().unwrap()(());
        }
    });
    wakes.get().unwrap();
    for closure in closures {
        closure.get().unwrap();
    }
    let (ended, resumed) = (ended.lock().unwrap(), resumed.lock().unwrap());
    let place = |i: &usize| ended.iter().position(|j| j == i).unwrap();
    let places: Vec<_> = resumed.iter().map(place).collect();
    assert_eq!(places.len(), CLOSURES);
    let before = |(n, place)| places[..n].iter().filter(|&p| p > place).count();
    let overtaken = places.iter().enumerate().map(before).collect();
    let total = runtime.stats().total();
    (overtaken, total.reliefs + total.abandonments)
}

/// With two workers one of them may take a closure that its thread is slow to go on with: then as many as the
/// workers go on before it, and some more while the kernel runs another process in its place, which this test
/// allows for one in ten.
#[test]
#[cfg_attr(urgency_chaos, ignore = "chaos changes the order")]
fn stacks_go_on_in_the_order_in_which_what_they_waited_for_ended() {
    const SLACK: usize = 4;
    for workers in [1, 2] {
        let attempts = (0..100).map(|_| ends(move || overtaken(workers)));
        let undisturbed = attempts.filter(|(_, taken)| *taken == 0).take(5);
        let overtaken: Vec<usize> = undisturbed.flat_map(|(overtaken, _)| overtaken).collect();
        assert!(
            !overtaken.is_empty(),
            "in one of 100 attempts each closure keeps its worker"
        );
        let most = if workers == 1 { 0 } else { workers + SLACK };
        let far = overtaken.iter().filter(|&&others| others > most).count();
        let allowed = if workers == 1 {
            0
        } else {
            overtaken.len() / 10
        };
        assert!(far <= allowed, "{workers} workers: {overtaken:?}");
    }
}

/// The same threads run computations of all levels in turn, and their deques are in the pools of all of them.
#[test]
fn a_stolen_fork_has_the_level_of_the_computation_that_forked_it() {
    fn nest(depth: u32, level: LevelId, strangers: &AtomicUsize) {
        if urgency::current_level() != level {
            strangers.fetch_add(1, Relaxed);
        }
        if depth > 0 {
            let deeper = || nest(depth - 1, level, strangers);
            join(deeper, deeper);
        }
    }
    let runtime = runtime(3);
    let strangers = Arc::new(AtomicUsize::new(0));
    let levels: [LevelId; 3] = [Batch.into(), Query.into(), Interactive.into()];
    let handles: Vec<_> = (0..600)
        .map(|i| {
            let (level, strangers) = (levels[i % 3], strangers.clone());
            runtime
                .at(level)
                .spawn_fn(move || nest(7, level, &strangers))
        })
        .collect();
    for handle in handles {
        handle.get().unwrap();
    }
    assert_eq!(strangers.load(Relaxed), 0);
}

#[test]
fn waiting_for_less_urgent_work_is_an_error_that_names_both_levels() {
    let runtime = runtime(2);
    let wait_for = |level: LevelId| {
        move || {
            // Without a boost it never ends, so that there is something to wait for.
            let awaited = urgency::at(level).spawn(std::future::pending::<()>());
            awaited.get().unwrap_err()
        }
    };
    for (awaited, name) in [(LevelId::from(Batch), "Batch"), (Audit.into(), "Audit")] {
        let error = runtime.at(Query).spawn_fn(wait_for(awaited)).get().unwrap();
        assert!(matches!(error.kind(), JoinErrorKind::Inversion { .. }));
        let text = error.to_string();
        assert!(text.contains("Query") && text.contains(name), "{text}");
    }
}

#[test]
fn waiting_for_oneself_is_an_error() {
    let runtime = runtime(1);
    let slot: Arc<Mutex<Option<JoinHandle<bool>>>> = Arc::default();
    let theirs = slot.clone();
    let (go, wait) = mpsc::channel::<()>();
    let (tell, told) = mpsc::channel();
    let handle = runtime.spawn_fn(move || {
        urgency::blocking(|| wait.recv().unwrap());
        let me = theirs.lock().unwrap().take().unwrap();
        tell.send(me.get().unwrap_err().kind()).unwrap();
        true
    });
    *slot.lock().unwrap() = Some(handle);
    go.send(()).unwrap();
    assert_eq!(told.recv().unwrap(), JoinErrorKind::WaitsForItself);
}

#[test]
fn boosting_raises_the_awaited_work_and_what_it_waits_for() {
    let runtime = runtime(1);
    let stop = Arc::new(AtomicBool::new(false));
    // The single worker is kept busy at Query, so Batch would never run unless it is raised.
    let busy = endless(&runtime, Query, &stop);
    let inner = runtime.at(Batch).spawn_fn(|| 20);
    let outer = runtime
        .at(Batch)
        .spawn_fn(move || inner.get().unwrap() + 22);
    let answer = runtime.at(Interactive).spawn_fn(move || {
        outer.boost();
        outer.get()
    });
    assert_eq!(answer.get().unwrap().unwrap(), 42);
    stop.store(true, Relaxed);
    busy.get().unwrap();
}

#[test]
fn random_programs_over_all_levels_end_with_every_task_accounted() {
    let runtime = runtime(3);
    let ran = Arc::new(AtomicUsize::new(0));
    let levels: [LevelId; 4] = [Interactive.into(), Query.into(), Batch.into(), Audit.into()];
    let mut seed = 7u64;
    let mut random = move |n: u64| {
        seed = seed
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (seed >> 33) % n
    };
    for _ in 0..3000 {
        let level = levels[random(4) as usize];
        let size = random(14);
        let ran = ran.clone();
        match random(4) {
            0 => runtime.at(level).spawn(async move {
                for _ in 0..size {
                    yield_now().await;
                }
                ran.fetch_add(1, Relaxed);
            }),
            1 => runtime.at(level).spawn_fn(move || {
                fib(size);
                ran.fetch_add(1, Relaxed);
            }),
            2 => runtime.at(level).spawn_fn(move || {
                urgency::at(level)
                    .spawn_fn(move || fib(size))
                    .get()
                    .unwrap();
                ran.fetch_add(1, Relaxed);
            }),
            _ => runtime.at(level).spawn(async move {
                urgency::at(level)
                    .spawn(async move { fib(size) })
                    .await
                    .unwrap();
                ran.fetch_add(1, Relaxed);
            }),
        }
        .detach();
    }
    let report = runtime.shutdown_within(urgency::Shutdown::Drain, Duration::from_secs(60));
    assert_eq!(ran.load(Relaxed), 3000, "{report:?}");
    assert_eq!(report.finished, report.spawned, "{report:?}");
    assert!(report.spawned >= 3000);
}

/// The threads of this process that are in the real-time class.
fn real_time_threads() -> usize {
    let threads = std::fs::read_dir("/proc/self/task").into_iter().flatten();
    let class = |thread: std::io::Result<std::fs::DirEntry>| class_of(&thread.unwrap().path());
    threads
        .map(class)
        .filter(|&class| class == REAL_TIME)
        .count()
}

/// A runtime that asked for a real-time poller, and a task that keeps a thread in the poller.
fn with_real_time_poller() -> (Runtime, JoinHandle<()>) {
    let builder = Runtime::builder().workers(1).real_time_polling(true);
    let runtime = builder.build().unwrap();
    let waits = runtime.spawn(urgency::time::sleep(Duration::from_secs(3600)));
    (runtime, waits)
}

#[test]
fn a_real_time_poller_is_used_where_permitted_and_said() {
    if !is_child() {
        return in_child("a_real_time_poller_is_used_where_permitted_and_said");
    }
    if !may_enter(REAL_TIME) {
        println!("skipped: this process may not use the real-time class");
        return;
    }
    ends(|| {
        let usual = Runtime::builder().workers(1).build().unwrap();
        let waits = usual.spawn(urgency::time::sleep(Duration::from_secs(3600)));
        assert!(!usual.stats().real_time, "it did not ask for it");
        let slept = usual.spawn(urgency::time::sleep(Duration::from_millis(2)));
        slept.get().unwrap();
        while real_time_threads() != 0 {
            // The thread that found out what is permitted is about to end.
            std::thread::yield_now();
        }
        drop((waits, usual));

        let (runtime, waits) = with_real_time_poller();
        while real_time_threads() == 0 {
            std::thread::yield_now();
        }
        assert!(runtime.stats().real_time);
        // A task that an event woke runs there now and then; what it starts does not.
        for _ in 0..20 {
            let after_an_event = runtime.spawn(async {
                urgency::time::sleep(Duration::from_millis(1)).await;
                urgency::at(LevelId::new(0).unwrap())
                    .spawn_fn(|| class_of(&my_folder()))
                    .await
            });
            assert_eq!(after_an_event.get().unwrap().unwrap(), USUAL);
        }
        drop(waits);
    });
}

/// Every user but root is refused it, as a rule.
#[test]
#[cfg(target_os = "linux")]
fn where_the_real_time_class_is_refused_no_thread_is_in_it_and_that_is_said() {
    if !is_child() {
        return in_child(
            "where_the_real_time_class_is_refused_no_thread_is_in_it_and_that_is_said",
        );
    }
    ends(|| {
        // The threads of the runtime are made by this one, and get its user.
        let nobody = rustix::process::Uid::from_raw(3_456_789);
        let _ = rustix::thread::set_thread_res_uid(nobody, nobody, nobody);
        if may_enter(REAL_TIME) {
            println!("skipped: this user may use the real-time class");
            return;
        }
        let (runtime, waits) = with_real_time_poller();
        for _ in 0..20 {
            let slept = runtime.spawn(urgency::time::sleep(Duration::from_millis(1)));
            slept.get().unwrap();
            assert_eq!(real_time_threads(), 0);
        }
        assert!(!runtime.stats().real_time);
        drop(waits);
    });
}

#[test]
fn a_stack_that_gives_way_runs_nothing_less_urgent() {
    use urgency::embed::{self, Host};
    ends(|| {
        let builder = Runtime::builder().workers(1).levels::<App>();
        let runtime = builder.provided_threads().build().unwrap();
        Host::of_at(&runtime, Interactive).stay(0);
        let ran = Arc::new(AtomicBool::new(false));
        let runs = ran.clone();
        let below = runtime
            .at(Batch)
            .spawn(async move { runs.store(true, Relaxed) });
        assert_eq!(embed::give_way(), Some(false));
        assert!(!ran.load(Relaxed));
        below.abort();
    });
}
