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

use super::{Offloaded, with_path};
use futures_io::{AsyncRead, AsyncSeek, AsyncWrite};
use std::{
    fs,
    io::{self, Read, Seek, SeekFrom, Write},
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
    state: State,
    /// Of a write whose result was not waited for.
    late_error: Option<io::Error>,
    /// By Tokio's trait: it was started, and is polled without its target.
    #[cfg(feature = "tokio-io")]
    pub(crate) seeking: Option<SeekFrom>,
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
    /// Opens a file for reading.
    ///
    /// # Errors
    /// The future gives the errors of [`std::fs::File::open`].
    pub fn open<P: AsRef<Path>>(path: P) -> impl Future<Output = io::Result<File>> + Send + use<P> {
        OpenOptions::new().read(true).open(path)
    }

    /// Makes a file, or empties it, for writing.
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

    /// Waits until everything written is with the operating system.
    ///
    /// # Errors
    /// The errors of the writes before.
    pub async fn flush(&mut self) -> io::Result<()> {
        std::future::poll_fn(|cx| Pin::new(&mut *self).poll_flush(cx)).await
    }

    /// Waits until everything written is on the device.
    ///
    /// # Errors
    /// The errors of the writes before, and of [`std::fs::File::sync_all`].
    pub async fn sync_all(&mut self) -> io::Result<()> {
        self.flush().await?;
        let file = self.file.clone();
        Offloaded::new(move || file.sync_all()).await
    }

    /// Cuts or extends the file to `length` bytes.
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
    ///     std::fs::remove_file(&path)
    /// })?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub async fn set_len(&mut self, length: u64) -> io::Result<()> {
        self.flush().await?;
        let file = self.file.clone();
        Offloaded::new(move || file.set_len(length)).await
    }

    /// What is known of the file.
    pub fn metadata(&self) -> Offloaded<fs::Metadata> {
        let file = self.file.clone();
        Offloaded::new(move || file.metadata())
    }

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
        Poll::Ready(Ok(Some(finished)))
    }

    /// Starts an operation on the idle file. It gets the buffer's memory, at whose end are the bytes by which
    /// the file's position is ahead of the reader, and how many those are. What it leaves there is unread.
    fn start(
        &mut self,
        operation: impl FnOnce(&fs::File, &mut Vec<u8>, usize) -> Finished + Send + 'static,
    ) {
        let State::Idle(buffer) = &mut self.state else {
            unreachable!("started while busy");
        };
        let ahead = buffer.unread().len();
        let mut bytes = std::mem::take(&mut buffer.bytes);
        let file = self.file.clone();
        self.state = State::Busy(Offloaded::new(move || {
            let finished = operation(&file, &mut bytes, ahead);
            Ok((finished, bytes))
        }));
    }
}

/// Reads anew; nothing is ahead.
fn read(mut file: &fs::File, bytes: &mut Vec<u8>, wanted: usize) -> io::Result<usize> {
    bytes.resize(wanted, 0);
    let result = loop {
        match file.read(bytes) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => break result,
        }
    };
    bytes.truncate(*result.as_ref().unwrap_or(&0));
    result
}

fn write(
    mut file: &fs::File,
    bytes: &mut Vec<u8>,
    ahead: usize,
    source: Vec<u8>,
) -> io::Result<()> {
    if ahead != 0 {
        seek(file, bytes, ahead, SeekFrom::Current(0))?;
    }
    let result = file.write_all(&source);
    // The larger memory is kept, for the next read.
    if bytes.capacity() < source.capacity() {
        *bytes = source;
    }
    bytes.clear();
    result
}

fn seek(mut file: &fs::File, bytes: &mut Vec<u8>, ahead: usize, to: SeekFrom) -> io::Result<u64> {
    bytes.drain(..bytes.len() - ahead);
    let position = file.seek(match to {
        SeekFrom::Current(by) => SeekFrom::Current(by.saturating_sub(ahead as i64)),
        absolute => absolute,
    })?;
    bytes.clear();
    Ok(position)
}

impl From<fs::File> for File {
    fn from(file: fs::File) -> Self {
        File {
            file: Arc::new(file),
            state: State::Idle(Buffer::default()),
            late_error: None,
            #[cfg(feature = "tokio-io")]
            seeking: None,
        }
    }
}

impl AsyncRead for File {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        target: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
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
            this.start(move |file, bytes, _| Finished::Read(read(file, bytes, wanted)));
        }
    }
}

impl AsyncWrite for File {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        source: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        ready!(this.settle(cx))?;
        if let Some(error) = this.late_error.take() {
            return Poll::Ready(Err(error));
        }
        let source = source[..source.len().min(BUFFER)].to_vec();
        let count = source.len();
        this.start(move |file, bytes, ahead| Finished::Write(write(file, bytes, ahead, source)));
        Poll::Ready(Ok(count))
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        ready!(this.settle(cx))?;
        Poll::Ready(this.late_error.take().map_or(Ok(()), Err))
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
        let this = self.get_mut();
        loop {
            match ready!(this.settle(cx))? {
                Some(Finished::Seek(asked, result)) if asked == to => return Poll::Ready(result),
                _ => {}
            }
            this.start(move |file, bytes, ahead| Finished::Seek(to, seek(file, bytes, ahead, to)));
        }
    }
}

/// How a file is opened: as [`std::fs::OpenOptions`], with an asynchronous [`open`](OpenOptions::open).
///
/// ```no_run
/// # async fn example() -> std::io::Result<()> {
/// use urgency::fs::OpenOptions;
///
/// let log = OpenOptions::new().append(true).create(true).open("log").await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct OpenOptions(fs::OpenOptions);

impl Default for OpenOptions {
    fn default() -> Self {
        Self::new()
    }
}

macro_rules! options {
    ($($(#[$doc:meta])* $name:ident)*) => {
        $($(#[$doc])*
        pub fn $name(&mut self, $name: bool) -> &mut Self {
            self.0.$name($name);
            self
        })*
    };
}

impl OpenOptions {
    /// Nothing is allowed yet.
    pub fn new() -> Self {
        OpenOptions(fs::OpenOptions::new())
    }

    options! {
        /// To be read.
        read
        /// To be written.
        write
        /// To be written at its end, always.
        append
        /// To be emptied.
        truncate
        /// To be made if it does not exist.
        create
        /// To be made; it must not exist.
        create_new
    }

    /// Starts to open the file.
    ///
    /// # Errors
    /// The future gives the errors of [`std::fs::OpenOptions::open`].
    pub fn open<P: AsRef<Path>>(
        &self,
        path: P,
    ) -> impl Future<Output = io::Result<File>> + Send + use<P> {
        let options = self.0.clone();
        let opening = with_path(path, move |path| options.open(path));
        async move { Ok(File::from(opening.await?)) }
    }
}

impl From<fs::OpenOptions> for OpenOptions {
    fn from(options: fs::OpenOptions) -> Self {
        OpenOptions(options)
    }
}
