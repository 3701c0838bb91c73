//! Signals of the system as futures: ctrl-c, SIGTERM and the rest.
//!
//! The names are Tokio's: [`ctrl_c`], and [`unix::signal`] with [`unix::SignalKind`].
//!
//! ```no_run
//! use std::time::Duration;
//! use urgency::{Runtime, Shutdown, future, signal::{ctrl_c, unix::{SignalKind, signal}}};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let runtime = Runtime::builder().build()?;
//! // Before anything is served: from here on SIGTERM no longer ends the process.
//! let mut terminate = signal(SignalKind::terminate())?;
//! runtime.spawn(async { /* the service */ }).detach();
//! urgency::block_on(async {
//!     future::race(async { drop(terminate.recv().await) }, async { drop(ctrl_c().await) }).await
//! });
//! let report = runtime.shutdown_within(Shutdown::Drain, Duration::from_secs(10));
//! println!("{report:?}");
//! # Ok(())
//! # }
//! ```
//!
//! # How
//!
//! A signal's handler may do next to nothing. Each listener has an event descriptor of its own, a counter in the
//! kernel; the handler adds one to the counters of its signal. A listener waits for its descriptor as for a socket, on
//! the driver of the runtime in which it waits, and a read takes the counter back to zero. So:
//!
//! - A signal that comes while no code waits for it stays in the counter: the next wait ends at once.
//! - Signals of one kind that come before a read are one, as they are in the kernel.
//! - Every listener gets every signal that comes while it lives.
//!
//! Handlers are installed by `signal-hook-registry`, which calls the ones that were there before as well.
//!
//! # What stays
//!
//! The first listener of a signal takes the signal's default action from the process for good, also when the listener
//! is gone: SIGTERM no longer ends the process. Tokio does the same. A program that a child process executes has the
//! default action again. In a child of `fork` that executes none, the signal does nothing until the child listens
//! itself.

pub mod unix;

use crate::sys::mutex::Mutex;
use std::{io, sync::Arc};
use unix::{Listener, Signal, SignalKind};

/// The listener of the [`ctrl_c`] that ended last, for the next one: what comes in between is in its counter.
static KEPT: Mutex<Option<Arc<Listener>>> = Mutex::new(None);

/// Waits for the next ctrl-c (SIGINT).
///
/// Safe in one loop: after the first call, a ctrl-c that comes between two calls, or that a dropped future had not yet
/// reported, ends the next call at once. Each of several calls that wait at the same time gets each ctrl-c. But calls
/// do not know to which loop they belong: of several loops, one that is between two of its calls may miss a ctrl-c that
/// the others get, as any loop may with Tokio's `ctrl_c`. For several loops, make a [`unix::signal`] of
/// [`SignalKind::interrupt`] for each: it loses none.
///
/// Before the first call is first polled, ctrl-c ends the process; to listen from an earlier moment, make a
/// [`unix::signal`] as well.
///
/// ```no_run
/// # urgency::block_on(async {
/// for asked in 1.. {
///     urgency::signal::ctrl_c().await?;
///     match asked {
///         1 => println!("ending; once more to end at once"),
///         _ => std::process::exit(1),
///     }
/// }
/// # std::io::Result::Ok(())
/// # });
/// ```
///
/// # Errors
///
/// If the process is out of descriptors, or the runtime in which it waits was shut down.
pub async fn ctrl_c() -> io::Result<()> {
    let kept = KEPT.lock().take();
    let listener = match kept {
        Some(listener) => listener,
        None => Listener::new(SignalKind::interrupt())?,
    };
    let mut waits = Waits(Some(Signal::of(listener)));
    let signal = waits.0.as_mut().expect("taken by the drop only");
    match signal.recv().await {
        Some(()) => Ok(()),
        None => Err(io::Error::other(
            "the runtime in which ctrl_c() waited was shut down",
        )),
    }
}

/// Leaves its listener to the next call. The one that was there has reported nothing since to anybody: this one has.
struct Waits(Option<Signal>);

impl Drop for Waits {
    fn drop(&mut self) {
        // Its registration ends here: the next call has the same counter, which can be registered only once at a time.
        let listener = self.0.take().map(Signal::into_listener);
        let mut kept = KEPT.lock();
        let old = std::mem::replace(&mut *kept, listener);
        drop(kept);
        // Outside of the lock: it waits for handlers that run.
        drop(old);
    }
}
