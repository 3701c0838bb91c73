//! Cancellation, scopes, deadlines, locals, admission, panic policies, and a shutdown by levels.

mod common;

use common::{ends, in_child, is_child, quiet, runtime, with_levels};
use std::{
    future::pending,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
    },
    time::{Duration, Instant},
};
use urgency::{
    BuildError, Handle, LevelId, Runtime, Shutdown, WaitErrorKind, block_on,
    life::{
        CancelToken, Capacity, Local, PanicPolicy, TaskScope, admit, admit_blocking, deadline,
        task_scope, try_admit, with_deadline,
    },
    scheduling_point,
    sync::{Notify, Semaphore, oneshot},
    yield_now,
};

urgency::levels! { App: High > Middle > Low }

/// Counts its drops.
#[derive(Clone, Default)]
struct Count(Arc<AtomicUsize>);

impl Count {
    fn get(&self) -> usize {
        self.0.load(SeqCst)
    }

    fn on_drop(&self) -> impl Drop + Send + use<> {
        struct Dropped(Count);
        impl Drop for Dropped {
            fn drop(&mut self) {
                self.0.0.fetch_add(1, SeqCst);
            }
        }
        Dropped(self.clone())
    }
}

#[test]
fn a_token_cancels_all_below_it_and_nothing_above() {
    let root = CancelToken::new();
    let (one, two) = (root.child(), root.child());
    let below = one.child();
    one.cancel();
    assert!(one.is_cancelled() && below.is_cancelled() && one.child().is_cancelled());
    assert!(!root.is_cancelled() && !two.is_cancelled());
    drop(below);
    root.cancel();
    assert!(two.is_cancelled() && root.child().is_cancelled());
    block_on(two.cancelled());
    assert_eq!(block_on(two.run(async { 1 })), Some(1), "the result counts");
    assert_eq!(block_on(two.run(pending::<()>())), None);
}

#[test]
fn a_chain_of_a_hundred_thousand_tokens_is_cancelled_and_dropped_without_a_deep_stack() {
    let root = CancelToken::new();
    let mut last = root.child();
    for _ in 0..100_000 {
        last = last.child();
    }
    root.cancel();
    assert!(last.is_cancelled());
    drop((root, last));
}

#[test]
fn tokens_that_are_made_while_the_tree_is_cancelled_are_all_cancelled() {
    ends(|| {
        let runtime = runtime(2);
        for _ in 0..50 {
            let root = CancelToken::new();
            let makers: Vec<_> = (0..2)
                .map(|_| {
                    let root = root.clone();
                    runtime.spawn_fn(move || (0..50).map(|_| root.child()).collect::<Vec<_>>())
                })
                .collect();
            root.cancel();
            for maker in makers {
                assert!(maker.get().unwrap().iter().all(CancelToken::is_cancelled));
            }
        }
    });
}

#[test]
fn a_scope_waits_for_its_tasks_and_for_those_that_they_spawn() {
    ends(|| {
        let runtime = runtime(2);
        let done = Count::default();
        let theirs = done.clone();
        runtime.block_on(task_scope(async move |scope| {
            for _ in 0..20 {
                let (again, done) = (scope.clone(), theirs.clone());
                scope.spawn(async move {
                    yield_now().await;
                    let inner = done.on_drop();
                    again.spawn_fn(move || drop(inner));
                    drop(done.on_drop());
                });
            }
        }));
        assert_eq!(done.get(), 40);
    });
}

#[test]
fn a_panic_in_a_scope_cancels_the_others_and_goes_on_when_they_are_over() {
    quiet();
    ends(|| {
        let runtime = runtime(2);
        for in_body in [true, false] {
            let over = Count::default();
            let theirs = over.clone();
            let task = runtime.spawn(task_scope(async move |scope| {
                for _ in 0..10 {
                    let kept = theirs.on_drop();
                    scope.spawn(async move {
                        let _kept = kept;
                        pending::<()>().await
                    });
                }
                if in_body {
                    panic!("on purpose");
                }
                scope.spawn(async { panic!("on purpose") });
                assert!(scope.live() > 0);
            }));
            let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| task.get()));
            let text = *result.unwrap_err().downcast::<&str>().unwrap();
            assert_eq!(text == "on purpose", in_body, "{text}");
            assert_eq!(over.get(), 10, "nobody outlives the scope");
        }
    });
}

#[test]
fn a_task_that_is_cancelled_before_it_ran_is_in_its_scope_until_nothing_is_left_of_it() {
    /// Notes how many tasks are in the scope as it is dropped.
    struct Seen(TaskScope, Arc<Mutex<Vec<usize>>>);
    impl Drop for Seen {
        fn drop(&mut self) {
            self.1.lock().unwrap().push(self.0.live());
        }
    }
    ends(|| {
        let runtime = runtime(1);
        let seen = Arc::new(Mutex::new(Vec::new()));
        let theirs = seen.clone();
        let scope = task_scope(async move |scope| {
            let (of_task, of_closure) = (
                Seen(scope.clone(), theirs.clone()),
                Seen(scope.clone(), theirs),
            );
            scope.spawn(async move {
                pending::<()>().await;
                drop(of_task)
            });
            scope.spawn_fn(move || drop(of_closure));
            scope.cancel();
        });
        runtime.spawn(scope).get().unwrap();
        let mut seen = seen.lock().unwrap().clone();
        seen.sort_unstable();
        assert!(seen == [1, 2] || seen == [2, 2], "{seen:?}");
    });
}

#[test]
fn a_scope_that_is_dropped_cancels_its_tasks() {
    ends(|| {
        let runtime = runtime(1);
        let (over, started) = (Count::default(), Arc::new(Notify::new()));
        let (theirs, told) = (over.clone(), started.clone());
        let task = runtime.spawn(task_scope(async move |scope| {
            for _ in 0..100 {
                let kept = theirs.on_drop();
                scope.spawn(async move {
                    let _kept = kept;
                    pending::<()>().await
                });
            }
            told.notify_one();
            pending::<()>().await
        }));
        started.wait_blocking();
        task.cancel();
        assert!(task.get().is_err());
        while over.get() < 100 {
            std::thread::yield_now();
        }
    });
}

#[test]
fn a_deadline_is_inherited_by_tasks_and_closures_and_cancels_what_is_left() {
    ends(|| {
        let runtime = runtime(2);
        let at = Instant::now() + Duration::from_millis(500);
        let (tell, told) = oneshot::channel();
        let outcome = runtime.block_on(with_deadline(at, async move {
            let later = at + Duration::from_secs(60);
            let child = urgency::spawn(with_deadline(later, async { deadline() }));
            assert_eq!(child.await.unwrap(), Ok(Some(at)), "the earlier one counts");
            let closure = urgency::spawn_fn(deadline);
            assert_eq!(closure.await.unwrap(), Some(at));
            let grandchild =
                urgency::spawn(async { urgency::spawn(async { pending::<()>().await }).await });
            tell.send(grandchild).unwrap();
            pending::<()>().await
        }));
        assert!(outcome.is_err() && Instant::now() >= at);
        let grandchild = told.recv_blocking().unwrap().get();
        let kind = match &grandchild {
            Ok(inner) => inner.as_ref().unwrap_err().kind(),
            Err(error) => error.kind(),
        };
        assert_eq!(kind, WaitErrorKind::Cancelled);
        assert_eq!(deadline(), None);
    });
}

#[test]
fn a_local_is_inherited_hidden_by_an_inner_one_and_gone_outside() {
    static NAME: Local<&str> = Local::new();
    static DEPTH: Local<u32> = Local::new();
    ends(|| {
        let runtime = runtime(2);
        let seen = runtime.block_on(NAME.with("outer", async {
            let child = urgency::spawn(DEPTH.with(1, async {
                let closure = urgency::spawn_fn(|| (NAME.get(), DEPTH.get()));
                let inner = NAME.with("inner", async {
                    yield_now().await;
                    urgency::spawn(async { NAME.get() }).await.unwrap()
                });
                (closure.await.unwrap(), inner.await, NAME.get())
            }));
            (child.await.unwrap(), DEPTH.get())
        }));
        let ((closure, inner, after), outside) = seen;
        assert_eq!(closure.0.as_deref(), Some(&"outer"));
        assert_eq!(closure.1.as_deref(), Some(&1));
        assert_eq!(inner.as_deref(), Some(&"inner"));
        assert_eq!(after.as_deref(), Some(&"outer"));
        assert_eq!(outside, None);
        assert_eq!(
            NAME.with_blocking("here", || NAME.get()).as_deref(),
            Some(&"here")
        );
        assert_eq!(NAME.get(), None);
    });
}

#[test]
fn no_more_tasks_are_admitted_than_the_level_has_room_for() {
    ends(|| {
        let builder = Runtime::builder().workers(2).levels::<App>();
        let runtime = builder.capacity(Low, 3).build().unwrap();
        let (live, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let tasks: Vec<Handle<()>> = runtime.block_on(async {
            let mut tasks = Vec::new();
            for n in 0..60 {
                let (live, most) = (live.clone(), most.clone());
                let enter = move || {
                    most.fetch_max(live.fetch_add(1, SeqCst) + 1, SeqCst);
                    live
                };
                let admission = admit(Low).await;
                tasks.push(if n % 2 == 0 {
                    admission.spawn(async move {
                        let live = enter();
                        yield_now().await;
                        live.fetch_sub(1, SeqCst);
                    })
                } else {
                    admission.spawn_fn(move || {
                        enter().fetch_sub(1, SeqCst);
                    })
                });
            }
            tasks
        });
        tasks.into_iter().for_each(|task| task.get().unwrap());
        assert!(most.load(SeqCst) <= 3);
        runtime.run(|| {
            let kept: Vec<_> = (0..3).map(|_| admit_blocking(Low)).collect();
            let refused = try_admit(Low).unwrap_err();
            assert_eq!((refused.level(), refused.limit()), (Low.into(), 3));
            let capacity = Capacity::of(Low).unwrap();
            assert_eq!((capacity.limit, capacity.free, capacity.refused), (3, 0, 1));
            drop(kept);
            assert!(try_admit(Low).is_ok());
            assert!(try_admit(High).is_ok() && Capacity::of(High).is_none());
        });
    });
}

#[test]
fn a_capacity_for_a_level_that_does_not_exist_is_an_error() {
    let level = LevelId::new(3).unwrap();
    let built = Runtime::builder()
        .levels::<App>()
        .capacity(level, 1)
        .build();
    assert_eq!(
        built.unwrap_err(),
        BuildError::NoSuchLevel { level, levels: 3 }
    );
}

#[test]
fn the_policy_hears_of_panics_for_which_nobody_waits() {
    quiet();
    ends(|| {
        let heard = Arc::new(AtomicUsize::new(0));
        let theirs = heard.clone();
        let policy = PanicPolicy::call(move |level| {
            assert_eq!(level, LevelId::from(Low));
            theirs.fetch_add(1, SeqCst);
            panic!("on purpose");
        });
        let builder = Runtime::builder().workers(1).levels::<App>();
        let runtime = builder.on_panic(policy).build().unwrap();
        let awaited = runtime.spawn_at(Low, async { panic!("on purpose") });
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| awaited.get()));
        assert!(result.is_err());
        // Detached before it runs: the one worker is taken.
        let gate = Arc::new(AtomicBool::new(false));
        let theirs = gate.clone();
        let busy = runtime.spawn_fn_at(High, move || {
            while !theirs.load(SeqCst) {
                scheduling_point()
            }
        });
        runtime
            .spawn_at(Low, async { panic!("on purpose") })
            .detach();
        gate.store(true, SeqCst);
        busy.get().unwrap();
        let report = runtime.shutdown(Shutdown::Drain);
        assert_eq!(report.panicked, 2);
        assert_eq!(heard.load(SeqCst), 1);
    });
}

#[test]
fn the_policy_to_abort_ends_the_process() {
    const NAME: &str = "the_policy_to_abort_ends_the_process";
    if !is_child() {
        let ended = std::panic::catch_unwind(|| in_child(NAME));
        let text = *ended.unwrap_err().downcast::<String>().unwrap();
        assert!(text.contains("its runtime is to abort"), "{text}");
        return;
    }
    let builder = Runtime::builder().workers(1);
    let runtime = builder.on_panic(PanicPolicy::abort()).build().unwrap();
    let _ = runtime.spawn(async { panic!("on purpose") }).get();
}

#[test]
fn a_shutdown_down_to_a_level_finishes_what_is_as_urgent_and_cancels_the_rest() {
    ends(|| {
        let runtime = with_levels::<App>(2);
        let (go, low) = (Arc::new(Semaphore::new(0)), Count::default());
        let spawned = Arc::new(AtomicUsize::new(0));
        let urgent: Vec<_> = [LevelId::from(High), Middle.into()]
            .map(|level| {
                let (go, spawned, low) = (go.clone(), spawned.clone(), low.clone());
                runtime.spawn_at(level, async move {
                    let _permit = go.acquire().await;
                    // Accepted: as urgent as needed. Refused: less urgent.
                    let child = urgency::spawn(async move { spawned.fetch_add(1, SeqCst) });
                    let kept = low.on_drop();
                    let refused = urgency::spawn_at(Low, async move {
                        let _kept = kept;
                        pending::<()>().await
                    });
                    child.await.unwrap();
                    drop(refused);
                })
            })
            .into();
        let background: Vec<_> = (0..50)
            .map(|_| {
                let kept = low.on_drop();
                runtime.spawn_at(Low, async move {
                    let _kept = kept;
                    pending::<()>().await
                })
            })
            .collect();
        let opener = std::thread::spawn({
            let (low, go) = (low.clone(), go.clone());
            move || {
                while low.get() < 50 {
                    std::thread::yield_now();
                }
                // The background is gone while the rest still goes on.
                go.add_permits(2);
            }
        });
        let report = runtime.shutdown(Shutdown::DrainDownTo(Middle.into()));
        opener.join().unwrap();
        urgent.into_iter().for_each(|task| task.get().unwrap());
        assert!(background.into_iter().all(|task| task.get().is_err()));
        assert_eq!(spawned.load(SeqCst), 2);
        assert_eq!((report.finished, report.cancelled, report.left), (4, 52, 0));
        assert_eq!(low.get(), 52);
    });
}

#[test]
fn a_wave_of_cancellations_under_overload_makes_room_at_once() {
    const WAVE: usize = 100_000;
    ends(|| {
        let runtime = with_levels::<App>(1);
        let (worked, over) = (Count::default(), Count::default());
        let gate = Arc::new(AtomicBool::new(false));
        let theirs = gate.clone();
        // The one worker is busy, and requests pile up: half of them wait in the queue, half of them (in
        // groups) for a signal.
        let busy = runtime.spawn_fn_at(High, move || {
            while !theirs.load(SeqCst) {
                scheduling_point()
            }
        });
        let all = CancelToken::new();
        let groups: Vec<_> = (0..100).map(|_| all.child()).collect();
        let requests: Vec<_> = (0..WAVE)
            .map(|n| {
                let (kept, worked, group) =
                    (over.on_drop(), worked.clone(), groups[n % 100].clone());
                runtime.spawn_at(Low, async move {
                    let _kept = kept;
                    let work = async {
                        drop(worked.on_drop());
                        pending::<()>().await
                    };
                    if n % 2 == 0 {
                        work.await;
                    } else if !group.is_cancelled() {
                        group.run(work).await;
                    }
                })
            })
            .collect();
        let dispatched = |runtime: &Runtime| runtime.stats().total().tasks;
        let before = dispatched(&runtime);
        all.cancel();
        requests.iter().step_by(2).for_each(Handle::cancel);
        // What comes now is more urgent than the remains of the wave, and does not wait for them.
        let seen = over.clone();
        let urgent = runtime.spawn_at(Middle, async move { seen.get() });
        gate.store(true, SeqCst);
        busy.get().unwrap();
        assert_eq!(urgent.get().unwrap(), 0, "the wave went first");
        let ended = requests.into_iter().map(Handle::get);
        let cancelled = ended.filter(Result::is_err).count();
        assert_eq!(cancelled, WAVE / 2);
        assert_eq!(worked.get(), 0, "work was done for what was cancelled");
        assert_eq!(over.get(), WAVE);
        let dispatches = dispatched(&runtime) - before;
        assert!(
            dispatches <= WAVE as u64 + 2,
            "{dispatches} dispatches: some ran twice"
        );
        assert!(
            runtime.stats().threads_peak <= 8,
            "cancelling needs no threads"
        );
    });
}

/// Runs `f` on a second worker, while the calling code waits for that in a job of a `join`.
fn stolen<R: Send>(f: impl FnOnce() -> R + Send) -> R {
    let started = AtomicBool::new(false);
    let wait = || {
        while !started.load(SeqCst) {
            std::hint::spin_loop();
        }
    };
    let f = || {
        started.store(true, SeqCst);
        f()
    };
    urgency::join(wait, f).1
}

#[test]
fn stolen_jobs_have_the_deadline_and_the_locals_of_the_code_that_forked_them() {
    static NAME: Local<&str> = Local::new();
    let name = || NAME.get().as_deref().copied();
    ends(move || {
        let runtime = runtime(2);
        let at = Instant::now() + Duration::from_secs(3600);
        let seen = runtime.block_on(NAME.with("outer", async {
            with_deadline(at, async {
                let inside = AtomicBool::new(false);
                // Stolen while the code that forked it is in another frame already.
                let wait = || {
                    while !inside.load(SeqCst) {
                        std::hint::spin_loop();
                    }
                };
                let (_, (found, until, spawned)) = urgency::join(
                    || NAME.with_blocking("inner", wait),
                    || {
                        inside.store(true, SeqCst);
                        let spawned = urgency::spawn(async { NAME.get() });
                        (name(), deadline(), spawned.get().unwrap())
                    },
                );
                assert_eq!((found, until), (Some("outer"), Some(at)));
                assert_eq!(spawned.as_deref(), Some(&"outer"));
                let inner = NAME.with_blocking("inner", || stolen(|| (name(), stolen(name))));
                (inner, stolen(name))
            })
            .await
        }));
        let inner = (Some("inner"), Some("inner"));
        assert_eq!(seen, Ok((inner, Some("outer"))));
        assert_eq!(runtime.run(|| stolen(name)), None);
        let outside = NAME.with_blocking("outside", || runtime.run(|| stolen(name)));
        assert_eq!(outside, Some("outside"));
    });
}

#[test]
fn a_child_of_a_scope_has_the_locals_of_the_code_that_spawned_it_wherever_it_runs() {
    static NAME: Local<&str> = Local::new();
    let name = || NAME.get().as_deref().copied();
    for workers in [1, 2] {
        let runtime = runtime(workers);
        let seen = std::sync::Mutex::new(Vec::new());
        runtime.run(|| {
            urgency::scope(|scope| {
                let note = |expected| seen.lock().unwrap().push((expected, name()));
                for _ in 0..100 {
                    scope.spawn(move || note(None));
                    NAME.with_blocking("inner", || {
                        scope.spawn(move || note(Some("inner")));
                    });
                }
                NAME.with_blocking("around", || {
                    scope.spawn(move || note(Some("around")));
                    scope.sync();
                    urgency::join(|| (), || note(Some("around")));
                });
            });
        });
        let seen = seen.into_inner().unwrap();
        assert_eq!(seen.len(), 202);
        assert!(seen.iter().all(|(expected, found)| expected == found));
    }
}
