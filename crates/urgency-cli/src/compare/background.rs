//! Is the background work harmless? The same load with a growing table and a running crawler, and without.
//!
//! Beside the load new keys are written at a fixed rate. In the first run the table doubles on their account,
//! and the crawler is asked to look through everything: once, or again and again. In the second run as many
//! other new keys are written, for which the table of the first is large enough, and nothing crawls. What
//! differs is the background work, and that there are a third more items.

use super::calm::calmest;
use super::process::{command, statistics};
use super::rows::Latencies;
use super::turns::{Titled, Turns, take};
use super::{Bar, Contender, Error, Options, Scheduled, Serving, Verdict, check, highest};
use serde::{Deserialize, Serialize};
use std::io::{self, Write as _};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use urgency_load::class::{self, Class};
use urgency_load::{Arrivals, Outcome, Pace, Timing, Waiting};
use urgency_measure::rounds::median;

/// The load as a share of memcached's highest rate.
const SHARE: f64 = 0.3;
/// New keys as a share of that.
const WRITES: f64 = 0.2;
/// How often they are sent.
const BURST_EVERY: Duration = Duration::from_millis(2);
/// The most that the background work may change the p99, as a ratio.
const BAR: f64 = 1.2;
/// How long after the load began the crawler is asked for the first time.
const FIRST_CRAWL: Duration = Duration::from_millis(700);
const CRAWL_EVERY: Duration = Duration::from_millis(100);

/// Whose background work, and how much.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Case {
    /// Ours, with one crawl in the run. The bar is about this one.
    Once,
    /// Ours, with one crawl after the other.
    Again,
    /// The same in a runtime without `Builder::lower_threads`.
    AgainPlain,
    /// The same of memcached, whose table is larger to begin with and does not grow here.
    Memcached,
}

const CASES: [Case; 4] = [Case::Once, Case::Again, Case::AgainPlain, Case::Memcached];

impl Case {
    fn contender(self) -> Contender {
        match self {
            Case::Once | Case::Again | Case::AgainPlain => Contender::Urgency,
            Case::Memcached => Contender::Memcached,
        }
    }
}

impl Titled for Case {
    fn title(self) -> &'static str {
        match self {
            Case::Once => "Urgency, one crawl",
            Case::Again => "Urgency, crawl after crawl",
            Case::AgainPlain => "the same, nobody lowered",
            Case::Memcached => "memcached, crawl after crawl",
        }
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Row {
    case: Case,
    round: u32,
    with: Latencies,
    without: Latencies,
    /// Doublings of the table during the first run.
    doublings: f64,
    /// During the second.
    doublings_without: f64,
    /// How often the crawler was started.
    crawls: u32,
}

/// Measures this part.
pub fn measure(options: &Options) -> Result<Verdict, Error> {
    let per_s = highest::of_memcached(options)? * SHARE;
    let cases = CASES
        .into_iter()
        .filter(|case| options.admits(case.contender()));
    let cases: Vec<_> = cases.collect();
    let Turns { rows, failures } = take(
        options,
        "background",
        &cases,
        |row: &Row| row.case,
        |round, case| {
            let lag = |row: &Row| row.with.lag_p99.max(row.without.lag_p99);
            let row = calmest(options, case.title(), lag, || {
                one(options, case, round, per_s)
            })?;
            Ok(vec![row])
        },
    )?;
    say!(
        "\nWhile the table grows and the crawler runs, {per_s:.0} requests/s beside {:.0} writes/s:",
        per_s * WRITES
    );
    say!("{:38}{}  doublings  crawls", "", Latencies::HEADING);
    for case in cases {
        let here: Vec<_> = rows.iter().filter(|row| row.case == case).collect();
        let latencies = |of: fn(&Row) -> Latencies| {
            let runs: Vec<_> = here.iter().map(|row| of(row)).collect();
            Latencies::medians(&runs).map_or(String::new(), |latencies| latencies.columns())
        };
        let of = |field: fn(&Row) -> f64| median(here.iter().map(|row| field(row))).unwrap_or(0.0);
        say!(
            "{:30}{:8}{} {:10.0} {:7.0}",
            case.title(),
            "with",
            latencies(|row| row.with),
            of(|row| row.doublings),
            of(|row| f64::from(row.crawls)),
        );
        say!(
            "{:30}{:8}{} {:10.0} {:7}",
            "",
            "without",
            latencies(|row| row.without),
            of(|row| row.doublings_without),
            0,
        );
    }
    let once: Vec<_> = rows.iter().filter(|row| row.case == Case::Once).collect();
    let grew = once
        .iter()
        .all(|row| row.doublings >= 1.0 && row.doublings_without == 0.0 && row.crawls > 0);
    let calm = once
        .iter()
        .filter(|row| row.with.are_calm() && row.without.are_calm());
    let ratio = median(calm.map(|row| row.with.p99 / row.without.p99));
    let what = "p99 with the table growing and a crawl through everything, over that without";
    Ok(Verdict {
        bars: vec![Bar::at_most(BAR, what, ratio.filter(|_| grew))],
        failures,
    })
}

fn one(options: &Options, case: Case, round: u32, per_s: f64) -> Result<Row, Error> {
    let contender = case.contender();
    let mut serving = match case {
        Case::AgainPlain => Serving::start_embedded(options, false, Scheduled::Usual)?,
        _ => Serving::start(options, contender)?,
    };
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
        let crawler = scope.spawn(|| crawl(port, case == Case::Once, &done));
        let with = both(options, &mut serving, per_s, "first");
        done.store(true, Ordering::Relaxed);
        (with, crawler.join().unwrap_or(0))
    });
    let (with, between) = (with?, power());
    let without = both(options, &mut serving, per_s, "second")?;
    check(contender.title(), &with)?;
    check(contender.title(), &without)?;
    Ok(Row {
        case,
        round,
        with: Latencies::of(&with),
        without: Latencies::of(&without),
        doublings: between - before,
        doublings_without: power() - between,
        crawls,
    })
}

/// The load, and beside it new keys of this `kind`.
fn both(
    options: &Options,
    serving: &mut Serving,
    per_s: f64,
    kind: &str,
) -> Result<Outcome, Error> {
    let timing = Timing {
        // The table begins to grow half a second after the first write.
        ramp: Duration::from_millis(200),
        grace: Duration::from_secs(1),
        ..Timing::seconds(options.seconds() * 1.5)
    };
    let (port, done) = (serving.port, AtomicBool::new(false));
    thread::scope(|scope| {
        let writer = scope.spawn(|| insert(options, port, kind, per_s * WRITES, &done));
        let pace = Pace::Open(per_s, Arrivals::Poisson);
        let outcome = serving.client.run(pace, &timing, &mut |_| ());
        done.store(true, Ordering::Relaxed);
        let written = writer.join().expect("the writer does not panic");
        written.map_err(Error::Insert)?;
        Ok(outcome?)
    })
}

/// Writes new keys of this `kind`, so many each second, until all is `done`. It shares the processor of the
/// client, which spins there: so it sends bursts, without replies, and has its processor at once for the 50
/// us that each takes. Written one by one they made the client 0.5 to 1 ms late.
fn insert(
    options: &Options,
    port: u16,
    kind: &str,
    per_s: f64,
    done: &AtomicBool,
) -> io::Result<()> {
    options.client_on().bind()?;
    class::enter(Class::RealTime, Waiting::Sleep);
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.set_nodelay(true)?;
    let (start, mut written) = (Instant::now(), 0u64);
    while !done.load(Ordering::Relaxed) {
        thread::sleep(BURST_EVERY);
        let due = (start.elapsed().as_secs_f64() * per_s) as u64;
        let burst: String = (written..due)
            .map(|number| {
                format!("set {kind}-{number:020} 0 0 20 noreply\r\n01234567890123456789\r\n")
            })
            .collect();
        stream.write_all(burst.as_bytes())?;
        written = due;
    }
    Ok(())
}

/// Asks for a crawl through everything, `once` or again and again; returns how often one began.
fn crawl(port: u16, once: bool, done: &AtomicBool) -> u32 {
    let mut begun = 0;
    thread::sleep(FIRST_CRAWL);
    while !done.load(Ordering::Relaxed) && (begun == 0 || !once) {
        // It is BUSY while one is under way.
        let answer = command(port, "lru_crawler crawl all", &["OK", "BUSY", "ERROR"]);
        begun += u32::from(answer.is_ok_and(|lines| lines == ["OK"]));
        thread::sleep(CRAWL_EVERY);
    }
    begun
}
