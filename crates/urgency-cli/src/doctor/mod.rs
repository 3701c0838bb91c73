//! `urgency doctor`: what of this machine Urgency can use, and how to enable the rest.
//!
//! Nothing here is needed: the runtime does without what is missing. Each finding has one line for what was found, and
//! one for what to do where something is missing. `finding.rs` is what a finding is, `machine.rs` reads files of the
//! kernel's, `process.rs` asks the kernel and a runtime what this process may do.

mod finding;
mod machine;
mod process;

use clap::Args;
use finding::Finding;
use serde::Serialize;
use std::{path::PathBuf, process::ExitCode};
use urgency_measure::output;
use urgency_resctrl::Entitlement;

/// Says what of this machine Urgency can use, and how to enable the rest.
#[derive(Args, Clone, Debug)]
pub struct Options {
    /// Write JSON: an object with the number of workers and a list of findings.
    #[arg(long)]
    json: bool,

    /// Read the kernel's files (proc, sys) below this directory.
    #[arg(long, hide = true, default_value = "/")]
    root: PathBuf,
}

/// What was found.
#[derive(Debug, Serialize)]
struct Report {
    version: &'static str,
    /// As many workers a runtime has by default.
    workers: usize,
    findings: Vec<Finding>,
}

pub fn run(options: &Options) -> ExitCode {
    let report = match examine(options) {
        Ok(report) => report,
        Err(error) => {
            eprintln!("urgency doctor: {error}");
            return ExitCode::FAILURE;
        }
    };
    let text = if options.json {
        serde_json::to_string_pretty(&report).expect("texts and numbers can be JSON") + "\n"
    } else {
        in_words(&report)
    };
    match output::say(text) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("urgency doctor: the report cannot be written: {error}");
            ExitCode::FAILURE
        }
    }
}

fn examine(options: &Options) -> Result<Report, urgency_resctrl::Error> {
    let affinity = Entitlement::read()?.affinity;
    let entitlement = Entitlement::read_at(&options.root, affinity)?;
    let mut findings = machine::findings(&options.root, &entitlement);
    findings.extend(process::findings());
    Ok(Report {
        version: env!("CARGO_PKG_VERSION"),
        workers: entitlement.workers(),
        findings,
    })
}

fn in_words(report: &Report) -> String {
    let mut text = format!(
        "urgency {}: {} worker(s) by default\n\n",
        report.version, report.workers
    );
    let width = report
        .findings
        .iter()
        .map(|finding| finding.name.len())
        .max()
        .unwrap_or(0);
    for Finding {
        name,
        state,
        found,
        enable,
    } in &report.findings
    {
        text += &format!("{:7}  {name:width$}  {found}\n", state.word());
        if let Some(enable) = enable {
            text += &format!("{:7}  {:width$}  to enable: {enable}\n", "", "");
        }
    }
    text
}
