//! A service beside crates that use rayon and know nothing of it.
//!
//! Every 5 ms a request sorts a few numbers, 1,000 times in all. Beside it a batch computes without an end:
//! `blake3` hashes a buffer with its `update_rayon`, and rayon's parallel iterators sum over it. Both run on one
//! runtime, first at the same level, then with the batch below. Nothing in blake3 or rayon is changed: Cargo's
//! `[patch]` puts this repository's `rayon-core` in, and the batch is simply a closure of the lower level.
//!
//! cargo run --release

use rayon::prelude::*;
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

fn request(number: u64) -> u64 {
    let mut numbers: Vec<u64> = (0..2_000).map(|n| (n * 7_919 + number) % 4_001).collect();
    numbers.sort();
    numbers[numbers.len() / 2]
}

fn batch(stop: &AtomicBool, bytes: &AtomicU64) {
    let buffer: Vec<u8> = (0..32 << 20).map(|n| (n % 251) as u8).collect();
    let expected = blake3::hash(&buffer);
    while !stop.load(Relaxed) {
        let mut hasher = blake3::Hasher::new();
        hasher.update_rayon(&buffer);
        assert_eq!(hasher.finalize(), expected, "wrong hash");
        let sum: u64 = buffer.par_iter().map(|&byte| u64::from(byte)).sum();
        assert_ne!(sum, 0);
        bytes.fetch_add(buffer.len() as u64, Relaxed);
    }
}

/// Serves all requests beside a batch at `level`, if there is one. Returns the latencies and the batch's MB/s.
fn serve(
    runtime: &Runtime,
    level: Option<LevelId>,
) -> Result<(Vec<Duration>, f64), Box<dyn Error>> {
    let (stop, bytes) = (
        Arc::new(AtomicBool::new(false)),
        Arc::new(AtomicU64::new(0)),
    );
    let computing = level.map(|level| {
        let (stop, bytes) = (stop.clone(), bytes.clone());
        runtime.at(level).spawn_fn(move || batch(&stop, &bytes))
    });
    std::thread::sleep(Duration::from_millis(300));
    let (since, before) = (Instant::now(), bytes.load(Relaxed));
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
    let rate = (bytes.load(Relaxed) - before) as f64 / since.elapsed().as_secs_f64() / 1e6;
    stop.store(true, Relaxed);
    if let Some(computing) = computing {
        computing.get()?;
    }
    Ok((latencies, rate))
}

fn main() -> Result<(), Box<dyn Error>> {
    let runtime = Runtime::builder().workers(2).levels::<App>().build()?;
    let turns = [
        ("no batch", None),
        ("batch at the service's level", Some(LevelId::from(Service))),
        ("batch at a lower level", Some(LevelId::from(Batch))),
    ];
    println!(
        "{:32}{:>10}{:>10}{:>10}{:>14}",
        "requests beside", "p50", "p99", "slowest", "batch"
    );
    for (name, level) in turns {
        let (latencies, rate) = serve(&runtime, level)?;
        let at = |share: usize| format!("{:.0?}", latencies[REQUESTS * share / 1000 - 1]);
        println!(
            "{name:32}{:>10}{:>10}{:>10}{rate:>9.0} MB/s",
            at(500),
            at(990),
            at(1000)
        );
    }
    Ok(())
}
