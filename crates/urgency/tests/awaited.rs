//! A closure that waits in `get` for a task of its level that no thread has begun runs it on its own stack.

mod common;

use common::{ends, runtime, with_levels};
use std::{
    collections::HashSet,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering::SeqCst},
        mpsc,
    },
    thread,
};
use urgency::{
    JoinHandle, Runtime, blocking, current_level, join, level::Level, spawn, spawn_fn,
    sync::Notify, task, yield_now,
};

urgency::levels! {
    App: High > Low
}

/// As many waits as begin in any case between two that give others a turn.
const FEW: usize = 20;

/// In how many of `FEW` waits a closure that the only worker runs finds the awaited task on its own thread.
fn on_own_thread<T: Send + 'static>(
    runtime: &Runtime,
    start: impl Fn() -> JoinHandle<T> + Send + 'static,
    is_here: impl Fn(T) -> bool + Send + 'static,
) -> usize {
    let count = move || (0..FEW).filter(|_| is_here(start().get().unwrap())).count();
    runtime.spawn_fn(count).get().unwrap()
}

#[test]
#[cfg_attr(urgency_chaos, ignore = "chaos refuses it at times")]
fn get_runs_a_task_that_has_not_begun_on_the_stack_that_waits() {
    ends(|| {
        let is_here = |id| id == thread::current().id();
        let runtime = runtime(1);
        let closure = || spawn_fn(|| thread::current().id());
        assert_eq!(on_own_thread(&runtime, closure, is_here), FEW);
        let future = || spawn(async { thread::current().id() });
        assert_eq!(on_own_thread(&runtime, future, is_here), FEW);
    });
}

/// A waiting stack that is suspended lets all go first that was ready before.
#[test]
#[cfg_attr(urgency_chaos, ignore = "chaos refuses it at times")]
fn a_closure_that_waits_for_what_it_spawned_is_not_behind_what_was_ready_before() {
    ends(|| {
        let runtime = runtime(1);
        let (begin, begun) = mpsc::channel::<()>();
        let before = Arc::new(AtomicUsize::new(0));
        let seen = before.clone();
        let closure = runtime.spawn_fn(move || {
            // It keeps the worker meanwhile.
            while begun.try_recv().is_err() {
                std::hint::spin_loop();
            }
            let at_begin = seen.load(SeqCst);
            spawn(async {}).get().unwrap();
            seen.load(SeqCst) - at_begin
        });
        // Few: a loop that goes on for 100 ms gives its worker to equals.
        let others: Vec<_> = (0..100)
            .map(|_| {
                let before = before.clone();
                // Polls would have a turn at the scheduling point of the spawn.
                runtime.spawn_fn(move || before.fetch_add(1, SeqCst))
            })
            .collect();
        begin.send(()).unwrap();
        assert_eq!(closure.get().unwrap(), 0);
        for other in others {
            other.get().unwrap();
        }
    });
}

#[test]
fn a_closure_that_waits_again_and_again_lets_its_equals_have_a_turn() {
    ends(|| {
        let runtime = runtime(1);
        let stop = Arc::new(AtomicUsize::new(0));
        let theirs = stop.clone();
        let endless = runtime.spawn_fn(move || {
            let mut waits = 0_usize;
            while theirs.load(SeqCst) == 0 {
                spawn(async {}).get().unwrap();
                waits += 1;
            }
            waits
        });
        runtime
            .spawn(async move { stop.store(1, SeqCst) })
            .get()
            .unwrap();
        endless.get().unwrap();
    });
}

/// The entries of tasks that ran on the stack of a waiter are stale, and keep the tasks' memory.
#[test]
fn what_ran_on_the_stack_of_its_waiter_does_not_pile_up_in_the_pool() {
    struct Alive(Arc<AtomicUsize>);
    impl Drop for Alive {
        fn drop(&mut self) {
            self.0.fetch_sub(1, SeqCst);
        }
    }
    ends(|| {
        let runtime = runtime(1);
        let alive = Arc::new(AtomicUsize::new(0));
        let queued = runtime.spawn_fn(move || {
            let mut most = 0;
            for _ in 0..2000 {
                alive.fetch_add(1, SeqCst);
                let one = Alive(alive.clone());
                spawn(async move { drop(one) }).get().unwrap();
                most = most.max(Runtime::current().stats().levels[0].queued);
            }
            assert_eq!(alive.load(SeqCst), 0);
            most
        });
        let queued = queued.get().unwrap();
        // A ring has room for 64. Under chaos the worker changes its thread, and the pool has some as well.
        let rings = if cfg!(urgency_chaos) { 2 } else { 1 };
        assert!(queued <= rings * 64, "{queued} entries");
    });
}

#[test]
fn a_task_that_waits_on_the_stack_of_its_waiter_goes_on_elsewhere() {
    ends(|| {
        for workers in [1, 2] {
            let runtime = runtime(workers);
            let sums: Vec<_> = (0..100u64)
                .map(|n| {
                    runtime.spawn_fn(move || {
                        let gate = Arc::new(Notify::new());
                        let theirs = gate.clone();
                        let waits = spawn(async move {
                            yield_now().await;
                            theirs.notified().await;
                            n
                        });
                        let opens = spawn_fn(move || {
                            blocking(|| ());
                            gate.notify_one();
                            n
                        });
                        waits.get().unwrap() + opens.get().unwrap()
                    })
                })
                .collect();
            let sum: u64 = sums.into_iter().map(|sum| sum.get().unwrap()).sum();
            assert_eq!(sum, 9900);
        }
    });
}

/// What the waiter has forked stays there for others, and its own.
#[test]
fn forks_of_the_waiter_and_of_what_it_waits_for_run_once() {
    fn count(depth: u32, ran: &'static AtomicUsize) {
        ran.fetch_add(1, SeqCst);
        if depth > 0 {
            join(
                || spawn_fn(move || count(depth - 1, ran)).get().unwrap(),
                || count(depth - 1, ran),
            );
        }
    }
    static RAN: AtomicUsize = AtomicUsize::new(0);
    ends(|| {
        for workers in [1, 2, 4] {
            let runtime = runtime(workers);
            RAN.store(0, SeqCst);
            runtime.run(|| count(9, &RAN));
            assert_eq!(RAN.load(SeqCst), (1 << 10) - 1);
        }
    });
}

/// Each of a long chain waits for the next one. A task that runs on top of its waiter has the rest of that stack, so
/// only a part of it may be in use.
#[test]
fn a_chain_of_waits_takes_threads_when_a_stack_is_used_up() {
    fn chain(left: u32, threads: Arc<Mutex<HashSet<thread::ThreadId>>>) -> u32 {
        threads.lock().unwrap().insert(thread::current().id());
        let used = std::hint::black_box([left as u8; 4096]);
        match left {
            0 => 0,
            _ => spawn_fn(move || chain(left - 1, threads)).get().unwrap() + u32::from(used[9] > 0),
        }
    }
    ends(|| {
        let builder = Runtime::builder().workers(1).thread_stack_size(1 << 20);
        let runtime = builder.build().unwrap();
        let threads = Arc::new(Mutex::new(HashSet::new()));
        let theirs = threads.clone();
        // 800 KiB, and what the runtime puts between.
        runtime.spawn_fn(move || chain(200, theirs)).get().unwrap();
        let threads = threads.lock().unwrap().len();
        assert!(threads > 5, "{threads} threads");
        assert!(cfg!(urgency_chaos) || threads < 100, "{threads} threads");
    });
}

#[test]
#[cfg_attr(urgency_chaos, ignore = "chaos refuses it at times")]
fn what_runs_on_the_stack_of_its_waiter_is_a_task_of_its_own() {
    ends(|| {
        let (runtime, other) = (runtime(1), runtime(3));
        let seen = runtime.spawn_fn(move || {
            let own = task::id();
            let waits = spawn_fn(|| {
                let workers = Runtime::current().stats().workers.len();
                (task::id(), thread::current().id(), workers)
            });
            // What the waiter has entered is not what the task is in.
            let guard = other.enter();
            let (id, thread, workers) = waits.get().unwrap();
            drop(guard);
            assert_eq!(own, task::id());
            (id != own, thread == thread::current().id(), workers)
        });
        assert_eq!(seen.get().unwrap(), (true, true, 1));
    });
}

#[test]
#[cfg_attr(urgency_chaos, ignore = "chaos refuses it at times")]
fn a_waiter_that_is_boosted_takes_along_the_task_on_its_stack() {
    ends(|| {
        let runtime = with_levels::<App>(1);
        let (tell, told) = mpsc::channel();
        let (go, goes) = mpsc::channel::<()>();
        let waiter = runtime.at(Low).spawn_fn(move || {
            let task = spawn_fn(move || {
                tell.send(()).unwrap();
                blocking(|| goes.recv().unwrap());
                (current_level().rank(), thread::current().id())
            });
            let (rank, thread) = task.get().unwrap();
            (
                rank,
                thread == thread::current().id(),
                current_level().rank(),
            )
        });
        told.recv().unwrap();
        let boosted = High.on(&runtime).run(|_| {
            waiter.boost();
            go.send(()).unwrap();
            waiter.get()
        });
        assert_eq!(boosted.unwrap(), (0, true, 0));
    });
}

/// A panic and an abort end the awaited task only.
#[test]
fn what_ends_on_the_stack_of_its_waiter_ends_alone() {
    common::quiet();
    ends(|| {
        let runtime = runtime(1);
        let both = runtime.spawn_fn(|| {
            let panics = spawn_fn(|| panic!("on purpose")).get().unwrap_err();
            // A thread that relieves a preempted worker may poll it before it is cancelled.
            let aborted = spawn(std::future::pending::<()>());
            aborted.abort();
            (panics.is_panic(), aborted.get().unwrap_err().is_cancelled())
        });
        assert_eq!(both.get().unwrap(), (true, true));
    });
}
