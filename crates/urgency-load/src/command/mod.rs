//! The command `urgency load cache`: fills the server's keys, runs a load or a search, and reports.
//!
//! Standard output has the result; standard error has the progress, if it is a terminal. Exit codes: 0 all
//! went well; 1 the run failed, or a reply was wrong; 2 the command line was wrong, and nothing was started.

mod options;
mod report;

pub use options::Options;

use crate::search::{Found, Quality, Search, Trial};
use crate::traffic::Pace;
use crate::{Client, Error, Load, Outcome, Progress, Timing};
use serde::Serialize;
use std::io::{self, IsTerminal as _};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;
use urgency_measure::output;

/// What the JSON file has.
#[derive(Debug, Serialize)]
struct Report<'a> {
    load: &'a Load,
    fill: Option<&'a Outcome>,
    search: Option<SearchReport<'a>>,
    run: &'a Outcome,
}

#[derive(Debug, Serialize)]
struct SearchReport<'a> {
    quality: Quality,
    closed_loop_per_s: f64,
    highest_per_s: f64,
    trials: &'a [Trial],
}

/// Runs the command.
pub fn run(options: &Options) -> ExitCode {
    match execute(options) {
        Ok(outcome) if outcome.is_clean() => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("urgency load: {error}");
            ExitCode::from(if error.is_usage() { 2 } else { 1 })
        }
    }
}

fn execute(options: &Options) -> Result<Outcome, Error> {
    let load = options.load();
    load.check()?;
    if let Some(path) = file(options) {
        output::probe(path).map_err(|cause| unwritten(path, cause))?;
    }
    let mut client = Client::connect(load)?;
    let show_progress = !options.quiet && std::io::stderr().is_terminal();
    let mut show = |title: &str, progress: &Progress| {
        if show_progress {
            report::progress(title, progress);
        }
    };
    say(report::heading(client.load()) + "\n")?;
    let fill = match options.no_fill {
        true => None,
        false => {
            let fill = client.fill(&mut |progress| show("fill", progress))?;
            say(report::fill(&fill) + "\n")?;
            Some(fill)
        }
    };
    let timing = Timing {
        ramp: Duration::from_secs_f64(options.ramp),
        ..Timing::seconds(options.duration)
    };
    let searched = match &options.search {
        None => None,
        Some(quality) => Some(find(&mut client, options, quality, &mut show)?),
    };
    let pace = match (&searched, options.rate) {
        (Some((found, _)), _) => Pace::Open(found.per_s, options.arrivals),
        (None, Some(rate)) => Pace::Open(rate, options.arrivals),
        (None, None) => Pace::Closed,
    };
    let outcome = client.run(pace, &timing, &mut |progress| show("run", progress))?;
    say(report::outcome(&outcome) + "\n")?;
    if options.json.is_some() {
        let search = searched.as_ref().map(|(found, most)| SearchReport {
            quality: options.search.expect("a search was asked for"),
            closed_loop_per_s: *most,
            highest_per_s: found.per_s,
            trials: &found.trials,
        });
        let report = Report {
            load: client.load(),
            fill: fill.as_ref(),
            search,
            run: &outcome,
        };
        write_json(options, &report)?;
    }
    Ok(outcome)
}

/// The search, with a line for each trial; the closed loop's rate is the second result.
fn find(
    client: &mut Client,
    options: &Options,
    quality: &Quality,
    show: &mut impl FnMut(&str, &Progress),
) -> Result<(Found, f64), Error> {
    let trial_timing = Timing {
        ramp: Duration::from_secs_f64(options.ramp),
        grace: Duration::from_secs(1),
        ..Timing::seconds(options.trial)
    };
    let closed = client.run(Pace::Closed, &trial_timing, &mut |progress| {
        show("closed loop", progress);
    })?;
    let most = closed.achieved_per_s;
    say(report::closed_loop(&closed) + "\n")?;
    let search = Search {
        precision: options.precision,
        confirmations: options.confirmations,
    };
    let found = search.run(quality, most, |per_s, purpose| {
        let pace = Pace::Open(per_s, options.arrivals);
        let outcome = client.run(pace, &trial_timing, &mut |progress| show("trial", progress))?;
        let verdict = quality.verdict(&outcome);
        say(report::trial(purpose, quality, &outcome, verdict.as_deref()) + "\n")?;
        Ok(verdict)
    })?;
    say(report::found(quality, &found) + "\n")?;
    Ok((found, most))
}

/// The file for the JSON; none if that goes to standard output, or nowhere.
fn file(options: &Options) -> Option<&Path> {
    let path = options.json.as_deref();
    path.filter(|path| path.as_os_str() != "-")
}

fn write_json(options: &Options, report: &Report<'_>) -> Result<(), Error> {
    let json = serde_json::to_string(report).expect("maps of numbers and texts can be JSON") + "\n";
    match file(options) {
        Some(path) => std::fs::write(path, json).map_err(|cause| unwritten(path, cause)),
        None => say(json),
    }
}

fn unwritten(path: &Path, cause: io::Error) -> Error {
    let path = path.to_owned();
    Error::Write { path, cause }
}

/// Says a part of the result.
fn say(text: String) -> Result<(), Error> {
    output::say(text).map_err(|cause| unwritten(Path::new("standard output"), cause))
}
