//! What can go wrong while the demo runs, said so that the reader knows what to do.

use super::contender::Contender;
use std::{fmt, io, net::SocketAddr, path::PathBuf, process::ExitStatus, time::Duration};

/// Why the demo, or one contender of it, failed.
#[derive(Debug)]
pub enum Error {
    /// The program could not start itself again.
    Start { who: String, cause: io::Error },
    /// A child process ended before it was told to.
    Ended {
        who: String,
        status: Option<ExitStatus>,
        last_words: String,
    },
    /// A child process said nothing for too long.
    Silent { who: String, waited: Duration },
    /// A child process said something else than what it was asked for.
    Unexpected { who: String, line: String },
    /// A server could not listen.
    Listen { port: u16, cause: io::Error },
    /// A server could not build its runtime.
    Build {
        contender: Contender,
        cause: Box<dyn std::error::Error + Send>,
    },
    /// The client could not reach the server.
    Connect {
        server: SocketAddr,
        cause: io::Error,
    },
    /// A connection broke.
    Connection { cause: io::Error },
    /// A reply was not the one to the request.
    WrongReply { sequence: u64 },
    /// A file that was asked for cannot be written.
    Write {
        what: &'static str,
        option: &'static str,
        path: PathBuf,
        cause: io::Error,
    },
    /// The picture could not be drawn.
    Draw { cause: String },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Start { who, cause } => write!(
                f,
                "{who} could not be started as a process of its own: {cause}"
            ),
            Error::Ended {
                who,
                status,
                last_words,
            } => {
                write!(f, "{who} ended before its time")?;
                if let Some(status) = status {
                    write!(f, " ({status})")?;
                }
                if !last_words.is_empty() {
                    write!(f, ": {last_words}")?;
                }
                Ok(())
            }
            Error::Silent { who, waited } => write!(
                f,
                "{who} gave no sign of life for {} s and was ended",
                waited.as_secs()
            ),
            Error::Unexpected { who, line } => {
                write!(f, "{who} said {line:?}, which was not expected")
            }
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
            Error::Connect { server, cause } => {
                write!(f, "the server at {server} could not be reached: {cause}")
            }
            Error::Connection { cause } => {
                write!(f, "a connection to the server broke: {cause}")
            }
            Error::WrongReply { sequence } => {
                write!(f, "request {sequence} got a wrong reply")
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
            Error::Draw { cause } => write!(f, "the picture could not be drawn: {cause}"),
        }
    }
}

impl std::error::Error for Error {}
