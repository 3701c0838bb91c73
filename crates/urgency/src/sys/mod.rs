//! What the library needs of the machine: the processor's clock, thread ids and scheduling classes, how long a thread
//! takes that is woken, copies of the process, the primitives of every protocol, a mutex for everything else, a slab,
//! an end for panics that no code could hear of, and chaos. The poller and the sockets (`reactor/epoll.rs`,
//! `reactor/sockets.rs`) and the barrier (`protocol/fence.rs`) are the others that know the system.

#[macro_use]
mod formats;

#[cfg(not(urgency_loom))]
pub(crate) mod abort;
pub(crate) mod chaos;
#[cfg(not(urgency_loom))]
pub(crate) mod clock;
#[cfg(all(test, not(urgency_loom)))]
pub(crate) mod counted;
#[cfg(not(urgency_loom))]
pub(crate) mod fork;
pub(crate) mod mutex;
pub(crate) mod primitives;
#[cfg(not(urgency_loom))]
pub(crate) mod slab;
#[cfg(not(urgency_loom))]
pub(crate) mod thread;
#[cfg(not(urgency_loom))]
pub(crate) mod wake_up;

/// A number of a thread's class: the kernel's idle class. 0 to 19 are niceness, added to the program's.
pub(crate) const IDLE: u8 = 20;
