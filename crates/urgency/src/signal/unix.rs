//! Signals by their number. The [parent's text](super) says how they work.

use crate::{io::Async, sys::fork::Process};
use rustix::{
    event::{EventfdFlags, eventfd},
    fd::OwnedFd,
};
use signal_hook_registry::{FORBIDDEN, SigId};
use std::{
    future::poll_fn,
    io,
    os::raw::c_int,
    sync::Arc,
    task::{Context, Poll, ready},
};

/// Which signal.
///
/// ```
/// use urgency::signal::unix::SignalKind;
///
/// assert_eq!(SignalKind::from_raw(15), SignalKind::terminate());
/// assert_eq!(SignalKind::hangup().as_raw_value(), 1);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SignalKind(c_int);

macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident = $number:ident),* $(,)?) => {
        impl SignalKind {
            $($(#[$doc])* pub const fn $name() -> Self { SignalKind(libc::$number) })*
        }
    };
}

kinds! {
    /// SIGALRM: a timer of `alarm` expired.
    alarm = SIGALRM,
    /// SIGCHLD: a child process ended or stopped.
    child = SIGCHLD,
    /// SIGHUP: the terminal is gone; by custom, "read the configuration again".
    hangup = SIGHUP,
    /// SIGINT: ctrl-c.
    interrupt = SIGINT,
    /// SIGIO: I/O is possible.
    io = SIGIO,
    /// SIGPIPE: a write to a pipe or socket that nobody reads.
    pipe = SIGPIPE,
    /// SIGQUIT: ctrl-\\.
    quit = SIGQUIT,
    /// SIGTERM: the process is asked to end.
    terminate = SIGTERM,
    /// SIGUSR1, for the program's own purposes.
    user_defined1 = SIGUSR1,
    /// SIGUSR2, for the program's own purposes.
    user_defined2 = SIGUSR2,
    /// SIGWINCH: the terminal's window has another size.
    window_change = SIGWINCH,
}

impl SignalKind {
    /// The signal with this number.
    pub const fn from_raw(number: c_int) -> Self {
        SignalKind(number)
    }

    /// Its number.
    pub const fn as_raw_value(self) -> c_int {
        self.0
    }
}

/// A counter that a signal's handler adds to.
pub(super) struct Listener {
    counter: Arc<OwnedFd>,
    id: SigId,
}

impl Listener {
    pub(super) fn new(kind: SignalKind) -> io::Result<Arc<Self>> {
        if FORBIDDEN.contains(&kind.0) {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                format!(
                    "signal {} cannot be listened to: the kernel or the language keeps it; all but {FORBIDDEN:?} can",
                    kind.0
                ),
            ));
        }
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        let counter = Arc::new(eventfd(0, flags)?);
        let (handlers, process) = (counter.clone(), Process::this());
        let add = move || {
            // A child of `fork` has the handlers, and shares the counters with its parent.
            if process.is_this() {
                // A counter that is full says all that it has to say.
                let _ = rustix::io::write(&handlers, &1u64.to_ne_bytes());
            }
        };
        // SAFETY: the action is an atomic load and one system call, `write`, which a handler may make. It takes no
        // lock, allocates nothing and does not unwind. The descriptor lives as long as the action, which owns it.
        let id = unsafe { signal_hook_registry::register(kind.0, add) }?;
        Ok(Arc::new(Listener { counter, id }))
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        signal_hook_registry::unregister(self.id);
    }
}

/// Begins to listen to a signal, at once.
///
/// ```
/// use rustix::process::{Signal, getpid, kill_process};
/// use urgency::signal::unix::{SignalKind, signal};
///
/// let mut reload = signal(SignalKind::user_defined1())?;
/// kill_process(getpid(), Signal::USR1)?; // while nobody waits
/// urgency::block_on(async {
///     reload.recv().await; // and is not lost
/// });
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Errors
///
/// `InvalidInput` for a signal that cannot be listened to (SIGKILL, SIGSTOP, SIGILL, SIGFPE, SIGSEGV); otherwise what
/// the system says, for instance that there is no signal of this number or that the process is out of descriptors.
pub fn signal(kind: SignalKind) -> io::Result<Signal> {
    Listener::new(kind).map(Signal::of)
}

/// The signals of one kind that come from now on; made by [`signal`].
///
/// Several that come before a [`recv`](Signal::recv) are one. It belongs to the runtime in which it first waits.
#[must_use = "a listener that is dropped hears nothing, and has taken the signal's default action all the same"]
pub struct Signal {
    counter: Async<Arc<OwnedFd>>,
    listener: Arc<Listener>,
}

impl Signal {
    pub(super) fn of(listener: Arc<Listener>) -> Self {
        let counter = Async::from_nonblocking(listener.counter.clone());
        Signal { counter, listener }
    }

    pub(super) fn into_listener(self) -> Arc<Listener> {
        self.listener
    }

    /// Waits until the signal has come since the last `recv`, or since [`signal`]. `None`: none can come any more,
    /// because the runtime in which it waits was shut down.
    ///
    /// Dropping the future loses no signal: it may stand in a `select` in a loop.
    pub async fn recv(&mut self) -> Option<()> {
        poll_fn(|cx| self.poll_recv(cx)).await
    }

    /// The `poll_*` form of [`recv`](Signal::recv).
    pub fn poll_recv(&mut self, cx: &mut Context<'_>) -> Poll<Option<()>> {
        let mut count = [0; 8];
        let read = |counter: &Arc<OwnedFd>| Ok(rustix::io::read(counter, &mut count)?);
        Poll::Ready(ready!(self.counter.poll_read_with(cx, read)).ok().map(drop))
    }
}

debug_struct!(Signal);
