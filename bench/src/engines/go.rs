//! Go: programs of their own, built by the toolchain on the machine. Without one there is no such contender.

use std::path::PathBuf;
use std::process::Command;
use urgency_measure::child::Child;

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

/// A Go program that runs, with `workers` as GOMAXPROCS.
pub fn start(source: &str, arguments: &[String], workers: usize) -> Child {
    let place = std::env::temp_dir().join(format!("urgency-bench-go-{}", std::process::id()));
    std::fs::create_dir_all(&place).expect("a directory can be made");
    std::fs::write(place.join("main.go"), source).expect("the source can be written");
    let built = Command::new(toolchain().expect("the toolchain is installed"))
        .args(["build", "-o", "program", "main.go"])
        .env("GO111MODULE", "off")
        .current_dir(&place)
        .status();
    assert!(
        built.is_ok_and(|status| status.success()),
        "`go build` failed"
    );
    let mut command = Command::new(place.join("program"));
    command
        .args(arguments)
        .env("GOMAXPROCS", workers.to_string());
    let child = Child::start("the Go program", command).expect("it can be started");
    // The running program needs its file no more.
    let _ = std::fs::remove_dir_all(place);
    child
}
