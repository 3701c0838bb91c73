//! A server or a batch job as a child process: started, waited for, asked how much processor time it used, ended.
//!
//! Children inherit the processors of the thread that starts them, so the parent binds itself before. A child that is
//! dropped is killed, and waited for. No `drop` runs in a parent that a signal ends, and a child in a session of its
//! own hears nothing of the terminal's Ctrl-C. So each child asks the kernel to end it when the thread that started it
//! ends (`setpriv --pdeathsig`; in a comparison this is the main thread). Only a parent that dies in the milliseconds
//! before the child has asked leaves the child behind.
//!
//! Each child is a session of its own. The kernel shares the processors among sessions first
//! (`/proc/PID/autogroup`), and the client, which spins with niceness -20, would take nearly all of what the
//! session that it shares with a server gets: with a compiler elsewhere on the machine memcached answered 12
//! requests per second then.

use super::{Error, embedded::Account};
use rustix::event::{self, PollFd, PollFlags, Timespec};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// How long an answer to a question may take.
const ANSWER_WITHIN: Duration = Duration::from_secs(30);
/// How long a server may take until it accepts.
const READY_WITHIN: Duration = Duration::from_secs(10);
/// Hundredths of a second: the unit of times in `/proc`.
const TICK: f64 = 0.01;

/// A child process.
#[derive(Debug)]
pub struct Process {
    title: String,
    child: Child,
    questions: Option<(ChildStdin, BufReader<ChildStdout>)>,
}

impl Process {
    /// Starts it, so much nicer than this process is. With `talks` it answers questions on its standard streams.
    pub fn start(
        title: &str,
        command: &Command,
        niceness: i32,
        talks: bool,
    ) -> Result<Self, Error> {
        let failed = |cause| Error::Start {
            title: title.to_owned(),
            cause,
        };
        if !is_installed(Path::new(command.get_program())) {
            return Err(failed(ErrorKind::NotFound.into()));
        }
        let pipe = || if talks { Stdio::piped() } else { Stdio::null() };
        let child = in_own_session(command, niceness)
            .stdin(pipe())
            .stdout(pipe())
            .stderr(Stdio::piped())
            .spawn();
        let mut child = child.map_err(failed)?;
        let questions = match (child.stdin.take(), child.stdout.take()) {
            (Some(questions), Some(answers)) => Some((questions, BufReader::new(answers))),
            _ => None,
        };
        Ok(Process {
            title: title.to_owned(),
            child,
            questions,
        })
    }

    /// Waits until a server accepts on `port`.
    pub fn wait_for(&mut self, port: u16) -> Result<(), Error> {
        let start = Instant::now();
        loop {
            if TcpStream::connect(("127.0.0.1", port)).is_ok() {
                return Ok(());
            }
            let is_over = self.child.try_wait().ok().flatten().is_some();
            if is_over || start.elapsed() > READY_WITHIN {
                // A process that lives keeps its end of the pipe open; it has to go before the rest can be read.
                let _ = self.child.kill();
                let mut last_words = String::new();
                if let Some(stderr) = &mut self.child.stderr {
                    let _ = stderr.read_to_string(&mut last_words);
                }
                return Err(Error::NotReady {
                    title: self.title.clone(),
                    last_words,
                });
            }
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// Processor time that it has used so far, in seconds.
    pub fn cpu_seconds(&self) -> f64 {
        let path = format!("/proc/{}/stat", self.child.id());
        let text = std::fs::read_to_string(path).unwrap_or_default();
        // The name in parentheses may have spaces; fields 14 and 15 are user and system time.
        let after_name = text.rsplit(')').next().unwrap_or_default();
        let fields = after_name.split_whitespace().skip(11).take(2);
        fields
            .filter_map(|ticks| ticks.parse::<f64>().ok())
            .sum::<f64>()
            * TICK
    }

    /// Bytes of memory that it has in use: the pages that the kernel has given it.
    pub fn resident_bytes(&self) -> f64 {
        let path = format!("/proc/{}/status", self.child.id());
        let text = std::fs::read_to_string(path).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok());
        kib.unwrap_or(0.0) * 1024.0
    }

    /// Asks a process that talks for its accounts.
    pub fn ask(&mut self) -> Result<Account, Error> {
        self.ask_within(ANSWER_WITHIN)
    }

    fn ask_within(&mut self, limit: Duration) -> Result<Account, Error> {
        let title = &self.title;
        let silent = || Error::Silent {
            title: title.clone(),
        };
        let (questions, answers) = self.questions.as_mut().ok_or_else(silent)?;
        questions.write_all(b"\n").map_err(|_| silent())?;
        // Nothing is left of earlier answers: each question has one line, written at once.
        let readable = PollFd::new(answers.get_ref(), PollFlags::IN);
        let limit = Timespec::try_from(limit).expect("the limits are short");
        match event::poll(&mut [readable], Some(&limit)) {
            Ok(1..) => {}
            _ => return Err(silent()),
        }
        let mut line = String::new();
        answers.read_line(&mut line).map_err(|_| silent())?;
        serde_json::from_str(&line).map_err(|_| silent())
    }
}

/// Whether a program is where the shell will look for it.
fn is_installed(program: &Path) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    program.exists() || std::env::split_paths(&path).any(|place| place.join(program).exists())
}

/// What a shell does before it becomes the command: it tells the kernel how nice the session is. Kernels
/// without such groups go by the process, in each case.
const BECOME: &str =
    "echo \"$0\" 2>/dev/null >/proc/self/autogroup; exec nice -n \"$1\" \"${@:2}\"";

/// The command as a session of its own.
fn in_own_session(command: &Command, niceness: i32) -> Command {
    let ours = std::fs::read_to_string("/proc/self/autogroup").unwrap_or_default();
    let ours = ours
        .rsplit(' ')
        .next()
        .and_then(|nice| nice.trim().parse().ok());
    let session = (ours.unwrap_or(0) + niceness).min(19);
    let mut outer = Command::new("setsid");
    outer.args(["setpriv", "--pdeathsig", "KILL", "bash", "-c", BECOME]);
    outer.args([session, niceness].map(|nice: i32| nice.to_string()));
    outer.arg(command.get_program()).args(command.get_args());
    outer
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may be gone already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A port that was free a moment ago.
pub fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    listener.expect("a free port on 127.0.0.1").port()
}

/// Sends one text command and returns the lines of its answer, up to and with the one that begins with one of `ends`.
pub fn command(port: u16, line: &str, ends: &[&str]) -> std::io::Result<Vec<String>> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.set_read_timeout(Some(Duration::from_secs(10)))?;
    stream.write_all(format!("{line}\r\n").as_bytes())?;
    let mut lines = Vec::new();
    for line in BufReader::new(stream).lines() {
        lines.push(line?);
        let last = lines.last().map_or("", String::as_str);
        if ends.iter().any(|end| last.starts_with(end)) {
            break;
        }
    }
    Ok(lines)
}

/// What `stats` and a name answer, as numbers.
pub fn statistics(port: u16, name: &str) -> BTreeMap<String, f64> {
    let line = format!("stats {name}");
    let lines = command(port, line.trim_end(), &["END", "ERROR", "RESET"]);
    let number = |line: &String| {
        let mut words = line.strip_prefix("STAT ")?.splitn(2, ' ');
        Some((words.next()?.to_owned(), words.next()?.parse().ok()?))
    };
    lines
        .unwrap_or_default()
        .iter()
        .filter_map(number)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_that_does_not_answer_is_silent_and_holds_nobody_up() {
        let mut command = Command::new("sleep");
        command.arg("60");
        let mut child = Process::start("a mute", &command, 0, true).expect("sleep is installed");
        let answer = child.ask_within(Duration::from_millis(50));
        assert!(matches!(answer, Err(Error::Silent { .. })), "{answer:?}");
    }
}
