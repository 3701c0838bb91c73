//! Load clients. A load client must not be starved by what it measures, so it is a process of its own, one
//! plain thread around an `epoll` descriptor, in the real-time class SCHED_FIFO where that is permitted (the
//! metric `client_real_time` says whether it was), with a timer slack of 1 ns. It runs on none of the
//! runtimes that it measures.
//!
//! The protocol is request and reply of [`MESSAGE`] bytes each: the server echoes. The first 8 bytes are a
//! sequence number, so that the client can verify that each reply is the one that it waits for.
//!
//! Two paces. *Closed* (`closed.rs`): each connection has one request under way, always; the result is
//! throughput and round-trip time. *Open* (`open.rs`): requests are sent at times drawn beforehand (Poisson),
//! whatever the server does, and latency counts from the *intended* time, so a server that stalls cannot make
//! the client ask less often (coordinated omission). *Lanes* (`lanes/`) are the open loop for several kinds of
//! requests at once, in stretches of load that the experiment opens.

mod closed;
mod connection;
pub mod lanes;
mod open;
pub mod pacer;

use crate::harness::{Sample, machine};
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;
use std::process::{Child, Command, ExitCode, Output, Stdio};

/// Bytes of a request and of its reply.
pub const MESSAGE: usize = 64;

/// When requests are sent.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub enum Pace {
    /// The next one on a connection when the reply to the last has come.
    Closed,
    /// So many per second over all connections together.
    Open(f64),
}

/// What a load client does.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Load {
    /// The server.
    pub server: SocketAddr,
    /// Connections.
    pub connections: usize,
    /// When requests are sent.
    pub pace: Pace,
    /// Milliseconds of load before anything is recorded.
    pub warm_up_ms: u64,
    /// Milliseconds that are recorded; for a load that is ended by [`UnderWay::end`], at most.
    pub run_ms: u64,
}

/// An open-loop load that runs until it is ended.
pub struct UnderWay(Child);

impl UnderWay {
    /// Lets the client send no more, and returns what it measured when the last reply has come.
    pub fn end(mut self) -> Sample {
        drop(self.0.stdin.take());
        let output = self.0.wait_with_output();
        parse(&output.expect("the load client can be waited for"))
    }
}

impl Load {
    /// Runs the client in a process of its own and returns what it measured: `p50_ns` and so on,
    /// `requests_per_s`, `client_real_time`.
    pub fn run(&self) -> Sample {
        let UnderWay(mut client) = self.start();
        // Its input stays open meanwhile.
        let _input = client.stdin.take();
        let output = client.wait_with_output();
        parse(&output.expect("the load client can be waited for"))
    }

    /// Starts the client, which goes on until `run_ms` are over. In the open loop it can be told to end before.
    pub fn start(&self) -> UnderWay {
        let client = self.command().stdin(Stdio::piped()).spawn();
        UnderWay(client.expect("the load client can be started"))
    }

    fn command(&self) -> Command {
        let spec = serde_json::to_string(self).expect("a load can be written as JSON");
        let program = std::env::current_exe().expect("the running program has a path");
        let mut command = Command::new(program);
        command
            .args(["--load", &spec])
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit());
        command
    }
}

fn parse(output: &Output) -> Sample {
    assert!(
        output.status.success(),
        "the load client failed: {}",
        output.status
    );
    serde_json::from_slice(&output.stdout).expect("the load client prints a sample")
}

/// The client's side: runs the load described by `spec` and prints a sample.
pub fn main(spec: &str) -> ExitCode {
    let load: Load = match serde_json::from_str(spec) {
        Ok(load) => load,
        Err(error) => {
            eprintln!("urgency-bench: --load {spec:?} is no load: {error}");
            return ExitCode::from(2);
        }
    };
    let real_time = machine::enter_real_time_class();
    // Where the slack cannot be set, sends come up to 50 us late, for all contenders alike.
    let _ = nix::sys::prctl::set_timerslack(1);
    machine::allow_descriptors(load.connections as u64 + 32);
    let sample = match load.pace {
        Pace::Closed => closed::run(&load),
        Pace::Open(per_s) => open::run(&load, per_s),
    };
    let sample = sample.with("client_real_time", f64::from(u8::from(real_time)));
    let line = serde_json::to_string(&sample).expect("a map of numbers can be written as JSON");
    println!("{line}");
    ExitCode::SUCCESS
}
