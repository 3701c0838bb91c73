//! One turn of one contender: a server process, a client process, and what they say, in the order of `plan.rs`.

use super::{
    error::Error,
    messages::{Account, Metering, ServerHears, ServerSays, ServerSpec},
    options::Options,
    plan::Turn,
};
use std::{collections::HashSet, thread, time::Duration};
use urgency_measure::child::{self, Child};
use urgency_measure::client::lanes::{self, Client, Heard, Lane, Lanes, Pace, Protocol};
use urgency_measure::{events::Events, latencies::Latencies, machine::now_ns};

/// How long a child may say nothing when it should answer at once. Machines can be very busy.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long a server has to show that it is ending when its client failed.
const MOMENT: Duration = Duration::from_millis(200);
/// Connections of the client.
const CONNECTIONS: usize = 8;
/// More requests are never under way on one of them: a server that is late has them all.
const PIPELINE: usize = 100_000;
/// From an order to the first request.
const LEAD: Duration = Duration::from_millis(5);
/// The series of the requests.
const REQUEST: &str = "request";

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
    let who = format!("the load client of {title}");
    let lanes = Lanes {
        pipeline: PIPELINE,
        seed: turn.round,
        reports: true,
        ..Lanes::new(server.address, vec![lane(options)])
    };
    let load = Load {
        server: &mut server,
        client: Client::start(&who, "demo-client", &lanes)?,
    };
    let (loaded, latencies, not_real_time) = load.run(turn, live)?;
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

fn lane(options: &Options) -> Lane {
    Lane {
        name: REQUEST.to_owned(),
        protocol: Protocol::Chain,
        pace: Pace::Open(options.rate, options.arrivals),
        connections: CONNECTIONS,
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
        let mut child = Child::with_task(&who, "demo-server", &spec)?;
        match child.hear(PATIENCE)? {
            ServerSays::Ready(address) => Ok(Server { child, address }),
            other => Err(child.unexpected(&format!("{other:?}")).into()),
        }
    }

    fn ask(&mut self, what: ServerHears) -> Result<Metering, Error> {
        self.child.tell(&what)?;
        match self.child.hear(PATIENCE)? {
            ServerSays::Metered(metering) => Ok(metering),
            other => Err(self.child.unexpected(&format!("{other:?}")).into()),
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
            other => Err(self.child.unexpected(&format!("{other:?}")).into()),
        }
    }
}

/// A load under way.
struct Load<'a> {
    server: &'a mut Server,
    client: Client,
}

impl Load<'_> {
    /// A stretch of load that is not recorded, then one that is.
    fn run(
        mut self,
        turn: &Turn,
        live: &mut dyn FnMut(&str),
    ) -> Result<(Span, Latencies, Option<String>), Error> {
        self.stretch(turn.warm_up, &mut |_| ())?;
        live("answering");
        let begun = self.server.ask(ServerHears::Meter)?;
        let start = self.stretch(turn.load, live)?;
        let loaded = Span::between(begun, self.server.ask(ServerHears::Meter)?);
        let Load { server, client } = self;
        let done = client.end().map_err(|error| server.cause_of(error))?;
        let (events, _) = done.events.only(|event| event.due >= start);
        let not_real_time = (!done.is_real_time).then_some(done.class);
        Ok((loaded, latencies(&events), not_real_time))
    }

    /// Load of this length, until its last reply has come or was given up; when it began.
    fn stretch(&mut self, length: Duration, live: &mut dyn FnMut(&str)) -> Result<u64, Error> {
        let start = now_ns() + LEAD.as_nanos() as u64;
        let opened = self.client.open(start, start + length.as_nanos() as u64);
        opened.map_err(|error| self.server.cause_of(error))?;
        loop {
            let heard = self.client.hear(length);
            match heard.map_err(|error| self.server.cause_of(error))? {
                Heard::Drained => return Ok(start),
                Heard::Report(answered, p50, p99) => live(&format!(
                    "{answered} answered, p50 {p50:.2}, p99 {p99:.2} ms"
                )),
            }
        }
    }
}

impl Server {
    /// Why the client failed. If both processes are in trouble, the server's is the cause.
    fn cause_of(&mut self, error: child::Error) -> Error {
        self.child.check_alive(MOMENT).err().unwrap_or(error).into()
    }
}

/// The distribution of the requests, answered or not.
fn latencies(events: &Events) -> Latencies {
    let silent = events.of(&lanes::unanswered(REQUEST)).iter();
    let silent: HashSet<u64> = silent.map(|event| event.due).collect();
    let mut latencies = Latencies::new();
    for event in events.of(REQUEST) {
        let time = Duration::from_nanos(event.latency);
        match silent.contains(&event.due) {
            true => latencies.unanswered(time),
            false => latencies.record(time),
        }
    }
    latencies
}
