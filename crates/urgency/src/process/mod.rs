//! Child processes.
//!
//! The names are Tokio's: a [`Command`] says what to run, [`Command::spawn`] gives a [`Child`], and [`Child::wait`] is
//! a future. What goes through the child's standard streams is read and written as through a socket of
//! [`net`](crate::net): in async code by futures, in closures by `blocking()`.
//!
//! ```
//! use std::process::Stdio;
//! use urgency::process::Command;
//!
//! # fn main() -> std::io::Result<()> {
//! urgency::block_on(async {
//!     let mut sort = Command::new("sort").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
//!     let lines = sort.stdin.take().expect("it is a pipe");
//!     lines.write_all(b"pear\napple\n").await?;
//!     drop(lines); // the end of its input
//!     let output = sort.wait_with_output().await?;
//!     assert!(output.status.success());
//!     assert_eq!(output.stdout, b"apple\npear\n");
//!     Ok(())
//! })
//! # }
//! ```
//!
//! In a closure, `urgency::block_on` around a future of this module is the blocking form: its stack waits, and its
//! worker does something else.
//!
//! # How a wait works
//!
//! The kernel has a descriptor for a process, the *pidfd* (Linux 5.3), which is readable once the process has ended. A
//! wait opens one, and waits for it on the driver of its runtime as for a socket. Then `waitpid` *reaps* the child: it
//! takes the exit status and the entry in the kernel's table. Until then an ended child is a *zombie*, and its number
//! is not another process's. So there is no handler of SIGCHLD and no thread for each child.
//!
//! The descriptor lives as long as the wait. A child that no code waits for has none, and a child belongs to no
//! runtime: it may be spawned in one and waited for in another. Each wait that is dropped and begun again costs four
//! more system calls.
//!
//! Where no pidfd can be had or watched (an older kernel, a filter of system calls that knows no `pidfd_open`, no
//! descriptors left), the wait is a blocking call on a stack of its own, as an operation of [`fs`](crate::fs). It
//! leaves the reaping to the child's owner. Rejected: an error that names what is missing. A container's filter is no
//! bug of the program, and a thread for each child that is waited for is what the program would write instead.
//!
//! # What is inherited
//!
//! A child begins in the class and with the time slices of a usual thread, whatever the runtime has done to the thread
//! that spawns it (`usual.rs`).
//!
//! # Files
//!
//! `command` says what to run, `usual` how a child is made, `child` is a child and its wait, `orphans` reaps children
//! that were dropped before they were waited for, and `streams` is what goes through the pipes.

mod child;
mod command;
mod orphans;
mod streams;
mod usual;

pub use child::Child;
pub use command::Command;
pub use streams::{ChildStderr, ChildStdin, ChildStdout};

#[cfg(all(test, not(miri)))]
mod tests;
