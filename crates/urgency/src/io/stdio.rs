//! Standard input, output and error.
//!
//! They may be anything, and their open file is shared with other processes (the shell that started this
//! one), so it must not be made non-blocking: the others would see it, too. Instead:
//!
//! - A terminal, pipe or socket is waited for, and read or written only when the kernel says that this will not block.
//!   A write is then at most `PIPE_BUF` bytes (4096), which is what the kernel promises room for in a pipe; a terminal
//!   may take less at once. If another process, or another task of this one, takes the input or the room between the
//!   kernel's word and the call, the call blocks its thread. Then no limit of time and no cancellation reaches the
//!   call, and relief deals with it.
//! - A file, or what the kernel cannot wait for, goes by blocking operations as [`fs`](crate::fs). A write returns when
//!   the operating system has the bytes; by the traits, the flush is what waits.
//!
//! An operation begins when it is first polled; one that is to begin now and to be awaited later is spawned.
//!
//! There is no buffer here, and a stream has no lock: what several tasks write is interleaved write by write.
//!
//! # Several tasks, one file
//!
//! A file has one operation at a time, and the operation wakes one waker. So all tasks of a shared stream wait through
//! the one waker [`All`]. A task that finds the file busy first leaves its own waker there, and then polls again,
//! because the operation may have ended in between. No task's waker replaces another's, and the file's lock is never
//! held when a task's waker is dropped or woken. Nor is the lock held at a scheduling point (`fs/offloaded.rs`). The
//! error of a write is reported to the next task that writes or flushes, even if another task wrote.
//!
//! The descriptor is duplicated, because one descriptor can be registered only once with a driver.

use super::{
    Async, Blocking,
    blocking::write_through,
    forward::{forward_read, forward_write, write_all},
    source::{Done, ready_now},
};
use crate::{
    fs::File,
    reactor::{directions::Direction, readiness::wake_all},
    sys::mutex::Mutex,
};
use futures_io::{AsyncRead, AsyncWrite};
use rustix::{
    fd::{AsFd, OwnedFd},
    fs::FileType,
};
use std::{
    io::{self, IsTerminal},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Wake, Waker},
};

/// What a ready pipe or terminal takes without blocking.
const PIPE_BUF: usize = 4096;

/// One of the three.
#[derive(Debug)]
enum Standard {
    /// There is none: why.
    Fails(io::ErrorKind),
    Waits(Async<OwnedFd>),
    Blocks(Box<Shared>),
}

/// A file, for several tasks.
#[derive(Debug)]
struct Shared {
    file: Mutex<File>,
    all: Arc<All>,
}

/// Stands for all tasks that found the file busy.
#[derive(Debug, Default)]
struct All(Mutex<Vec<Waker>>);

impl Wake for All {
    fn wake(self: Arc<Self>) {
        let mut waiting = std::mem::take(&mut *self.0.lock());
        wake_all(&mut waiting);
    }
}

impl Shared {
    fn new(file: File) -> Self {
        Shared {
            file: Mutex::new(file),
            all: Arc::default(),
        }
    }

    /// Polls the file for the task of `cx`.
    fn poll<R>(
        &self,
        cx: &mut Context<'_>,
        mut poll: impl FnMut(Pin<&mut File>, &mut Context<'_>) -> Poll<R>,
    ) -> Poll<R> {
        let all = Waker::from(self.all.clone());
        let mut poll = || {
            let mut file = self.file.lock();
            poll(Pin::new(&mut *file), &mut Context::from_waker(&all))
        };
        if let Poll::Ready(result) = poll() {
            return Poll::Ready(result);
        }
        let waker = cx.waker().clone();
        {
            let mut waiting = self.all.0.lock();
            if !waiting.iter().any(|other| other.will_wake(&waker)) {
                waiting.push(waker);
            }
        }
        poll()
    }
}

impl Standard {
    fn new(fd: impl AsFd) -> Self {
        Standard::open(fd).unwrap_or_else(|error| Standard::Fails(error.kind()))
    }

    fn open(fd: impl AsFd) -> io::Result<Self> {
        let own = fd.as_fd().try_clone_to_owned()?;
        let kind = FileType::from_raw_mode(rustix::fs::fstat(&own)?.st_mode);
        let waits = match kind {
            FileType::Fifo | FileType::Socket => true,
            FileType::CharacterDevice => own.is_terminal(),
            _ => false,
        };
        Ok(if waits {
            // Not non-blocking, although the name says so: each operation asks first.
            Standard::Waits(Async::from_nonblocking(own))
        } else {
            let file = std::fs::File::from(own).into();
            Standard::Blocks(Box::new(Shared::new(file)))
        })
    }

    fn poll_read(&self, cx: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
        match self {
            Standard::Fails(why) => Poll::Ready(Err((*why).into())),
            Standard::Waits(io) => io.poll_operate(cx, Direction::Read, |fd| {
                ready_now(fd, Direction::Read)?;
                Ok(Done::maybe_more(rustix::io::read(fd, &mut *buffer)?))
            }),
            Standard::Blocks(file) => file.poll(cx, |file, cx| file.poll_read(cx, buffer)),
        }
    }

    fn poll_write(&self, cx: &mut Context<'_>, buffer: &[u8]) -> Poll<io::Result<usize>> {
        match self {
            Standard::Fails(why) => Poll::Ready(Err((*why).into())),
            Standard::Waits(io) => io.poll_operate(cx, Direction::Write, |fd| {
                ready_now(fd, Direction::Write)?;
                let buffer = &buffer[..buffer.len().min(PIPE_BUF)];
                Ok(Done::maybe_more(rustix::io::write(fd, buffer)?))
            }),
            Standard::Blocks(file) => file.poll(cx, |file, cx| file.poll_write(cx, buffer)),
        }
    }

    fn poll_flush(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Standard::Fails(_) | Standard::Waits(_) => Poll::Ready(Ok(())),
            Standard::Blocks(file) => file.poll(cx, |file, cx| file.poll_flush(cx)),
        }
    }
}

/// The standard input of this process. If it is closed, or the process out of descriptors, each read is an error.
///
/// ```no_run
/// # async fn example() -> std::io::Result<()> {
/// let mut buffer = [0; 1024];
/// let count = urgency::io::stdin().read(&mut buffer).await?;
/// # Ok(())
/// # }
/// ```
pub fn stdin() -> Stdin {
    Stdin(Standard::new(io::stdin()))
}

/// The standard output of this process, unbuffered. If it is closed, or the process out of descriptors, each write is
/// an error.
///
/// ```
/// # fn main() -> std::io::Result<()> {
/// urgency::block_on(urgency::io::stdout().write_all(b"hello\n"))
/// # }
/// ```
pub fn stdout() -> Stdout {
    Stdout(Standard::new(io::stdout()))
}

/// The standard error output of this process, unbuffered. If it is closed, or the process out of descriptors, each
/// write is an error.
///
/// ```
/// use urgency::io::stderr;
///
/// urgency::block_on(async {
///     let count = stderr().write(b"a line\n").await?;
///     assert!(count > 0);
///     Ok::<(), std::io::Error>(())
/// })?;
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn stderr() -> Stderr {
    Stdout(Standard::new(io::stderr()))
}

/// See [`stdin`]. A read begins when its future is first polled; to start it now and await it later,
/// [`spawn`](crate::spawn()) it.
#[derive(Debug)]
pub struct Stdin(Standard);

impl Stdin {
    /// Reads what is there, at least one byte; 0 is the end. Dropping the future loses nothing.
    ///
    /// # Errors
    /// The descriptor's errors.
    pub async fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        std::future::poll_fn(|cx| self.0.poll_read(cx, buffer)).await
    }

    /// The blocking forms, for closures: a [`std::io::Read`].
    pub fn blocking(&self) -> Blocking<'_, Self> {
        Blocking::new(self)
    }
}

forward_read!((impl AsyncRead for Stdin) |this| &*this);

impl AsyncRead for &Stdin {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        self.0.poll_read(cx, buffer)
    }
}

/// Standard error is written to as standard output is.
pub type Stderr = Stdout;

/// See [`stdout`] and [`stderr`]. A write begins when its future is first polled; to start it now and await
/// it later, [`spawn`](crate::spawn()) it.
#[derive(Debug)]
pub struct Stdout(Standard);

impl Stdout {
    /// Writes what there is room for, at least one byte, waits until the operating system has it, and returns
    /// how much. Dropping the future before it is ready has written nothing, or has started to write to a
    /// file.
    ///
    /// # Errors
    /// The descriptor's errors; if several tasks write to one file, also the error of another task's write.
    pub async fn write(&self, buffer: &[u8]) -> io::Result<usize> {
        write_through(self, |to, cx| to.poll_write(cx, buffer)).await
    }

    /// Writes all of `buffer`, and waits until the operating system has it. Several writes: dropping the future may
    /// have written a part.
    ///
    /// # Errors
    /// The descriptor's errors.
    pub async fn write_all(&self, mut buffer: &[u8]) -> io::Result<()> {
        write_all!(self, buffer)
    }

    /// The blocking forms, for closures: a [`std::io::Write`].
    pub fn blocking(&self) -> Blocking<'_, Self> {
        Blocking::new(self)
    }
}

forward_write!((impl AsyncWrite for Stdout) |this| &*this);

impl AsyncWrite for &Stdout {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.0.poll_write(cx, buffer)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0.poll_flush(cx)
    }

    fn poll_close(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0.poll_flush(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{
        io::{Read, Seek, Write},
        process::{Command, Stdio},
        sync::{
            Arc,
            atomic::{AtomicUsize, Ordering},
        },
        time::{Duration, Instant},
    };

    /// Runs the test `name` of this module in a process of its own, whose standard descriptors are `input` and
    /// a pipe, and gives what it wrote.
    fn child(name: &str, input: Stdio, feed: &[u8]) -> Vec<u8> {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args([
                &format!("io::stdio::tests::{name}"),
                "--exact",
                "--nocapture",
            ])
            .env("URGENCY_CHILD", "1")
            .stdin(input)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        if let Some(mut stdin) = child.stdin.take() {
            stdin.write_all(feed).unwrap();
        }
        let mut output = Vec::new();
        let mut stdout = child.stdout.take().unwrap();
        stdout.read_to_end(&mut output).unwrap();
        assert!(child.wait().unwrap().success());
        let said = String::from_utf8_lossy(&output);
        assert!(said.contains("1 passed"), "it ran no test: {said}");
        output
    }

    /// A file without a name, as a standard stream.
    fn file(contents: &[u8]) -> (std::fs::File, Standard) {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("urgency-{}-stdio-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::write(&path, contents).unwrap();
        let mut options = std::fs::OpenOptions::new();
        let file = options.read(true).write(true).open(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        let standard = Standard::new(&file);
        assert!(matches!(standard, Standard::Blocks(..)));
        (file, standard)
    }

    /// Starts two of `task` on one worker, and gives what they give. If they hang, the test fails.
    fn two<T: Send + 'static, F>(task: impl Fn() -> F) -> [T; 2]
    where
        F: Future<Output = T> + Send + 'static,
    {
        let runtime = crate::Runtime::builder().workers(1).build().unwrap();
        let tasks = [0; 2].map(|_| runtime.spawn(task()));
        let start = Instant::now();
        while !tasks.iter().all(crate::JoinHandle::is_finished) {
            assert!(start.elapsed() < Duration::from_secs(60), "it hangs");
            std::thread::sleep(Duration::from_millis(1));
        }
        tasks.map(|task| task.get().unwrap())
    }

    #[test]
    fn two_tasks_that_write_to_one_file_both_go_on() {
        const LINES: usize = 100;
        let (mut file, standard) = file(b"");
        let output = Arc::new(Stdout(standard));
        two(|| {
            let output = output.clone();
            async move {
                for _ in 0..LINES {
                    output.write_all(b"a line\n").await.unwrap();
                }
            }
        });
        let mut written = String::new();
        file.seek(io::SeekFrom::Start(0)).unwrap();
        file.read_to_string(&mut written).unwrap();
        assert_eq!(written, "a line\n".repeat(2 * LINES));
    }

    #[test]
    fn two_tasks_that_read_from_one_file_both_go_on() {
        let (_file, standard) = file(&numbers());
        let input = Arc::new(Stdin(standard));
        let read = two(|| {
            let input = input.clone();
            async move {
                let mut all = 0;
                loop {
                    match input.read(&mut [0; 1000]).await.unwrap() {
                        0 => return all,
                        count => all += count,
                    }
                }
            }
        });
        assert_eq!(read.iter().sum::<usize>(), numbers().len());
    }

    #[test]
    fn a_write_to_a_file_is_done_when_it_returns_and_its_error_is_reported() {
        let Ok(full) = std::fs::OpenOptions::new().write(true).open("/dev/full") else {
            return;
        };
        let output = Stdout(Standard::new(full));
        let error = crate::block_on(output.write(b"x")).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        let error = output.blocking().write(b"x").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        let slices = [io::IoSlice::new(b"x")];
        let error = output.blocking().write_vectored(&slices).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        output.blocking().flush().unwrap();
    }

    async fn echo_upside_down() -> io::Result<()> {
        let (input, output) = (stdin(), stdout());
        let mut all = Vec::new();
        let mut buffer = [0; 1000];
        loop {
            match input.read(&mut buffer).await? {
                0 => break,
                count => all.extend_from_slice(&buffer[..count]),
            }
        }
        all.reverse();
        output.write_all(&all).await
    }

    fn numbers() -> Vec<u8> {
        (0..20_000).flat_map(|n: u32| n.to_le_bytes()).collect()
    }

    fn assert_contains_reversed(output: &[u8], mut input: Vec<u8>) {
        input.reverse();
        let found = output.windows(input.len()).any(|part| part == input);
        assert!(found, "{} bytes came out", output.len());
    }

    #[test]
    fn pipes_are_waited_for() {
        if std::env::var_os("URGENCY_CHILD").is_some() {
            return crate::block_on(echo_upside_down()).unwrap();
        }
        let output = child("pipes_are_waited_for", Stdio::piped(), &numbers());
        assert_contains_reversed(&output, numbers());
    }

    #[test]
    fn files_go_by_blocking_operations() {
        if std::env::var_os("URGENCY_CHILD").is_some() {
            return crate::block_on(echo_upside_down()).unwrap();
        }
        let path = std::env::temp_dir().join(format!("urgency-{}-stdin", std::process::id()));
        std::fs::write(&path, numbers()).unwrap();
        let file = std::fs::File::open(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        let output = child("files_go_by_blocking_operations", file.into(), b"");
        assert_contains_reversed(&output, numbers());
    }

    #[test]
    fn the_shared_open_file_is_not_made_non_blocking() {
        if std::env::var_os("URGENCY_CHILD").is_some() {
            crate::block_on(echo_upside_down()).unwrap();
            let flags = rustix::fs::fcntl_getfl(io::stdin()).unwrap();
            assert!(!flags.contains(rustix::fs::OFlags::NONBLOCK));
            return;
        }
        child(
            "the_shared_open_file_is_not_made_non_blocking",
            Stdio::piped(),
            b"x",
        );
    }
}
