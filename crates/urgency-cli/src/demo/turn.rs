//! One turn of one contender: a server process, a client process, and what they say, in the order of `plan.rs`.

use super::{
    child::Child,
    error::Error,
    latencies::Latencies,
    messages::{Account, ClientSays, ClientSpec, Metering, ServerHears, ServerSays, ServerSpec},
    options::Options,
    plan::Turn,
};
use std::{thread, time::Duration};

/// How long a child may say nothing when it should answer at once. Machines can be very busy.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long a server has to show that it is ending when its client failed.
const MOMENT: Duration = Duration::from_millis(200);
/// How long the client waits for the last replies.
const GRACE: Duration = Duration::from_secs(2);

/// What a turn brought.
#[derive(Clone, Debug)]
pub struct Gained {
    /// Latencies of the recorded requests.
    pub latencies: Latencies,
    /// How the compute went; `None` where there is none.
    pub compute: Option<Rates>,
    /// What the runtime counted.
    pub account: Account,
    /// Why the client was not in the real-time class.
    pub not_real_time: Option<String>,
}

/// Work and time of the compute, alone and beside the requests.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rates {
    /// Alone.
    pub alone: Span,
    /// Beside the requests.
    pub loaded: Span,
}

/// Work in a time.
#[derive(Clone, Copy, Debug, Default)]
pub struct Span {
    /// Units of compute.
    pub units: u64,
    /// Nanoseconds.
    pub ns: u64,
}

impl Span {
    fn between(from: Metering, to: Metering) -> Self {
        Span {
            units: to.units - from.units,
            ns: to.at_ns - from.at_ns,
        }
    }

    /// Both together.
    pub fn and(self, other: Span) -> Self {
        Span {
            units: self.units + other.units,
            ns: self.ns + other.ns,
        }
    }

    /// Units per second; 0 if no time passed.
    pub fn per_s(self) -> f64 {
        match self.ns {
            0 => 0.0,
            ns => self.units as f64 * 1e9 / ns as f64,
        }
    }
}

/// Takes the turn. `live` gets short reports of what is going on.
pub fn take(turn: &Turn, options: &Options, live: &mut dyn FnMut(&str)) -> Result<Gained, Error> {
    let title = turn.contender.title();
    let mut server = Server::start(turn, options)?;
    let computes = turn.contender.computes();
    let mut alone = Span::default();
    if computes {
        live("computing alone");
        server.ask(ServerHears::Compute)?;
        thread::sleep(turn.settle);
        alone = server.span_of(turn.alone)?;
    }
    live("connecting");
    let mut client = Child::start(
        &format!("the load client of {title}"),
        "demo-client",
        &client_spec(turn, options, server.address),
    )?;
    let load = Load {
        server: &mut server,
        client: &mut client,
    };
    let (loaded, latencies, not_real_time) = load.watch(turn, live)?;
    let mut compute = None;
    if computes {
        live("computing alone");
        let alone = alone.and(server.span_of(turn.alone)?);
        compute = Some(Rates { alone, loaded });
    }
    Ok(Gained {
        latencies,
        compute,
        account: server.account()?,
        not_real_time,
    })
}

fn client_spec(turn: &Turn, options: &Options, server: std::net::SocketAddr) -> ClientSpec {
    let ms = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    ClientSpec {
        server,
        rate: options.rate,
        arrivals: options.arrivals,
        seed: turn.round,
        warm_up_ms: ms(turn.warm_up),
        run_ms: ms(turn.load).max(1),
        grace_ms: ms(GRACE),
    }
}

struct Server {
    child: Child,
    address: std::net::SocketAddr,
}

impl Server {
    fn start(turn: &Turn, options: &Options) -> Result<Self, Error> {
        let who = format!("the server of {}", turn.contender.title());
        let spec = ServerSpec {
            contender: turn.contender,
            workers: options.worker_count(),
            level: options.level,
            kind: options.kind,
            port: options.port.unwrap_or(0),
        };
        let mut child = Child::start(&who, "demo-server", &spec)?;
        match child.hear(PATIENCE)? {
            ServerSays::Ready(address) => Ok(Server { child, address }),
            other => Err(child.unexpected(&format!("{other:?}"))),
        }
    }

    fn ask(&mut self, what: ServerHears) -> Result<Metering, Error> {
        self.child.tell(&what)?;
        match self.child.hear(PATIENCE)? {
            ServerSays::Metered(metering) => Ok(metering),
            other => Err(self.child.unexpected(&format!("{other:?}"))),
        }
    }

    fn span_of(&mut self, time: Duration) -> Result<Span, Error> {
        let from = self.ask(ServerHears::Meter)?;
        thread::sleep(time);
        Ok(Span::between(from, self.ask(ServerHears::Meter)?))
    }

    fn account(&mut self) -> Result<Account, Error> {
        self.child.tell(&ServerHears::Account)?;
        match self.child.hear(PATIENCE)? {
            ServerSays::Account(account) => Ok(account),
            other => Err(self.child.unexpected(&format!("{other:?}"))),
        }
    }
}

/// A load under way.
struct Load<'a> {
    server: &'a mut Server,
    client: &'a mut Child,
}

impl Load<'_> {
    /// Follows the client to its end.
    fn watch(
        mut self,
        turn: &Turn,
        live: &mut dyn FnMut(&str),
    ) -> Result<(Span, Latencies, Option<String>), Error> {
        // Without progress it may be silent for the whole load, and for all of the grace time.
        let limit = turn.warm_up + turn.load + GRACE + PATIENCE;
        let mut begun = None;
        let mut loaded = Span::default();
        loop {
            match self.hear(limit)? {
                ClientSays::Begun => {
                    begun = Some(self.server.ask(ServerHears::Meter)?);
                    live("answering");
                }
                ClientSays::Progress {
                    answered,
                    p50_ms,
                    p99_ms,
                } => live(&format!(
                    "{answered} answered, p50 {p50_ms:.2}, p99 {p99_ms:.2} ms"
                )),
                ClientSays::Sent => {
                    let now = self.server.ask(ServerHears::Meter)?;
                    loaded = begun.map_or(loaded, |begun| Span::between(begun, now));
                    live("waiting for the last answers");
                }
                ClientSays::Done {
                    latencies,
                    not_real_time,
                } => return Ok((loaded, latencies, not_real_time)),
            }
        }
    }

    /// The client's next report. If both processes are in trouble, the server's is the cause.
    fn hear(&mut self, limit: Duration) -> Result<ClientSays, Error> {
        self.client.hear(limit).map_err(|error| {
            let server = self.server.child.check_alive(MOMENT);
            server.err().unwrap_or(error)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_units_per_second_over_all_spans() {
        let metering = |units, at_ns| Metering { units, at_ns };
        let first = Span::between(metering(10, 1_000), metering(40, 500_000_000));
        let both = first.and(Span {
            units: 70,
            ns: 500_001_000,
        });
        assert_eq!((both.units, both.ns), (100, 1_000_000_000));
        assert!((both.per_s() - 100.0).abs() < 1e-9);
        assert_eq!(Span::default().per_s(), 0.0);
    }
}
