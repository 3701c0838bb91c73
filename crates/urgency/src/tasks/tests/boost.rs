//! Second entries, and boosts that travel.

use super::*;

#[test]
fn a_raised_ready_task_gets_a_second_entry_and_runs_once() {
    let toy = Ground::new();
    let mut low = toy.spawn_at(3, async { "low" });
    let _middle = toy.spawn_at(2, async {});
    assert!(low.task().raise(1));
    assert!(!low.task().raise(2), "never lowered");
    assert_eq!((low.task().level(), low.task().base_level()), (1, 3));
    assert_eq!(toy.entries(), 3);
    assert_eq!(toy.step(), Some(Ran::Finished));
    assert_eq!(low.try_get().map(Result::unwrap), Some("low"));
    assert_eq!(toy.run(), [Ran::Finished, Ran::Stale]);
    assert_eq!(toy.released(), 2);
}

#[test]
fn a_raised_suspended_task_gets_its_entry_at_the_new_level_when_woken() {
    let toy = Ground::new();
    let gate = Gate::default();
    let handle = toy.spawn_at(3, gate.clone().pass());
    toy.run();
    assert!(handle.task().raise(0));
    assert_eq!(toy.entries(), 0);
    gate.open();
    assert_eq!(toy.queues.lock().unwrap()[0].len(), 1);
    assert_eq!(toy.run(), [Ran::Finished]);
}

#[test]
fn a_stale_entry_may_serve_a_later_scheduling_but_never_runs_twice() {
    let toy = Ground::new();
    let runs = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&runs);
    let handle = toy.spawn_at(3, async move {
        counted.fetch_add(1, SeqCst);
        yield_once().await;
        counted.fetch_add(1, SeqCst);
    });
    handle.task().raise(0);
    assert_eq!(toy.step(), Some(Ran::Rescheduled));
    let mut rest = toy.run();
    rest.sort_by_key(|ran| *ran == Ran::Stale);
    assert_eq!(rest, [Ran::Finished, Ran::Stale]);
    assert_eq!(runs.load(SeqCst), 2);
}

#[test]
fn raising_a_running_task_tells_the_scheduler() {
    let toy = Ground::new();
    let own: Arc<Mutex<Option<JoinHandle<()>>>> = Arc::default();
    let mine = Arc::clone(&own);
    let handle = toy.spawn(async move {
        mine.lock().unwrap().as_ref().unwrap().task().boost(0);
    });
    *own.lock().unwrap() = Some(handle);
    toy.run();
    assert_eq!(toy.raised.load(SeqCst), 1);
}

#[test]
fn a_boost_raises_what_the_task_waits_for_in_turn_and_ends_in_a_cycle() {
    let toy = Ground::new();
    let handles: Vec<_> = (0..5).map(|_| toy.spawn_at(3, pending::<()>())).collect();
    let tasks: Vec<_> = handles.iter().map(JoinHandle::task).collect();
    tasks[0].begin_wait(tasks[1], 0);
    tasks[1].begin_wait(tasks[2], 0);
    // Three waits for one task, of which one is begun twice; two end.
    for ticket in [0, 1, 2, 1] {
        tasks[1].begin_wait(tasks[3], ticket);
    }
    tasks[1].end_wait(tasks[3], 0);
    tasks[1].end_wait(tasks[3], 1);
    tasks[3].begin_wait(tasks[0], 0);
    tasks[3].begin_wait(tasks[4], 0);
    tasks[3].end_wait(tasks[4], 0);
    tasks[0].boost(1);
    let levels: Vec<_> = tasks.iter().map(|task| task.level()).collect();
    assert_eq!(levels, [1, 1, 1, 1, 3]);
    tasks[0].begin_wait(tasks[4], 0);
    assert_eq!(tasks[4].level(), 1, "a new wait inherits the boost");
    toy.closed.store(true, SeqCst);
    let entries: Vec<_> = std::iter::from_fn(|| toy.next()).collect();
    for task in entries {
        task.shut_down();
    }
    drop(handles);
    assert_eq!(
        Arc::strong_count(&toy),
        1,
        "notes do not keep tasks alive after their end"
    );
}
