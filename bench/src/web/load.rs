//! Running `wrk` and `h2load`, and reading what they print.
//!
//! `wrk` is the closed loop: as many requests as the server answers. `h2load --rps` is the paced one: so many
//! requests a second on each connection; its log has the time of each request. (`h2load` counts from when it
//! sends. A connection that waits for an answer does not send its next request, so a stall hides requests
//! that would have been slow as well, in all contenders alike.)

use super::Pace;
use crate::harness::Sample;
use std::net::SocketAddr;
use std::process::{Command, Stdio};
use std::time::Duration;

const CONNECTIONS: usize = 64;

/// Loads `server` for about so long (whole seconds, at least one).
pub fn run(server: SocketAddr, pace: Pace, duration: Duration, real_time: bool) -> Sample {
    let real_time = real_time && may_be_real_time();
    let url = format!("http://{server}/");
    let seconds = duration.as_secs().max(1);
    let sample = match pace {
        Pace::Closed => wrk(&url, seconds, real_time),
        Pace::PerConnection(rate) => h2load(&url, rate, seconds, real_time),
    };
    sample.with("client_real_time", f64::from(u8::from(real_time)))
}

/// Runs a Debian program, in the class SCHED_FIFO if `real_time`, and returns what it printed.
fn output(program: &str, real_time: bool, arguments: &[&str]) -> String {
    let mut command = if real_time {
        let mut command = Command::new("chrt");
        command.args(["--fifo", "1", program]);
        command
    } else {
        Command::new(program)
    };
    let output = command
        .args(arguments)
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .unwrap_or_else(|error| {
            panic!("{program} cannot be started ({error}): install Debian's wrk and nghttp2-client")
        });
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{program} failed: {printed}");
    printed
}

fn wrk(url: &str, seconds: u64, real_time: bool) -> Sample {
    let (connections, seconds) = (CONNECTIONS.to_string(), format!("{seconds}s"));
    let arguments = [
        "--latency",
        "-t",
        "1",
        "-c",
        &connections,
        "-d",
        &seconds,
        url,
    ];
    let printed = output("wrk", real_time, &arguments);
    // Either line says that something else than an answer of status 200 came.
    let failed = ["Non-2xx", "Socket errors"];
    assert!(
        !failed.iter().any(|line| printed.contains(line)),
        "wrk was refused: {printed}"
    );
    Sample::new()
        .with("requests_per_s", number(&printed, "Requests/sec:"))
        .with("p50_ns", nanoseconds(&printed, "50%"))
        .with("p90_ns", nanoseconds(&printed, "90%"))
        .with("p99_ns", nanoseconds(&printed, "99%"))
}

fn h2load(url: &str, rate: u32, seconds: u64, real_time: bool) -> Sample {
    let log = std::env::temp_dir().join(format!("urgency-bench-{}.log", std::process::id()));
    let log_argument = format!("--log-file={}", log.display());
    let (connections, duration) = (CONNECTIONS.to_string(), format!("{seconds}s"));
    let rate = rate.to_string();
    let arguments = [
        "--h1",
        "-c",
        &connections,
        "-t",
        "1",
        "-D",
        &duration,
        "--rps",
        &rate,
        &log_argument,
        url,
    ];
    output("h2load", real_time, &arguments);
    let rows = std::fs::read_to_string(&log).expect("h2load wrote its log");
    // It is ours, and nobody needs it any more.
    let _ = std::fs::remove_file(&log);
    let mut micros: Vec<u64> = rows
        .lines()
        .map(|row| {
            let mut columns = row.split('\t').skip(1);
            assert_eq!(columns.next(), Some("200"), "a request failed");
            let micros = columns.next().and_then(|word| word.parse().ok());
            micros.expect("the third column is the time in microseconds")
        })
        .collect();
    assert!(!micros.is_empty(), "h2load sent no request");
    micros.sort_unstable();
    let quantile = |q: f64| micros[((micros.len() - 1) as f64 * q) as usize] as f64 * 1e3;
    Sample::new()
        .with("requests_per_s", micros.len() as f64 / seconds as f64)
        .with("p50_ns", quantile(0.5))
        .with("p90_ns", quantile(0.9))
        .with("p99_ns", quantile(0.99))
}

fn may_be_real_time() -> bool {
    let probe = Command::new("chrt")
        .args(["--fifo", "1", "true"])
        .stderr(Stdio::null())
        .status();
    probe.is_ok_and(|status| status.success())
}

/// The word after `label` at the beginning of a line.
fn word<'a>(printed: &'a str, label: &str) -> &'a str {
    printed
        .lines()
        .find_map(|line| line.trim_start().strip_prefix(label))
        .unwrap_or_else(|| panic!("wrk printed no `{label}`: {printed}"))
        .trim()
}

fn number(printed: &str, label: &str) -> f64 {
    let word = word(printed, label);
    word.parse()
        .unwrap_or_else(|_| panic!("wrk printed `{word}` where a number should be"))
}

fn nanoseconds(printed: &str, label: &str) -> f64 {
    let word = word(printed, label);
    let (number, unit) =
        word.split_at(word.len() - word.chars().rev().take_while(|c| c.is_alphabetic()).count());
    let unit = match unit {
        "us" => 1e3,
        "ms" => 1e6,
        "s" => 1e9,
        _ => panic!("wrk printed `{word}` where a time should be"),
    };
    number
        .parse::<f64>()
        .unwrap_or_else(|_| panic!("wrk printed `{word}` where a time should be"))
        * unit
}
