//! Misuse: an error or a propagated panic, never a hang, an abort, or a silent default.

mod common;

use common::{ends, fib, in_child, is_child, quiet, runtime};
use rustix::{
    process::{Resource, Rlimit, Uid, setrlimit},
    thread::set_thread_res_uid,
};
use std::{
    cell::RefCell,
    future::{Future, poll_fn},
    panic::{AssertUnwindSafe, catch_unwind},
    pin::{Pin, pin},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering::*},
        mpsc,
    },
    task::{Context, Poll, Wake, Waker},
    time::Duration,
};
use urgency::{
    BuildError, Handle, MAX_WORKERS, Runtime, Shutdown, WaitErrorKind, block_on, blocking, join,
    scope, spawn, spawn_fn, time, yield_now,
};

fn panics<R>(f: impl FnOnce() -> R) -> String {
    quiet();
    let Err(panic) = catch_unwind(AssertUnwindSafe(f)) else {
        panic!("it does not panic");
    };
    let text = panic.downcast_ref::<&str>().map(|text| text.to_string());
    text.or_else(|| panic.downcast_ref::<String>().cloned())
        .expect("a text")
}

fn still_works(runtime: &Runtime) {
    assert_eq!(runtime.run(|| fib(12)), 144);
    assert_eq!(runtime.spawn(async { 1 }).get().unwrap(), 1);
    assert_eq!(runtime.spawn_fn(|| fib(3)).get().unwrap(), 2);
    let slept = runtime.spawn(async {
        time::sleep(Duration::from_millis(1)).await;
        2
    });
    assert_eq!(slept.get().unwrap(), 2);
}

#[test]
fn zero_workers_are_an_error_that_says_what_is_allowed() {
    let error = Runtime::builder().workers(0).build().unwrap_err();
    assert_eq!(error, BuildError::Workers(0));
    let text = error.to_string();
    assert!(
        text.contains("0 workers") && text.contains(&MAX_WORKERS.to_string()),
        "{text}"
    );
}

#[test]
fn too_many_workers_are_an_error_and_the_most_are_not() {
    let error = Runtime::builder().workers(MAX_WORKERS + 1).build();
    assert_eq!(error.unwrap_err(), BuildError::Workers(MAX_WORKERS + 1));
    ends(|| {
        let runtime = Runtime::builder().workers(MAX_WORKERS).build().unwrap();
        assert_eq!(runtime.spawn(async { 5 }).get().unwrap(), 5);
    });
}

#[test]
fn a_thread_limit_below_what_the_workers_need_is_an_error_that_says_the_least() {
    let error = Runtime::builder()
        .workers(4)
        .thread_limit(5)
        .build()
        .unwrap_err();
    assert_eq!(error, BuildError::Threads { limit: 5, least: 6 });
    assert!(error.to_string().contains('6'));
    assert!(
        Runtime::builder()
            .workers(4)
            .thread_limit(6)
            .build()
            .is_ok()
    );
}

#[test]
fn a_second_global_runtime_is_an_error() {
    if !is_child() {
        return in_child("a_second_global_runtime_is_an_error");
    }
    let global = Runtime::builder().workers(1).build_global().unwrap();
    assert_eq!(spawn(async { 3 }).get().unwrap(), 3);
    assert_eq!(global.stats().workers.len(), 1);
    let second = Runtime::builder().build_global();
    assert_eq!(second.unwrap_err(), BuildError::GlobalExists);
}

#[test]
fn a_level_that_the_runtime_does_not_have_is_a_panic_that_names_it() {
    let runtime = runtime(1);
    let level = urgency::LevelId::new(7).unwrap();
    let text = panics(|| runtime.spawn_at(level, async {}));
    assert!(text.contains("no level 7"), "{text}");
    still_works(&runtime);
}

#[test]
fn blocking_gets_on_a_single_worker_end() {
    ends(|| {
        let runtime = runtime(1);
        let sum = runtime.block_on(async {
            // An async task that blocks its poll, and closures that block one in the other.
            let inner = spawn(async {
                spawn_fn(|| spawn(async { 1 }).get().unwrap())
                    .get()
                    .unwrap()
            });
            let scoped = scope(|_| spawn(async { 2 }).get().unwrap());
            let (a, b) = join(
                || spawn(async { 3 }).get().unwrap(),
                || spawn_fn(|| 4).get().unwrap(),
            );
            inner.get().unwrap() + scoped + a + b
        });
        assert_eq!(sum, 10);
    });
}

/// Gives the closure its own handle, and returns what it found.
fn with_own_handle<T: Send + 'static>(
    start: impl FnOnce(mpsc::Receiver<Handle<()>>, mpsc::Sender<T>) -> Handle<()>,
) -> T {
    let (give, take) = mpsc::channel();
    let (tell, told) = mpsc::channel();
    give.send(start(take, tell)).unwrap();
    told.recv().unwrap()
}

#[test]
fn waiting_for_oneself_is_an_error_in_a_closure_and_in_a_task() {
    ends(|| {
        let runtime = runtime(1);
        let kind = with_own_handle(|take, tell| {
            runtime.spawn_fn(move || {
                let me = blocking(|| take.recv().unwrap());
                tell.send(me.get().unwrap_err().kind()).unwrap();
            })
        });
        assert_eq!(kind, WaitErrorKind::WaitsForItself);
        let kind = with_own_handle(|take, tell| {
            runtime.spawn(async move {
                let me = blocking(|| take.recv().unwrap());
                tell.send(me.await.unwrap_err().kind()).unwrap();
            })
        });
        assert_eq!(kind, WaitErrorKind::WaitsForItself);
        let kind = with_own_handle(|take, tell| {
            runtime.spawn(async move {
                let me = blocking(|| take.recv().unwrap());
                // The blocking form, inside a poll.
                tell.send(me.get().unwrap_err().kind()).unwrap();
            })
        });
        assert_eq!(kind, WaitErrorKind::WaitsForItself);
        still_works(&runtime);
    });
}

#[test]
fn a_circle_of_waits_is_broken_by_cancelling() {
    ends(|| {
        let runtime = runtime(2);
        let slots: [Arc<Mutex<Option<Handle<()>>>>; 2] = Default::default();
        let (go, wait) = mpsc::channel::<()>();
        let wait = Arc::new(Mutex::new(wait));
        let handles: Vec<_> = (0..2)
            .map(|i| {
                let (other, wait) = (slots[1 - i].clone(), wait.clone());
                runtime.spawn(async move {
                    blocking(|| wait.lock().unwrap().recv().unwrap());
                    let other = other.lock().unwrap().take().unwrap();
                    let _ = other.await;
                })
            })
            .collect();
        for (slot, handle) in slots.iter().zip(handles) {
            *slot.lock().unwrap() = Some(handle);
        }
        go.send(()).unwrap();
        go.send(()).unwrap();
        still_works(&runtime);
        let report = runtime.shutdown(Shutdown::Cancel);
        assert_eq!(report.left, 0, "{report:?}");
    });
}

#[test]
fn waiting_after_a_shutdown_is_an_error() {
    ends(|| {
        let runtime = runtime(2);
        let pending: Vec<_> = (0..10)
            .map(|_| runtime.spawn(std::future::pending::<()>()))
            .collect();
        let waits = runtime.spawn(std::future::pending::<()>());
        let waiter = runtime.spawn_fn(move || waits.get().unwrap_err().kind());
        let done = runtime.spawn(async { 5 });
        while !done.is_finished() {
            std::thread::yield_now();
        }
        let report = runtime.shutdown(Shutdown::Cancel);
        assert_eq!(report.left, 0, "{report:?}");
        for handle in pending {
            assert!(handle.get().is_err());
        }
        // It was cancelled before it started, or saw the end of what it waited for.
        assert!(!matches!(waiter.get(), Ok(WaitErrorKind::WaitsForItself)));
        assert_eq!(done.get().unwrap(), 5, "a result that is there stays there");
    });
}

#[test]
fn spawning_after_a_shutdown_gives_a_handle_that_says_so() {
    ends(|| {
        let runtime = runtime(1);
        let (go, wait) = mpsc::channel::<()>();
        let (tell, told) = mpsc::channel();
        runtime
            .spawn_fn(move || {
                blocking(|| wait.recv().unwrap());
                let kinds = (
                    spawn(async {}).get().unwrap_err().kind(),
                    spawn_fn(|| ()).get().unwrap_err().kind(),
                );
                let forked = fib(10);
                tell.send((kinds, forked)).unwrap();
            })
            .detach();
        while runtime.stats().levels[0].total.closures == 0 {
            std::thread::yield_now();
        }
        let report = runtime.shutdown_within(Shutdown::Cancel, Duration::from_millis(50));
        assert_eq!(report.left, 1);
        go.send(()).unwrap();
        let (kinds, forked) = told.recv().unwrap();
        assert_eq!(kinds, (WaitErrorKind::ShutDown, WaitErrorKind::ShutDown));
        assert_eq!(forked, 55, "join still works");
    });
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
        let (tell, told): (Vec<_>, Vec<_>) = (0..30).map(|_| one_shot()).unzip();
        let waiting: Vec<_> = told
            .into_iter()
            .map(|told| runtime.spawn_fn(move || block_on(told)))
            .collect();
        while runtime.stats().threads_refused == 0 {
            std::thread::yield_now();
        }
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
            .map(|i| runtime.spawn_fn(move || spawn(async move { i }).get().unwrap()))
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

type Tell<T> = Box<dyn FnOnce(T) + Send>;

/// A future, and what ends it.
fn one_shot<T: Send + 'static>() -> (Tell<T>, impl Future<Output = T> + Send) {
    let slot = Arc::new(Mutex::new((None::<T>, None::<Waker>)));
    let theirs = slot.clone();
    let tell = move |value| {
        let waker = {
            let mut slot = theirs.lock().unwrap();
            slot.0 = Some(value);
            slot.1.take()
        };
        waker.into_iter().for_each(Waker::wake);
    };
    let wait = poll_fn(move |cx| {
        let mut slot = slot.lock().unwrap();
        match slot.0.take() {
            Some(value) => Poll::Ready(value),
            None => {
                slot.1 = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    });
    (Box::new(tell), wait)
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
        let (tell, told): (Vec<_>, Vec<_>) = (0..30).map(|_| one_shot()).unzip();
        let waiting: Vec<_> = told
            .into_iter()
            .map(|told| runtime.spawn_fn(move || block_on(told)))
            .collect();
        while runtime.stats().threads_refused == 0 {
            std::thread::yield_now();
        }
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
            assert!(!runtime.stats().can_demote, "the probe needs a thread");
            drop(runtime);
        },
    );
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

/// Takes all descriptors that are left, and returns them.
fn no_more_descriptors() -> Vec<std::fs::File> {
    let limit = Rlimit {
        current: Some(200),
        maximum: Some(200),
    };
    setrlimit(Resource::Nofile, limit).unwrap();
    std::iter::from_fn(|| std::fs::File::open("/dev/null").ok()).collect()
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
        let bound =
            runtime.spawn(async { urgency::net::TcpListener::bind("127.0.0.1:0").is_err() });
        assert!(bound.get().unwrap(), "no descriptor, no listener");
        let slept = runtime.spawn(async { time::sleep(Duration::from_millis(1)).await });
        // A timer needs descriptors: a panic that says so, or it is served in another way.
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| slept.get().unwrap())) {
            assert!(panic.downcast_ref::<String>().is_some());
        }
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
            let listener = urgency::net::TcpListener::bind("127.0.0.1:0").unwrap();
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

/// Panics when it is dropped, unless a panic is under way.
struct PanicsInDrop;

impl Drop for PanicsInDrop {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            panic!("on purpose, in a drop");
        }
    }
}

#[test]
fn a_panic_in_every_kind_of_context_reaches_whoever_waits_and_the_runtime_goes_on() {
    type Case = fn();
    let cases: [(&str, Case); 14] = [
        ("join left", || {
            join(|| panic!("on purpose"), || fib(5));
        }),
        ("join right", || {
            join(|| fib(5), || panic!("on purpose"));
        }),
        ("join both", || {
            join(|| panic!("on purpose"), || panic!("the other, on purpose"));
        }),
        ("scope body", || {
            scope(|s| {
                s.spawn(|| fib(5));
                panic!("on purpose")
            })
        }),
        ("scope child", || {
            scope(|s| s.spawn(|| panic!("on purpose")))
        }),
        ("scope sync", || {
            scope(|s| {
                s.spawn(|| panic!("on purpose"));
                s.sync();
                unreachable!("sync resumes the panic of a child")
            })
        }),
        ("task", || {
            spawn(async { panic!("on purpose") }).get().unwrap()
        }),
        ("task later", || {
            spawn(async {
                yield_now().await;
                panic!("on purpose")
            })
            .get()
            .unwrap()
        }),
        ("closure", || {
            spawn_fn(|| panic!("on purpose")).get().unwrap()
        }),
        ("blocking", || blocking(|| panic!("on purpose"))),
        ("block_on", || block_on(async { panic!("on purpose") })),
        ("shared", || {
            let shared = spawn_fn(|| -> u32 { panic!("on purpose") }).share();
            let other = shared.clone();
            assert_eq!(panics(|| shared.get()), "on purpose");
            other.get().unwrap();
        }),
        ("in blocking in join in task", || {
            spawn(async {
                join(|| blocking(|| fib(3)), || blocking(|| panic!("on purpose")));
            })
            .get()
            .unwrap()
        }),
        ("drop of a result", || {
            spawn(async { PanicsInDrop }).get().map(drop).unwrap();
        }),
    ];
    ends(move || {
        for workers in [1, 2, 3] {
            let runtime = runtime(workers);
            for (name, case) in cases {
                for _ in 0..10 {
                    let text = panics(|| runtime.run(case));
                    assert!(text.starts_with("on purpose"), "{name}: {text}");
                    let text = panics(|| runtime.spawn_fn(case).get());
                    assert!(text.starts_with("on purpose"), "{name}: {text}");
                    let text = panics(|| runtime.spawn(async move { case() }).get());
                    assert!(text.starts_with("on purpose"), "{name}: {text}");
                }
            }
            still_works(&runtime);
            let report = runtime.shutdown(Shutdown::Drain);
            assert_eq!(report.left, 0, "{report:?}");
        }
    });
}

#[test]
fn a_panic_in_the_drop_of_a_future_or_of_its_result_stays_in_the_task() {
    ends(|| {
        let runtime = runtime(2);
        for i in 0..50 {
            // Dropped at its end, when cancelled, when detached, and with its result unwanted.
            let ends = runtime.spawn(async {
                let _bomb = PanicsInDrop;
                yield_now().await;
            });
            assert_eq!(panics(|| ends.get()), "on purpose, in a drop");
            let cancelled = runtime.spawn(async {
                let _bomb = PanicsInDrop;
                std::future::pending::<()>().await;
            });
            if i % 2 == 0 {
                still_works(&runtime);
            }
            cancelled.cancel();
            let _ = catch_unwind(AssertUnwindSafe(|| cancelled.get()));
            // The unwanted result is dropped by the task, or here if the task was faster.
            let unwanted = runtime.spawn(async { PanicsInDrop });
            let _ = catch_unwind(AssertUnwindSafe(|| unwanted.detach()));
            let unwanted = runtime.spawn_fn(|| PanicsInDrop);
            let _ = catch_unwind(AssertUnwindSafe(|| unwanted.detach()));
            let late = runtime.spawn(async { PanicsInDrop });
            while !late.is_finished() {
                std::thread::yield_now();
            }
            let _ = catch_unwind(AssertUnwindSafe(|| drop(late)));
        }
        still_works(&runtime);
        let pending = runtime.spawn(async {
            let _bomb = PanicsInDrop;
            std::future::pending::<()>().await;
        });
        let report = runtime.shutdown(Shutdown::Cancel);
        assert_eq!(report.left, 0, "{report:?}");
        let _ = catch_unwind(AssertUnwindSafe(|| pending.get()));
    });
}

/// A waker that panics, as anybody may write one.
struct PanicsInWake(AtomicUsize);

impl Wake for PanicsInWake {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, SeqCst);
        panic!("on purpose, in a waker");
    }
}

#[test]
fn a_panic_in_a_waker_costs_no_thread_and_no_other_wake_up() {
    ends(|| {
        for workers in [1, 2] {
            let runtime = runtime(workers);
            let woken = Arc::new(PanicsInWake(AtomicUsize::new(0)));
            let waker = Waker::from(woken.clone());
            for round in 1..=10 {
                // By the end of a task.
                let (tell, told) = one_shot::<()>();
                let mut handle = runtime.spawn(told);
                let pending = Pin::new(&mut handle).poll(&mut Context::from_waker(&waker));
                assert!(pending.is_pending());
                tell(());
                while woken.0.load(SeqCst) < 2 * round - 1 {
                    std::thread::yield_now();
                }
                handle.get().unwrap();
                // By a timer.
                let waker = waker.clone();
                let sleeping = runtime.spawn(async move {
                    let mut sleep = pin!(time::sleep(Duration::from_millis(1)));
                    let pending = sleep.as_mut().poll(&mut Context::from_waker(&waker));
                    assert!(pending.is_pending());
                    // The other timers expire with it, or after it.
                    let others: Vec<_> = (0..5)
                        .map(|_| spawn(time::sleep(Duration::from_millis(1))))
                        .collect();
                    for other in others {
                        other.await.unwrap();
                    }
                });
                sleeping.get().unwrap();
                while woken.0.load(SeqCst) < 2 * round {
                    std::thread::yield_now();
                }
            }
            still_works(&runtime);
            assert!(runtime.stats().threads >= 1);
        }
    });
}

#[test]
fn a_forgotten_handle_harms_nobody() {
    ends(|| {
        let runtime = runtime(2);
        let ran = Arc::new(AtomicUsize::new(0));
        for _ in 0..100 {
            let ran = ran.clone();
            std::mem::forget(runtime.spawn(async move {
                yield_now().await;
                ran.fetch_add(1, SeqCst)
            }));
        }
        std::mem::forget(runtime.spawn(std::future::pending::<()>()));
        let report = runtime.shutdown_within(Shutdown::Drain, Duration::from_millis(500));
        assert_eq!(
            (report.finished, report.cancelled, report.left),
            (100, 1, 0)
        );
        assert_eq!(ran.load(SeqCst), 100);
    });
}

/// A `block_on` whose future is forgotten half-way cannot leave anything that wakes a dead stack.
#[test]
fn a_waker_that_outlives_its_stack_and_its_runtime_is_harmless() {
    ends(|| {
        let kept = Arc::new(Mutex::new(Vec::new()));
        let runtime = runtime(2);
        for _ in 0..20 {
            let keep = || {
                let kept = kept.clone();
                let mut polls = 0;
                poll_fn(move |cx| {
                    kept.lock().unwrap().push(cx.waker().clone());
                    polls += 1;
                    if polls == 3 {
                        return Poll::Ready(());
                    }
                    cx.waker().wake_by_ref();
                    Poll::Pending
                })
            };
            runtime.block_on(keep());
            let closure = keep();
            runtime.spawn_fn(move || block_on(closure)).get().unwrap();
            runtime.spawn(keep()).get().unwrap();
            // Stale wake-ups of stacks that do other things now.
            kept.lock().unwrap().iter().for_each(Waker::wake_by_ref);
            assert_eq!(runtime.run(|| fib(10)), 55);
        }
        drop(runtime);
        for waker in kept.lock().unwrap().drain(..) {
            waker.wake_by_ref();
            waker.wake();
        }
    });
}

#[test]
fn a_child_spawned_from_another_runtime_belongs_to_its_scope() {
    ends(|| {
        let (one, other) = (runtime(2), runtime(2));
        let count = AtomicUsize::new(0);
        for _ in 0..50 {
            one.run(|| {
                scope(|s| {
                    other.run(|| {
                        for _ in 0..10 {
                            s.spawn(|| count.fetch_add(1, SeqCst));
                        }
                    });
                    std::thread::scope(|threads| {
                        threads.spawn(|| s.spawn(|| count.fetch_add(1, SeqCst)));
                    });
                    blocking(|| s.spawn(|| count.fetch_add(1, SeqCst)));
                    block_on(async { s.spawn(|| count.fetch_add(1, SeqCst)) });
                });
            });
        }
        assert_eq!(count.load(SeqCst), 50 * 13);
    });
}

#[test]
fn a_child_spawned_under_a_panic_in_another_runtime_still_runs_before_its_scope_ends() {
    ends(|| {
        let (one, other) = (runtime(1), runtime(1));
        let count = AtomicUsize::new(0);
        let text = panics(|| {
            one.run(|| {
                scope(|s| {
                    other.run(|| {
                        s.spawn(|| count.fetch_add(1, SeqCst));
                        panic!("on purpose");
                    });
                });
            })
        });
        assert_eq!(text, "on purpose");
        assert_eq!(count.load(SeqCst), 1);
        still_works(&one);
        still_works(&other);
    });
}

#[test]
fn a_runtime_that_runs_in_itself_at_another_level_does_not_deadlock() {
    urgency::levels! { pub Two: High > Low }
    ends(|| {
        let runtime = Runtime::builder()
            .workers(1)
            .levels::<Two>()
            .build()
            .unwrap();
        let sum = runtime.run_at(Low, || {
            runtime.run_at(High, || runtime.run_at(Low, || fib(10)) + fib(10)) + fib(10)
        });
        assert_eq!(sum, 165);
    });
}

#[test]
fn a_result_taken_twice_is_a_panic_that_says_so() {
    ends(|| {
        let runtime = runtime(1);
        let mut handle = runtime.spawn(async { 1 });
        let one = loop {
            if let Some(one) = handle.try_get() {
                break one.unwrap();
            }
        };
        assert_eq!(one, 1);
        assert!(panics(|| handle.try_get()).contains("once"));
        still_works(&runtime);
    });
}

#[test]
fn an_endless_recursion_of_spawns_is_cancelled_by_a_shutdown() {
    fn forever(
        count: Arc<AtomicUsize>,
        stop: Arc<AtomicBool>,
    ) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(async move {
            count.fetch_add(1, SeqCst);
            if !stop.load(SeqCst) {
                spawn(forever(count.clone(), stop.clone())).detach();
                yield_now().await;
            }
        })
    }
    ends(|| {
        let runtime = runtime(2);
        let count = Arc::new(AtomicUsize::new(0));
        runtime
            .spawn(forever(count.clone(), Arc::default()))
            .detach();
        while count.load(SeqCst) < 1000 {
            std::thread::yield_now();
        }
        let report = runtime.shutdown(Shutdown::Cancel);
        assert_eq!(report.left, 0, "{report:?}");
        let sum = report.finished + report.cancelled + report.panicked;
        assert_eq!(sum, report.spawned, "{report:?}");
    });
}
