//! Experiments as a command: what an experiment is, how its samples are taken, and what is said about them.
//!
//! Words: an **experiment** is a question with a table as its answer. A **contender** is one program that
//! answers it. A **sample** is one run of one contender in a process of its own: a map from metric names to
//! numbers. A **round** is one sample of each contender. A **bar** is a limit that a contender of ours must
//! keep, either absolute or relative to peers in the same rounds.
//!
//! The last part of a metric's name is its unit: `_ns`, `_bytes`, `_per_s`, `_share` (of 1); anything else is a count.
//!
//! Files in reading order: `question.rs` (the words as types), `options.rs` (the command line), `one.rs` (one sample in
//! a fresh process), `rounds.rs` and `sliced.rs` (interleaving), `summary.rs` (medians, ratios, verdicts), `print.rs`,
//! `record.rs` (the JSON file), `trade_off.rs` and `figures.rs` (pictures from such files).

mod figures;
mod one;
mod options;
mod print;
mod question;
mod record;
mod rounds;
mod sliced;
mod summary;
mod trade_off;

pub use question::{Bar, Contender, Experiment, Limit, Scale};

use crate::client::lanes::{self, Lanes};
use crate::{loaded, output::say};
use clap::Parser as _;
use std::fs::File;
use std::process::ExitCode;

/// Runs the command: `table` gives the experiments at a scale.
pub fn main(table: fn(Scale) -> Vec<Experiment>) -> ExitCode {
    let options = options::Options::parse();
    if let Some(spec) = &options.lanes {
        return be_client(spec);
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
        return one::run_here(&experiments, one);
    }
    let chosen = match options.choose(experiments) {
        Ok(chosen) => chosen,
        Err(reason) => {
            eprintln!("urgency-bench: {reason}");
            return ExitCode::from(2);
        }
    };
    if options.list {
        return give(&print::list(&chosen));
    }
    run(&options, &chosen)
}

/// The process of a load client.
fn be_client(spec: &str) -> ExitCode {
    let lanes: Lanes = match serde_json::from_str(spec) {
        Ok(lanes) => lanes,
        Err(error) => {
            eprintln!("urgency-bench: --lanes {spec:?} are no lanes: {error}");
            return ExitCode::from(2);
        }
    };
    match lanes::main(&lanes) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("urgency-bench: the load client: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Says what the command was asked for.
fn give(text: &str) -> ExitCode {
    match say(text) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("urgency-bench: the text cannot be written: {error}");
            ExitCode::FAILURE
        }
    }
}

fn draw(records: &[std::path::PathBuf]) -> ExitCode {
    match trade_off::draw_all(records, std::path::Path::new("docs")) {
        Ok(written) => {
            let lines: String = written
                .iter()
                .map(|path| format!("{}\n", path.display()))
                .collect();
            give(&lines)
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
        // The samples count, also where nothing takes the text.
        let _ = say(print::result(experiment, &summary, options));
        failures += summary.failures(options.judges_bars());
        record.add(experiment, &measured, &summary);
        if let Err(error) = record.write() {
            eprintln!("urgency-bench: the samples could not be kept: {error}");
            failures += 1;
        }
    }
    if let Some(path) = record.path() {
        let _ = say(format_args!("raw samples: {}\n", path.display()));
    }
    if options.check && failures > 0 {
        let _ = say(format_args!(
            "--check: {failures} below the bar or failed\n"
        ));
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}
