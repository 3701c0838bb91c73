//! Limits of threads and descriptors: what is refused is reported, and the rest goes on.

mod common;

use common::{
    IDLE, REAL_TIME, Tell, ends, fib, in_child, is_child, limit_memory, mapped_memory, may_enter,
    no_more_descriptors, one_shot, runtime, still_works,
};
use rustix::{
    process::{Resource, Rlimit, Uid, setrlimit},
    thread::set_thread_res_uid,
};
use std::{
    cell::RefCell,
    hint, iter,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::SeqCst},
        mpsc,
    },
    time::{Duration, Instant},
};
use urgency::{
    JoinHandle, LevelId, Runtime, block_on, blocking,
    policy::{FixedShares, Otherwise},
    spawn, spawn_fn,
    sync::watch,
    time::{self, sleep},
};

urgency::levels! { Two: First > Second }

/// So many closures wait that threads are refused. Returns what ends each wait with a result, and the closures.
fn wait_until_refused(runtime: &Runtime) -> (Vec<Tell<usize>>, Vec<JoinHandle<usize>>) {
    let (tell, told): (Vec<_>, Vec<_>) = (0..30).map(|_| one_shot()).unzip();
    let waiting = told
        .into_iter()
        .map(|told| runtime.spawn_fn(move || block_on(told)))
        .collect();
    while runtime.stats().threads_refused == 0 {
        std::thread::yield_now();
    }
    (tell, waiting)
}

/// More closures wait than there can be threads, but each waits for something that runs elsewhere.
#[test]
fn stacks_that_wait_at_the_thread_limit_go_on_when_they_are_woken() {
    ends(|| {
        let runtime = Runtime::builder()
            .workers(2)
            .thread_limit(6)
            .build()
            .unwrap();
        let (tell, waiting) = wait_until_refused(&runtime);
        assert!(runtime.stats().threads <= 6);
        for (i, tell) in tell.into_iter().enumerate() {
            tell(i);
        }
        for (i, handle) in waiting.into_iter().enumerate() {
            assert_eq!(handle.get().unwrap(), i);
        }
        assert!(runtime.stats().threads_peak <= 6);
        still_works(&runtime);
    });
}

/// Each of the two workers serves one level. One of four threads computes with the first worker, and the others wait,
/// one of them for that worker. So there is no thread for the second worker, which does not serve the stack that is
/// ready.
#[test]
fn a_worker_without_a_thread_leaves_a_stack_that_it_does_not_serve_in_the_pool() {
    ends(|| {
        let builder = Runtime::builder().workers(2).thread_limit(4);
        let schedule = FixedShares::of_workers(&[1, 1], Otherwise::Wait);
        let runtime = builder.levels::<Two>().schedule(schedule).build().unwrap();
        let (begun, begins) = mpsc::channel();
        let waits = |level: LevelId| {
            let ((tell, told), begun) = (one_shot(), begun.clone());
            let closure = runtime.at(level).spawn_fn(move || {
                begun.send(()).unwrap();
                block_on(told)
            });
            begins.recv().unwrap();
            (tell, closure)
        };
        let (tell, first) = waits(First.into());
        let ends = Arc::new(AtomicBool::new(false));
        let computes = runtime.at(First).spawn_fn({
            let (ends, begun) = (ends.clone(), begun.clone());
            move || {
                begun.send(()).unwrap();
                while !ends.load(SeqCst) {
                    hint::spin_loop();
                }
            }
        });
        begins.recv().unwrap();
        let others_wait = [Second, Second].map(|level| waits(level.into()));
        tell(42);
        let others = (0..10).map(|i| runtime.at(Second).spawn(async move { i }));
        let others: Vec<_> = others.collect();
        assert!(runtime.stats().threads_refused > 0);
        ends.store(true, SeqCst);
        computes.get().unwrap();
        assert_eq!(first.get().unwrap(), 42);
        // One may run on top of the other.
        let told = others_wait.map(|(tell, other)| {
            tell(7);
            other
        });
        for other in told {
            assert_eq!(other.get().unwrap(), 7);
        }
        for (i, other) in others.into_iter().enumerate() {
            assert_eq!(other.get().unwrap(), i);
        }
        still_works(&runtime);
    });
}

/// There is a thread for each closure, but the last one is in the poller, or on its way, when the closures begin. If
/// one ran on top of the wait of the first, both would wait for ever.
#[test]
fn a_timer_is_seen_while_all_threads_of_the_limit_wait_for_it() {
    ends(|| {
        let sizes = [(1, 3), (2, 4), (2, 8)];
        for (workers, limit) in iter::repeat_n(sizes, 60).flatten() {
            let builder = Runtime::builder().workers(workers);
            let runtime = builder.thread_limit(limit).build().unwrap();
            let (tells, told) = watch::channel(false);
            let (begun, begins) = mpsc::channel();
            let sleeps = runtime.spawn_fn(move || {
                begun.send(()).unwrap();
                block_on(sleep(Duration::from_millis(5)));
                tells.send(true).unwrap();
            });
            begins.recv().unwrap();
            let wait = |_| {
                let mut told = told.clone();
                runtime.spawn_fn(move || block_on(told.wait_for(|it| *it)).map(|it| *it))
            };
            let waits: Vec<_> = (1..limit).map(wait).collect();
            sleeps.get().unwrap();
            for closure in waits {
                assert!(closure.get().unwrap().unwrap());
            }
        }
    });
}

/// All threads wait for tasks that are queued, and no thread is left to run them: the waits fail.
#[test]
fn stacks_that_wait_at_the_thread_limit_for_queued_work_do_not_hang() {
    ends(|| {
        let runtime = Runtime::builder()
            .workers(1)
            .thread_limit(3)
            .build()
            .unwrap();
        let closures: Vec<_> = (0..10u32)
            // `get` would run the task on the stack that waits.
            .map(|i| runtime.spawn_fn(move || urgency::block_on(spawn(async move { i })).unwrap()))
            .collect();
        for (i, handle) in closures.into_iter().enumerate() {
            match catch_unwind(AssertUnwindSafe(|| handle.get())) {
                Ok(result) => assert_eq!(result.unwrap(), i as u32),
                Err(panic) => {
                    let text = panic.downcast_ref::<String>().unwrap();
                    assert!(text.contains("thread"), "{text}");
                }
            }
        }
        assert!(runtime.stats().threads_refused > 0);
        still_works(&runtime);
    });
}

/// The threads do not wait in the scheduler, so they run nothing meanwhile. Ready work waits for the first that comes
/// back, or for a plain thread, which brings a thread of its own.
#[test]
fn ready_work_waits_for_a_thread_while_all_threads_of_the_limit_are_in_blocking_calls() {
    ends(|| {
        let builder = Runtime::builder().workers(1).thread_limit(3);
        let runtime = builder.build().unwrap();
        let (tell, told): (Vec<_>, Vec<_>) = (0..10).map(|_| mpsc::channel()).unzip();
        let waits = |told: mpsc::Receiver<usize>| move || blocking(|| told.recv().unwrap());
        let told = told.into_iter();
        let waiting: Vec<_> = told.map(|told| runtime.spawn_fn(waits(told))).collect();
        while runtime.stats().threads_refused == 0 {
            std::thread::yield_now();
        }
        assert_eq!(runtime.run(|| fib(16)), 987);
        assert!(!waiting.iter().all(JoinHandle::is_finished));
        tell.into_iter()
            .enumerate()
            .for_each(|(i, tell)| tell.send(i).unwrap());
        for (i, handle) in waiting.into_iter().enumerate() {
            assert_eq!(handle.get().unwrap(), i);
        }
        assert!(runtime.stats().threads_peak <= 3);
        still_works(&runtime);
    });
}

#[test]
fn a_fork_join_computation_at_the_thread_limit_ends() {
    ends(|| {
        let runtime = Runtime::builder()
            .workers(4)
            .thread_limit(6)
            .build()
            .unwrap();
        let handles: Vec<_> = (0..20).map(|_| runtime.spawn_fn(|| fib(16))).collect();
        assert!(
            handles
                .into_iter()
                .all(|handle| handle.get().unwrap() == 987)
        );
    });
}

/// The user's own limit of threads, as the calling thread sees it. `false`: not possible here.
fn limit_threads(limit: u64) -> bool {
    // Root is not limited: become a user that nobody else is. Only this thread, and those it makes.
    let nobody = Uid::from_raw(3_456_789);
    if set_thread_res_uid(nobody, nobody, nobody).is_err() {
        println!("skipped: the test may not change its user");
        return false;
    }
    let limit = Rlimit {
        current: Some(limit),
        maximum: Some(limit),
    };
    setrlimit(Resource::Nproc, limit).unwrap();
    true
}

#[test]
#[cfg(target_os = "linux")]
fn a_runtime_has_as_many_workers_as_the_calling_thread_has_processors() {
    use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
    if !is_child() {
        return in_child("a_runtime_has_as_many_workers_as_the_calling_thread_has_processors");
    }
    ends(|| {
        let allowed = sched_getaffinity(None).unwrap();
        let numbers = (0..CpuSet::MAX_CPU).filter(|&number| allowed.is_set(number));
        let mut bound = CpuSet::new();
        for (more, number) in numbers.enumerate().take(3) {
            bound.set(number);
            sched_setaffinity(None, &bound).unwrap();
            let runtime = Runtime::builder().build().unwrap();
            let workers = runtime.stats().workers.len();
            // A quota of the control group may allow less.
            assert!((1..=more + 1).contains(&workers), "{workers} workers");
            assert_eq!(workers, std::thread::available_parallelism().unwrap().get());
            still_works(&runtime);
        }
    });
}

fn nproc_case(name: &str, limit: u64, body: fn()) {
    if !is_child() {
        return in_child(name);
    }
    // The watchdog's threads exist before the limit.
    ends(move || {
        if limit_threads(limit) {
            body();
        }
    });
}

#[test]
fn a_system_that_refuses_more_threads_is_survived() {
    nproc_case("a_system_that_refuses_more_threads_is_survived", 6, || {
        let runtime = runtime(2);
        let (tell, waiting) = wait_until_refused(&runtime);
        for (i, tell) in tell.into_iter().enumerate() {
            tell(i);
        }
        for (i, handle) in waiting.into_iter().enumerate() {
            assert_eq!(handle.get().unwrap(), i);
        }
        assert_eq!(runtime.run(|| fib(15)), 610);
    });
}

#[test]
fn a_system_that_refuses_every_thread_still_lets_a_plain_thread_compute() {
    nproc_case(
        "a_system_that_refuses_every_thread_still_lets_a_plain_thread_compute",
        1,
        || {
            let runtime = runtime(2);
            assert!(
                std::thread::Builder::new().spawn(|| ()).is_err(),
                "the limit holds"
            );
            assert_eq!(runtime.run(|| fib(15)), 610);
            drop(runtime);
        },
    );
}

#[test]
fn what_the_system_permits_is_found_out_as_soon_as_a_thread_can_be_had_for_the_question() {
    let me = "what_the_system_permits_is_found_out_as_soon_as_a_thread_can_be_had_for_the_question";
    if !is_child() {
        return in_child(me);
    }
    ends(|| {
        let runtime = Runtime::builder()
            .workers(1)
            .real_time_polling(true)
            .build()
            .unwrap();
        let refused = std::thread::scope(|scope| {
            // This thread's user changes, and no other thread's.
            let limited = scope.spawn(|| limit_threads(1).then(|| runtime.stats()));
            limited.join().unwrap()
        });
        if let Some(stats) = refused {
            let may = (stats.can_raise, stats.real_time);
            assert_eq!(may, (false, false), "nobody could find out");
            let stats = runtime.stats();
            let may = (stats.can_raise, stats.real_time);
            assert_eq!(may, (may_enter(IDLE), may_enter(REAL_TIME)));
        }
    });
}

#[test]
fn waiting_for_a_task_where_every_thread_is_refused_does_not_hang() {
    nproc_case(
        "waiting_for_a_task_where_every_thread_is_refused_does_not_hang",
        1,
        || {
            let runtime = runtime(1);
            let waits = || runtime.block_on(async { spawn(async { 3 }).await });
            if let Ok(result) = catch_unwind(AssertUnwindSafe(waits)) {
                assert_eq!(result.unwrap(), 3);
            }
            let waits = || runtime.spawn(async { 4 }).get();
            if let Ok(Ok(result)) = catch_unwind(AssertUnwindSafe(waits)) {
                assert_eq!(result, 4);
            }
        },
    );
}

/// The CPU time of this process, in clock ticks of 10 ms.
fn cpu_time() -> u64 {
    // Opened before the limit.
    thread_local! { static STAT: RefCell<Option<std::fs::File>> = const { RefCell::new(None) } }
    STAT.with_borrow_mut(|file| {
        use std::io::{Read, Seek};
        let file = file.get_or_insert_with(|| std::fs::File::open("/proc/self/stat").unwrap());
        let mut text = String::new();
        file.rewind().unwrap();
        file.read_to_string(&mut text).unwrap();
        let fields: Vec<_> = text[text.rfind(')').unwrap()..]
            .split_whitespace()
            .collect();
        fields[12].parse::<u64>().unwrap() + fields[13].parse::<u64>().unwrap()
    })
}

#[test]
fn without_descriptors_compute_goes_on_and_io_is_an_error() {
    if !is_child() {
        return in_child("without_descriptors_compute_goes_on_and_io_is_an_error");
    }
    ends(|| {
        cpu_time();
        let _all = no_more_descriptors();
        let runtime = runtime(2);
        assert_eq!(runtime.run(|| fib(15)), 610);
        let handles: Vec<_> = (0..50)
            .map(|i| runtime.spawn(async move { spawn_fn(move || fib(i % 10)).await.unwrap() }))
            .collect();
        for handle in handles {
            handle.get().unwrap();
        }
        let bound = runtime.spawn(async {
            urgency::net::TcpListener::bind("127.0.0.1:0")
                .await
                .is_err()
        });
        assert!(bound.get().unwrap(), "no descriptor, no listener");
        // Timers are served without a descriptor, in their order and not early.
        let begin = Instant::now();
        let sleeps = [30, 1, 20, 10].map(|milliseconds| {
            let time = Duration::from_millis(milliseconds);
            let task = runtime.spawn(async move {
                time::sleep(time).await;
                begin.elapsed()
            });
            (task, time)
        });
        runtime.run(|| block_on(time::sleep(Duration::from_millis(5))));
        let mut forgotten = Box::pin(time::sleep(Duration::from_secs(1000)));
        let limited = time::timeout(Duration::from_millis(1), &mut forgotten);
        assert!(runtime.block_on(limited).is_err());
        drop(forgotten);
        for (task, time) in sleeps {
            assert!(task.get().unwrap() >= time);
        }
        drop(runtime.spawn(time::sleep(Duration::from_secs(1000))));
        assert_eq!(runtime.run(|| fib(15)), 610);
        // And nothing spins afterwards, waiting for a poller that cannot be.
        let before = cpu_time();
        std::thread::sleep(Duration::from_millis(500));
        let spent = cpu_time() - before;
        assert!(spent < 25, "{spent} of 50 ticks of an idle process");
    });
}

#[test]
fn a_listener_out_of_descriptors_gives_an_error_and_goes_on() {
    if !is_child() {
        return in_child("a_listener_out_of_descriptors_gives_an_error_and_goes_on");
    }
    ends(|| {
        let runtime = runtime(2);
        let (tell, told) = mpsc::channel();
        let (tell_refused, refused) = mpsc::channel();
        let server = runtime.spawn(async move {
            // The driver has its descriptors before they become scarce.
            time::sleep(Duration::from_millis(1)).await;
            let listener = urgency::net::TcpListener::bind("127.0.0.1:0")
                .await
                .unwrap();
            tell.send(listener.local_addr().unwrap()).unwrap();
            let mut refused = 0;
            while let Err(error) = listener.accept().await {
                assert_eq!(error.raw_os_error(), Some(24), "EMFILE: {error}");
                refused += 1;
                tell_refused.send(()).unwrap();
                time::sleep(Duration::from_millis(1)).await;
            }
            refused
        });
        let address = told.recv().unwrap();
        let mut all = no_more_descriptors();
        all.pop();
        let client = std::net::TcpStream::connect(address).unwrap();
        // The client took the last descriptor, so the server gets none.
        refused.recv().unwrap();
        drop(all);
        assert!(server.get().unwrap() >= 1);
        drop(client);
    });
}

/// A closure that waits for a message has the worker, and no thread waits in the poller. The thread that inserts the
/// task wants one there, and memory comes back after a moment. (The task waited for good, and with it the closure.)
#[test]
fn a_thread_that_the_system_refuses_for_a_moment_is_asked_for_again() {
    const NAME: &str = "a_thread_that_the_system_refuses_for_a_moment_is_asked_for_again";
    if !is_child() {
        return in_child(NAME);
    }
    ends(|| {
        const STACK: usize = 512 << 20;
        let builder = Runtime::builder().workers(1).thread_stack_size(STACK);
        let runtime = builder.build().unwrap();
        let ((begins, has_begun), (tell, told)) = (mpsc::channel(), mpsc::channel());
        let closure = runtime.spawn_fn(move || {
            begins.send(()).unwrap();
            told.recv().unwrap()
        });
        has_begun.recv().unwrap();
        let (lowers, is_lowered) = mpsc::channel();
        let raises = std::thread::spawn(move || {
            is_lowered.recv().unwrap();
            std::thread::sleep(Duration::from_millis(10));
            limit_memory(None);
        });
        // There is room for less than one more stack.
        limit_memory(Some(mapped_memory() + STACK as u64 / 2));
        lowers.send(()).unwrap();
        let task = runtime.spawn(async move { tell.send(42).unwrap() });
        task.get().unwrap();
        assert_eq!(closure.get().unwrap(), 42);
        assert_ne!(runtime.stats().threads_refused, 0);
        raises.join().unwrap();
    });
}
