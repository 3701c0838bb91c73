//! What rayon's own suites do not say: pools as levels of a runtime, their end, their threads.

use rayon_core::{
    ThreadPoolBuilder, current_num_threads, join, scope, spawn_fifo, urgency::pool_at,
};
use std::{
    collections::HashSet,
    fs, io, mem,
    panic::{AssertUnwindSafe, catch_unwind, panic_any},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
        mpsc::{Sender, channel},
    },
    thread,
    time::{Duration, Instant},
};
use urgency::{LevelId, Runtime, current_level};

urgency::levels! { App: Interactive > Batch }

fn fib(n: u32) -> u64 {
    if n < 2 {
        return u64::from(n);
    }
    let (a, b) = join(|| fib(n - 1), || fib(n - 2));
    a + b
}

/// Waits for something that another thread does soon.
fn eventually(done: impl Fn() -> bool) {
    let until = Instant::now() + Duration::from_secs(20);
    while !done() {
        assert!(Instant::now() < until, "it did not happen");
        thread::sleep(Duration::from_millis(1));
    }
}

/// They run after the locals of this crate are gone. A panic there would end the process.
#[test]
fn destructors_of_a_threads_locals_may_fork() {
    struct Forks(std::sync::mpsc::Sender<u64>);
    impl Drop for Forks {
        fn drop(&mut self) {
            let told = self.0.clone();
            spawn_fifo(move || told.send(fib(5)).unwrap());
            self.0.send(scope(|_| fib(10))).unwrap();
        }
    }
    thread_local! {
        static LAST: std::cell::RefCell<Option<Forks>> = const { std::cell::RefCell::new(None) };
    }
    let (told, tells) = channel();
    let thread = thread::spawn(move || {
        LAST.set(Some(Forks(told)));
        // The locals of this crate begin after that, and end before it.
        fib(10)
    });
    assert_eq!(thread.join().unwrap(), 55);
    let mut found = [tells.recv().unwrap(), tells.recv().unwrap()];
    found.sort_unstable();
    assert_eq!(found, [5, 55]);
}

#[test]
fn calls_inside_a_task_run_on_its_runtime_and_at_its_level() {
    let runtime = Runtime::builder()
        .workers(2)
        .levels::<App>()
        .build()
        .unwrap();
    for level in [LevelId::from(Interactive), LevelId::from(Batch)] {
        let task = runtime.at(level).spawn(async move {
            let seen = Mutex::new(HashSet::new());
            scope(|s| {
                for _ in 0..100 {
                    s.spawn(|_| {
                        let _ = seen.lock().unwrap().insert(urgency::current_level());
                    });
                }
            });
            (
                seen.into_inner().unwrap(),
                rayon_core::current_num_threads(),
                fib(15),
            )
        });
        let (seen, workers, fib) = runtime.block_on(task).unwrap();
        assert_eq!((seen, workers, fib), (HashSet::from([level]), 2, 610));
    }
}

#[test]
fn a_pool_at_a_level_runs_its_work_at_that_level_wherever_it_comes_from() {
    let runtime = Runtime::builder()
        .workers(2)
        .levels::<App>()
        .build()
        .unwrap();
    let batch = pool_at(&runtime, Batch);
    let level = || batch.install(|| join(urgency::current_level, urgency::current_level));
    let expected = (LevelId::from(Batch), LevelId::from(Batch));
    assert_eq!(level(), expected, "from a plain thread");
    assert_eq!(
        runtime.at(Batch).run(level),
        expected,
        "from the level itself"
    );
    let (sender, receiver) = channel();
    batch.spawn(move || sender.send(urgency::current_level()).unwrap());
    assert_eq!(receiver.recv(), Ok(Batch.into()));
    assert_eq!(batch.current_thread_index(), None);
    assert!(batch.install(|| batch.current_thread_index()).is_some());
}

#[test]
fn urgent_work_goes_first_beside_a_pool_at_a_lower_level() {
    let runtime = Runtime::builder()
        .workers(1)
        .levels::<App>()
        .build()
        .unwrap();
    let batch = pool_at(&runtime, Batch);
    let answered = AtomicBool::new(false);
    let (begin, has_begun) = channel();
    thread::scope(|s| {
        s.spawn(|| {
            batch.install(|| {
                begin.send(()).unwrap();
                // Ends only if what comes goes first.
                while !answered.load(SeqCst) {
                    join(|| (), || ());
                }
            });
        });
        has_begun.recv().unwrap();
        for _ in 0..50 {
            let urgent = runtime.at(Interactive).spawn(async { 1 });
            assert_eq!(urgent.get().unwrap(), 1);
        }
        answered.store(true, SeqCst);
    });
    let stats = runtime.stats();
    assert_eq!(stats.levels[0].total.tasks, 50);
}

#[test]
fn a_pool_at_a_level_of_a_runtime_that_has_ended_still_works() {
    let runtime = Runtime::builder().workers(2).build().unwrap();
    let pool = pool_at(&runtime, runtime.run(urgency::current_level));
    drop(runtime);
    assert_eq!(pool.install(|| fib(10)), 55);
}

#[test]
fn when_a_pool_is_dropped_its_threads_end() {
    let alive = Arc::new(AtomicUsize::new(0));
    let (started, ended) = (alive.clone(), alive.clone());
    let pool = ThreadPoolBuilder::new()
        .num_threads(4)
        .start_handler(move |_| {
            let _ = started.fetch_add(1, SeqCst);
        })
        .exit_handler(move |_| {
            let _ = ended.fetch_sub(1, SeqCst);
        })
        .build()
        .unwrap();
    assert_eq!(pool.install(|| fib(12)), 144);
    eventually(|| alive.load(SeqCst) >= 4);
    drop(pool);
    eventually(|| alive.load(SeqCst) == 0);
}

#[test]
fn what_was_spawned_runs_although_its_pool_was_dropped() {
    let (sender, receiver) = channel();
    let pool = ThreadPoolBuilder::new().num_threads(2).build().unwrap();
    for number in 0..100 {
        let sender = sender.clone();
        pool.spawn(move || {
            thread::sleep(Duration::from_micros(100));
            rayon_core::spawn(move || sender.send(number).unwrap());
        });
    }
    drop((pool, sender));
    assert_eq!(receiver.iter().sum::<i32>(), 4950);
}

#[test]
fn between_two_calls_an_index_is_used_by_one_thread_only() {
    let pool = ThreadPoolBuilder::new().num_threads(2).build().unwrap();
    let users: [AtomicUsize; 2] = Default::default();
    pool.scope(|s| {
        for _ in 0..64 {
            s.spawn(|_| {
                let index = rayon_core::current_thread_index().unwrap();
                assert_eq!(users[index].fetch_add(1, SeqCst), 0, "the index is in use");
                // Long enough for relief to want the worker.
                thread::sleep(Duration::from_millis(4));
                users[index].fetch_sub(1, SeqCst);
            });
        }
    });
}

#[test]
fn a_lock_held_across_a_join_meets_no_stranger() {
    let pool = ThreadPoolBuilder::new().num_threads(2).build().unwrap();
    let lock = Mutex::new(0);
    pool.scope(|s| {
        for _ in 0..200 {
            s.spawn(|_| {
                let mut count = lock.lock().unwrap();
                join(|| fib(8), || fib(8));
                *count += 1;
            });
        }
    });
    assert_eq!(lock.into_inner().unwrap(), 200);
}

#[test]
fn what_a_scope_spawns_follows_a_level_that_is_inherited() {
    let runtime = Runtime::builder()
        .workers(1)
        .levels::<App>()
        .build()
        .unwrap();
    let lock = Arc::new(urgency::sync::Mutex::new(()));
    let urgent = LevelId::from(Interactive);
    let raise = |opened: bool| {
        let (lock, waits) = (lock.clone(), lock.clone());
        let (held, is_held) = channel();
        let seen = runtime.at(Batch).spawn_fn(move || {
            let mut guard = Some(lock.blocking_lock());
            held.send(()).unwrap();
            let raised = || {
                while current_level() != urgent {
                    urgency::scheduling_point();
                }
            };
            if !opened {
                raised();
            }
            let mut seen = None;
            scope(|s| {
                raised();
                if !opened {
                    drop(guard.take());
                }
                s.spawn(|_| seen = Some(current_level()));
            });
            seen
        });
        is_held.recv().unwrap();
        runtime
            .at(urgent)
            .spawn_fn(move || drop(waits.blocking_lock()))
            .detach();
        seen.get().unwrap()
    };
    assert_eq!(raise(true), Some(urgent), "raised in the scope");
    assert_eq!(
        raise(false),
        Some(Batch.into()),
        "raised before, and not any more"
    );
}

#[test]
fn fifo_closures_of_a_thread_run_on_the_runtime_for_which_they_were_spawned() {
    let one = Runtime::builder().workers(1).build().unwrap();
    let two = Runtime::builder().workers(2).build().unwrap();
    let (send, seen) = channel();
    let note = |name| {
        let send = send.clone();
        move || send.send((name, current_num_threads())).unwrap()
    };
    one.run(|| {
        spawn_fifo(note("one"));
        two.run(|| spawn_fifo(note("two")));
    });
    drop(send);
    let seen: HashSet<_> = seen.iter().collect();
    assert_eq!(seen, HashSet::from([("one", 1), ("two", 2)]));
}

/// Spawns when it is dropped.
struct SpawnsWhenGone(Sender<&'static str>);

impl Drop for SpawnsWhenGone {
    fn drop(&mut self) {
        let send = self.0.clone();
        spawn_fifo(move || send.send("when the other runtime was gone").unwrap());
    }
}

/// A thread's queue of fifo closures keeps the memory of its runtime, and with it what the runtime's builder was given.
#[test]
fn what_goes_with_the_last_memory_of_a_runtime_may_spawn() {
    let (send, spawned) = channel();
    let gone = SpawnsWhenGone(send.clone());
    let one = Runtime::builder().workers(1).thread_name("of one");
    let one = one.on_thread_start(move || _ = &gone.0).build().unwrap();
    let two = Runtime::builder().workers(1).build().unwrap();
    let send_once = |name| {
        let send = send.clone();
        move || send.send(name).unwrap()
    };
    one.run(|| spawn_fifo(send_once("in one")));
    assert_eq!(spawned.recv(), Ok("in one"));
    drop(one);
    let is_of_one = |task: io::Result<fs::DirEntry>| {
        let name = fs::read_to_string(task.unwrap().path().join("comm"));
        name.is_ok_and(|name| name.trim() == "of one")
    };
    eventually(|| !fs::read_dir("/proc/self/task").unwrap().any(is_of_one));
    two.run(|| spawn_fifo(send_once("in two")));
    drop(send);
    let both: HashSet<_> = spawned.iter().collect();
    assert_eq!(
        both,
        HashSet::from(["in two", "when the other runtime was gone"])
    );
}

/// What a panic may carry: its drop panics.
struct PanicsWhenGone;

impl Drop for PanicsWhenGone {
    fn drop(&mut self) {
        if !thread::panicking() {
            panic!("on purpose, in the drop of what a panic carried");
        }
    }
}

#[test]
fn a_scope_waits_for_its_closures_whatever_the_second_panic_carries() {
    let pool = ThreadPoolBuilder::new().num_threads(2).build().unwrap();
    let done = AtomicBool::new(false);
    let result = catch_unwind(AssertUnwindSafe(|| {
        pool.in_place_scope(|s| {
            let (unwind, unwound) = channel::<()>();
            s.spawn(move |_| {
                let _goes_as_it_unwinds = unwind;
                panic_any(PanicsWhenGone);
            });
            let (begin, begun) = channel();
            let done = &done;
            s.spawn(move |_| {
                begin.send(()).unwrap();
                thread::sleep(Duration::from_millis(200));
                done.store(true, SeqCst);
            });
            begun.recv().unwrap();
            unwound.recv().unwrap_err();
            // The closure's panic is most likely the first; the scope has to wait in either order.
            thread::sleep(Duration::from_millis(20));
            panic_any(PanicsWhenGone);
        })
    }));
    assert!(done.load(SeqCst), "the scope has ended before its closure");
    let first = result.unwrap_err().downcast::<PanicsWhenGone>();
    mem::forget(first.expect("one of the two panics"));
}

#[test]
fn a_pool_takes_any_size_of_stacks() {
    for bytes in [1, 32 << 10, 1 << 20] {
        let pool = ThreadPoolBuilder::new().num_threads(2).stack_size(bytes);
        let pool = pool.build().unwrap();
        assert_eq!(pool.install(|| join(|| 1, || 2)), (1, 2));
    }
}
