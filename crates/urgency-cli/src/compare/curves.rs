//! Latencies of each server against the offered rate (figures 1 and 3 of the paper), its processor time, and
//! what our runtime says about where that went (figure 6: running and waste).
//!
//! The rates are shares of memcached's highest rate. A server that is far beyond its limit is not asked for more.

use super::calm::calmest;
use super::rows::Latencies;
use super::turns::{Titled as _, Turns, take};
use super::{
    Bar, Contender, Error, Options, Scheduled, Serving, Verdict, check, files, highest, picture,
};
use serde::{Deserialize, Serialize};
use std::time::Duration;
use urgency_load::{Arrivals, Pace, Timing};
use urgency_measure::rounds::median;

/// Shares of memcached's highest rate.
const SHARES: [f64; 9] = [0.1, 0.2, 0.4, 0.6, 0.8, 0.9, 1.0, 1.1, 1.2];
/// The share of the bar.
const BAR: f64 = 0.8;
/// A server with a median latency above this, in milliseconds, is saturated.
const SATURATED: f64 = 100.0;

/// One contender at one rate.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Point {
    /// Which.
    pub contender: Contender,
    /// In which round.
    pub round: u32,
    /// The share of memcached's highest rate.
    pub share: f64,
    /// Requests per second.
    pub offered_per_s: f64,
    /// The latencies.
    pub latencies: Latencies,
    /// Processor seconds of the server in each second.
    pub cpu_share: f64,
    /// Of ours: the workers' time, each in seconds per second.
    pub running: Option<f64>,
    /// See there.
    pub scheduling: Option<f64>,
    /// See there: what the paper calls waste.
    pub searching: Option<f64>,
}

/// Measures this part.
pub fn measure(options: &Options) -> Result<Verdict, Error> {
    let base = highest::of_memcached(options)?;
    let wanted = Contender::ALL.into_iter().filter(|c| options.admits(*c));
    let wanted: Vec<_> = wanted.collect();
    let turns = take(
        options,
        "curves",
        &wanted,
        |point: &Point| point.contender,
        |round, contender| {
            let mut points = Vec::new();
            let embedded = contender == Contender::Urgency;
            let mut serving = match embedded {
                // The same server, in a process that can be asked for its runtime's accounts.
                true => Serving::start_embedded(options, false, Scheduled::ThreadsLowered)?,
                false => Serving::start(options, contender)?,
            };
            for share in SHARES {
                // Beyond the highest rate the client is busy with what comes too late.
                let lag = |point: &Point| match share > 1.0 {
                    true => 0.0,
                    false => point.latencies.lag_p99,
                };
                let point = calmest(options, contender.title(), lag, || {
                    one(options, &mut serving, (contender, round, share), base)
                })?;
                let is_saturated = point.latencies.p50 > SATURATED;
                points.push(point);
                if is_saturated {
                    break;
                }
            }
            Ok(points)
        },
    )?;
    let Turns {
        rows: points,
        failures,
    } = turns;
    print(&points, &wanted, base);
    files::write(
        options.picture.clone(),
        &picture::draw(&points).map_err(Error::Draw)?,
    )?;
    println!("picture: {}", options.picture.display());
    let p99 = |contender, round| {
        let point = points.iter().find(|point| {
            let is_it = point.contender == contender && point.round == round && point.share == BAR;
            is_it && point.latencies.are_calm()
        })?;
        Some(point.latencies.p99)
    };
    let in_round =
        |round| Some(p99(Contender::Urgency, round)? / p99(Contender::Memcached, round)?);
    let ratio = median((0..options.rounds).filter_map(in_round));
    let what = "p99 at 80 % of memcached's highest rate, ours over memcached's";
    Ok(Verdict {
        bars: vec![Bar::at_most(1.0, what, ratio)],
        failures,
    })
}

fn one(
    options: &Options,
    serving: &mut Serving,
    (contender, round, share): (Contender, u32, f64),
    base: f64,
) -> Result<Point, Error> {
    let timing = Timing {
        ramp: Duration::from_millis(300),
        grace: Duration::from_secs(1),
        ..Timing::seconds(options.seconds())
    };
    let offered_per_s = base * share;
    let embedded = contender == Contender::Urgency;
    let ask = |serving: &mut Serving| match embedded {
        true => serving.process.ask().map(Some),
        false => Ok(None),
    };
    let (before, cpu, start) = (
        ask(serving)?,
        serving.process.cpu_seconds(),
        std::time::Instant::now(),
    );
    let pace = Pace::Open(offered_per_s, Arrivals::Poisson);
    let outcome = serving.client.run(pace, &timing, &mut |_| ())?;
    let seconds = start.elapsed().as_secs_f64();
    let cpu_share = (serving.process.cpu_seconds() - cpu) / seconds;
    let after = ask(serving)?;
    check(contender.title(), &outcome)?;
    let per_s = |name: &str| {
        let (before, after) = (before.as_ref()?.get(name)?, after.as_ref()?.get(name)?);
        Some((after - before) / seconds)
    };
    Ok(Point {
        contender,
        round,
        share,
        offered_per_s,
        latencies: Latencies::of(&outcome),
        cpu_share,
        running: per_s("running"),
        scheduling: per_s("scheduling"),
        searching: per_s("searching"),
    })
}

/// The points of a contender at a share, over the rounds.
pub fn at(points: &[Point], contender: Contender, share: f64) -> Vec<Point> {
    let wanted = |point: &&Point| point.contender == contender && point.share == share;
    points.iter().filter(wanted).cloned().collect()
}

fn print(points: &[Point], contenders: &[Contender], base: f64) {
    println!(
        "\nLatencies against the offered rate; 100 % is memcached's highest rate, {base:.0}/s:"
    );
    println!(
        "{:>12} {:12}{}    cpu  running  scheduling  waste",
        "offered/s",
        "",
        Latencies::HEADING
    );
    for share in SHARES {
        for contender in contenders {
            let here = at(points, *contender, share);
            let latencies: Vec<_> = here.iter().map(|point| point.latencies).collect();
            let Some(latencies) = Latencies::medians(&latencies) else {
                continue;
            };
            let of = |field: fn(&Point) -> Option<f64>| median(here.iter().filter_map(field));
            let say = |value: Option<f64>| value.map_or("-".to_owned(), |v| format!("{v:.3}"));
            println!(
                "{:6.0} {:3.0} % {:12}{} {:>6} {:>8} {:>11} {:>6}",
                base * share,
                share * 100.0,
                contender.title(),
                latencies.columns(),
                say(of(|point| Some(point.cpu_share))),
                say(of(|point| point.running)),
                say(of(|point| point.scheduling)),
                say(of(|point| point.searching)),
            );
        }
    }
}
