//! `urgency load` from outside: what it says to bad values, to a server that is not there, and to a
//! comparison that cannot be made.

#![allow(missing_docs)]

use std::fs;
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::Duration;

fn load(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_urgency"))
        .args(["load", "cache"])
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .expect("the command starts")
}

fn refusal(arguments: &[&str]) -> String {
    let output = load(arguments);
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {output:?}");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_bad_value_is_refused_with_the_option_the_value_and_what_is_allowed() {
    let cases: &[(&[&str], &[&str])] = &[
        (&["--rate", "0"], &["--rate", "'0'", "1 to 100000000"]),
        (&["--rate", "NaN"], &["--rate", "'NaN'"]),
        (&["--search", "p95"], &["--search", "'p95'", "p95<10ms"]),
        (
            &["--popularity", "zipf:0"],
            &["--popularity", "zipf:EXPONENT"],
        ),
        (&["--value", "9-3"], &["--value", "'9-3'", "10-1000"]),
        (&["--gets", "2"], &["--gets", "0 to 1"]),
        (&["--keys", "0"], &["--keys", "'0'"]),
        (&["--connections", "0"], &["--connections 0", "1 to 10000"]),
        (&["--threads", "9", "-c", "2"], &["--threads 9", "1 to 64"]),
        (&["--key-size", "300"], &["--key-size 300", "250 bytes"]),
        (&["--cpus", "x"], &["--cpus", "0-3"]),
        (&["host:0"], &["host:0", "HOST:PORT"]),
        (
            &["--rate", "5", "--search", "p95<1ms"],
            &["cannot be used with"],
        ),
    ];
    for (arguments, words) in cases {
        let text = refusal(arguments);
        for word in *words {
            assert!(
                text.contains(word),
                "{arguments:?} without {word:?}: {text}"
            );
        }
    }
}

#[test]
fn more_keys_than_there_is_memory_for_are_refused() {
    let limited = r#"ulimit -v 4000000; exec "$0" load cache --keys 4294967295"#;
    let output = Command::new("sh")
        .args(["-c", limited, env!("CARGO_BIN_EXE_urgency")])
        .output()
        .expect("the command starts");
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert!(text.contains("--keys 4294967295 is not possible"), "{text}");
    assert!(text.contains("--no-verify"), "{text}");
}

#[test]
fn a_server_that_is_not_there_is_named_and_the_exit_code_is_one() {
    let output = load(&["127.0.0.1:1"]);
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(text.contains("127.0.0.1:1 cannot be reached"), "{text}");
    assert!(text.contains("start it first"), "{text}");
}

fn compare(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_urgency"))
        .args(["load", "compare", "--quick"])
        .args(arguments)
        .env("PATH", "/nonexistent")
        .stdin(Stdio::null())
        .output()
        .expect("the command starts");
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_comparison_without_memcached_says_how_to_install_it() {
    let save = concat!(env!("CARGO_TARGET_TMPDIR"), "/no-memcached");
    let text = compare(&["highest", "--only", "memcached", "--save", save]);
    assert!(text.contains("apt-get install memcached"), "{text}");
}

#[test]
fn a_part_that_needs_another_ones_result_says_which() {
    let save = concat!(env!("CARGO_TARGET_TMPDIR"), "/nothing-yet");
    for part in ["curves", "batch", "background", "schedules"] {
        let text = compare(&[part, "--save", save]);
        assert!(text.contains("measure the part `highest` first"), "{text}");
        assert!(text.contains("nothing-yet/highest-quick.json"), "{text}");
    }
}

#[test]
fn a_comparison_with_more_connections_than_the_client_can_have_starts_nothing() {
    for connections in ["0", "10001"] {
        let output = Command::new("timeout")
            .args(["60", env!("CARGO_BIN_EXE_urgency"), "load", "compare"])
            .args(["highest", "--quick", "--rounds", "1", "--only", "urgency"])
            .args(["--save", env!("CARGO_TARGET_TMPDIR"), "-c", connections])
            .output()
            .expect("the command starts");
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(text.contains("1..=10000"), "{text}");
    }
}

/// The children of a process that are cache servers of this program.
fn servers_of(parent: u32) -> Vec<String> {
    let path = format!("/proc/{parent}/task/{parent}/children");
    let children = fs::read_to_string(path).unwrap_or_default();
    // Before it is a server, a child is what starts it.
    let begin = concat!(env!("CARGO_BIN_EXE_urgency"), "\0cache\0");
    let is_server = |id: &&str| {
        let words = fs::read_to_string(format!("/proc/{id}/cmdline"));
        // Its workers: it has said all that it says before it serves.
        let threads = || fs::read_dir(format!("/proc/{id}/task")).map_or(0, Iterator::count);
        words.is_ok_and(|words| words.starts_with(begin)) && threads() > 1
    };
    let servers = children.split_whitespace().filter(is_server);
    servers.map(str::to_owned).collect()
}

#[test]
fn a_comparison_that_is_killed_leaves_no_server_behind() {
    let save = concat!(env!("CARGO_TARGET_TMPDIR"), "/killed");
    let mut comparison = Command::new(env!("CARGO_BIN_EXE_urgency"))
        .args(["load", "compare", "highest", "--quick", "--save", save])
        .args(["--only", "urgency", "-c", "4"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("the command starts");
    let server = loop {
        if let Some(server) = servers_of(comparison.id()).pop() {
            break server;
        }
        let ended = comparison.try_wait().expect("it is our child");
        assert!(ended.is_none(), "it ended before its server was seen");
        thread::yield_now();
    };
    comparison.kill().expect("it is our child");
    comparison.wait().expect("it is our child");
    let command_line = format!("/proc/{server}/cmdline");
    // A process that is dead and not yet waited for has none.
    for _ in 0..1000 {
        match fs::read(&command_line) {
            Ok(words) if !words.is_empty() => thread::sleep(Duration::from_millis(10)),
            _ => return,
        }
    }
    let killed = Command::new("kill").args(["-9", &server]).status();
    panic!("the server lived on for 10 s; it was killed then: {killed:?}");
}

#[test]
fn what_would_fail_after_minutes_fails_at_once() {
    let save = concat!(env!("CARGO_TARGET_TMPDIR"), "/no-scale");
    let _ = fs::remove_dir_all(save);
    let cases: [(&[&str], &str); 3] = [
        (
            &["--only", "urgency", "--save", save],
            "measure the part `highest` first",
        ),
        (&["--save", "/dev/null/place"], "/dev/null/place"),
        (
            &["--picture", "/dev/null/a.svg", "--save", save],
            "/dev/null/a.svg",
        ),
    ];
    for (arguments, part) in cases {
        let text = compare(arguments);
        assert!(text.contains(part), "{arguments:?}: {text}");
        assert!(!text.contains("round 0"), "{arguments:?}: {text}");
    }
}

#[test]
fn processors_that_may_not_be_used_are_refused_and_others_are_not_taken() {
    let urgency = env!("CARGO_BIN_EXE_urgency");
    // The part that does not know this contender measures nothing.
    let nothing = ["load", "compare", "memory", "--only", "tokio", "--quick"];
    let save = [
        "--save",
        concat!(env!("CARGO_TARGET_TMPDIR"), "/processors"),
    ];
    for (option, cpus) in [("--server-cpus", "0-999"), ("--client-cpus", "0,0")] {
        let mut command = Command::new(urgency);
        let output = command
            .args(nothing)
            .args(save)
            .args([option, cpus])
            .output();
        let output = output.expect("the command starts");
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        assert!(String::from_utf8_lossy(&output.stderr).contains(option));
    }
    let bound = Command::new("taskset").args(["-c", "1", "true"]).status();
    if bound.is_ok_and(|status| status.success()) {
        let mut command = Command::new("taskset");
        let output = command
            .args(["-c", "1", urgency])
            .args(nothing)
            .args(save)
            .output();
        let said = String::from_utf8(output.expect("it starts").stdout).expect("it is text");
        assert!(said.starts_with("servers on processors 1,"), "{said}");
        assert!(said.contains("client on 1;"), "{said}");
    }
}

/// Compares our own server in these parts, with little load. What it wrote to standard error, as an error if it failed.
fn compare_ours(save: &str, parts: &[&str]) -> Result<String, String> {
    let output = Command::new(env!("CARGO_BIN_EXE_urgency"))
        .args(["load", "compare", "--quick", "--only", "urgency"])
        .args(["--rounds", "1", "-c", "8", "--keys", "1000"])
        .args(["--save", save, "--picture", &format!("{save}/curves.svg")])
        .args(parts)
        .stdin(Stdio::null())
        .output()
        .expect("the command starts");
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    match output.status.success() {
        true => Ok(text),
        false => Err(text),
    }
}

#[test]
fn latencies_are_measured_in_slices_in_which_the_server_and_its_batch_job_go_on() {
    let save = concat!(env!("CARGO_TARGET_TMPDIR"), "/slices");
    let _ = fs::remove_dir_all(save);
    // By a quality that a server meets where the host takes the machine away for some milliseconds; the search fails
    // where it does so for all of a trial.
    let search = || compare_ours(save, &["highest", "--quality", "p50<200ms"]);
    let found = (0..10).map(|_| search()).find(Result::is_ok);
    assert!(found.is_some(), "{:?}", search());
    // The scale is memcached's highest rate by another one, and it may not be installed.
    let rows = fs::read_to_string(format!("{save}/highest-p50<200ms-quick.json"));
    let rows = rows.expect("the part was measured");
    let rows = rows.replace("\"urgency\"", "\"memcached\"");
    fs::write(format!("{save}/highest-quick.json"), rows).expect("the file is ours");
    let text = compare_ours(save, &["curves", "batch"]).unwrap();
    // Five rates of the curves, and a rate beside each of three batch jobs.
    assert!(text.matches("requests left out for").count() >= 8, "{text}");
    let rows = |part: &str| {
        let text = fs::read_to_string(format!("{save}/{part}-quick.json"));
        let rows = serde_json::from_str(&text.expect("the part was measured"));
        let rows: Vec<serde_json::Value> = rows.expect("rows are JSON");
        rows
    };
    let points = rows("curves");
    assert!(points.len() >= 5, "{points:?}");
    let in_slices = |point: &&serde_json::Value| point["share"].as_f64() <= Some(0.8);
    for point in points.iter().filter(in_slices) {
        let latency = |name: &str| point["latencies"][name].as_f64().expect("a number");
        assert!(latency("sent_p99") < latency("max"), "{point}");
        assert!(point["running"].as_f64() > Some(0.0), "{point}");
    }
    let pairs = rows("batch");
    assert_eq!(pairs.len(), 3, "{pairs:?}");
    let units = |pair: &serde_json::Value| pair["units_per_s"].as_f64();
    assert!(
        pairs.iter().all(|pair| units(pair) > Some(0.0)),
        "{pairs:?}"
    );
}
