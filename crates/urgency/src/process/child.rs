//! A child process, and the wait for its end. The [parent's text](super) says how the wait works.
//!
//! # Rules
//!
//! 1. Only [`Waited`] reaps: by `try_wait`, with exclusive access. So the child's number is its own as long as it may
//!    be killed.
//! 2. A wait keeps nothing in the child but the blocking call of the other way, which cannot be called off. The next
//!    wait goes on with that call. It waits without reaping (`WNOWAIT`).
//! 3. A child that is dropped before it was reaped is an orphan (`orphans.rs`).
//!
//! A copy of the process (`fork`) has the value and not the child: a drop does nothing there.

use super::{
    orphans::{self, pidfd},
    streams::{ChildStderr, ChildStdin, ChildStdout},
};
use crate::{
    fs::Offloaded,
    future::try_join,
    io::{Async, source::Done},
    reactor::directions::Direction,
    sys::fork::Process,
};
use rustix::{
    io::Errno,
    process::{Pid, WaitId, WaitIdOptions, waitid},
};
use std::{
    io, mem,
    process::{self, ExitStatus, Output},
    time::Instant,
};

/// A child process; made by [`Command::spawn`](super::Command::spawn).
///
/// Dropping it leaves the process as it is, or kills it if
/// [`Command::kill_on_drop`](super::Command::kill_on_drop) says so. In either case it leaves no zombie: what is left of
/// the process when it ends is reaped by the runtime in which it was dropped. The end of a runtime waits for a child
/// that was killed by a drop, until 100 ms after the drop. (Dropped on a plain thread of a program that has no runtime,
/// or without a pidfd, or if that runtime ends before the process does, it is reaped when the program next spawns or
/// drops a child.)
///
/// ```
/// use urgency::process::Command;
///
/// # fn main() -> std::io::Result<()> {
/// urgency::block_on(async {
///     let mut child = Command::new("sleep").arg("600").spawn()?;
///     assert!(child.id().is_some());
///     assert!(child.try_wait()?.is_none());
///     child.kill().await?;
///     assert!(!child.wait().await?.success());
///     assert!(child.id().is_none());
///     Ok(())
/// })
/// # }
/// ```
#[derive(Debug)]
pub struct Child {
    waited: Waited,
    /// What the child reads as its standard input, if that is a pipe. Dropping it is the end of that input.
    pub stdin: Option<ChildStdin>,
    /// What the child writes to its standard output, if that is a pipe.
    pub stdout: Option<ChildStdout>,
    /// What the child writes to its standard error output, if that is a pipe.
    pub stderr: Option<ChildStderr>,
}

impl Child {
    pub(super) fn new(mut child: process::Child, kill_on_drop: bool) -> io::Result<Self> {
        let streams = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        // First of all: if one of the streams fails, the child is an orphan.
        let mut child = Child {
            waited: Waited::new(child, kill_on_drop),
            stdin: None,
            stdout: None,
            stderr: None,
        };
        child.stdin = streams.0.map(ChildStdin::from_std).transpose()?;
        child.stdout = streams.1.map(ChildStdout::from_std).transpose()?;
        child.stderr = streams.2.map(ChildStderr::from_std).transpose()?;
        Ok(child)
    }

    /// The number of the process. `None` once it has been waited for: the number may be another process's by then.
    pub fn id(&self) -> Option<u32> {
        (!self.waited.is_reaped).then(|| self.waited.child.as_ref().expect(THERE).id())
    }

    /// Waits until the child has ended. From then on each call gives the same status at once.
    ///
    /// First it closes [`stdin`](Child::stdin), if that is still here, since the child may wait for the end of its
    /// input. To write meanwhile, take it out before. A child that fills a pipe which no code reads does not end: see
    /// [`wait_with_output`](Child::wait_with_output).
    ///
    /// Dropping the future loses nothing but `stdin`: it may stand in a `select` in a loop. In a closure, `block_on`
    /// of it is the blocking form.
    ///
    /// ```
    /// use std::time::Duration;
    /// use urgency::{process::Command, time::timeout};
    ///
    /// # fn main() -> std::io::Result<()> {
    /// let mut child = Command::new("sh").args(["-c", "sleep 0.1; exit 3"]).spawn()?;
    /// urgency::block_on(async {
    ///     while timeout(Duration::from_millis(10), child.wait()).await.is_err() {
    ///         println!("still at it");
    ///     }
    ///     assert_eq!(child.wait().await?.code(), Some(3));
    ///     Ok(())
    /// })
    /// # }
    /// ```
    ///
    /// # Errors
    /// That the process is no child of this one any more: other code has reaped it, or the program ignores SIGCHLD, for
    /// which the kernel keeps no statuses. Or that the runtime was shut down before the child ended.
    pub async fn wait(&mut self) -> io::Result<ExitStatus> {
        drop(self.stdin.take());
        self.waited.wait().await
    }

    /// The exit status, if the child has ended. It waits for nothing, and does not close `stdin`.
    ///
    /// ```
    /// let mut child = urgency::process::Command::new("true").spawn()?;
    /// let status = loop {
    ///     match child.try_wait()? {
    ///         Some(status) => break status,
    ///         None => std::thread::yield_now(),
    ///     }
    /// };
    /// assert!(status.success());
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`wait`](Child::wait).
    pub fn try_wait(&mut self) -> io::Result<Option<ExitStatus>> {
        self.waited.try_wait()
    }

    /// Kills the child (SIGKILL), and does not wait for its end. If the child has been waited for, nothing happens.
    ///
    /// ```
    /// use std::os::unix::process::ExitStatusExt;
    ///
    /// let mut child = urgency::process::Command::new("sleep").arg("600").spawn()?;
    /// child.start_kill()?;
    /// let status = urgency::block_on(child.wait())?;
    /// assert_eq!(status.signal(), Some(9));
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    /// The system's refusal, for instance since the child has become another user's process.
    pub fn start_kill(&mut self) -> io::Result<()> {
        self.waited.child.as_mut().expect(THERE).kill()
    }

    /// Kills the child and waits for its end: [`start_kill`](Child::start_kill), then [`wait`](Child::wait). If the
    /// future is dropped, the child has been killed.
    ///
    /// # Errors
    /// As these two.
    pub async fn kill(&mut self) -> io::Result<()> {
        self.start_kill()?;
        self.wait().await.map(drop)
    }

    /// Waits until the child has ended, and reads what it writes to the pipes that are here, both at once. It closes
    /// `stdin` first. The streams have ended when no process has them any more: a child of the child may keep one.
    ///
    /// Dropping the future drops the child, and what was read.
    ///
    /// ```
    /// use std::process::Stdio;
    /// use urgency::process::Command;
    ///
    /// let script = "echo to one; echo to the other >&2";
    /// let mut command = Command::new("sh");
    /// command.args(["-c", script]).stdout(Stdio::piped()).stderr(Stdio::piped());
    /// let output = urgency::block_on(command.spawn()?.wait_with_output())?;
    /// assert_eq!(output.stdout, b"to one\n");
    /// assert_eq!(output.stderr, b"to the other\n");
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`wait`](Child::wait), and the errors of the pipes. Then what was read is lost.
    pub async fn wait_with_output(mut self) -> io::Result<Output> {
        let (out, err) = (self.stdout.take(), self.stderr.take());
        let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
        let read_out = async {
            match &out {
                Some(out) => out.read_to_end(&mut stdout).await,
                None => Ok(0),
            }
        };
        let read_err = async {
            match &err {
                Some(err) => err.read_to_end(&mut stderr).await,
                None => Ok(0),
            }
        };
        let reads = try_join(read_out, read_err);
        let (status, _) = try_join(self.wait(), reads).await?;
        Ok(Output {
            status,
            stdout,
            stderr,
        })
    }
}

const THERE: &str = "the child is there until the drop";

/// What is to be reaped.
#[derive(Debug)]
struct Waited {
    /// Taken by the drop only.
    child: Option<process::Child>,
    is_reaped: bool,
    kill_on_drop: bool,
    /// The other way's call, once a wait went that way.
    call: Option<Offloaded<()>>,
    process: Process,
}

impl Waited {
    fn new(child: process::Child, kill_on_drop: bool) -> Self {
        Waited {
            child: Some(child),
            is_reaped: false,
            kill_on_drop,
            call: None,
            process: Process::this(),
        }
    }

    fn try_wait(&mut self) -> io::Result<Option<ExitStatus>> {
        let status = self.child.as_mut().expect(THERE).try_wait()?;
        self.is_reaped = status.is_some();
        Ok(status)
    }

    async fn wait(&mut self) -> io::Result<ExitStatus> {
        loop {
            if let Some(status) = self.try_wait()? {
                return Ok(status);
            }
            let child = self.child.as_ref().expect(THERE);
            let pid = Pid::from_child(child);
            if self.call.is_none()
                && let Ok(pidfd) = pidfd(child)
            {
                let pidfd = Async::from_nonblocking(pidfd);
                let ends = pidfd.operate(Direction::Read, |_| match self.try_wait().transpose() {
                    Some(said) => Ok(Done::maybe_more(said)),
                    None => Err(io::ErrorKind::WouldBlock.into()),
                });
                // An error is the driver's: it cannot watch the descriptor. Or it has ended, and no call begins in its
                // runtime either.
                if let Ok(said) = ends.await {
                    return said;
                }
            }
            let call = self
                .call
                .get_or_insert_with(|| Offloaded::new(move || end_of(pid)));
            let ended = call.await;
            self.call = None;
            ended?;
        }
    }
}

/// Blocks until the child has ended, and leaves it to be reaped.
fn end_of(child: Pid) -> io::Result<()> {
    loop {
        match waitid(
            WaitId::Pid(child),
            WaitIdOptions::EXITED | WaitIdOptions::NOWAIT,
        ) {
            Err(Errno::INTR) => {}
            ended => return Ok(ended.map(drop)?),
        }
    }
}

impl Drop for Waited {
    fn drop(&mut self) {
        if self.is_reaped || !self.process.is_this() {
            return;
        }
        if let Some(mut child) = mem::take(&mut self.child) {
            let killed = self.kill_on_drop.then(|| {
                // It may have ended already.
                let _ = child.kill();
                Instant::now()
            });
            orphans::adopt(child, killed);
        }
    }
}
