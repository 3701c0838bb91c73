//! `TokioDriver`: a way in for crates that ask for a Tokio runtime.
//!
//! **Every call into such a crate goes through the driver, not only the first.** A pooled client (`reqwest`, `sqlx`,
//! `redis`) opens connections inside the driver. A later call *outside* of it works as long as it finds an open
//! connection in the pool, and panics ("there is no reactor running") on the day when the pool is empty. No test of a
//! warm pool finds that. So do not keep the client itself; let [`TokioDriver::keep`] keep it, and then there is no
//! other way to call it:
//!
//! ```
//! use std::time::Duration;
//! use urgency_web::tokio_driver::TokioDriver;
//!
//! // Stands for a `reqwest::Client`.
//! struct Client;
//!
//! impl Client {
//!     async fn get(&self, url: &str) -> usize {
//!         tokio::time::sleep(Duration::from_millis(1)).await; // panics outside of the driver
//!         url.len()
//!     }
//! }
//!
//! let client = TokioDriver::global().keep(|| Client);
//! let task = urgency::spawn(async move {
//!     client.call(async |client| client.get("http://example.org").await).await
//! });
//! assert_eq!(task.get()?, 18);
//! # Ok::<(), urgency::JoinError>(())
//! ```
//!
//! `reqwest`, `sqlx`, `redis`, `async-nats` and others do not only use Tokio's traits: they open Tokio's
//! sockets, set Tokio's timers and call `tokio::spawn`. For that there has to be a Tokio runtime in the
//! thread's context whenever their code is polled. A driver has one, of Tokio's single-threaded kind, on one
//! thread of its own; [`TokioDriver::run`] wraps a future so that each poll of it, and its drop, happen
//! inside that context. The *future* stays a task of Urgency. Tokio only tells its waker when something is
//! ready.
//!
//! # What has levels and what has not
//!
//! | what | where it runs | level |
//! | --- | --- | --- |
//! | the wrapped future, and all that it awaits in the same task | a worker of Urgency | its task's |
//! | readiness of Tokio's sockets, Tokio's timers | the driver's thread, for microseconds each | none |
//! | `tokio::spawn` inside the crate | the driver's thread | **none** |
//! | `tokio::task::spawn_blocking` inside the crate | threads of Tokio's blocking pool | **none** |
//!
//! The last two bypass the levels: nothing makes them wait for more urgent work, relief does not know them,
//! and `Runtime::stats` does not count them. The driver's thread competes with the workers for the CPUs as
//! any thread of the process does, under the kernel's time sharing. Clients of databases typically spawn one
//! task for each connection, which moves bytes; that is harmless. A crate that *computes* in `tokio::spawn`
//! delays every other user of the driver meanwhile, and takes a CPU from urgent work. Give such a crate a
//! driver of its own, or call it elsewhere.
//!
//! `tokio::task::block_in_place` panics on a single-threaded runtime, as Tokio documents. So does
//! `Handle::block_on` inside a task; use [`urgency::block_on`].
//!
//! # Why a thread, and not a worker
//!
//! A worker that ran Tokio's loop would sit in Tokio's `epoll_wait` and be lost to the others, or be relieved
//! each time. Tokio tells of its parking by callbacks (`on_thread_park`), but Urgency gives a worker away for
//! the duration of a call only, so that no thread can keep one by mistake.
//!
//! # How far the context goes
//!
//! Tokio's context is a thread-local that is set during a poll. An Urgency stack does not move between threads, and
//! while it waits it runs nothing but what it waits for and what that has forked. So no work of strangers sees the
//! context. But not all that the poll starts is inside, and more than the future may be:
//!
//! - A half of a [`join`](urgency::join), or another fork, that another worker has taken is *outside*. So what asks for
//!   Tokio's runtime comes before the fork, or goes through [`TokioDriver::run`] there.
//! - A task for which the future waits by `get`, on this stack, may run there, *inside*; at other times it runs
//!   elsewhere. That it works there shows nothing: if it calls such a crate, it goes through the driver itself. A task
//!   that is awaited is always outside.

use pin_project_lite::pin_project;
use std::{
    fmt,
    future::{Future, IntoFuture},
    io,
    pin::Pin,
    sync::OnceLock,
    task::{Context, Poll},
    thread::{self, JoinHandle},
};
use tokio::runtime::{Builder, Handle};
use urgency::sync::oneshot;

/// A Tokio reactor, timer and single-threaded executor for crates that need one. See the [module's text](self).
///
/// ```
/// use std::time::Duration;
/// use urgency_web::tokio_driver::TokioDriver;
///
/// let driver = TokioDriver::start()?;
/// let slept = urgency::spawn(driver.run(async {
///     tokio::time::sleep(Duration::from_millis(1)).await; // Tokio's timer, in a task of Urgency
///     42
/// }));
/// assert_eq!(slept.get()?, 42);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// Dropping a driver ends its thread and waits for that; the tasks that were spawned with `tokio::spawn` are
/// dropped there. Closures of `spawn_blocking` that have begun go on, and are not waited for. Wrapped futures
/// that still live then get errors from Tokio's I/O, and Tokio's timers panic when they are polled: drop or
/// finish them first.
pub struct TokioDriver {
    handle: Handle,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl TokioDriver {
    /// Starts a driver and its thread, `urgency-tokio`.
    ///
    /// # Errors
    ///
    /// If the process cannot have another descriptor or thread.
    pub fn start() -> io::Result<TokioDriver> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        let (stop, stopped) = oneshot::channel();
        let body = move || {
            // Either way it is over: told so, or the driver is gone.
            let _ = runtime.block_on(stopped);
            // A plain drop waits for the blocking pool, and a closure there may be what drops the driver.
            runtime.shutdown_background();
        };
        let thread = thread::Builder::new()
            .name("urgency-tokio".into())
            .spawn(body)?;
        Ok(TokioDriver {
            handle,
            stop: Some(stop),
            thread: Some(thread),
        })
    }

    /// The process's own driver, which starts here if nothing used it yet and never ends.
    ///
    /// # Panics
    ///
    /// If it cannot be started; [`TokioDriver::start`] says when.
    pub fn global() -> &'static TokioDriver {
        static GLOBAL: OnceLock<TokioDriver> = OnceLock::new();
        GLOBAL.get_or_init(|| {
            TokioDriver::start().unwrap_or_else(|error| {
                panic!("the process's Tokio driver cannot be started: {error}")
            })
        })
    }

    /// Polls `future` in Tokio's context, wherever it is awaited or spawned.
    ///
    /// # Cancellation
    ///
    /// Dropping it drops `future`, in the context too.
    pub fn run<F: IntoFuture>(&self, future: F) -> InTokio<F::IntoFuture> {
        InTokio {
            handle: self.handle.clone(),
            future: Some(self.enter(|| future.into_future())),
        }
    }

    /// Makes something in Tokio's context and keeps it there: each later use goes through [`Kept::call`], which is
    /// inside the context as well. For clients with a pool of connections; see the [module's text](self).
    pub fn keep<T>(&self, make: impl FnOnce() -> T) -> Kept<T> {
        Kept {
            handle: self.handle.clone(),
            value: Some(self.enter(make)),
        }
    }

    /// Calls `f` in Tokio's context: for what is not async and still asks for a runtime, such as constructors.
    ///
    /// ```
    /// use urgency_web::tokio_driver::TokioDriver;
    ///
    /// let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
    /// listener.set_nonblocking(true)?;
    /// let listener = TokioDriver::global().enter(|| tokio::net::TcpListener::from_std(listener))?;
    /// # drop(listener);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn enter<R>(&self, f: impl FnOnce() -> R) -> R {
        let _context = self.handle.enter();
        f()
    }
}

impl Drop for TokioDriver {
    fn drop(&mut self) {
        drop(self.stop.take());
        let Some(thread) = self.thread.take() else {
            return;
        };
        // A task of the driver itself may own it; that one cannot wait for itself.
        if thread.thread().id() != thread::current().id() {
            // A panic of the driver's thread was reported when it happened.
            let _ = urgency::blocking(|| thread.join());
        }
    }
}

impl fmt::Debug for TokioDriver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TokioDriver").finish_non_exhaustive()
    }
}

/// Something that is used, and dropped, in the context of a [`TokioDriver`] only; made by [`TokioDriver::keep`].
///
/// A clone keeps a clone: clients are handles of their pool.
pub struct Kept<T> {
    handle: Handle,
    /// `None` in `drop` only.
    value: Option<T>,
}

impl<T> Kept<T> {
    fn value(&self) -> &T {
        self.value
            .as_ref()
            .expect("the value is there until the drop")
    }

    /// Polls the future that `body` makes of the value in Tokio's context.
    ///
    /// # Cancellation
    ///
    /// Dropping the returned future drops the future that `body` made, in Tokio's context too.
    pub async fn call<R>(&self, body: impl AsyncFnOnce(&T) -> R) -> R {
        let handle = self.handle.clone();
        // A closure that is not async does its work here.
        let future = {
            let _context = handle.enter();
            Some(body(self.value()))
        };
        InTokio { handle, future }.await
    }
}

impl<T: Clone> Clone for Kept<T> {
    fn clone(&self) -> Self {
        let _context = self.handle.enter();
        Kept {
            handle: self.handle.clone(),
            value: self.value.clone(),
        }
    }
}

impl<T> Drop for Kept<T> {
    fn drop(&mut self) {
        let _context = self.handle.enter();
        drop(self.value.take());
    }
}

impl<T> fmt::Debug for Kept<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kept").finish_non_exhaustive()
    }
}

pin_project! {
    /// A future that is polled in Tokio's context: see [`TokioDriver::run`].
    #[must_use = "futures do nothing unless awaited"]
    pub struct InTokio<F> {
        handle: Handle,
        // `None` in `drop` only.
        #[pin]
        future: Option<F>,
    }

    impl<F> PinnedDrop for InTokio<F> {
        fn drop(this: Pin<&mut Self>) {
            let mut this = this.project();
            let _context = this.handle.enter();
            this.future.set(None);
        }
    }
}

impl<F: Future> Future for InTokio<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        let _context = this.handle.enter();
        let future = this.future.as_pin_mut();
        future.expect("the future is there until the drop").poll(cx)
    }
}

impl<F: fmt::Debug> fmt::Debug for InTokio<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InTokio")
            .field("future", &self.future)
            .finish_non_exhaustive()
    }
}
