//! Start and exit handlers: what they are told, and what the free functions mean inside.
//!
//! A handler runs on a thread that is not yet, or no longer, on a stack of the pool's runtime. As in rayon,
//! the free functions of this crate mean the pool there all the same. The handlers are made before the pool is, so they
//! share a [`Handled`], which learns of the pool before the pool's first thread is made. While a handler runs, the
//! [`Handled`] is a variable of the thread.
//!
//! In a handler, `join`, scopes and `install` run their closures right there: for each closure that went to the pool,
//! the pool might make a thread that calls the same handler first.

use crate::registry::{PanicHandler, Registry, hand_over};
use std::{
    cell::RefCell,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, OnceLock},
};
use urgency::embed::{Host, WeakHost};

/// A start or exit handler.
pub(crate) type Handler = dyn Fn(usize) + Send + Sync;

/// The pool whose handlers these are.
pub(crate) struct Handled {
    /// Weak, since the runtime owns the handlers.
    host: OnceLock<WeakHost>,
    panic_handler: Option<Arc<PanicHandler>>,
}

thread_local! {
    /// The handler that runs on this thread: its pool, and the index that it was told.
    static INSIDE: RefCell<Option<(Arc<Handled>, usize)>> = const { RefCell::new(None) };
}

/// Where the thread was before, restored even if the handler panics.
struct Before(Option<(Arc<Handled>, usize)>);

impl Drop for Before {
    fn drop(&mut self) {
        INSIDE.set(self.0.take());
    }
}

impl Handled {
    pub(crate) fn new(panic_handler: Option<Arc<PanicHandler>>) -> Arc<Self> {
        Arc::new(Handled {
            host: OnceLock::new(),
            panic_handler,
        })
    }

    /// The pool is made.
    pub(crate) fn is(&self, host: &Host) {
        let made = self.host.set(host.downgrade());
        debug_assert!(made.is_ok(), "handlers are of one pool");
    }

    /// Calls a handler; a panic of it goes to the panic handler.
    pub(crate) fn call(self: &Arc<Self>, handler: &Handler, index: usize) {
        let inside = (self.clone(), index);
        let call = || {
            let _before = Before(INSIDE.replace(Some(inside)));
            handler(index);
        };
        if let Err(panic) = catch_unwind(AssertUnwindSafe(call)) {
            hand_over(self.panic_handler.as_deref(), panic);
        }
    }

    fn host(&self) -> Option<Host> {
        self.host.get().and_then(WeakHost::upgrade)
    }
}

/// The registry of the pool whose handler runs on the calling thread. When the pool is gone, its runtime is
/// not yet.
pub(crate) fn registry() -> Option<Arc<Registry>> {
    inside(|pool, _| {
        let host = pool.host()?;
        let ended = |host| Registry::ended(host, pool.panic_handler.clone());
        Some(Registry::attached(&host).unwrap_or_else(|| ended(host)))
    })
    .flatten()
}

/// What `look` says of the pool whose handler runs on the calling thread, and of the index that the handler was told.
/// The destructors of a thread's locals run outside of all handlers, and may come later than this one's.
#[inline]
fn inside<R>(look: impl FnOnce(&Handled, usize) -> R) -> Option<R> {
    let inside = INSIDE.try_with(|inside| {
        let inside = inside.borrow();
        inside.as_ref().map(|(pool, index)| look(pool, *index))
    });
    inside.ok().flatten()
}

/// The index that the handler on the calling thread was told, if one runs there.
pub(crate) fn index() -> Option<usize> {
    inside(|_, index| index)
}

/// Whether a handler of the pool on this host runs on the calling thread, and not further code of a
/// runtime's.
#[inline]
pub(crate) fn runs_for(host: &Host) -> bool {
    let runs = inside(|pool, _| {
        let of = pool.host();
        of.is_some_and(|of| of.is_same_runtime(host)) && !host.is_here()
    });
    runs.unwrap_or(false)
}
