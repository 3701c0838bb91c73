//! The processor's clock, thread ids and scheduling classes, and copies of the process. The poller (in `io/`) and
//! the barrier (in `fork/`) are the other two that know the system.

pub(crate) mod clock;
pub(crate) mod fork;
pub(crate) mod thread;
