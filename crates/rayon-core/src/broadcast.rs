//! `broadcast`: a closure once for each index of a pool.

use crate::{handler, registry::Registry};
use std::{
    any::Any,
    fmt,
    marker::PhantomData,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    sync::{Arc, Mutex},
};
use urgency::embed::Countdown;

/// Tells a closure of [`broadcast`] which call this is.
pub struct BroadcastContext<'a> {
    index: usize,
    count: usize,
    /// Neither `Send` nor `Sync`, and no longer than the call.
    call: PhantomData<&'a mut dyn Fn()>,
}

impl BroadcastContext<'_> {
    pub(crate) fn new(index: usize, count: usize) -> Self {
        BroadcastContext {
            index,
            count,
            call: PhantomData,
        }
    }

    /// The index of the thread, from 0.
    #[inline]
    pub fn index(&self) -> usize {
        self.index
    }

    /// How many there are.
    #[inline]
    pub fn num_threads(&self) -> usize {
        self.count
    }
}

impl fmt::Debug for BroadcastContext<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BroadcastContext")
            .field("index", &self.index)
            .field("num_threads", &self.count)
            .finish()
    }
}

/// Why a call that waits for all threads panics in a handler, and what to do.
pub(crate) const IN_HANDLER: &str = "waits for all threads of the pool, and this one is in its start or exit handler: use \
                                     the free `spawn_broadcast` there";

/// Runs `op` once for each index of the current pool, each when the worker of that index is free next, and
/// returns the results by index.
///
/// Unless the threads are the program's, an index is a worker's, and one thread may run several of these calls: see
/// "What differs from rayon" of the crate.
///
/// # Panics
///
/// With the first panic of `op`, by index, after all calls have ended. In a start or exit handler of the
/// pool, whose threads would wait for each other there.
///
/// # Examples
///
/// ```
/// let pool = rayon_core::ThreadPoolBuilder::new().num_threads(3).build()?;
/// assert_eq!(pool.broadcast(|context| context.index()), [0, 1, 2]);
/// # Ok::<(), rayon_core::ThreadPoolBuildError>(())
/// ```
pub fn broadcast<OP, R>(op: OP) -> Vec<R>
where
    OP: Fn(BroadcastContext<'_>) -> R + Sync,
    R: Send,
{
    broadcast_in(&Registry::current(), op)
}

/// As [`broadcast`], without waiting. A panic goes to the pool's panic handler.
pub fn spawn_broadcast<OP>(op: OP)
where
    OP: Fn(BroadcastContext<'_>) + Send + Sync + 'static,
{
    spawn_broadcast_in(&Registry::current(), op);
}

pub(crate) fn broadcast_in<OP, R>(registry: &Registry, op: OP) -> Vec<R>
where
    OP: Fn(BroadcastContext<'_>) -> R + Sync,
    R: Send,
{
    type Slot<R> = Mutex<Option<Result<R, Box<dyn Any + Send>>>>;
    assert!(
        !handler::runs_for(&registry.host),
        "`broadcast` {IN_HANDLER}"
    );
    let count = registry.host.workers();
    let results: Vec<Slot<R>> = (0..count).map(|_| Mutex::new(None)).collect();
    let left = Countdown::new(count);
    let (op, results_of, left_of) = (&op, &results, &left);
    // SAFETY: the wait below returns when all calls have ended with their borrows.
    unsafe {
        registry.host.spawn_on_each_unchecked(|index| {
            move || {
                let call = || op(BroadcastContext::new(index, count));
                let result = catch_unwind(AssertUnwindSafe(call));
                *results_of[index]
                    .lock()
                    .expect("nothing panics under this lock") = Some(result);
                Countdown::one_ended(left_of);
            }
        });
    }
    left.wait();
    let results = results.into_iter().map(|slot| {
        let slot = slot.into_inner().expect("nothing panics under this lock");
        match slot.expect("all calls have ended") {
            Ok(result) => result,
            Err(panic) => resume_unwind(panic),
        }
    });
    results.collect()
}

pub(crate) fn spawn_broadcast_in<OP>(registry: &Arc<Registry>, op: OP)
where
    OP: Fn(BroadcastContext<'_>) + Send + Sync + 'static,
{
    let count = registry.host.workers();
    let op = Arc::new(op);
    registry.host.spawn_on_each(|index| {
        let op = op.clone();
        crate::spawn::guarded(registry.clone(), move || {
            op(BroadcastContext::new(index, count))
        })
    });
}
