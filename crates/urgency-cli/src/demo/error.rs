//! What can go wrong while the demo runs, said so that the reader knows what to do.

use super::contender::Contender;
use std::{fmt, io, path::PathBuf};
use urgency_measure::{child, picture};

/// Why the demo, or one contender of it, failed.
#[derive(Debug)]
pub enum Error {
    /// A child process did not do what it was to do.
    Child(child::Error),
    /// A server could not listen.
    Listen { port: u16, cause: io::Error },
    /// A server could not build its runtime.
    Build {
        contender: Contender,
        cause: Box<dyn std::error::Error + Send>,
    },
    /// A file that was asked for cannot be written.
    Write {
        what: &'static str,
        option: &'static str,
        path: PathBuf,
        cause: io::Error,
    },
    /// The picture could not be drawn.
    Draw(picture::Error),
}

impl Error {
    /// The parent said something that this process cannot do.
    pub fn unexpected(line: String) -> Self {
        let who = "the parent process".to_owned();
        child::Error::Unexpected { who, line }.into()
    }
}

impl From<child::Error> for Error {
    fn from(error: child::Error) -> Self {
        Error::Child(error)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Child(error) => error.fmt(f),
            Error::Listen { port, cause } if cause.kind() == io::ErrorKind::AddrInUse => write!(
                f,
                "port {port} on 127.0.0.1 is in use by another program: choose another one with --port, or leave --port out for any \
                 free one"
            ),
            Error::Listen { port, cause } => write!(
                f,
                "no server can listen on port {port} of 127.0.0.1: {cause}; choose another one with --port, or leave --port out for \
                 any free one"
            ),
            Error::Build { contender, cause } => {
                write!(f, "{} could not be started: {cause}", contender.title())
            }
            Error::Write {
                what,
                option,
                path,
                cause,
            } => write!(
                f,
                "{what} cannot be written to {}: {cause}; name another place with {option} PATH",
                path.display()
            ),
            Error::Draw(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for Error {}
