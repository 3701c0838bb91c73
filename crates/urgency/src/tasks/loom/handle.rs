//! Handles: dropped, or waited for, while the task ends.

use super::*;

#[test]
fn a_detach_races_completion_and_the_result_is_dropped_once() {
    model(|| {
        let (queue, outside) = (Queue::new(), Outside::new());
        let (handle, waker) = suspended(&queue, &outside);
        outside.flag.store(true, Relaxed);
        waker.wake();
        let thread = thread::spawn(move || drop(handle));
        assert_eq!(queue.drain(), [Ran::Finished]);
        thread.join().unwrap();
        assert_eq!(outside.drops(), 1);
        assert_all_gone(&queue);
    });
}

#[test]
fn a_detach_races_a_panic_and_the_scheduler_hears_of_it_once() {
    model(|| {
        let (queue, drops) = (Queue::new(), Arc::new(AtomicUsize::new(0)));
        let payload = Dropped(Arc::clone(&drops));
        let panics = async move { std::panic::resume_unwind(Box::new(payload)) };
        let (task, handle): (_, JoinHandle<()>) = new(panics, Arc::clone(&queue), 1);
        assert!(queue.live.insert(&task, 0));
        let thread = thread::spawn(move || drop(handle));
        assert_eq!(task.run(), Ran::Finished);
        thread.join().unwrap();
        assert_eq!((queue.unheard.load(SeqCst), drops.load(SeqCst)), (1, 1));
        assert_all_gone(&queue);
    });
}

#[test]
fn a_waiting_handle_is_woken_or_finds_the_result() {
    model(|| {
        let (queue, outside) = (Queue::new(), Outside::new());
        let (handle, waker) = suspended(&queue, &outside);
        outside.flag.store(true, Relaxed);
        waker.wake();
        let waiter = thread::spawn(move || block_on(handle).map(drop));
        assert_eq!(queue.drain(), [Ran::Finished]);
        waiter.join().unwrap().unwrap();
        assert_eq!(outside.drops(), 1);
        assert_all_gone(&queue);
    });
}

/// Nobody polls the handle again.
#[test]
fn a_loan_of_a_wait_that_begins_as_the_task_ends_is_given_back() {
    model(|| {
        let (queue, outside) = (Queue::new(), Outside::new());
        let (mut handle, waker) = suspended(&queue, &outside);
        outside.flag.store(true, Relaxed);
        waker.wake();
        let given_back = Arc::new(AtomicUsize::new(0));
        let loan = Dropped(Arc::clone(&given_back));
        let waiter = thread::spawn(move || {
            if !handle.register(Waker::noop()) {
                handle.task().keep_loan(0, Box::new(loan));
            }
            handle
        });
        assert_eq!(queue.drain(), [Ran::Finished]);
        let handle = waiter.join().unwrap();
        assert_eq!(given_back.load(SeqCst), 1);
        drop(handle);
        assert_eq!(outside.drops(), 1);
        assert_all_gone(&queue);
    });
}

/// Its reference is an entry beside the one in the queue.
#[test]
fn a_waiter_that_runs_what_it_awaits_races_the_queue() {
    model(|| {
        let (queue, drops) = (Queue::new(), Arc::new(AtomicUsize::new(0)));
        let result = Dropped(Arc::clone(&drops));
        let (task, mut handle) = new(std::future::ready(result), Arc::clone(&queue), 1);
        assert!(queue.live.insert(&task, 0));
        queue.entries.lock().unwrap().push_back(task);
        let worker = thread::spawn({
            let queue = Arc::clone(&queue);
            move || queue.drain()
        });
        let here = handle.task().clone().run();
        let there = worker.join().unwrap();
        match here {
            Ran::Stale => assert_eq!(there, [Ran::Finished]),
            here => assert_eq!((here, there), (Ran::Finished, vec![])),
        }
        drop(handle.try_get().unwrap().unwrap());
        drop(handle);
        assert_eq!(drops.load(SeqCst), 1);
        assert_all_gone(&queue);
    });
}

#[test]
fn a_waiter_that_changes_its_waker_or_leaves_races_completion() {
    model(|| {
        let (queue, outside) = (Queue::new(), Outside::new());
        let (mut handle, waker) = suspended(&queue, &outside);
        outside.flag.store(true, Relaxed);
        waker.wake();
        // Two tasks that do nothing serve as waiters: their wake-ups are counted by the queue.
        let (first, second) = (Outside::new(), Outside::new());
        let (_one, first) = suspended(&queue, &first);
        let (_two, second) = suspended(&queue, &second);
        let poller = thread::spawn(move || {
            let _ = Pin::new(&mut handle)
                .poll(&mut Context::from_waker(&first))
                .map(drop);
            let again = !handle.is_finished()
                && Pin::new(&mut handle)
                    .poll(&mut Context::from_waker(&second))
                    .is_pending();
            drop(handle);
            again
        });
        let runs = queue.drain();
        assert_eq!(runs[0], Ran::Finished);
        poller.join().unwrap();
        queue.drain();
        drop((_one, _two));
        queue.drain();
        assert_eq!(outside.drops(), 1);
        assert_eq!(queue.released.load(SeqCst), 3);
        assert_eq!(Arc::strong_count(&queue), 1);
    });
}
