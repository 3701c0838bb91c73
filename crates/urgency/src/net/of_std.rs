//! Sockets made of the standard library's.

/// `TryFrom` for a socket of the standard library, which is made non-blocking first.
macro_rules! of_std {
    ($std:ty => $own:ident, |$socket:ident| $made:expr) => {
        impl TryFrom<$std> for $own {
            type Error = io::Error;

            /// Makes the socket non-blocking.
            fn try_from($socket: $std) -> io::Result<Self> {
                $socket.set_nonblocking(true)?;
                Ok($made)
            }
        }
    };
}
pub(super) use of_std;
