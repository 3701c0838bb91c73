//! The raw samples as JSON: one file per run, `<save>/<seconds since 1970>-<process id>.json`, rewritten
//! after each experiment so that an interrupted run keeps what it has.

use super::Experiment;
use super::options::Options;
use super::rounds::Measured;
use super::summary::Summary;
use crate::machine;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// The record of one run.
pub struct Record {
    path: PathBuf,
    run: Value,
    experiments: Vec<Value>,
}

impl Record {
    /// Starts a record with what the machine is.
    pub fn start(options: &Options) -> Self {
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |since| since.as_secs());
        let run = json!({
            "started_unix_s": now,
            "arguments": std::env::args().skip(1).collect::<Vec<_>>(),
            "rounds": options.rounds,
            "seed": options.seed,
            "quick": options.quick,
            "processors": machine::processors(),
            "processor": first_line_with("/proc/cpuinfo", "model name"),
            "kernel": first_line_with("/proc/version", "Linux"),
            "load_before": first_line_with("/proc/loadavg", ""),
        });
        Record {
            path: options
                .save
                .join(format!("{now}-{}.json", std::process::id())),
            run,
            experiments: Vec::new(),
        }
    }

    /// Adds one experiment.
    pub fn add(&mut self, experiment: &Experiment, measured: &Measured, summary: &Summary) {
        let samples: Vec<Value> = measured
            .rows
            .iter()
            .map(|row| {
                json!({
                    "round": row.round,
                    "contender": row.contender,
                    "foreign_share": row.foreign,
                    "metrics": row.outcome.as_ref().ok(),
                    "failure": row.outcome.as_ref().err(),
                })
            })
            .collect();
        self.experiments.push(json!({
            "name": experiment.name(),
            "about": experiment.about(),
            "medians": summary.spreads,
            "paired_ratios": { "to": experiment.reference(), "of": summary.ratios },
            "bars": summary.judged,
            "pooled": measured.pooled,
            "certainty": summary.certainty,
            "samples": samples,
        }));
    }

    /// Writes all that was added so far.
    pub fn write(&self) -> std::io::Result<()> {
        if let Some(directory) = self.path.parent() {
            std::fs::create_dir_all(directory)?;
        }
        let whole = json!({ "run": self.run, "experiments": self.experiments });
        std::fs::write(&self.path, format!("{whole:#}\n"))
    }

    /// Where it was written, if it was.
    pub fn path(&self) -> Option<&Path> {
        self.path.exists().then_some(self.path.as_path())
    }
}

fn first_line_with(path: &str, word: &str) -> Option<String> {
    let text = std::fs::read_to_string(path).ok()?;
    Some(text.lines().find(|line| line.contains(word))?.to_owned())
}
