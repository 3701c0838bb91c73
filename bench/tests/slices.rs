//! Runs of the command in slices: whole processes, as a user starts them.

use std::path::Path;
use std::process::{Command, Output};

fn bench(save: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_urgency-bench"))
        .args([
            "--quick", "--rounds", "1", "--seed", "3", "--check", "--save",
        ])
        .arg(save)
        .args(arguments)
        .output()
        .expect("the command can be started")
}

fn rows(file: &Path, series: &str) -> usize {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    let prefix = format!("{series},");
    text.lines()
        .filter(|line| line.starts_with(&prefix))
        .count()
}

#[test]
fn a_contender_beside_itself_has_as_many_requests_at_the_same_times() {
    let save = std::env::temp_dir().join(format!("urgency-slices-{}", std::process::id()));
    let output = bench(&save, &["mixed", "--self", "tokio-idle"]);
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let of = |name: &str| rows(&save.join(format!("3-mixed-{name}-0.csv")), "request");
    let (one, again) = (of("tokio-idle"), of("tokio-idle-again"));
    std::fs::remove_dir_all(&save).expect("it was written");
    assert!(output.status.success(), "{said}");
    assert!(
        one > 0 && one == again,
        "{one} and {again} requests: {said}"
    );
}

#[test]
fn a_contender_that_nobody_has_is_refused() {
    let save = std::env::temp_dir().join(format!("urgency-refused-{}", std::process::id()));
    let output = bench(&save, &["mixed", "--self", "tokio-idel"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("\"tokio-idel\""), "{said}");
}
