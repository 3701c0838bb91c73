//! A wake-up at the end of a runtime drops no future: the thread that wakes may have locks that the future takes as it
//! is dropped. (A connection of quinn tells its streams under its lock that it is over.)

mod common;

use common::{ends, runtime, until};
use std::{
    future::{Future, poll_fn},
    sync::{Arc, Mutex, mpsc},
    task::{Poll, Waker},
};

type Slot = Arc<Mutex<Option<Waker>>>;

/// Is called when it is dropped.
struct OnDrop<F: FnOnce()>(Option<F>);

impl<F: FnOnce()> Drop for OnDrop<F> {
    fn drop(&mut self) {
        self.0.take().into_iter().for_each(|call| call());
    }
}

/// A task that waits, and whose future takes a lock when it is dropped.
struct Locks {
    lock: Arc<Mutex<()>>,
    other: Slot,
    dropped: mpsc::Sender<()>,
}

impl Drop for Locks {
    fn drop(&mut self) {
        let guard = self.lock.lock().unwrap();
        // As a connection does that tells its streams of its end.
        if let Some(other) = self.other.lock().unwrap().take() {
            other.wake();
        }
        drop(guard);
        let _ = self.dropped.send(());
    }
}

/// Leaves its waker and waits for ever.
fn leaves(waker: Slot) -> impl Future<Output = ()> + Send {
    poll_fn(move |cx| {
        *waker.lock().unwrap() = Some(cx.waker().clone());
        Poll::Pending
    })
}

/// Waits until a task has left its waker.
fn has_left(waker: &Mutex<Option<Waker>>) {
    until(|| waker.lock().unwrap().is_some());
}

#[test]
fn a_future_that_wakes_another_under_a_lock_of_both_as_it_is_dropped_does_not_drop_it_there() {
    ends(|| {
        let runtime = runtime(2);
        let [one, two] = [(); 2].map(|()| Slot::default());
        let (lock, (dropped, are_dropped)) = (Arc::default(), mpsc::channel());
        for (own, other) in [(&one, &two), (&two, &one)] {
            let locks = Locks {
                lock: Arc::clone(&lock),
                other: other.clone(),
                dropped: dropped.clone(),
            };
            let waits = leaves(own.clone());
            let task = runtime.spawn(async move {
                let _locks = locks;
                waits.await;
            });
            task.detach();
        }
        has_left(&one);
        has_left(&two);
        drop((runtime, dropped));
        assert_eq!(are_dropped.iter().count(), 2);
    });
}

#[test]
fn a_poll_at_the_end_of_a_runtime_drops_no_other_future_by_waking_it_under_a_lock() {
    ends(|| {
        let runtime = runtime(2);
        let lock = Arc::<Mutex<()>>::default();
        let waker = Slot::default();
        let (woken, is_woken) = mpsc::channel();
        let (dropped, is_dropped) = mpsc::channel();
        let ((runs, is_running), (begin, begins)) = (mpsc::channel(), mpsc::channel());
        // Is dropped first, and holds up the end.
        let holds_up = OnDrop(Some(move || {
            begin.send(()).unwrap();
            is_woken.recv().unwrap();
        }));
        let kept = Slot::default();
        let waits = leaves(kept.clone());
        let first = async move {
            let _holds_up = holds_up;
            waits.await;
        };
        runtime.spawn(first).detach();
        let locks = Locks {
            lock: lock.clone(),
            other: Arc::default(),
            dropped,
        };
        let waits = leaves(waker.clone());
        let second = async move {
            let _locks = locks;
            waits.await;
        };
        runtime.spawn(second).detach();
        has_left(&kept);
        has_left(&waker);
        let third = runtime.spawn_fn(move || {
            runs.send(()).unwrap();
            // Until the other thread is inside of the first task's drop.
            begins.recv().unwrap();
            let guard = lock.lock().unwrap();
            waker.lock().unwrap().take().unwrap().wake();
            drop(guard);
            woken.send(()).unwrap();
        });
        third.detach();
        is_running.recv().unwrap();
        drop(runtime);
        assert_eq!(is_dropped.recv(), Ok(()));
    });
}
