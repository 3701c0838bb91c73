//! The handle of a task: a panic is a value, a refused wait gives the handle back, an abort is for others too.

mod common;

use common::{Count, ends, in_child, is_child, quiet, runtime, with_levels};
use std::{
    future::{Future, pending, poll_fn},
    pin::Pin,
    sync::{
        atomic::{AtomicUsize, Ordering::SeqCst},
        mpsc,
    },
    task::Poll,
    thread,
    time::Duration,
};
use urgency::{
    JoinErrorKind, JoinHandle, Runtime, Shutdown, block_on,
    life::{TaskScope, TaskTracker, task_scope},
    sync::oneshot,
    task,
    time::timeout,
};

urgency::levels! { App: High > Low }

#[test]
fn a_supervisor_outlives_the_panic_of_what_it_awaits_and_starts_it_anew() {
    quiet();
    ends(|| {
        let runtime = runtime(1);
        let supervisor = runtime.spawn(async {
            let mut panics = Vec::new();
            for round in 0..5 {
                let worker = urgency::spawn(async move {
                    assert_eq!(round, 4, "on purpose");
                    round
                });
                match worker.await {
                    Ok(round) => return (round, panics),
                    Err(error) => panics.push(error.into_panic()),
                }
            }
            unreachable!("the last round does not panic")
        });
        let (round, panics) = supervisor.get().unwrap();
        assert_eq!((round, panics.len()), (4, 4));
        let said = panics[0].downcast_ref::<String>().unwrap();
        assert!(said.contains("on purpose"), "{said}");
        assert_eq!(runtime.stats().panicked, 4);
    });
}

#[test]
fn the_error_says_which_task_panicked_and_with_what() {
    quiet();
    ends(|| {
        let runtime = runtime(1);
        let number = std::hint::black_box(3);
        let handle = runtime.spawn(async move { panic!("on purpose {number}") });
        let id = handle.id();
        let error = handle.get().unwrap_err();
        assert_eq!((error.id(), error.kind()), (id, JoinErrorKind::Panicked));
        assert!(error.to_string().ends_with("on purpose 3"), "{error}");
        assert!(format!("{error:?}").contains("on purpose 3"), "{error:?}");
        let error = error.into_handle::<()>().unwrap_err();
        assert!(error.try_into_panic().unwrap().is::<String>());
    });
}

#[test]
fn a_wait_that_is_refused_gives_the_handle_back_as_it_was() {
    ends(|| {
        let runtime = with_levels::<App>(1);
        for by_get in [false, true] {
            let (open, gate) = oneshot::channel::<u32>();
            let low = runtime.at(Low).spawn(gate);
            let high = runtime.at(High).spawn(async move {
                let id = low.id();
                let refused = match by_get {
                    true => low.get().unwrap_err(),
                    false => low.await.unwrap_err(),
                };
                assert!(matches!(refused.kind(), JoinErrorKind::Inversion { .. }));
                assert!(!refused.is_cancelled() && !refused.is_panic());
                // Another type is not taken for it, and loses nothing.
                let refused = refused.into_handle::<u8>().unwrap_err();
                let low = refused.into_handle::<Result<u32, oneshot::error::RecvError>>();
                let low = low.unwrap();
                assert_eq!((low.id(), low.is_finished()), (id, false));
                low.boost();
                open.send(7).unwrap();
                low.await.unwrap().unwrap()
            });
            assert_eq!(high.get().unwrap(), 7);
        }
    });
}

#[test]
fn a_task_that_waits_for_itself_gets_its_handle_back_and_may_give_it_away() {
    ends(|| {
        let runtime = runtime(1);
        let (give, take) = oneshot::channel::<JoinHandle<u32>>();
        let (pass, other) = oneshot::channel();
        let handle = runtime.spawn(async move {
            let me = take.await.unwrap();
            let refused = me.await.unwrap_err();
            assert_eq!(refused.kind(), JoinErrorKind::WaitsForItself);
            let me = refused.into_handle::<u32>().unwrap();
            pass.send(me).unwrap();
            9
        });
        give.send(handle).unwrap();
        let result = runtime.block_on(async { other.await.unwrap().await });
        assert_eq!(result.unwrap(), 9);
    });
}

#[test]
fn an_error_with_a_handle_that_is_dropped_detaches_the_task() {
    ends(|| {
        let runtime = with_levels::<App>(1);
        let (open, gate) = oneshot::channel::<()>();
        let ran = Count::default();
        let theirs = ran.clone();
        let mut low = runtime.at(Low).spawn(async move {
            gate.await.unwrap();
            theirs.on_drop()
        });
        // A waker is in the slot when the wait is refused.
        let waited = runtime.block_on(timeout(Duration::ZERO, &mut low));
        assert!(waited.is_err());
        let high = runtime.at(High).spawn(async move {
            let refused = (&mut low).await.map(drop).unwrap_err();
            drop(low); // empty
            drop(refused);
        });
        high.get().unwrap();
        assert_eq!(ran.get(), 0);
        open.send(()).unwrap();
        let report = runtime.shutdown(Shutdown::Drain);
        assert_eq!((report.finished, report.cancelled), (2, 0));
        assert_eq!(ran.get(), 1, "the result that nobody wants is dropped");
    });
}

#[test]
fn an_abort_handle_ends_the_task_from_elsewhere_and_names_it() {
    ends(|| {
        let runtime = runtime(1);
        let endless = runtime.spawn(pending::<()>());
        let (abort, id) = (endless.abort_handle(), endless.id());
        assert_eq!((abort.id(), abort.is_finished()), (id, false));
        std::thread::spawn(move || abort.abort()).join().unwrap();
        let error = endless.get().unwrap_err();
        assert!(error.is_cancelled());
        assert_eq!(error.id(), id);
    });
}

#[test]
fn a_task_knows_its_own_id_and_other_code_has_none() {
    ends(|| {
        let runtime = runtime(2);
        let (one, two) = (
            runtime.spawn(async { task::id() }),
            runtime.spawn_fn(task::try_id),
        );
        let (first, second) = (one.id(), two.id());
        assert_ne!(first, second);
        assert_eq!(one.get().unwrap(), first);
        assert_eq!(two.get().unwrap(), Some(second));
        assert_eq!(task::try_id(), None);
        assert_eq!(block_on(async { task::try_id() }), None);
    });
}

#[test]
fn a_task_knows_its_own_id_in_a_blocking_call() {
    ends(|| {
        let runtime = runtime(2);
        let blocking = runtime.spawn_blocking(task::try_id);
        let id = blocking.id();
        assert_eq!(blocking.get().unwrap(), Some(id));

        let in_place = runtime.spawn(async { task::block_in_place(task::try_id) });
        let id = in_place.id();
        assert_eq!(in_place.get().unwrap(), Some(id));
    });
}

#[test]
fn a_panic_in_a_detached_task_is_heard_with_its_level_and_name() {
    const NAME: &str = "a_panic_in_a_detached_task_is_heard_with_its_level_and_name";
    async fn unlucky() {
        panic!("on purpose");
    }
    if is_child() {
        let builder = Runtime::builder().workers(1).levels::<App>();
        let runtime = builder.build().unwrap();
        let gate = runtime.at(High).spawn(async {
            // The worker is taken, so the task is detached before it runs.
            urgency::at(Low).spawn(unlucky()).detach();
            urgency::spawn(async { panic!("awaited") }).await.is_err()
        });
        assert!(gate.get().unwrap());
        assert_eq!(runtime.shutdown(Shutdown::Drain).panicked, 2);
        assert_eq!(runtime.stats().panicked, 2);
        // The assertion of the other process.
        panic!("over");
    }
    let ended = std::panic::catch_unwind(|| in_child(NAME));
    let text = *ended.unwrap_err().downcast::<String>().unwrap();
    assert!(text.contains("on purpose"), "by the hook: {text}");
    let heard = text.lines().filter(|line| line.starts_with("urgency: "));
    let heard: Vec<_> = heard.collect();
    assert_eq!(heard.len(), 1, "not the one that is awaited: {text}");
    let (named, leveled) = (heard[0].contains("unlucky"), heard[0].contains("`Low`"));
    assert!(named && leveled, "{}", heard[0]);
}

#[test]
fn the_line_about_a_panic_names_the_programs_own_code_and_nothing_around_it() {
    const NAME: &str = "the_line_about_a_panic_names_the_programs_own_code_and_nothing_around_it";
    /// Until then they do not panic.
    static DETACHED: AtomicUsize = AtomicUsize::new(0);
    fn closure() -> impl FnOnce() + Send {
        || {
            while DETACHED.load(SeqCst) < 6 {
                std::thread::yield_now();
            }
            panic!("on purpose")
        }
    }
    async fn future() {
        while DETACHED.load(SeqCst) < 6 {
            urgency::yield_now().await;
        }
        panic!("on purpose")
    }
    fn detach<T>(task: JoinHandle<T>) {
        task.detach();
        DETACHED.fetch_add(1, SeqCst);
    }
    if is_child() {
        // Else one task's backtrace may be printed in the middle of another one's line.
        common::quiet();
        let runtime = Runtime::builder().workers(1).build().unwrap();
        detach(runtime.spawn(future()));
        detach(runtime.spawn_fn(closure()));
        let scopes = [
            |scope: &TaskScope| detach(scope.spawn(future())),
            |scope: &TaskScope| detach(scope.spawn_fn(closure())),
        ]
        .map(|spawns| runtime.spawn(task_scope(async move |scope| spawns(&scope))));
        let tracker = TaskTracker::new();
        detach(tracker.spawn_on(future(), &runtime));
        detach(tracker.spawn_blocking_on(closure(), &runtime));
        assert!(scopes.into_iter().all(|scope| scope.get().is_err()));
        assert_eq!(runtime.shutdown(Shutdown::Drain).panicked, 8);
        panic!("over");
    }
    let ended = std::panic::catch_unwind(|| in_child(NAME));
    let text = *ended.unwrap_err().downcast::<String>().unwrap();
    let lines = text.lines().filter(|line| line.starts_with("urgency: "));
    let mut named: Vec<_> = lines.map(|line| line.split('`').nth(1).unwrap()).collect();
    named.sort_unstable();
    let own =
        ["closure", "future"].map(|name| format!("join_handle::{NAME}::{name}::{{{{closure}}}}"));
    // The panics in the scopes go on in the code that waits for these.
    assert_eq!(named, [[&own[0]; 2], [&own[1]; 2]].concat(), "{text}");
}

/// A select in a loop polls the handle each time.
#[test]
fn a_poll_that_asks_again_and_again_for_a_task_that_ends_with_the_runtime_is_not_told() {
    ends(|| {
        let runtime = runtime(2);
        let mut awaited = runtime.spawn(pending::<()>());
        let (begin, begun) = mpsc::channel();
        let asks = runtime.spawn(async move {
            poll_fn(|cx| {
                begin.send(()).unwrap();
                for _ in 0..20_000 {
                    assert!(Pin::new(&mut awaited).poll(cx).is_pending());
                    if awaited.is_finished() {
                        break;
                    }
                    thread::sleep(Duration::from_millis(1));
                }
                assert!(awaited.is_finished());
                assert!(Pin::new(&mut awaited).poll(cx).is_pending());
                assert!(Pin::new(&mut awaited).poll(cx).is_pending());
                let again = awaited.try_get().expect("it is finished");
                assert!(again.unwrap_err().is_cancelled());
                Poll::<()>::Pending
            })
            .await;
        });
        begun.recv().unwrap();
        runtime.shutdown(Shutdown::Cancel);
        assert!(asks.get().unwrap_err().is_cancelled());
    });
}

#[test]
fn a_set_that_is_asked_in_a_task_that_ends_with_its_runtime_answers() {
    ends(|| {
        let runtime = runtime(2);
        let (begin, begun) = mpsc::channel();
        let (tell, told) = mpsc::channel();
        let asks = runtime.spawn(async move {
            let mut set = task::JoinSet::new();
            set.spawn(pending::<()>());
            begin.send(()).unwrap();
            let ended = loop {
                if let Some(ended) = set.try_join_next() {
                    break ended;
                }
                thread::sleep(Duration::from_millis(1));
            };
            tell.send(ended.unwrap_err().is_cancelled()).unwrap();
        });
        begun.recv().unwrap();
        runtime.shutdown(Shutdown::Cancel);
        assert!(told.recv().unwrap());
        drop(asks);
    });
}

/// Ends its task when it is dropped. As in Tokio, nothing is asked of `T`: so it compiles in programs for Tokio.
struct AbortsOnDrop<T>(JoinHandle<T>);

impl<T> Drop for AbortsOnDrop<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl<T> Future for AbortsOnDrop<T> {
    type Output = Option<T>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut std::task::Context<'_>) -> Poll<Option<T>> {
        Pin::new(&mut self.0).poll(cx).map(Result::ok)
    }
}

#[test]
fn a_generic_type_holds_and_awaits_a_handle_without_a_bound() {
    ends(|| {
        let runtime = runtime(1);
        let owned = String::from("left");
        let result: &str = &owned;
        let task = AbortsOnDrop(runtime.spawn(async { "right" }));
        // A handle may be used where one with a shorter life is asked for.
        let task: AbortsOnDrop<&str> = task;
        assert_ne!(block_on(task), Some(result));
        let (mut sender, receiver) = oneshot::channel::<()>();
        let waits = runtime.spawn(async move { receiver.await.is_ok() });
        drop(AbortsOnDrop(waits));
        block_on(sender.closed());
    });
}
