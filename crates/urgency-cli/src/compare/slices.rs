//! Contenders that alternate: all servers are alive, and all but one are stopped.
//!
//! The host decides from one second to the next how fast this machine is. So a latency is not measured in one run of
//! seconds for each contender, but in slices of 200 ms in turn. The order rotates, and is reversed each second time.
//! Canaries mark the intervals in which the host had a processor; requests that were due near one of them are left out,
//! for all contenders by the same rule. Each client draws the same requests at the same times.
//!
//! A slice shows no queue that takes longer to build up. So the rates at which a server saturates are whole runs, and
//! so is background work, of which one cycle takes seconds.

use super::rows::Latencies;
use super::{Error, Options, Serving, check};
use std::time::{Duration, Instant};
use urgency_load::{Arrivals, Pace, Timing};
use urgency_measure::events::Events;
use urgency_measure::rounds::in_round;
use urgency_measure::slices::{Canaries, unspoilt};

/// Load of a slice that counts.
const SLICE: Duration = Duration::from_millis(200);
/// Load before it: what became due while the server was stopped is done by then.
const SETTLE: Duration = Duration::from_millis(25);
/// How long before and after a theft a request is thought to feel it.
const REACH: Duration = Duration::from_millis(2);

/// A server that takes part.
pub struct Member<C> {
    /// Which.
    pub contender: C,
    /// The server and its client, until it fails.
    pub serving: Result<Serving, Error>,
    /// What else is alive only in its slices, such as a batch job beside it.
    pub beside: Option<super::Process>,
}

impl<C> Member<C> {
    /// A server that is stopped until its first slice.
    pub fn new(contender: C, serving: Result<Serving, Error>) -> Self {
        let member = Member {
            contender,
            serving,
            beside: None,
        };
        member.stop();
        member
    }

    /// The same with a process beside it.
    pub fn with(self, beside: super::Process) -> Self {
        let beside = Some(beside);
        let member = Member { beside, ..self };
        member.stop();
        member
    }

    fn processes(&self) -> impl Iterator<Item = &super::Process> {
        let server = self.serving.as_ref().ok().map(|serving| &serving.process);
        server.into_iter().chain(&self.beside)
    }

    /// Stops it.
    pub fn stop(&self) {
        self.processes().for_each(super::Process::stop);
    }

    /// Lets it go on.
    pub fn go_on(&self) {
        self.processes().for_each(super::Process::go_on);
    }
}

/// What a server gave in its slices.
#[derive(Clone, Debug, Default)]
pub struct Sliced {
    events: Events,
    answered: u64,
    busy: f64,
    /// The time in which it was alive, in seconds.
    pub seconds: f64,
    /// Processor time of the server.
    pub cpu_seconds: f64,
    /// What `asked` gave at the end of each slice, less what it gave at its beginning, in the order of its numbers.
    pub counted: Vec<f64>,
}

impl Sliced {
    /// The latencies of what the host did not spoil.
    pub fn latencies(&self) -> Latencies {
        let seconds = self.seconds.max(f64::MIN_POSITIVE);
        Latencies::of_events(&self.events, self.answered, seconds, self.busy)
    }
}

/// Gives each member slices of `per_s` requests a second, as many as make up the seconds of a point. `asked` asks a
/// member for numbers that grow. A member that fails is out, with its error in its place.
pub fn alternate<C: Copy + PartialEq>(
    options: &Options,
    members: &mut [Member<C>],
    per_s: f64,
    mut asked: impl FnMut(&mut Member<C>) -> Result<Vec<f64>, Error>,
    title: impl Fn(C) -> &'static str,
) -> Vec<(C, Sliced)> {
    let processors = [options.servers_on(), options.client_on()];
    let canaries = processors.map(Canaries::on);
    let order: Vec<usize> = (0..members.len()).collect();
    let mut all = vec![Sliced::default(); members.len()];
    let slices = (options.seconds() / SLICE.as_secs_f64()).ceil().max(1.0) as u32;
    for slice in 0..slices {
        for index in in_round(slice, &order) {
            let member = &mut members[index];
            if member.serving.is_err() {
                continue;
            }
            let name = title(member.contender);
            member.go_on();
            let gave = one(member, &mut all[index], per_s, &mut asked, name);
            member.stop();
            if let Err(error) = gave {
                member.serving = Err(error);
            }
        }
    }
    let spoilt: Vec<_> = canaries.iter().flat_map(Canaries::spoilt).collect();
    let alive = members
        .iter()
        .zip(all)
        .filter(|(member, _)| member.serving.is_ok());
    let unspoilt = alive.map(|(member, sliced)| {
        let (events, left_out) = unspoilt(&sliced.events, &spoilt, REACH);
        let share = left_out as f64 / sliced.events.len().max(1) as f64;
        eprintln!(
            "{}: {:.1} % of the requests left out for {} thefts",
            title(member.contender),
            share * 100.0,
            spoilt.len()
        );
        (member.contender, Sliced { events, ..sliced })
    });
    unspoilt.collect()
}

fn one<C: Copy>(
    member: &mut Member<C>,
    all: &mut Sliced,
    per_s: f64,
    asked: &mut impl FnMut(&mut Member<C>) -> Result<Vec<f64>, Error>,
    title: &str,
) -> Result<(), Error> {
    let timing = Timing {
        ramp: SETTLE,
        duration: SLICE,
        grace: Duration::from_secs(1),
    };
    let before = asked(member)?;
    let serving = member.serving.as_mut().expect("it has not failed");
    let (cpu, start) = (serving.process.cpu_seconds(), Instant::now());
    serving.client.log_requests(true);
    let pace = Pace::Open(per_s, Arrivals::Poisson);
    let outcome = serving.client.run(pace, &timing, &mut |_| ());
    serving.client.log_requests(false);
    let outcome = outcome?;
    check(title, &outcome)?;
    all.seconds += start.elapsed().as_secs_f64();
    all.cpu_seconds += serving.process.cpu_seconds() - cpu;
    all.answered += outcome.counts.answered;
    all.busy = all.busy.max(outcome.client.busy_share);
    all.events.append(outcome.events);
    let grown = asked(member)?.into_iter().zip(before);
    let grown: Vec<f64> = grown.map(|(after, before)| after - before).collect();
    all.counted.resize(grown.len(), 0.0);
    all.counted
        .iter_mut()
        .zip(grown)
        .for_each(|(sum, more)| *sum += more);
    Ok(())
}
