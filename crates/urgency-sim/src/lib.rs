//! A deterministic simulator of Urgency's schedulers.
//!
//! The policies of [`urgency_policy`] are pure decisions. Here the very same code schedules computations on
//! machines that one does not have, up to 1,024 workers, with costs that one chooses, and everything that
//! the papers state about their schedules is checked on every run.
//!
//! 1. A [`dag::Dag`] is the computation: threads of vertices, each with its work; edges for what must
//!    come first, some with a latency (I/O); a level for each thread; release times. [`generate`] makes them,
//!    [`trace`] reads and writes them.
//! 2. A [`Machine`] is the scheduler and its costs.
//! 3. [`run`] schedules the one on the other, and returns a [`Report`].
//! 4. [`bounds`] compares the report with what theory says about this DAG: by how much each bound holds, or
//!    which of its premises does not.
//!
//! ```
//! use urgency_sim::{Machine, bounds, generate, run};
//!
//! let dag = generate::fork_join(10, 2, 1);
//! let machine = Machine { workers: 8, ..Machine::default() };
//! let report = run(&dag, &machine)?;
//! assert_eq!(report.work, dag.total_work());
//! assert!(bounds::brent(&dag, &machine, &report).holds());
//! # Ok::<(), urgency_sim::MachineError>(())
//! ```
//!
//! # Words
//!
//! They are the papers' words: **vertex**, **thread**, **work** (T1, the sum of all vertices), **span** (T∞, the
//! longest path, latencies included), **deviation** (a vertex that does not run right after the one that it follows in
//! a serial execution), **stretch** (how many times longer than on an own machine).
//!
//! # The same seed, the same result
//!
//! There is one source of randomness, the seed of the machine, one order of events (time, then ends before
//! decisions, then the order of their making), and no iteration over hashed collections. [`Report::digest`] is a
//! hash of the whole schedule; it is the same on every machine.

#![forbid(unsafe_code)]

mod alone;
pub mod bounds;
pub mod command;
pub mod dag;
mod engine;
pub mod generate;
pub mod jobs;
mod machine;
mod report;
pub mod scaling;
mod serial;
pub mod trace;

pub use engine::run;
pub use machine::{Costs, MAX_COST, Machine, MachineError};
pub use report::{LevelReport, Report, Response, Span};
