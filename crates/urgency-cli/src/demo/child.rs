//! A child process that talks in lines of JSON.
//!
//! The program starts itself again with a hidden subcommand and the task as its argument. Two threads drain
//! the child's pipes, so neither side ever blocks on a full one: each line of its standard output goes into a
//! channel, its standard error is kept as its last words.
//!
//! A conversation cannot hang: [`Child::hear`] waits a limited time, and a child that ends is noticed at
//! once, because its pipe closes. Dropping a child closes its input, which tells a server to end, gives it a
//! moment, and then ends it by force; it is always waited for, so nothing is left behind.

use super::error::Error;
use serde::{Serialize, de::DeserializeOwned};
use std::{
    io::{self, BufRead, BufReader, Read, Write},
    process::{ChildStdin, Command, ExitStatus, Stdio},
    sync::mpsc::{Receiver, RecvTimeoutError, channel},
    thread::JoinHandle,
    time::{Duration, Instant},
};

/// How long a child has to end by itself.
const FAREWELL: Duration = Duration::from_millis(500);
/// How often that is looked at.
const LOOK: Duration = Duration::from_millis(5);
/// Lines kept of what a child printed to standard error.
const LAST_LINES: usize = 3;

/// A running child process.
pub struct Child {
    who: String,
    process: std::process::Child,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
    last_words: Option<JoinHandle<String>>,
}

impl Child {
    /// Starts this program again, as `subcommand` with `spec`. `who` is its name in errors.
    pub fn start(who: &str, subcommand: &str, spec: &impl Serialize) -> Result<Self, Error> {
        let spec = serde_json::to_string(spec).expect("a task can be written as JSON");
        let program = std::env::current_exe().map_err(|cause| Error::Start {
            who: who.to_owned(),
            cause,
        })?;
        let mut command = Command::new(program);
        command.args([subcommand, &spec]);
        Self::of(who, command)
    }

    fn of(who: &str, mut command: Command) -> Result<Self, Error> {
        let mut process = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|cause| Error::Start {
                who: who.to_owned(),
                cause,
            })?;
        let output = process.stdout.take().expect("standard output is piped");
        let (line, lines) = channel();
        std::thread::spawn(move || {
            for text in BufReader::new(output).lines().map_while(Result::ok) {
                if line.send(text).is_err() {
                    return;
                }
            }
        });
        let mut errors = process.stderr.take().expect("standard error is piped");
        let last_words = std::thread::spawn(move || {
            let mut bytes = Vec::new();
            // What was read before an error is still worth showing.
            let _ = errors.read_to_end(&mut bytes);
            last_lines(&String::from_utf8_lossy(&bytes))
        });
        Ok(Child {
            who: who.to_owned(),
            input: process.stdin.take(),
            process,
            lines,
            last_words: Some(last_words),
        })
    }

    /// Sends one value.
    pub fn tell(&mut self, value: &impl Serialize) -> Result<(), Error> {
        let mut line = serde_json::to_vec(value).expect("the messages can be written as JSON");
        line.push(b'\n');
        let input = self.input.as_mut().expect("the input is open until drop");
        match input.write_all(&line) {
            Ok(()) => Ok(()),
            // A closed pipe says that the child is gone, but not why.
            Err(_) => Err(self.ended()),
        }
    }

    /// Waits up to `limit` for the next value.
    pub fn hear<T: DeserializeOwned>(&mut self, limit: Duration) -> Result<T, Error> {
        match self.lines.recv_timeout(limit) {
            Ok(line) => serde_json::from_str(&line).map_err(|_| self.unexpected(&line)),
            Err(RecvTimeoutError::Disconnected) => Err(self.ended()),
            Err(RecvTimeoutError::Timeout) => Err(Error::Silent {
                who: self.who.clone(),
                waited: limit,
            }),
        }
    }

    /// The error of a child that said `line`, which makes no sense at this point.
    pub fn unexpected(&self, line: &str) -> Error {
        Error::Unexpected {
            who: self.who.clone(),
            line: line.to_owned(),
        }
    }

    /// If the child has ended although it should run: why. It is watched for `moment`: others see its
    /// connections close before it has ended.
    pub fn check_alive(&mut self, moment: Duration) -> Result<(), Error> {
        match self.wait(moment) {
            Ok(None) => Ok(()),
            _ => Err(self.ended()),
        }
    }

    fn ended(&mut self) -> Error {
        let status = self.farewell();
        let last_words = self.last_words.take();
        Error::Ended {
            who: self.who.clone(),
            status,
            last_words: last_words
                .and_then(|thread| thread.join().ok())
                .unwrap_or_default(),
        }
    }

    /// Closes the child's input and waits for its end, which comes by force if it does not come soon.
    fn farewell(&mut self) -> Option<ExitStatus> {
        self.input = None;
        if let Ok(Some(status)) = self.wait(FAREWELL) {
            return Some(status);
        }
        // It may have ended just now; then there is nothing to end, and waiting succeeds.
        let _ = self.process.kill();
        self.process.wait().ok()
    }

    /// Waits up to `limit` for the child's end.
    fn wait(&mut self, limit: Duration) -> io::Result<Option<ExitStatus>> {
        let start = Instant::now();
        loop {
            let status = self.process.try_wait()?;
            if status.is_some() || start.elapsed() >= limit {
                return Ok(status);
            }
            std::thread::sleep(LOOK);
        }
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.farewell();
    }
}

fn last_lines(text: &str) -> String {
    let told = |line: &&str| !line.trim().is_empty() && !line.starts_with("note: ");
    let lines: Vec<_> = text.lines().filter(told).collect();
    lines[lines.len().saturating_sub(LAST_LINES)..].join(" | ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Child {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        Child::of("the child", command).expect("a shell starts")
    }

    #[test]
    fn a_child_is_heard_line_by_line() {
        let mut child = shell("echo 1; echo 2; cat");
        let limit = Duration::from_secs(60);
        assert_eq!(child.hear::<u32>(limit).expect("the first line"), 1);
        assert_eq!(child.hear::<u32>(limit).expect("the second line"), 2);
        child.tell(&"three").expect("cat listens");
        let echoed: String = child.hear(limit).expect("cat repeats");
        assert_eq!(echoed, "three");
        child.check_alive(Duration::ZERO).expect("cat goes on");
    }

    #[test]
    fn the_death_of_a_child_is_told_with_its_status_and_last_words() {
        let mut child = shell("echo 'no such luck' >&2; exit 3");
        let error = child
            .hear::<u32>(Duration::from_secs(60))
            .expect_err("it said nothing");
        assert!(child.check_alive(Duration::ZERO).is_err());
        let text = error.to_string();
        assert!(text.contains("the child ended before its time"), "{text}");
        assert!(text.contains("exit status: 3"), "{text}");
        assert!(text.contains("no such luck"), "{text}");
    }

    #[test]
    fn a_silent_child_is_given_up_and_does_not_outlive_its_handle() {
        let mut child = shell("exec sleep 600");
        let error = child
            .hear::<u32>(Duration::from_millis(10))
            .expect_err("it says nothing");
        assert!(matches!(error, Error::Silent { .. }), "{error}");
        let id = child.process.id();
        drop(child);
        assert!(!std::path::Path::new(&format!("/proc/{id}")).exists());
    }

    #[test]
    fn nonsense_of_a_child_is_repeated_in_the_error() {
        let mut child = shell("echo hello; cat");
        let error = child
            .hear::<u32>(Duration::from_secs(60))
            .expect_err("it is no number");
        assert!(error.to_string().contains("\"hello\""), "{error}");
    }
}
