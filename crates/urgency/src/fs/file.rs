//! An open file, with one operation at a time.
//!
//! # States
//!
//! - *idle*: no operation touches the file. The buffer holds what was read ahead and not yet taken, or nothing.
//! - *busy*: an operation has the buffer; its result comes with the buffer. The operation's kind is kept. If the future
//!   was dropped, the next call uses or undoes the result: the next read takes bytes that were read; the next write,
//!   flush or close reports the error of a write.
//!
//! A write is done when its bytes are in the buffer and an operation is on its way; `flush` waits for that operation.
//! The file's position is ahead of the reader by what is in the buffer, so a write or seek after a read first goes back
//! by that much. If going back fails, nothing has happened, and what was read ahead stays in the buffer.
//!
//! The state is in a lock for the calls that take `&self`: they hold it while they wait for the operation under way.
//! The calls that take `&mut self` take no lock.

use super::{
    Offloaded, OpenOptions,
    certain::Certain,
    transfer::{read, seek, write},
};
use crate::sync::Mutex;
use futures_io::{AsyncRead, AsyncSeek, AsyncWrite};
use std::{
    fs,
    io::{self, SeekFrom},
    os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, RawFd},
    path::Path,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

/// How many bytes one operation moves at most.
const BUFFER: usize = 64 * 1024;

/// An open file.
///
/// Sequential access is by the traits of `futures-io`; [`read_at`](File::read_at) and
/// [`write_at`](File::write_at) do not touch the position, start at once, and any number can be
/// under way. Call [`flush`](File::flush) before the file is dropped to learn whether the last write
/// succeeded.
///
/// A write that was begun happens without a flush as well, also if the file is dropped or its runtime ends. The program
/// has to go on until then: the end of [`main`](macro@crate::main) waits for it, another end of the program does not.
///
/// ```
/// # fn main() -> std::io::Result<()> {
/// use urgency::fs::{self, File};
///
/// let path = std::env::temp_dir().join(format!("urgency-file-{}", std::process::id()));
/// urgency::block_on(async {
///     let file = File::create(&path).await?;
///     let (written, _) = file.write_at(b"contents".to_vec(), 0).await?;
///     assert_eq!(written, 8);
///     let (count, buffer) = File::open(&path).await?.read_at(vec![0; 100], 3).await?;
///     assert_eq!(&buffer[..count], b"tents");
///     fs::remove_file(&path).await
/// })
/// # }
/// ```
#[derive(Debug)]
pub struct File {
    file: Arc<fs::File>,
    inner: Mutex<Inner>,
}

#[derive(Debug)]
struct Inner {
    state: State,
    /// Of a write whose result was not waited for.
    late_error: Option<io::Error>,
    /// By Tokio's trait: it was started, and is polled without its target. It is over when the operation is, also if
    /// the next call has settled that: to seek again would undo what came in between.
    #[cfg(feature = "tokio-io")]
    seeking: Option<SeekFrom>,
}

#[derive(Debug)]
enum State {
    Idle(Buffer),
    Busy(Offloaded<(Finished, Vec<u8>)>),
}

#[derive(Debug, Default)]
struct Buffer {
    bytes: Vec<u8>,
    /// How much of it the reader has taken already.
    taken: usize,
}

impl Buffer {
    fn unread(&self) -> &[u8] {
        &self.bytes[self.taken..]
    }
}

/// What an operation did.
#[derive(Debug)]
enum Finished {
    Read(io::Result<usize>),
    Write(io::Result<()>),
    Seek(SeekFrom, io::Result<u64>),
}

impl File {
    /// Opens a file for reading. Dropping the future changes nothing.
    ///
    /// # Errors
    /// The future gives the errors of [`std::fs::File::open`].
    pub fn open<P: AsRef<Path>>(path: P) -> impl Future<Output = io::Result<File>> + Send + use<P> {
        OpenOptions::new().read(true).open(path)
    }

    /// Makes a file, or empties it, for writing. That begins now, and happens even if the future is dropped.
    ///
    /// # Errors
    /// The future gives the errors of [`std::fs::File::create`].
    pub fn create<P: AsRef<Path>>(
        path: P,
    ) -> impl Future<Output = io::Result<File>> + Send + use<P> {
        OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .open(path)
    }

    /// Makes a file, for reading and writing, which must not exist. That begins now, and happens even if the future is
    /// dropped.
    ///
    /// ```
    /// use std::io::ErrorKind::AlreadyExists;
    /// use urgency::fs::{self, File};
    ///
    /// # fn main() -> std::io::Result<()> {
    /// let path = std::env::temp_dir().join(format!("urgency-create-new-{}", std::process::id()));
    /// urgency::block_on(async {
    ///     File::create_new(&path).await?;
    ///     assert_eq!(File::create_new(&path).await.unwrap_err().kind(), AlreadyExists);
    ///     fs::remove_file(&path).await
    /// })
    /// # }
    /// ```
    ///
    /// # Errors
    /// The future gives the errors of [`std::fs::File::create_new`]: `AlreadyExists` if it exists.
    pub fn create_new<P: AsRef<Path>>(
        path: P,
    ) -> impl Future<Output = io::Result<File>> + Send + use<P> {
        OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .open(path)
    }

    /// As [`OpenOptions::new`].
    pub fn options() -> OpenOptions {
        OpenOptions::new()
    }

    /// A file that was opened elsewhere.
    pub fn from_std(file: fs::File) -> File {
        File::from(file)
    }

    /// Reads into the whole length of `buffer`, from `offset` bytes after the start. Gives how much was read,
    /// and the buffer; less than its length is the end of the file.
    pub fn read_at(&self, mut buffer: Vec<u8>, offset: u64) -> Offloaded<(usize, Vec<u8>)> {
        let file = self.file.clone();
        Offloaded::new(move || {
            let mut count = 0;
            while count < buffer.len() {
                let at = offset + count as u64;
                match std::os::unix::fs::FileExt::read_at(&*file, &mut buffer[count..], at) {
                    Ok(0) => break,
                    Ok(more) => count += more,
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(error) => return Err(error),
                }
            }
            Ok((count, buffer))
        })
    }

    /// Writes the whole `buffer` at `offset` bytes after the start. Gives its length, and the buffer.
    pub fn write_at(&self, buffer: Vec<u8>, offset: u64) -> Offloaded<(usize, Vec<u8>)> {
        let file = self.file.clone();
        Offloaded::new(move || {
            std::os::unix::fs::FileExt::write_all_at(&*file, &buffer, offset)?;
            Ok((buffer.len(), buffer))
        })
    }

    /// Waits until everything written is with the operating system. Dropping the future loses nothing that was written.
    ///
    /// # Errors
    /// The errors of the writes before.
    pub async fn flush(&mut self) -> io::Result<()> {
        let inner = self.inner.get_mut();
        std::future::poll_fn(|cx| inner.poll_flush(cx)).await
    }

    /// As [`flush`](File::flush), under the lock.
    async fn settled(&self) -> io::Result<()> {
        let mut inner = self.inner.lock().await;
        std::future::poll_fn(|cx| inner.poll_flush(cx)).await
    }

    /// What was read ahead, and not yet taken, is to be read again. The file is idle, but for other calls on it.
    async fn forget_read_ahead(&self) -> io::Result<()> {
        let mut inner = self.inner.lock().await;
        if let State::Idle(buffer) = &inner.state
            && !buffer.unread().is_empty()
        {
            let here = SeekFrom::Current(0);
            inner.start(&self.file, move |file, bytes, ahead| {
                Finished::Seek(here, seek(file, bytes, ahead, here))
            });
            let finished = std::future::poll_fn(|cx| inner.settle(cx)).await?;
            if let Some(Finished::Seek(_, result)) = finished {
                result?;
            }
        }
        Ok(())
    }

    /// After the operation under way, this one.
    pub(super) async fn then<T: Send + 'static>(
        &self,
        operation: impl FnOnce(&fs::File) -> io::Result<T> + Send + 'static,
    ) -> io::Result<T> {
        self.settled().await?;
        let file = self.file.clone();
        Offloaded::new(move || operation(&file)).await
    }

    /// Cuts or extends the file to `length` bytes, after the write under way. If the future is dropped, that has
    /// happened, will happen, or will not: the file is whole in any case.
    ///
    /// # Errors
    /// The errors of the writes before, and of [`std::fs::File::set_len`].
    ///
    /// ```
    /// use urgency::fs::File;
    ///
    /// let path = std::env::temp_dir().join(format!("urgency-set-len-{}", std::process::id()));
    /// urgency::block_on(async {
    ///     let mut file = File::create(&path).await?;
    ///     file.set_len(3).await?;
    ///     file.flush().await?; // what was written is with the system
    ///     file.sync_all().await?; // and on the disk
    ///     assert_eq!(file.metadata().await?.len(), 3);
    ///     let mut permissions = file.metadata().await?.permissions();
    ///     permissions.set_readonly(true);
    ///     file.set_permissions(permissions).await?;
    ///     let twin = file.try_clone().await?.into_std().await;
    ///     assert!(twin.metadata()?.permissions().readonly());
    ///     std::fs::remove_file(&path)
    /// })?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub async fn set_len(&self, length: u64) -> io::Result<()> {
        self.settled().await?;
        self.forget_read_ahead().await?;
        self.then(move |file| file.set_len(length)).await
    }

    /// A second file of the same position, with a buffer of its own. Dropping the future changes nothing.
    ///
    /// # Errors
    /// The errors of the writes before, and of [`std::fs::File::try_clone`].
    pub async fn try_clone(&self) -> io::Result<File> {
        self.then(fs::File::try_clone).await.map(File::from)
    }

    /// The file without its buffer, after the operation under way.
    ///
    /// An operation whose future was dropped keeps the file until it has ended. If there is one, this is a duplicate of
    /// the file's descriptor.
    ///
    /// # Panics
    /// If there is such an operation, and no descriptor for the duplicate.
    pub async fn into_std(mut self) -> fs::File {
        let inner = self.inner.get_mut();
        let _ = std::future::poll_fn(|cx| inner.settle(cx)).await;
        Arc::try_unwrap(self.file)
            .unwrap_or_else(|file| file.try_clone().expect("a descriptor for the file"))
    }

    /// As [`into_std`](File::into_std), but at once. What was read ahead is lost, and so is the error of a write that
    /// was not waited for: [`flush`](File::flush) gives it.
    ///
    /// # Errors
    /// The file itself, if an operation still has it.
    ///
    /// ```
    /// use urgency::fs::File;
    ///
    /// let file = File::from_std(std::fs::File::open("/dev/null")?);
    /// assert!(file.try_into_std().unwrap().metadata().is_ok());
    /// # std::io::Result::Ok(())
    /// ```
    #[expect(
        clippy::result_large_err,
        reason = "Tokio's signature; the file is a value"
    )]
    pub fn try_into_std(self) -> Result<fs::File, File> {
        let File { file, inner } = self;
        Arc::try_unwrap(file).map_err(|file| File { file, inner })
    }

    /// What is known of the file.
    pub fn metadata(&self) -> Offloaded<fs::Metadata> {
        let file = self.file.clone();
        Offloaded::new(move || file.metadata())
    }
}

impl Inner {
    /// Waits for the operation under way, if there is one. The file is idle then.
    fn settle(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Option<Finished>>> {
        let State::Busy(operation) = &mut self.state else {
            return Poll::Ready(Ok(None));
        };
        let result = ready!(Pin::new(operation).poll(cx));
        self.state = State::Idle(Buffer::default());
        // An operation that a shutdown kept from running has nothing to give back.
        let (mut finished, bytes) = result?;
        self.state = State::Idle(Buffer { bytes, taken: 0 });
        if let Finished::Write(result) = &mut finished
            && let Err(error) = std::mem::replace(result, Ok(()))
        {
            self.late_error = Some(error);
        }
        #[cfg(feature = "tokio-io")]
        if let Finished::Seek(to, _) = finished {
            self.seeking.take_if(|seeking| *seeking == to);
        }
        Poll::Ready(Ok(Some(finished)))
    }

    /// The error of the last write, once it has ended.
    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.settle(cx))?;
        Poll::Ready(self.late_error.take().map_or(Ok(()), Err))
    }

    /// Starts an operation on the idle file. It gets the buffer's memory, at whose end are the bytes by which
    /// the file's position is ahead of the reader, and how many those are. What it leaves there is unread.
    fn start(
        &mut self,
        file: &Arc<fs::File>,
        operation: impl FnOnce(&fs::File, &mut Vec<u8>, usize) -> Finished + Send + 'static,
    ) {
        let operation = self.prepare(file, operation);
        self.state = State::Busy(Offloaded::new(operation));
    }

    /// Takes the buffer of the idle file for an operation: see [`start`](Inner::start).
    fn prepare(
        &mut self,
        file: &Arc<fs::File>,
        operation: impl FnOnce(&fs::File, &mut Vec<u8>, usize) -> Finished + Send + 'static,
    ) -> impl FnOnce() -> io::Result<(Finished, Vec<u8>)> + Send + 'static {
        let State::Idle(buffer) = &mut self.state else {
            unreachable!("started while busy");
        };
        let ahead = buffer.unread().len();
        let mut bytes = std::mem::take(&mut buffer.bytes);
        let file = file.clone();
        move || {
            let finished = operation(&file, &mut bytes, ahead);
            Ok((finished, bytes))
        }
    }
}

impl File {
    fn parts(&mut self) -> (&Arc<fs::File>, &mut Inner) {
        (&self.file, self.inner.get_mut())
    }

    #[cfg(feature = "tokio-io")]
    pub(crate) fn seeking(&mut self) -> &mut Option<SeekFrom> {
        &mut self.inner.get_mut().seeking
    }
}

impl AsFd for File {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

impl AsRawFd for File {
    fn as_raw_fd(&self) -> RawFd {
        self.file.as_raw_fd()
    }
}

impl FromRawFd for File {
    unsafe fn from_raw_fd(fd: RawFd) -> Self {
        // SAFETY: the caller's promise.
        File::from(unsafe { fs::File::from_raw_fd(fd) })
    }
}

impl From<fs::File> for File {
    fn from(file: fs::File) -> Self {
        File {
            file: Arc::new(file),
            inner: Mutex::new(Inner {
                state: State::Idle(Buffer::default()),
                late_error: None,
                #[cfg(feature = "tokio-io")]
                seeking: None,
            }),
        }
    }
}

impl AsyncRead for File {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        target: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        let (file, this) = self.get_mut().parts();
        let wanted = target.len().min(BUFFER);
        loop {
            match ready!(this.settle(cx))? {
                Some(Finished::Read(Ok(0))) => return Poll::Ready(Ok(0)),
                Some(Finished::Read(Err(error))) => return Poll::Ready(Err(error)),
                _ => {}
            }
            if let State::Idle(buffer) = &mut this.state
                && (wanted == 0 || !buffer.unread().is_empty())
            {
                let count = buffer.unread().len().min(wanted);
                target[..count].copy_from_slice(&buffer.unread()[..count]);
                buffer.taken += count;
                return Poll::Ready(Ok(count));
            }
            this.start(file, move |file, bytes, _| {
                Finished::Read(read(file, bytes, wanted))
            });
        }
    }
}

impl AsyncWrite for File {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        source: &[u8],
    ) -> Poll<io::Result<usize>> {
        let (file, this) = self.get_mut().parts();
        ready!(this.settle(cx))?;
        if let Some(error) = this.late_error.take() {
            return Poll::Ready(Err(error));
        }
        let source = source[..source.len().min(BUFFER)].to_vec();
        let count = source.len();
        let operation = this.prepare(file, move |file, bytes, ahead| {
            Finished::Write(write(file, bytes, ahead, source))
        });
        let operation = Certain::new(operation);
        this.state = State::Busy(Offloaded::new(|| operation.run()));
        Poll::Ready(Ok(count))
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.get_mut().inner.get_mut().poll_flush(cx)
    }

    fn poll_close(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_flush(cx)
    }
}

impl AsyncSeek for File {
    fn poll_seek(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        to: SeekFrom,
    ) -> Poll<io::Result<u64>> {
        let (file, this) = self.get_mut().parts();
        loop {
            match ready!(this.settle(cx))? {
                Some(Finished::Seek(asked, result)) if asked == to => return Poll::Ready(result),
                _ => {}
            }
            this.start(file, move |file, bytes, ahead| {
                Finished::Seek(to, seek(file, bytes, ahead, to))
            });
        }
    }
}
