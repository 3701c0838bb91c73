//! memcached's protocols as pure code: bytes in, requests out.
//!
//! Nothing here reads a socket, looks at a clock or knows the store. A parser looks at the bytes that
//! a connection has received so far and says what they begin with ([`Next`]): a whole request, too little, or something
//! that ends the connection. A request borrows its key and value from those bytes, so nothing is copied and nothing is
//! allocated. Parsing again with more bytes gives the same answer or a longer one; how the bytes were cut
//! into packets makes no difference (property tests and fuzz targets check that).
//!
//! - `text`: the text protocol; `meta`: the flags of its meta commands. Both come on one connection.
//! - `binary`: the binary protocol. A connection speaks it if its first byte is [`binary::REQUEST`].
//! - `datagram`: the frame header of UDP.
//! - `words`, `number`, `base64`: what lines are made of.
//!
//! The answers are memcached 1.6's. Its `doc/protocol.txt` is the specification. Where the specification says nothing,
//! the behaviour of memcached's server counts: its tests and its clients rely on it.

pub mod base64;
pub mod binary;
pub mod datagram;
pub mod meta;
pub mod number;
pub mod text;
pub mod words;

#[cfg(test)]
mod split_tests;

/// The longest key, in bytes.
pub const KEY_MAX: usize = 250;

/// What the bytes received so far begin with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next<R> {
    /// Not a whole request. It makes no sense to ask again with fewer than `at_least` bytes.
    Incomplete {
        /// The number of bytes, from the start of the input, that the request has at least.
        at_least: usize,
    },
    /// A request.
    Request {
        /// The request; it borrows from the input.
        request: R,
        /// How many bytes of the input it took.
        length: usize,
        /// How many bytes *after* those are to be thrown away as they arrive: the value of a request that was refused.
        swallow: u64,
    },
    /// No request can follow. The reply, if there is one, is sent and the connection closed.
    Close {
        /// The last words.
        reply: &'static str,
    },
}

impl<R> Next<R> {
    fn whole(request: R, length: usize) -> Self {
        Next::Request {
            request,
            length,
            swallow: 0,
        }
    }
}

/// What a parser must know of the server.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The longest value that may be taken into memory; longer ones are refused when they are announced.
    pub value_max: usize,
}

/// How a value is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Always.
    Set,
    /// Only if there is none.
    Add,
    /// Only if there is one.
    Replace,
    /// After the one that is there.
    Append,
    /// Before the one that is there.
    Prepend,
    /// Only over the very version that the client has seen.
    Cas,
}

/// The value of a storage request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Data<'a> {
    /// All of it.
    Whole(&'a [u8]),
    /// It does not end where the client said it would.
    Unterminated,
    /// It was not read: it is longer than [`Limits::value_max`].
    TooLarge,
}
