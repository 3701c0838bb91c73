//! What goes through the standard streams of a child: our ends of its pipes.
//!
//! Our end is non-blocking and an [`Async`]. The child's end is another open file, so the child does not see that. An
//! end that is given away, to another child or as a descriptor, blocks again.

use crate::io::{
    Async, Blocking,
    forward::{forward_read, forward_write, write_all},
};
use futures_io::{AsyncRead, AsyncWrite};
use rustix::{
    buffer::spare_capacity,
    fd::{AsFd, BorrowedFd, OwnedFd},
    io::ioctl_fionbio,
};
use std::{
    io::{self, PipeReader, PipeWriter, Write},
    os::fd::{AsRawFd, RawFd},
    pin::Pin,
    process::{self, Stdio},
    task::{Context, Poll},
};

/// How much room each read has at least, in bytes.
const ROOM: usize = 8192;

/// The standard input of a child, where the program writes. Dropping it is the end of the input: a flush or a close by
/// the traits does nothing.
///
/// ```
/// use std::process::Stdio;
/// use urgency::process::{ChildStdin, Command};
///
/// let mut cat = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
/// let input: ChildStdin = cat.stdin.take().unwrap();
/// let output = urgency::block_on(async {
///     let count = input.write(b"a line").await?;
///     input.write_all(&b"a line"[count..]).await?;
///     drop(input);
///     cat.wait_with_output().await
/// })?;
/// assert_eq!(output.stdout, b"a line");
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct ChildStdin(Async<PipeWriter>);

impl ChildStdin {
    /// Writes what there is room for, at least one byte, and returns how much. Dropping the future before it is ready
    /// has written nothing.
    ///
    /// # Errors
    /// `BrokenPipe` if no process reads any more; or that the runtime was shut down.
    pub async fn write(&self, buffer: &[u8]) -> io::Result<usize> {
        self.0.write_with(|mut pipe| pipe.write(buffer)).await
    }

    /// Writes all of `buffer`. Several writes: dropping the future may have written a part.
    ///
    /// # Errors
    /// As [`write`](ChildStdin::write).
    pub async fn write_all(&self, mut buffer: &[u8]) -> io::Result<()> {
        write_all!(self, buffer)
    }
}

/// The standard output of a child, where the program reads.
///
/// ```
/// use std::{io::{BufRead, BufReader}, process::Stdio};
/// use urgency::process::{ChildStdout, Command};
///
/// let mut child = Command::new("echo").arg("a line").stdout(Stdio::piped()).spawn()?;
/// let output: ChildStdout = child.stdout.take().unwrap();
/// let mut line = String::new();
/// BufReader::new(output.blocking()).read_line(&mut line)?; // in a closure; in async code: `read`
/// assert_eq!(line, "a line\n");
/// urgency::block_on(child.wait())?;
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct ChildStdout(Async<PipeReader>);

/// The standard error output of a child, where the program reads.
///
/// ```
/// use std::process::Stdio;
/// use urgency::process::{ChildStderr, Command};
///
/// let mut child = Command::new("ls").arg("/nowhere").stderr(Stdio::piped()).spawn()?;
/// let errors: ChildStderr = child.stderr.take().unwrap();
/// let mut said = Vec::new();
/// urgency::block_on(errors.read_to_end(&mut said))?;
/// assert!(String::from_utf8_lossy(&said).contains("/nowhere"));
/// assert!(!urgency::block_on(child.wait())?.success());
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct ChildStderr(Async<PipeReader>);

macro_rules! impl_reads {
    ($($name:ident),*) => {$(
        impl $name {
            /// Reads what is there, at least one byte; 0 is the end. Dropping the future loses nothing.
            ///
            /// ```
            /// # use std::process::Stdio;
            /// # let mut child = urgency::process::Command::new("echo").stdout(Stdio::piped()).spawn()?;
            /// let output = child.stdout.take().unwrap();
            /// urgency::block_on(async {
            ///     let mut buffer = [0; 16];
            ///     assert_eq!(output.read(&mut buffer).await?, 1);
            ///     assert_eq!(output.read(&mut buffer).await?, 0);
            ///     child.wait().await
            /// })?;
            /// # Ok::<(), std::io::Error>(())
            /// ```
            ///
            /// # Errors
            /// The pipe's errors; or that the runtime was shut down.
            pub async fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
                let read = |pipe: &PipeReader| Ok(rustix::io::read(pipe, &mut *buffer)?);
                self.0.read_with(read).await
            }

            /// Reads to the end, behind what is in `buffer`, and returns how much. If the future is dropped, what was
            /// read is there.
            ///
            /// ```
            /// # use std::process::Stdio;
            /// # let mut child = urgency::process::Command::new("echo").stdout(Stdio::piped()).spawn()?;
            /// let output = child.stdout.take().unwrap();
            /// let mut all = Vec::new();
            /// urgency::block_on(output.read_to_end(&mut all))?;
            /// assert_eq!(all, b"\n");
            /// # urgency::block_on(child.wait())?;
            /// # Ok::<(), std::io::Error>(())
            /// ```
            ///
            /// # Errors
            /// As [`read`](Self::read). What was read before is there.
            pub async fn read_to_end(&self, buffer: &mut Vec<u8>) -> io::Result<usize> {
                let before = buffer.len();
                loop {
                    buffer.reserve(ROOM);
                    let read = |pipe: &PipeReader| Ok(rustix::io::read(pipe, spare_capacity(&mut *buffer))?);
                    if self.0.read_with(read).await? == 0 {
                        return Ok(buffer.len() - before);
                    }
                }
            }
        }

        forward_read!((impl AsyncRead for $name) |this| &this.0);
        forward_read!((impl AsyncRead for &$name) |this| &this.0);
    )*};
}

impl_reads!(ChildStdout, ChildStderr);
forward_write!((impl AsyncWrite for ChildStdin) |this| &this.0);
forward_write!((impl AsyncWrite for &ChildStdin) |this| &this.0);

macro_rules! impl_stream {
    ($($name:ident of $pipe:ty),*) => {$(
        impl $name {
            /// Of the standard library's, which is made non-blocking.
            ///
            /// # Errors
            /// `InvalidInput` for a file, which the kernel cannot wait for; otherwise what the kernel says.
            pub fn from_std(stream: process::$name) -> io::Result<Self> {
                let pipe = <$pipe>::from(OwnedFd::from(stream));
                Ok($name(Async::new(pipe)?))
            }

            /// The descriptor, which blocks from now on.
            ///
            /// ```
            /// # use std::{io::Read, process::Stdio};
            /// let mut child = urgency::process::Command::new("echo").stdout(Stdio::piped()).spawn()?;
            /// let pipe = child.stdout.take().unwrap().into_owned_fd()?;
            /// let mut text = String::new();
            /// std::fs::File::from(pipe).read_to_string(&mut text)?;
            /// assert_eq!(text, "\n");
            /// # urgency::block_on(child.wait())?;
            /// # Ok::<(), std::io::Error>(())
            /// ```
            ///
            /// # Errors
            /// The kernel's.
            pub fn into_owned_fd(self) -> io::Result<OwnedFd> {
                let pipe = self.0.into_inner();
                ioctl_fionbio(&pipe, false)?;
                Ok(pipe.into())
            }

            /// The blocking forms, for closures.
            pub fn blocking(&self) -> Blocking<'_, Self> {
                Blocking::new(self)
            }
        }

        impl AsFd for $name {
            fn as_fd(&self) -> BorrowedFd<'_> {
                self.0.as_fd()
            }
        }

        impl AsRawFd for $name {
            fn as_raw_fd(&self) -> RawFd {
                self.as_fd().as_raw_fd()
            }
        }

        impl TryFrom<$name> for Stdio {
            type Error = io::Error;

            /// For another child, as one of its standard streams. It blocks from now on.
            fn try_from(stream: $name) -> io::Result<Stdio> {
                Ok(stream.into_owned_fd()?.into())
            }
        }
    )*};
}

impl_stream!(ChildStdin of PipeWriter, ChildStdout of PipeReader, ChildStderr of PipeReader);
