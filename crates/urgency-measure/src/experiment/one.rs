//! One sample in a fresh process.
//!
//! The parent starts this program as `--one <experiment>/<contender>` and reads one line of JSON from its
//! standard output. Three things are failures: a status other than 0 (a panic in the child: wrong result,
//! missing descriptor, ...), whose reason is the last three lines of its standard error, no sample on its
//! output, and more than the time limit. A child that overruns is ended and waited for.
//!
//! The parent also computes the *foreign share*: what others used of the machine while the sample ran. It is kept with
//! the sample.

use super::Experiment;
use super::options::Options;
use super::question::program;
use crate::child::{self, Child};
use crate::others::Moment;
use crate::sample::Sample;
use std::process::{Command, ExitCode};
use std::time::Duration;

/// A sample, or why there is none, and how much others used the machine meanwhile.
pub struct Taken {
    /// What the child printed, or the reason of its failure.
    pub outcome: Result<Sample, String>,
    /// Share of all processors that others used meanwhile, 0 to 1.
    pub foreign: f64,
}

/// Takes one sample in this process and prints it: the child's side.
pub fn run_here(experiments: &[Experiment], one: &str) -> ExitCode {
    let found = one.split_once('/').and_then(|(experiment, contender)| {
        let experiment = experiments.iter().find(|e| e.name() == experiment)?;
        experiment.contenders().iter().find(|c| c.name == contender)
    });
    let Some(contender) = found else {
        eprintln!("urgency-bench: there is no contender {one:?}; `--list` names them all");
        return ExitCode::from(2);
    };
    child::say(&(contender.measure)());
    // Endless background work of a contender ends with the process.
    std::process::exit(0)
}

/// The command that takes a sample of a contender in a round. Latencies that are logged one by one go into a file.
pub fn command(experiment: &str, contender: &str, round: u32, options: &Options) -> Command {
    let mut command = Child::again(contender).expect("the running program has a path");
    let events = options.events_file(experiment, contender, round);
    command
        .args(["--one", &program(experiment, contender), "--events"])
        .arg(events);
    if options.quick {
        command.arg("--quick");
    }
    command
}

/// Takes one sample in a fresh process: the parent's side.
pub fn take(experiment: &str, contender: &str, round: u32, options: &Options) -> Taken {
    let limit = Duration::from_secs(options.timeout);
    let command = command(experiment, contender, round, options);
    let before = Moment::now();
    let line = Child::start(contender, command).and_then(|child| child.last_line(limit));
    let outcome = line.map_err(|error| error.to_string()).and_then(|line| {
        serde_json::from_str(&line)
            .map_err(|error| format!("no sample in its output {line:?}: {error}"))
    });
    let foreign = before.share_until(Moment::now());
    Taken { outcome, foreign }
}
