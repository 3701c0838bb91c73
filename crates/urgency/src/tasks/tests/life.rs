//! Running, suspending, waking.

use super::*;

#[test]
fn a_task_costs_at_most_80_bytes_beyond_its_future() {
    fn overhead<F: Future>(_: &F) -> usize {
        size_of::<cell::Cell<F, Toy>>() - size_of::<F>().max(size_of::<F::Output>())
    }
    let numbers = [0u64; 4];
    let sizes = [
        overhead(&ready(1u64)),
        overhead(&async move { numbers.len() }),
        overhead(&async move { numbers }),
        overhead(&async {}),
    ];
    println!("overhead {sizes:?}, header {}", size_of::<Header>());
    assert!(sizes[..3].iter().all(|&size| size <= 80), "{sizes:?}");
    assert_eq!(size_of::<JoinHandle<[u64; 9]>>(), size_of::<usize>());
}

#[test]
fn a_ready_future_finishes_in_one_run_and_gives_its_result() {
    let toy = Ground::new();
    let mut handle = toy.spawn(async { 7 });
    assert!(handle.try_get().is_none());
    assert_eq!(toy.run(), [Ran::Finished]);
    assert!(handle.is_finished());
    assert_eq!(handle.try_get().map(Result::unwrap), Some(7));
    assert_eq!(toy.released(), 1);
}

#[test]
fn a_closure_runs_once_and_says_that_it_is_one() {
    let toy = Ground::new();
    let (task, handle) = new_fn(|| String::from("done"), Arc::clone(&toy), 2);
    assert!(task.is_closure());
    assert_eq!(task.level(), 2);
    assert_eq!(task.run(), Ran::Finished);
    assert_eq!(handle.get().unwrap(), "done");
}

#[test]
fn a_suspended_task_runs_again_only_after_a_wake_up() {
    let toy = Ground::new();
    let gate = Gate::default();
    let mut handle = toy.spawn(gate.clone().pass());
    assert_eq!(toy.run(), [Ran::Suspended]);
    assert_eq!(toy.run(), []);
    gate.open();
    assert_eq!(toy.run(), [Ran::Finished]);
    assert_eq!(handle.try_get().map(Result::unwrap), Some(()));
}

#[test]
fn many_wake_ups_of_a_suspended_task_make_one_entry() {
    let toy = Ground::new();
    let gate = Gate::default();
    let _handle = toy.spawn(gate.clone().pass());
    toy.run();
    let waker = gate.waker();
    waker.wake_by_ref();
    waker.wake_by_ref();
    gate.waker().wake();
    assert_eq!(toy.entries(), 1);
    assert_eq!(toy.scheduled.load(SeqCst), 1);
    assert_eq!(toy.run(), [Ran::Suspended]);
}

#[test]
fn a_wake_up_while_running_makes_the_task_run_once_more() {
    let toy = Ground::new();
    let mut handle = toy.spawn(async {
        yield_once().await;
        yield_once().await;
    });
    assert_eq!(
        toy.run(),
        [Ran::Rescheduled, Ran::Rescheduled, Ran::Finished]
    );
    assert_eq!(toy.scheduled.load(SeqCst), 2);
    assert!(handle.try_get().is_some());
}

#[test]
fn a_waker_of_a_finished_task_does_nothing() {
    let toy = Ground::new();
    let gate = Gate::default();
    let handle = toy.spawn(gate.clone().pass());
    toy.run();
    let waker = gate.waker();
    gate.open();
    toy.run();
    drop(handle);
    waker.wake_by_ref();
    gate.waker().wake();
    assert_eq!(toy.entries(), 0);
    assert_eq!(toy.scheduled.load(SeqCst), 1);
    drop(waker);
    gate.close_and_forget();
    assert_eq!(Arc::strong_count(&toy), 1, "the cell is freed");
}

#[test]
fn a_waker_keeps_the_memory_of_a_finished_task_and_nothing_else() {
    let toy = Ground::new();
    let (witness, drops) = Witness::new();
    let gate = Gate::default();
    let passing = gate.clone().pass();
    toy.spawn(async move {
        let _witness = witness;
        passing.await;
    })
    .detach();
    toy.run();
    let waker = gate.waker();
    gate.open();
    assert_eq!(toy.run(), [Ran::Finished]);
    assert_eq!(drops.load(SeqCst), 1);
    gate.close_and_forget();
    assert_eq!(Arc::strong_count(&toy), 2, "the cell is there");
    drop(waker);
    assert_eq!(Arc::strong_count(&toy), 1, "the cell is freed");
}

#[test]
fn wakers_agree_exactly_for_the_same_task() {
    let toy = Ground::new();
    let (one, two) = (Gate::default(), Gate::default());
    let _handles = [toy.spawn(one.clone().pass()), toy.spawn(two.clone().pass())];
    toy.run();
    let first = one.waker();
    one.waker().wake();
    toy.run();
    assert!(first.will_wake(&one.waker()));
    assert!(!first.will_wake(&two.waker()));
}

#[test]
fn live_tasks_are_found_until_they_are_released() {
    let toy = Ground::new();
    let gates: Vec<_> = (0..6).map(|_| Gate::default()).collect();
    let mut handles: Vec<_> = gates
        .iter()
        .map(|gate| toy.spawn(gate.clone().pass()))
        .collect();
    toy.run();
    assert_eq!((toy.live.len(), toy.live.tasks().len()), (6, 6));
    gates[2].open();
    toy.run();
    let mut late = toy.spawn(async {});
    assert_eq!(toy.live.len(), 6, "a vacant slot is used again");
    assert_eq!(toy.run(), [Ran::Finished]);
    assert!(!toy.live.remove(late.task()), "released already");
    let found = toy.live.close();
    assert_eq!(found.len(), 5);
    assert!(!toy.live.insert(late.task(), 1), "closed");
    for task in found {
        assert!(task.shut_down());
    }
    let kinds: Vec<_> = handles
        .iter_mut()
        .map(|handle| handle.try_get().unwrap())
        .collect();
    assert_eq!(kinds.iter().filter(|result| result.is_ok()).count(), 1);
    assert_eq!(
        (toy.live.len(), late.try_get().map(Result::unwrap)),
        (0, Some(()))
    );
}

#[test]
fn handles_cross_threads_and_block() {
    let toy = Ground::new();
    let handle = toy.spawn(async {
        yield_once().await;
        String::from("over there")
    });
    std::thread::scope(|scope| {
        let waiter = scope.spawn(move || handle.get());
        while toy.released() == 0 {
            toy.run();
            std::thread::yield_now();
        }
        assert_eq!(waiter.join().unwrap().unwrap(), "over there");
    });
}
