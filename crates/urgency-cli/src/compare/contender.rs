//! The servers that are compared, each as a command line.

use super::turns::Titled;
use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use std::io;
use std::process::Command;

/// A server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Contender {
    /// `urgency cache`.
    Urgency,
    /// memcached, as installed.
    Memcached,
    /// `urgency-bench cache-tokio`: the same server code on Tokio.
    Tokio,
}

impl Titled for Contender {
    fn title(self) -> &'static str {
        match self {
            Contender::Urgency => "Urgency",
            Contender::Memcached => "memcached",
            Contender::Tokio => "Tokio",
        }
    }
}

impl Contender {
    /// All of them.
    pub const ALL: [Contender; 3] = [Contender::Urgency, Contender::Memcached, Contender::Tokio];

    /// The command that starts it on a port of 127.0.0.1, with so many worker threads and so many megabytes.
    ///
    /// # Errors
    ///
    /// If this program does not know its own path, or if `urgency-bench`, which has the server on Tokio, is
    /// not beside it.
    pub fn command(self, port: u16, threads: usize, megabytes: u64) -> io::Result<Command> {
        let (port, threads) = (port.to_string(), threads.to_string());
        let megabytes = megabytes.to_string();
        let common = ["-p", &port, "-t", &threads, "-m", &megabytes, "-c", "20000"];
        let this = std::env::current_exe()?;
        let mut command = match self {
            Contender::Urgency => {
                let mut command = Command::new(this);
                command.args(["cache", "-l", "127.0.0.1", "-U", "0"]);
                command
            }
            Contender::Memcached => {
                let mut command = Command::new("memcached");
                // It refuses to run as root unless it is told which user to be.
                command.args(["-u", "root", "-l", "127.0.0.1", "-U", "0"]);
                command
            }
            Contender::Tokio => {
                let program = this.with_file_name("urgency-bench");
                if !program.exists() {
                    return Err(io::Error::other(format!(
                        "{} does not exist; make it with `cargo build --release -p urgency-bench`",
                        program.display()
                    )));
                }
                let mut command = Command::new(program);
                command.arg("cache-tokio");
                command
            }
        };
        command.args(common);
        Ok(command)
    }
}
