//! Threads, random wake-ups, cancellations, raises, drops and panics; then the account must be even.
//!
//! A pool of real threads serves one queue. The tasks of a round are drawn at random from a list of
//! habits; other threads torment them through their handles and wakers. Whatever the interleaving,
//! afterwards: spawned = finished + cancelled + panicked, every future was dropped once, every output
//! was dropped once, every waiter got an answer, and no cell is left.

use super::{tests::yield_once, *};
use crate::sys::primitives::atomic::{
    AtomicBool, AtomicUsize,
    Ordering::{Relaxed, SeqCst},
};
use std::{
    collections::VecDeque,
    future::{pending, poll_fn},
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Condvar, Mutex},
    task::Waker,
};

const TASKS: usize = if cfg!(miri) { 40 } else { 20_000 };
const WORKERS: usize = 2;

/// A queue with threads.
struct Pool {
    queue: Mutex<VecDeque<TaskRef>>,
    filled: Condvar,
    closed: AtomicBool,
    live: LiveTasks,
    released: AtomicUsize,
    panicked: AtomicUsize,
    cancelled: AtomicUsize,
    finished: AtomicUsize,
    stale: AtomicUsize,
}

impl Schedule for Pool {
    fn schedule(&self, task: TaskRef) {
        self.queue.lock().unwrap().push_back(task);
        self.filled.notify_one();
    }

    fn promote(&self, task: TaskRef) {
        self.queue.lock().unwrap().push_front(task);
        self.filled.notify_one();
    }

    fn released(&self, task: &TaskRef) {
        assert!(self.live.remove(task));
        self.released.fetch_add(1, SeqCst);
    }

    fn panicked(&self, _task: &TaskRef) {
        self.panicked.fetch_add(1, SeqCst);
    }
}

impl Pool {
    fn new() -> Arc<Self> {
        Arc::new(Pool {
            queue: Mutex::default(),
            filled: Condvar::new(),
            closed: AtomicBool::new(false),
            live: LiveTasks::new(WORKERS),
            released: AtomicUsize::new(0),
            panicked: AtomicUsize::new(0),
            cancelled: AtomicUsize::new(0),
            finished: AtomicUsize::new(0),
            stale: AtomicUsize::new(0),
        })
    }

    /// The workers end when the queue is empty.
    fn close(&self) {
        self.closed.store(true, SeqCst);
        // A worker that has just looked at `closed` holds the lock until it waits.
        drop(self.queue.lock().unwrap());
        self.filled.notify_all();
    }

    fn spawn<F>(self: &Arc<Self>, level: u8, future: F) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send,
    {
        let (task, handle) = new(future, Arc::clone(self), level);
        assert!(self.live.insert(&task, level as usize));
        self.schedule(task);
        handle
    }

    fn serve(&self) {
        loop {
            let task = {
                let mut queue = self.queue.lock().unwrap();
                loop {
                    if let Some(task) = queue.pop_front() {
                        break task;
                    }
                    if self.closed.load(SeqCst) {
                        return;
                    }
                    queue = self.filled.wait(queue).unwrap();
                }
            };
            let counter = match task.run() {
                Ran::Finished => &self.finished,
                Ran::Cancelled => &self.cancelled,
                Ran::Stale => &self.stale,
                Ran::Suspended | Ran::Rescheduled => continue,
            };
            counter.fetch_add(1, SeqCst);
        }
    }
}

/// The next number of a small generator (xorshift).
fn draw(seed: &mut u64, below: u64) -> u64 {
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    *seed % below
}

/// Counts drops; one in each future and one in each output.
struct Counted(Arc<AtomicUsize>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_add(1, SeqCst);
    }
}

/// Wakers that anybody may use, at any time, any number of times.
type Wakers = Arc<Mutex<Vec<Waker>>>;

async fn suspend_once(wakers: Wakers) {
    let mut suspended = false;
    poll_fn(|cx| {
        if std::mem::replace(&mut suspended, true) {
            return Poll::Ready(());
        }
        wakers.lock().unwrap().push(cx.waker().clone());
        Poll::Pending
    })
    .await;
}

fn torment(wakers: &Wakers, stop: &AtomicBool, mut seed: u64) {
    while !stop.load(Relaxed) {
        let waker = {
            let mut wakers = wakers.lock().unwrap();
            let count = wakers.len() as u64;
            match count {
                0 => None,
                _ if draw(&mut seed, 4) == 0 => {
                    Some(wakers[draw(&mut seed, count) as usize].clone())
                }
                _ => Some(wakers.swap_remove(draw(&mut seed, count) as usize)),
            }
        };
        match waker {
            Some(waker) if draw(&mut seed, 2) == 0 => waker.wake(),
            Some(waker) => {
                waker.wake_by_ref();
                drop(waker);
            }
            None => std::thread::yield_now(),
        }
    }
}

fn round(seed: u64) {
    let pool = Pool::new();
    let wakers = Wakers::default();
    let (futures, outputs, made) =
        <(Arc<AtomicUsize>, Arc<AtomicUsize>, Arc<AtomicUsize>)>::default();
    let stop = AtomicBool::new(false);
    let answers = AtomicUsize::new(0);
    let mut asked = 0;
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..WORKERS).map(|_| scope.spawn(|| pool.serve())).collect();
        for number in 0..2 {
            let (wakers, stop) = (&wakers, &stop);
            scope.spawn(move || torment(wakers, stop, seed ^ (77 + number)));
        }
        let mut draws = seed;
        let mut waiters = Vec::new();
        for _ in 0..TASKS {
            let habit = draw(&mut draws, 16);
            let (in_future, in_output) = (Counted(futures.clone()), Counted(outputs.clone()));
            let (mine, made) = (wakers.clone(), made.clone());
            let body = async move {
                let _in_future = in_future;
                match habit {
                    0..4 => suspend_once(mine).await,
                    4..7 => yield_once().await,
                    7 => panic!("one of many"),
                    8 => {
                        suspend_once(mine.clone()).await;
                        yield_once().await;
                        suspend_once(mine).await;
                    }
                    _ => {}
                }
                made.fetch_add(1, SeqCst);
                in_output
            };
            let handle = pool.spawn(3, body);
            match draw(&mut draws, 8) {
                0 => handle.detach(),
                1 => {
                    handle.abort();
                    waiters.push(handle);
                }
                2 => {
                    handle.task().boost(draw(&mut draws, 3) as u8);
                    waiters.push(handle);
                }
                // A task that waits for the task; its own output is the answer.
                3 => {
                    asked += 1;
                    let answers = &answers;
                    let (sender, receiver) = std::sync::mpsc::channel();
                    pool.spawn(2, async move {
                        let output = handle.await;
                        drop(output);
                        sender.send(()).expect("the test waits");
                    })
                    .detach();
                    scope.spawn(move || {
                        // An error: the awaited panic went through the waiter.
                        let _ = receiver.recv();
                        answers.fetch_add(1, SeqCst);
                    });
                    if asked % 64 == 63 {
                        std::thread::yield_now();
                    }
                }
                _ => waiters.push(handle),
            }
            if draw(&mut draws, 32) == 0 && !waiters.is_empty() {
                let place = draw(&mut draws, waiters.len() as u64) as usize;
                asked += 1;
                let handle = waiters.swap_remove(place);
                let _ = catch_unwind(AssertUnwindSafe(|| handle.get()));
                answers.fetch_add(1, SeqCst);
            }
        }
        for handle in waiters {
            let _ = catch_unwind(AssertUnwindSafe(|| handle.get()));
        }
        while pool.live.len() > 0 {
            std::thread::yield_now();
        }
        stop.store(true, SeqCst);
        pool.close();
        workers
            .into_iter()
            .for_each(|worker| worker.join().unwrap());
    });
    wakers.lock().unwrap().clear();
    let count = |counter: &AtomicUsize| counter.load(SeqCst);
    let spawned = pool.live.entered() as usize;
    assert_eq!(spawned, count(&pool.released));
    assert_eq!(spawned, count(&pool.finished) + count(&pool.cancelled));
    assert!(count(&pool.panicked) <= count(&pool.finished));
    assert_eq!(count(&futures), TASKS, "each future was dropped once");
    assert_eq!(
        count(&outputs),
        TASKS,
        "each output was dropped once, made or not"
    );
    assert!(count(&made) <= TASKS);
    assert_eq!(count(&answers), asked);
    assert_eq!(Arc::strong_count(&pool), 1, "no cell is left");
}

#[test]
fn the_account_is_even_after_random_wake_ups_cancellations_drops_and_panics() {
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    let rounds = if cfg!(miri) { 1 } else { 5 };
    let result = catch_unwind(|| (1..=rounds).for_each(|seed| round(seed * 0x9E37_79B9)));
    std::panic::set_hook(hook);
    result.unwrap();
}

#[test]
fn shutting_down_in_the_middle_leaves_nothing_and_answers_everybody() {
    let pool = Pool::new();
    let wakers = Wakers::default();
    let futures = Arc::new(AtomicUsize::new(0));
    let mut seized = 0;
    std::thread::scope(|scope| {
        let handles: Vec<_> = (0..TASKS)
            .map(|number| {
                let (guard, wakers) = (Counted(futures.clone()), wakers.clone());
                pool.spawn(1, async move {
                    let _guard = guard;
                    match number % 3 {
                        0 => suspend_once(wakers).await,
                        1 => yield_once().await,
                        _ => pending().await,
                    }
                })
            })
            .collect();
        let workers: Vec<_> = (0..WORKERS).map(|_| scope.spawn(|| pool.serve())).collect();
        let waker = scope.spawn(|| {
            for _ in 0..TASKS {
                if let Some(waker) = wakers.lock().unwrap().pop() {
                    waker.wake();
                }
            }
        });
        std::thread::yield_now();
        seized = pool
            .live
            .close()
            .into_iter()
            .filter(|task| task.clone().shut_down())
            .count();
        let mut ended = [0, 0];
        for handle in handles {
            match handle.get() {
                Ok(()) => ended[0] += 1,
                Err(error) => {
                    assert_eq!(error.kind(), JoinErrorKind::ShutDown);
                    ended[1] += 1;
                }
            }
        }
        waker.join().unwrap();
        pool.close();
        workers
            .into_iter()
            .for_each(|worker| worker.join().unwrap());
        assert_eq!(ended[0], pool.finished.load(SeqCst));
        assert_eq!(ended[1], pool.cancelled.load(SeqCst) + seized);
    });
    wakers.lock().unwrap().clear();
    assert_eq!(pool.released.load(SeqCst), TASKS);
    assert_eq!(futures.load(SeqCst), TASKS);
    assert_eq!(Arc::strong_count(&pool), 1, "no cell is left");
}
