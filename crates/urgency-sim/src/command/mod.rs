//! The command `urgency sim`.
//!
//! One run: a computation (generated, or a trace), a machine, a table of what happened and of the bounds.
//! With `--compare` the same computation under every pool policy, one row each. With `--calibrate` nothing is
//! simulated: the costs of this machine are measured, to be given to `--costs`. `urgency sim jobs` simulates many jobs
//! under core policies, and `urgency sim scaling` the queue of a level with many cores.
//!
//! Exit codes: 0; 1 if a bound whose premises hold is violated, or a file cannot be read or written; 2 if the
//! command line is wrong.

mod calibrate;
mod input;
mod jobs;
mod limits;
mod options;
mod own;
mod picture;
mod scaling;
mod table;

pub use options::Options;
pub use own::Own;

use crate::{Machine, MachineError, Report, bounds, dag::Dag, trace};
use std::{
    fmt::Display,
    fs, io,
    path::{Path, PathBuf},
    process::ExitCode,
};
use urgency_measure::output;
use urgency_policy::pool::Kind;

/// What stops the command: the exit code and what to say.
struct Stop(u8, String);

fn wrong(said: impl ToString) -> Stop {
    Stop(2, said.to_string())
}

/// What is wrong with the value of an option.
fn of_option(option: &str, said: impl Display) -> Stop {
    wrong(format!("{option}: {said}"))
}

fn failed(said: impl ToString) -> Stop {
    Stop(1, said.to_string())
}

/// Says a part of the result.
fn say(text: impl Display) -> Result<(), Stop> {
    output::say(text).map_err(|cause| failed(format!("the result cannot be written: {cause}")))
}

/// Runs the command.
pub fn run(options: &Options) -> ExitCode {
    run_with(options, &Own::default())
}

/// Runs the command with policies of your own beside the built-in ones.
pub fn run_with(options: &Options, own: &Own) -> ExitCode {
    match perform(options, own) {
        Ok(()) => ExitCode::SUCCESS,
        Err(Stop(code, said)) => {
            eprintln!("urgency sim: {said}");
            ExitCode::from(code)
        }
    }
}

fn perform(options: &Options, own: &Own) -> Result<(), Stop> {
    match &options.more {
        Some(options::More::Jobs(jobs)) => return jobs.perform(own),
        Some(options::More::Scaling(scaling)) => return scaling.perform(),
        None => {}
    }
    if options.calibrate {
        let costs = calibrate::costs();
        say(serde_json::to_string(&costs).map_err(failed)? + "\n")?;
        return Ok(());
    }
    options.check_workers()?;
    probe(&[
        ("--write-trace", &options.write_trace),
        ("--json", &options.json),
        ("--picture", &options.picture),
    ])?;
    let (dag, recorded) = options.input()?;
    let machine = options.machine(dag.levels(), own)?;
    options.check_events(&dag)?;
    if let Some(path) = &options.write_trace {
        write("--write-trace", path, &trace::write(&dag))?;
    }
    say(table::computation(&dag))?;
    if let Some(recorded) = recorded {
        say(table::recorded(&recorded))?;
    }
    if options.compare {
        return compare(options, own, &dag, &machine);
    }
    let reports = (0..options.seeds)
        .map(|more| {
            let seeded = Machine {
                seed: machine.seed.wrapping_add(more),
                ..machine.clone()
            };
            simulate(&dag, &options.reseeded(seeded))
        })
        .collect::<Result<Vec<Report>, Stop>>()?;
    let report = &reports[0];
    say(table::report(report))?;
    let checks = bounds::all(&dag, &machine, &reports);
    say(table::checks(&checks))?;
    if let Some(path) = &options.json {
        let all = serde_json::json!({ "report": report, "checks": checks });
        write("--json", path, &all.to_string())?;
    }
    if let Some(path) = &options.picture {
        write(
            "--picture",
            path,
            &picture::schedule(report).map_err(failed)?,
        )?;
    }
    match checks.iter().find(|check| !check.is_consistent()) {
        Some(check) => Err(failed(format!(
            "{} does not hold, though its premises do; please report this with the command line",
            check.name
        ))),
        None => Ok(()),
    }
}

/// The same computation under every pool policy.
fn compare(options: &Options, own: &Own, dag: &Dag, machine: &Machine) -> Result<(), Stop> {
    let mut rows = Vec::new();
    let named = Kind::NAMED
        .iter()
        .map(|&(name, pool, _)| (name, pool.into()));
    for (name, pool) in named.chain(own.pools()) {
        let machine = Machine {
            pool,
            record: 0,
            ..machine.clone()
        };
        rows.push((name, simulate(dag, &machine)?));
    }
    say(table::comparison(&rows))?;
    if let Some(path) = &options.json {
        let all: serde_json::Map<_, _> = rows
            .iter()
            .map(|(name, report)| ((*name).to_owned(), serde_json::json!(report)))
            .collect();
        write("--json", path, &serde_json::Value::from(all).to_string())?;
    }
    if let Some(path) = &options.picture {
        write(
            "--picture",
            path,
            &picture::trade_off(&rows).map_err(failed)?,
        )?;
    }
    Ok(())
}

fn simulate(dag: &Dag, machine: &Machine) -> Result<Report, Stop> {
    crate::run(dag, machine).map_err(|cause| match cause {
        MachineError::Starved { .. } => of_option("--shares, --workers, --donate", cause),
        cause => wrong(cause),
    })
}

/// Writes the file that an option names.
fn write(option: &str, path: &Path, text: &str) -> Result<(), Stop> {
    fs::write(path, text).map_err(|cause| unwritten(option, path, &cause))
}

/// Fails before the run with what would fail after it: the files that these options name.
fn probe(files: &[(&str, &Option<PathBuf>)]) -> Result<(), Stop> {
    let named = files
        .iter()
        .filter_map(|(option, path)| Some((option, path.as_ref()?)));
    for (place, (option, path)) in named.clone().enumerate() {
        output::probe(path).map_err(|cause| unwritten(option, path, &cause))?;
        // A device or a pipe takes both.
        let is_file = !path.exists() || path.is_file();
        let mut before = named.clone().take(place);
        if let Some((other, _)) = before.find(|(_, other)| is_file && *other == path) {
            return Err(wrong(format!(
                "{other} and {option} name the same file, {path:?}: one would be lost"
            )));
        }
    }
    Ok(())
}

fn unwritten(option: &str, path: &Path, cause: &io::Error) -> Stop {
    failed(format!("{option} {path:?} cannot be written: {cause}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        options: Options,
    }

    fn options(line: &str) -> Options {
        let words = std::iter::once("sim").chain(line.split_whitespace());
        Line::try_parse_from(words).unwrap().options
    }

    fn said(line: &str) -> (u8, String) {
        let Err(Stop(code, said)) = perform(&options(line), &Own::default()) else {
            panic!("{line}: nothing was wrong");
        };
        (code, said)
    }

    #[test]
    fn a_file_that_two_options_name_is_refused_before_the_run() {
        let path = std::env::temp_dir().join(format!("urgency-sim-{}", std::process::id()));
        let path = path.display();
        for line in [
            format!("--json {path} --picture {path}"),
            format!("--write-trace {path} --json {path}"),
            format!("jobs --json {path} --picture {path}"),
        ] {
            let (code, said) = said(&line);
            assert!(code == 2 && said.contains("name the same file"), "{said}");
        }
        let line = "--dag memcached --time-ms 5 --rate 20000 --json /dev/null --picture /dev/null";
        perform(&options(line), &Own::default()).unwrap_or_else(|stop| panic!("{}", stop.1));
    }

    #[test]
    fn every_computation_runs_under_every_schedule_and_is_drawn() {
        for shape in options::Shape::ALL {
            let shape = shape.name();
            for schedule in ["prompt", "fair", "adaptive", "fixed", "winner"] {
                let line = format!(
                    "--dag {shape} --size 40 --time-ms 3 --rate 300 --workers 3 --schedule {schedule}"
                );
                let options = options(&line);
                let dag = options.dag().ok().unwrap();
                let machine = options.machine(dag.levels(), &Own::default()).ok().unwrap();
                let report = simulate(&dag, &machine).ok().unwrap();
                assert_eq!(report.work, dag.total_work(), "{line}");
                let svg = picture::schedule(&report).unwrap();
                assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"));
            }
        }
    }

    #[test]
    fn a_comparison_has_a_row_and_a_point_for_each_pool_policy() {
        let options = options("--dag memcached --time-ms 5 --rate 20000 --workers 4");
        let dag = options.dag().ok().unwrap();
        let machine = options.machine(dag.levels(), &Own::default()).ok().unwrap();
        let rows: Vec<_> = Kind::NAMED
            .into_iter()
            .map(|(name, pool, _)| {
                let machine = Machine {
                    pool: pool.into(),
                    ..machine.clone()
                };
                (name, simulate(&dag, &machine).ok().unwrap())
            })
            .collect();
        let (text, svg) = (table::comparison(&rows), picture::trade_off(&rows).unwrap());
        for (name, ..) in Kind::NAMED {
            assert!(text.contains(name) && svg.contains(name), "{name}");
        }
    }

    #[test]
    fn the_longest_computation_of_a_shape_is_one() {
        let longest = crate::dag::LONGEST / 2_000;
        for shape in options::Shape::ALL.map(options::Shape::name) {
            if matches!(shape, "job-server" | "memcached" | "bing" | "finance") {
                continue;
            }
            // The most that is not refused, to the power of two.
            let found = (0..64).rev().map(|bits| 1u64 << bits).find(|work| {
                let line =
                    format!("--dag {shape} --size 9 --time-ms 1 --work {work} --latency {work}");
                options(&line).dag().is_ok()
            });
            assert!(found.unwrap() > longest, "{shape}: {found:?}");
        }
        let options = options("--size 20 --work 5 --seed 18446744073709551615 --seeds 3");
        assert!(perform(&options, &Own::default()).is_ok());
    }

    #[test]
    fn a_computation_that_fits_into_no_memory_is_refused_and_so_is_one_of_nothing() {
        for (line, expected) in [
            ("sim --size 0", "1..=10000000"),
            ("sim --size 4294967295", "1..=10000000"),
        ] {
            let refused = Line::try_parse_from(line.split_whitespace()).err();
            let text = refused.expect("refused").to_string();
            assert!(text.contains(expected), "{line}: {text}");
        }
    }

    #[test]
    fn a_stream_that_fits_into_no_memory_is_refused_with_its_product_and_the_options() {
        for (line, given, vertices) in [
            (
                "three-levels --workers 1024 --time-ms 100",
                "--time-ms 100, --workers 1024 and --work 1000",
                "345600005 vertices",
            ),
            (
                "memcached --rate 1e6 --time-ms 20000",
                "--rate 1000000.0 a second and --time-ms 20000",
                "20059200 vertices",
            ),
            (
                "memcached --rate 0 --time-ms 4000000000",
                "--rate 0.0 a second and --time-ms 4000000000",
                "11840000000 vertices",
            ),
            (
                "job-server --rate 1000 --time-ms 2000",
                "--rate 1000.0 a second and --time-ms 2000",
                "11984000 vertices",
            ),
            (
                "bing --rate 90 --workers 1024 --time-ms 1000",
                "--rate 90.0 %, --workers 1024 and --time-ms 1000",
                "vertices",
            ),
            (
                "finance --rate 1e6 --time-ms 4000",
                "--rate 1000000.0 %, --workers 2 and --time-ms 4000",
                "vertices",
            ),
        ] {
            let (code, text) = said(&format!("--dag {line}"));
            assert_eq!(code, 2);
            assert!(
                text.starts_with(given) && text.contains(vertices),
                "{line}: {text}"
            );
            assert!(text.contains("it can have 10000000: lower one"), "{text}");
        }
        for line in ["memcached --rate 4e7", "bing --rate 3000 --workers 8"] {
            let options = options(&format!("--dag {line}"));
            let checked = options.check(options::Shape::of(&options.dag).ok().unwrap());
            assert!(checked.is_ok(), "{line}");
        }
    }

    #[test]
    fn a_run_of_too_many_slices_or_quanta_is_refused() {
        for (line, expected) in [
            ("--size 65536 --check-in 1", "--check-in of 1 ns makes"),
            (
                "--dag memcached --rate 0 --time-ms 200000 --schedule adaptive --quantum-us 1",
                "--quantum-us of 1000 ns makes",
            ),
        ] {
            let (code, text) = said(line);
            assert!(code == 2 && text.starts_with(expected), "{line}: {text}");
        }
    }

    #[test]
    fn a_number_of_seeds_whose_runs_do_not_end_in_reason_is_refused() {
        for seeds in [0, 10_001, u64::MAX] {
            let line = ["sim", "--seeds", &seeds.to_string()];
            let refused = Line::try_parse_from(line).err().expect("refused");
            assert!(refused.to_string().contains("1..=10000"), "{refused}");
        }
    }

    #[test]
    fn what_is_wrong_with_a_command_line_is_said_with_exit_code_2() {
        let (code, text) = said("--schedule fair --stretches 1.5,2");
        assert_eq!(code, 2);
        assert!(text.contains("1.16"), "{text}");
        for rate in ["nan", "inf", "1e10"] {
            let (code, text) = said(&format!("--dag memcached --rate {rate}"));
            assert_eq!(code, 2);
            assert!(text.contains("0 to 1000000000"), "{text}");
        }
        assert!(said("--dag bing --rate=-5").1.contains("0 to 1000000"));
        // Before the computation, which would not fit.
        let many = said("--dag three-levels --workers 1000000000").1;
        assert!(many.contains("1 to 1024"), "{many}");
        for shape in options::Shape::ALL.map(options::Shape::name) {
            for option in ["--work", "--latency", "--time-ms"] {
                let line = format!("--dag {shape} {option} 18446744073709551615 --rate 0");
                let options = options(&line);
                let is_used = option == "--time-ms"
                    || !matches!(shape, "job-server" | "memcached" | "bing" | "finance");
                if is_used && (option, shape) != ("--latency", "three-levels") {
                    let Err(Stop(code, text)) = options.dag() else {
                        panic!("{line}: nothing was wrong");
                    };
                    assert_eq!(code, 2);
                    assert!(text.contains("can be 9007199 s"), "{text}");
                }
            }
        }
        for option in ["--piece", "--far", "--transfer"] {
            let known = if option == "--transfer" {
                ""
            } else {
                "--transfer 9"
            };
            let most = u64::MAX;
            let (code, text) = said(&format!(
                "scaling --cores 8 --own 9 {known} {option} {most}"
            ));
            assert_eq!(code, 2);
            assert!(text.contains("can be 9223372037 s"), "{text}");
        }
        assert!(said("--pool filo").1.contains("fifo, lifo"));
        assert!(said("--workers 2000").1.contains("1 to 1024"));
        assert!(said("--dag nothing").1.contains("fork-join"));
        assert!(
            said("--trace /nowhere/at.all")
                .1
                .contains("/nowhere/at.all")
        );
    }
}
