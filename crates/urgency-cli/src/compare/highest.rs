//! The highest rate of each server at which 95 % of the requests are answered within 10 ms, or another
//! quality of service is met.

use super::calm::calmest;
use super::turns::{Titled as _, Turns, take};
use super::{Bar, Contender, Error, Options, Part, Serving, Verdict, check, files};
use serde::{Deserialize, Serialize};
use std::time::Duration;
use urgency_load::search::Search;
use urgency_load::{Arrivals, Pace, Timing};
use urgency_measure::rounds::median;

/// What one contender did in one round.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Row {
    contender: Contender,
    round: u32,
    closed_loop_per_s: f64,
    client_busy: f64,
    highest_per_s: f64,
}

const PART: &str = "highest";
/// The quality of which the results are the scale of the other parts, as it is written.
const QUALITY: &str = "p95<10ms";

/// Measures this part.
pub fn measure(options: &Options) -> Result<Verdict, Error> {
    let wanted = Contender::ALL.into_iter().filter(|c| options.admits(*c));
    let wanted: Vec<_> = wanted.collect();
    let quality = options.quality.to_string();
    let part = part(options);
    let Turns { rows, failures } = take(
        options,
        &part,
        &wanted,
        |row: &Row| row.contender,
        |round, contender| {
            // The search judges by tens of milliseconds: only other processes disturb it.
            let row = calmest(
                options,
                contender.title(),
                |_| 0.0,
                || one(options, contender, round),
            )?;
            eprintln!(
                "{:.0}/s (closed loop {:.0}/s)",
                row.highest_per_s, row.closed_loop_per_s
            );
            Ok(vec![row])
        },
    )?;
    say!(
        "\nHighest rate with {quality}, medians of {} rounds:",
        options.rounds
    );
    say!("{:12} {:>12} {:>14}", "", "requests/s", "closed loop/s");
    for contender in wanted {
        let of = |field: fn(&Row) -> f64| {
            let middle = median(of(&rows, contender).map(field));
            middle.map_or("failed".to_owned(), |middle| format!("{middle:.0}"))
        };
        say!(
            "{:12} {:>12} {:>14}",
            contender.title(),
            of(|row| row.highest_per_s),
            of(|row| row.closed_loop_per_s)
        );
    }
    let in_round = |row: &Row| {
        let peer = of(&rows, Contender::Memcached).find(|peer| peer.round == row.round)?;
        Some(row.highest_per_s / peer.highest_per_s)
    };
    let ratio = median(of(&rows, Contender::Urgency).filter_map(in_round));
    let what = format!("highest rate with {quality}, ours over memcached's");
    Ok(Verdict {
        bars: vec![Bar::at_least(1.0, &what, ratio)],
        failures,
    })
}

/// The name of the file of this part: each quality has its own.
pub fn part(options: &Options) -> String {
    match options.quality.to_string().as_str() {
        QUALITY => PART.to_owned(),
        other => format!("{PART}-{other}"),
    }
}

/// Whether this run measures the scale of the other parts itself.
pub fn gives_scale(options: &Options) -> bool {
    options.wants(Part::Highest) && options.admits(Contender::Memcached) && part(options) == PART
}

/// memcached's highest rate, measured now or before: the scale of the other parts.
pub fn of_memcached(options: &Options) -> Result<f64, Error> {
    let is_its = |row: &Row| row.contender == Contender::Memcached;
    let rows = files::load(options, PART, "memcached's highest rate", is_its)?;
    let rate = median(rows.iter().map(|row| row.highest_per_s));
    Ok(rate.expect("there are rows"))
}

fn of(rows: &[Row], contender: Contender) -> impl Iterator<Item = &Row> {
    rows.iter().filter(move |row| row.contender == contender)
}

fn one(options: &Options, contender: Contender, round: u32) -> Result<Row, Error> {
    let mut serving = Serving::start(options, contender)?;
    let timing = Timing {
        ramp: Duration::from_millis(200),
        grace: Duration::from_secs(1),
        ..Timing::seconds(options.seconds() / 2.0)
    };
    let closed = serving.client.run(Pace::Closed, &timing, &mut |_| ())?;
    check(contender.title(), &closed)?;
    let quality = options.quality;
    let search = Search {
        precision: 0.04,
        confirmations: 1,
    };
    // The closed loop of one request at a time on each connection is no upper bound for the pipelined open loop.
    let most = closed.achieved_per_s * 1.5;
    // To the search a wrong reply is a rate that is too high; here it is the end of this contender.
    let mut wrong = None;
    let found = search.run(&quality, most, |per_s, _| {
        let pace = Pace::Open(per_s, Arrivals::Poisson);
        let outcome = serving.client.run(pace, &timing, &mut |_| ())?;
        wrong = wrong.take().or(check(contender.title(), &outcome).err());
        Ok(quality.verdict(&outcome))
    });
    let found = match wrong {
        Some(wrong) => return Err(wrong),
        None => found?,
    };
    Ok(Row {
        contender,
        round,
        closed_loop_per_s: closed.achieved_per_s,
        client_busy: closed.client.busy_share,
        highest_per_s: found.per_s,
    })
}
