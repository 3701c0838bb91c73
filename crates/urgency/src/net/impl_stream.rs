//! The surface of TCP and Unix streams: methods and traits, the same words for both types.
//!
//! What they do is in `stream.rs`. A macro and not a generic type, so that each type has a page of its own with its
//! methods on it. A file that calls the macro imports what the macro names.

/// Gives a type with a field `stream: Stream` the operations of a stream and the traits.
macro_rules! impl_stream {
    ($type:ty) => {
        impl $type {
            /// For the traits that are implemented elsewhere.
            #[cfg(feature = "tokio-io")]
            #[inline]
            pub(crate) fn as_stream(&self) -> &Stream {
                &self.stream
            }

            /// Reads what is there, at least one byte, into `buffer`; 0 is the end of the stream.
            ///
            /// Dropping the future before it is ready has read nothing.
            ///
            /// # Errors
            /// The connection's errors, or that the runtime was shut down.
            pub async fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
                self.stream.read(buffer).await
            }

            /// As [`read`](Self::read), into several buffers, one after the other.
            ///
            /// # Errors
            /// As [`read`](Self::read).
            pub async fn read_vectored(&self, buffers: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
                self.stream.read_vectored(buffers).await
            }

            /// As [`read`](Self::read), but what is read will be read again.
            ///
            /// # Errors
            /// As [`read`](Self::read).
            pub async fn peek(&self, buffer: &mut [u8]) -> io::Result<usize> {
                self.stream.peek(buffer).await
            }

            /// Reads until `buffer` is full, and returns its length.
            ///
            /// Several reads: dropping the future may have read a part.
            ///
            /// # Errors
            /// As [`read`](Self::read), and `UnexpectedEof` if the stream ends before.
            pub async fn read_exact(&self, buffer: &mut [u8]) -> io::Result<usize> {
                self.stream.read_exact(buffer).await
            }

            /// Writes what there is room for, at least one byte, and returns how much.
            ///
            /// Dropping the future before it is ready has written nothing.
            ///
            /// # Errors
            /// The connection's errors, or that the runtime was shut down.
            pub async fn write(&self, buffer: &[u8]) -> io::Result<usize> {
                self.stream.write(buffer).await
            }

            /// As [`write`](Self::write), from several buffers, one after the other.
            ///
            /// # Errors
            /// As [`write`](Self::write).
            pub async fn write_vectored(&self, buffers: &[IoSlice<'_>]) -> io::Result<usize> {
                self.stream.write_vectored(buffers).await
            }

            /// Writes all of `buffer`.
            ///
            /// Several writes: dropping the future may have written a part.
            ///
            /// # Errors
            /// As [`write`](Self::write), and `WriteZero` if the connection takes nothing any more.
            pub async fn write_all(&self, buffer: &[u8]) -> io::Result<()> {
                self.stream.write_all(buffer).await
            }

            /// Starts a read now; await the result later. It reads into the whole length of `buffer`.
            ///
            /// Dropping it loses no bytes: what was read is read again by the next operation. Several may
            /// be dropped, in any order: their bytes are read in the order in which they came. But
            /// what is dropped after a later read was consumed comes behind that.
            pub fn start_read(&self, buffer: Vec<u8>) -> StartedRead<'_> {
                Started::new(self.stream.io(), ReadOperation {
                    stream: &self.stream,
                    buffer,
                })
            }

            /// Starts a single write now; await the result later.
            pub fn start_write(&self, buffer: Vec<u8>) -> StartedWrite<'_> {
                Started::new(self.stream.io(), WriteOperation {
                    stream: &self.stream,
                    buffer,
                })
            }

            /// Waits until a read would return at once. Dropping the future changes nothing.
            ///
            /// # Errors
            /// As [`read`](Self::read).
            pub async fn readable(&self) -> io::Result<()> {
                self.stream.readable().await
            }

            /// Waits until a write would return at once. Dropping the future changes nothing.
            ///
            /// # Errors
            /// As [`write`](Self::write).
            pub async fn writable(&self) -> io::Result<()> {
                self.stream.io().writable().await
            }

            /// Waits until the stream is ready for one of `interest`, and says for which. Dropping the future changes
            /// nothing.
            ///
            /// ```
            /// use urgency::{io::Interest, net::UnixStream};
            ///
            /// urgency::block_on(async {
            ///     let (one, other) = UnixStream::pair()?;
            ///     let ready = one.ready(Interest::READABLE | Interest::WRITABLE).await?;
            ///     assert!(ready.is_writable() && !ready.is_readable());
            ///     drop(other);
            ///     assert!(one.ready(Interest::READABLE).await?.is_read_closed());
            ///     std::io::Result::Ok(())
            /// })?;
            /// # std::io::Result::Ok(())
            /// ```
            ///
            /// # Errors
            /// As [`read`](Self::read).
            pub async fn ready(&self, interest: Interest) -> io::Result<Ready> {
                self.stream.ready(interest).await
            }

            /// Makes `operation`, a system call of the program's own on this stream, if the stream is ready for one of
            /// `interest` now. If it is not, `operation` is not called. Bytes that a dropped started read put back are
            /// not the kernel's any more, so `operation` does not find them: [`read`](Self::read) does.
            ///
            /// ```
            /// use std::{io, os::fd::AsRawFd};
            /// use urgency::{io::Interest, net::UnixStream};
            ///
            /// let (one, other) = UnixStream::pair()?;
            /// let see = |buffer: &mut [u8]| {
            ///     let (to, length) = (buffer.as_mut_ptr().cast(), buffer.len());
            ///     // SAFETY: the kernel writes `length` bytes at most, and the buffer has as many.
            ///     let count = unsafe { libc::recv(one.as_raw_fd(), to, length, libc::MSG_PEEK) };
            ///     usize::try_from(count).map_err(|_| io::Error::last_os_error())
            /// };
            /// let mut buffer = [0; 8];
            /// let seen = one.try_io(Interest::READABLE, || see(&mut buffer));
            /// assert_eq!(seen.unwrap_err().kind(), io::ErrorKind::WouldBlock);
            /// other.try_write(b"ping")?;
            /// assert_eq!(one.try_io(Interest::READABLE, || see(&mut buffer))?, 4);
            /// # Ok::<(), io::Error>(())
            /// ```
            ///
            /// # Errors
            /// `WouldBlock` if the stream is not ready, and the operation's own errors.
            pub fn try_io<R>(
                &self,
                interest: Interest,
                operation: impl FnOnce() -> io::Result<R>,
            ) -> io::Result<R> {
                self.stream.io().try_io(interest, |_| operation())
            }

            /// Makes `operation` as soon as it does not fail with `WouldBlock`, and waits between attempts until the
            /// stream is ready for one of `interest`; else as [`try_io`](Self::try_io). Dropping the future cancels:
            /// the operation has happened if and only if the future returned.
            ///
            /// # Errors
            /// The operation's errors, or that the runtime was shut down.
            pub async fn async_io<R>(
                &self,
                interest: Interest,
                mut operation: impl FnMut() -> io::Result<R>,
            ) -> io::Result<R> {
                self.stream.io().async_io(interest, |_| operation()).await
            }

            /// Ends one direction or both. Shutting down writing is how the peer gets to see the end.
            ///
            /// # Errors
            /// If the connection is gone already.
            pub fn shutdown_direction(&self, how: std::net::Shutdown) -> io::Result<()> {
                self.stream.shutdown(how)
            }

            /// The blocking forms, for closures: a [`std::io::Read`] and [`std::io::Write`].
            pub fn blocking(&self) -> Blocking<'_, Self> {
                Blocking::new(self)
            }

            /// Reads what is there now; 0 is the end of the stream.
            ///
            /// # Errors
            /// `WouldBlock` if nothing is there; else as `read`.
            pub fn try_read(&self, buffer: &mut [u8]) -> io::Result<usize> {
                self.stream.try_read(buffer)
            }

            /// Writes what there is room for now, and returns how much.
            ///
            /// # Errors
            /// `WouldBlock` if there is no room; else as `write`.
            pub fn try_write(&self, buffer: &[u8]) -> io::Result<usize> {
                self.stream.try_write(buffer)
            }

            /// As [`try_read`](Self::try_read), into several buffers, one after the other.
            ///
            /// # Errors
            /// As [`try_read`](Self::try_read).
            pub fn try_read_vectored(&self, buffers: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
                self.stream.try_read_vectored(buffers)
            }

            /// As [`try_write`](Self::try_write), from several buffers, one after the other.
            ///
            /// # Errors
            /// As [`try_write`](Self::try_write).
            pub fn try_write_vectored(&self, buffers: &[IoSlice<'_>]) -> io::Result<usize> {
                self.stream.try_write_vectored(buffers)
            }

            /// The `poll_*` form of [`readable`](Self::readable).
            pub fn poll_read_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
                self.stream.poll_readable(cx)
            }

            /// The `poll_*` form of [`writable`](Self::writable).
            pub fn poll_write_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
                self.stream.io().poll_writable(cx)
            }

            /// Two halves for code of one task. (The methods need no half: `&stream` does it, too.)
            pub fn split(&mut self) -> (split::ReadHalf<'_, Self>, split::WriteHalf<'_, Self>) {
                split::split(self)
            }

            /// Two halves that can go to different tasks.
            pub fn into_split(self) -> (split::OwnedReadHalf<Self>, split::OwnedWriteHalf<Self>) {
                split::into_split(self)
            }
        }

        impl split::Duplex for $type {
            fn end_writing(&self) {
                // A connection that is gone has no peer to tell.
                let _ = self.shutdown_direction(std::net::Shutdown::Write);
            }
        }

        impl AsFd for $type {
            fn as_fd(&self) -> BorrowedFd<'_> {
                self.stream.io().as_fd()
            }
        }

        crate::io::forward::forward_read!((impl AsyncRead for &$type) |this| &this.stream);
        crate::io::forward::forward_write!((impl AsyncWrite for &$type) |this| &this.stream);
        crate::io::forward::forward_read!((impl AsyncRead for $type) |this| &*this);
        crate::io::forward::forward_write!((impl AsyncWrite for $type) |this| &*this);
    };
}

pub(crate) use impl_stream;
