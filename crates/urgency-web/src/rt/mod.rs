//! hyper's runtime traits: what hyper asks of a runtime, answered by Urgency.
//!
//! | hyper asks for | here | on top of |
//! | --- | --- | --- |
//! | `Executor`: run this future | [`Executor`] | [`urgency::At::spawn`] |
//! | `Timer`, `Sleep` | [`Timer`] | [`urgency::time::Sleep`] |
//! | `Read`, `Write` | [`Io`] around any stream | the stream's Tokio I/O traits |
//!
//! With these three every builder of hyper works: HTTP/1 and HTTP/2, servers and clients.

mod executor;
#[allow(
    unsafe_code,
    reason = "hyper's buffers are filled before they are initialised"
)]
mod io;
mod timer;

pub use executor::Executor;
pub use io::Io;
pub use timer::Timer;
