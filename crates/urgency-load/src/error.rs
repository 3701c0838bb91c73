//! What can go wrong, said so that the reader knows what to do.
//!
//! A wrong value and a `SERVER_ERROR` are no errors here: they are counted in the
//! [`Outcome`](crate::Outcome), and the run goes on.

use crate::protocol::shorten;
use std::{fmt, io};
use urgency_measure::client::Trouble;

/// Why a load could not be run, or not to its end.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// An option has a value that is not allowed.
    Option {
        /// The option.
        option: &'static str,
        /// Its value.
        value: String,
        /// What is allowed.
        allowed: String,
    },
    /// What can go wrong with any server.
    Client(Trouble),
    /// The server said something that is no reply to what it was asked.
    Malformed {
        /// What was asked.
        command: &'static str,
        /// The line.
        line: String,
    },
    /// The server did not understand a request.
    Refused {
        /// What was asked.
        command: &'static str,
        /// The server's words.
        line: String,
    },
    /// The fill did not store all keys.
    Fill {
        /// Keys that were stored.
        stored: u64,
        /// Keys that should be.
        keys: u64,
        /// Seconds that it had.
        seconds: u64,
        /// What the server said first to a set that it did not carry out; none if time was over.
        refusal: Option<String>,
    },
    /// Not even the lowest rate of a search met the quality of service.
    Search {
        /// What was demanded.
        quality: String,
        /// The lowest rate tried, per second.
        lowest: f64,
    },
    /// A file could not be written.
    Write {
        /// The file.
        path: std::path::PathBuf,
        /// The system's reason.
        cause: io::Error,
    },
}

impl Error {
    /// An option with a bad value.
    pub fn option(option: &'static str, value: impl ToString, allowed: impl Into<String>) -> Self {
        Error::Option {
            option,
            value: value.to_string(),
            allowed: allowed.into(),
        }
    }

    /// Whether the command line was wrong, so that nothing was started.
    pub fn is_usage(&self) -> bool {
        matches!(self, Error::Option { .. })
    }
}

impl From<Trouble> for Error {
    fn from(trouble: Trouble) -> Self {
        match trouble {
            Trouble::Unasked { bytes, .. } => Error::Malformed {
                command: "request that was not sent",
                line: shorten(&bytes),
            },
            other => Error::Client(other),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Option {
                option,
                value,
                allowed,
            } => write!(f, "{option} {value} is not possible; allowed: {allowed}"),
            Error::Client(trouble) => {
                write!(f, "{trouble}")?;
                match trouble {
                    Trouble::Connect { cause, .. }
                        if matches!(
                            cause.kind(),
                            io::ErrorKind::ConnectionRefused | io::ErrorKind::NotFound
                        ) =>
                    {
                        write!(f, "; start it first, for example with `urgency cache`")
                    }
                    _ => Ok(()),
                }
            }
            Error::Malformed { command, line } => {
                write!(f, "the server's reply to a {command} is none: {line:?}")
            }
            Error::Refused { command, line } => {
                write!(f, "the server does not understand a {command}: {line:?}")
            }
            Error::Fill {
                stored,
                keys,
                refusal: Some(refusal),
                ..
            } => write!(
                f,
                "only {stored} of {keys} keys were stored: {refusal}; give the server more memory, or use fewer --keys or smaller --value"
            ),
            Error::Fill {
                stored,
                keys,
                seconds,
                refusal: None,
            } => write!(
                f,
                "only {stored} of {keys} keys were stored within {seconds} s: use fewer --keys or smaller --value"
            ),
            Error::Search { quality, lowest } => write!(
                f,
                "even {lowest:.0} requests/s do not meet {quality}: the server does not, at any rate worth looking for"
            ),
            Error::Write { path, cause } => {
                write!(f, "{} cannot be written: {cause}", path.display())
            }
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Client(trouble) => trouble.source(),
            Error::Write { cause, .. } => Some(cause),
            _ => None,
        }
    }
}
