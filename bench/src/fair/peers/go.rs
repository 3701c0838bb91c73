//! Go: a program of its own (`go/main.go`), built by the toolchain on the machine.

use super::Config;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;
use urgency_measure::Sample;

const SOURCE: &str = include_str!("../go/main.go");

fn toolchain() -> Option<PathBuf> {
    let places = std::env::var_os("PATH").unwrap_or_default();
    let usual = PathBuf::from("/usr/local/go/bin");
    std::env::split_paths(&places)
        .chain([usual])
        .map(|place| place.join("go"))
        .find(|program| program.is_file())
}

/// Whether the Go toolchain is on this machine.
pub fn is_installed() -> bool {
    toolchain().is_some()
}

/// Builds the program in a directory of this process.
fn build() -> PathBuf {
    let place = std::env::temp_dir().join(format!("urgency-bench-go-{}", std::process::id()));
    std::fs::create_dir_all(&place).expect("a directory can be made");
    std::fs::write(place.join("main.go"), SOURCE).expect("the source can be written");
    let built = Command::new(toolchain().expect("the toolchain is installed"))
        .args(["build", "-o", "fib-echo", "main.go"])
        .env("GO111MODULE", "off")
        .current_dir(&place)
        .status();
    assert!(
        built.is_ok_and(|status| status.success()),
        "`go build` of fair/go/main.go failed"
    );
    place
}

/// One sample.
pub fn run(config: Config) -> Sample {
    let place = build();
    let mut go = Command::new(place.join("fib-echo"))
        .arg(config.n.to_string())
        .env("GOMAXPROCS", config.workers.to_string())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the Go program can be started");
    let mut lines = BufReader::new(go.stdout.take().expect("stdout is piped")).lines();
    let mut line = || {
        let line = lines.next().expect("the Go program goes on");
        line.expect("the Go program writes text")
    };
    let port = line().parse().expect("the Go program prints its port");
    let echo = config.start(SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
    let mut input = go.stdin.take().expect("stdin is piped");
    input.write_all(b"start\n").expect("the Go program reads");
    let line = line();
    let (nanos, value) = line.split_once(' ').expect("two numbers");
    let time = Duration::from_nanos(nanos.parse().expect("nanoseconds"));
    let sample = config.end(echo, time, value.parse().expect("fib's value"));
    drop(input);
    go.wait().expect("the Go program ends");
    // What is left behind is small, and in the directory for such things.
    let _ = std::fs::remove_dir_all(place);
    sample
}
