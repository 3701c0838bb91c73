//! The traits of `futures-io` for a type by the ones that a reference has: its own reference, or what it dereferences
//! to. And what an `async fn write_all` does by `write`.
//!
//! The first argument is the head of the implementation, the second gives the reference for `&mut Self`, pinned.

/// `forward_read!((impl AsyncRead for Stdin) |this| &*this)`.
macro_rules! forward_read {
    (($($head:tt)*) |$this:ident| $to:expr) => {
        $($head)* {
            fn poll_read(
                self: Pin<&mut Self>,
                cx: &mut Context<'_>,
                buffer: &mut [u8],
            ) -> Poll<io::Result<usize>> {
                let $this = self;
                Pin::new(&mut $to).poll_read(cx, buffer)
            }

            fn poll_read_vectored(
                self: Pin<&mut Self>,
                cx: &mut Context<'_>,
                buffers: &mut [io::IoSliceMut<'_>],
            ) -> Poll<io::Result<usize>> {
                let $this = self;
                Pin::new(&mut $to).poll_read_vectored(cx, buffers)
            }
        }
    };
}

/// `forward_write!((impl AsyncWrite for Stdout) |this| &*this)`.
macro_rules! forward_write {
    (($($head:tt)*) |$this:ident| $to:expr) => {
        $($head)* {
            fn poll_write(
                self: Pin<&mut Self>,
                cx: &mut Context<'_>,
                buffer: &[u8],
            ) -> Poll<io::Result<usize>> {
                let $this = self;
                Pin::new(&mut $to).poll_write(cx, buffer)
            }

            fn poll_write_vectored(
                self: Pin<&mut Self>,
                cx: &mut Context<'_>,
                buffers: &[io::IoSlice<'_>],
            ) -> Poll<io::Result<usize>> {
                let $this = self;
                Pin::new(&mut $to).poll_write_vectored(cx, buffers)
            }

            fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
                let $this = self;
                Pin::new(&mut $to).poll_flush(cx)
            }

            fn poll_close(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
                let $this = self;
                Pin::new(&mut $to).poll_close(cx)
            }
        }
    };
}

/// The body of an `async fn write_all(&self, mut buffer: &[u8])`, by `self.write`: `write_all!(self, buffer)`. A
/// function would make the futures larger: 176 bytes in place of 144 for a socket's.
macro_rules! write_all {
    ($to:ident, $buffer:ident) => {{
        while !$buffer.is_empty() {
            match $to.write($buffer).await? {
                0 => return Err(io::ErrorKind::WriteZero.into()),
                count => $buffer = &$buffer[count..],
            }
        }
        Ok(())
    }};
}

pub(crate) use {forward_read, forward_write, write_all};
