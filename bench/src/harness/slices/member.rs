//! One contender of a sliced run: a process group that is stopped but for its slices.

use super::super::events::Events;
use super::super::machine::now_ns;
use super::super::{Sample, child};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use std::io::Write as _;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// From going on until load begins: what became due while the group was stopped is done by then.
const SETTLE: Duration = Duration::from_millis(15);
/// How long a slice may take to drain, and a contender to get ready or to end.
const PATIENCE: Duration = Duration::from_secs(60);

/// A contender that is alive.
pub struct Member {
    child: Child,
    group: Pid,
    orders: Option<ChildStdin>,
    lines: Receiver<String>,
    complaints: Option<JoinHandle<String>>,
    events: PathBuf,
}

impl Member {
    /// Starts it, lets it warm up, and stops it. Its events will be in the file `events`.
    pub fn start(one: &str, events: PathBuf, quick: bool) -> Result<Self, String> {
        let program = std::env::current_exe().expect("the running program has a path");
        let mut command = Command::new(program);
        command
            .args(["--one", one, "--sliced", "--events"])
            .arg(&events)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0);
        if quick {
            command.arg("--quick");
        }
        let mut child = command
            .spawn()
            .map_err(|error| format!("the child process could not be started: {error}"))?;
        let stdout = child.stdout.take().expect("stdout is piped");
        let mut stderr = child.stderr.take().expect("stderr is piped");
        let (send, lines) = channel();
        std::thread::spawn(move || {
            let lines = std::io::BufRead::lines(std::io::BufReader::new(stdout));
            // The member may have been given up.
            lines
                .map_while(Result::ok)
                .try_for_each(|line| send.send(line))
        });
        let member = Member {
            group: Pid::from_raw(child.id() as i32),
            orders: child.stdin.take(),
            child,
            lines,
            complaints: Some(std::thread::spawn(move || child::read_all(&mut stderr))),
            events,
        };
        if let Err(reason) = member.wait() {
            return Err(member.complaint(&reason));
        }
        member.signal(Signal::SIGSTOP);
        Ok(member)
    }

    /// One slice of so much load.
    pub fn slice(&mut self, length: Duration) -> Result<(), String> {
        self.signal(Signal::SIGCONT);
        let start = now_ns() + SETTLE.as_nanos() as u64;
        let end = start + length.as_nanos() as u64;
        let orders = self.orders.as_mut().expect("it has not been ended");
        writeln!(orders, "{start} {end}").map_err(|error| format!("it ended early: {error}"))?;
        self.wait()?;
        self.signal(Signal::SIGSTOP);
        Ok(())
    }

    /// Lets it end: its sample, and what it logged.
    pub fn end(mut self) -> Result<(Sample, Events), String> {
        self.take_outcome()
            .map_err(|reason| self.complaint(&reason))
    }

    fn take_outcome(&mut self) -> Result<(Sample, Events), String> {
        self.signal(Signal::SIGCONT);
        drop(self.orders.take());
        let line = self.next_line()?;
        let sample = serde_json::from_str(&line)
            .map_err(|error| format!("no sample in its output {line:?}: {error}"))?;
        let events = Events::read(&self.events)
            .map_err(|error| format!("its events {}: {error}", self.events.display()))?;
        Ok((sample, events))
    }

    /// Ends it. Why it failed, with what it said itself.
    pub fn complaint(mut self, reason: &str) -> String {
        self.kill();
        let complaints = self.complaints.take().expect("it is taken only here");
        let said = complaints.join().expect("reading a pipe does not panic");
        format!("{reason}: {}", child::last_lines(&said))
    }

    fn wait(&self) -> Result<(), String> {
        match self.next_line()?.as_str() {
            "drained" => Ok(()),
            line => Err(format!("it said {line:?} and not that it is drained")),
        }
    }

    fn next_line(&self) -> Result<String, String> {
        self.lines
            .recv_timeout(PATIENCE)
            .map_err(|error| match error {
                RecvTimeoutError::Timeout => {
                    format!("no answer within {} s", PATIENCE.as_secs())
                }
                RecvTimeoutError::Disconnected => "it ended early".to_owned(),
            })
    }

    fn signal(&self, signal: Signal) {
        // A group that has ended shows when its next line is missing.
        let _ = killpg(self.group, signal);
    }

    /// Ends the group, clients included, which is ours, and waits for its leader.
    fn kill(&mut self) {
        if !matches!(self.child.try_wait(), Ok(Some(_))) {
            self.signal(Signal::SIGKILL);
            let _ = self.child.wait();
        }
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        self.kill();
    }
}
