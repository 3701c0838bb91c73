//! Panics in every place where the code of others runs.

use super::*;

#[test]
fn a_panic_is_the_waiters_error_and_the_future_is_dropped() {
    let toy = Ground::new();
    let (witness, drops) = Witness::new();
    let mut handle = toy.spawn(async move {
        let _witness = witness;
        yield_once().await;
        std::panic::panic_any(42u8);
    });
    assert_eq!(toy.run(), [Ran::Rescheduled, Ran::Finished]);
    assert_eq!(drops.load(SeqCst), 1);
    let payload = handle.try_get().unwrap().unwrap_err().into_panic();
    assert_eq!(payload.downcast_ref::<u8>(), Some(&42));
    assert_eq!((toy.panicked.load(SeqCst), toy.released()), (1, 1));
    drop(handle);
    assert_eq!(toy.unheard.load(SeqCst), 0, "code has seen it");
}

#[test]
fn a_panic_of_a_detached_task_is_counted_and_harms_nobody() {
    let toy = Ground::new();
    toy.spawn(async { panic!("unseen") }).detach();
    let (task, handle) = new_fn(|| panic!("unseen"), Arc::clone(&toy), 0);
    drop::<JoinHandle<()>>(handle);
    assert_eq!(task.run(), Ran::Finished);
    assert_eq!(toy.run(), [Ran::Finished]);
    assert_eq!((toy.panicked.load(SeqCst), toy.released()), (2, 2));
    assert_eq!(toy.unheard.load(SeqCst), 2);
    assert_eq!(Arc::strong_count(&toy), 1);
}

#[test]
fn a_panic_is_heard_of_whose_handle_is_dropped_after_the_end_of_the_task() {
    let toy = Ground::new();
    let (panics, returns) = (toy.spawn(async { panic!("unseen") }), toy.spawn(async {}));
    assert_eq!(toy.run(), [Ran::Finished, Ran::Finished]);
    assert_eq!(toy.unheard.load(SeqCst), 0, "code may yet see it");
    drop((panics, returns));
    assert_eq!(toy.unheard.load(SeqCst), 1);
    assert_eq!(Arc::strong_count(&toy), 1);
}

#[test]
fn a_panic_in_the_drop_of_a_future_is_the_panic_of_the_task() {
    /// Ready at once; holds a witness until it is dropped.
    struct Holder(#[expect(dead_code, reason = "held for its drop")] Witness);
    impl Future for Holder {
        type Output = u8;
        fn poll(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<u8> {
            Poll::Ready(1)
        }
    }
    let toy = Ground::new();
    let (witness, drops) = Witness::panicking();
    let mut finished = toy.spawn(Holder(witness.clone()));
    let mut cancelled = toy.spawn(Holder(witness));
    cancelled.abort();
    assert_eq!(toy.run(), [Ran::Finished, Ran::Cancelled]);
    assert_eq!(drops.load(SeqCst), 2);
    assert!(finished.try_get().unwrap().unwrap_err().is_panic());
    assert!(cancelled.try_get().unwrap().unwrap_err().is_panic());
    drop((finished, cancelled));
    assert_eq!(
        toy.panicked.load(SeqCst),
        1,
        "the cancelled one counts as cancelled"
    );
    assert_eq!(toy.unheard.load(SeqCst), 0);
    toy.spawn(Holder(Witness::panicking().0)).detach();
    let cancelled = toy.spawn(Holder(Witness::panicking().0));
    cancelled.abort();
    cancelled.detach();
    assert_eq!(toy.run(), [Ran::Finished, Ran::Cancelled]);
    assert_eq!(toy.unheard.load(SeqCst), 2);
    assert_eq!((toy.released(), Arc::strong_count(&toy)), (4, 1));
}

#[test]
fn panics_in_poll_and_drop_and_payload_leave_the_first_one_standing() {
    struct Worst(Option<Witness>);
    impl Future for Worst {
        type Output = ();
        fn poll(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<()> {
            panic!("first")
        }
    }
    impl Drop for Worst {
        fn drop(&mut self) {
            std::panic::panic_any(self.0.take().unwrap());
        }
    }
    let toy = Ground::new();
    let (witness, drops) = Witness::panicking();
    let mut handle = toy.spawn(Worst(Some(witness)));
    assert_eq!(toy.run(), [Ran::Finished]);
    let payload = handle.try_get().unwrap().unwrap_err().into_panic();
    assert_eq!(payload.downcast_ref::<&str>(), Some(&"first"));
    assert_eq!(drops.load(SeqCst), 1);
}

#[test]
fn a_panic_in_the_drop_of_an_unwanted_result_stays_with_the_runner() {
    let toy = Ground::new();
    let (witness, drops) = Witness::panicking();
    toy.spawn(ready(witness)).detach();
    assert_eq!(toy.run(), [Ran::Finished]);
    assert_eq!((drops.load(SeqCst), toy.panicked.load(SeqCst)), (1, 0));
    assert_eq!(Arc::strong_count(&toy), 1);
    let (witness, _) = Witness::panicking();
    let handle = toy.spawn(ready(witness));
    toy.run();
    assert!(
        quiet(|| drop(handle)).is_err(),
        "the dropper of the handle gets it"
    );
    assert_eq!(Arc::strong_count(&toy), 1);
}

#[test]
fn a_waker_that_panics_does_not_end_the_runner() {
    struct Bad;
    impl Wake for Bad {
        fn wake(self: Arc<Self>) {
            panic!("from a waker");
        }
    }
    let toy = Ground::new();
    let mut handle = toy.spawn(async { 3 });
    assert!(poll(&mut handle, &Waker::from(Arc::new(Bad))).is_pending());
    assert_eq!(toy.run(), [Ran::Finished]);
    assert_eq!(handle.try_get().map(Result::unwrap), Some(3));
}
