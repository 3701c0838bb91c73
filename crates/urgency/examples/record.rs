//! Records a small server under load, and prints it as a computation for the simulator.
//!
//! ```text
//! cargo run --release -p urgency --example record > trace.json
//! urgency sim --trace trace.json --workers 8 --costs measured
//! ```
//!
//! Requests look something up, wait for "the disk", and answer; a report in the background computes in many
//! small parts.

use std::time::Duration;
use urgency::{Runtime, time};

urgency::levels! { App: Request > Report }

/// Work that the optimiser leaves alone.
fn compute(turns: u64) -> u64 {
    (0..turns).fold(1, |x, turn| std::hint::black_box(x.rotate_left(7) ^ turn))
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let runtime = Runtime::builder()
        .workers(2)
        .levels::<App>()
        .record(1_000_000)
        .build()?;
    let report = runtime.at(Report).spawn(async {
        let parts: Vec<_> = (0..200)
            .map(|part| urgency::spawn(async move { compute(100_000 + part) }))
            .collect();
        let mut sum = 0;
        for part in parts {
            sum ^= part.await?;
        }
        Ok::<u64, urgency::JoinError>(sum)
    });
    let requests: Vec<_> = (0..100u64)
        .map(|number| {
            std::thread::sleep(Duration::from_micros(300));
            runtime.at(Request).spawn(async move {
                let key = compute(5_000 + number);
                time::sleep(Duration::from_micros(500)).await;
                urgency::spawn(async move { compute(10_000) ^ key }).await
            })
        })
        .collect();
    for request in requests {
        request.get()??;
    }
    report.get()??;
    let recording = runtime.recording().expect("this runtime records");
    eprintln!(
        "{} tasks in {} steps",
        recording.threads(),
        recording.steps()
    );
    print!("{}", recording.to_json());
    Ok(())
}
