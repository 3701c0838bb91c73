//! `spawn` and `spawn_fifo`: closures that have no waiter.
//!
//! A spawned closure holds its registry, so a pool lives until all that was spawned on it has run.
//!
//! The fifo order is per thread, as in rayon: each thread has a queue for each runtime and level that it spawns on, and
//! spawns *turns*, each of which runs the oldest closure of that queue. (A thread usually belongs to one runtime, but
//! an external thread may enter several, one after the other.) There is a turn for each closure in a queue, so nothing
//! refers to an empty queue.

use crate::registry::Registry;
use crossbeam_queue::SegQueue;
use std::{cell::RefCell, sync::Arc};
use urgency::embed::Host;

type Queue = Arc<SegQueue<Box<dyn FnOnce() + Send>>>;

thread_local! {
    /// The queues of this thread.
    static QUEUES: RefCell<Vec<(Host, Queue)>> = const { RefCell::new(Vec::new()) };
}

/// Runs a closure on the current pool, some time; nobody waits for it.
///
/// Its panic goes to the pool's panic handler.
///
/// # Examples
///
/// ```
/// let (sender, receiver) = std::sync::mpsc::channel();
/// rayon_core::spawn(move || sender.send(42).unwrap());
/// assert_eq!(receiver.recv(), Ok(42));
/// ```
pub fn spawn<F>(func: F)
where
    F: FnOnce() + Send + 'static,
{
    spawn_in(Registry::current(), func);
}

/// As [`spawn`]; what one thread spawns begins in the order in which it was spawned, unless it is stolen.
pub fn spawn_fifo<F>(func: F)
where
    F: FnOnce() + Send + 'static,
{
    spawn_fifo_in(Registry::current(), func);
}

pub(crate) fn spawn_in(registry: Arc<Registry>, func: impl FnOnce() + Send + 'static) {
    let host = registry.host.clone();
    host.spawn(guarded(registry, func));
}

pub(crate) fn spawn_fifo_in(registry: Arc<Registry>, func: impl FnOnce() + Send + 'static) {
    let host = registry.host.clone();
    let func = guarded(registry, func);
    if !host.is_at_home() {
        host.spawn(func);
        return;
    }
    let queue = queue_of(&host);
    queue.push(Box::new(func));
    host.spawn(move || {
        let oldest = queue.pop().expect("a turn for each closure");
        oldest();
    });
}

fn queue_of(host: &Host) -> Queue {
    let queue = QUEUES.try_with(|queues| {
        let mut queues = queues.borrow_mut();
        let is_its = |of: &Host| of.is_same_runtime(host) && of.level() == host.level();
        // An entry keeps the memory of its runtime. What goes with that is the program's, and may come here again: it
        // goes when the list is no longer borrowed.
        let stale = |(of, queue): &mut (Host, Queue)| !is_its(of) && queue.is_empty();
        let stale: Vec<_> = queues.extract_if(.., stale).collect();
        if let Some((_, queue)) = queues.iter().find(|(of, _)| is_its(of)) {
            return (queue.clone(), stale);
        }
        let queue = Queue::default();
        queues.push((host.clone(), queue.clone()));
        (queue, stale)
    });
    // A destructor of another local of the thread, which ends: it has no order to keep but its own.
    queue.map_or_else(|_| Queue::default(), |(queue, _stale)| queue)
}

/// `func` with its panic handled, and the registry kept until it has ended.
pub(crate) fn guarded(
    registry: Arc<Registry>,
    func: impl FnOnce() + Send + 'static,
) -> impl FnOnce() + Send + 'static {
    move || registry.guard(func)
}
