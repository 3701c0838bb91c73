//! Stages and silos: an image pipeline whose stages have workers and orders of their own, beside a runtime for its log.
//!
//! A stage is a level: `FixedShares::of_workers` gives it workers that do nothing else, `pool_at` an order,
//! and `at(stage).spawn` moves a picture on. A silo is a second runtime: nothing in the pipeline can take its
//! worker, and the handle is awaited across.
//!
//! ```text
//! cargo run --release -p urgency --example stages
//! ```

use urgency::{
    Runtime,
    policy::{FixedShares, Kind, Order, Otherwise, Plan},
};

// Later stages first: what is nearly done leaves the pipeline before new work enters it.
urgency::levels! { Pipeline: Encode > Filter > Decode }

/// Stands in for a decoder.
fn decode(number: u64) -> Vec<u64> {
    (0..2000).map(|i| (i * number) % 251).collect()
}

fn filter(pixels: &[u64]) -> Vec<u64> {
    pixels
        .windows(3)
        .map(|w| w.iter().sum::<u64>() / 3)
        .collect()
}

fn encode(pixels: &[u64]) -> u64 {
    pixels
        .iter()
        .fold(0, |hash, pixel| hash.rotate_left(5) ^ pixel)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let newest_first = Kind::Queues(Plan::FIFO.in_order(Order::Newest));
    let pipeline = Runtime::builder()
        .workers(4)
        .levels::<Pipeline>()
        // One worker encodes, two filter, one decodes; an idle one waits for its own stage.
        .schedule(FixedShares::of_workers(&[1, 2, 1], Otherwise::Wait))
        // A picture that was just decoded is still in the cache.
        .pool_at(Filter, newest_first)
        .build()?;
    let log = std::sync::Arc::new(Runtime::builder().workers(1).build()?);

    let pictures: Vec<_> = (1..=100u64)
        .map(|number| {
            let log = log.clone();
            pipeline.at(Decode).spawn(async move {
                let pixels = decode(number);
                let smooth = urgency::at(Filter)
                    .spawn(async move { filter(&pixels) })
                    .await?;
                let code = urgency::at(Encode)
                    .spawn(async move { encode(&smooth) })
                    .await?;
                log.spawn(async move { format!("picture {number}: {code:016x}") })
                    .await
            })
        })
        .collect();
    let lines = pictures
        .into_iter()
        .map(|picture| picture.get()?)
        .collect::<Result<Vec<String>, urgency::JoinError>>()?;
    println!("{}\n... {} in all", lines[0], lines.len());

    for (number, worker) in pipeline.stats().workers.iter().enumerate() {
        let tasks: Vec<u64> = worker.levels.iter().map(|level| level.tasks).collect();
        println!(
            "worker {number}: encoded {}, filtered {}, decoded {}",
            tasks[0], tasks[1], tasks[2]
        );
    }
    Ok(())
}
