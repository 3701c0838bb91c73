//! Why a pool could not be built.

use std::{error::Error, fmt, io};

/// The error of [`ThreadPoolBuilder::build`](crate::ThreadPoolBuilder::build) and its relatives.
#[derive(Debug)]
pub struct ThreadPoolBuildError {
    kind: ErrorKind,
}

#[derive(Debug)]
pub(crate) enum ErrorKind {
    GlobalExists,
    InPoolAlready,
    Io(io::Error),
}

impl From<ErrorKind> for ThreadPoolBuildError {
    fn from(kind: ErrorKind) -> Self {
        ThreadPoolBuildError { kind }
    }
}

impl From<io::Error> for ThreadPoolBuildError {
    fn from(error: io::Error) -> Self {
        ErrorKind::Io(error).into()
    }
}

impl fmt::Display for ThreadPoolBuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Programs compare these texts: they are rayon's.
        match &self.kind {
            ErrorKind::GlobalExists => {
                f.write_str("The global thread pool has already been initialized.")
            }
            ErrorKind::InPoolAlready => {
                f.write_str("The current thread is already part of another thread pool.")
            }
            ErrorKind::Io(error) => error.fmt(f),
        }
    }
}

impl Error for ThreadPoolBuildError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match &self.kind {
            ErrorKind::GlobalExists | ErrorKind::InPoolAlready => None,
            ErrorKind::Io(error) => Some(error),
        }
    }
}
