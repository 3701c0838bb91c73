//! What the body of `main` awaits, as it is usual: not in a task, but in the `block_on` of the program's first thread.
//! The same programs for Tokio and for ours (`programs!`), with two workers and with a runtime for the current thread.
//!
//! - *socket*: requests over a socket, one at a time, to a thread that answers.
//! - *actor*: requests to a task, each with a channel for its answer.
//! - *set*: tasks that yield once, 16 in a `JoinSet`.
//! - *files*: 8 tasks that read a file of 4 KiB, which the kernel has in memory.

#[cfg(feature = "ours")]
mod ours;
mod programs;
mod tokio;

use std::{
    io::{Read as _, Write as _},
    os::unix::net::UnixStream,
    thread,
};
use urgency_measure::{Bar, Experiment, Sample, Scale, timing};

/// What is done, how often in all.
#[derive(Clone, Copy)]
pub struct Config {
    /// Which program.
    pub program: Program,
    /// Whether the runtime is one for the current thread; otherwise it has two workers.
    pub is_current_thread: bool,
    /// Operations in all.
    pub operations: u64,
}

/// The programs.
#[derive(Clone, Copy, Debug)]
pub enum Program {
    /// Requests over a socket.
    Socket,
    /// Requests to a task.
    Actor,
    /// Tasks in a set.
    Set,
    /// Reads of a file.
    Files,
}

/// Tasks that read.
pub const READERS: u64 = 8;
/// Tasks in a set.
pub const IN_SET: u64 = 16;
/// Bytes of the file.
pub const FILE: usize = 4096;
/// Bytes of a request, and of its answer.
pub const REQUEST: usize = 64;

impl Config {
    /// Times `run`, which returns how many operations were made.
    pub fn measure(&self, run: impl FnMut() -> u64) -> Sample {
        let sample = timing::repeat(3, &self.operations, run);
        sample.with_each("operation_ns", self.operations)
    }
}

/// The end of a socket at whose other end a thread answers.
pub fn answered() -> UnixStream {
    let (here, mut there) = UnixStream::pair().expect("a pair of sockets can be had");
    thread::spawn(move || {
        let mut request = [0; REQUEST];
        while there.read_exact(&mut request).is_ok() && there.write_all(&request).is_ok() {}
    });
    here
}

/// Each program with two workers, and on the current thread.
pub fn experiments(scale: Scale) -> Vec<Experiment> {
    let some = scale.pick(40_000, 160);
    let programs = [
        ("socket", "requests over a socket", Program::Socket, some),
        ("actor", "requests to a task", Program::Actor, some),
        ("set", "tasks in a JoinSet of 16", Program::Set, 4 * some),
        ("files", "reads of 4 KiB by 8 tasks", Program::Files, some),
    ];
    let both = |of: (&str, &str, Program, u64)| {
        [false, true].map(|is_current_thread| experiment(of, is_current_thread))
    };
    programs.into_iter().flat_map(both).collect()
}

fn experiment(
    (name, text, program, operations): (&str, &str, Program, u64),
    is_current_thread: bool,
) -> Experiment {
    let config = Config {
        program,
        is_current_thread,
        operations,
    };
    let (suffix, on) = match is_current_thread {
        true => ("-current", "on the current thread"),
        false => ("", "2 workers"),
    };
    let experiment = Experiment::new(
        format!("body-{name}{suffix}"),
        format!("{text}, from the body of main, {on}"),
    )
    .table("tokio", &["operation_ns", "cpu_ns"])
    .contender("tokio", move || tokio::run(config))
    .bar(Bar::times_at_most("ours", "operation_ns", 1.0, &["tokio"]));
    #[cfg(feature = "ours")]
    let experiment = experiment.contender("ours", move || ours::run(config));
    experiment
}
