//! What can go wrong in a comparison.

use std::{fmt, io, path::PathBuf};
use urgency_measure::{child, picture};

/// Why the comparison, or one contender of it, failed.
#[derive(Debug)]
pub enum Error {
    /// A program could not be started.
    Start {
        /// Which.
        title: String,
        /// The system's reason.
        cause: io::Error,
    },
    /// A server does not accept connections.
    NotReady {
        /// Which.
        title: String,
        /// What it said.
        last_words: String,
    },
    /// A child process failed, or did not answer.
    Child(child::Error),
    /// The load could not be run.
    Load(urgency_load::Error),
    /// A server gave wrong values.
    Wrong {
        /// Which.
        title: String,
        /// The first fault.
        fault: String,
    },
    /// A part needs the result of another one.
    Missing {
        /// What is missing.
        what: &'static str,
        /// For what it was looked for.
        conditions: String,
        /// Where it was looked for.
        path: PathBuf,
    },
    /// A file could not be written later.
    Write(crate::demo::Error),
    /// A file could not be written or read.
    File {
        /// Which.
        path: PathBuf,
        /// The reason.
        cause: String,
    },
    /// The picture could not be drawn.
    Draw(picture::Error),
    /// New keys could not be written beside the load.
    Insert(io::Error),
    /// This process could not be bound to processors.
    Bind(io::Error),
}

impl From<urgency_load::Error> for Error {
    fn from(error: urgency_load::Error) -> Self {
        Error::Load(error)
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
            Error::Start { title, cause } if cause.kind() == io::ErrorKind::NotFound => write!(
                f,
                "{title} is not installed: {cause}; install it (Debian: apt-get install memcached), or leave it out with --only"
            ),
            Error::Start { title, cause } => write!(f, "{title} cannot be started: {cause}"),
            Error::NotReady { title, last_words } => {
                write!(f, "{title} does not accept connections: {last_words}")
            }
            Error::Child(error) => error.fmt(f),
            Error::Load(error) => error.fmt(f),
            Error::Wrong { title, fault } => write!(f, "{title} gave a wrong reply: {fault}"),
            Error::Missing {
                what,
                conditions,
                path,
            } => write!(
                f,
                "{what} is not known: {} does not have it for {conditions}; measure the part `highest` first",
                path.display()
            ),
            Error::Write(error) => error.fmt(f),
            Error::File { path, cause } => write!(f, "{}: {cause}", path.display()),
            Error::Draw(error) => error.fmt(f),
            Error::Insert(cause) => {
                write!(f, "new keys cannot be written beside the load: {cause}")
            }
            Error::Bind(cause) => {
                write!(f, "the servers cannot be bound to --server-cpus: {cause}")
            }
        }
    }
}

impl std::error::Error for Error {}
