//! The binary protocol: 24 bytes of header, then extras, key and value.
//!
//! It is deprecated, and spoken by many clients. A request whose lengths contradict each other or its command
//! is [`Action::Invalid`]: it is answered with an error, and the connection closed, since what follows cannot be
//! trusted. A value that is too large, or an unknown command, is answered with an error and passed over.

use super::{Data, KEY_MAX, Limits, Mode, Next};

/// The first byte of every request.
pub const REQUEST: u8 = 0x80;

/// The first byte of every answer.
pub const RESPONSE: u8 = 0x81;

/// The length of the header.
pub const HEADER: usize = 24;

/// What became of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub enum Status {
    /// It was done.
    Ok = 0x00,
    /// There is no such key.
    NotFound = 0x01,
    /// There is such a key, or it has another version.
    Exists = 0x02,
    /// The value is too large.
    TooLarge = 0x03,
    /// The request makes no sense.
    Invalid = 0x04,
    /// It was not stored.
    NotStored = 0x05,
    /// The value is no number.
    NotANumber = 0x06,
    /// It is not allowed.
    NotAllowed = 0x20,
    /// There is no such command.
    Unknown = 0x81,
    /// There is no memory.
    NoMemory = 0x82,
}

impl Status {
    /// What the answer says in words.
    #[must_use]
    pub fn text(self) -> &'static str {
        match self {
            Status::Ok => "",
            Status::NotFound => "Not found",
            Status::Exists => "Data exists for key.",
            Status::TooLarge => "Too large.",
            Status::Invalid => "Invalid arguments",
            Status::NotStored => "Not stored.",
            Status::NotANumber => "Non-numeric server-side value for incr or decr",
            Status::NotAllowed => "Auth failure.",
            Status::Unknown => "Unknown command",
            Status::NoMemory => "Out of memory",
        }
    }
}

/// A request of the binary protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request<'a> {
    /// The command's number, which the answer repeats.
    pub opcode: u8,
    /// Four bytes of the client's, which the answer repeats.
    pub opaque: [u8; 4],
    /// The version that the item must have; 0 is any.
    pub cas: u64,
    /// The key; empty for commands without.
    pub key: &'a [u8],
    /// Whether the answer that was to be expected is left out.
    pub quiet: bool,
    /// What to do.
    pub action: Action<'a>,
}

/// What a binary request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action<'a> {
    /// Get, `GetK`, GAT, `GATK`, touch.
    Get {
        /// Whether the answer has the key.
        with_key: bool,
        /// Whether the answer has the value.
        with_value: bool,
        /// The new expiry.
        touch: Option<u32>,
    },
    /// Set, add, replace, append, prepend.
    Store {
        /// How.
        mode: Mode,
        /// The client's own flags.
        flags: u32,
        /// The expiry.
        expiry: u32,
        /// The value.
        data: Data<'a>,
    },
    /// Delete.
    Delete,
    /// Increment, decrement.
    Arithmetic {
        /// Whether it is an increment.
        increment: bool,
        /// By how much.
        delta: u64,
        /// The value if there is none.
        initial: u64,
        /// Its expiry; all bits set: do not make it.
        expiry: u32,
    },
    /// Flush, after a delay.
    Flush {
        /// The delay.
        delay: u32,
    },
    /// No-op.
    Noop,
    /// Version.
    Version,
    /// Statistics; the key says which.
    Stats,
    /// Verbosity.
    Verbosity {
        /// How much to say.
        level: u32,
    },
    /// Quit.
    Quit,
    /// An unknown command, or one of SASL, which is not there.
    Unknown,
    /// A request that makes no sense: [`Status::Invalid`], or [`Status::Unknown`] if even the lengths do not
    /// add up. The connection is closed after the answer.
    Invalid(Status),
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    let part = bytes[at..at + 4].try_into();
    u32::from_be_bytes(part.expect("a range of four"))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    let part = bytes[at..at + 8].try_into();
    u64::from_be_bytes(part.expect("a range of eight"))
}

/// The command that a quiet one is the quiet form of.
fn loud(opcode: u8) -> (u8, bool) {
    match opcode {
        0x09 => (0x00, true),
        0x0d => (0x0c, true),
        0x11..=0x16 => (opcode - 0x10, true),
        0x17 => (0x07, true),
        0x18 => (0x08, true),
        0x19 => (0x0e, true),
        0x1a => (0x0f, true),
        0x1e => (0x1d, true),
        0x24 => (0x23, true),
        _ => (opcode, false),
    }
}

/// A request of which only the header is known.
fn begun<'a>(header: &[u8]) -> Request<'a> {
    Request {
        opcode: header[1],
        opaque: header[12..16].try_into().expect("a range of four"),
        cas: u64_at(header, 16),
        key: &[],
        quiet: loud(header[1]).1,
        action: Action::Invalid(Status::Invalid),
    }
}

/// What `input` begins with.
#[must_use]
pub fn parse(input: &[u8], limits: Limits) -> Next<Request<'_>> {
    let Some(header) = input.get(..HEADER) else {
        return Next::Incomplete { at_least: HEADER };
    };
    if header[0] != REQUEST {
        return Next::Close { reply: "" };
    }
    let key_length = usize::from(u16_at(header, 2));
    let extras_length = usize::from(header[4]);
    let body = u32_at(header, 8);
    let (opcode, _) = loud(header[1]);
    let mut request = begun(header);
    let fixed = key_length + extras_length;
    if fixed as u64 > u64::from(body) {
        request.action = Action::Invalid(Status::Unknown);
        return Next::whole(request, HEADER);
    }
    if key_length > KEY_MAX {
        return Next::whole(request, HEADER);
    }
    let value_at = HEADER + fixed;
    let Some(before_value) = input.get(HEADER..value_at) else {
        return Next::Incomplete { at_least: value_at };
    };
    let (extras, key) = before_value.split_at(extras_length);
    request.key = key;
    // Fits: a body is shorter than 4 GiB, and an address has 64 bits wherever sockets are served.
    let value_length = body as usize - fixed;
    let shape = (extras_length, key_length > 0, value_length > 0);
    let mode = match opcode {
        0x01 => Some(Mode::Set),
        0x02 => Some(Mode::Add),
        0x03 => Some(Mode::Replace),
        0x0e => Some(Mode::Append),
        0x0f => Some(Mode::Prepend),
        _ => None,
    };
    if let Some(mode) = mode {
        let has_extras = !matches!(mode, Mode::Append | Mode::Prepend);
        if key.is_empty() || extras.len() != if has_extras { 8 } else { 0 } {
            return Next::whole(request, value_at);
        }
        let (flags, expiry) = if has_extras {
            (u32_at(extras, 0), u32_at(extras, 4))
        } else {
            (0, 0)
        };
        let store = |data| Action::Store {
            mode,
            flags,
            expiry,
            data,
        };
        if value_length > limits.value_max {
            request.action = store(Data::TooLarge);
            return Next::Request {
                request,
                length: value_at,
                swallow: value_length as u64,
            };
        }
        let length = value_at + value_length;
        let Some(value) = input.get(value_at..length) else {
            return Next::Incomplete { at_least: length };
        };
        request.action = store(Data::Whole(value));
        return Next::whole(request, length);
    }
    request.action = match (opcode, shape) {
        (0x00 | 0x0c, (0, true, false)) => Action::Get {
            with_key: opcode == 0x0c,
            with_value: true,
            touch: None,
        },
        (0x1c | 0x1d | 0x23, (4, true, false)) => Action::Get {
            with_key: opcode == 0x23,
            with_value: opcode != 0x1c,
            touch: Some(u32_at(extras, 0)),
        },
        (0x04, (0, true, false)) => Action::Delete,
        (0x05 | 0x06, (20, true, false)) => Action::Arithmetic {
            increment: opcode == 0x05,
            delta: u64_at(extras, 0),
            initial: u64_at(extras, 8),
            expiry: u32_at(extras, 16),
        },
        (0x07, (0, false, false)) => Action::Quit,
        (0x08, (0, false, false)) => Action::Flush { delay: 0 },
        (0x08, (4, false, false)) => Action::Flush {
            delay: u32_at(extras, 0),
        },
        (0x0a, (0, false, false)) => Action::Noop,
        (0x0b, (0, false, false)) => Action::Version,
        (0x10, (0, _, false)) => Action::Stats,
        (0x1b, (4, false, false)) => Action::Verbosity {
            level: u32_at(extras, 0),
        },
        (0x00 | 0x04..=0x08 | 0x0a..=0x0c | 0x10 | 0x1b..=0x1d | 0x23, _) => {
            Action::Invalid(Status::Invalid)
        }
        _ => Action::Unknown,
    };
    Next::Request {
        request,
        length: value_at,
        swallow: value_length as u64,
    }
}

/// Appends an answer's header; its body of `extras`, `key` and `value` bytes is the caller's to append.
pub fn push_header(
    out: &mut Vec<u8>,
    request: &Request<'_>,
    status: Status,
    (extras, key, value): (u8, u16, usize),
    cas: u64,
) {
    let body = usize::from(extras) + usize::from(key) + value;
    let mut header = [0; HEADER];
    header[0] = RESPONSE;
    header[1] = request.opcode;
    header[2..4].copy_from_slice(&key.to_be_bytes());
    header[4] = extras;
    header[6..8].copy_from_slice(&(status as u16).to_be_bytes());
    // A value is shorter than 2 GiB.
    header[8..12].copy_from_slice(&(body as u32).to_be_bytes());
    header[12..16].copy_from_slice(&request.opaque);
    header[16..].copy_from_slice(&cas.to_be_bytes());
    out.extend_from_slice(&header);
}

/// Appends an error with its text.
pub fn push_error(out: &mut Vec<u8>, request: &Request<'_>, status: Status, text: &str) {
    push_header(out, request, status, (0, 0, text.len()), 0);
    out.extend_from_slice(text.as_bytes());
}

/// Appends an error to a request that `input` begins with and that cannot be read to its end; nothing if not
/// even its header is there.
pub fn push_refusal(out: &mut Vec<u8>, input: &[u8], status: Status, text: &str) {
    if let Some(header) = input.get(..HEADER) {
        push_error(out, &begun(header), status, text);
    }
}
