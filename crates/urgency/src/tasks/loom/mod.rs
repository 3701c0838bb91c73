//! Models of the task's protocols, run by loom over all interleavings (two preemptions). The models of raised tasks are
//! in `raise.rs`, and the models of handles in `handle.rs`.
//!
//! Each model ends by emptying the queues, and then asserts: the future was dropped exactly once,
//! `released` was called exactly once, and the count of the scheduler says that the cell was freed
//! exactly once (loom itself reports a use after free of its atomics, and any access to the future,
//! the result or the waiter slot that the state word did not order).

mod handle;
mod raise;

use super::*;
use crate::sys::primitives::{
    Arc, Mutex,
    atomic::{
        AtomicBool, AtomicUsize,
        Ordering::{Relaxed, SeqCst},
    },
    thread,
};
use std::{
    collections::VecDeque,
    future::poll_fn,
    task::{Wake, Waker},
};

/// One queue, and counters.
struct Queue {
    entries: Mutex<VecDeque<TaskRef>>,
    /// The level that each entry saw.
    levels: Mutex<Vec<u8>>,
    live: LiveTasks,
    released: AtomicUsize,
    unheard: AtomicUsize,
    /// Whether it was told that a running task was raised.
    grant: AtomicBool,
    /// The number of the runner of that task; 0 for one without a name.
    runner: AtomicUsize,
}

impl Schedule for Queue {
    fn schedule(&self, task: TaskRef) {
        self.levels.lock().unwrap().push(task.level());
        self.entries.lock().unwrap().push_back(task);
    }

    fn raised(&self, _task: &TaskRef, runner: Runner) {
        self.runner.store(runner.number().unwrap_or(0), Relaxed);
        self.grant.store(true, Relaxed);
    }

    fn released(&self, task: &TaskRef) {
        self.live.remove(task);
        self.released.fetch_add(1, SeqCst);
    }

    fn unheard(&self, _task: &TaskRef) {
        self.unheard.fetch_add(1, SeqCst);
    }
}

impl Queue {
    fn new() -> Arc<Self> {
        Queue::with_shards(1)
    }

    fn with_shards(shards: usize) -> Arc<Self> {
        Arc::new(Queue {
            entries: Mutex::new(VecDeque::new()),
            levels: Mutex::new(Vec::new()),
            live: LiveTasks::new(shards),
            released: AtomicUsize::new(0),
            unheard: AtomicUsize::new(0),
            grant: AtomicBool::new(false),
            runner: AtomicUsize::new(0),
        })
    }

    fn next(&self) -> Option<TaskRef> {
        self.entries.lock().unwrap().pop_front()
    }

    /// Runs until nothing is ready; returns the runs that were not stale.
    fn drain(&self) -> Vec<Ran> {
        std::iter::from_fn(|| self.next().map(TaskRef::run))
            .filter(|ran| *ran != Ran::Stale)
            .collect()
    }
}

/// What most models end with: one task was made, and nothing of it is left.
fn assert_all_gone(queue: &Arc<Queue>) {
    assert_eq!(queue.drain(), []);
    assert_eq!(queue.released.load(SeqCst), 1);
    assert_eq!(Arc::strong_count(queue), 1, "the cell was freed once");
}

/// Counts the drops of the future or the result that holds it.
struct Dropped(Arc<AtomicUsize>);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.fetch_add(1, SeqCst);
    }
}

/// What the code outside of a task shares with it: a flag that it waits for, and its waker.
struct Outside {
    flag: AtomicBool,
    waker: Mutex<Option<Waker>>,
    drops: Arc<AtomicUsize>,
}

impl Outside {
    fn new() -> Arc<Self> {
        Arc::new(Outside {
            flag: AtomicBool::new(false),
            waker: Mutex::new(None),
            drops: Arc::new(AtomicUsize::new(0)),
        })
    }

    fn waker(&self) -> Waker {
        self.waker.lock().unwrap().take().expect("polled once")
    }

    fn drops(&self) -> usize {
        self.drops.load(SeqCst)
    }
}

/// A future that leaves its waker outside once and then ends when it sees the flag, which is read
/// with Relaxed: only the wake-up itself may make it visible (rule 4).
fn wait(outside: &Arc<Outside>) -> impl Future<Output = Dropped> + Send + use<> {
    let outside = Arc::clone(outside);
    let mut guard = Some(Dropped(Arc::clone(&outside.drops)));
    let mut left = false;
    poll_fn(move |cx| {
        if outside.flag.load(Relaxed) {
            return Poll::Ready(guard.take().unwrap());
        }
        if !std::mem::replace(&mut left, true) {
            *outside.waker.lock().unwrap() = Some(cx.waker().clone());
        }
        Poll::Pending
    })
}

/// A task that has been polled once and waits for the flag.
fn suspended(queue: &Arc<Queue>, outside: &Arc<Outside>) -> (JoinHandle<Dropped>, Waker) {
    let (task, handle) = new(wait(outside), Arc::clone(queue), 1);
    assert!(queue.live.insert(&task, 0));
    assert_eq!(task.run(), Ran::Suspended);
    queue.levels.lock().unwrap().clear();
    (handle, outside.waker())
}

/// Wakes the thread that blocks in `block_on`.
struct Bell(::loom::sync::Notify);

impl Wake for Bell {
    fn wake(self: std::sync::Arc<Self>) {
        self.0.notify();
    }
}

fn block_on<F: Future + Unpin>(mut future: F) -> F::Output {
    let bell = std::sync::Arc::new(Bell(::loom::sync::Notify::new()));
    let waker = Waker::from(std::sync::Arc::clone(&bell));
    loop {
        match Pin::new(&mut future).poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(result) => return result,
            Poll::Pending => bell.0.wait(),
        }
    }
}

fn model(f: impl Fn() + Send + Sync + 'static) {
    let mut builder = ::loom::model::Builder::new();
    builder.preemption_bound = Some(builder.preemption_bound.unwrap_or(2));
    builder.check(f);
}

#[test]
fn a_wake_up_during_the_run_is_not_lost_and_publishes() {
    model(|| {
        let (queue, outside) = (Queue::new(), Outside::new());
        let (mut handle, waker) = suspended(&queue, &outside);
        waker.wake_by_ref();
        let thread = thread::spawn({
            let outside = Arc::clone(&outside);
            move || {
                outside.flag.store(true, Relaxed);
                waker.wake();
            }
        });
        let mut runs = queue.drain();
        thread.join().unwrap();
        runs.extend(queue.drain());
        assert_eq!(runs.last(), Some(&Ran::Finished));
        drop(handle.try_get().unwrap().unwrap());
        drop(handle);
        assert_eq!(outside.drops(), 1);
        assert_all_gone(&queue);
    });
}

#[test]
fn a_wake_up_by_reference_of_a_ready_task_publishes_too() {
    model(|| {
        let (queue, outside) = (Queue::new(), Outside::new());
        let (handle, waker) = suspended(&queue, &outside);
        waker.wake_by_ref();
        let thread = thread::spawn({
            let outside = Arc::clone(&outside);
            move || {
                outside.flag.store(true, Relaxed);
                waker.wake_by_ref();
                waker
            }
        });
        let mut runs = queue.drain();
        let waker = thread.join().unwrap();
        runs.extend(queue.drain());
        assert_eq!(runs.last(), Some(&Ran::Finished));
        drop((handle, waker));
        assert_eq!(outside.drops(), 1);
        assert_all_gone(&queue);
    });
}

#[test]
fn a_waker_outlives_its_detached_task() {
    model(|| {
        let (queue, outside) = (Queue::new(), Outside::new());
        let (handle, waker) = suspended(&queue, &outside);
        drop(handle);
        outside.flag.store(true, Relaxed);
        waker.wake_by_ref();
        let thread = thread::spawn(move || {
            waker.wake_by_ref();
            drop(waker);
        });
        let runs = queue.drain();
        thread.join().unwrap();
        assert_eq!((runs, queue.drain()), (vec![Ran::Finished], vec![]));
        assert_eq!(outside.drops(), 1);
        assert_all_gone(&queue);
    });
}

#[test]
fn two_wake_ups_make_one_entry_each_time() {
    model(|| {
        let (queue, outside) = (Queue::new(), Outside::new());
        let (handle, waker) = suspended(&queue, &outside);
        let other = waker.clone();
        let thread = thread::spawn(move || other.wake());
        waker.wake_by_ref();
        thread.join().unwrap();
        assert_eq!(queue.entries.lock().unwrap().len(), 1);
        outside.flag.store(true, Relaxed);
        waker.wake();
        drop(handle);
        assert_eq!(queue.drain(), [Ran::Finished]);
        assert_eq!(outside.drops(), 1);
        assert_all_gone(&queue);
    });
}

#[test]
fn a_cancellation_races_a_wake_up_and_the_run() {
    model(|| {
        let (queue, outside) = (Queue::new(), Outside::new());
        let (handle, waker) = suspended(&queue, &outside);
        let thread = thread::spawn({
            let outside = Arc::clone(&outside);
            move || {
                outside.flag.store(true, Relaxed);
                waker.wake();
            }
        });
        let canceller = thread::spawn(move || {
            handle.abort();
            handle
        });
        let mut runs = queue.drain();
        thread.join().unwrap();
        let mut handle = canceller.join().unwrap();
        runs.extend(queue.drain());
        match handle.try_get().expect("ended one way or the other") {
            Ok(_) => assert_eq!(runs.last(), Some(&Ran::Finished)),
            Err(_) => assert_eq!(runs.last(), Some(&Ran::Cancelled)),
        }
        drop(handle);
        assert_eq!(outside.drops(), 1);
        assert_all_gone(&queue);
    });
}

#[test]
fn the_last_two_references_of_a_suspended_task_give_it_to_a_worker_once() {
    model(|| {
        let (queue, outside) = (Queue::new(), Outside::new());
        let (handle, waker) = suspended(&queue, &outside);
        let thread = thread::spawn(move || drop(waker));
        drop(handle);
        thread.join().unwrap();
        assert_eq!(outside.drops(), 0);
        assert_eq!(queue.drain(), [Ran::Cancelled]);
        assert_eq!(outside.drops(), 1);
        assert_all_gone(&queue);
    });
}

#[test]
fn a_waker_dropped_during_the_run_of_a_detached_task_leaves_one_end() {
    model(|| {
        let (queue, outside) = (Queue::new(), Outside::new());
        let (handle, waker) = suspended(&queue, &outside);
        drop(handle);
        waker.wake_by_ref();
        let thread = thread::spawn(move || drop(waker));
        let mut runs = queue.drain();
        thread.join().unwrap();
        runs.extend(queue.drain());
        assert_eq!(runs.last(), Some(&Ran::Cancelled));
        assert_eq!(outside.drops(), 1);
        assert_all_gone(&queue);
    });
}

#[test]
fn a_shutdown_races_a_wake_up_and_the_run() {
    model(|| {
        let (queue, outside) = (Queue::new(), Outside::new());
        let (mut handle, waker) = suspended(&queue, &outside);
        waker.wake_by_ref();
        let thread = thread::spawn({
            let queue = Arc::clone(&queue);
            move || {
                queue
                    .live
                    .close()
                    .into_iter()
                    .filter(|task| task.clone().shut_down())
                    .count()
            }
        });
        let mut runs = queue.drain();
        let seized = thread.join().unwrap();
        waker.wake();
        runs.extend(queue.drain());
        let ended = runs.iter().filter(|ran| **ran == Ran::Cancelled).count();
        assert_eq!(seized + ended, 1);
        let error = handle.try_get().unwrap().map(drop).unwrap_err();
        assert_eq!(error.kind(), JoinErrorKind::ShutDown);
        drop(handle);
        assert_eq!(outside.drops(), 1);
        assert_all_gone(&queue);
    });
}

#[test]
fn a_visit_of_the_live_tasks_races_the_end_of_one() {
    model(|| {
        let (queue, outside) = (Queue::new(), Outside::new());
        let (handle, waker) = suspended(&queue, &outside);
        drop(handle);
        outside.flag.store(true, Relaxed);
        waker.wake();
        let visitor = thread::spawn({
            let queue = Arc::clone(&queue);
            move || queue.live.tasks().len()
        });
        assert_eq!(queue.drain(), [Ran::Finished]);
        assert!(visitor.join().unwrap() <= 1);
        assert_eq!((queue.live.len(), outside.drops()), (0, 1));
        assert_all_gone(&queue);
    });
}

/// The task's shard may be one that the closing thread has not come to yet.
#[test]
fn a_thread_that_sees_the_tasks_closed_enters_none_and_each_that_was_entered_is_found() {
    model(|| {
        let queue = Queue::with_shards(2);
        let (task, handle) = new(async {}, Arc::clone(&queue), 1);
        let closes = thread::spawn({
            let queue = Arc::clone(&queue);
            move || queue.live.close().len()
        });
        let seen = queue.live.is_closed();
        let entered = queue.live.insert(&task, 1);
        assert!(!(seen && entered));
        let found = closes.join().unwrap();
        assert_eq!(found, usize::from(entered));
        if entered {
            assert_eq!(task.run(), Ran::Finished);
        } else {
            task.shut_down();
        }
        drop(handle);
        assert_all_gone(&queue);
    });
}
