//! `urgency load` from outside: what it says to bad values, to a server that is not there, and to a
//! comparison that cannot be made.

#![allow(missing_docs)]

use std::process::{Command, Output, Stdio};

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
    for part in ["curves", "batch", "background"] {
        let text = compare(&[part, "--save", save]);
        assert!(text.contains("measure the part `highest` first"), "{text}");
        assert!(text.contains("nothing-yet/highest.json"), "{text}");
    }
}
