//! A server or a batch job as a child process: started, waited for, asked how much processor time it used, ended.
//!
//! Children inherit the processors of the thread that starts them, so the parent binds itself before. A child that is
//! dropped ends, and is waited for. No `drop` runs in a parent that a signal ends, and a child in a session of its
//! own hears nothing of the terminal's Ctrl-C. So each child asks the kernel to end it when the thread that started it
//! ends (`setpriv --pdeathsig`; in a comparison this is the main thread). Only a parent that dies in the milliseconds
//! before the child has asked leaves the child behind.
//!
//! Each child is a session of its own. The kernel shares the processors among sessions first
//! (`/proc/PID/autogroup`), and the client, which spins with niceness -20, would take nearly all of what the
//! session that it shares with a server gets: with a compiler elsewhere on the machine memcached answered 12
//! requests per second then.

use super::{Error, embedded::Account};
use nix::sys::signal::Signal;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};
use urgency_measure::child::Child;
use urgency_measure::{machine, others};

/// How long an answer to a question may take.
const ANSWER_WITHIN: Duration = Duration::from_secs(30);
/// How long a server may take until it accepts.
const READY_WITHIN: Duration = Duration::from_secs(10);

/// A child process.
#[derive(Debug)]
pub struct Process {
    title: String,
    child: Child,
}

impl Process {
    /// Starts it, so much nicer than this process is.
    pub fn start(title: &str, command: &Command, niceness: i32) -> Result<Self, Error> {
        if !is_installed(Path::new(command.get_program())) {
            return Err(Error::Start {
                title: title.to_owned(),
                cause: ErrorKind::NotFound.into(),
            });
        }
        let child = Child::start(title, in_own_session(command, niceness))?;
        let title = title.to_owned();
        Ok(Process { title, child })
    }

    /// Waits until a server accepts on `port`.
    pub fn wait_for(&mut self, port: u16) -> Result<(), Error> {
        let start = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            self.child.check_alive(Duration::ZERO)?;
            if start.elapsed() > READY_WITHIN {
                return Err(Error::NotReady {
                    title: self.title.clone(),
                    last_words: self.child.ended().to_string(),
                });
            }
            thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }

    /// Stops it, until it [goes on](Process::go_on). It leads its session, and no server here has children.
    pub fn stop(&self) {
        self.child.signal(Signal::SIGSTOP);
    }

    /// Lets it go on.
    pub fn go_on(&self) {
        self.child.signal(Signal::SIGCONT);
    }

    /// Processor time that it has used so far, in seconds.
    pub fn cpu_seconds(&self) -> f64 {
        others::cpu_seconds(self.child.id())
    }

    /// Bytes of memory that it has in use: the pages that the kernel has given it.
    pub fn resident_bytes(&self) -> f64 {
        let kib = machine::status(&self.child.id().to_string(), "VmRSS");
        kib.unwrap_or(0.0) * 1024.0
    }

    /// Asks a process that talks for its accounts: each question has one line as its answer.
    pub fn ask(&mut self) -> Result<Account, Error> {
        self.child.tell_line("")?;
        Ok(self.child.hear(ANSWER_WITHIN)?)
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
