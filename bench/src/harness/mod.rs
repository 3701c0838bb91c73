//! The harness: what an experiment is, how its samples are taken, and what is said about them.
//!
//! Words: an **experiment** is a question with a table as its answer. A **contender** is one program that
//! answers it. A **sample** is one run of one contender in a process of its own: a map from metric names to
//! numbers. A **round** is one sample of each contender. A **bar** is a limit that a contender of ours must
//! keep, either absolute or relative to peers in the same rounds.
//!
//! The last part of a metric's name is its unit: `_ns`, `_bytes`, `_per_s`, `_share` (of 1); anything else is a count.
//!
//! Files in reading order: `experiment.rs` (the words as types), `options.rs` (the command line), `sample.rs` (what a
//! child prints), `timing.rs` (how contenders measure), `gate.rs` and `events.rs` (when there is load, and what came
//! of each tick or request), `child.rs` (one sample in a fresh process), `rounds.rs` (interleaving), `loaded.rs` and
//! `slices/` (contenders that alternate within one run), `summary.rs` (medians, ratios, verdicts), `table.rs`
//! (print), `record.rs` (the JSON file), `machine.rs` (clocks, memory, limits, the real-time class).

mod child;
pub mod events;
mod experiment;
mod figures;
pub mod gate;
pub mod loaded;
pub mod machine;
mod options;
mod picture;
mod record;
mod rounds;
mod sample;
pub mod slices;
mod summary;
mod table;
pub mod timing;
pub mod work;

pub use experiment::{Bar, Experiment, Scale};
pub use sample::Sample;

use clap::Parser as _;
use std::fs::File;
use std::process::ExitCode;

/// Runs the command: `table` gives the experiments at a scale.
pub fn main(table: fn(Scale) -> Vec<Experiment>) -> ExitCode {
    let options = options::Options::parse();
    if let Some(spec) = &options.load {
        return crate::client::main(spec);
    }
    if let Some(spec) = &options.lanes {
        return crate::client::lanes::main(spec);
    }
    if !options.draw.is_empty() {
        return draw(&options.draw);
    }
    let experiments = table(options.scale());
    if let Some(one) = &options.one {
        let events = options.events.as_ref().map(|path| {
            File::create(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
        });
        let orders = loaded::Orders {
            sliced: options.sliced,
            events,
        };
        loaded::ORDERS
            .set(orders)
            .expect("nobody has given orders before");
        return child::run_here(&experiments, one);
    }
    let chosen = match options.choose(experiments) {
        Ok(chosen) => chosen,
        Err(reason) => {
            eprintln!("urgency-bench: {reason}");
            return ExitCode::from(2);
        }
    };
    if options.list {
        table::list(&chosen);
        return ExitCode::SUCCESS;
    }
    run(&options, &chosen)
}

fn draw(records: &[std::path::PathBuf]) -> ExitCode {
    match picture::draw_all(records, std::path::Path::new("docs")) {
        Ok(written) => {
            written
                .iter()
                .for_each(|path| println!("{}", path.display()));
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("urgency-bench: --draw {records:?}: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: &options::Options, chosen: &[Experiment]) -> ExitCode {
    let mut record = record::Record::start(options);
    let mut failures = 0;
    if let Err(error) = std::fs::create_dir_all(&options.save) {
        eprintln!("urgency-bench: --save {:?}: {error}", options.save);
        return ExitCode::FAILURE;
    }
    for experiment in chosen {
        let measured = rounds::run(experiment, options);
        let summary = summary::Summary::of(experiment, &measured);
        table::print(experiment, &summary, options);
        failures += summary.failures(options.judges_bars());
        record.add(experiment, &measured, &summary);
        if let Err(error) = record.write() {
            eprintln!("urgency-bench: the samples could not be kept: {error}");
            failures += 1;
        }
    }
    if let Some(path) = record.path() {
        println!("raw samples: {}", path.display());
    }
    if options.check && failures > 0 {
        println!("--check: {failures} below the bar or failed");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}
