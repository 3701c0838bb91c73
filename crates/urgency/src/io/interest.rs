//! What a program waits for on a descriptor, and what it gets: sets of flags, with Tokio's names.

use rustix::event::PollFlags;
use std::{
    fmt,
    ops::{BitAnd, BitOr, BitOrAssign, Sub},
};

/// What to wait for, by [`ready`](crate::net::TcpStream::ready) and the methods beside it. It is never empty.
///
/// ```
/// use urgency::io::Interest;
///
/// let both = Interest::READABLE | Interest::WRITABLE;
/// assert!(both.is_readable() && both.is_writable() && !both.is_error());
/// assert_eq!(both.remove(Interest::WRITABLE), Some(Interest::READABLE));
/// assert_eq!(Interest::READABLE.remove(both), None);
/// assert_eq!(format!("{both:?}"), "READABLE | WRITABLE");
/// let rare = Interest::ERROR.add(Interest::PRIORITY); // as `|`, in a constant as well
/// assert!(rare.is_error() && rare.is_priority());
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Interest(u8);

/// How a descriptor is: what [`ready`](crate::net::TcpStream::ready) gives.
///
/// It is what the kernel said a moment ago. Another thread that uses the descriptor may have changed it since, so an
/// operation may find that it would block all the same.
///
/// ```
/// use urgency::io::Ready;
///
/// let ready = Ready::READABLE | Ready::READ_CLOSED;
/// assert!(ready.is_readable() && ready.is_read_closed() && !ready.is_writable());
/// assert_eq!(ready - Ready::READ_CLOSED, Ready::READABLE);
/// assert!((ready & Ready::WRITABLE).is_empty());
/// assert!(Ready::READ_CLOSED.is_readable()); // a read returns at once, with the end
/// assert_eq!(format!("{ready:?}"), "READABLE | READ_CLOSED");
/// let left = Ready::ALL - ready - Ready::WRITABLE - Ready::WRITE_CLOSED;
/// assert_eq!(left, Ready::ERROR | Ready::PRIORITY);
/// assert_eq!(left - left, Ready::EMPTY);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ready(u8);

const READABLE: u8 = 1;
const WRITABLE: u8 = 2;
const READ_CLOSED: u8 = 4;
const WRITE_CLOSED: u8 = 8;
const ERROR: u8 = 16;
const PRIORITY: u8 = 32;

impl Interest {
    /// That a read returns at once: with bytes, the end, or an error.
    pub const READABLE: Interest = Interest(READABLE);
    /// That a write returns at once.
    pub const WRITABLE: Interest = Interest(WRITABLE);
    /// An error of the descriptor. What waits for one of the other flags is woken by an error as well.
    pub const ERROR: Interest = Interest(ERROR);
    /// Data out of band, or another exception of the kernel's `POLLPRI`.
    pub const PRIORITY: Interest = Interest(PRIORITY);

    /// Whether [`READABLE`](Self::READABLE) is in it.
    pub const fn is_readable(self) -> bool {
        self.0 & READABLE != 0
    }

    /// Whether [`WRITABLE`](Self::WRITABLE) is in it.
    pub const fn is_writable(self) -> bool {
        self.0 & WRITABLE != 0
    }

    /// Whether [`ERROR`](Self::ERROR) is in it.
    pub const fn is_error(self) -> bool {
        self.0 & ERROR != 0
    }

    /// Whether [`PRIORITY`](Self::PRIORITY) is in it.
    pub const fn is_priority(self) -> bool {
        self.0 & PRIORITY != 0
    }

    /// Both; the operator `|` is the same.
    #[must_use = "the set itself stays as it is"]
    pub const fn add(self, other: Interest) -> Interest {
        Interest(self.0 | other.0)
    }

    /// Without what is in `other`; `None` if that is nothing.
    #[must_use = "the set itself stays as it is"]
    pub fn remove(self, other: Interest) -> Option<Interest> {
        let rest = self.0 & !other.0;
        (rest != 0).then_some(Interest(rest))
    }

    /// What the kernel is asked for. It tells of errors and hang-ups unasked.
    pub(super) fn wanted(self) -> PollFlags {
        let mut flags = PollFlags::empty();
        flags.set(PollFlags::IN | PollFlags::RDHUP, self.is_readable());
        flags.set(PollFlags::OUT, self.is_writable());
        flags.set(PollFlags::PRI, self.is_priority());
        flags
    }

    /// Whether neither a read nor a write that would return at once tells of it: an exception alone, or beside writing
    /// the kind of exception that does not make writable.
    pub(super) fn is_aside(self) -> bool {
        !self.is_readable() && (self.is_priority() || !self.is_writable())
    }

    /// What is of interest of a descriptor of which the kernel says `flags`.
    pub(super) fn ready(self, flags: PollFlags) -> Ready {
        let mut ready = 0;
        let mut add = |by: PollFlags, bits: u8| {
            if flags.intersects(by) {
                ready |= bits;
            }
        };
        // After an error the next call returns it: neither blocks.
        add(PollFlags::IN | PollFlags::ERR, READABLE);
        add(PollFlags::OUT | PollFlags::ERR, WRITABLE);
        add(PollFlags::RDHUP, READ_CLOSED);
        add(PollFlags::HUP, READ_CLOSED | WRITE_CLOSED);
        // A pipe that is read no more says nothing else.
        add(PollFlags::ERR, WRITE_CLOSED | ERROR);
        add(PollFlags::PRI, PRIORITY);
        let mut of_interest = self.0;
        if self.is_readable() || self.is_priority() {
            of_interest |= READ_CLOSED;
        }
        if self.is_writable() {
            of_interest |= WRITE_CLOSED;
        }
        Ready(ready & of_interest)
    }

    /// As [`Interest::ready`], of a socket of datagrams. An error alone is of a datagram that was sent: there is none
    /// to be received.
    pub(super) fn ready_with_datagrams(self, flags: PollFlags) -> Ready {
        let Ready(ready) = self.ready(flags);
        match flags.intersects(PollFlags::IN | PollFlags::RDHUP | PollFlags::HUP) {
            true => Ready(ready),
            false => Ready(ready & !READABLE),
        }
    }
}

impl Ready {
    /// Nothing.
    pub const EMPTY: Ready = Ready(0);
    /// A read returns at once.
    pub const READABLE: Ready = Ready(READABLE);
    /// A write returns at once.
    pub const WRITABLE: Ready = Ready(WRITABLE);
    /// The other end writes no more. What it has written may still be there to be read.
    pub const READ_CLOSED: Ready = Ready(READ_CLOSED);
    /// The other end reads no more.
    pub const WRITE_CLOSED: Ready = Ready(WRITE_CLOSED);
    /// See [`Interest::ERROR`].
    pub const ERROR: Ready = Ready(ERROR);
    /// See [`Interest::PRIORITY`].
    pub const PRIORITY: Ready = Ready(PRIORITY);
    /// Everything.
    pub const ALL: Ready =
        Ready(READABLE | WRITABLE | READ_CLOSED | WRITE_CLOSED | ERROR | PRIORITY);

    /// Whether nothing is in it.
    pub fn is_empty(self) -> bool {
        self == Ready::EMPTY
    }

    /// Whether a read returns at once, if only with the end.
    pub fn is_readable(self) -> bool {
        self.0 & (READABLE | READ_CLOSED) != 0
    }

    /// Whether a write returns at once, if only with an error.
    pub fn is_writable(self) -> bool {
        self.0 & (WRITABLE | WRITE_CLOSED) != 0
    }

    /// Whether the other end writes no more.
    pub fn is_read_closed(self) -> bool {
        self.0 & READ_CLOSED != 0
    }

    /// Whether the other end reads no more.
    pub fn is_write_closed(self) -> bool {
        self.0 & WRITE_CLOSED != 0
    }

    /// Whether there is an error.
    pub fn is_error(self) -> bool {
        self.0 & ERROR != 0
    }

    /// Whether there is an exception.
    pub fn is_priority(self) -> bool {
        self.0 & PRIORITY != 0
    }
}

impl BitOr for Interest {
    type Output = Interest;

    fn bitor(self, other: Interest) -> Interest {
        self.add(other)
    }
}

impl BitOrAssign for Interest {
    fn bitor_assign(&mut self, other: Interest) {
        *self = *self | other;
    }
}

impl BitOr for Ready {
    type Output = Ready;

    fn bitor(self, other: Ready) -> Ready {
        Ready(self.0 | other.0)
    }
}

impl BitOrAssign for Ready {
    fn bitor_assign(&mut self, other: Ready) {
        *self = *self | other;
    }
}

impl BitAnd for Ready {
    type Output = Ready;

    fn bitand(self, other: Ready) -> Ready {
        Ready(self.0 & other.0)
    }
}

impl Sub for Ready {
    type Output = Ready;

    fn sub(self, other: Ready) -> Ready {
        Ready(self.0 & !other.0)
    }
}

/// The names of the flags, in the order of a program that lists them.
fn names(bits: u8, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let all = [
        (READABLE, "READABLE"),
        (WRITABLE, "WRITABLE"),
        (READ_CLOSED, "READ_CLOSED"),
        (WRITE_CLOSED, "WRITE_CLOSED"),
        (ERROR, "ERROR"),
        (PRIORITY, "PRIORITY"),
    ];
    let mut between = "";
    for (_, name) in all.into_iter().filter(|(bit, _)| bits & bit != 0) {
        write!(f, "{between}{name}")?;
        between = " | ";
    }
    if bits == 0 {
        f.write_str("EMPTY")
    } else {
        Ok(())
    }
}

impl fmt::Debug for Interest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        names(self.0, f)
    }
}

impl fmt::Debug for Ready {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        names(self.0, f)
    }
}
