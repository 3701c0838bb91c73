//! Policies of a user's own: one within a level, one between levels, one between jobs.
//!
//! They implement the same traits as the built-in ones. They run in a runtime, and in the simulator with all options of
//! `urgency sim`:
//!
//! ```sh
//! cargo run --release -- run
//! cargo run --release -- --dag memcached --pool spilling-queues --compare
//! cargo run --release -- --dag three-levels --schedule night-shift
//! cargo run --release -- jobs --policies newest-few,drep,shares --jobs 5000
//! ```

mod between_jobs;
mod between_levels;
mod in_runtime;
mod within_level;

use clap::Parser;
use std::process::ExitCode;
use urgency_policy::level::Schedule;
use urgency_sim::command::{Options, Own, run_with};

/// The simulator with three more policies.
#[derive(Parser)]
struct Line {
    #[command(flatten)]
    options: Options,
}

fn main() -> ExitCode {
    if std::env::args().nth(1).as_deref() == Some("run") {
        return match run() {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("{error}");
                ExitCode::FAILURE
            }
        };
    }
    let own = Own::default()
        .with_pool("spilling-queues", within_level::SpillingQueues)
        .with_schedule("night-shift", Schedule::own(between_levels::NightShift))
        .with_core_policy("newest-few", |_| Box::new(between_jobs::NewestFew::new(4)));
    run_with(&Line::parse().options, &own)
}

fn run() -> Result<(), Box<dyn std::error::Error>> {
    let sum = in_runtime::run(10_000)?;
    println!("10,000 tasks of a batch ended below endless requests; their sum is {sum}");
    in_runtime::run_jobs()?;
    println!("an old job had no core while a newer one ran, and has them back");
    Ok(())
}
