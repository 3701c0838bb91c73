//! What tasks inherit: deadlines and locals, by whatever way the work comes to where it runs.

mod common;

use common::{ends, runtime, stolen};
use std::{
    future::pending,
    pin::pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
        mpsc,
    },
    task::{Context, Waker},
    time::{Duration, Instant},
};
use urgency::{
    JoinErrorKind, Shutdown, block_on,
    life::{Local, current_deadline, with_deadline},
    sync::oneshot,
    yield_now,
};

const HOUR: Duration = Duration::from_secs(3600);

#[test]
fn a_deadline_is_inherited_by_tasks_and_closures_and_the_earlier_one_counts() {
    ends(|| {
        let runtime = runtime(2);
        let at = Instant::now() + HOUR;
        let outcome = runtime.block_on(with_deadline(at, async move {
            let child = urgency::spawn(with_deadline(at + HOUR, async { current_deadline() }));
            let closure = urgency::spawn_fn(current_deadline);
            let earlier = with_deadline(at - Duration::from_secs(1), async { current_deadline() });
            (child.await, closure.await, earlier.await)
        }));
        let (child, closure, earlier) = outcome.unwrap();
        assert_eq!(child.unwrap(), Ok(Some(at)));
        assert_eq!(closure.unwrap(), Some(at));
        assert_eq!(earlier, Ok(Some(at - Duration::from_secs(1))));
        assert_eq!(current_deadline(), None);
    });
}

#[test]
fn a_deadline_cancels_what_is_left() {
    ends(|| {
        let runtime = runtime(2);
        let at = Instant::now() + Duration::from_millis(50);
        let (tell, told) = oneshot::channel();
        let outcome = runtime.block_on(with_deadline(at, async move {
            let grandchild =
                urgency::spawn(async { urgency::spawn(async { pending::<()>().await }).await });
            tell.send(grandchild).unwrap();
            pending::<()>().await
        }));
        assert!(outcome.is_err() && Instant::now() >= at);
        let grandchild = told.blocking_recv().unwrap().get();
        let kind = match &grandchild {
            Ok(inner) => inner.as_ref().unwrap_err().kind(),
            Err(error) => error.kind(),
        };
        assert_eq!(kind, JoinErrorKind::Cancelled);
    });
}

#[test]
fn what_has_not_begun_when_its_deadline_has_passed_never_runs() {
    ends(|| {
        let runtime = runtime(2);
        let ran = Arc::new(AtomicBool::new(false));
        let (task, closure) = (ran.clone(), ran.clone());
        let spawned = runtime.block_on(with_deadline(Instant::now(), async move {
            let task = urgency::spawn(async move { task.store(true, SeqCst) });
            (task, urgency::spawn_fn(move || closure.store(true, SeqCst)))
        }));
        // The body is ready at its first poll, so its result counts.
        let (task, closure) = spawned.unwrap();
        for ended in [task.get(), closure.get()] {
            assert_eq!(ended.unwrap_err().kind(), JoinErrorKind::Cancelled);
        }
        assert!(!ran.load(SeqCst));
        assert_eq!(runtime.shutdown(Shutdown::Drain).cancelled, 2);
    });
}

#[test]
fn code_that_goes_on_past_its_deadline_can_read_files() {
    let read = || urgency::fs::read("Cargo.toml");
    let in_closure = with_deadline(Instant::now(), async { block_on(read()) });
    assert!(block_on(in_closure).unwrap().is_ok());
}

#[test]
fn a_task_with_a_deadline_that_runs_while_its_runtime_is_shut_down_does_not_panic() {
    ends(|| {
        let runtime = runtime(1);
        let (go, begun) = (Arc::new(AtomicBool::new(false)), mpsc::channel());
        let theirs = go.clone();
        let child = runtime.block_on(with_deadline(Instant::now() + HOUR, async move {
            [urgency::spawn(async move {
                begun.0.send(()).unwrap();
                while !theirs.load(SeqCst) {
                    std::thread::yield_now();
                }
                pending::<()>().await
            })]
        }));
        begun.1.recv().unwrap();
        let report = runtime.shutdown_within(Shutdown::Cancel, Duration::ZERO);
        go.store(true, SeqCst);
        assert_eq!((report.panicked, report.left), (0, 1));
        let [child] = child.unwrap();
        let kind = child.get().unwrap_err().kind();
        assert!(
            matches!(kind, JoinErrorKind::Cancelled | JoinErrorKind::ShutDown),
            "{kind:?}"
        );
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
fn stolen_forks_have_the_deadline_and_the_locals_of_the_code_that_forked_them() {
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
                        (name(), current_deadline(), spawned.get().unwrap())
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

#[test]
fn a_value_that_a_later_one_of_the_same_local_hides_is_dropped() {
    static STEP: Local<Step> = Local::new();
    static ALIVE: AtomicUsize = AtomicUsize::new(0);
    static MOST: AtomicUsize = AtomicUsize::new(0);
    static NAME: Local<u32> = Local::new();
    const STEPS: u32 = if cfg!(urgency_chaos) { 20_000 } else { 200_000 };

    struct Step(u32);
    impl Step {
        fn new(n: u32) -> Self {
            MOST.fetch_max(ALIVE.fetch_add(1, SeqCst) + 1, SeqCst);
            Step(n)
        }
    }
    impl Drop for Step {
        fn drop(&mut self) {
            ALIVE.fetch_sub(1, SeqCst);
        }
    }
    /// A service of which each step spawns the next.
    fn next(n: u32, tell: oneshot::Sender<Option<u32>>) {
        let named = NAME.with(n, async move {
            let step = STEP.with(Step::new(n), async move {
                assert_eq!(STEP.get().map(|step| step.0), Some(n));
                if n == STEPS {
                    let _ = tell.send(NAME.get().as_deref().copied());
                } else {
                    next(n + 1, tell);
                }
            });
            step.await
        });
        urgency::spawn(named).detach();
    }
    ends(|| {
        let runtime = runtime(1);
        let (tell, told) = oneshot::channel();
        runtime.run(|| next(0, tell));
        assert_eq!(told.blocking_recv().unwrap(), Some(STEPS));
        runtime.shutdown(Shutdown::Drain);
        assert_eq!(ALIVE.load(SeqCst), 0);
        // Some for each thread that lost its processor; without the drop there would be one for each step.
        assert!(MOST.load(SeqCst) <= 100, "{MOST:?} values at once");
    });
}

#[test]
fn the_drop_of_a_future_has_the_locals_that_its_polls_had() {
    static NAME: Local<&str> = Local::new();
    /// Notes the name as it is dropped.
    #[derive(Clone, Default)]
    struct Seen(Arc<Mutex<Vec<Option<&'static str>>>>);
    impl Drop for Seen {
        fn drop(&mut self) {
            let name = NAME.get().as_deref().copied();
            self.0.lock().unwrap().push(name);
        }
    }
    ends(|| {
        let runtime = runtime(1);
        let notes = Arc::default();
        let never = |name: &'static str| {
            let seen = Seen(Arc::clone(&notes));
            NAME.with(name, async move {
                let _seen = seen;
                pending::<()>().await
            })
        };
        {
            let mut polled = pin!(never("polled"));
            let mut context = Context::from_waker(Waker::noop());
            assert!(polled.as_mut().poll(&mut context).is_pending());
        }
        drop(never("not polled"));
        let seen = Seen(Arc::clone(&notes));
        let [task] = runtime.block_on(NAME.with("task", async {
            [urgency::spawn(async move {
                let _seen = seen;
                pending::<()>().await
            })]
        }));
        task.abort();
        assert!(task.get().is_err());
        let (seen, gone) = (Seen(Arc::clone(&notes)), Instant::now());
        let closure = NAME.with("closure", async {
            with_deadline(gone, async { [urgency::spawn_fn(move || drop(seen))] }).await
        });
        let [closure] = runtime.block_on(closure).unwrap();
        assert!(closure.get().is_err());
        let names = notes.lock().unwrap().clone();
        let expected = ["polled", "not polled", "task", "closure"].map(Some);
        assert_eq!(names, expected);
        assert_eq!(NAME.get(), None);
    });
}
