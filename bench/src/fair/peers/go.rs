//! Go: a program of its own (`go/main.go`).

use super::Config;
use crate::engines::go;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;
use urgency_measure::Sample;

const SOURCE: &str = include_str!("../go/main.go");
/// Longer than any fib takes.
const LONGEST: Duration = Duration::from_secs(600);

/// One sample.
pub fn run(config: Config) -> Sample {
    let mut go = go::start(SOURCE, &[config.n.to_string()], config.workers);
    let port = go.hear(LONGEST).expect("the Go program prints its port");
    let echo = config.start(SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
    go.tell_line("start").expect("the Go program reads");
    let line = go.hear_line(LONGEST).expect("the Go program goes on");
    let (nanos, value) = line.split_once(' ').expect("two numbers");
    let time = Duration::from_nanos(nanos.parse().expect("nanoseconds"));
    config.end(echo, time, value.parse().expect("fib's value"))
}
