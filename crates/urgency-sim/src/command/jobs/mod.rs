//! The command `urgency sim jobs`: many jobs on one set of cores, under core policies.
//!
//! Three experiments of the AMCilk paper. Each is run under several policies, one row each:
//!
//! - `flow`: jobs of the Bing or "finance-like" sizes arrive at several loads; their flow times;
//! - `elastic`: two real-time tasks, the first with several periods; how many iterations miss their deadline;
//! - `feedback`: two jobs whose parallelism changes in opposite phases; how long they take.
//!
//! Exit codes are as for `urgency sim`; 1 also if an admitted task missed a deadline under `elastic`.

mod picture;
mod table;

use super::{Own, Stop, failed, input, of_option, probe, say, write, wrong};
use crate::{
    dag::LONGEST,
    jobs::{
        Carrying, JobCosts, JobsError, JobsMachine, JobsReport, MAX_CORES, MOST_LOAD, Shape, Sizes,
        Thieves, Workload, elastic_pair, feedback_pair, flow, gap, run,
    },
};
use clap::{Args, ValueEnum, builder::RangedU64ValueParser, value_parser};
use serde::Serialize;
use std::path::PathBuf;
use urgency_policy::cores::{
    AtBoundary, Boundary, BoxedPolicy, Elastic, Feedback, FeedbackParameters, ParametersError,
    Shares, StaticEqual, named,
};

/// Which experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Experiment {
    /// Flow times of jobs that arrive at random.
    Flow,
    /// Deadlines of two elastic real-time tasks.
    Elastic,
    /// Two jobs whose parallelism changes in opposite phases.
    Feedback,
}

/// Many jobs on one set of cores.
#[derive(Debug, Args)]
#[command(allow_negative_numbers = true)]
pub(super) struct JobsOptions {
    /// The experiment.
    #[arg(value_enum, default_value = "flow")]
    experiment: Experiment,
    /// How many cores, up to 1024.
    #[arg(long, default_value_t = 38)]
    cores: usize,
    /// Core policies: shares, drep, elastic, feedback, static, none, steal-boundary or job-boundary. The experiment's
    /// own if nothing is said.
    #[arg(long, value_delimiter = ',')]
    policies: Vec<String>,
    /// flow: the loads in percent.
    #[arg(long, value_delimiter = ',', default_values_t = [60.0, 75.0, 90.0])]
    loads: Vec<f64>,
    /// flow: how many jobs, up to ten million: all are in memory.
    #[arg(long, default_value_t = 50_000, value_parser = RangedU64ValueParser::<usize>::new().range(1..=10_000_000))]
    jobs: usize,
    /// flow: the sizes, bing or finance.
    #[arg(long, default_value = "bing")]
    sizes: String,
    /// flow: a job is a series of small trees (rounds) or one tree (loop).
    #[arg(long, default_value = "rounds")]
    shape: String,
    /// elastic: the first task's periods in milliseconds.
    #[arg(long, value_delimiter = ',', default_values_t = [10, 20, 30, 50, 75, 100, 150, 200, 300, 400, 600])]
    periods_ms: Vec<u64>,
    /// elastic: how many iterations the first task has, up to ten million.
    #[arg(long, default_value_t = 1000, value_parser = value_parser!(u32).range(1..=10_000_000))]
    iterations: u32,
    /// static: how many parts.
    #[arg(long, default_value_t = 2)]
    parts: usize,
    /// feedback and shares: the time between two looks, in microseconds; at least what a decision takes.
    #[arg(long, default_value_t = FeedbackParameters::default().interval / 1000)]
    interval_us: u64,
    /// feedback and shares: which part of its time a core must work.
    #[arg(long, default_value_t = FeedbackParameters::default().utilisation)]
    utilisation: f64,
    /// feedback and shares: by how much a desire grows and shrinks.
    #[arg(long, default_value_t = FeedbackParameters::default().growth)]
    growth: f64,
    /// How many jobs run at a time at most; as many as cores if 0.
    #[arg(long, default_value_t = 0)]
    containers: usize,
    /// Carry out one decision after the other, as AMCilk's source does.
    #[arg(long)]
    one_decision: bool,
    /// none: idle thieves spin and keep their part of each core.
    #[arg(long)]
    spin: bool,
    /// What the job layer costs: paper, measured (on the machine on which Urgency is developed), goal, zero, or a file
    /// of JSON.
    #[arg(long, default_value = "paper")]
    job_costs: String,
    /// The seed of everything that is random.
    #[arg(long, default_value_t = 1)]
    job_seed: u64,
    /// Write the results as JSON.
    #[arg(long)]
    json: Option<PathBuf>,
    /// Write a picture (SVG).
    #[arg(long)]
    picture: Option<PathBuf>,
}

/// One run: a policy at a load or period.
#[derive(Debug, Serialize)]
struct Row {
    policy: String,
    /// The load in percent, or the period in milliseconds; 0 if there is neither.
    at: f64,
    /// By job: when it ended, for experiments with few jobs.
    ended: Vec<u64>,
    report: JobsReport,
}

impl JobsOptions {
    pub(super) fn perform(&self, own: &Own) -> Result<(), Stop> {
        let machine = self.machine()?;
        probe(&[("--json", &self.json), ("--picture", &self.picture)])?;
        let rows = self.rows(&machine, own)?;
        let text = match self.experiment {
            Experiment::Flow => table::flow(&rows),
            Experiment::Elastic => table::elastic(&rows),
            Experiment::Feedback => table::feedback(&rows),
        };
        say(text)?;
        if let Some(path) = &self.json {
            let all = serde_json::json!({
                "experiment": format!("{:?}", self.experiment),
                "options": format!("{self:?}"),
                "costs": machine.costs,
                "rows": rows,
            });
            write("--json", path, &all.to_string())?;
        }
        if let Some(path) = &self.picture {
            let drawn = match self.experiment {
                Experiment::Flow => picture::flow(&rows),
                Experiment::Elastic => picture::misses(&rows),
                Experiment::Feedback => picture::cores(&rows[0]),
            };
            write("--picture", path, &drawn.map_err(failed)?)?;
        }
        let broken = |row: &&Row| {
            row.policy == "elastic" && row.report.tasks.iter().any(|task| task.missed > 0)
        };
        match rows.iter().find(broken) {
            Some(row) => Err(failed(format!(
                "an admitted task missed a deadline at a period of {} ms; please report this with the command line",
                row.at
            ))),
            None => Ok(()),
        }
    }

    fn rows(&self, machine: &JobsMachine, own: &Own) -> Result<Vec<Row>, Stop> {
        let mut rows = Vec::new();
        for name in self.names() {
            for at in self.points()? {
                let mut policy = self.policy(name, machine, own)?;
                let workload = self.workload(at, machine)?;
                let failed = |cause| failed(format!("{}: {cause}", self.named(name, at)));
                let report = run(&workload, machine, &mut policy).map_err(failed)?;
                let few = report.ended.len() <= 2;
                rows.push(Row {
                    policy: name.to_owned(),
                    at,
                    ended: if few {
                        report.ended.clone()
                    } else {
                        Vec::new()
                    },
                    report,
                });
            }
        }
        Ok(rows)
    }

    fn workload(&self, at: f64, machine: &JobsMachine) -> Result<Workload, Stop> {
        let (sizes, load) = (self.sizes()?, at / 100.0);
        Ok(match self.experiment {
            Experiment::Flow => {
                let last = self.jobs as f64 * gap(sizes, load, machine.cores);
                if last > LONGEST as f64 {
                    let said = format!(
                        "at {at:?} % of {} cores {} jobs arrive over {:.0} s, and it can be {:.0} s: raise the load, \
                         or lower --jobs",
                        machine.cores,
                        self.jobs,
                        1e-9 * last,
                        1e-9 * LONGEST as f64
                    );
                    return Err(of_option("--loads", said));
                }
                flow(sizes, self.shape()?, self.jobs, load, machine)
            }
            Experiment::Elastic => elastic_pair((at * 1e6) as u64, self.iterations, machine),
            Experiment::Feedback => feedback_pair(machine),
        })
    }

    /// The options that say which run it is.
    fn named(&self, policy: &str, at: f64) -> String {
        let point = match self.experiment {
            Experiment::Flow => format!(" --loads {at}"),
            Experiment::Elastic => format!(" --periods-ms {at}"),
            Experiment::Feedback => String::new(),
        };
        format!("--policies {policy}{point} --cores {}", self.cores)
    }

    fn names(&self) -> Vec<&str> {
        if !self.policies.is_empty() {
            return self.policies.iter().map(String::as_str).collect();
        }
        match self.experiment {
            Experiment::Flow => vec![
                "drep",
                "steal-boundary",
                "shares",
                "feedback",
                "static",
                "none",
            ],
            Experiment::Elastic => vec!["elastic", "job-boundary"],
            Experiment::Feedback => vec!["feedback", "shares", "static", "none"],
        }
    }

    /// What the experiment is repeated for.
    fn points(&self) -> Result<Vec<f64>, Stop> {
        match self.experiment {
            Experiment::Flow => {
                let most = MOST_LOAD * 100.0;
                match self
                    .loads
                    .iter()
                    .find(|&&load| !(load > 0.0 && load <= most))
                {
                    Some(load) => Err(wrong(format!(
                        "--loads names {load:?} %; a load can be above 0 and up to {most}"
                    ))),
                    None => Ok(self.loads.clone()),
                }
            }
            Experiment::Elastic => match self
                .periods_ms
                .iter()
                .find(|ms| !(1..=100_000).contains(*ms))
            {
                Some(period) => Err(wrong(format!(
                    "--periods-ms names {period}; a period can be 1 to 100000"
                ))),
                None => Ok(self.periods_ms.iter().map(|&ms| ms as f64).collect()),
            },
            Experiment::Feedback => Ok(vec![0.0]),
        }
    }

    fn policy(&self, name: &str, machine: &JobsMachine, own: &Own) -> Result<BoxedPolicy, Stop> {
        if let Some(policy) = own.core_policy(name, self.job_seed) {
            return Ok(policy);
        }
        let parameters = FeedbackParameters {
            interval: self.interval_us.saturating_mul(1000),
            utilisation: self.utilisation,
            growth: self.growth,
        };
        // What a move takes at most, and what it costs the job that loses the core.
        let costs = &machine.costs;
        let allowance = costs.decide + costs.leave + costs.join + 2 * costs.steal.mug + 50_000;
        let elastic = || Elastic::with_allowance(allowance);
        let of = |cause: ParametersError| of_option(option_of(&cause), cause);
        if matches!(name, "shares" | "feedback") && (1..costs.decide).contains(&parameters.interval)
        {
            let said = format!(
                "the interval is {} ns, and a decision takes {} (--job-costs): it must be at least that",
                parameters.interval, costs.decide
            );
            return Err(of_option("--interval-us", said));
        }
        Ok(match name {
            "shares" => Box::new(Shares::new(parameters).map_err(of)?),
            "feedback" => Box::new(Feedback::new(parameters).map_err(of)?),
            "elastic" => Box::new(elastic()),
            "job-boundary" => Box::new(AtBoundary::new(elastic(), Boundary::Job)),
            "static" => Box::new(StaticEqual::new(self.parts).map_err(of)?),
            name => named(name, self.job_seed, self.parts)
                .map_err(|cause| of_option("--policies", cause))?,
        })
    }

    fn machine(&self) -> Result<JobsMachine, Stop> {
        if !(1..=MAX_CORES).contains(&self.cores) {
            return Err(of_option("--cores", JobsError::Cores(self.cores)));
        }
        if self.experiment == Experiment::Elastic && self.containers == 1 {
            let said = "the two tasks of elastic run at the same time: it must be 0, or at least 2";
            return Err(of_option("--containers", said));
        }
        Ok(JobsMachine {
            cores: self.cores,
            containers: self.containers,
            costs: self.costs()?,
            carrying: if self.one_decision {
                Carrying::OneDecision
            } else {
                Carrying::EachCore
            },
            thieves: if self.spin {
                Thieves::Spin
            } else {
                Thieves::Yield
            },
            seed: self.job_seed,
            record: match self.experiment {
                Experiment::Feedback => 20_000,
                _ => 0,
            },
        })
    }

    fn costs(&self) -> Result<JobCosts, Stop> {
        let costs = match self.job_costs.as_str() {
            "paper" => JobCosts::PAPER,
            "measured" => JobCosts::MEASURED,
            "goal" => JobCosts::GOAL,
            "zero" => JobCosts::ZERO,
            path => {
                let text = input::text("--job-costs", path, input::MOST_OF_A_TABLE)?;
                serde_json::from_str(&text).map_err(|cause| {
                    wrong(format!(
                        "--job-costs {path:?} is no table of job costs: {cause}"
                    ))
                })?
            }
        };
        costs
            .check()
            .map_err(|cause: JobsError| of_option("--job-costs", cause))?;
        Ok(costs)
    }

    fn sizes(&self) -> Result<Sizes, Stop> {
        match self.sizes.as_str() {
            "bing" => Ok(Sizes::BING),
            "finance" => Ok(Sizes::FINANCE_LIKE),
            other => Err(of_option(
                "--sizes",
                format!("there are no sizes {other:?}; there are bing and finance"),
            )),
        }
    }

    fn shape(&self) -> Result<Shape, Stop> {
        match self.shape.as_str() {
            "rounds" => Ok(Shape::Rounds),
            "loop" => Ok(Shape::Loop),
            other => Err(of_option(
                "--shape",
                format!("there is no shape {other:?}; there are rounds and loop"),
            )),
        }
    }
}

/// Which option the number is of that is wrong.
fn option_of(error: &ParametersError) -> &'static str {
    match error {
        ParametersError::Interval => "--interval-us",
        ParametersError::Utilisation(_) => "--utilisation",
        ParametersError::Growth(_) => "--growth",
        ParametersError::Parts => "--parts",
        _ => "--policies",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        options: JobsOptions,
    }

    fn options(line: &str) -> JobsOptions {
        let words = std::iter::once("jobs").chain(line.split_whitespace());
        Line::try_parse_from(words).unwrap().options
    }

    #[test]
    fn every_experiment_has_a_row_for_each_policy_and_is_drawn() {
        for line in [
            "flow --jobs 300 --loads 50,80",
            "flow --jobs 100 --loads 50 --sizes finance --shape loop --one-decision --spin --job-costs goal",
            "elastic --iterations 50 --periods-ms 20,100",
            "feedback --job-costs zero",
            "feedback --job-costs measured",
        ] {
            let options = options(line);
            let machine = options.machine().ok().unwrap();
            let rows = options.rows(&machine, &Own::default()).ok().unwrap();
            let points = options.points().ok().unwrap().len();
            assert_eq!(rows.len(), options.names().len() * points, "{line}");
            let (text, svg) = match options.experiment {
                Experiment::Flow => (table::flow(&rows), picture::flow(&rows)),
                Experiment::Elastic => (table::elastic(&rows), picture::misses(&rows)),
                Experiment::Feedback => (table::feedback(&rows), picture::cores(&rows[0])),
            };
            let svg = svg.unwrap();
            assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"));
            assert!(
                options.names().iter().all(|name| text.contains(name)),
                "{text}"
            );
        }
    }

    #[test]
    fn a_number_of_jobs_or_iterations_out_of_its_range_is_refused() {
        for (line, expected) in [
            ("jobs flow --jobs 0", "1..=10000000"),
            ("jobs flow --jobs 4294967295", "1..=10000000"),
            ("jobs elastic --iterations 0", "1.."),
        ] {
            let refused = Line::try_parse_from(line.split_whitespace()).err();
            let text = refused.expect("refused").to_string();
            assert!(text.contains(expected), "{line}: {text}");
        }
    }

    #[test]
    fn what_is_wrong_with_a_command_line_is_named() {
        for (line, expected) in [
            ("--cores 0", "0 cores"),
            ("--cores 1025", "1 to 1024"),
            ("--loads 0", "above 0"),
            ("--policies fair", "shares, drep"),
            ("--sizes bling", "bing and finance"),
            ("--shape tree", "rounds and loop"),
            ("--policies shares --utilisation 2", "at most 1"),
            ("elastic --periods-ms 0", "1 to 100000"),
            ("elastic --containers 1", "--containers: "),
            ("--loads 1e-300", "--loads: at 1e-300 %"),
            ("--jobs 1 --loads 1e-10", "raise the load, or lower --jobs"),
            ("--policies static --parts 0", "--parts: "),
            (
                "feedback --interval-us 17",
                "--interval-us: the interval is 17000 ns",
            ),
        ] {
            let Err(Stop(code, said)) = options(line).perform(&Own::default()) else {
                panic!("{line}: nothing was wrong");
            };
            assert!(code == 2 && said.contains(expected), "{line}: {said}");
        }
    }
}
