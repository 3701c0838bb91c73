//! Tasks of a set stay on the thread of the set, whatever other threads do with their wakers and handles.

mod common;

use common::{ends, runtime};
use std::{
    cell::{Cell, RefCell},
    future::{pending, poll_fn},
    panic::catch_unwind,
    pin::pin,
    rc::Rc,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    task::{Context, Poll, Wake, Waker},
    thread::{self, ThreadId},
};
use urgency::{
    JoinErrorKind, JoinHandle, block_on,
    life::Local,
    spawn,
    sync::{Notify, mpsc, oneshot},
    task::{Id, LocalSet, block_in_place, spawn_local, try_id},
    yield_now,
};

/// Panics if it is dropped on another thread, and counts its drops. Not `Send`.
struct Here {
    thread: ThreadId,
    drops: Rc<Cell<usize>>,
}

impl Here {
    fn new(drops: &Rc<Cell<usize>>) -> Self {
        Here {
            thread: thread::current().id(),
            drops: drops.clone(),
        }
    }

    fn check(&self) {
        assert_eq!(thread::current().id(), self.thread);
    }
}

impl Drop for Here {
    fn drop(&mut self) {
        self.check();
        self.drops.set(self.drops.get() + 1);
    }
}

#[test]
fn local_tasks_run_on_the_thread_of_their_set_whichever_thread_wakes_them() {
    ends(|| {
        let runtime = runtime(2);
        let set = LocalSet::new();
        let drops = Rc::new(Cell::new(0));
        let sum = set.block_on(&runtime, async {
            let mut tasks = Vec::new();
            for n in 0..100u64 {
                let (send, mut receive) = mpsc::channel(1);
                spawn(async move {
                    for _ in 0..10 {
                        yield_now().await;
                        send.send(n).await.unwrap();
                    }
                })
                .detach();
                let here = Here::new(&drops);
                tasks.push(spawn_local(async move {
                    let mut sum = 0;
                    while let Some(n) = receive.recv().await {
                        here.check();
                        sum += n;
                    }
                    sum
                }));
            }
            let mut sum = 0;
            for task in tasks {
                sum += task.await.unwrap();
            }
            sum
        });
        assert_eq!((sum, drops.get()), (49_500, 100));
    });
}

#[test]
fn a_set_as_a_future_ends_when_all_its_tasks_have_and_their_children() {
    ends(|| {
        let log = Rc::new(RefCell::new(Vec::new()));
        let set = LocalSet::new();
        for n in 0..3 {
            let log = log.clone();
            set.spawn_local(async move {
                yield_now().await;
                let theirs = log.clone();
                spawn_local(async move { theirs.borrow_mut().push(n + 10) });
                log.borrow_mut().push(n);
            });
        }
        block_on(set);
        assert_eq!(*log.borrow(), [0, 1, 2, 10, 11, 12]);
    });
}

#[test]
fn the_end_of_a_set_drops_its_futures_on_its_thread_while_others_wake_and_abort_them() {
    ends(|| {
        for round in 0..200 {
            let drops = Rc::new(Cell::new(0));
            let notify = Arc::new(Notify::new());
            let set = LocalSet::new();
            let mut handles = Vec::new();
            for _ in 0..10 {
                let (here, notify) = (Here::new(&drops), notify.clone());
                handles.push(set.spawn_local(async move {
                    loop {
                        notify.notified().await;
                        here.check();
                    }
                }));
            }
            block_on(set.run_until(yield_now()));
            let aborts: Vec<_> = handles.iter().map(|handle| handle.abort_handle()).collect();
            let theirs = notify.clone();
            let others = [
                thread::spawn(move || (0..20).for_each(|_| theirs.notify_waiters())),
                thread::spawn(move || aborts.iter().for_each(|abort| abort.abort())),
            ];
            if round % 2 == 0 {
                block_on(set.run_until(yield_now()));
            }
            drop(set);
            assert_eq!(drops.get(), 10);
            others.into_iter().for_each(|other| other.join().unwrap());
            for handle in handles {
                assert!(handle.get().unwrap_err().is_cancelled());
            }
        }
    });
}

#[test]
fn a_task_that_another_thread_aborts_is_dropped_by_its_set() {
    ends(|| {
        let drops = Rc::new(Cell::new(0));
        let set = LocalSet::new();
        let here = Here::new(&drops);
        let task = set.spawn_local(async move {
            let _here = here;
            pending::<()>().await
        });
        let error = block_on(set.run_until(async {
            yield_now().await;
            let abort = task.abort_handle();
            thread::spawn(move || abort.abort()).join().unwrap();
            task.await.unwrap_err()
        }));
        assert!(error.is_cancelled());
        assert_eq!(drops.get(), 1);
    });
}

#[test]
fn a_task_that_nothing_can_wake_any_more_is_dropped_by_its_set() {
    ends(|| {
        let drops = Rc::new(Cell::new(0));
        let here = Here::new(&drops);
        let (send, receive) = oneshot::channel::<()>();
        let set = LocalSet::new();
        set.spawn_local(async move {
            let _here = here;
            let mut receive = pin!(receive);
            // Its waker goes to the other thread, which drops it.
            let mut given = Some(send);
            poll_fn(|cx| {
                if let Some(send) = given.take() {
                    let waker = cx.waker().clone();
                    thread::spawn(move || drop((waker, send.is_closed())));
                }
                Poll::<()>::Pending
            })
            .await;
            receive.as_mut().await.unwrap();
        })
        .detach();
        block_on(set);
        assert_eq!(drops.get(), 1);
    });
}

#[test]
fn a_panic_of_a_local_task_is_a_value_and_the_others_go_on() {
    ends(|| {
        block_on(LocalSet::new().run_until(async {
            let panics = spawn_local(async { panic!("on purpose") });
            let goes_on = spawn_local(async { 1 });
            assert!(panics.await.unwrap_err().is_panic());
            assert_eq!(goes_on.await.unwrap(), 1);
        }));
    });
}

/// Does not compile if one of these types is `Send`: then `_` may be either.
#[allow(dead_code)]
mod stays_on_its_thread {
    use std::rc::Rc;
    use urgency::{
        JoinHandle,
        runtime::EnterGuard,
        task::{LocalEnterGuard, LocalSet},
    };

    trait IsSend<Either> {
        fn is_send() {}
    }

    struct Send;

    impl<T> IsSend<()> for T {}
    impl<T: std::marker::Send> IsSend<Send> for T {}

    fn compiles() {
        <LocalSet as IsSend<_>>::is_send();
        <LocalEnterGuard as IsSend<_>>::is_send();
        <EnterGuard<'_> as IsSend<_>>::is_send();
        <JoinHandle<Rc<()>> as IsSend<_>>::is_send();
    }
}

/// Counts its wake-ups.
#[derive(Default)]
struct Bell(AtomicUsize);

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, SeqCst);
    }
}

#[test]
fn each_place_that_polls_a_set_is_woken_until_it_ends() {
    ends(|| {
        let set = LocalSet::new();
        let notify = Notify::new();
        let rounds = Rc::new(Cell::new(0));
        let (theirs, counted) = (Rc::new(notify), rounds.clone());
        let notify = theirs.clone();
        set.spawn_local(async move {
            loop {
                theirs.notified().await;
                counted.set(counted.get() + 1);
            }
        })
        .detach();
        let bells = [(); 2].map(|()| Arc::new(Bell::default()));
        let rung = || bells.each_ref().map(|bell| bell.0.load(SeqCst));
        let wakers = bells.clone().map(Waker::from);
        let place = || Box::pin(set.run_until(pending::<()>()));
        let (mut first, mut second) = (place(), place());
        for (place, waker) in [(&mut first, &wakers[0]), (&mut second, &wakers[1])] {
            assert!(
                place
                    .as_mut()
                    .poll(&mut Context::from_waker(waker))
                    .is_pending()
            );
        }
        notify.notify_one();
        assert_eq!(rung(), [1, 1]);
        for (place, waker) in [(&mut first, &wakers[0]), (&mut second, &wakers[1])] {
            assert!(
                place
                    .as_mut()
                    .poll(&mut Context::from_waker(waker))
                    .is_pending()
            );
        }
        assert_eq!(rounds.get(), 1);
        drop(second);
        notify.notify_one();
        assert_eq!(rung(), [2, 1]);
    });
}

#[test]
fn tasks_that_always_have_work_keep_nothing_else_from_running() {
    ends(|| {
        let set = LocalSet::new();
        for _ in 0..3 {
            set.spawn_local(async {
                loop {
                    yield_now().await;
                }
            })
            .detach();
        }
        let runtime = runtime(1);
        let other = runtime.spawn(async { 1 });
        let sum = set.block_on(&runtime, async {
            let local = spawn_local(async {
                yield_now().await;
                Rc::new(2) // no result need be `Send`
            });
            other.await.unwrap() + *local.await.unwrap()
        });
        assert_eq!(sum, 3);
    });
}

#[test]
fn a_local_task_inherits_from_the_code_that_spawns_it_and_not_from_the_code_that_polls() {
    ends(|| {
        static NAME: Local<&str> = Local::new();
        let name = || NAME.get().map(|name| *name);
        let set = LocalSet::new();
        let unnamed = set.spawn_local(async move { name() });
        let named = NAME.with_blocking("spawner", || set.spawn_local(async move { name() }));
        let found = block_on(NAME.with(
            "poller",
            set.run_until(async {
                let inner = spawn_local(async move { name() });
                (
                    unnamed.await.unwrap(),
                    named.await.unwrap(),
                    inner.await.unwrap(),
                )
            }),
        ));
        assert_eq!(found, (None, Some("spawner"), Some("poller")));
    });
}

#[test]
fn outside_of_a_set_and_after_its_end_nothing_is_spawned() {
    ends(|| {
        let panic = catch_unwind(|| spawn_local(async {})).unwrap_err();
        let text = panic.downcast_ref::<&str>().unwrap();
        assert!(text.contains("outside of a `task::LocalSet`"), "{text}");
        let set = LocalSet::new();
        let guard = set.enter();
        let before = spawn_local(async {});
        drop(set);
        let after = spawn_local(async {});
        drop(guard);
        assert!(before.get().unwrap_err().is_cancelled());
        assert!(after.get().unwrap_err().is_cancelled());
    });
}

/// A waker that panics, or that says that it was called.
struct Called {
    panics: bool,
    count: AtomicUsize,
}

impl Wake for Called {
    fn wake(self: Arc<Self>) {
        assert!(!self.panics, "on purpose, in a waker");
        self.count.fetch_add(1, SeqCst);
    }
}

#[test]
fn a_place_whose_waker_panics_keeps_no_other_place_from_being_woken() {
    let called = |panics| {
        let count = AtomicUsize::new(0);
        Arc::new(Called { panics, count })
    };
    let (bad, good) = (called(true), called(false));
    let set = LocalSet::new();
    let mut first = pin!(set.run_until(pending::<()>()));
    let mut second = pin!(set.run_until(pending::<()>()));
    for (place, waker) in [(first.as_mut(), &bad), (second.as_mut(), &good)] {
        let waker = Waker::from(waker.clone());
        assert!(place.poll(&mut Context::from_waker(&waker)).is_pending());
    }
    set.spawn_local(async {}).detach();
    assert_eq!(good.count.load(SeqCst), 1);
}

#[test]
fn a_local_task_that_waits_for_itself_has_an_error_without_its_handle() {
    ends(|| {
        let (runtime, set) = (runtime(1), LocalSet::new());
        let (given, own) = oneshot::channel::<JoinHandle<Rc<u32>>>();
        let (said, says) = oneshot::channel();
        let task = set.spawn_local(async move {
            let own: JoinHandle<Rc<u32>> = own.await.unwrap();
            let error = own.await.unwrap_err();
            said.send(error).unwrap();
            Rc::new(1)
        });
        assert!(given.send(task).is_ok());
        let other = set.spawn_local(async { 2 });
        let waits = set.spawn_local(async move { other.await.unwrap() });
        let error = set.block_on(runtime.handle(), async {
            assert_eq!(waits.await.unwrap(), 2, "for another one it may wait");
            says.await.unwrap()
        });
        assert_eq!(error.kind(), JoinErrorKind::WaitsForItself);
        // The error is `Send`, and the output is not.
        let error = std::thread::spawn(move || error.into_handle::<Rc<u32>>().is_err());
        assert!(error.join().unwrap());
    });
}

/// Says which task it is of as it is dropped.
struct Named(mpsc::UnboundedSender<Option<Id>>);

impl Drop for Named {
    fn drop(&mut self) {
        let _ = self.0.send(try_id());
    }
}

#[test]
fn a_local_task_knows_its_own_id_whatever_polls_its_set() {
    ends(|| {
        let runtime = runtime(2);
        let by_a_thread = LocalSet::new();
        let task = by_a_thread.spawn_local(async { (try_id(), block_in_place(try_id)) });
        let id = Some(task.id());
        assert_eq!(by_a_thread.block_on(&runtime, task).unwrap(), (id, id));

        let by_a_task = runtime.spawn_fn(|| {
            let (own, set) = (try_id(), LocalSet::new());
            let task = set.spawn_local(async { try_id() });
            let id = Some(task.id());
            assert_ne!(id, own);
            assert_eq!(block_on(set.run_until(task)).unwrap(), id);
            assert_eq!(block_on(set.run_until(async { try_id() })), own);
        });
        by_a_task.get().unwrap();
    });
}

#[test]
fn what_the_end_of_a_set_drops_knows_its_task() {
    let (sender, mut names) = mpsc::unbounded_channel();
    let set = LocalSet::new();
    let named = Named(sender);
    let task = set.spawn_local(async move {
        let _named = named;
        pending::<()>().await;
    });
    drop(set);
    assert_eq!(names.try_recv(), Ok(Some(task.id())));
}
