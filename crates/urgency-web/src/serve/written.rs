//! What a connection writes, as far as it counts for the limit on idle connections.
//!
//! With HTTP/2 a server does not only write responses: it answers a client's pings and settings as well. A client that
//! reads no response could keep its connection, and the responses, for ever by a ping from time to time. So the frames
//! are told apart where they are written: only a response's frames are progress. A look at each frame's head is enough;
//! the rest of it is skipped.
//!
//! The first byte says which version it is. A response of HTTP/1 begins with its name; the first frame of HTTP/2 are
//! the server's settings, which are so short that the first byte of their length is 0.

use super::Activity;
use std::{io, io::IoSlice, sync::Arc, task::Poll};

/// The length of a frame's head: three bytes of its own length, its type, its flags, and its stream.
const HEAD: usize = 9;

/// The types of frames that a response consists of: DATA, HEADERS, CONTINUATION.
const OF_RESPONSES: [u8; 3] = [0, 1, 9];

/// Notes in an [`Activity`] what a stream takes.
#[derive(Debug)]
pub(crate) struct Written {
    activity: Arc<Activity>,
    version: Version,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Version {
    /// Nothing was written yet.
    Unknown,
    Http1,
    Http2(Place),
}

/// Where in the frames of HTTP/2 the last write ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Place {
    head: [u8; HEAD],
    /// How much of the head is there; all of it inside of a frame's payload.
    known: usize,
    /// How much of the payload is to come.
    left: usize,
}

impl Written {
    pub(crate) fn new(activity: Arc<Activity>) -> Self {
        Written {
            activity,
            version: Version::Unknown,
        }
    }

    /// A write of `buffers` was tried.
    #[inline]
    pub(crate) fn note(&mut self, buffers: &[IoSlice<'_>], written: &Poll<io::Result<usize>>) {
        let taken = match written {
            Poll::Ready(Ok(taken)) => *taken,
            Poll::Ready(Err(_)) | Poll::Pending => 0,
        };
        let is_progress = self.version.takes(buffers, taken);
        self.activity.wrote(written.is_ready(), is_progress);
    }
}

impl Version {
    /// So much of `buffers` was written. Whether a part of a response was among it.
    #[inline]
    fn takes(&mut self, buffers: &[IoSlice<'_>], mut taken: usize) -> bool {
        if *self == Version::Http1 {
            return taken > 0;
        }
        let mut is_progress = false;
        for buffer in buffers {
            let bytes = &buffer[..taken.min(buffer.len())];
            taken -= bytes.len();
            let Some(first) = bytes.first() else {
                continue;
            };
            if *self == Version::Unknown {
                *self = match first {
                    0 => Version::Http2(Place::default()),
                    _ => Version::Http1,
                };
            }
            is_progress |= match self {
                Version::Http2(place) => place.takes(bytes),
                _ => true,
            };
        }
        is_progress
    }
}

impl Place {
    /// Whether a part of a response is among these bytes.
    fn takes(&mut self, mut bytes: &[u8]) -> bool {
        let mut is_progress = false;
        while !bytes.is_empty() {
            if self.known < HEAD {
                let (head, rest) = bytes.split_at(bytes.len().min(HEAD - self.known));
                self.head[self.known..][..head.len()].copy_from_slice(head);
                self.known += head.len();
                bytes = rest;
                if self.known < HEAD {
                    break;
                }
                let [high, middle, low, ..] = self.head;
                self.left = usize::from(high) << 16 | usize::from(middle) << 8 | usize::from(low);
            }
            is_progress |= OF_RESPONSES.contains(&self.head[3]);
            let skipped = self.left.min(bytes.len());
            self.left -= skipped;
            bytes = &bytes[skipped..];
            if self.left == 0 {
                self.known = 0;
            }
        }
        is_progress
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(kind: u8, length: usize) -> Vec<u8> {
        let mut frame = vec![0, 0, 0, kind, 0, 0, 0, 0, 1];
        frame[1..3].copy_from_slice(&u16::try_from(length).unwrap().to_be_bytes());
        frame.resize(HEAD + length, 0xFF);
        frame
    }

    /// The places, by their bytes, at which a part of a response was written, in writes of `size` bytes.
    fn progress(all: &[u8], size: usize) -> Vec<bool> {
        let mut version = Version::Unknown;
        let writes = all.chunks(size);
        writes
            .map(|bytes| {
                // More is tried than is taken, in two pieces.
                let (one, two) = bytes.split_at(bytes.len() / 2);
                let two = [two, b"rest"].concat();
                version.takes(&[IoSlice::new(one), IoSlice::new(&two)], bytes.len())
            })
            .collect()
    }

    #[test]
    fn only_the_frames_of_a_response_are_progress_however_they_are_cut() {
        // Settings, an answer to settings, HEADERS, a ping's answer, DATA, a ping's answer.
        let frames = [(4, 12), (4, 0), (1, 30), (6, 8), (0, 300), (6, 8)];
        let all: Vec<_> = frames.map(|(kind, length)| frame(kind, length)).concat();
        let of = |kind: u8, length: usize| vec![matches!(kind, 0 | 1); HEAD + length];
        let expected: Vec<bool> = frames.map(|(kind, length)| of(kind, length)).concat();
        for size in [1, 2, 7, 9, 10, 64, 1000] {
            let seen = progress(&all, size);
            for (bytes, seen) in expected.chunks(size).zip(seen) {
                // The end of a frame's head tells its type.
                assert!(!seen || bytes.contains(&true), "writes of {size}");
                assert!(seen || bytes.iter().filter(|&&of| of).count() < HEAD);
            }
        }
    }

    #[test]
    fn all_of_http_1_is_progress() {
        assert_eq!(progress(b"HTTP/1.1 200 OK\r\n\r\n", 4), [true; 5]);
        assert!(!Version::Http1.takes(&[IoSlice::new(b"x")], 0));
    }
}
