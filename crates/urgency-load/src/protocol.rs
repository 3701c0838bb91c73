//! Requests as bytes, and bytes as replies: memcached's text protocol, in its classic and in its meta commands.
//!
//! The parser is told which command the next reply belongs to, looks at the bytes that have come, and either
//! takes one whole reply or asks for more. It copies nothing. A reply that does not fit the command is
//! [`Malformed`]: the stream cannot be read on from there.

use crate::Workload;
use crate::value;
use clap::ValueEnum;
use serde::Serialize;
use std::io::Write as _;

/// Which commands are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Protocol {
    /// `get` and `set`.
    Text,
    /// `mg` and `ms`.
    Meta,
}

/// A command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// Read a value.
    Get,
    /// Write a value.
    Set,
}

impl Command {
    /// Its name in messages.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Command::Get => "get",
            Command::Set => "set",
        }
    }
}

/// What a server said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reply<'a> {
    /// A value.
    Value {
        /// The key that the server names; none in the meta protocol, whose replies come without.
        key: Option<&'a [u8]>,
        /// The item's flags.
        flags: u32,
        /// The value.
        data: &'a [u8],
    },
    /// There is no such key.
    Miss,
    /// The value was stored.
    Stored,
    /// The value was not stored.
    NotStored,
    /// `SERVER_ERROR` with its reason: the server could not do it.
    ServerError(&'a [u8]),
    /// `ERROR` or `CLIENT_ERROR`: the server did not understand.
    Refused(&'a [u8]),
}

/// A reply that does not fit the command: its first line, shortened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Malformed(pub String);

/// Bytes after which a line without an end is malformed.
const LONGEST_LINE: usize = 2048;

impl Protocol {
    /// Appends a get of key `number`.
    pub fn write_get(self, workload: &Workload, number: u32, to: &mut Vec<u8>) {
        match self {
            Protocol::Text => {
                to.extend_from_slice(b"get ");
                workload.write_key(number, to);
                to.extend_from_slice(b"\r\n");
            }
            Protocol::Meta => {
                to.extend_from_slice(b"mg ");
                workload.write_key(number, to);
                to.extend_from_slice(b" f v\r\n");
            }
        }
    }

    /// Appends a set of key `number` to its value in `version`.
    pub fn write_set(self, workload: &Workload, number: u32, version: u32, to: &mut Vec<u8>) {
        let size = value::size(&workload.values, number, version);
        to.extend_from_slice(match self {
            Protocol::Text => b"set ",
            Protocol::Meta => b"ms ",
        });
        workload.write_key(number, to);
        let rest = match self {
            Protocol::Text => write!(to, " {version} 0 {size}\r\n"),
            Protocol::Meta => write!(to, " {size} F{version}\r\n"),
        };
        rest.expect("a Vec takes whatever is written");
        value::write(number, version, size, to);
        to.extend_from_slice(b"\r\n");
    }

    /// Takes one reply to `command` from the start of `bytes`: the reply and how many bytes it was, or none
    /// if it is not whole yet.
    ///
    /// # Errors
    ///
    /// [`Malformed`] if the bytes are no reply to this command.
    pub fn reply(
        self,
        command: Command,
        bytes: &[u8],
    ) -> Result<Option<(Reply<'_>, usize)>, Malformed> {
        let Some(end) = bytes
            .iter()
            .take(LONGEST_LINE)
            .position(|&byte| byte == b'\n')
        else {
            return match bytes.len() < LONGEST_LINE {
                true => Ok(None),
                false => Err(malformed(bytes)),
            };
        };
        let line = bytes[..end].strip_suffix(b"\r").unwrap_or(&bytes[..end]);
        let after = end + 1;
        let whole = |reply| Ok(Some((reply, after)));
        match (self, command, line) {
            (Protocol::Text, Command::Get, b"END") | (Protocol::Meta, Command::Get, b"EN") => {
                return whole(Reply::Miss);
            }
            (Protocol::Text, Command::Set, b"STORED") | (Protocol::Meta, Command::Set, b"HD") => {
                return whole(Reply::Stored);
            }
            (Protocol::Text, Command::Set, b"NOT_STORED")
            | (Protocol::Meta, Command::Set, b"NS") => return whole(Reply::NotStored),
            _ => {}
        }
        if line.starts_with(b"SERVER_ERROR") {
            return whole(Reply::ServerError(line));
        }
        if line == b"ERROR" || line.starts_with(b"CLIENT_ERROR") {
            return whole(Reply::Refused(line));
        }
        if command == Command::Set {
            return Err(malformed(line));
        }
        let header = self.value_header(line).ok_or_else(|| malformed(line))?;
        let tail: &[u8] = match self {
            Protocol::Text => b"\r\nEND\r\n",
            Protocol::Meta => b"\r\n",
        };
        let total = after + header.size + tail.len();
        let Some(data) = bytes.get(after..total) else {
            return Ok(None);
        };
        let (data, end) = data.split_at(header.size);
        if end != tail {
            return Err(malformed(line));
        }
        let reply = Reply::Value {
            key: header.key,
            flags: header.flags,
            data,
        };
        Ok(Some((reply, total)))
    }

    fn value_header(self, line: &[u8]) -> Option<Header<'_>> {
        let mut words = line.split(|&byte| byte == b' ');
        match (self, words.next()?) {
            (Protocol::Text, b"VALUE") => Some(Header {
                key: Some(words.next()?),
                flags: number(words.next()?)?,
                size: number(words.next()?)? as usize,
            }),
            (Protocol::Meta, b"VA") => Some(Header {
                size: number(words.next()?)? as usize,
                key: None,
                flags: words.find_map(|word| number(word.strip_prefix(b"f")?))?,
            }),
            _ => None,
        }
    }
}

struct Header<'a> {
    key: Option<&'a [u8]>,
    flags: u32,
    size: usize,
}

fn number(digits: &[u8]) -> Option<u32> {
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0u32, |number, &digit| {
        let digit = digit.is_ascii_digit().then(|| digit - b'0')?;
        number.checked_mul(10)?.checked_add(u32::from(digit))
    })
}

fn malformed(line: &[u8]) -> Malformed {
    Malformed(shorten(line))
}

/// The first hundred bytes of a line, readable.
pub fn shorten(line: &[u8]) -> String {
    line[..line.len().min(100)].escape_ascii().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_is_taken_only_when_it_is_whole() {
        let cases: &[(Protocol, Command, &[u8], Reply<'_>)] = &[
            (
                Protocol::Text,
                Command::Get,
                b"VALUE k1 7 5\r\nab\r\nc\r\nEND\r\n",
                Reply::Value {
                    key: Some(b"k1"),
                    flags: 7,
                    data: b"ab\r\nc",
                },
            ),
            (
                Protocol::Meta,
                Command::Get,
                b"VA 3 f9\r\nabc\r\n",
                Reply::Value {
                    key: None,
                    flags: 9,
                    data: b"abc",
                },
            ),
            (Protocol::Text, Command::Get, b"END\r\n", Reply::Miss),
            (Protocol::Meta, Command::Get, b"EN\r\n", Reply::Miss),
            (Protocol::Text, Command::Set, b"STORED\r\n", Reply::Stored),
            (Protocol::Meta, Command::Set, b"HD\r\n", Reply::Stored),
            (
                Protocol::Text,
                Command::Set,
                b"SERVER_ERROR out of memory\r\n",
                Reply::ServerError(b"SERVER_ERROR out of memory"),
            ),
            (
                Protocol::Text,
                Command::Get,
                b"ERROR\r\n",
                Reply::Refused(b"ERROR"),
            ),
        ];
        for (protocol, command, bytes, expected) in cases {
            for end in 0..bytes.len() {
                assert_eq!(protocol.reply(*command, &bytes[..end]), Ok(None), "{end}");
            }
            let mut more = bytes.to_vec();
            more.extend_from_slice(b"END\r\n");
            let found = protocol.reply(*command, &more);
            assert_eq!(found, Ok(Some((*expected, bytes.len()))));
        }
    }

    #[test]
    fn what_is_no_reply_to_the_command_is_malformed() {
        let text = |command, bytes| Protocol::Text.reply(command, bytes);
        assert!(text(Command::Set, b"END\r\n").is_err());
        assert!(text(Command::Get, b"STORED\r\n").is_err());
        assert!(text(Command::Get, b"VALUE k x 1\r\na\r\nEND\r\n").is_err());
        assert!(text(Command::Get, b"VALUE k 1 1\r\nab\r\nEND\r\n").is_err());
        assert!(text(Command::Get, b"VALUE k 1 99999999999\r\n").is_err());
        assert!(text(Command::Get, &[b'x'; LONGEST_LINE]).is_err());
    }
}
