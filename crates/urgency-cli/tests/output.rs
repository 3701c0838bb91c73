//! What the commands do when their standard output takes nothing: the reader has read enough, or the disk is full.

#![allow(missing_docs)]

use std::{
    fs::{self, File, OpenOptions},
    io,
    os::unix::net::UnixStream,
    path::Path,
    process::{Child, Command, Output, Stdio},
    thread,
    time::Duration,
};

/// Each says something soon, and ends.
const LINES: [&str; 7] = [
    "sim --size 10",
    "sim --size 10 --compare",
    "sim jobs feedback --cores 2",
    "sim scaling --cores 8 --pieces 20 --own 10 --transfer 30",
    "doctor",
    "cache -V",
    "cache -o help",
];

fn urgency(line: &str, output: impl Into<Stdio>) -> Output {
    Command::new(env!("CARGO_BIN_EXE_urgency"))
        .args(line.split_whitespace())
        .stdin(Stdio::null())
        .stdout(output)
        .stderr(Stdio::piped())
        .spawn()
        .and_then(Child::wait_with_output)
        .unwrap()
}

/// An output that nothing reads any more.
fn closed() -> io::PipeWriter {
    io::pipe().unwrap().1
}

fn full() -> File {
    OpenOptions::new().write(true).open("/dev/full").unwrap()
}

fn folder(name: &str) -> String {
    let folder = format!("{}/{name}", env!("CARGO_TARGET_TMPDIR"));
    fs::create_dir_all(&folder).unwrap();
    folder
}

fn assert_goes_well(line: &str) {
    let output = urgency(line, closed());
    assert!(output.status.success(), "{line}: {output:?}");
}

fn assert_says_why_it_fails(line: &str) {
    let output = urgency(line, full());
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{line}: {said}");
    assert!(
        said.contains("cannot be written: No space left"),
        "{line}: {said}"
    );
}

#[test]
fn a_reader_that_has_read_enough_is_no_failure_and_a_full_disk_is_one() {
    for line in LINES {
        assert_goes_well(line);
        assert_says_why_it_fails(line);
    }
}

#[test]
fn files_are_written_though_nothing_reads_the_output() {
    let folder = folder("output-sim");
    let (json, picture) = (format!("{folder}/json"), format!("{folder}/svg"));
    for file in [&json, &picture] {
        let _ = fs::remove_file(file);
    }
    assert_goes_well(&format!("sim --size 10 --json {json} --picture {picture}"));
    assert!(Path::new(&json).exists() && Path::new(&picture).exists());
}

#[test]
fn a_comparison_goes_on_though_its_output_takes_nothing() {
    let folder = folder("output-compare");
    // The part that does not know this contender measures nothing.
    let line = format!("load compare memory --only tokio --quick --save {folder}");
    assert_goes_well(&line);
    assert!(urgency(&line, full()).status.success());
}

#[test]
fn a_load_goes_on_though_nothing_reads_its_output() {
    let folder = folder("output-load");
    let (socket, json) = (format!("{folder}/socket"), format!("{folder}/json"));
    for file in [&socket, &json] {
        let _ = fs::remove_file(file);
    }
    let mut server = Command::new(env!("CARGO_BIN_EXE_urgency"))
        .args(["cache", "-s", &socket])
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    while UnixStream::connect(&socket).is_err() {
        let ended = server.try_wait().unwrap();
        assert!(ended.is_none(), "it ended before it listened");
        thread::sleep(Duration::from_millis(2));
    }
    let line = format!("load cache {socket} -c 1 --keys 10 --duration 0.1 --ramp 0 --json");
    let ended = urgency(&format!("{line} {json}"), closed());
    let failed = urgency(&format!("{line} -"), full());
    server.kill().unwrap();
    server.wait().unwrap();
    assert!(ended.status.success(), "{ended:?}");
    assert!(Path::new(&json).exists());
    let said = String::from_utf8_lossy(&failed.stderr);
    assert_eq!(failed.status.code(), Some(1), "{said}");
    assert!(said.contains("standard output cannot be written"), "{said}");
}

#[test]
fn a_file_that_cannot_be_written_ends_a_command_before_it_does_anything() {
    for line in [
        "sim --size 10 --json",
        "sim --size 10 --picture",
        "sim --size 10 --compare --json",
        "sim jobs feedback --cores 2 --picture",
        "load cache 127.0.0.1:1 --json",
    ] {
        let output = urgency(&format!("{line} /no/such/place"), Stdio::piped());
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{line}: {said}");
        assert!(
            said.contains("cannot be written: No such file"),
            "{line}: {said}"
        );
        assert!(output.stdout.is_empty(), "{line}: {output:?}");
    }
}
