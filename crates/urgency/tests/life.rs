//! Cancellation, admission, panic policies, and a shutdown by levels.

mod common;

use common::{Count, ends, in_child, is_child, quiet, runtime, until, with_levels};
use std::{
    future::pending,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
    },
};
use urgency::{
    BuildError, JoinHandle, LevelId, Runtime, Shutdown, block_on,
    life::{
        CancellationToken, Capacity, PanicPolicy, admit, blocking_admit, task_scope, try_admit,
    },
    scheduling_point,
    sync::Semaphore,
    yield_now,
};

urgency::levels! { App: High > Middle > Low }

#[test]
fn a_token_cancels_all_below_it_and_nothing_above() {
    let root = CancellationToken::new();
    let (one, two) = (root.child_token(), root.child_token());
    let below = one.child_token();
    one.cancel();
    assert!(one.is_cancelled() && below.is_cancelled() && one.child_token().is_cancelled());
    assert!(!root.is_cancelled() && !two.is_cancelled());
    drop(below);
    let cancels = block_on(two.run_until_cancelled(async { root.cancel() }));
    assert_eq!(cancels, Some(()), "the result counts");
    assert!(two.is_cancelled() && root.child_token().is_cancelled());
    block_on(two.cancelled());
    assert_eq!(block_on(two.run_until_cancelled(pending::<()>())), None);
}

#[test]
fn nothing_begins_to_run_until_a_token_is_cancelled_that_is() {
    let token = CancellationToken::new();
    token.cancel();
    let begins = || async { panic!("it is polled") };
    assert!(block_on(token.run_until_cancelled(begins())).is_none());
    assert!(block_on(token.run_until_cancelled_owned(begins())).is_none());
}

#[test]
fn a_chain_of_a_hundred_thousand_tokens_is_cancelled_and_dropped_without_a_deep_stack() {
    let root = CancellationToken::new();
    let mut last = root.child_token();
    for _ in 0..100_000 {
        last = last.child_token();
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
            let root = CancellationToken::new();
            let makers: Vec<_> = (0..2)
                .map(|_| {
                    let root = root.clone();
                    runtime
                        .spawn_fn(move || (0..50).map(|_| root.child_token()).collect::<Vec<_>>())
                })
                .collect();
            root.cancel();
            for maker in makers {
                assert!(
                    maker
                        .get()
                        .unwrap()
                        .iter()
                        .all(CancellationToken::is_cancelled)
                );
            }
        }
    });
}

#[test]
fn no_more_tasks_are_admitted_than_the_level_has_room_for() {
    ends(|| {
        let builder = Runtime::builder().workers(2).levels::<App>();
        let runtime = builder.capacity(Low, 3).build().unwrap();
        let (live, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let tasks: Vec<JoinHandle<()>> = runtime.block_on(async {
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
            let kept: Vec<_> = (0..3).map(|_| blocking_admit(Low)).collect();
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
        let awaited = runtime.at(Low).spawn(async { panic!("on purpose") });
        assert!(awaited.get().unwrap_err().is_panic());
        let late = runtime.at(Low).spawn(async { panic!("on purpose") });
        until(|| late.is_finished());
        assert_eq!(heard.load(SeqCst), 0);
        drop(late);
        assert_eq!(heard.load(SeqCst), 1);
        // Detached before it runs: the one worker is taken.
        let gate = Arc::new(AtomicBool::new(false));
        let theirs = gate.clone();
        let busy = runtime.at(High).spawn_fn(move || {
            while !theirs.load(SeqCst) {
                scheduling_point()
            }
        });
        runtime
            .at(Low)
            .spawn(async { panic!("on purpose") })
            .detach();
        gate.store(true, SeqCst);
        busy.get().unwrap();
        let report = runtime.shutdown(Shutdown::Drain);
        assert_eq!(report.panicked, 3);
        assert_eq!(heard.load(SeqCst), 2);
    });
}

#[test]
fn the_policy_does_not_hear_of_a_panic_that_goes_on_in_the_code_around_a_scope() {
    quiet();
    ends(|| {
        let heard = Arc::new(AtomicUsize::new(0));
        let theirs = heard.clone();
        let policy = PanicPolicy::call(move |_| {
            theirs.fetch_add(1, SeqCst);
        });
        let builder = Runtime::builder().workers(2);
        let runtime = builder.on_panic(policy).build().unwrap();
        for spawns in [0, 1] {
            let scope = task_scope(async |scope| match spawns {
                0 => scope.spawn(async { panic!("on purpose") }).detach(),
                _ => scope.spawn_fn(|| panic!("on purpose")).detach(),
            });
            let ended = catch_unwind(AssertUnwindSafe(|| runtime.block_on(scope)));
            let said = ended.unwrap_err();
            let said = said.downcast_ref::<String>().unwrap();
            assert_eq!(said, "a task of the scope panicked: on purpose");
        }
        assert_eq!(heard.load(SeqCst), 0);
        // Nothing waits for this scope.
        let (begun, may_end) = (
            Arc::new(AtomicBool::new(false)),
            Arc::new(AtomicBool::new(false)),
        );
        let (theirs, gate) = (begun.clone(), may_end.clone());
        let scope = task_scope(async move |scope| {
            let panics = move || {
                theirs.store(true, SeqCst);
                until(|| gate.load(SeqCst));
                panic!("on purpose");
            };
            scope.spawn_fn(panics).detach();
        });
        let is_begun = async {
            while !begun.load(SeqCst) {
                yield_now().await;
            }
        };
        runtime.block_on(async {
            urgency::select! {
                () = scope => unreachable!("its task has not ended"),
                () = is_begun => {}
            }
        });
        may_end.store(true, SeqCst);
        let report = runtime.shutdown(Shutdown::Drain);
        assert_eq!((report.panicked, heard.load(SeqCst)), (3, 1));
    });
}

#[test]
fn the_policy_to_abort_ends_the_process() {
    const NAME: &str = "the_policy_to_abort_ends_the_process";
    if !is_child() {
        let ended = catch_unwind(|| in_child(NAME));
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
                runtime.at(level).spawn(async move {
                    let _permit = go.acquire().await;
                    // Accepted: as urgent as needed. Refused: less urgent.
                    let child = urgency::spawn(async move { spawned.fetch_add(1, SeqCst) });
                    let kept = low.on_drop();
                    let refused = urgency::at(Low).spawn(async move {
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
                runtime.at(Low).spawn(async move {
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
        let busy = runtime.at(High).spawn_fn(move || {
            while !theirs.load(SeqCst) {
                scheduling_point()
            }
        });
        let all = CancellationToken::new();
        let groups: Vec<_> = (0..100).map(|_| all.child_token()).collect();
        let requests: Vec<_> = (0..WAVE)
            .map(|n| {
                let (kept, worked, group) =
                    (over.on_drop(), worked.clone(), groups[n % 100].clone());
                runtime.at(Low).spawn(async move {
                    let _kept = kept;
                    let work = async {
                        drop(worked.on_drop());
                        pending::<()>().await
                    };
                    if n % 2 == 0 {
                        work.await;
                    } else if !group.is_cancelled() {
                        group.run_until_cancelled(work).await;
                    }
                })
            })
            .collect();
        let dispatched = |runtime: &Runtime| runtime.stats().total().tasks;
        let before = dispatched(&runtime);
        all.cancel();
        requests.iter().step_by(2).for_each(JoinHandle::abort);
        // What comes now is more urgent than the remains of the wave, and does not wait for them.
        let seen = over.clone();
        let urgent = runtime.at(Middle).spawn(async move { seen.get() });
        gate.store(true, SeqCst);
        busy.get().unwrap();
        assert_eq!(urgent.get().unwrap(), 0, "the wave went first");
        let ended = requests.into_iter().map(JoinHandle::get);
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

#[test]
fn a_panic_in_a_join_set_is_one_result_and_the_other_tasks_go_on() {
    ends(|| {
        let runtime = runtime(2);
        runtime.block_on(async {
            let mut tasks = urgency::task::JoinSet::new();
            let endless = tasks.spawn(std::future::pending());
            for n in 0..8 {
                tasks.spawn(async move {
                    urgency::yield_now().await;
                    assert!(n != 3, "the third");
                    n
                });
            }
            let (mut sum, mut panics) = (0, 0);
            while tasks.len() > 1 {
                match tasks.join_next().await.unwrap() {
                    Ok(n) => sum += n,
                    Err(error) => {
                        assert!(error.to_string().contains("the third"));
                        assert!(error.into_panic().is::<&str>());
                        panics += 1;
                    }
                }
            }
            assert_eq!((sum, panics), (25, 1));
            assert!(tasks.try_join_next().is_none() && !endless.is_finished());
            endless.abort();
            assert!(tasks.join_next().await.unwrap().unwrap_err().is_cancelled());
            assert!(tasks.join_next().await.is_none());
        });
    });
}
