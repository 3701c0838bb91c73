//! A server process: one contender.
//!
//! It listens on 127.0.0.1, says where, and then does what it is told, line by line, until its input ends.
//! The work of a request (`chain.rs` of `urgency_measure`) and the units of the compute (`compute.rs`) are the same for
//! all contenders; what differs is what schedules them, and that is all that the files beside this one contain.
//!
//! The thread that reads the commands belongs to none of the runtimes. It may be late under load; that does
//! not falsify the metering, because units and time are read together.

mod threads;
mod tokio_rayon;
mod urgency;

use super::{
    compute,
    contender::Contender,
    error::Error,
    messages::{Account, Metering, ServerHears, ServerSays, ServerSpec},
};
use std::{
    io::{self, BufRead},
    net::{Ipv4Addr, SocketAddr},
    time::Instant,
};
use urgency_measure::child::say;

/// A contender that answers requests by now.
trait Serving {
    /// Where it listens.
    fn address(&self) -> SocketAddr;
    /// Begins to compute without end.
    fn compute(&self);
    /// What it counted.
    fn account(&self) -> Account {
        Account::new()
    }
}

/// The process.
pub fn main(spec: &ServerSpec) -> Result<(), Error> {
    let begin = Instant::now();
    let serving: Box<dyn Serving> = match spec.contender {
        Contender::Idle | Contender::Urgency => Box::new(urgency::serve(spec)?),
        Contender::TokioRayon => Box::new(tokio_rayon::serve(spec)?),
        Contender::Threads => Box::new(threads::serve(spec)?),
        Contender::TwoPools => {
            let line = format!("{} answers no requests", spec.contender.title());
            return Err(Error::unexpected(line));
        }
    };
    say(&ServerSays::Ready(serving.address()));
    for line in io::stdin().lock().lines().map_while(Result::ok) {
        let Ok(heard) = serde_json::from_str(&line) else {
            return Err(Error::unexpected(line));
        };
        if heard == ServerHears::Compute {
            serving.compute();
        }
        say(&match heard {
            ServerHears::Account => ServerSays::Account(serving.account()),
            ServerHears::Compute | ServerHears::Meter => ServerSays::Metered(Metering {
                units: compute::units(),
                at_ns: u64::try_from(begin.elapsed().as_nanos()).unwrap_or(u64::MAX),
            }),
        });
    }
    // The compute never ends by itself; it ends with the process.
    std::process::exit(0)
}

/// Where to listen.
fn address(spec: &ServerSpec) -> SocketAddr {
    (Ipv4Addr::LOCALHOST, spec.port).into()
}

/// The error of a server that could not listen.
fn cannot_listen(spec: &ServerSpec) -> impl Fn(io::Error) -> Error {
    let port = spec.port;
    move |cause| Error::Listen { port, cause }
}

/// The error of a runtime that could not be built.
pub fn cannot_build<E>(contender: Contender) -> impl Fn(E) -> Error
where
    E: std::error::Error + Send + 'static,
{
    move |cause| Error::Build {
        contender,
        cause: Box::new(cause),
    }
}
