//! Is the background work harmless? The same load with a growing table and a running crawler, and without.
//!
//! Beside the load a second client writes keys of its own at a fixed rate. In the first run all of them are new, and the table grows; and the
//! crawler is asked to look through everything again and again. In the second run the same keys are written again, at the same rate, and nothing grows or crawls. What differs is the background work.

use super::process::{command, statistics};
use super::rows::{Latencies, median};
use super::turns::{Titled as _, Turns, take};
use super::{Bar, Contender, Error, Options, Serving, Verdict, check, highest};
use serde::{Deserialize, Serialize};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;
use urgency_load::{Arrivals, Client, Load, Outcome, Pace, Popularity, Timing};

/// The load as a share of memcached's highest rate. One processor has to do for both clients.
const SHARE: f64 = 0.15;
/// Writes of the second client as a share of that.
const WRITES: f64 = 0.5;
/// The most that the background work may change the p99, as a ratio.
const BAR: f64 = 1.2;
const CRAWL_EVERY: Duration = Duration::from_millis(100);

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Row {
    contender: Contender,
    round: u32,
    with: Latencies,
    without: Latencies,
    /// Doublings of the table during the first run.
    doublings: f64,
    /// How often the crawler was started.
    crawls: u32,
}

/// Measures this part.
pub fn measure(options: &Options) -> Result<Verdict, Error> {
    let per_s = highest::of_memcached(options)? * SHARE;
    let contenders = [Contender::Urgency, Contender::Memcached];
    let contenders: Vec<_> = contenders
        .into_iter()
        .filter(|c| options.admits(*c))
        .collect();
    let Turns { rows, failures } = take(options, "background", &contenders, |round, contender| {
        Ok(vec![one(options, contender, round, per_s)?])
    })?;
    println!(
        "\nWhile the table grows and the crawler runs, {per_s:.0} requests/s beside {:.0} writes/s:",
        per_s * WRITES
    );
    println!(
        "{:12} {:8}{}  doublings  crawls",
        "",
        "",
        Latencies::HEADING
    );
    for contender in contenders {
        let here: Vec<_> = rows
            .iter()
            .filter(|row| row.contender == contender)
            .collect();
        let latencies = |of: fn(&Row) -> Latencies| {
            let runs: Vec<_> = here.iter().map(|row| of(row)).collect();
            Latencies::medians(&runs).map_or(String::new(), |latencies| latencies.columns())
        };
        let of = |field: fn(&Row) -> f64| median(here.iter().map(|row| field(row))).unwrap_or(0.0);
        println!(
            "{:12} {:8}{} {:10.0} {:7.0}",
            contender.title(),
            "with",
            latencies(|row| row.with),
            of(|row| row.doublings),
            of(|row| f64::from(row.crawls)),
        );
        println!("{:12} {:8}{}", "", "without", latencies(|row| row.without));
    }
    let ours = rows
        .iter()
        .filter(|row| row.contender == Contender::Urgency);
    let ours: Vec<_> = ours.collect();
    let grew = ours
        .iter()
        .all(|row| row.doublings >= 1.0 && row.crawls > 0);
    let ratio = median(ours.iter().map(|row| row.with.p99 / row.without.p99));
    let what = "p99 with the table growing and the crawler running, over that without";
    Ok(Verdict {
        bars: vec![Bar::at_most(BAR, what, ratio.filter(|_| grew))],
        failures,
    })
}

fn one(options: &Options, contender: Contender, round: u32, per_s: f64) -> Result<Row, Error> {
    let mut serving = Serving::start(options, contender)?;
    let port = serving.port;
    let power = || {
        statistics(port, "")
            .get("hash_power_level")
            .copied()
            .unwrap_or(0.0)
    };
    let before = power();
    let done = AtomicBool::new(false);
    let (with, crawls) = thread::scope(|scope| {
        let crawler = scope.spawn(|| crawl(port, &done));
        let with = both(options, &mut serving, per_s);
        done.store(true, Ordering::Relaxed);
        (with, crawler.join().unwrap_or(0))
    });
    let with = with?;
    let doublings = power() - before;
    let without = both(options, &mut serving, per_s)?;
    check(contender.title(), &with)?;
    check(contender.title(), &without)?;
    Ok(Row {
        contender,
        round,
        with: Latencies::of(&with),
        without: Latencies::of(&without),
        doublings,
        crawls,
    })
}

/// The load, and the writes beside it, which are the same ones each time.
fn both(options: &Options, serving: &mut Serving, per_s: f64) -> Result<Outcome, Error> {
    let timing = Timing {
        grace: Duration::from_secs(1),
        ..Timing::seconds(options.seconds() * 2.0)
    };
    let mut writes: Load = options.load(serving.port);
    writes.connections = 8;
    writes.threads = 1;
    writes.workload.gets = 0.0;
    // Another size makes other keys; so many that hardly one is drawn twice.
    writes.workload.key_size += 1;
    writes.workload.keys = 100_000_000;
    writes.workload.popularity = Popularity::Uniform;
    writes.workload.verify = false;
    writes.workload.values = "20".parse().expect("a size");
    // It shares the processor of the first client, which spins, and needs it now and then only.
    writes.waiting = urgency_load::Waiting::Sleep;
    let mut writer = Client::connect(writes)?;
    thread::scope(|scope| {
        let pace = Pace::Open(per_s * WRITES, Arrivals::Poisson);
        let written = scope.spawn(move || writer.run(pace, &timing, &mut |_| ()));
        let pace = Pace::Open(per_s, Arrivals::Poisson);
        let outcome = serving.client.run(pace, &timing, &mut |_| ())?;
        match written.join() {
            Ok(written) => written?,
            Err(panic) => std::panic::resume_unwind(panic),
        };
        Ok(outcome)
    })
}

/// Asks for a crawl through everything again and again; returns how often one began.
fn crawl(port: u16, done: &AtomicBool) -> u32 {
    let mut begun = 0;
    while !done.load(Ordering::Relaxed) {
        // It is BUSY while one is under way.
        let answer = command(port, "lru_crawler crawl all", &["OK", "BUSY", "ERROR"]);
        begun += u32::from(answer.is_ok_and(|lines| lines == ["OK"]));
        thread::sleep(CRAWL_EVERY);
    }
    begun
}
