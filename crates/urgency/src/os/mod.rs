//! What differs between operating systems and processors, and nothing else.

pub(crate) mod clock;
pub(crate) mod thread;
