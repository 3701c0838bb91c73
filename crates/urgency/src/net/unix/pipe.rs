//! Pipes: two connected ends, or the ends of a named pipe (FIFO).
//!
//! ```
//! use urgency::net::unix::pipe;
//!
//! urgency::block_on(async {
//!     let (sender, receiver) = pipe::pipe()?;
//!     assert_eq!(sender.write(b"ping").await?, 4);
//!     let mut buffer = [0; 8];
//!     assert_eq!(receiver.read(&mut buffer).await?, 4);
//!     drop(sender);
//!     assert_eq!(receiver.read(&mut buffer).await?, 0); // the end
//!     std::io::Result::Ok(())
//! })?;
//! # std::io::Result::Ok(())
//! ```
//!
//! Both ends implement [`futures_io`]'s traits, and Tokio's by the feature `tokio-io`. An end is non-blocking as long
//! as it is here; the other end is another open file, which may block.

use crate::io::{
    Async, Blocking, Interest, Ready,
    forward::{forward_read, forward_write},
    ready::{ready_for, some_ready},
};
use futures_io::{AsyncRead, AsyncWrite};
use rustix::{
    fd::{AsFd, BorrowedFd, OwnedFd},
    fs::{FileType, OFlags, fcntl_getfl, fstat},
    io::ioctl_fionbio,
};
use std::{
    fs::File,
    io::{self, IoSlice, IoSliceMut, PipeReader, PipeWriter, Read, Write},
    os::{
        fd::{AsRawFd, RawFd},
        unix::fs::OpenOptionsExt,
    },
    path::Path,
    pin::Pin,
    task::{Context, Poll},
};

/// The end of a pipe that writes.
///
/// A pipe that is read no more takes nothing: each write is an error of the kind `BrokenPipe`.
#[derive(Debug)]
pub struct Sender(Async<PipeWriter>);

/// The end of a pipe that reads.
///
/// A named pipe ends when its last writer is gone, and goes on when another one opens it. Before the first writer it
/// has not ended: reads wait. A receiver that was opened [to read and write](OpenOptions::read_write) is a writer
/// itself, so it never comes to the end.
#[derive(Debug)]
pub struct Receiver(Async<ReadEnd>);

/// What reads. To the kernel a named pipe that no writer has opened yet is at its end, but a receiver waits for the
/// first writer. By `poll(2)` the kernel tells the two apart.
#[derive(Debug)]
struct ReadEnd(PipeReader);

impl ReadEnd {
    /// The result of a read of `count` bytes into room for `most`.
    fn unless_new(&self, count: usize, most: usize) -> io::Result<usize> {
        if count == 0 && most != 0 {
            some_ready(ready_for(self, Interest::READABLE))?;
        }
        Ok(count)
    }
}

impl Read for &ReadEnd {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = (&self.0).read(buffer)?;
        self.unless_new(count, buffer.len())
    }

    fn read_vectored(&mut self, buffers: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        let count = (&self.0).read_vectored(buffers)?;
        self.unless_new(count, buffers.iter().map(|buffer| buffer.len()).sum())
    }
}

impl AsFd for ReadEnd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl From<OwnedFd> for ReadEnd {
    fn from(descriptor: OwnedFd) -> Self {
        ReadEnd(descriptor.into())
    }
}

impl From<ReadEnd> for OwnedFd {
    fn from(end: ReadEnd) -> Self {
        end.0.into()
    }
}

/// A new pipe: what is written into the first is read from the second.
///
/// # Errors
/// The limit of open descriptors.
pub fn pipe() -> io::Result<(Sender, Receiver)> {
    let (reader, writer) = io::pipe()?;
    Ok((
        Sender(Async::new(writer)?),
        Receiver(Async::new(ReadEnd(reader))?),
    ))
}

/// How to open a named pipe.
///
/// ```
/// use urgency::net::unix::pipe;
///
/// # let path = std::env::temp_dir().join(format!("urgency-named-pipe-{}", std::process::id()));
/// # assert!(std::process::Command::new("mkfifo").arg(&path).status()?.success());
/// // `mkfifo path` has made it. A sender of a pipe that nobody reads is an error; a receiver may come first.
/// let options = pipe::OpenOptions::new();
/// assert!(options.open_sender(&path).is_err());
/// let receiver = options.open_receiver(&path)?;
/// let sender = options.open_sender(&path)?;
/// assert_eq!(sender.try_write(b"ping")?, 4);
/// assert_eq!(receiver.try_read(&mut [0; 8])?, 4);
/// std::fs::remove_file(path)?;
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct OpenOptions {
    read_write: bool,
    unchecked: bool,
}

impl OpenOptions {
    /// For one direction, of what is a named pipe.
    pub fn new() -> Self {
        OpenOptions::default()
    }

    /// Whether to open the pipe in both directions. Then a sender need not wait for a receiver, and a receiver never
    /// sees the end. What a sender has written is lost with it if no other has opened the pipe.
    ///
    /// ```
    /// use urgency::net::unix::pipe::OpenOptions;
    ///
    /// # let path = std::env::temp_dir().join(format!("urgency-both-ways-{}", std::process::id()));
    /// # assert!(std::process::Command::new("mkfifo").arg(&path).status()?.success());
    /// let sender = OpenOptions::new().read_write(true).open_sender(&path)?; // no receiver is there yet
    /// assert_eq!(sender.try_write(b"ping")?, 4);
    /// std::fs::remove_file(path)?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn read_write(&mut self, both: bool) -> &mut Self {
        self.read_write = both;
        self
    }

    /// Whether to leave out the look that tells whether the file is a named pipe.
    ///
    /// ```
    /// use urgency::net::unix::pipe::OpenOptions;
    ///
    /// let refused = OpenOptions::new().open_receiver("/dev/null").unwrap_err();
    /// assert_eq!(refused.kind(), std::io::ErrorKind::InvalidInput);
    /// let device = OpenOptions::new().unchecked(true).open_receiver("/dev/null")?;
    /// assert_eq!(device.try_read(&mut [0; 8])?, 0);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn unchecked(&mut self, is_left_out: bool) -> &mut Self {
        self.unchecked = is_left_out;
        self
    }

    /// Opens the end that reads. It does not wait for a sender.
    ///
    /// # Errors
    /// `InvalidInput` if the file is no pipe, and the errors of the kernel.
    pub fn open_receiver(&self, path: impl AsRef<Path>) -> io::Result<Receiver> {
        Receiver::from_file_unchecked(self.open(path.as_ref(), true)?)
    }

    /// Opens the end that writes. It does not wait for a receiver.
    ///
    /// # Errors
    /// `ENXIO` if no process has the pipe open to read; `InvalidInput` if the file is no pipe; and the other errors of
    /// the kernel.
    pub fn open_sender(&self, path: impl AsRef<Path>) -> io::Result<Sender> {
        Sender::from_file_unchecked(self.open(path.as_ref(), false)?)
    }

    fn open(&self, path: &Path, reads: bool) -> io::Result<File> {
        let file = File::options()
            .read(reads || self.read_write)
            .write(!reads || self.read_write)
            .custom_flags(OFlags::NONBLOCK.bits() as i32)
            .open(path)?;
        if !self.unchecked {
            must_be_pipe(&file)?;
        }
        Ok(file)
    }
}

/// # Errors
/// `InvalidInput` if it is no pipe.
fn must_be_pipe(file: impl AsFd) -> io::Result<()> {
    match FileType::from_raw_mode(fstat(file)?.st_mode) {
        FileType::Fifo => Ok(()),
        kind => Err(refused(format!(
            "a file of kind {kind:?} is no pipe; use urgency::fs for files, or unchecked(true) for a device"
        ))),
    }
}

fn refused(text: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, text)
}

macro_rules! impl_end {
    ($type:ident of $pipe:ident, by $mode:ident: $verb:literal, interest $interest:ident) => {
        impl $type {
            #[doc = concat!("Of a file that is a pipe and was opened to ", $verb, ". It is made non-blocking.")]
            ///
            /// # Errors
            /// `InvalidInput` if it is something else, and the errors of the kernel.
            pub fn from_file(file: File) -> io::Result<Self> {
                Self::from_owned_fd(file.into())
            }

            /// As [`from_file`](Self::from_file), of a descriptor.
            ///
            /// # Errors
            /// As [`from_file`](Self::from_file).
            pub fn from_owned_fd(descriptor: OwnedFd) -> io::Result<Self> {
                must_be_pipe(&descriptor)?;
                let mode = fcntl_getfl(&descriptor)? & OFlags::ACCMODE;
                if mode != OFlags::$mode && mode != OFlags::RDWR {
                    let text = concat!("this end of the pipe was not opened to ", $verb);
                    return Err(refused(text.into()));
                }
                Self::from_owned_fd_unchecked(descriptor)
            }

            /// As [`from_file`](Self::from_file), without a look at what it is.
            ///
            /// # Errors
            /// `InvalidInput` for a regular file, which the kernel cannot wait for, and the errors of the kernel.
            pub fn from_file_unchecked(file: File) -> io::Result<Self> {
                Self::from_owned_fd_unchecked(file.into())
            }

            /// As [`from_file_unchecked`](Self::from_file_unchecked), of a descriptor.
            ///
            /// # Errors
            /// As [`from_file_unchecked`](Self::from_file_unchecked).
            pub fn from_owned_fd_unchecked(descriptor: OwnedFd) -> io::Result<Self> {
                Ok($type(Async::new($pipe::from(descriptor))?))
            }

            /// Waits until the pipe is ready for one of `interest`, and says for which. Dropping the future changes
            /// nothing.
            ///
            /// # Errors
            /// If the descriptor cannot be waited for, or the runtime was shut down.
            pub async fn ready(&self, interest: Interest) -> io::Result<Ready> {
                let attempt = |pipe: &$pipe| some_ready(ready_for(pipe, interest));
                self.0.when(interest, attempt).await
            }

            /// Makes `operation`, a system call of the program's own on this pipe, if the pipe is ready for it now. If
            /// it is not, `operation` is not called.
            ///
            /// # Errors
            /// `WouldBlock` if the pipe is not ready, and the operation's own errors.
            pub fn try_io<R>(&self, operation: impl FnOnce() -> io::Result<R>) -> io::Result<R> {
                self.0.try_io(Interest::$interest, |_| operation())
            }

            /// The descriptor, which blocks from now on.
            ///
            /// # Errors
            /// The errors of the kernel.
            pub fn into_blocking_fd(self) -> io::Result<OwnedFd> {
                let pipe = self.into_nonblocking_fd()?;
                ioctl_fionbio(&pipe, false)?;
                Ok(pipe)
            }

            /// The descriptor, still non-blocking.
            ///
            /// # Errors
            /// None yet.
            pub fn into_nonblocking_fd(self) -> io::Result<OwnedFd> {
                Ok(self.0.into_inner().into())
            }

            /// The blocking forms, for closures.
            pub fn blocking(&self) -> Blocking<'_, Self> {
                Blocking::new(self)
            }
        }

        impl AsFd for $type {
            fn as_fd(&self) -> BorrowedFd<'_> {
                self.0.as_fd()
            }
        }

        impl AsRawFd for $type {
            fn as_raw_fd(&self) -> RawFd {
                self.as_fd().as_raw_fd()
            }
        }
    };
}

impl_end!(Sender of PipeWriter, by WRONLY: "write", interest WRITABLE);
impl_end!(Receiver of ReadEnd, by RDONLY: "read", interest READABLE);

impl Sender {
    /// Writes what there is room for, at least one byte, and returns how much. Dropping the future before it is ready
    /// has written nothing.
    ///
    /// # Errors
    /// `BrokenPipe` if the pipe is read no more; or that the runtime was shut down.
    pub async fn write(&self, buffer: &[u8]) -> io::Result<usize> {
        self.0.write_with(|mut pipe| pipe.write(buffer)).await
    }

    /// Waits until a write would return at once. Dropping the future changes nothing.
    ///
    /// ```
    /// use urgency::net::unix::pipe;
    ///
    /// urgency::block_on(async {
    ///     let (sender, receiver) = pipe::pipe()?;
    ///     sender.writable().await?;
    ///     sender.try_write(b"ping")?;
    ///     receiver.readable().await?;
    ///     assert_eq!(receiver.try_read(&mut [0; 8])?, 4);
    ///     std::io::Result::Ok(())
    /// })?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the descriptor cannot be waited for, or the runtime was shut down.
    pub async fn writable(&self) -> io::Result<()> {
        self.0.writable().await
    }

    /// The `poll_*` form of [`writable`](Self::writable).
    pub fn poll_write_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0.poll_writable(cx)
    }

    /// Writes what there is room for now, and returns how much.
    ///
    /// # Errors
    /// `WouldBlock` if there is no room; else as [`write`](Self::write).
    pub fn try_write(&self, buffer: &[u8]) -> io::Result<usize> {
        self.0.get_ref().write(buffer)
    }

    /// As [`try_write`](Self::try_write), from several buffers, one after the other.
    ///
    /// # Errors
    /// As [`try_write`](Self::try_write).
    pub fn try_write_vectored(&self, buffers: &[IoSlice<'_>]) -> io::Result<usize> {
        self.0.get_ref().write_vectored(buffers)
    }
}

impl Receiver {
    /// Reads what is there, at least one byte; 0 is the end. Dropping the future loses nothing.
    ///
    /// # Errors
    /// The pipe's errors; or that the runtime was shut down.
    pub async fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read_with(|mut pipe| pipe.read(buffer)).await
    }

    /// Waits until a read would return at once. Dropping the future changes nothing.
    ///
    /// # Errors
    /// If the descriptor cannot be waited for, or the runtime was shut down.
    pub async fn readable(&self) -> io::Result<()> {
        self.0.readable().await
    }

    /// The `poll_*` form of [`readable`](Self::readable).
    pub fn poll_read_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0.poll_readable(cx)
    }

    /// Reads what is there now; 0 is the end.
    ///
    /// # Errors
    /// `WouldBlock` if nothing is there; else as [`read`](Self::read).
    pub fn try_read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.get_ref().read(buffer)
    }

    /// As [`try_read`](Self::try_read), into several buffers, one after the other.
    ///
    /// # Errors
    /// As [`try_read`](Self::try_read).
    pub fn try_read_vectored(&self, buffers: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        self.0.get_ref().read_vectored(buffers)
    }
}

forward_read!((impl AsyncRead for Receiver) |this| &this.0);
forward_read!((impl AsyncRead for &Receiver) |this| &this.0);
forward_write!((impl AsyncWrite for Sender) |this| &this.0);
forward_write!((impl AsyncWrite for &Sender) |this| &this.0);
