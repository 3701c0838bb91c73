//! The command line. What nothing would be measured for is refused: a misspelt word must not make `--check`
//! succeed.

use super::{Experiment, Scale};
use clap::Parser;
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

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

    /// Run only this contender, and the same once more beside it: what the method makes of no difference.
    #[arg(long = "self", value_name = "NAME", conflicts_with = "only")]
    pub itself: Option<String>,

    /// Measure latency rows in whole runs, one contender after the other, and not in slices.
    #[arg(long)]
    pub whole: bool,

    /// Directory for the raw samples.
    #[arg(long, default_value = "results", value_name = "DIR")]
    pub save: PathBuf,

    /// Seconds after which a sample counts as failed and its process is ended.
    #[arg(long, default_value_t = 900, value_name = "SECONDS")]
    pub timeout: u64,

    /// Repeat a sample (up to 3 times) if other processes used more than this share of the machine meanwhile
    /// (0.05 = 5 %).
    #[arg(long, value_name = "SHARE", value_parser = share)]
    pub quiet: Option<f64>,

    /// Seed of the order in which contenders run (the time if none is given; the raw samples name it).
    #[arg(long, default_value_t = now(), hide_default_value = true)]
    pub seed: u64,

    /// Take one sample in this process and print it as JSON.
    #[arg(long, value_name = "EXPERIMENT/CONTENDER")]
    pub one: Option<String>,

    /// With `--one`: the file into which each latency goes.
    #[arg(long, hide = true, requires = "one", value_name = "FILE")]
    pub events: Option<PathBuf>,

    /// With `--one`: be driven by standard input (see `slices/`).
    #[arg(long, hide = true, requires = "one")]
    pub sliced: bool,

    /// Draw throughput against tail latency, and the fairness paper's figures, from the raw samples in this
    /// file (or in several), into `docs/`, and stop.
    #[arg(long, value_name = "FILE")]
    pub draw: Vec<PathBuf>,

    /// Be a load client that is driven by standard input.
    #[arg(long, hide = true)]
    pub lanes: Option<String>,
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

    /// The experiments of `all` that the filter admits; or which word admits nothing, be it of the filter or
    /// of `--only`.
    pub fn choose(&self, all: Vec<Experiment>) -> Result<Vec<Experiment>, String> {
        let names: Vec<_> = all.iter().map(|e| e.name().to_owned()).collect();
        for word in &self.filter {
            if !names.iter().any(|name| admits(word, name, &names)) {
                return Err(format!(
                    "no experiment matches {word:?}; `--list` names them all"
                ));
            }
        }
        let admitted = |e: &Experiment| {
            let mut words = self.filter.iter();
            self.filter.is_empty() || words.any(|word| admits(word, e.name(), &names))
        };
        let chosen: Vec<_> = all.into_iter().filter(admitted).collect();
        let chosen = match &self.itself {
            None => chosen,
            Some(name) => {
                let itself = |experiment: Experiment| experiment.beside_itself(name);
                let chosen: Vec<_> = chosen.into_iter().map(itself).collect();
                if chosen.iter().all(|e| e.contenders().is_empty()) {
                    return Err(format!(
                        "--self {name:?}: no chosen experiment has this contender; `--list` names them"
                    ));
                }
                chosen
            }
        };
        let unknown = |only: &&String| {
            let mut contenders = chosen.iter().flat_map(Experiment::contenders);
            !contenders.any(|contender| contender.name == **only)
        };
        match self.only.iter().find(unknown) {
            Some(only) => Err(format!(
                "--only {only:?}: none of the {} experiments has this contender; `--list` names them",
                chosen.len()
            )),
            None => Ok(chosen),
        }
    }

    /// Whether `--only` admits this contender.
    pub fn admits_contender(&self, name: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|only| only == name)
    }

    /// The file for the latencies of one sample.
    pub fn events_file(&self, experiment: &str, contender: &str, round: u32) -> PathBuf {
        let name = format!("{}-{experiment}-{contender}-{round}.csv", self.seed);
        self.save.join(name)
    }

    /// Bars are about the full sizes only.
    pub fn judges_bars(&self) -> bool {
        !self.quick
    }
}

/// Seconds since 1970.
fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(1, |since| since.as_secs())
}

/// Whether a word of the filter admits the experiment `name`, one of `all`: a word that is a whole name means
/// that experiment only, others match parts of names.
fn admits(word: &String, name: &str, all: &[String]) -> bool {
    match all.contains(word) {
        true => name == word,
        false => name.contains(word),
    }
}

fn share(text: &str) -> Result<f64, String> {
    let share = text.parse().ok();
    share
        .filter(|share| (0.0..=1.0).contains(share))
        .ok_or_else(|| "it should be a share from 0 to 1 (0.05 = 5 %)".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::Sample;

    fn parse(arguments: &[&str]) -> Result<Options, clap::Error> {
        Options::try_parse_from([&["urgency-bench"], arguments].concat())
    }

    fn chosen(arguments: &[&str]) -> Result<Vec<String>, String> {
        let experiment = |name: &str, contender| {
            Experiment::new(name, "about").contender(contender, Sample::new)
        };
        let all = vec![
            experiment("fib", "rayon"),
            experiment("fib-2", "chili"),
            experiment("sum", "ours"),
        ];
        let chosen = parse(arguments).unwrap().choose(all)?;
        Ok(chosen.iter().map(|e| e.name().to_owned()).collect())
    }

    #[test]
    fn a_word_of_the_filter_that_admits_nothing_is_refused() {
        assert_eq!(chosen(&["fib", "sum"]).unwrap(), ["fib", "sum"]);
        assert_eq!(chosen(&["fi"]).unwrap(), ["fib", "fib-2"]);
        let refused = chosen(&["fib", "sumx"]).unwrap_err();
        assert!(refused.contains("\"sumx\""), "{refused}");
    }

    #[test]
    fn a_contender_that_no_chosen_experiment_has_is_refused() {
        assert_eq!(chosen(&["--only", "rayon,ours"]).unwrap().len(), 3);
        for only in [["--only", "rayom", "fib"], ["--only", "rayon,ours", "fib"]] {
            let refused = chosen(&only).unwrap_err();
            assert!(refused.contains("--only"), "{refused}");
        }
    }

    #[test]
    fn a_share_above_one_is_refused() {
        assert_eq!(parse(&["--quiet", "0.05"]).unwrap().quiet, Some(0.05));
        for wrong in ["5", "-0.1", "NaN", "x"] {
            let refused = parse(&[&format!("--quiet={wrong}")]).unwrap_err();
            assert_eq!(refused.exit_code(), 2, "{wrong}");
        }
    }
}
