//! The command line.

use super::Scale;
use clap::Parser;
use std::path::PathBuf;

/// Measures Urgency beside its peers. Contenders run interleaved, each sample in a fresh process; raw samples
/// are kept as JSON.
#[derive(Parser, Debug)]
#[command(name = "urgency-bench", version)]
pub struct Options {
    /// Run only the experiments named, or whose name contains one of these words (all when none is given).
    pub filter: Vec<String>,

    /// Name the experiments with their contenders and bars, and stop.
    #[arg(long)]
    pub list: bool,

    /// Rounds per experiment: samples per contender.
    #[arg(long, default_value_t = 7, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub rounds: u32,

    /// Small sizes: a smoke test in which bars are not judged.
    #[arg(long)]
    pub quick: bool,

    /// Exit with status 1 if a sample fails or a bar is missed (with --quick: if a sample fails).
    #[arg(long)]
    pub check: bool,

    /// Run only these contenders, separated by commas.
    #[arg(long, value_delimiter = ',', value_name = "NAME")]
    pub only: Vec<String>,

    /// Directory for the raw samples.
    #[arg(long, default_value = "results", value_name = "DIR")]
    pub save: PathBuf,

    /// Seconds after which a sample counts as failed and its process is ended.
    #[arg(long, default_value_t = 900, value_name = "SECONDS")]
    pub timeout: u64,

    /// Repeat a sample (up to 3 times) if other processes used more than this share of the machine meanwhile
    /// (0.05 = 5 %).
    #[arg(long, value_name = "SHARE")]
    pub quiet: Option<f64>,

    /// Seed of the order in which contenders run.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,

    /// Take one sample in this process and print it as JSON.
    #[arg(long, value_name = "EXPERIMENT/CONTENDER")]
    pub one: Option<String>,

    /// Draw throughput against tail latency, and the fairness paper's figures, from the raw samples in this
    /// file (or in several), into `docs/`, and stop.
    #[arg(long, value_name = "FILE")]
    pub draw: Vec<PathBuf>,

    /// Be a load client (used by experiments that need one in a process of its own).
    #[arg(long, hide = true)]
    pub load: Option<String>,
}

impl Options {
    /// The sizes to run at.
    pub fn scale(&self) -> Scale {
        if self.quick {
            Scale::Quick
        } else {
            Scale::Full
        }
    }

    /// Whether the filter admits this experiment, one of `all`: a word that is a whole name means that
    /// experiment only, others match parts of names.
    pub fn admits(&self, name: &str, all: &[String]) -> bool {
        let matches = |word: &String| match all.contains(word) {
            true => name == word,
            false => name.contains(word),
        };
        self.filter.is_empty() || self.filter.iter().any(matches)
    }

    /// Whether `--only` admits this contender.
    pub fn admits_contender(&self, name: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|only| only == name)
    }

    /// Bars are about the full sizes only.
    pub fn judges_bars(&self) -> bool {
        !self.quick
    }
}
