//! Scopes: spawned closures that may borrow, and a wait for all of them.
//!
//! A scope counts its closures, its own body included, in a [`Countdown`] that the thread which opened it
//! waits for. A closure is spawned on the scope's pool: on the deque of the calling stack if that belongs to
//! the pool, else into the pool from outside. In a scope that a handler of the pool opened they run at once.
//!
//! The fifo scope keeps the closures in a queue of its own and spawns *turns*: a turn runs the oldest closure
//! of the queue. So each turn runs one closure, and closures begin in the order in which they were spawned.

use crate::{
    broadcast::{BroadcastContext, IN_HANDLER},
    handler,
    registry::Registry,
};
use crossbeam_queue::SegQueue;
use std::{
    any::Any,
    fmt,
    marker::PhantomData,
    mem,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
};
use urgency::embed::{Countdown, Host};

/// What a spawned closure and the scope's body share.
struct Base<'scope> {
    /// Lives until the scope has ended.
    host: Outlives<Host>,
    /// Whether a handler of the pool opened the scope.
    in_handler: bool,
    left: Countdown,
    panicked: AtomicBool,
    panic: Mutex<Option<Box<dyn Any + Send>>>,
    /// Invariant over the lifetime of what the closures borrow.
    scope: PhantomData<fn(&'scope ()) -> &'scope ()>,
}

/// A scope, as [`scope()`] and [`in_place_scope`] hand it to their closures.
pub struct Scope<'scope> {
    base: Base<'scope>,
}

/// A scope whose closures begin in the order in which they were spawned; see [`scope_fifo`].
pub struct ScopeFifo<'scope> {
    base: Base<'scope>,
    queue: SegQueue<FifoBody<'scope>>,
}

type FifoBody<'scope> = Box<dyn FnOnce(&ScopeFifo<'scope>) + Send + 'scope>;

/// A pointer to something that outlives the closure that holds it.
struct Outlives<T>(*const T);

// SAFETY: it is used as a reference to something `Sync`.
unsafe impl<T: Sync> Send for Outlives<T> {}
// SAFETY: as above.
unsafe impl<T: Sync> Sync for Outlives<T> {}

impl<T> Clone for Outlives<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Outlives<T> {}

impl<T> Outlives<T> {
    fn of(target: &T) -> Self {
        Outlives(target)
    }

    /// # Safety
    /// The target lives.
    unsafe fn get<'a>(self) -> &'a T {
        // SAFETY: by the caller's promise.
        unsafe { &*self.0 }
    }
}

impl<'scope> Base<'scope> {
    fn new(host: &Host) -> Self {
        Base {
            host: Outlives::of(host),
            in_handler: handler::runs_for(host),
            left: Countdown::new(1),
            panicked: AtomicBool::new(false),
            panic: Mutex::new(None),
            scope: PhantomData,
        }
    }

    fn host(&self) -> &Host {
        // SAFETY: the code that opened the scope keeps the host for the time of that call, and the scope lives within
        // the call.
        unsafe { self.host.get() }
    }

    /// Runs a closure of the scope.
    ///
    /// # Safety
    /// What the closure borrows lives until the scope has ended. The scope counts the closure, so it waits for it.
    unsafe fn spawn(&self, job: impl FnOnce() + Send) {
        if self.in_handler {
            return job();
        }
        // SAFETY: the scope waits for the closure.
        unsafe { self.host().spawn_unchecked(job) };
    }

    /// Runs the scope's body, waits for all closures, and resumes the first panic.
    fn complete<R>(&self, body: impl FnOnce() -> R) -> R {
        let result = catch_unwind(AssertUnwindSafe(body));
        let result = result.map_err(|panic| self.keep(panic)).ok();
        // SAFETY: the scope counted one for its body.
        unsafe { Countdown::one_ended(&self.left) };
        self.left.wait();
        if self.panicked.load(Ordering::Acquire) {
            self.resume_panic();
        }
        result.expect("a body without a result has panicked")
    }

    fn resume_panic(&self) {
        let mut panic = self.panic.lock().expect("nothing panics under this lock");
        let first = panic.take();
        drop(panic);
        resume_unwind(first.expect("the fork that panicked has left it here"));
    }

    /// Keeps the first panic. It does not unwind: the scope has not waited for its closures yet.
    fn keep(&self, panic: Box<dyn Any + Send>) {
        let mut first = self.panic.lock().expect("nothing panics under this lock");
        if first.is_none() {
            *first = Some(panic);
            self.panicked.store(true, Ordering::Release);
            return;
        }
        drop(first);
        // The drop of what a panic carries is the program's code.
        if let Err(another) = catch_unwind(AssertUnwindSafe(|| drop(panic))) {
            mem::forget(another);
        }
    }

    /// Runs a closure that was counted.
    ///
    /// # Safety
    /// `this` is valid until the closure has ended, which this counts.
    unsafe fn run(this: *const Self, closure: impl FnOnce()) {
        // SAFETY: by the caller's promise.
        let base = unsafe { &*this };
        if let Err(panic) = catch_unwind(AssertUnwindSafe(closure)) {
            base.keep(panic);
        }
        // SAFETY: counted by the spawn; the last access.
        unsafe { Countdown::one_ended(&raw const (*this).left) };
    }
}

impl<'scope> Scope<'scope> {
    fn new(host: &Host) -> Self {
        Scope {
            base: Base::new(host),
        }
    }

    /// Spawns a closure that ends before the scope does. It may run on any thread of the scope's pool, and
    /// can spawn further ones. Its panic is resumed by the scope.
    pub fn spawn<BODY>(&self, body: BODY)
    where
        BODY: FnOnce(&Scope<'scope>) + Send + 'scope,
    {
        self.base.left.one_more();
        let this = Outlives::of(self);
        let job = move || {
            // SAFETY: the scope waits for this closure, which was counted.
            unsafe {
                let scope = this.get();
                Base::run(&raw const (*this.0).base, move || body(scope));
            }
        };
        // SAFETY: what the body borrows outlives the scope, which waits for the closure.
        unsafe { self.base.spawn(job) };
    }

    /// Runs a closure once for each index of the pool, on all workers.
    ///
    /// # Panics
    ///
    /// If the scope was opened in a start or exit handler of the pool: the threads would wait for each other there.
    pub fn spawn_broadcast<BODY>(&self, body: BODY)
    where
        BODY: Fn(&Scope<'scope>, BroadcastContext<'_>) + Send + Sync + 'scope,
    {
        // SAFETY: each closure runs once, while the scope waits for it.
        unsafe { broadcast(self, &self.base, body) }
    }
}

impl<'scope> ScopeFifo<'scope> {
    fn new(host: &Host) -> Self {
        ScopeFifo {
            base: Base::new(host),
            queue: SegQueue::new(),
        }
    }

    /// As [`Scope::spawn`]; the closures of this scope begin in the order in which they were spawned.
    pub fn spawn_fifo<BODY>(&self, body: BODY)
    where
        BODY: FnOnce(&ScopeFifo<'scope>) + Send + 'scope,
    {
        self.base.left.one_more();
        self.queue.push(Box::new(body));
        let this = Outlives::of(self);
        let turn = move || {
            // SAFETY: the scope waits for this closure, which was counted.
            unsafe {
                let scope = this.get();
                let body = scope.queue.pop().expect("a turn for each closure");
                Base::run(&raw const (*this.0).base, move || body(scope));
            }
        };
        // SAFETY: what the body borrows outlives the scope, which waits for the closure.
        unsafe { self.base.spawn(turn) };
    }

    /// As [`Scope::spawn_broadcast`].
    pub fn spawn_broadcast<BODY>(&self, body: BODY)
    where
        BODY: Fn(&ScopeFifo<'scope>, BroadcastContext<'_>) + Send + Sync + 'scope,
    {
        // SAFETY: each closure runs once, while the scope waits for it.
        unsafe { broadcast(self, &self.base, body) }
    }
}

/// Spawns `body` once for each worker of the scope's pool.
///
/// # Safety
/// `base` belongs to `scope`, which waits for every closure that `base` counts.
unsafe fn broadcast<'scope, S, BODY>(scope: &S, base: &Base<'scope>, body: BODY)
where
    S: Sync,
    BODY: Fn(&S, BroadcastContext<'_>) + Send + Sync + 'scope,
{
    assert!(!base.in_handler, "a scope's `spawn_broadcast` {IN_HANDLER}");
    let count = base.host().workers();
    let body = Arc::new(body);
    let (scope, counted) = (Outlives::of(scope), Outlives::of(base));
    let make = |index| {
        base.left.one_more();
        let body = body.clone();
        move || {
            // SAFETY: the scope waits for this closure, which was counted.
            unsafe {
                let scope = scope.get();
                // The body is dropped first: what it borrows may be gone once the closure is counted as ended.
                Base::run({ counted }.0, move || {
                    body(scope, BroadcastContext::new(index, count))
                });
            }
        }
    };
    // SAFETY: by the caller's promise.
    unsafe { base.host().spawn_on_each_unchecked(make) };
}

impl fmt::Debug for Base<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Base")
            .field("pool", self.host())
            .field("left", &self.left)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Scope<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Scope").field(&self.base).finish()
    }
}

impl fmt::Debug for ScopeFifo<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ScopeFifo").field(&self.base).finish()
    }
}

/// Opens a scope on the current pool: `op` and the closures that it spawns may borrow what outlives the call,
/// which returns when all have ended.
///
/// # Panics
///
/// With the first panic of `op` or of a closure, after all have ended.
///
/// # Examples
///
/// ```
/// let mut halves = [0; 2];
/// let (low, high) = halves.split_at_mut(1);
/// rayon_core::scope(|s| {
///     s.spawn(|_| low[0] = 6);
///     s.spawn(|_| high[0] = 7);
/// });
/// assert_eq!(halves, [6, 7]);
/// ```
pub fn scope<'scope, OP, R>(op: OP) -> R
where
    OP: FnOnce(&Scope<'scope>) -> R + Send,
    R: Send,
{
    on_current(move |host| in_scope(host, op))
}

/// As [`scope()`], with closures that begin in the order in which they were spawned.
///
/// # Panics
///
/// As [`scope()`].
pub fn scope_fifo<'scope, OP, R>(op: OP) -> R
where
    OP: FnOnce(&ScopeFifo<'scope>) -> R + Send,
    R: Send,
{
    on_current(move |host| in_scope_fifo(host, op))
}

/// As [`scope()`], but `op` runs on the calling thread, even if that is not one of the pool's.
///
/// # Panics
///
/// As [`scope()`].
pub fn in_place_scope<'scope, OP, R>(op: OP) -> R
where
    OP: FnOnce(&Scope<'scope>) -> R,
{
    in_scope(&Registry::current().host, op)
}

/// As [`in_place_scope`], with closures that begin in the order in which they were spawned.
///
/// # Panics
///
/// As [`scope()`].
pub fn in_place_scope_fifo<'scope, OP, R>(op: OP) -> R
where
    OP: FnOnce(&ScopeFifo<'scope>) -> R,
{
    in_scope_fifo(&Registry::current().host, op)
}

/// Runs `f` on a stack of the current pool.
fn on_current<R: Send>(f: impl FnOnce(&Host) -> R + Send) -> R {
    Host::with_current(|host| match host {
        Some(host) => f(host),
        None => {
            let registry = Registry::current();
            let host = &registry.host;
            registry.run(|_| f(host))
        }
    })
}

/// A scope of `host`, opened by the calling thread.
pub(crate) fn in_scope<'scope, R>(host: &Host, op: impl FnOnce(&Scope<'scope>) -> R) -> R {
    let scope = Scope::new(host);
    scope.base.complete(|| op(&scope))
}

/// As [`in_scope`], fifo.
pub(crate) fn in_scope_fifo<'scope, R>(host: &Host, op: impl FnOnce(&ScopeFifo<'scope>) -> R) -> R {
    let scope = ScopeFifo::new(host);
    scope.base.complete(|| op(&scope))
}
