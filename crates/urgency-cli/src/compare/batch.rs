//! The load beside a parallel batch job: at a lower level of the cache's own runtime, against memcached with
//! the same job as a process of its own on the same processors.
//!
//! The job computes the same for all. A server that answers fast by starving the job shows it in the job's units per
//! second, so the units are printed beside the latencies. Three variants are measured, too, without bars: both servers
//! with real-time scheduling, which needs a privilege; memcached beside a job that was started with `nice -n 19`; and
//! ours without `Builder::lower_threads`.

use super::calm::calmest;
use super::process::Process;
use super::rows::Latencies;
use super::slices::{Member, Sliced, alternate};
use super::turns::{Titled, Turns, take_together};
use super::{
    Bar, Contender, Error, Options, Schedule, Scheduled, Serving, Spec, Verdict, highest, threads,
};
use serde::{Deserialize, Serialize};
use urgency_measure::rounds::median;

/// The server, and the job beside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Pair {
    Urgency,
    UrgencyPlain,
    UrgencyRealTime,
    Memcached,
    MemcachedNiced,
    MemcachedRealTime,
}

const PAIRS: [Pair; 6] = [
    Pair::Urgency,
    Pair::UrgencyPlain,
    Pair::UrgencyRealTime,
    Pair::Memcached,
    Pair::MemcachedNiced,
    Pair::MemcachedRealTime,
];
/// The load as a share of memcached's highest rate.
const SHARE: f64 = 0.3;

impl Titled for Pair {
    fn title(self) -> &'static str {
        match self {
            Pair::Urgency => "Urgency, batch",
            Pair::UrgencyPlain => "Urgency, batch at a lower level",
            Pair::Memcached => "memcached + batch process",
            Pair::UrgencyRealTime => "Urgency, batch, real-time polling",
            Pair::MemcachedNiced => "memcached + batch process, nice 19",
            Pair::MemcachedRealTime => "memcached, SCHED_RR + batch process",
        }
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Row {
    pair: Pair,
    round: u32,
    latencies: Latencies,
    units_per_s: f64,
}

/// Measures this part.
pub fn measure(options: &Options) -> Result<Verdict, Error> {
    let per_s = highest::of_memcached(options)? * SHARE;
    let admitted = |pair: &Pair| match pair {
        Pair::Urgency | Pair::UrgencyPlain | Pair::UrgencyRealTime => {
            options.admits(Contender::Urgency)
        }
        Pair::Memcached | Pair::MemcachedNiced | Pair::MemcachedRealTime => {
            options.admits(Contender::Memcached)
        }
    };
    let pairs: Vec<_> = PAIRS.into_iter().filter(admitted).collect();
    let Turns { rows, failures } = take_together(
        options,
        "batch",
        &pairs,
        |row: &Row| row.pair,
        |round, order, note| {
            let mut members: Vec<_> = order.iter().map(|&pair| start(options, pair)).collect();
            let lag = |rows: &Vec<Row>| {
                let lags = rows.iter().map(|row| row.latencies.lag_p99);
                lags.fold(0.0, f64::max)
            };
            let rows = calmest(options, "beside a batch job", lag, || {
                let slices = alternate(options, &mut members, per_s, units, Pair::title);
                let row = |(pair, sliced): (Pair, Sliced)| Row {
                    pair,
                    round,
                    latencies: sliced.latencies(),
                    units_per_s: sliced.counted[0] / sliced.seconds,
                };
                Ok(slices.into_iter().map(row).collect())
            })?;
            for Member {
                contender, serving, ..
            } in members
            {
                let its = rows.iter().filter(|row| row.pair == contender);
                note(contender, serving.map(|_| its.cloned().collect()))?;
            }
            Ok(())
        },
    )?;
    say!("\nBeside a parallel batch job, {per_s:.0} requests/s:");
    say!("{:36}{}  batch units/s", "", Latencies::HEADING);
    for pair in pairs {
        let here: Vec<_> = rows.iter().filter(|row| row.pair == pair).collect();
        let latencies: Vec<_> = here.iter().map(|row| row.latencies).collect();
        let units = median(here.iter().map(|row| row.units_per_s)).unwrap_or(0.0);
        if let Some(latencies) = Latencies::medians(&latencies) {
            say!("{:36}{} {units:14.0}", pair.title(), latencies.columns());
        }
    }
    let p99 = |pair, round| {
        let row = rows
            .iter()
            .find(|row| row.pair == pair && row.round == round && row.latencies.are_calm())?;
        Some(row.latencies.p99)
    };
    let in_round = |round| Some(p99(Pair::Urgency, round)? / p99(Pair::Memcached, round)?);
    let ratio = median((0..options.rounds).filter_map(in_round));
    let what = "p99 beside a batch job, ours over memcached's with a batch process";
    Ok(Verdict {
        bars: vec![Bar::at_most(1.0 / 3.0, what, ratio)],
        failures,
    })
}

fn start(options: &Options, pair: Pair) -> Member<Pair> {
    let embedded = |scheduled| Serving::start_embedded(options, true, scheduled);
    let serving = match pair {
        Pair::Urgency => embedded(Scheduled::ThreadsLowered),
        Pair::UrgencyPlain => embedded(Scheduled::Usual),
        Pair::UrgencyRealTime => embedded(Scheduled::RealTimePolling),
        Pair::Memcached | Pair::MemcachedNiced => Serving::start(options, Contender::Memcached),
        Pair::MemcachedRealTime => {
            Serving::start_after(options, Contender::Memcached, &["chrt", "-r", "1"])
        }
    };
    let member = Member::new(pair, serving);
    match pair {
        Pair::Urgency | Pair::UrgencyPlain | Pair::UrgencyRealTime => member,
        _ => match start_job(options, pair) {
            Ok(job) => member.with(job),
            Err(error) => Member::new(pair, Err(error)),
        },
    }
}

/// What the batch job has computed so far.
fn units(member: &mut Member<Pair>) -> Result<Vec<f64>, Error> {
    let server = member.serving.as_mut().expect("it has not failed");
    let process = member.beside.as_mut().unwrap_or(&mut server.process);
    Ok(vec![process.ask()?["units"]])
}

fn start_job(options: &Options, pair: Pair) -> Result<Process, Error> {
    let spec = Spec {
        port: None,
        threads: threads(options),
        batch: true,
        scheduled: Scheduled::Usual,
        schedule: Schedule::PROMPT,
    };
    let niceness = if pair == Pair::MemcachedNiced { 19 } else { 0 };
    let mut job = spec.start("the batch job", niceness)?;
    // Its first answer says that it runs.
    job.ask()?;
    Ok(job)
}
