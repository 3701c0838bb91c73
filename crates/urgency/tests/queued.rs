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

/// The level's last work was taken long before.
#[test]
fn what_waits_on_a_level_that_was_quiet_has_waited_since_it_came() {
    let runtime = runtime(1);
    let batch = usize::from(LevelId::from(Batch).rank());
    let quiet = Duration::from_millis(100);
    let oldest = |insert: &dyn Fn()| {
        runtime.at(Batch).spawn_fn(|| ()).get().unwrap();
        thread::sleep(quiet);
        let begun = Instant::now();
        let (release, wait) = mpsc::channel::<()>();
        let (tell, told) = mpsc::channel();
        let holder = runtime.at(Interactive).spawn_fn(move || {
            tell.send(()).unwrap();
            while wait.try_recv().is_err() {
                hint::spin_loop();
            }
        });
        told.recv().unwrap();
        insert();
        let oldest = runtime.stats().levels[batch].oldest_wait;
        let since = begun.elapsed();
        release.send(()).unwrap();
        holder.get().unwrap();
        (oldest.expect("it waits"), since)
    };
    let inserts: [&dyn Fn(); 2] = [&|| runtime.at(Batch).spawn(async {}).detach(), &|| {
        runtime.at(Batch).spawn_fn(|| ()).detach()
    }];
    for insert in inserts {
        let (oldest, since) = oldest(insert);
        assert!(oldest <= since, "{oldest:?} within {since:?}");
    }
}

/// No worker looks for work while it runs what it took of the level.
#[test]
fn a_closure_behind_one_that_runs_for_long_has_waited_since_it_came() {
    let runtime = runtime(1);
    let batch = usize::from(LevelId::from(Batch).rank());
    let (release, wait) = mpsc::channel::<()>();
    let (tell, told) = mpsc::channel();
    let holder = runtime.at(Batch).spawn_fn(move || {
        tell.send(()).unwrap();
        while wait.try_recv().is_err() {
            hint::spin_loop();
        }
    });
    told.recv().unwrap();
    thread::sleep(Duration::from_millis(10));
    let begun = Instant::now();
    let next = runtime.at(Batch).spawn_fn(|| ());
    let oldest = runtime.stats().levels[batch].oldest_wait;
    let since = begun.elapsed();
    release.send(()).unwrap();
    holder.get().unwrap();
    next.get().unwrap();
    // On a machine that stood still the worker may have been taken from the first one meanwhile.
    if let Some(oldest) = oldest {
        assert!(oldest <= since, "{oldest:?} within {since:?}");
    }
}
