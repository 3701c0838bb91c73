//! Code of the program's where the scheduler is in the middle of something: in a waker that an event calls, in the
//! name of a thread, in a destructor, in a wait inside of a poll, on another runtime inside of a poll. Whatever
//! it does, nothing is lost, nothing hangs, and what is not possible is said.

mod common;

use common::{ends, in_child, is_child, one_shot, panics, quiet, runtime, still_works};
use std::{
    future::Future,
    panic::{AssertUnwindSafe, catch_unwind, panic_any},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
        mpsc,
    },
    task::{Context, Wake, Waker},
    time::Duration,
};
use urgency::{
    LevelId, Runtime, Shutdown, block_on, blocking, current_level, future, join,
    life::{Local, PanicPolicy},
    scope, spawn, spawn_fn, time, yield_now,
};

/// Panics when it is dropped, unless a panic is under way.
struct PanicsInDrop;

impl Drop for PanicsInDrop {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            panic!("on purpose, in a drop");
        }
    }
}

/// What a waker is to do.
struct Does(Box<dyn Fn() + Send + Sync>);

impl Wake for Does {
    fn wake(self: Arc<Self>) {
        (self.0)();
    }
}

/// Runs `f` in a waker that a timer calls, and returns what it returned.
fn in_a_waker<T: Send + 'static>(
    runtime: &Runtime,
    f: impl Fn() -> T + Send + Sync + 'static,
) -> T {
    let (tell, told) = mpsc::channel();
    let waker = Waker::from(Arc::new(Does(Box::new(move || tell.send(f()).unwrap()))));
    loop {
        let mut sleep = Box::pin(runtime.run(|| time::sleep(Duration::from_millis(1))));
        let first = runtime.run(|| sleep.as_mut().poll(&mut Context::from_waker(&waker)));
        // This thread may come too late for it.
        if first.is_pending() {
            return told.recv().unwrap();
        }
    }
}

#[test]
fn a_wait_inside_of_a_poll_of_block_on_leaves_the_wake_up_of_the_outer_one() {
    ends(|| {
        let (go, gone) = one_shot();
        let (end, ended) = one_shot();
        let runtime = runtime(1);
        let waits = runtime.spawn_fn(|| {
            block_on(async {
                let first = async {
                    gone.await;
                    end(());
                };
                let second = async {
                    // The wake-up of `first` comes while this waits; the end of the task is another one.
                    let goes = spawn(async {
                        go(());
                        for _ in 0..10 {
                            yield_now().await;
                        }
                    });
                    goes.get().unwrap();
                    ended.await;
                };
                future::join_all([boxed(first), boxed(second)]).await
            });
        });
        waits.get().unwrap();
    });
}

fn boxed<'a, F: Future<Output = ()> + Send + 'a>(
    future: F,
) -> std::pin::Pin<Box<dyn Future<Output = ()> + Send + 'a>> {
    Box::pin(future)
}

#[test]
fn what_a_guest_inside_of_a_poll_makes_ready_is_run() {
    ends(|| {
        for other in [false, true] {
            let (here, there) = (Arc::new(runtime(1)), runtime(1));
            let (tell, told) = one_shot();
            let waits = here.spawn(told);
            while here.stats().levels[0].queued != 0 || here.stats().total().tasks == 0 {
                std::thread::yield_now();
            }
            let poll = if other {
                let here = here.clone();
                there.spawn(async move { here.run(|| tell(7)) })
            } else {
                here.spawn(async move { blocking(|| scope(|_| tell(7))) })
            };
            poll.get().unwrap();
            assert_eq!(waits.get().unwrap(), 7);
        }
    });
}

/// The thread that calls the waker ran code of a job with more levels, which has ended.
#[test]
fn a_waker_spawns_at_a_level_of_the_job_that_is_left() {
    urgency::levels! { Three: Urgent > Middle > Batch }
    ends(|| {
        let left = runtime(1);
        for _ in 0..20 {
            let ended = Runtime::builder().share_workers_with(&left);
            let ended = ended.levels::<Three>().build().unwrap();
            ended.at(Batch).spawn(async {}).get().unwrap();
            drop(ended);
            let task = in_a_waker(&left, || spawn(async { current_level() }));
            assert_eq!(task.get().unwrap().rank(), 0);
        }
    });
}

#[test]
fn a_waker_that_an_event_calls_may_spawn_send_and_call_what_blocks() {
    ends(|| {
        for workers in [1, 2] {
            let runtime = Arc::new(runtime(workers));
            assert_eq!(in_a_waker(&runtime, || blocking(|| 1)), 1);
            let spawned = in_a_waker(&runtime, || spawn(async { 2 }));
            assert_eq!(spawned.get().unwrap(), 2);
            let spawned = in_a_waker(&runtime, || spawn_fn(|| 3));
            assert_eq!(spawned.get().unwrap(), 3);
            let (tell, told) = one_shot();
            let tell = Mutex::new(Some(tell));
            in_a_waker(&runtime, move || tell.lock().unwrap().take().unwrap()(4));
            assert_eq!(block_on(told), 4);
            still_works(&runtime);
        }
    });
}

#[test]
fn a_waker_that_an_event_calls_and_that_forks_or_waits_is_told() {
    quiet();
    ends(|| {
        let runtime = runtime(1);
        let text = in_a_waker(&runtime, || panics(|| join(|| 1, || 2)));
        assert!(text.contains("neither fork nor wait"), "{text}");
        let text = in_a_waker(&runtime, || {
            panics(|| block_on(std::future::pending::<()>()))
        });
        assert!(text.contains("neither fork nor wait"), "{text}");
        let task = runtime.spawn(time::sleep(Duration::from_millis(5)));
        for how in [Shutdown::Drain, Shutdown::Cancel] {
            let other = runtime.clone();
            let text = in_a_waker(&runtime, move || panics(|| other.shutdown(how)));
            assert!(text.contains("for the end of a runtime"), "{text}");
        }
        task.get().unwrap();
        still_works(&runtime);
    });
}

#[test]
fn a_thread_whose_name_cannot_be_had_has_the_usual_one() {
    quiet();
    type Name = fn() -> String;
    let names: [Name; 3] = [
        || panic!("on purpose"),
        || panic_any(PanicsInDrop),
        || "a\0".into(),
    ];
    for name in names {
        ends(move || {
            let builder = Runtime::builder().workers(2).thread_name_fn(name);
            let runtime = builder.build().unwrap();
            assert_eq!(runtime.run(|| join(|| 1, || 2)), (1, 2));
            // Needs a thread for each that waits.
            let inner =
                runtime.spawn_fn(|| spawn_fn(|| spawn_fn(|| 3).get().unwrap()).get().unwrap());
            assert_eq!(inner.get().unwrap(), 3);
            let named = runtime.spawn_fn(|| std::thread::current().name().map(str::to_owned));
            assert_eq!(named.get().unwrap().as_deref(), Some("urgency"));
        });
    }
}

#[test]
fn a_call_at_a_thread_s_start_whose_panic_panics_again_ends_nothing() {
    quiet();
    ends(|| {
        let builder = Runtime::builder().workers(1);
        let builder = builder.on_thread_start(|| panic_any(PanicsInDrop));
        let runtime = builder.build().unwrap();
        assert_eq!(runtime.spawn(async { 1 }).get().unwrap(), 1);
        still_works(&runtime);
    });
}

#[test]
fn a_second_panic_of_a_child_that_panics_when_it_is_dropped_ends_no_scope_early() {
    quiet();
    for workers in [1, 2] {
        ends(move || {
            let runtime = runtime(workers);
            let ran = runtime.run(|| {
                let ran = AtomicBool::new(false);
                let ended = catch_unwind(AssertUnwindSafe(|| {
                    scope(|s| {
                        // The youngest first, where nobody steals.
                        s.spawn(|| ran.store(true, SeqCst));
                        s.spawn(|| panic_any(PanicsInDrop));
                        s.spawn(|| panic_any(PanicsInDrop));
                    });
                }));
                std::mem::forget(ended);
                ran.load(SeqCst)
            });
            assert!(ran, "the scope ended before its children");
            still_works(&runtime);
        });
    }
}

#[test]
fn the_first_panic_of_a_join_goes_on_whatever_the_second_result_does_when_it_is_dropped() {
    quiet();
    ends(|| {
        let runtime = runtime(2);
        let began = AtomicBool::new(false);
        let text = runtime.run(|| {
            panics(|| {
                let first = || {
                    while !began.load(SeqCst) {
                        urgency::scheduling_point();
                    }
                    panic!("on purpose, first");
                };
                join(first, || {
                    began.store(true, SeqCst);
                    PanicsInDrop
                })
            })
        });
        assert_eq!(text, "on purpose, first");
        still_works(&runtime);
    });
}

#[test]
fn a_value_that_a_stolen_child_drops_last_may_panic() {
    static LOCAL: Local<PanicsInDrop> = Local::new();
    quiet();
    ends(|| {
        let (started, stopped) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let (starts, stops) = (started.clone(), stopped.clone());
        let runtime = Runtime::builder()
            .workers(2)
            .on_thread_start(move || _ = starts.fetch_add(1, SeqCst))
            .on_thread_stop(move || _ = stops.fetch_add(1, SeqCst))
            .build()
            .unwrap();
        runtime.run(|| {
            let (began, left) = (AtomicBool::new(false), AtomicBool::new(false));
            scope(|s| {
                LOCAL.with_blocking(PanicsInDrop, || {
                    s.spawn(|| {
                        began.store(true, SeqCst);
                        while !left.load(SeqCst) {
                            std::thread::yield_now();
                        }
                    });
                    while !began.load(SeqCst) {
                        urgency::scheduling_point();
                    }
                });
                left.store(true, SeqCst);
            });
        });
        still_works(&runtime);
        runtime.shutdown(Shutdown::Drain);
        assert_eq!(
            started.load(SeqCst),
            stopped.load(SeqCst),
            "a thread is gone"
        );
    });
}

#[test]
fn a_stack_that_runs_others_on_top_of_itself_keeps_a_boost() {
    use urgency::embed::Host;
    urgency::levels! { Three: Urgent > Middle > Batch }
    ends(|| {
        let builder = Runtime::builder().workers(2).provided_threads();
        let runtime = builder.levels::<Three>().build().unwrap();
        let served = [0, 1].map(|number| {
            let host = Host::of(&runtime);
            std::thread::spawn(move || host.serve(number))
        });
        let (open, gate) = one_shot();
        let [(began, begun), (set, setting), (run, running)] = [(); 3].map(|()| mpsc::channel());
        let lower = runtime.at(Batch).spawn_fn(move || {
            began.send(()).unwrap();
            block_on(gate);
            current_level()
        });
        begun.recv().unwrap();
        let lower = Arc::new(Mutex::new(Some(lower)));
        let (theirs, go) = (lower.clone(), Arc::new(AtomicBool::new(false)));
        // Keeps one of the two threads, so that the other one's stack, which waits, runs what comes next.
        let upper = runtime.at(Urgent).spawn_fn(move || {
            set.send(()).unwrap();
            running.recv().unwrap();
            let lower = theirs.lock().unwrap().take().unwrap();
            lower.boost();
            lower
        });
        setting.recv().unwrap();
        let stay = go.clone();
        let on_top = runtime.at(Batch).spawn(async move {
            run.send(()).unwrap();
            while !stay.load(SeqCst) {
                std::hint::spin_loop();
            }
        });
        let lower = upper.get().unwrap();
        assert_eq!(lower.level(), LevelId::from(Urgent));
        open(());
        go.store(true, SeqCst);
        assert_eq!(lower.get().unwrap(), LevelId::from(Urgent));
        on_top.get().unwrap();
        drop(runtime);
        for thread in served {
            thread.join().unwrap();
        }
    });
}

#[test]
fn times_of_snapshots_never_go_back() {
    let runtime = runtime(1);
    runtime.run(|| {
        let begin = std::time::Instant::now();
        while begin.elapsed() < Duration::from_millis(20) {
            urgency::scheduling_point();
        }
    });
    let mut before = runtime.stats().total().running;
    for _ in 0..1000 {
        let after = runtime.stats().total().running;
        assert!(after >= before, "{before:?}, then {after:?}");
        before = after;
    }
}

#[test]
fn a_shutdown_may_take_as_long_as_it_takes() {
    ends(|| {
        let runtime = runtime(2);
        let tasks: Vec<_> = (0..10)
            .map(|n| {
                runtime.spawn(async move {
                    time::sleep(Duration::from_millis(5)).await;
                    n
                })
            })
            .collect();
        let report = runtime.shutdown_within(Shutdown::Drain, Duration::MAX);
        assert_eq!(report.finished, 10);
        drop(tasks);
    });
}

#[test]
fn a_plain_thread_gets_the_worker_of_another_where_no_thread_can_be_had() {
    if !common::is_child() {
        return common::in_child(
            "a_plain_thread_gets_the_worker_of_another_where_no_thread_can_be_had",
        );
    }
    ends(|| {
        const STACK: usize = 512 << 20;
        let builder = Runtime::builder().workers(1).thread_stack_size(STACK);
        let runtime = Arc::new(builder.build().unwrap());
        // From now on there is room for less than one such stack.
        common::limit_memory(Some(common::mapped_memory() + STACK as u64 / 2));
        let theirs = runtime.clone();
        let second = runtime.run(|| {
            let second = std::thread::spawn(move || theirs.run(|| common::fib(10)));
            while runtime.stats().levels[0].queued == 0 {
                std::thread::yield_now();
            }
            second
        });
        assert_eq!(second.join().unwrap(), 55);
    });
}

/// An audio thread, or a program under `chrt`: nobody would put its thread back.
#[cfg(target_os = "linux")]
#[test]
fn a_thread_of_the_program_s_own_class_keeps_it() {
    const BATCH: Option<u32> = Some(3);
    if !common::may_enter(BATCH) || !common::may_enter(common::IDLE) {
        println!("skipped: this process may not change classes");
        return;
    }
    ends(|| {
        let runtime = runtime(1);
        let folder = common::my_folder();
        let parameters = libc::sched_param { sched_priority: 0 };
        // SAFETY: `parameters` outlives the call.
        assert_eq!(unsafe { libc::sched_setscheduler(0, 3, &parameters) }, 0);
        runtime.run(|| {
            // Work that always waits, for which an overrunning thread is demoted.
            let stop = Arc::new(AtomicBool::new(false));
            let waits = [(); 3].map(|()| {
                let stop = stop.clone();
                runtime.spawn(async move {
                    while !stop.load(SeqCst) {
                        yield_now().await;
                    }
                })
            });
            while runtime.stats().total().reliefs == 0 {
                std::hint::spin_loop();
            }
            let since = std::time::Instant::now();
            while since.elapsed() < Duration::from_millis(20) {
                assert_eq!(common::class_of(&folder), BATCH);
            }
            stop.store(true, SeqCst);
            for handle in waits {
                handle.get().unwrap();
            }
        });
        assert_eq!(common::class_of(&folder), BATCH);
    });
}

/// Runs `f` in the destructor of what a runtime keeps of the program: its last reference is a thread's of its own.
fn when_a_runtime_is_gone(f: impl Fn() + Send + Sync + 'static) {
    struct OnDrop<F: Fn()>(F, mpsc::SyncSender<()>);
    impl<F: Fn()> Drop for OnDrop<F> {
        fn drop(&mut self) {
            self.1.send(()).unwrap();
            (self.0)();
            self.1.send(()).unwrap();
        }
    }
    let (tell, told) = mpsc::sync_channel(2);
    let kept = OnDrop(f, tell);
    let policy = PanicPolicy::call(move |_| drop(kept.1.clone()));
    let runtime = Runtime::builder().on_panic(policy).build().unwrap();
    let [(began, begins), (go_on, goes_on)] = [(); 2].map(|()| mpsc::channel());
    let runs = move || {
        began.send(()).unwrap();
        goes_on.recv().unwrap();
    };
    runtime.spawn_fn(runs).detach();
    begins.recv().unwrap();
    drop(runtime);
    go_on.send(()).unwrap();
    told.recv().unwrap();
    // Where it panics no second message comes, and the channel is closed.
    let _ = told.recv();
}

#[test]
fn what_a_runtime_keeps_of_the_program_may_do_anything_when_it_is_dropped() {
    if !is_child() {
        return in_child("what_a_runtime_keeps_of_the_program_may_do_anything_when_it_is_dropped");
    }
    quiet();
    ends(|| {
        when_a_runtime_is_gone(|| panic!("on purpose, in a drop"));
        when_a_runtime_is_gone(|| assert_eq!(join(|| 1, || 2), (1, 2)));
        when_a_runtime_is_gone(|| block_on(yield_now()));
        when_a_runtime_is_gone(|| assert_eq!(spawn_fn(|| 3).get().unwrap(), 3));
    });
}
