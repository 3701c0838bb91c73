//! # urgency-bench: how Urgency compares, measured so that the numbers can be believed
//!
//! What the documents claim about speed or latency is an *experiment* here. An experiment names its
//! *contenders* (ours, its peers, a serial program) and its *bars*: the limits that ours must keep, as data.
//! `urgency-bench --list` prints all of them.
//!
//! How one run goes:
//!
//! 1. For each experiment that the filter admits, `--rounds` rounds are run. In each round every contender
//!    gives one sample, so that slow drifts of the machine (clocks of a virtual machine, neighbours) hit all
//!    contenders alike. The order is drawn once, and reversed in each second round: neither of two contenders
//!    comes first more often than the other by more than one round.
//! 2. A sample is a fresh child process, `urgency-bench --one <experiment>/<contender>`, that prints one line
//!    of JSON. No pool of a peer that idles, spins or keeps memory can disturb another, and no runtime has to
//!    be restartable.
//! 3. Medians over the rounds are printed, and for bars the median of the *paired* ratios (ours over the peer
//!    in the same round).
//! 4. All raw samples are kept as JSON, with what the machine was and how much of it others used meanwhile.
//!
//! Each contender verifies its own result: a wrong answer is a failed sample, and a failed sample fails `--check`.
//!
//! Layout: `<problem>/` (one folder per problem: `mod.rs` is the shared configuration, the input and the verification,
//! then one file per contender), `engines/` (how each runtime is built). How it is measured is `urgency-measure`.
//!
//! There is no unsafe code in this crate.

#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod engines;

mod experiments;

mod body;
#[cfg(feature = "ours")]
mod cache_tokio;
mod cancel_wave;
#[cfg(feature = "ours")]
mod coschedule;
mod deques;
mod echo;
mod editor;
mod fair;
mod fib;
mod flows;
mod frame;
mod hand_off;
mod idle;
mod inject;
#[cfg(feature = "ours")]
mod jobs_costs;
#[cfg(feature = "ours")]
mod jobs_elastic;
#[cfg(feature = "ours")]
mod jobs_feedback;
mod jobs_flow;
mod jobs_isolation;
mod latency_hiding;
mod matmul;
mod mixed;
mod nqueens;
mod par;
mod ping_pong;
mod queue;
mod scenes;
mod scope_spawn;
mod service;
mod sort;
mod stalls;
mod start;
mod store;
mod stream;
mod sums;
mod sync;
mod task_spawn;
mod tick;
mod uts;
mod wake;
mod web;
mod workers;
mod yielding;

fn main() -> std::process::ExitCode {
    #[cfg(feature = "ours")]
    if std::env::args().nth(1).as_deref() == Some("cache-tokio") {
        return cache_tokio::main(std::env::args().skip(1));
    }
    urgency_measure::experiment::main(experiments::all)
}
