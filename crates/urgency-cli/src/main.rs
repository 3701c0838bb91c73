//! The command `urgency`.
//!
//! `urgency demo` runs the project's main job: interactive requests beside endless parallel compute on the same
//! processors, and a frame loop beside decoders, under Urgency and under the usual alternatives, live and in about 20
//! seconds. `urgency cache` is a cache server in the place of memcached.
//!
//! `urgency load cache` loads a server that speaks memcached's protocol ([`urgency_load`]).
//! `urgency sim` simulates schedulers ([`urgency_sim`]).
//!
//! Exit codes: 0 all went well; 1 something failed while running (a process died, a file could not be
//! written); 2 the command line was wrong, and nothing was started.
//!
//! `urgency load compare` measures `urgency cache` beside memcached.
//!
//! Hidden subcommands are child processes: `demo-server` (one contender), `demo-client` (the load) and `demo-frames`
//! (one contender of the frame loop) of the demo, `compare-child` of the comparison. Each gets its task as one
//! argument of JSON and talks JSON lines on its standard streams.

#![deny(unsafe_code)]

mod cache;
mod compare;
mod demo;

use clap::{Parser, Subcommand};
use serde::de::DeserializeOwned;
use std::process::ExitCode;

/// Urgent work goes first: a task runtime for interactive and batch work on the same cores.
#[derive(Parser)]
#[command(name = "urgency", version, about)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// A cache server that speaks memcached's protocols and takes its options.
    Cache(Box<cache::Options>),
    // Described at its options: a comment here would hide all but its own words from `--help`.
    Demo(demo::Options),
    /// Load generators.
    #[command(subcommand)]
    Load(Load),
    /// Simulate a scheduler on up to 1,024 workers, and check the papers' bounds.
    Sim(Box<urgency_sim::command::Options>),
    #[command(hide = true)]
    DemoServer {
        spec: String,
    },
    #[command(hide = true)]
    DemoClient {
        spec: String,
    },
    #[command(hide = true)]
    DemoFrames {
        spec: String,
    },
    #[command(hide = true)]
    CompareChild {
        spec: String,
    },
}

#[derive(Subcommand)]
enum Load {
    /// Load a server that speaks memcached's protocol, and measure its latency.
    Cache(urgency_load::command::Options),
    /// Measure `urgency cache` beside memcached, and beside the same server code on Tokio.
    Compare(compare::Options),
}

fn main() -> ExitCode {
    match Cli::parse().command {
        Command::Cache(options) => cache::run(&options),
        Command::Demo(options) => demo::run(&options),
        Command::Load(Load::Cache(options)) => urgency_load::command::run(&options),
        Command::Load(Load::Compare(options)) => compare::run(&options),
        Command::Sim(options) => urgency_sim::command::run(&options),
        Command::DemoServer { spec } => with_spec(&spec, demo::server::main),
        Command::DemoFrames { spec } => with_spec(&spec, demo::frames::stage::main),
        Command::DemoClient { spec } => with_spec(&spec, urgency_measure::client::lanes::main),
        Command::CompareChild { spec } => with_spec(&spec, compare::embedded),
    }
}

/// Runs a child process's task.
fn with_spec<S: DeserializeOwned, E: std::fmt::Display>(
    spec: &str,
    task: impl FnOnce(&S) -> Result<(), E>,
) -> ExitCode {
    let spec = match serde_json::from_str(spec) {
        Ok(spec) => spec,
        Err(error) => {
            eprintln!(
                "urgency: {spec:?} is not the task of a child process ({error}); this subcommand is for `urgency demo` and `urgency load compare`, run \
                 these"
            );
            return ExitCode::from(2);
        }
    };
    match task(&spec) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
