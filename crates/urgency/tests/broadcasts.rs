//! One sender and many receivers: broadcast, watch, promise.

mod common;

use common::{ends, poll, rounds, runtime};
use std::{
    cell::Cell,
    future::Future,
    panic::{AssertUnwindSafe, catch_unwind},
    rc::Rc,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
    },
    task::Poll,
    thread,
};
use urgency::{
    block_on,
    sync::{
        Barrier, BrokenPromise, Semaphore,
        broadcast::{
            self,
            error::{RecvError, TryRecvError},
        },
        promise, watch,
    },
};

#[test]
fn each_receiver_gets_each_message_and_a_slow_one_is_told_how_many_it_missed() {
    let (sender, mut slow) = broadcast::channel(2);
    let mut fast = sender.subscribe();
    for n in 0..5 {
        assert_eq!(sender.send(n).unwrap(), 2);
        assert_eq!(fast.try_recv(), Ok(n));
    }
    assert_eq!(slow.try_recv(), Err(TryRecvError::Lagged(3)));
    assert_eq!((slow.try_recv(), slow.try_recv()), (Ok(3), Ok(4)));
    assert_eq!(slow.try_recv(), Err(TryRecvError::Empty));
    drop(sender);
    assert_eq!(fast.blocking_recv(), Err(RecvError::Closed));
}

/// Not `Sync`: its clone changes it.
struct Counted {
    is_being_cloned: Cell<bool>,
    clones: Rc<Cell<usize>>,
    /// How many clones were made of the messages that were sent.
    total: Arc<AtomicUsize>,
}

// SAFETY: the messages that are sent have no other reference to their `Rc`, and a clone makes one of its own.
unsafe impl Send for Counted {}

impl Clone for Counted {
    fn clone(&self) -> Self {
        assert!(!self.is_being_cloned.replace(true), "two at once");
        let clones = self.clones.get() + 1;
        for _ in 0..self.total.fetch_add(1, SeqCst) % 64 {
            std::hint::spin_loop();
        }
        self.clones.set(clones);
        self.is_being_cloned.set(false);
        Counted {
            is_being_cloned: Cell::new(false),
            clones: Rc::default(),
            total: self.total.clone(),
        }
    }
}

#[test]
fn a_message_that_is_not_sync_is_cloned_by_one_receiver_at_a_time() {
    ends(|| {
        let (sender, receiver) = broadcast::channel(64);
        let threads: Vec<_> = (0..4)
            .map(|_| {
                let mut receiver = receiver.resubscribe();
                // The one that gets the message itself sees how many clones were made of it.
                thread::spawn(move || {
                    let mut originals = Vec::new();
                    loop {
                        match receiver.blocking_recv() {
                            Ok(Counted { clones, .. }) if clones.get() > 0 => {
                                originals.push(clones.get());
                            }
                            Err(RecvError::Closed) => return originals,
                            _ => {}
                        }
                    }
                })
            })
            .collect();
        drop(receiver);
        let total = Arc::new(AtomicUsize::new(0));
        for _ in 0..2000 {
            let message = Counted {
                is_being_cloned: Cell::new(false),
                clones: Rc::default(),
                total: total.clone(),
            };
            assert!(sender.send(message).is_ok());
        }
        drop(sender);
        let originals = threads.into_iter().flat_map(|it| it.join().unwrap());
        let seen: usize = originals.sum();
        // Of a message that a receiver missed no original may have come.
        assert!(seen <= total.load(SeqCst));
    });
}

/// Its clone waits for a permit.
struct Slow(Arc<Semaphore>, Arc<AtomicUsize>);

impl Clone for Slow {
    fn clone(&self) -> Self {
        self.1.fetch_add(1, SeqCst);
        block_on(self.0.acquire()).unwrap().forget();
        Slow(self.0.clone(), self.1.clone())
    }
}

#[test]
fn receivers_of_one_message_get_it_though_a_clone_waits_for_a_task_on_their_worker() {
    ends(|| {
        let runtime = runtime(1);
        let (sender, receiver) = broadcast::channel(4);
        let (permits, clones) = (Arc::new(Semaphore::new(0)), Arc::new(AtomicUsize::new(0)));
        let receivers: Vec<_> = (0..3)
            .map(|_| {
                let mut receiver = receiver.resubscribe();
                runtime.spawn(async move { receiver.recv().await.is_ok() })
            })
            .collect();
        drop(receiver);
        assert!(sender.send(Slow(permits.clone(), clones.clone())).is_ok());
        while clones.load(SeqCst) == 0 {
            thread::yield_now();
        }
        runtime
            .spawn(async move { permits.add_permits(3) })
            .get()
            .unwrap();
        for receiver in receivers {
            assert!(receiver.get().unwrap());
        }
        assert_eq!(clones.load(SeqCst), 2);
    });
}

#[test]
fn a_panic_of_a_clone_leaves_the_message_for_the_others() {
    /// Its first clone panics.
    struct Panics(Cell<bool>, Arc<()>);
    impl Clone for Panics {
        fn clone(&self) -> Self {
            assert!(!self.0.replace(false), "the first clone");
            Panics(Cell::new(false), self.1.clone())
        }
    }
    let alive = Arc::new(());
    let (sender, mut one) = broadcast::channel(4);
    let (mut two, mut three) = (sender.subscribe(), sender.subscribe());
    assert!(sender.send(Panics(Cell::new(true), alive.clone())).is_ok());
    let panicked = catch_unwind(AssertUnwindSafe(|| one.try_recv().is_ok()));
    assert!(panicked.is_err());
    assert!(matches!(one.try_recv(), Err(TryRecvError::Empty)));
    assert!(two.try_recv().is_ok() && three.try_recv().is_ok());
    assert_eq!(Arc::strong_count(&alive), 1);
}

#[test]
fn a_message_that_everybody_got_is_not_kept() {
    let message = Arc::new(());
    let (sender, mut one) = broadcast::channel(4);
    let (mut two, three) = (sender.subscribe(), sender.subscribe());
    sender.send(message.clone()).unwrap();
    drop(one.try_recv());
    drop(two.try_recv());
    assert_eq!(Arc::strong_count(&message), 2);
    drop(three);
    assert_eq!(Arc::strong_count(&message), 1);
    drop((one, two));
    assert!(sender.send(message).is_err());
}

#[test]
fn broadcast_to_tasks_loses_nothing_that_fits() {
    ends(|| {
        let runtime = runtime(2);
        let (sender, receiver) = broadcast::channel(2000);
        let receivers: Vec<_> = (0..4)
            .map(|_| {
                let mut receiver = receiver.resubscribe();
                runtime.spawn(async move {
                    let mut sum = 0;
                    while let Ok(n) = receiver.recv().await {
                        sum += n;
                    }
                    sum
                })
            })
            .collect();
        (0..rounds(1000)).for_each(|n| assert_eq!(sender.send(n).unwrap(), 5));
        drop((sender, receiver));
        for receiver in receivers {
            assert_eq!(receiver.get().unwrap(), (0..rounds(1000)).sum::<usize>());
        }
    });
}

#[test]
fn a_watcher_sees_the_latest_value_and_the_end() {
    let (sender, mut receiver) = watch::channel(0);
    assert_eq!(receiver.has_changed(), Ok(false));
    sender.send(1).unwrap();
    sender.send(2).unwrap();
    assert_eq!(receiver.blocking_changed(), Ok(()));
    assert_eq!(*receiver.borrow(), 2);
    let mut next = Box::pin(receiver.changed());
    assert!(poll(next.as_mut()).is_pending());
    sender.send_modify(|n| *n += 1);
    assert_eq!(poll(next.as_mut()), Poll::Ready(Ok(())));
    drop(next);
    assert_eq!(*receiver.borrow(), 3);
    let mut closed = Box::pin(sender.closed());
    assert!(poll(closed.as_mut()).is_pending());
    let late = sender.subscribe();
    drop(late);
    sender.send(4).unwrap();
    drop(closed);
    drop(sender);
    assert_eq!(receiver.blocking_changed(), Ok(()));
    assert_eq!(*receiver.borrow(), 4);
    assert!(receiver.blocking_changed().is_err());
}

#[test]
fn a_look_holds_up_a_change_in_the_values_place_and_not_a_new_value() {
    ends(|| {
        let runtime = runtime(2);
        let (sender, receiver) = watch::channel(vec![1]);
        let look = receiver.borrow();
        sender.send(vec![2]).unwrap();
        assert_eq!(*look, [1], "a look stays as it is");
        drop(look);
        let look = receiver.borrow();
        let changed = Arc::new(AtomicBool::new(false));
        let theirs = changed.clone();
        let task = runtime.spawn_fn(move || {
            sender.send_modify(|list| list.push(3));
            theirs.store(true, SeqCst);
            sender.send_replace(vec![])
        });
        for _ in 0..100 {
            std::thread::yield_now();
        }
        assert!(!changed.load(SeqCst) && *look == [2]);
        drop(look);
        assert_eq!(task.get().unwrap(), [2, 3]);
        assert!(receiver.borrow().is_empty());
    });
}

#[test]
fn concurrent_changes_of_a_watched_value_are_all_made() {
    ends(|| {
        let runtime = runtime(2);
        let (sender, receiver) = watch::channel(0);
        let tasks: Vec<_> = (0..4)
            .map(|_| {
                let sender = sender.clone();
                runtime.spawn_fn(move || {
                    (0..rounds(200)).for_each(|_| sender.send_modify(|n| *n += 1))
                })
            })
            .collect();
        tasks.into_iter().for_each(|task| task.get().unwrap());
        assert_eq!(*receiver.borrow(), 4 * rounds(200));
    });
}

#[test]
fn a_promise_is_filled_for_all_or_broken_for_all() {
    ends(|| {
        let runtime = runtime(2);
        for fills in [true, false] {
            let (filler, promise) = promise::promise();
            let waiters: Vec<_> = (0..6)
                .map(|n| {
                    let promise = promise.clone();
                    if n % 2 == 0 {
                        runtime.spawn(async move { promise.wait().await.copied() })
                    } else {
                        runtime.spawn_fn(move || promise.get().copied())
                    }
                })
                .collect();
            assert!(promise.try_get().is_none());
            if fills {
                filler.fill(5);
            } else {
                drop(filler);
            }
            for waiter in waiters {
                let expected = if fills { Ok(5) } else { Err(BrokenPromise) };
                assert_eq!(waiter.get().unwrap(), expected);
            }
        }
    });
}

/// A task that does so without end lets its equals run, at the suspensions that it owes them.
fn lets_its_equals_run<F>(step: impl Fn() -> F + Send + Sync + 'static)
where
    F: Future<Output = ()> + Send,
{
    let step = Arc::new(step);
    ends(move || {
        let gives_way = || {
            let runtime = runtime(1);
            let (step, done) = (step.clone(), Arc::new(AtomicBool::new(false)));
            let theirs = done.clone();
            let (start, started) = std::sync::mpsc::channel();
            let greedy = runtime.spawn(async move {
                start.send(()).unwrap();
                while !theirs.load(SeqCst) {
                    step().await;
                }
            });
            started.recv().unwrap();
            let other = runtime.spawn(async move { done.store(true, SeqCst) });
            other.get().unwrap();
            greedy.get().unwrap();
            runtime.stats().total().reliefs == 0
        };
        // Relief comes between if the machine is crowded.
        assert!((0..20).any(|_| gives_way()));
    });
}

#[test]
#[cfg_attr(urgency_chaos, ignore = "chaos relieves without need")]
fn a_watch_a_promise_and_a_barrier_that_need_not_wait_let_equals_run() {
    let (sender, receiver) = watch::channel(0);
    let sender = Arc::new(sender);
    lets_its_equals_run(move || {
        let (sender, mut receiver) = (sender.clone(), receiver.clone());
        async move {
            sender.send(1).unwrap();
            receiver.changed().await.unwrap();
        }
    });
    let (_sender, receiver) = watch::channel(0);
    lets_its_equals_run(move || {
        let mut receiver = receiver.clone();
        async move { assert!(receiver.wait_for(|_| true).await.is_ok()) }
    });
    let (sender, _) = watch::channel(0);
    let sender = Arc::new(sender);
    lets_its_equals_run(move || {
        let sender = sender.clone();
        async move { sender.closed().await }
    });
    let (filler, promise) = promise::promise();
    filler.fill(1);
    let theirs = promise.clone();
    lets_its_equals_run(move || {
        let promise = theirs.clone();
        async move { assert_eq!(promise.wait().await, Ok(&1)) }
    });
    let barrier = Arc::new(Barrier::new(1));
    lets_its_equals_run(move || {
        let barrier = barrier.clone();
        async move { assert!(barrier.wait().await.is_leader()) }
    });
}
