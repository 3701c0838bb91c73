//! The meta commands: two letters, a key, and flags that say what to do and what to answer.
//!
//! The flags are read once, into [`Flags`]. The answer repeats some of them in the order in which they came, so the
//! command keeps their text, too ([`Command::words`]).

use super::{number, words::Words};

/// The longest opaque token, its letter included.
pub const OPAQUE_MAX: usize = 32;

/// The most words of a meta command, the command itself included.
const WORDS_MAX: usize = 19;

const BAD_TOKEN: &str = "CLIENT_ERROR bad token in command line format";

/// What the flags of a meta command ask for. A flag that a command does not know is read and ignored by it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags {
    /// `b`: the key is in base 64.
    pub base64: bool,
    /// `q`: do not answer what was to be expected.
    pub quiet: bool,
    /// `v`: answer with the value.
    pub value: bool,
    /// `u`: the item does not count as used.
    pub no_bump: bool,
    /// `h` or `l`: the answer tells of uses before this one.
    pub history: bool,
    /// `I`: invalidate, mark as stale.
    pub invalidate: bool,
    /// `N`: make the item if it is missing, with this time to live.
    pub vivify: Option<i64>,
    /// `T`: the new time to live.
    pub ttl: Option<i64>,
    /// `R`: the client may fetch it afresh if it lives shorter than this.
    pub recache: Option<i64>,
    /// `F`: the client's own flags.
    pub client_flags: u32,
    /// `C`: the version that the item must have.
    pub cas: Option<u64>,
    /// `M`: the mode; 0 is the command's default.
    pub mode: u8,
    /// `J`: the value of a number that is made.
    pub initial: u64,
    /// `D`: what to add or subtract.
    pub delta: Option<u64>,
}

/// A meta command with a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Command<'a> {
    /// The key as it was sent: in base 64 if the flags say so.
    pub key: &'a [u8],
    /// What the flags ask for.
    pub flags: Flags,
    words: &'a [u8],
}

impl<'a> Command<'a> {
    /// The flags as they were sent, in order.
    #[must_use]
    pub fn words(&self) -> Words<'a> {
        Words::new(self.words)
    }

    /// The command whose key is `key` and whose flags are the words of `words`.
    ///
    /// # Errors
    /// The line that memcached answers.
    pub fn parse(key: &'a [u8], words: &'a [u8]) -> Result<Self, &'static str> {
        let mut flags = Flags::default();
        let mut seen = 0u128;
        for (index, word) in Words::new(words).enumerate() {
            if index + 2 >= WORDS_MAX {
                return Err("CLIENT_ERROR options flags are too long");
            }
            let (letter, token) = (word[0], &word[1..]);
            let bit = 1u128.checked_shl(u32::from(letter)).unwrap_or(0);
            if seen & bit != 0 || bit == 0 {
                return Err("CLIENT_ERROR duplicate flag");
            }
            seen |= bit;
            flags.read(letter, token)?;
        }
        Ok(Command { key, flags, words })
    }
}

impl Flags {
    fn read(&mut self, letter: u8, token: &[u8]) -> Result<(), &'static str> {
        let signed = || number::signed(token).ok_or(BAD_TOKEN);
        match letter {
            b'k' | b's' | b't' | b'c' | b'f' | b'P' | b'L' => {}
            b'O' if token.len() < OPAQUE_MAX => {}
            b'O' => return Err("CLIENT_ERROR opaque token too long"),
            b'b' => self.base64 = true,
            b'q' => self.quiet = true,
            b'v' => self.value = true,
            b'u' => self.no_bump = true,
            b'h' | b'l' => self.history = true,
            b'I' => self.invalidate = true,
            b'N' => self.vivify = Some(signed()?),
            b'T' => self.ttl = Some(signed()?),
            b'R' => self.recache = Some(signed()?),
            b'F' => {
                self.client_flags =
                    number::unsigned_32(token).ok_or("CLIENT_ERROR bad command line format")?;
            }
            b'C' => self.cas = Some(number::unsigned(token).ok_or(BAD_TOKEN)?),
            b'J' => {
                self.initial =
                    number::unsigned(token).ok_or("CLIENT_ERROR invalid numeric initial value")?;
            }
            b'D' => {
                let delta =
                    number::unsigned(token).ok_or("CLIENT_ERROR invalid numeric delta value")?;
                self.delta = Some(delta);
            }
            b'M' => match token {
                &[mode] => self.mode = mode,
                _ => return Err("CLIENT_ERROR incorrect length for M token"),
            },
            _ => return Err("CLIENT_ERROR invalid flag"),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flags(words: &str) -> Result<Flags, &'static str> {
        Command::parse(b"k", words.as_bytes()).map(|command| command.flags)
    }

    #[test]
    fn every_documented_flag_is_read() {
        let read =
            flags("b q v u h l I N30 T-1 R5 F7 C9 MA J10 D3 O123 k s t c f Pa Lb").unwrap_err();
        assert_eq!(read, "CLIENT_ERROR options flags are too long");
        let read = flags("b q v u h I N30 T-1 R5 F7 C9 MA J10 D3 O12").unwrap();
        let expected = Flags {
            base64: true,
            quiet: true,
            value: true,
            no_bump: true,
            history: true,
            invalidate: true,
            vivify: Some(30),
            ttl: Some(-1),
            recache: Some(5),
            client_flags: 7,
            cas: Some(9),
            mode: b'A',
            initial: 10,
            delta: Some(3),
        };
        assert_eq!(read, expected);
    }

    #[test]
    fn flags_that_are_wrong_are_named() {
        for (words, error) in [
            ("v v", "CLIENT_ERROR duplicate flag"),
            ("\u{e9}", "CLIENT_ERROR duplicate flag"),
            ("y", "CLIENT_ERROR invalid flag"),
            ("T", BAD_TOKEN),
            ("C-1", BAD_TOKEN),
            ("Fx", "CLIENT_ERROR bad command line format"),
            ("MAB", "CLIENT_ERROR incorrect length for M token"),
            ("Dx", "CLIENT_ERROR invalid numeric delta value"),
            ("Jx", "CLIENT_ERROR invalid numeric initial value"),
            (
                "O12345678901234567890123456789012",
                "CLIENT_ERROR opaque token too long",
            ),
        ] {
            assert_eq!(flags(words), Err(error), "{words:?}");
        }
    }
}
