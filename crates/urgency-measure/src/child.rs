//! A child process that talks in lines.
//!
//! Mostly it is this program once more, with a task as its argument ([`Child::again`]), and the lines are JSON. Two
//! threads drain the child's pipes, so neither side ever blocks on a full one: each line of its standard output goes
//! into a channel, its standard error is kept as its last words.
//!
//! A conversation cannot hang: [`Child::hear`] waits a limited time, and a child that ends is noticed at
//! once, because its pipe closes. Dropping a child closes its input, which tells a server to end, gives it a
//! moment, and then ends it by force; it is always waited for, so nothing is left behind. A child that leads a group
//! ([`Child::start_group`]) is stopped, goes on and ends with all that it started itself.

use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;
use serde::{Serialize, de::DeserializeOwned};
use std::{
    fmt,
    io::{self, BufRead, BufReader, Read, Write},
    os::unix::process::CommandExt as _,
    process::{ChildStdin, Command, ExitStatus, Stdio},
    sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError, channel},
    thread::JoinHandle,
    time::{Duration, Instant},
};

/// How long a child has to end by itself.
const FAREWELL: Duration = Duration::from_millis(500);
/// How often that is looked at.
const LOOK: Duration = Duration::from_millis(5);
/// Lines kept of what a child printed to standard error.
const LAST_LINES: usize = 3;

/// Why a child did not do what it was to do. Each names the child.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// It could not be started.
    Start {
        /// The child.
        who: String,
        /// The system's reason.
        cause: io::Error,
    },
    /// It ended before it was told to.
    Ended {
        /// The child.
        who: String,
        /// How, if that is known.
        status: Option<ExitStatus>,
        /// The end of what it printed to standard error.
        last_words: String,
    },
    /// It said nothing for too long.
    Silent {
        /// The child.
        who: String,
        /// How long.
        waited: Duration,
    },
    /// It said something else than what it was asked for.
    Unexpected {
        /// The child.
        who: String,
        /// What it said.
        line: String,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Start { who, cause } => write!(
                f,
                "{who} could not be started as a process of its own: {cause}"
            ),
            Error::Ended {
                who,
                status,
                last_words,
            } => {
                write!(f, "{who} ended before its time")?;
                if let Some(status) = status {
                    write!(f, " ({status})")?;
                }
                if !last_words.is_empty() {
                    write!(f, ": {last_words}")?;
                }
                Ok(())
            }
            Error::Silent { who, waited } => write!(
                f,
                "{who} gave no sign of life for {} s and was ended",
                waited.as_secs()
            ),
            Error::Unexpected { who, line } => {
                write!(f, "{who} said {line:?}, which was not expected")
            }
        }
    }
}

impl std::error::Error for Error {}

/// A running child process.
#[derive(Debug)]
pub struct Child {
    who: String,
    process: std::process::Child,
    leads_group: bool,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
    last_words: Option<JoinHandle<String>>,
}

impl Child {
    /// Threads of this process that listen to a child: one for each pipe.
    pub const THREADS: f64 = 2.0;

    /// The command that starts this program again.
    ///
    /// # Errors
    ///
    /// [`Error::Start`], if this program does not know its own path.
    pub fn again(who: &str) -> Result<Command, Error> {
        let program = std::env::current_exe();
        program.map(Command::new).map_err(|cause| Error::Start {
            who: who.to_owned(),
            cause,
        })
    }

    /// Starts this program again, as `subcommand` with `spec`. `who` is its name in errors.
    ///
    /// # Errors
    ///
    /// [`Error::Start`].
    pub fn with_task(who: &str, subcommand: &str, spec: &impl Serialize) -> Result<Self, Error> {
        let spec = serde_json::to_string(spec).expect("a task can be written as JSON");
        let mut command = Self::again(who)?;
        command.args([subcommand, &spec]);
        Self::start(who, command)
    }

    /// Starts `command`. `who` is its name in errors.
    ///
    /// # Errors
    ///
    /// [`Error::Start`].
    pub fn start(who: &str, mut command: Command) -> Result<Self, Error> {
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
            let texts = BufReader::new(output).lines().map_while(Result::ok);
            // The child may have been given up.
            let _ = texts.map(|text| line.send(text)).find(Result::is_err);
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
            leads_group: false,
            input: process.stdin.take(),
            process,
            lines,
            last_words: Some(last_words),
        })
    }

    /// The same as the leader of a process group.
    ///
    /// # Errors
    ///
    /// [`Error::Start`].
    pub fn start_group(who: &str, mut command: Command) -> Result<Self, Error> {
        command.process_group(0);
        let mut child = Self::start(who, command)?;
        child.leads_group = true;
        Ok(child)
    }

    /// The process's number.
    pub fn id(&self) -> u32 {
        self.process.id()
    }

    /// Sends one value.
    ///
    /// # Errors
    ///
    /// [`Error::Ended`].
    pub fn tell(&mut self, value: &impl Serialize) -> Result<(), Error> {
        let line = serde_json::to_string(value).expect("the messages can be written as JSON");
        self.tell_line(&line)
    }

    /// Sends one line.
    ///
    /// # Errors
    ///
    /// [`Error::Ended`].
    pub fn tell_line(&mut self, line: &str) -> Result<(), Error> {
        let written = self
            .input
            .as_mut()
            .map(|input| input.write_all(format!("{line}\n").as_bytes()));
        match written {
            Some(Ok(())) => Ok(()),
            // A closed pipe says that the child is gone, but not why.
            _ => Err(self.ended()),
        }
    }

    /// Closes the child's input. Most children end then.
    pub fn close_input(&mut self) {
        self.input = None;
    }

    /// Waits up to `limit` for the next value.
    ///
    /// # Errors
    ///
    /// [`Error::Ended`], [`Error::Silent`], [`Error::Unexpected`].
    pub fn hear<T: DeserializeOwned>(&mut self, limit: Duration) -> Result<T, Error> {
        let line = self.hear_line(limit)?;
        serde_json::from_str(&line).map_err(|_| self.unexpected(&line))
    }

    /// Waits up to `limit` for the next line.
    ///
    /// # Errors
    ///
    /// [`Error::Ended`], [`Error::Silent`].
    pub fn hear_line(&mut self, limit: Duration) -> Result<String, Error> {
        match self.lines.recv_timeout(limit) {
            Ok(line) => Ok(line),
            Err(RecvTimeoutError::Disconnected) => Err(self.ended()),
            Err(RecvTimeoutError::Timeout) => Err(self.silent(limit)),
        }
    }

    /// The next line, if there is one already.
    ///
    /// # Errors
    ///
    /// [`Error::Ended`].
    pub fn next_line(&mut self) -> Result<Option<String>, Error> {
        match self.lines.try_recv() {
            Ok(line) => Ok(Some(line)),
            Err(TryRecvError::Empty) => Ok(None),
            Err(TryRecvError::Disconnected) => Err(self.ended()),
        }
    }

    /// Waits up to `limit` for the end of a child that ends by itself and well; its last line.
    ///
    /// # Errors
    ///
    /// [`Error::Ended`] if it failed or said nothing, [`Error::Silent`].
    pub fn last_line(mut self, limit: Duration) -> Result<String, Error> {
        let end = Instant::now() + limit;
        let mut last = None;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            match self.lines.recv_timeout(left) {
                Ok(line) => last = Some(line),
                Err(RecvTimeoutError::Timeout) => return Err(self.silent(limit)),
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        let is_well = matches!(self.wait(FAREWELL), Ok(Some(status)) if status.success());
        match last {
            Some(last) if is_well => Ok(last),
            _ => Err(self.ended()),
        }
    }

    /// The error of a child that said `line`, which makes no sense at this point.
    pub fn unexpected(&self, line: &str) -> Error {
        Error::Unexpected {
            who: self.who.clone(),
            line: line.to_owned(),
        }
    }

    fn silent(&self, waited: Duration) -> Error {
        Error::Silent {
            who: self.who.clone(),
            waited,
        }
    }

    /// If the child has ended although it should run: why. It is watched for `moment`: others see its
    /// connections close before it has ended.
    ///
    /// # Errors
    ///
    /// [`Error::Ended`].
    pub fn check_alive(&mut self, moment: Duration) -> Result<(), Error> {
        match self.wait(moment) {
            Ok(None) => Ok(()),
            _ => Err(self.ended()),
        }
    }

    /// Sends a signal to it, and to its group if it leads one. What has ended shows when its next line is missing.
    pub fn signal(&self, signal: Signal) {
        let process = Pid::from_raw(self.process.id() as i32);
        let _ = match self.leads_group {
            true => killpg(process, signal),
            false => kill(process, signal),
        };
    }

    /// Ends it; how it ended, and what it said last.
    pub fn ended(&mut self) -> Error {
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
        // Until it is waited for its number is its own, also if it has ended just now.
        self.signal(Signal::SIGKILL);
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

/// The child's side: prints one value as a line. If nobody reads it any more, the parent is gone and so is the purpose
/// of this process: it ends.
pub fn say(value: &impl Serialize) {
    let line = serde_json::to_string(value).expect("the messages can be written as JSON");
    say_line(&line);
}

/// The same with a line as it is.
pub fn say_line(line: &str) {
    let mut out = io::stdout().lock();
    let said = out.write_all(format!("{line}\n").as_bytes());
    if said.and_then(|()| out.flush()).is_err() {
        std::process::exit(1);
    }
}

/// The end of what a child complained about, without a backtrace.
fn last_lines(text: &str) -> String {
    let (before, _) = text.split_once("stack backtrace:").unwrap_or((text, ""));
    let told = |line: &&str| !line.trim().is_empty() && !line.starts_with("note: ");
    let lines: Vec<_> = before.lines().filter(told).collect();
    lines[lines.len().saturating_sub(LAST_LINES)..].join(" | ")
}

#[cfg(test)]
mod tests;
