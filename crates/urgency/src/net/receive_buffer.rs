//! What a datagram is received into by a `poll_*` form: bytes, or Tokio's `ReadBuf` (`tokio_io.rs`).

use super::datagram::{Datagrams, Socket};
use crate::io::source::Done;
use std::io;

/// What the `poll_*` forms of a datagram socket receive into: bytes, or with the feature `tokio-io` a `ReadBuf`, as in
/// Tokio.
///
/// ```
/// use std::future::poll_fn;
/// use urgency::net::UdpSocket;
///
/// # fn main() -> std::io::Result<()> {
/// urgency::block_on(async {
///     let (a, b) = (UdpSocket::bind("127.0.0.1:0").await?, UdpSocket::bind("127.0.0.1:0").await?);
///     a.send_to(b"hello", b.local_addr()?).await?;
///     let mut bytes = [0; 8];
///     let (count, from) = poll_fn(|cx| b.poll_recv_from(cx, &mut bytes)).await?;
///     assert_eq!((count, from), (5, a.local_addr()?));
///     Ok(())
/// })
/// # }
/// ```
#[expect(private_bounds, reason = "sealed")]
pub trait ReceiveBuffer: Receives {
    /// What a receive tells: the number of bytes, or nothing, because a `ReadBuf` has it.
    type Count;
    /// The same, and where the datagram came from.
    type CountFrom<A>;

    #[doc(hidden)]
    fn count(count: usize) -> Self::Count;
    #[doc(hidden)]
    fn count_from<A>(count: usize, from: A) -> Self::CountFrom<A>;
}

/// The sealed half of [`ReceiveBuffer`].
pub(crate) trait Receives {
    /// The kernel's next datagram, or one that was put back.
    fn receive<S: Socket>(&mut self, from: &Datagrams<S>) -> io::Result<Done<(usize, S::Address)>>;
}

/// As the slice that they are.
macro_rules! as_bytes {
    ($($of:ty $(, $n:ident)?;)+) => {$(
        impl$(<const $n: usize>)? ReceiveBuffer for $of {
            type Count = usize;
            type CountFrom<A> = (usize, A);

            fn count(count: usize) -> usize {
                count
            }

            fn count_from<A>(count: usize, from: A) -> (usize, A) {
                (count, from)
            }
        }

        impl$(<const $n: usize>)? Receives for $of {
            fn receive<S: Socket>(
                &mut self,
                from: &Datagrams<S>,
            ) -> io::Result<Done<(usize, S::Address)>> {
                from.attempt_receive(&mut self[..])
            }
        }
    )+};
}

as_bytes!([u8]; [u8; N], N; Vec<u8>;);
