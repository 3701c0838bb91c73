//! Go: a program of its own (`main.go`) with a goroutine for each connection and fork.
//!
//! It has no levels and no pools: its scheduler preempts a goroutine after 10 ms, in favour of any other one. It gets
//! the corpus and says its hits, so that it scans the same. Threads, memory and processor time are the program's.

use super::corpus::Corpus;
use super::index::DOCUMENTS;
use super::{Config, lanes, summarize};
use crate::engines::go;
use std::cell::RefCell;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;
use urgency_measure::client::lanes::Served;
use urgency_measure::{Sample, child::Child, loaded, machine, others};

const SOURCE: &str = include_str!("main.go");
/// Longer than it takes to answer.
const LIMIT: Duration = Duration::from_secs(60);

/// One sample.
pub fn run(config: Config) -> Sample {
    let corpus = Corpus::new(config.scale);
    let place = std::env::temp_dir().join(format!("urgency-corpus-{}", std::process::id()));
    std::fs::write(&place, corpus.text()).expect("the corpus can be written");
    let arguments = [
        place.display().to_string(),
        config.leaf().to_string(),
        DOCUMENTS.to_string(),
    ];
    let mut go = go::start(SOURCE, &arguments, 2);
    let (port, hits, scan_ns): (u16, String, f64) = go.hear(LIMIT).expect("it gets ready");
    // It has been read.
    let _ = std::fs::remove_file(place);
    assert_eq!(hits, corpus.answer(), "wrong result");
    let scan_cpu = corpus.scan_cpu_ns();
    let server = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let (process, cpu) = (go.id(), others::cpu_seconds(go.id()));
    let status = |field| machine::status(&process.to_string(), field).unwrap_or_default();
    let go = RefCell::new(go);
    let written = || ask(&mut go.borrow_mut(), "written");
    let served = Served::start(&lanes(config, corpus, server), written);
    ask(&mut go.borrow_mut(), "start");
    let sample = loaded::measure(served, config.lengths, summarize);
    let requests = sample.get("health_count").unwrap_or(1.0);
    sample
        .with("scan_cpu_ns", scan_cpu)
        .with("load_share", config.per_s * scan_cpu / 2e9)
        .with("scan_ns", scan_ns)
        .with("threads_peak", status("Threads"))
        .with("peak_rss_bytes", status("VmHWM") * 1024.0)
        .with(
            "cpu_ns",
            (others::cpu_seconds(process) - cpu) * 1e9 / requests,
        )
}

/// Asks the program; it answers how many documents were written so far.
fn ask(go: &mut Child, question: &str) -> u64 {
    go.tell_line(question).expect("the Go program reads");
    go.hear(LIMIT).expect("the Go program answers")
}
