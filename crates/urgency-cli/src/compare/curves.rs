//! Latencies of each server against the offered rate (figures 1 and 3 of the paper), its processor time, and
//! what our runtime says about where that went (figure 6: running and waste).
//!
//! The rates are shares of memcached's highest rate. Up to the bar's the contenders alternate in slices (`slices.rs`).
//! Above it a queue may grow for seconds, so a point is a whole run there. A server that is far beyond its limit is
//! not asked for more.

use super::calm::calmest;
use super::rows::Latencies;
use super::slices::{Member, Sliced, alternate};
use super::turns::{Titled as _, Turns, take_together};
use super::{
    Bar, Contender, Error, Options, Scheduled, Serving, Verdict, check, files, highest, picture,
};
use serde::{Deserialize, Serialize};
use std::time::{Duration, Instant};
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
    let turns = take_together(
        options,
        "curves",
        &wanted,
        |point: &Point| point.contender,
        |round, order, note| {
            let mut members: Vec<_> = order
                .iter()
                .map(|&contender| Member::new(contender, start(options, contender)))
                .collect();
            let mut points = Vec::new();
            for share in SHARES {
                points.extend(match share <= BAR {
                    true => together(options, &mut members, (round, share), base)?,
                    false => apart(options, &mut members, (round, share), base, &points),
                });
            }
            for Member {
                contender, serving, ..
            } in members
            {
                let of = |point: &&Point| point.contender == contender;
                let its = || points.iter().filter(of).cloned().collect();
                note(contender, serving.map(|_| its()))?;
            }
            Ok(())
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
    say!("picture: {}", options.picture.display());
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

fn start(options: &Options, contender: Contender) -> Result<Serving, Error> {
    match contender {
        // The same server, in a process that can be asked for its runtime's accounts.
        Contender::Urgency => Serving::start_embedded(options, false, Scheduled::ThreadsLowered),
        _ => Serving::start(options, contender),
    }
}

/// Names of the accounts that a point has.
const ACCOUNTS: [&str; 3] = ["running", "scheduling", "searching"];

/// What ours says of its time, and the others do not.
fn accounts(member: &mut Member<Contender>) -> Result<Vec<f64>, Error> {
    if member.contender != Contender::Urgency {
        return Ok(Vec::new());
    }
    let serving = member.serving.as_mut().expect("it has not failed");
    let account = serving.process.ask()?;
    Ok(ACCOUNTS.map(|name| account[name]).to_vec())
}

/// The points of all contenders at a share, in slices.
fn together(
    options: &Options,
    members: &mut [Member<Contender>],
    (round, share): (u32, f64),
    base: f64,
) -> Result<Vec<Point>, Error> {
    let offered_per_s = base * share;
    let title = format!("{:.0} %", share * 100.0);
    let lag = |points: &Vec<Point>| {
        let lags = points.iter().map(|point| point.latencies.lag_p99);
        lags.fold(0.0, f64::max)
    };
    calmest(options, &title, lag, || {
        let slices = alternate(options, members, offered_per_s, accounts, Contender::title);
        let point = |(contender, sliced): (Contender, Sliced)| Point {
            contender,
            round,
            share,
            offered_per_s,
            latencies: sliced.latencies(),
            cpu_share: sliced.cpu_seconds / sliced.seconds,
            running: sliced.counted.first().map(|s| s / sliced.seconds),
            scheduling: sliced.counted.get(1).map(|s| s / sliced.seconds),
            searching: sliced.counted.get(2).map(|s| s / sliced.seconds),
        };
        Ok(slices.into_iter().map(point).collect())
    })
}

/// The points at a share of the contenders that no smaller share saturated, one after the other.
fn apart(
    options: &Options,
    members: &mut [Member<Contender>],
    (round, share): (u32, f64),
    base: f64,
    before: &[Point],
) -> Vec<Point> {
    let is_saturated = |contender| {
        let mut its = before.iter().rev();
        its.find(|point| point.contender == contender)
            .is_some_and(|last| last.latencies.p50 > SATURATED)
    };
    // Beyond the highest rate the client is busy with what comes too late.
    let lag = |point: &Point| match share > 1.0 {
        true => 0.0,
        false => point.latencies.lag_p99,
    };
    let mut points = Vec::new();
    for member in members {
        let contender = member.contender;
        if member.serving.is_err() || is_saturated(contender) {
            continue;
        }
        member.go_on();
        let point = calmest(options, contender.title(), lag, || {
            one(options, member, (round, share), base)
        });
        member.stop();
        match point {
            Ok(point) => points.push(point),
            Err(error) => member.serving = Err(error),
        }
    }
    points
}

/// One contender at one rate, in a run of its own.
fn one(
    options: &Options,
    member: &mut Member<Contender>,
    (round, share): (u32, f64),
    base: f64,
) -> Result<Point, Error> {
    let timing = Timing {
        ramp: Duration::from_millis(300),
        grace: Duration::from_secs(1),
        ..Timing::seconds(options.seconds())
    };
    let contender = member.contender;
    let offered_per_s = base * share;
    let before = accounts(member)?;
    let serving = member.serving.as_mut().expect("it has not failed");
    let (cpu, start) = (serving.process.cpu_seconds(), Instant::now());
    let pace = Pace::Open(offered_per_s, Arrivals::Poisson);
    let outcome = serving.client.run(pace, &timing, &mut |_| ())?;
    let seconds = start.elapsed().as_secs_f64();
    let cpu_share = (serving.process.cpu_seconds() - cpu) / seconds;
    check(contender.title(), &outcome)?;
    let after = accounts(member)?;
    let per_s = |index: usize| Some((after.get(index)? - before.get(index)?) / seconds);
    Ok(Point {
        contender,
        round,
        share,
        offered_per_s,
        latencies: Latencies::of(&outcome),
        cpu_share,
        running: per_s(0),
        scheduling: per_s(1),
        searching: per_s(2),
    })
}

/// The points of a contender at a share, over the rounds.
pub fn at(points: &[Point], contender: Contender, share: f64) -> Vec<Point> {
    let wanted = |point: &&Point| point.contender == contender && point.share == share;
    points.iter().filter(wanted).cloned().collect()
}

fn print(points: &[Point], contenders: &[Contender], base: f64) {
    say!("\nLatencies against the offered rate; 100 % is memcached's highest rate, {base:.0}/s:");
    say!(
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
            say!(
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
