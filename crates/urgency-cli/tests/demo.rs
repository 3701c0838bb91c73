//! The command from outside: what it says to bad values, and that a short run answers every request and
//! writes its files.
//!
//! No test asserts a time.

#![allow(missing_docs)]

use std::{
    fs,
    net::TcpListener,
    path::PathBuf,
    process::{Command, Output, Stdio},
};

fn demo(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_urgency"))
        .arg("demo")
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .expect("the command starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A directory of the test `name`, empty.
fn directory(name: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&path);
    fs::create_dir_all(&path).expect("a directory for temporary files");
    path
}

#[test]
fn a_bad_value_is_refused_with_the_option_the_value_and_what_is_allowed() {
    let cases: &[(&[&str], &[&str])] = &[
        (
            &["--rate", "0"],
            &["--rate", "'0'", "1 to 100000 requests per second"],
        ),
        (
            &["--rate", "fast"],
            &["--rate", "'fast'", "not a number", "1 to 100000"],
        ),
        (&["--rate", "NaN"], &["--rate", "'NaN'", "1 to 100000"]),
        (&["--rate", "1e9"], &["--rate", "'1e9'", "out of range"]),
        (
            &["--duration", "0.5"],
            &["--duration", "'0.5'", "1 to 3600 seconds"],
        ),
        (
            &["--duration", "3601"],
            &["--duration", "'3601'", "1 to 3600 seconds"],
        ),
        (
            &["--duration=-3"],
            &["--duration", "'-3'", "1 to 3600 seconds"],
        ),
        (
            &["--workers", "0"],
            &["--workers", "'0'", "1 to 1024 workers"],
        ),
        (
            &["--workers", "1025"],
            &["--workers", "'1025'", "1 to 1024 workers"],
        ),
        (
            &["--workers", "two"],
            &["--workers", "'two'", "1 to 1024 workers"],
        ),
        (
            &["--level", "urgent"],
            &["--level", "'urgent'", "interactive, batch, background"],
        ),
        (
            &["--kind", "gpu"],
            &["--kind", "'gpu'", "fork-join, sequential"],
        ),
        (
            &["--arrivals", "never"],
            &["--arrivals", "'never'", "poisson, uniform"],
        ),
        (
            &["--only", "idle,go"],
            &[
                "--only",
                "'go'",
                "idle, urgency, tokio-rayon, threads, two-pools",
            ],
        ),
        (&["--port", "0"], &["--port", "'0'"]),
        (&["--port", "70000"], &["--port", "'70000'"]),
        (&["--speed", "9"], &["--speed"]),
        (&["--picture"], &["--picture", "a value is required"]),
        (
            &["--picture", "/tmp/one.svg", "--json", "/tmp/../tmp/one.svg"],
            &["--picture and --json are both /tmp/one.svg"],
        ),
    ];
    for (arguments, parts) in cases {
        let output = demo(arguments);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
        for part in *parts {
            assert!(said.contains(part), "{arguments:?} lacks {part:?}: {said}");
        }
        assert!(output.stdout.is_empty(), "{arguments:?} started");
    }
}

#[test]
fn help_names_every_option_and_both_scenes() {
    let help = text(&demo(&["--help"]).stdout);
    for option in [
        "level", "rate", "duration", "workers", "kind", "arrivals", "only", "port", "picture",
        "json",
    ] {
        assert!(help.contains(&format!("--{option} ")), "{option}: {help}");
    }
    for scene in ["Requests: a load client", "Frames: 60 a second"] {
        assert!(help.contains(scene), "{scene}: {help}");
    }
    assert!(!help.contains("demo-server"), "{help}");
}

#[test]
fn a_file_that_cannot_be_written_is_told_before_anything_runs() {
    for option in ["--picture", "--json"] {
        let output = demo(&[option, "/no/such/place/file"]);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains("/no/such/place/file"), "{said}");
        assert!(said.contains(&format!("{option} PATH")), "{said}");
        assert!(output.stdout.is_empty(), "it ran all the same");
    }
    assert!(!PathBuf::from("urgency-demo.svg").exists());
}

#[test]
fn a_port_in_use_is_told_before_anything_runs() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("loopback has a free port");
    let port = taken.local_addr().expect("it listens").port().to_string();
    let picture = directory("port").join("a.svg");
    let picture = picture.to_str().expect("a readable path");
    let output = demo(&["--port", &port, "--picture", picture]);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(
        said.contains(&format!("port {port} on 127.0.0.1 is in use")),
        "{said}"
    );
    assert!(said.contains("--port"), "{said}");
    assert!(output.stdout.is_empty(), "it ran all the same");
}

#[test]
fn a_hidden_subcommand_with_nonsense_says_that_it_is_not_for_people() {
    for subcommand in ["demo-server", "demo-client", "demo-frames"] {
        let output = Command::new(env!("CARGO_BIN_EXE_urgency"))
            .args([subcommand, "{}"])
            .output()
            .expect("the command starts");
        assert_eq!(output.status.code(), Some(2));
        assert!(text(&output.stderr).contains("is for `urgency demo`"));
    }
}

#[test]
fn a_client_without_a_server_fails_and_says_where_it_looked() {
    let closed = TcpListener::bind("127.0.0.1:0").expect("loopback has a free port");
    let server = closed.local_addr().expect("it listens").to_string();
    drop(closed);
    let spec = format!(
        r#"{{"server":"{server}","lanes":[{{"name":"request","protocol":"Chain","pace":"Closed","connections":1}}],"pipeline":1,"seed":0,"reports":false}}"#
    );
    let output = Command::new(env!("CARGO_BIN_EXE_urgency"))
        .args(["demo-client", &spec])
        .output()
        .expect("the command starts");
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains(&server));
}

/// Runs `contenders` for a moment; every request must be answered and both files written.
fn short_run(name: &str, arguments: &[&str], contenders: &[&str]) {
    let directory = directory(name);
    let (picture, json) = (directory.join("a.svg"), directory.join("a.json"));
    let only = contenders.join(",");
    let mut all = vec!["--duration", "1", "--rate", "200", "--only", &only];
    all.extend_from_slice(arguments);
    all.extend(["--picture", picture.to_str().expect("a readable path")]);
    all.extend(["--json", json.to_str().expect("a readable path")]);
    let output = demo(&all);
    let (said, complained) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(0), "{said}\n{complained}");
    assert!(said.contains("answered") && !said.contains('\r'), "{said}");

    let svg = fs::read_to_string(&picture).expect("the picture is there");
    assert!(svg.starts_with("<svg"), "{svg}");
    let raw = fs::read_to_string(&json).expect("the raw results are there");
    let raw: serde_json::Value = serde_json::from_str(&raw).expect("they are JSON");
    let entries = raw["contenders"].as_array().expect("a list");
    assert_eq!(entries.len(), contenders.len());
    for (entry, contender) in entries.iter().zip(contenders) {
        assert_eq!(entry["name"], **contender);
        assert!(entry["asked"].as_u64() > Some(0), "{entry}");
        assert_eq!(entry["asked"], entry["answered"], "{contender}");
        assert!(entry["latency_ms"]["p50"].as_f64() > Some(0.0), "{entry}");
        let computed = entry["compute"]["units_per_s_beside_requests"].as_f64();
        match *contender {
            "idle" => assert_eq!(computed, None),
            _ => assert!(computed > Some(0.0), "{contender} did not compute: {entry}"),
        }
    }
}

#[test]
fn every_request_is_answered_without_compute() {
    short_run("idle", &["--arrivals", "uniform"], &["idle"]);
}

#[test]
fn every_request_is_answered_beside_fork_join_compute() {
    short_run("fork-join", &["--workers", "2"], &["urgency"]);
}

#[test]
fn every_request_is_answered_beside_sequential_loops() {
    short_run(
        "loops",
        &["--kind", "sequential", "--workers", "2"],
        &["urgency"],
    );
}

#[test]
fn every_request_is_answered_by_the_peers() {
    short_run("peers", &["--workers", "2"], &["tokio-rayon", "threads"]);
}

#[test]
fn a_scene_without_any_of_the_contenders_does_not_run() {
    let directory = directory("frames");
    let (picture, json) = (directory.join("a.svg"), directory.join("a.json"));
    let output = demo(&[
        "--duration",
        "1",
        "--only",
        "two-pools",
        "--workers",
        "2",
        "--picture",
        picture.to_str().expect("a readable path"),
        "--json",
        json.to_str().expect("a readable path"),
    ]);
    let (said, complained) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(0), "{said}\n{complained}");
    assert!(
        said.contains("late or skipped") && !said.contains("requests"),
        "{said}"
    );
    let raw = fs::read_to_string(&json).expect("the raw results are there");
    let raw: serde_json::Value = serde_json::from_str(&raw).expect("they are JSON");
    assert_eq!(raw["contenders"].as_array().map(Vec::len), Some(0));
    let frames = &raw["frames"][0];
    assert_eq!(frames["name"], "two-pools");
    assert!(frames["due"].as_u64() > Some(0), "{frames}");
    assert!(frames["decoded_per_s"].as_f64() > Some(0.0), "{frames}");
    let svg = fs::read_to_string(&picture).expect("the picture is there");
    assert!(svg.contains("two Rayon pools, audio"), "{svg}");
}

#[test]
fn both_scenes_are_in_the_table_and_in_the_picture() {
    let directory = directory("both");
    let picture = directory.join("a.svg");
    let path = picture.to_str().expect("a readable path");
    let output = demo(&[
        "--duration",
        "2",
        "--only",
        "urgency",
        "--workers",
        "2",
        "--picture",
        path,
    ]);
    let said = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(
        said.contains("compute keeps") && said.contains("late or skipped"),
        "{said}"
    );
    let svg = fs::read_to_string(&picture).expect("the picture is there");
    for title in [
        "interactive requests take beside",
        "frames and audio take beside",
    ] {
        assert!(svg.contains(title), "{title} is missing");
    }
}

/// The process id of the server process that `demo` runs, once there is one.
fn server_of(demo: u32) -> Option<String> {
    let children = fs::read_to_string(format!("/proc/{demo}/task/{demo}/children")).ok()?;
    let mut children = children.split_whitespace();
    let is_server = |id: &&str| {
        let arguments = fs::read_to_string(format!("/proc/{id}/cmdline"));
        arguments.is_ok_and(|arguments| arguments.contains("demo-server"))
    };
    children.find(is_server).map(str::to_owned)
}

#[test]
fn a_server_that_dies_is_told_the_others_go_on_and_the_results_are_kept() {
    let directory = directory("dies");
    let picture = directory.join("a.svg");
    let mut child = Command::new(env!("CARGO_BIN_EXE_urgency"))
        .args(["demo", "--duration", "4", "--only", "idle,threads"])
        .args(["--picture".as_ref(), picture.as_os_str()])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the command starts");
    let server = loop {
        if let Some(server) = server_of(child.id()) {
            break server;
        }
        let ended = child.try_wait().expect("it is our child");
        assert!(ended.is_none(), "it ended before its server was seen");
        std::thread::yield_now();
    };
    let killed = Command::new("kill").args(["-9", &server]).status();
    assert!(killed.expect("kill starts").success());
    let output = child.wait_with_output().expect("the command ends");
    let (said, complained) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(1), "{said}\n{complained}");
    let expected = "the server of Urgency, no compute ended before its time (signal: 9";
    assert!(complained.contains(expected), "{complained}");
    assert!(said.contains("[2/2] plain threads:"), "{said}");
    assert!(said.contains("plain threads needed"), "{said}");
    assert!(picture.exists());
}
