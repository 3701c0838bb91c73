//! A registry: the host of a pool, and what the pool's builder said.
//!
//! The [`ThreadPool`](crate::ThreadPool) holds the registry, and so does every closure spawned without a scope: they
//! need the pool to live. When the last of them is gone, the pool's runtime ends, and with it the runtime's threads.
//!
//! A pool may also be *placed* ([`urgency::place_pools`](crate::urgency::place_pools)): it is a level of the
//! program's runtime for calls from outside, and calls from that runtime's own code stay at the level of that
//! code.
//!
//! The registry of the calling code is the one that [`Registry::new`] attached to its runtime. A runtime that belongs
//! to the program, not to a pool, has none; there a registry is made for the moment, without a panic handler. So a pool
//! with a panic handler is not placed. In a start or exit handler, the registry is the one of the handler's pool
//! (`handler.rs`).

use crate::{
    builder::RuntimeParts,
    error::{ErrorKind, ThreadPoolBuildError},
    handler,
};
use std::{
    any::Any,
    io,
    panic::{AssertUnwindSafe, catch_unwind},
    process::abort,
    sync::{Arc, Mutex, OnceLock, PoisonError, Weak},
};
use urgency::{Runtime, embed::Host};

pub(crate) type PanicHandler = dyn Fn(Box<dyn Any + Send>) + Send + Sync;

/// See the module's text.
pub(crate) struct Registry {
    pub(crate) host: Host,
    panic_handler: Option<Arc<PanicHandler>>,
    /// Whether calls of code on the host's runtime stay at the level of that code.
    follows: bool,
    /// `None` if the runtime is the program's.
    _runtime: Option<Runtime>,
}

static GLOBAL: OnceLock<Arc<Registry>> = OnceLock::new();

/// Where pools are placed that are built from now on.
static PLACE: Mutex<Option<Host>> = Mutex::new(None);

impl Registry {
    /// Builds a pool's runtime.
    pub(crate) fn new(parts: RuntimeParts) -> Result<Arc<Registry>, ThreadPoolBuildError> {
        let runtime = parts.builder.build().map_err(io::Error::other)?;
        let host = Host::of(&runtime);
        let registry = Arc::new(Registry {
            host,
            panic_handler: parts.panic_handler,
            follows: false,
            _runtime: Some(runtime),
        });
        let attached: Weak<Registry> = Arc::downgrade(&registry);
        registry.host.attach(attached);
        parts.handled.is(&registry.host);
        Ok(registry)
    }

    /// A runtime, or a level of it, that is not the pool's own.
    pub(crate) fn of_host(host: Host) -> Arc<Registry> {
        Registry::ended(host, None)
    }

    /// A pool that was dropped, as its last threads see it.
    pub(crate) fn ended(host: Host, panic_handler: Option<Arc<PanicHandler>>) -> Arc<Registry> {
        Arc::new(Registry {
            host,
            panic_handler,
            follows: false,
            _runtime: None,
        })
    }

    /// A placed pool.
    pub(crate) fn placed(host: Host) -> Arc<Registry> {
        Arc::new(Registry {
            host,
            panic_handler: None,
            follows: true,
            _runtime: None,
        })
    }

    /// Where a pool of so many workers is placed, if pools are. One of fewer than the runtime has is not: it
    /// may be there to bound something.
    pub(crate) fn place_for(workers: usize) -> Option<Host> {
        let place = PLACE.lock().unwrap_or_else(PoisonError::into_inner);
        place.clone().filter(|host| host.workers() <= workers)
    }

    /// Pools are placed here from now on.
    pub(crate) fn set_place(host: Host) {
        *PLACE.lock().unwrap_or_else(PoisonError::into_inner) = Some(host);
    }

    /// Calls `f` with the registry that a call of the calling code means: this one, or, if it follows its callers, the
    /// one for the caller's level.
    pub(crate) fn with_here<R>(self: &Arc<Self>, f: impl FnOnce(&Arc<Registry>) -> R) -> R {
        if !self.follows || self.host.is_at_home() {
            return f(self);
        }
        // In `blocking` the calling thread is a plain one, and the code around it has a level.
        match Host::current() {
            Some(host) if host.is_same_runtime(&self.host) => f(&Registry::placed(host)),
            _ => f(self),
        }
    }

    /// Runs `f` on a stack of the host, where it may be already; then `f` is told `false`. Inside a handler
    /// of the pool that is on its thread.
    pub(crate) fn run<R: Send>(&self, f: impl FnOnce(bool) -> R + Send) -> R {
        if handler::runs_for(&self.host) {
            return f(false);
        }
        self.host.run(f)
    }

    /// The global registry, which is made here if nothing made it before.
    pub(crate) fn global() -> &'static Arc<Registry> {
        GLOBAL.get_or_init(|| {
            let workers = crate::builder::default_num_threads();
            if let Some(host) = Registry::place_for(workers) {
                return Registry::placed(host);
            }
            let builder = Runtime::builder().workers(workers);
            // If the program has made it already, it has decided the number of workers.
            let runtime = builder.build_global().unwrap_or_else(|_| Runtime::global());
            Registry::of_host(Host::of(runtime))
        })
    }

    /// Makes this the global registry.
    pub(crate) fn make_global(
        make: impl FnOnce() -> Result<Arc<Registry>, ThreadPoolBuildError>,
    ) -> Result<(), ThreadPoolBuildError> {
        let mut error = Some(ErrorKind::GlobalExists.into());
        if GLOBAL.get().is_none() {
            let made = make()?;
            GLOBAL.get_or_init(|| {
                error = None;
                made
            });
        }
        error.map_or(Ok(()), Err)
    }

    /// The registry of the calling code, else the global one.
    pub(crate) fn current() -> Arc<Registry> {
        match Host::current() {
            Some(host) => Registry::attached(&host).unwrap_or_else(|| Registry::of_host(host)),
            None => handler::registry().unwrap_or_else(|| Registry::global().clone()),
        }
    }

    /// The registry that the host's runtime was given, while its pool lives.
    pub(crate) fn attached(host: &Host) -> Option<Arc<Registry>> {
        let attached = host.attachment()?;
        attached.downcast::<Registry>().ok()
    }

    /// Runs `f`; a panic goes to the handler. Without one, or if that panics, too, the process aborts.
    pub(crate) fn guard(&self, f: impl FnOnce()) {
        if let Err(panic) = catch_unwind(AssertUnwindSafe(f)) {
            hand_over(self.panic_handler.as_deref(), panic);
        }
    }
}

/// Tells the handler of a panic that nobody waits for.
pub(crate) fn hand_over(handler: Option<&PanicHandler>, panic: Box<dyn Any + Send>) {
    let told = handler.map(|handler| catch_unwind(AssertUnwindSafe(|| handler(panic))));
    if !matches!(told, Some(Ok(()))) {
        eprintln!(
            "rayon-core on Urgency: a spawned closure panicked and no panic handler took it; aborting"
        );
        abort();
    }
}
