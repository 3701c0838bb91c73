//! What a level says of its work that waits: `LevelStats::queued` and `oldest_wait`.

use std::{
    hint,
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};
use urgency::{LevelId, Runtime};

urgency::levels! { Order: Interactive > Batch }

fn runtime(workers: usize) -> Runtime {
    let builder = Runtime::builder().workers(workers).levels::<Order>();
    builder.build().unwrap()
}

#[test]
fn a_level_reports_what_waits_and_how_long() {
    let runtime = runtime(1);
    let (release, wait) = mpsc::channel::<()>();
    let (tell, told) = mpsc::channel();
    let holder = runtime.at(Interactive).spawn_fn(move || {
        let waiting: Vec<_> = (0..10)
            .map(|_| urgency::at(Batch).spawn(async {}))
            .collect();
        tell.send(()).unwrap();
        wait.recv().unwrap();
        waiting
    });
    told.recv().unwrap();
    let batch = usize::from(LevelId::from(Batch).rank());
    let stats = runtime.stats();
    // Relief may give the worker to them before this look.
    if stats.total().reliefs == 0 {
        assert_eq!(stats.levels[batch].queued, 10);
        assert!(stats.levels[batch].oldest_wait.is_some());
    }
    release.send(()).unwrap();
    for handle in holder.get().unwrap() {
        handle.get().unwrap();
    }
    let stats = runtime.stats();
    assert_eq!(
        (stats.levels[batch].queued, stats.levels[batch].oldest_wait),
        (0, None)
    );
    assert_eq!(stats.levels[batch].latency.len(), 10);
}

/// Calls `f` while the only worker runs a closure of `level` that comes to no scheduling point.
fn beside_loop<R>(runtime: &Runtime, level: impl Into<LevelId>, f: impl FnOnce() -> R) -> R {
    let (release, wait) = mpsc::channel::<()>();
    let (tell, told) = mpsc::channel();
    let runs = runtime.at(level).spawn_fn(move || {
        tell.send(()).unwrap();
        while wait.try_recv().is_err() {
            hint::spin_loop();
        }
    });
    told.recv().unwrap();
    let result = f();
    release.send(()).unwrap();
    runs.get().unwrap();
    result
}

/// What the oldest work of `Batch` has waited, if something waits, and for how long it can have.
fn oldest_after(runtime: &Runtime, insert: impl FnOnce()) -> (Option<Duration>, Duration) {
    let begun = Instant::now();
    insert();
    let batch = usize::from(LevelId::from(Batch).rank());
    (runtime.stats().levels[batch].oldest_wait, begun.elapsed())
}

/// The level's last work was taken long before.
#[test]
fn what_waits_on_a_level_that_was_quiet_has_waited_since_it_came() {
    let runtime = runtime(1);
    let inserts: [&dyn Fn(); 2] = [&|| runtime.at(Batch).spawn(async {}).detach(), &|| {
        runtime.at(Batch).spawn_fn(|| ()).detach()
    }];
    for insert in inserts {
        runtime.at(Batch).spawn_fn(|| ()).get().unwrap();
        thread::sleep(Duration::from_millis(100));
        let oldest = || oldest_after(&runtime, insert);
        let (oldest, since) = beside_loop(&runtime, Interactive, oldest);
        let oldest = oldest.expect("it waits");
        assert!(oldest <= since, "{oldest:?} within {since:?}");
    }
}

/// No worker looks for work while it runs what it took of the level.
#[test]
fn a_closure_behind_one_that_runs_for_long_has_waited_since_it_came() {
    let runtime = runtime(1);
    let (oldest, since) = beside_loop(&runtime, Batch, || {
        thread::sleep(Duration::from_millis(10));
        oldest_after(&runtime, || runtime.at(Batch).spawn_fn(|| ()).detach())
    });
    // On a machine that stood still the worker may have been taken from the first one meanwhile.
    if let Some(oldest) = oldest {
        assert!(oldest <= since, "{oldest:?} within {since:?}");
    }
}
