//! Children of the test: some to spawn, and the ones that there are.

#![allow(dead_code, reason = "each test file uses a part")]

use std::{fs, process::Stdio};
use urgency::process::{Child, ChildStdin, Command};

/// The children of this process: their numbers, and the kernel's letter for what each does (`Z`: it is a zombie).
pub fn children() -> Vec<(u32, String)> {
    let me = std::process::id().to_string();
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let number = |entry: &fs::DirEntry| entry.file_name().to_str()?.parse().ok();
    let numbers = entries.filter_map(|entry| number(&entry));
    let child = |number: u32| {
        let stat = fs::read_to_string(format!("/proc/{number}/stat")).ok()?;
        // The name, in parentheses, may contain anything. The state and the parent follow it.
        let mut rest = stat.rsplit(')').next()?.split_whitespace();
        let (state, parent) = (rest.next()?, rest.next()?);
        (parent == me).then(|| (number, state.to_owned()))
    };
    numbers.filter_map(child).collect()
}

pub fn shell(script: &str) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", script]);
    command
}

/// A child that runs until the input that comes with it is dropped, or it is killed.
pub fn lasting() -> (Child, ChildStdin) {
    let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
    let input = child.stdin.take().unwrap();
    (child, input)
}
