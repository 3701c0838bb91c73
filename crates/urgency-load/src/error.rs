//! What can go wrong, said so that the reader knows what to do.
//!
//! A wrong value and a `SERVER_ERROR` are no errors here: they are counted in the
//! [`Outcome`](crate::Outcome), and the run goes on.

use crate::Server;
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
    /// The server could not be reached.
    Connect {
        /// The server.
        server: Server,
        /// The system's reason.
        cause: io::Error,
    },
    /// The server closed a connection on which replies were awaited, or on which none should have ended.
    Closed {
        /// The server.
        server: Server,
        /// Replies that this connection had brought since it was opened.
        replies: u64,
        /// Requests whose replies are missing.
        awaited: usize,
    },
    /// A connection broke.
    Broken {
        /// The server.
        server: Server,
        /// The system's reason.
        cause: io::Error,
    },
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
    /// The system refused what the client needs.
    System {
        /// What it was.
        what: &'static str,
        /// The system's reason.
        cause: io::Error,
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
            Trouble::Connect { server, cause } => Error::Connect { server, cause },
            Trouble::Closed {
                server,
                replies,
                awaited,
            } => Error::Closed {
                server,
                replies,
                awaited,
            },
            Trouble::Broken { server, cause } => Error::Broken { server, cause },
            Trouble::Unasked { bytes, .. } => Error::Malformed {
                command: "request that was not sent",
                line: shorten(&bytes),
            },
            Trouble::System { what, cause } => Error::System { what, cause },
            other => Error::System {
                what: "the client",
                cause: io::Error::other(other.to_string()),
            },
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
            Error::Connect { server, cause } => {
                write!(f, "the server at {server} cannot be reached: {cause}")?;
                match cause.kind() {
                    io::ErrorKind::ConnectionRefused | io::ErrorKind::NotFound => {
                        write!(f, "; start it first, for example with `urgency cache`")
                    }
                    _ => Ok(()),
                }
            }
            Error::Closed {
                server,
                replies,
                awaited,
            } => write!(
                f,
                "the server at {server} closed a connection after {replies} replies, with {awaited} replies missing"
            ),
            Error::Broken { server, cause } => {
                write!(f, "a connection to {server} broke: {cause}")
            }
            Error::Malformed { command, line } => {
                write!(f, "the server's reply to a {command} is none: {line:?}")
            }
            Error::Refused { command, line } => {
                write!(f, "the server does not understand a {command}: {line:?}")
            }
            Error::System { what, cause } => write!(f, "{what}: {cause}"),
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
            Error::Connect { cause, .. }
            | Error::Broken { cause, .. }
            | Error::System { cause, .. }
            | Error::Write { cause, .. } => Some(cause),
            _ => None,
        }
    }
}
