//! What the task floor promises, each sentence a test, on a toy scheduler with one FIFO per level.

mod boost;
mod end;
mod handle;
mod life;
mod panic;

use super::*;
use crate::sys::primitives::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::{
    collections::VecDeque,
    future::{pending, poll_fn, ready},
    ops::Deref,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Mutex},
    task::{Wake, Waker},
};

/// Runs what is ready when told to, most urgent level first.
struct Toy {
    live: LiveTasks,
    queues: Mutex<[VecDeque<TaskRef>; 4]>,
    closed: AtomicBool,
    scheduled: AtomicUsize,
    released: AtomicUsize,
    panicked: AtomicUsize,
    unheard: AtomicUsize,
    raised: AtomicUsize,
}

impl Schedule for Toy {
    fn schedule(&self, task: TaskRef) {
        self.scheduled.fetch_add(1, SeqCst);
        if self.closed.load(SeqCst) {
            task.shut_down();
            return;
        }
        self.queues.lock().unwrap()[task.level() as usize].push_back(task);
    }

    fn promote(&self, task: TaskRef) {
        self.queues.lock().unwrap()[task.level() as usize].push_back(task);
    }

    fn raised(&self, _task: &TaskRef, _runner: Runner) {
        self.raised.fetch_add(1, SeqCst);
    }

    fn released(&self, task: &TaskRef) {
        self.live.remove(task);
        self.released.fetch_add(1, SeqCst);
    }

    fn panicked(&self, _task: &TaskRef) {
        self.panicked.fetch_add(1, SeqCst);
    }

    fn unheard(&self, _task: &TaskRef) {
        self.unheard.fetch_add(1, SeqCst);
    }
}

impl Toy {
    fn spawn<F>(self: &Arc<Self>, future: F) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send,
    {
        self.spawn_at(1, future)
    }

    fn spawn_at<F>(self: &Arc<Self>, level: u8, future: F) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send,
    {
        let (task, handle) = new(future, Arc::clone(self), level);
        assert!(self.live.insert(&task, level as usize));
        self.promote(task);
        handle
    }

    fn next(&self) -> Option<TaskRef> {
        self.queues
            .lock()
            .unwrap()
            .iter_mut()
            .find_map(VecDeque::pop_front)
    }

    fn step(&self) -> Option<Ran> {
        self.next().map(TaskRef::run)
    }

    fn run(&self) -> Vec<Ran> {
        std::iter::from_fn(|| self.step()).collect()
    }

    fn entries(&self) -> usize {
        self.queues.lock().unwrap().iter().map(VecDeque::len).sum()
    }

    fn released(&self) -> usize {
        self.released.load(SeqCst)
    }
}

/// A toy scheduler that ends its tasks when the test ends: entries and wakers would otherwise keep
/// each other alive.
struct Ground(Arc<Toy>);

impl Ground {
    fn new() -> Self {
        Ground(Arc::new(Toy {
            live: LiveTasks::new(2),
            queues: Mutex::default(),
            closed: AtomicBool::new(false),
            scheduled: AtomicUsize::new(0),
            released: AtomicUsize::new(0),
            panicked: AtomicUsize::new(0),
            unheard: AtomicUsize::new(0),
            raised: AtomicUsize::new(0),
        }))
    }
}

impl Deref for Ground {
    type Target = Arc<Toy>;

    fn deref(&self) -> &Arc<Toy> {
        &self.0
    }
}

impl Drop for Ground {
    fn drop(&mut self) {
        self.closed.store(true, SeqCst);
        for task in self.live.close() {
            task.shut_down();
        }
        let entries = std::mem::take(&mut *self.queues.lock().unwrap());
        drop(entries);
    }
}

/// Counts its drops, and panics in them if told to.
#[derive(Clone)]
struct Witness {
    drops: Arc<AtomicUsize>,
    panics: bool,
}

impl Witness {
    fn new() -> (Self, Arc<AtomicUsize>) {
        let drops = Arc::default();
        let witness = Witness {
            drops: Arc::clone(&drops),
            panics: false,
        };
        (witness, drops)
    }

    fn panicking() -> (Self, Arc<AtomicUsize>) {
        let (mut witness, drops) = Self::new();
        witness.panics = true;
        (witness, drops)
    }
}

impl Drop for Witness {
    fn drop(&mut self) {
        self.drops.fetch_add(1, SeqCst);
        if self.panics {
            panic!("from a drop");
        }
    }
}

/// A waker that notes its name when it is woken.
struct Bell {
    name: usize,
    rung: Arc<Mutex<Vec<usize>>>,
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.rung.lock().unwrap().push(self.name);
    }
}

fn bell(name: usize, rung: &Arc<Mutex<Vec<usize>>>) -> Waker {
    let rung = Arc::clone(rung);
    Waker::from(Arc::new(Bell { name, rung }))
}

fn poll<F: Future + Unpin>(future: &mut F, waker: &Waker) -> Poll<F::Output> {
    Pin::new(future).poll(&mut Context::from_waker(waker))
}

/// A future that keeps its waker here and ends when told to.
#[derive(Clone, Default)]
struct Gate(Arc<Mutex<(bool, Option<Waker>)>>);

impl Gate {
    async fn pass(self) {
        poll_fn(|cx| {
            let mut gate = self.0.lock().unwrap();
            gate.1 = Some(cx.waker().clone());
            if gate.0 {
                Poll::Ready(())
            } else {
                Poll::Pending
            }
        })
        .await;
    }

    fn waker(&self) -> Waker {
        self.0.lock().unwrap().1.clone().expect("polled once")
    }

    fn open(&self) {
        let waker = {
            let mut gate = self.0.lock().unwrap();
            gate.0 = true;
            gate.1.take()
        };
        waker.expect("polled once").wake();
    }

    fn close_and_forget(&self) {
        let waker = self.0.lock().unwrap().1.take();
        drop(waker);
    }
}

pub(super) async fn yield_once() {
    let mut yielded = false;
    poll_fn(|cx| {
        if std::mem::replace(&mut yielded, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

fn quiet<R>(f: impl FnOnce() -> R) -> std::thread::Result<R> {
    catch_unwind(AssertUnwindSafe(f))
}
