//! Models of the primitives, run by loom over all interleavings (two preemptions).
//!
//! A thread that sleeps when nobody will wake it is a deadlock, which loom reports; so each model that ends
//! shows that no wake-up was lost. Data that a primitive guards is a loom cell, so that an access which the
//! primitive did not order is reported, too.

mod ends;

use super::{
    Notify, Semaphore, hooks::as_task, lists::Key, message::Message, mpsc, oneshot, raw::RawMutex,
};
use crate::tasks::{Guarded, JoinHandle, Ran, Runner, Schedule, TaskRef};
use loom::{
    sync::{Arc, Condvar, Mutex},
    thread,
};
use std::{
    future::Future,
    pin::pin,
    task::{Context, Poll, Wake, Waker},
};

/// A thread that parks, as a waker.
struct Parked(Mutex<bool>, Condvar);

impl Wake for Parked {
    fn wake(self: std::sync::Arc<Self>) {
        *self.0.lock().unwrap() = true;
        self.1.notify_one();
    }
}

fn block_on<F: Future>(future: F) -> F::Output {
    let parked = std::sync::Arc::new(Parked(Mutex::new(false), Condvar::new()));
    let waker = Waker::from(parked.clone());
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return output;
        }
        let mut woken = parked.0.lock().unwrap();
        while !*woken {
            woken = parked.1.wait(woken).unwrap();
        }
        *woken = false;
    }
}

/// Polls once. The future is dropped where it stands.
fn poll_and_drop<F: Future>(future: F) -> Poll<F::Output> {
    let mut future = pin!(future);
    future
        .as_mut()
        .poll(&mut Context::from_waker(Waker::noop()))
}

fn model(body: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(2);
    builder.check(body);
}

/// A raw mutex and what it guards, used as `Mutex` does.
struct Counter {
    raw: RawMutex,
    count: Guarded<usize>,
}

// SAFETY: the count is only reached under the lock.
unsafe impl Send for Counter {}
// SAFETY: as above; loom reports it if it is not so.
unsafe impl Sync for Counter {}

struct Locking<'a>(&'a RawMutex, Option<Key>);

impl Future for Locking<'_> {
    type Output = ();

    fn poll(mut self: std::pin::Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = &mut *self;
        this.0
            .poll_lock(&mut this.1, cx, std::panic::Location::caller())
    }
}

impl Drop for Locking<'_> {
    fn drop(&mut self) {
        if let Some(key) = self.1.take() {
            self.0.leave(key);
        }
    }
}

impl Counter {
    fn new() -> Arc<Self> {
        Arc::new(Counter {
            raw: RawMutex::new(),
            count: Guarded::new(0),
        })
    }

    fn add(&self) {
        block_on(Locking(&self.raw, None));
        // SAFETY: locked.
        self.count.with_mut(|count| unsafe { *count += 1 });
        self.raw.unlock();
    }
}

#[test]
fn a_lock_that_two_want_is_had_by_one_at_a_time_and_by_both() {
    model(|| {
        let counter = Counter::new();
        let other = counter.clone();
        let thread = thread::spawn(move || other.add());
        counter.add();
        thread.join().unwrap();
        // SAFETY: the other thread has ended.
        counter.count.with(|count| assert_eq!(unsafe { *count }, 2));
        assert!(!counter.raw.is_locked());
    });
}

#[test]
fn a_lock_handed_to_a_waiter_that_is_dropped_goes_to_the_next() {
    model(|| {
        let counter = Counter::new();
        assert!(counter.raw.try_lock());
        let dropped = counter.clone();
        let dropped = thread::spawn(move || {
            if poll_and_drop(Locking(&dropped.raw, None)).is_ready() {
                dropped.raw.unlock();
            }
        });
        let other = counter.clone();
        let other = thread::spawn(move || other.add());
        counter.raw.unlock();
        dropped.join().unwrap();
        other.join().unwrap();
        assert!(!counter.raw.is_locked());
    });
}

#[test]
fn permits_are_neither_lost_nor_made_by_waiters_for_one_and_for_two() {
    model(|| {
        let places = Arc::new(Semaphore::new(2));
        let threads: Vec<_> = [1, 2]
            .into_iter()
            .map(|permits| {
                let places = places.clone();
                thread::spawn(move || drop(block_on(places.acquire_many(permits)).unwrap()))
            })
            .collect();
        let _ = poll_and_drop(places.acquire_many(2));
        for thread in threads {
            thread.join().unwrap();
        }
        assert_eq!(places.available_permits(), 2);
    });
}

#[test]
fn closing_a_semaphore_wakes_the_waiters() {
    model(|| {
        let places = Arc::new(Semaphore::new(0));
        let waiting = places.clone();
        let waiting = thread::spawn(move || block_on(waiting.acquire()).is_err());
        places.close();
        assert!(waiting.join().unwrap());
    });
}

#[test]
fn each_notification_of_one_reaches_one_though_another_waiter_is_dropped() {
    model(|| {
        let event = Arc::new(Notify::new());
        let waiting = event.clone();
        let waiting = thread::spawn(move || block_on(waiting.notified()));
        let dropped = event.clone();
        let dropped = thread::spawn(move || {
            // A notification that it got is passed on.
            if poll_and_drop(dropped.notified()).is_ready() {
                dropped.notify_one();
            }
        });
        event.notify_one();
        waiting.join().unwrap();
        dropped.join().unwrap();
    });
}

#[test]
fn a_condition_that_changes_after_the_future_was_made_is_not_missed() {
    model(|| {
        let event = Arc::new((Notify::new(), loom::sync::atomic::AtomicBool::new(false)));
        let other = event.clone();
        let setter = thread::spawn(move || {
            other.1.store(true, loom::sync::atomic::Ordering::Release);
            other.0.notify_waiters();
        });
        loop {
            let changed = event.0.notified();
            if event.1.load(loom::sync::atomic::Ordering::Acquire) {
                break;
            }
            block_on(changed);
        }
        setter.join().unwrap();
    });
}

#[test]
fn a_oneshot_message_arrives_or_comes_back() {
    model(|| {
        let (sender, receiver) = oneshot::channel();
        let thread = thread::spawn(move || sender.send(Box::new(7)).is_ok());
        let received = poll_and_drop(receiver);
        let sent = thread.join().unwrap();
        assert!(sent || received.is_pending(), "received, and came back");
    });
}

#[test]
fn a_oneshot_receiver_sleeps_through_no_message_and_no_end() {
    for sends in [true, false] {
        model(move || {
            let (sender, receiver) = oneshot::channel();
            let thread = thread::spawn(move || {
                if sends {
                    sender.send(Box::new(7)).unwrap();
                }
            });
            assert_eq!(block_on(receiver).is_ok(), sends);
            thread.join().unwrap();
        });
    }
}

#[test]
fn a_oneshot_receiver_that_is_polled_with_another_waker_is_woken() {
    model(|| {
        let (sender, mut receiver) = oneshot::channel();
        let thread = thread::spawn(move || sender.send(1).unwrap());
        let early = std::pin::Pin::new(&mut receiver).poll(&mut Context::from_waker(Waker::noop()));
        if early.is_pending() {
            assert_eq!(block_on(receiver), Ok(1));
        }
        thread.join().unwrap();
    });
}

#[test]
fn a_full_channel_loses_no_message_and_no_place() {
    model(|| {
        let (sender, mut receiver) = mpsc::channel(1);
        sender.try_send(0).unwrap();
        let other = sender.clone();
        let dropped = thread::spawn(move || poll_and_drop(other.send(1)).is_ready());
        let thread = thread::spawn(move || block_on(sender.send(2)).unwrap());
        let mut received = 0;
        while block_on(receiver.recv()).is_some() {
            received += 1;
        }
        thread.join().unwrap();
        let sent = 2 + usize::from(dropped.join().unwrap());
        assert_eq!(received, sent);
    });
}

#[test]
fn a_sender_that_waits_for_a_receiver_that_goes_gets_its_message_back() {
    model(|| {
        let (sender, receiver) = mpsc::channel(1);
        sender.try_send(0).unwrap();
        let thread = thread::spawn(move || drop(receiver));
        assert!(block_on(sender.send(1)).is_err());
        thread.join().unwrap();
    });
}

/// Two at a time: loom does not end where several threads look for their turn. `protocol/portions.rs` has more.
#[test]
fn a_message_is_freed_once() {
    model(|| {
        let mut message = Message::new(None, Arc::new(7), 2);
        let (one, two) = (message.take(), message.take());
        let first = thread::spawn(move || *one.into_value().0);
        drop(two);
        assert_eq!(first.join().unwrap(), 7);
    });
    model(|| {
        let mut message = Message::new(None, Arc::new(7), 3);
        let one = message.take();
        let first = thread::spawn(move || *one.into_value().0);
        drop(message);
        assert_eq!(first.join().unwrap(), 7);
    });
}

/// Where the tasks of a model are put that are ready, which are all.
#[derive(Default)]
struct Ready(Mutex<Vec<TaskRef>>);

impl Schedule for Ready {
    fn schedule(&self, task: TaskRef) {
        self.0.lock().unwrap().push(task);
    }

    fn raised(&self, _task: &TaskRef, _runner: Runner) {}

    fn released(&self, _task: &TaskRef) {}
}

/// Tasks of these levels, as whose code the threads of a model lock `raw`.
struct Tasks<const N: usize> {
    ready: Arc<Ready>,
    tasks: [TaskRef; N],
    own: [u8; N],
    _handles: [JoinHandle<()>; N],
    raw: RawMutex,
}

impl<const N: usize> Tasks<N> {
    fn new(own: [u8; N]) -> Arc<Self> {
        let ready = Arc::new(Ready::default());
        let made = own.map(|level| crate::tasks::new(std::future::ready(()), ready.clone(), level));
        let mut handles = Vec::new();
        let tasks = made.map(|(task, handle)| {
            handles.push(handle);
            task
        });
        Arc::new(Tasks {
            ready,
            tasks,
            own,
            _handles: handles.try_into().expect("as many"),
            raw: RawMutex::new(),
        })
    }

    /// A task that locks, polled once.
    fn queued(&self, task: usize, waker: &Waker) -> Locking<'_> {
        let mut lock = Locking(&self.raw, None);
        assert!(self.polls(task, &mut lock, waker).is_pending());
        lock
    }

    fn polls(&self, task: usize, lock: &mut Locking<'_>, waker: &Waker) -> Poll<()> {
        let mut cx = Context::from_waker(waker);
        as_task(&self.tasks[task], || std::pin::Pin::new(lock).poll(&mut cx))
    }

    /// One that has been woken, or will be handed the lock.
    fn locks(&self, task: usize, lock: Locking<'_>) {
        as_task(&self.tasks[task], || block_on(lock));
        self.unlocks(task);
    }

    fn unlocks(&self, task: usize) {
        as_task(&self.tasks[task], || self.raw.unlock());
    }

    fn levels(&self) -> [u8; N] {
        std::array::from_fn(|task| self.tasks[task].level())
    }

    /// Nobody has the lock, nor what it inherited by it.
    fn assert_as_before(&self) {
        assert!(!self.raw.is_locked());
        assert_eq!(self.levels(), self.own);
        let entries = std::mem::take(&mut *self.ready.0.lock().unwrap());
        for task in self.tasks.iter().cloned().chain(entries) {
            assert!(matches!(task.run(), Ran::Finished | Ran::Stale));
        }
    }
}

/// Notes that it was woken.
#[derive(Default)]
struct Noted(std::sync::atomic::AtomicBool);

impl Wake for Noted {
    fn wake(self: std::sync::Arc<Self>) {
        self.0.store(true, std::sync::atomic::Ordering::Relaxed);
    }
}

#[test]
fn a_holder_inherits_while_it_is_waited_for_and_gives_back() {
    model(|| {
        let all = Tasks::new([2, 1]);
        let ours = all.clone();
        assert!(as_task(&all.tasks[0], || all.raw.try_lock()));
        let urgent = thread::spawn(move || ours.locks(1, Locking(&ours.raw, None)));
        all.unlocks(0);
        urgent.join().unwrap();
        all.assert_as_before();
    });
}

#[test]
fn a_newcomer_while_the_lock_is_offered_knows_an_overtaker_or_nobody() {
    model(|| {
        // The lock is offered to 0; 1, which is as urgent for another reason, overtakes, and 2 comes.
        let all = Tasks::new([0, 2, 1]);
        assert!(all.tasks[1].inherit(1, 0));
        assert!(all.raw.try_lock());
        let mut first = all.queued(0, Waker::noop());
        all.raw.unlock();
        let ours = all.clone();
        let overtakes = thread::spawn(move || {
            if as_task(&ours.tasks[1], || ours.raw.try_lock()) {
                ours.unlocks(1);
            }
        });
        let ours = all.clone();
        let comes = thread::spawn(move || ours.locks(2, Locking(&ours.raw, None)));
        overtakes.join().unwrap();
        if all.polls(0, &mut first, Waker::noop()).is_ready() {
            all.unlocks(0);
        } else {
            all.locks(0, first);
        }
        comes.join().unwrap();
        all.tasks[1].give_back(1);
        all.assert_as_before();
    });
}

#[test]
fn a_waiter_that_is_raised_while_the_lock_is_released_raises_the_next_holder() {
    for due in [false, true] {
        model(move || {
            // 0 has the lock; 1 and 2 wait, and 2 is raised.
            let all = Tasks::new([2, 2, 2]);
            assert!(as_task(&all.tasks[0], || all.raw.try_lock()));
            let noted = std::sync::Arc::new(Noted::default());
            let mut first = all.queued(1, Waker::noop());
            let mut second = all.queued(2, &Waker::from(noted.clone()));
            if due {
                // It is offered to 1, which finds it taken.
                all.unlocks(0);
                assert!(as_task(&all.tasks[0], || all.raw.try_lock()));
                assert!(all.polls(1, &mut first, Waker::noop()).is_pending());
            }
            let ours = all.clone();
            let raised = thread::spawn(move || {
                let _ = ours.tasks[2].inherit(1, 0);
                ours.tasks[2].inherited(0);
            });
            all.unlocks(0);
            raised.join().unwrap();
            assert_eq!((all.tasks[0].level(), all.tasks[2].level()), (2, 0));
            let has_been_woken = noted.0.load(std::sync::atomic::Ordering::Relaxed);
            assert!(has_been_woken || all.tasks[1].level() == 0, "2 waits for 1");
            if all.polls(2, &mut second, Waker::noop()).is_ready() {
                all.unlocks(2);
                all.locks(1, first);
            } else {
                all.locks(1, first);
                all.locks(2, second);
            }
            all.tasks[2].give_back(1);
            all.assert_as_before();
        });
    }
}

#[test]
fn a_waiter_that_leaves_while_it_is_offered_the_lock_keeps_nothing_that_it_inherited() {
    model(|| {
        // It is offered to 0; 1 waits, and is raised.
        let all = Tasks::new([2, 2]);
        assert!(all.raw.try_lock());
        let first = all.queued(0, Waker::noop());
        let second = all.queued(1, Waker::noop());
        all.raw.unlock();
        let ours = all.clone();
        let raised = thread::spawn(move || {
            let _ = ours.tasks[1].inherit(1, 0);
            ours.tasks[1].inherited(0);
        });
        as_task(&all.tasks[0], || drop(first));
        raised.join().unwrap();
        assert_eq!(all.levels(), [2, 0]);
        all.locks(1, second);
        all.tasks[1].give_back(1);
        all.assert_as_before();
    });
}
