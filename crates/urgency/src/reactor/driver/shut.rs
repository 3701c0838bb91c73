//! The error of whatever comes to a driver after its shutdown.

use std::io;

/// The runtime to which a source or timer belongs is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DriverShut;

error_text!(
    DriverShut,
    "the runtime that waits for this descriptor or timer was shut down; finish I/O before the \
     shutdown, or let the shutdown drain the runtime"
);

impl From<DriverShut> for io::Error {
    fn from(error: DriverShut) -> Self {
        io::Error::other(error)
    }
}
