//! Waiting for the result.

use super::*;

#[test]
fn a_result_is_given_once_and_asking_again_panics() {
    let toy = Ground::new();
    let mut handle = toy.spawn(async { 7 });
    toy.run();
    assert_eq!(handle.try_get().map(Result::unwrap), Some(7));
    assert!(quiet(|| handle.try_get()).is_err());
    drop(handle);
    assert_eq!(Arc::strong_count(&toy), 1);
}

#[test]
fn the_handle_is_woken_at_the_end_and_only_by_its_newest_waker() {
    let toy = Ground::new();
    let rung = Arc::default();
    let mut handle = toy.spawn(async { 1 });
    let newest = bell(1, &rung);
    assert!(poll(&mut handle, &bell(0, &rung)).is_pending());
    assert!(poll(&mut handle, &newest).is_pending());
    assert!(poll(&mut handle, &newest).is_pending());
    toy.run();
    assert_eq!(*rung.lock().unwrap(), [1]);
    assert!(matches!(poll(&mut handle, &newest), Poll::Ready(Ok(1))));
}

#[test]
fn a_task_awaits_another() {
    let toy = Ground::new();
    let inner = toy.spawn(async {
        yield_once().await;
        20
    });
    let mut outer = toy.spawn(async move { inner.await.unwrap() + 1 });
    toy.run();
    assert_eq!(outer.try_get().map(Result::unwrap), Some(21));
    assert_eq!(toy.released(), 2);
}

#[test]
fn a_dropped_handle_detaches_and_the_result_is_dropped_once() {
    let toy = Ground::new();
    let (witness, drops) = Witness::new();
    toy.spawn(async { witness }).detach();
    assert_eq!(toy.run(), [Ran::Finished]);
    assert_eq!(drops.load(SeqCst), 1);
    assert_eq!(Arc::strong_count(&toy), 1);
}

#[test]
fn a_result_that_nobody_takes_is_dropped_with_the_handle() {
    let toy = Ground::new();
    let (witness, drops) = Witness::new();
    let handle = toy.spawn(async { witness });
    toy.run();
    assert_eq!(drops.load(SeqCst), 0);
    drop(handle);
    assert_eq!(drops.load(SeqCst), 1);
    assert_eq!(Arc::strong_count(&toy), 1);
}

#[test]
fn dropping_a_waiting_handle_drops_its_waker() {
    let toy = Ground::new();
    let rung: Arc<Mutex<Vec<usize>>> = Arc::default();
    let mut handle = toy.spawn(async {});
    assert!(poll(&mut handle, &bell(0, &rung)).is_pending());
    assert_eq!(Arc::strong_count(&rung), 2);
    drop(handle);
    assert_eq!(Arc::strong_count(&rung), 1);
    toy.run();
    assert!(rung.lock().unwrap().is_empty());
}

#[test]
fn shared_waiters_are_woken_in_the_order_of_arrival() {
    let toy = Ground::new();
    let rung = Arc::default();
    let shared = toy.spawn(async { 5 }).share();
    let mut clones: Vec<_> = (0..4).map(|_| shared.clone()).collect();
    for name in [2, 0, 3, 1] {
        assert!(poll(&mut clones[name], &bell(name, &rung)).is_pending());
    }
    // Polled again by another waker: keeps its place. Dropped: leaves the queue.
    assert!(poll(&mut clones[0], &bell(10, &rung)).is_pending());
    drop(clones.pop());
    toy.run();
    assert_eq!(*rung.lock().unwrap(), [2, 10, 1]);
    for clone in &mut clones {
        assert!(matches!(poll(clone, Waker::noop()), Poll::Ready(Ok(5))));
    }
    assert_eq!(shared.try_get().map(Result::unwrap), Some(5));
    assert_eq!(shared.get().unwrap(), 5);
}

#[test]
fn a_handle_that_was_waited_for_before_it_was_shared_wakes_all_waiters() {
    let toy = Ground::new();
    let rung = Arc::default();
    let mut handle = toy.spawn(async { 5 });
    assert!(poll(&mut handle, &bell(0, &rung)).is_pending());
    let mut shared = handle.share();
    let mut other = shared.clone();
    assert!(poll(&mut shared, &bell(1, &rung)).is_pending());
    assert!(poll(&mut other, &bell(2, &rung)).is_pending());
    toy.run();
    assert_eq!(*rung.lock().unwrap(), [1, 2]);
    assert!(matches!(
        poll(&mut other, Waker::noop()),
        Poll::Ready(Ok(5))
    ));
    let mut late = toy.spawn(async { 6 });
    assert!(poll(&mut late, &bell(0, &rung)).is_pending());
    toy.run();
    assert_eq!(late.share().try_get().map(Result::unwrap), Some(6));
}

#[test]
fn every_shared_waiter_sees_the_panic() {
    let toy = Ground::new();
    let shared = toy.spawn(async { panic!("all see it") }).share();
    toy.run();
    for _ in 0..3 {
        let payload = shared.try_get().unwrap().unwrap_err().into_panic();
        let text = payload
            .downcast_ref::<&str>()
            .map(|text| text.to_string())
            .or_else(|| payload.downcast_ref::<String>().cloned());
        assert_eq!(text.as_deref(), Some("all see it"));
    }
    let never = toy.spawn(pending::<()>()).share();
    never.abort();
    toy.run();
    assert_eq!(never.get().unwrap_err().kind(), JoinErrorKind::Cancelled);
}

#[test]
fn dropping_the_last_shared_clone_detaches_and_leaks_nothing() {
    let toy = Ground::new();
    let gate = Gate::default();
    let passing = gate.clone().pass();
    let mut shared = toy.spawn(passing).share();
    let mut other = shared.clone();
    toy.run();
    assert!(poll(&mut shared, Waker::noop()).is_pending());
    assert!(poll(&mut other, Waker::noop()).is_pending());
    drop((shared, other));
    gate.close_and_forget();
    assert_eq!(toy.run(), [Ran::Cancelled]);
    assert_eq!(Arc::strong_count(&toy), 1);
}
