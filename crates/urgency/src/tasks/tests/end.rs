//! Cancellation, unreachable tasks, shutdown.

use super::*;

#[test]
fn cancelling_a_suspended_task_drops_its_future_on_a_worker() {
    let toy = Ground::new();
    let (witness, drops) = Witness::new();
    let gate = Gate::default();
    let passing = gate.clone().pass();
    let mut handle = toy.spawn(async move {
        let _witness = witness;
        passing.await;
    });
    toy.run();
    handle.abort();
    handle.abort();
    assert_eq!((toy.entries(), drops.load(SeqCst)), (1, 0));
    assert_eq!(toy.run(), [Ran::Cancelled]);
    assert_eq!(drops.load(SeqCst), 1);
    let error = handle.try_get().unwrap().unwrap_err();
    assert_eq!(error.kind(), JoinErrorKind::Cancelled);
    assert!(
        error
            .to_string()
            .contains("was cancelled before it finished")
    );
    gate.waker().wake();
    assert_eq!((toy.entries(), toy.released()), (0, 1));
}

#[test]
fn cancelling_a_ready_task_makes_no_second_entry_and_it_never_runs() {
    let toy = Ground::new();
    let mut handle = toy.spawn(async { panic!("never polled") });
    handle.abort();
    assert_eq!(toy.run(), [Ran::Cancelled]);
    let result: Result<(), _> = handle.try_get().unwrap();
    assert!(result.is_err());
}

#[test]
fn cancelling_while_running_takes_effect_at_the_next_suspension() {
    let toy = Ground::new();
    let own: Arc<Mutex<Option<JoinHandle<()>>>> = Arc::default();
    let mine = Arc::clone(&own);
    let handle = toy.spawn(async move {
        mine.lock().unwrap().as_ref().unwrap().abort();
        pending().await
    });
    *own.lock().unwrap() = Some(handle);
    assert_eq!(toy.run(), [Ran::Cancelled]);
    let mut handle = own.lock().unwrap().take().unwrap();
    assert!(handle.try_get().unwrap().is_err());
}

#[test]
fn a_task_that_finishes_before_its_cancellation_keeps_its_result() {
    let toy = Ground::new();
    let own: Arc<Mutex<Option<JoinHandle<u8>>>> = Arc::default();
    let mine = Arc::clone(&own);
    let handle = toy.spawn(async move {
        mine.lock().unwrap().as_ref().unwrap().abort();
        9
    });
    *own.lock().unwrap() = Some(handle);
    assert_eq!(toy.run(), [Ran::Finished]);
    let mut handle = own.lock().unwrap().take().unwrap();
    handle.abort();
    assert_eq!(handle.try_get().map(Result::unwrap), Some(9));
}

#[test]
fn a_suspended_task_that_nothing_can_wake_is_dropped_by_a_worker() {
    let toy = Ground::new();
    let gate = Gate::default();
    let (witness, drops) = Witness::new();
    let passing = gate.clone().pass();
    let handle = toy.spawn(async move {
        let _witness = witness;
        passing.await;
    });
    toy.run();
    drop(handle);
    gate.close_and_forget();
    assert_eq!((toy.entries(), drops.load(SeqCst)), (1, 0));
    assert_eq!(toy.run(), [Ran::Cancelled]);
    assert_eq!((toy.released(), drops.load(SeqCst)), (1, 1));
    assert_eq!(Arc::strong_count(&toy), 1);
}

#[test]
fn a_detached_task_that_suspends_without_a_waker_is_dropped_at_once() {
    let toy = Ground::new();
    toy.spawn(pending::<()>()).detach();
    assert_eq!(toy.run(), [Ran::Cancelled]);
    assert_eq!((toy.released(), Arc::strong_count(&toy)), (1, 1));
}

#[test]
fn an_entry_thrown_away_gives_up_a_detached_task() {
    let toy = Ground::new();
    let (witness, drops) = Witness::new();
    toy.spawn(async move { drop(witness) }).detach();
    drop(toy.next());
    assert_eq!((toy.released(), drops.load(SeqCst)), (1, 1));
    assert_eq!(Arc::strong_count(&toy), 1);
}

#[test]
fn shut_down_drops_the_future_on_the_spot_and_tells_the_waiter() {
    let toy = Ground::new();
    let rung = Arc::default();
    let gate = Gate::default();
    let mut ready = toy.spawn(async {});
    let task = toy.next().unwrap();
    assert!(poll(&mut ready, &bell(0, &rung)).is_pending());
    assert!(task.shut_down());
    let mut suspended = toy.spawn(gate.clone().pass());
    let reference = suspended.task().clone();
    toy.run();
    assert!(reference.clone().shut_down());
    assert!(!reference.shut_down(), "only once");
    for handle in [&mut ready, &mut suspended] {
        let error = handle.try_get().unwrap().unwrap_err();
        assert_eq!(error.kind(), JoinErrorKind::ShutDown);
        assert!(error.to_string().contains("shut down"));
    }
    assert_eq!(*rung.lock().unwrap(), [0]);
    assert_eq!(toy.released(), 2);
}

#[test]
fn a_task_woken_after_the_shutdown_ends_there() {
    let toy = Ground::new();
    let gate = Gate::default();
    let mut handle = toy.spawn(gate.clone().pass());
    toy.run();
    toy.closed.store(true, SeqCst);
    gate.open();
    assert_eq!(
        handle.try_get().unwrap().unwrap_err().kind(),
        JoinErrorKind::ShutDown
    );
}
