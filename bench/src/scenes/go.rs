//! Go: a program of its own (`main.go`) with a goroutine for each connection and fork.
//!
//! It has no levels: its scheduler preempts a goroutine after 10 ms, in favour of any other one.

use super::{Scene, summarize};
use crate::engines::go;
use std::cell::RefCell;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;
use urgency_measure::{Sample, loaded, machine, others};

const SOURCE: &str = include_str!("main.go");
/// Longer than it takes to answer.
const LIMIT: Duration = Duration::from_secs(60);

/// One sample.
pub fn run(scene: Scene) -> Sample {
    let lanes = scene.lanes.iter();
    let sizes = lanes.flat_map(|kind| [kind.work.0.to_string(), kind.work.1.to_string()]);
    let arguments: Vec<_> = [scene.locks.to_string()].into_iter().chain(sizes).collect();
    let mut go = go::start(SOURCE, &arguments, scene.workers);
    let port: u16 = go.hear(LIMIT).expect("it gets ready");
    let process = go.id();
    let go = RefCell::new(go);
    let units = || {
        let mut go = go.borrow_mut();
        // Its first question starts the batch.
        go.tell_line("units").expect("the Go program reads");
        go.hear(LIMIT).expect("the Go program answers")
    };
    units();
    let served = scene.load(SocketAddr::from((Ipv4Addr::LOCALHOST, port)), units);
    let cpu = others::cpu_seconds(process);
    let sample = loaded::measure(served, scene.lengths, summarize);
    let requests = sample
        .get(&format!("{}_count", scene.lanes[0].name))
        .unwrap_or(1.0);
    let status = |field| machine::status(&process.to_string(), field).unwrap_or_default();
    sample
        .with(
            "cpu_ns",
            (others::cpu_seconds(process) - cpu) * 1e9 / requests,
        )
        .with("threads_peak", status("Threads"))
        .with("peak_rss_bytes", status("VmHWM") * 1024.0)
}
