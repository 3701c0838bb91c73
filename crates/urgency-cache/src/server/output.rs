//! What a connection is to send: one buffer, written out when there is nothing more to do or when it is full.
//!
//! Answers to pipelined requests go out in one write. A client that does not read is waited for: its
//! connection executes no further request, so what it costs is one buffer.

use futures_io::AsyncWrite;
use std::{future::poll_fn, io, pin::Pin};

/// A buffer with so much in it is written before the next item goes in.
pub const FULL: usize = 64 * 1024;

/// See the module's text.
#[derive(Debug, Default)]
pub struct Output {
    /// What is to be sent.
    pub bytes: Vec<u8>,
}

impl Output {
    /// Whether it is time to write.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.bytes.len() >= FULL
    }

    /// Sends everything. Whenever the client has taken something for which it let the server wait, `took` is
    /// called.
    ///
    /// # Errors
    /// Those of the connection.
    pub async fn flush<S: AsyncWrite + Unpin>(
        &mut self,
        stream: &mut S,
        mut took: impl FnMut(),
    ) -> io::Result<()> {
        let mut sent = 0;
        while sent < self.bytes.len() {
            let rest = &self.bytes[sent..];
            let mut waited = false;
            let written = poll_fn(|cx| {
                let polled = Pin::new(&mut *stream).poll_write(cx, rest);
                waited |= polled.is_pending();
                polled
            })
            .await?;
            match written {
                0 => return Err(io::ErrorKind::WriteZero.into()),
                count => sent += count,
            }
            if waited {
                took();
            }
        }
        self.bytes.clear();
        // One large value does not make the connection large for good.
        self.bytes.shrink_to(2 * FULL);
        Ok(())
    }
}
