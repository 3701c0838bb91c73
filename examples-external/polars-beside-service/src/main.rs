//! A service beside polars, which makes a pool of its own and knows nothing of Urgency.
//!
//! Every 5 ms a request sorts 20,000 numbers, 1,000 times in all. Beside it queries run without an end: each
//! groups two million rows by a key, adds them up, and sorts all of them. Everything is on one runtime:
//! Cargo's `[patch]` puts this repository's `rayon-core` under polars, and `place_pools` makes the pool that
//! polars builds the caller's level of the runtime. The queries run first at the service's level, then below
//! it.
//!
//! cargo run --release
//!
//! Without the feature `patched`, and without the patch, the same queries run on rayon's threads beside the
//! runtime's. `ci/beside.sh` runs both.

use polars::prelude::*;
use std::{
    error::Error,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};
use urgency::{LevelId, Runtime, time::interval};

urgency::levels! { App: Service > Batch }

const REQUESTS: usize = 1_000;
const ROWS: u64 = 2_000_000;
const KEYS: u64 = 5_000;

fn request(number: u64) -> u64 {
    let spread = |n: u64| (n + number).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
    let mut numbers: Vec<u64> = (0..20_000).map(spread).collect();
    numbers.sort();
    numbers[numbers.len() / 2]
}

fn sales() -> PolarsResult<DataFrame> {
    let shops: Vec<u64> = (0..ROWS).map(|n| n * 2_654_435_761 % KEYS).collect();
    let amounts: Vec<u64> = (0..ROWS).map(|n| n * 7_919 % 1_000).collect();
    df!("shop" => shops, "amount" => amounts)
}

/// Runs the query, and checks what can be checked of its result.
#[expect(
    deprecated,
    reason = "polars prefers its lazy form, which is three times as much to compile"
)]
fn query(sales: &DataFrame) -> PolarsResult<()> {
    let totals = sales.group_by(["shop"])?.select(["amount"]).sum()?;
    assert_eq!(totals.height() as u64, KEYS);
    let total: u64 = totals.column("amount_sum")?.u64()?.iter().flatten().sum();
    assert_eq!(total, (0..ROWS).map(|n| n * 7_919 % 1_000).sum());
    let sorted = sales.sort(["amount", "shop"], SortMultipleOptions::default())?;
    assert_eq!(sorted.column("amount")?.u64()?.last(), Some(999));
    Ok(())
}

fn batch(stop: &AtomicBool, rows: &AtomicU64) -> PolarsResult<()> {
    let sales = sales()?;
    while !stop.load(Relaxed) {
        query(&sales)?;
        rows.fetch_add(ROWS, Relaxed);
    }
    Ok(())
}

/// Serves all requests beside queries at `level`, if there are any. Returns the latencies, and the rows per
/// second in millions.
fn serve(
    runtime: &Runtime,
    level: Option<LevelId>,
) -> Result<(Vec<Duration>, f64), Box<dyn Error>> {
    let stop = Arc::new(AtomicBool::new(false));
    let rows = Arc::new(AtomicU64::new(0));
    let computing = level.map(|level| {
        let (stop, rows) = (stop.clone(), rows.clone());
        runtime.at(level).spawn_fn(move || batch(&stop, &rows))
    });
    std::thread::sleep(Duration::from_millis(500));
    let (since, before) = (Instant::now(), rows.load(Relaxed));
    let service = runtime.at(Service).spawn(async {
        let mut latencies = Vec::with_capacity(REQUESTS);
        let mut ticks = interval(Duration::from_millis(5));
        for number in 0..REQUESTS as u64 {
            let due = ticks.tick().await;
            std::hint::black_box(request(number));
            latencies.push(due.elapsed());
        }
        latencies.sort();
        latencies
    });
    let latencies = service.get()?;
    let rate = (rows.load(Relaxed) - before) as f64 / since.elapsed().as_secs_f64() / 1e6;
    stop.store(true, Relaxed);
    if let Some(computing) = computing {
        computing.get()??;
    }
    Ok((latencies, rate))
}

fn main() -> Result<(), Box<dyn Error>> {
    let runtime = Runtime::builder().workers(2).levels::<App>().build()?;
    let batch = LevelId::from(Batch);
    #[cfg(feature = "patched")]
    let turns = {
        rayon_core::urgency::place_pools(&runtime, Batch);
        [
            ("no queries", None),
            ("queries at the service's level", Some(Service.into())),
            ("queries at a lower level", Some(batch)),
        ]
    };
    #[cfg(not(feature = "patched"))]
    let turns = [
        ("no queries", None),
        ("queries on rayon's threads", Some(batch)),
    ];
    let head = ["requests beside", "p50", "p99", "slowest", "queries"];
    println!(
        "{:32}{:>10}{:>10}{:>10}{:>18}",
        head[0], head[1], head[2], head[3], head[4]
    );
    for (name, level) in turns {
        let (latencies, rate) = serve(&runtime, level)?;
        let at = |share: usize| format!("{:.1?}", latencies[REQUESTS * share / 1000 - 1]);
        let [p50, p99, slowest] = [500, 990, 1000].map(at);
        println!("{name:32}{p50:>10}{p99:>10}{slowest:>10}{rate:>8.1} M rows/s");
    }
    Ok(())
}
