//! What the command says, to a reader that has read enough.

use std::process::{Command, Stdio};

#[test]
fn a_list_whose_reader_has_read_enough_is_no_failure() {
    let command = Command::new(env!("CARGO_BIN_EXE_urgency-bench"))
        .arg("--list")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let mut command = command.expect("the command can be started");
    drop(command.stdout.take());
    let output = command.wait_with_output().expect("it ends");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.is_empty(), "{said}");
}
