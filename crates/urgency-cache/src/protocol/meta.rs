//! The meta commands: two letters, a key, and flags that say what to do and what to answer.
//!
//! The flags are read once, into [`Flags`]. They act and answer in the order in which they came, so the command keeps
//! their text, too ([`Command::words`]).
//!
//! Of several wrong flags the last one is named, as in memcached, but a flag that is unknown or comes twice ends the
//! reading.

use super::{KEY_MAX, base64, number, words::Words};

/// The longest opaque token, its letter included. A longer one is an error where it would be returned.
pub const OPAQUE_MAX: usize = 32;

/// The most words of a meta command: the command itself, the key, and the value's length are among them.
const WORDS_MAX: usize = 19;

/// The answer to an opaque token that is too long.
pub const OPAQUE_TOO_LONG: &str = "CLIENT_ERROR opaque token too long";

const BAD_LINE: &str = "CLIENT_ERROR bad command line format";
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
    pub vivify: Option<i32>,
    /// `T`: the new time to live.
    pub ttl: Option<i32>,
    /// `R`: the client may fetch it afresh if it lives shorter than this.
    pub recache: Option<i32>,
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

    /// Whether a flag is an opaque token that is too long.
    #[must_use]
    pub fn has_long_opaque(&self) -> bool {
        self.words().any(is_long_opaque)
    }

    /// The command whose key is `key` and whose flags are the words of `words`.
    ///
    /// # Errors
    /// The line that memcached answers.
    pub fn parse(key: &'a [u8], words: &'a [u8]) -> Result<Self, &'static str> {
        let mut flags = Flags::default();
        let mut seen = 0u128;
        let mut error = None;
        for word in Words::new(words) {
            let (letter, token) = (word[0], &word[1..]);
            // memcached's table of letters is one too short for the last of ASCII.
            let bit = 1u128.checked_shl(u32::from(letter)).unwrap_or(0);
            if seen & bit != 0 || bit == 0 || letter == 127 {
                return Err("CLIENT_ERROR duplicate flag");
            }
            seen |= bit;
            match flags.read(letter, token) {
                Ok(()) if letter != b'b' => {}
                Ok(()) => {
                    if base64::decode(key, &mut [0; KEY_MAX]).is_none() {
                        error = Some("CLIENT_ERROR error decoding key");
                    }
                }
                Err(Wrong::Flag) => return Err("CLIENT_ERROR invalid flag"),
                Err(Wrong::Token(why)) => error = Some(why),
                Err(Wrong::Unnamed) => error = error.or(Some(BAD_LINE)),
            }
        }
        match error {
            None => Ok(Command { key, flags, words }),
            Some(error) => Err(error),
        }
    }
}

/// Whether `words` are more flags than a command may have that has `before` words before them.
#[must_use]
pub fn are_too_many(words: &[u8], before: usize) -> bool {
    Words::new(words).nth(WORDS_MAX - before).is_some()
}

/// Whether a flag is an opaque token that is too long to be returned.
#[must_use]
pub fn is_long_opaque(word: &[u8]) -> bool {
    word[0] == b'O' && word.len() > OPAQUE_MAX
}

/// What is wrong with a flag.
enum Wrong {
    /// There is none of this letter.
    Flag,
    /// Its token, and this is the error.
    Token(&'static str),
    /// Its token, and an error before it is kept.
    Unnamed,
}

impl Flags {
    fn read(&mut self, letter: u8, token: &[u8]) -> Result<(), Wrong> {
        let signed = || number::signed_32(token).ok_or(Wrong::Token(BAD_TOKEN));
        let unsigned = |error| number::unsigned(token).ok_or(Wrong::Token(error));
        match letter {
            b'k' | b's' | b't' | b'c' | b'f' | b'O' | b'P' | b'L' => {}
            b'b' => self.base64 = true,
            b'q' => self.quiet = true,
            b'v' => self.value = true,
            b'u' => self.no_bump = true,
            b'h' | b'l' => self.history = true,
            b'I' => self.invalidate = true,
            b'N' => self.vivify = Some(signed()?),
            b'T' => self.ttl = Some(signed()?),
            b'R' => self.recache = Some(signed()?),
            b'F' => self.client_flags = number::unsigned_32(token).ok_or(Wrong::Unnamed)?,
            b'C' => self.cas = Some(unsigned(BAD_TOKEN)?),
            b'J' => self.initial = unsigned("CLIENT_ERROR invalid numeric initial value")?,
            b'D' => self.delta = Some(unsigned("CLIENT_ERROR invalid numeric delta value")?),
            b'M' => match token {
                &[mode] => self.mode = mode,
                _ => return Err(Wrong::Token("CLIENT_ERROR incorrect length for M token")),
            },
            _ => return Err(Wrong::Flag),
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
        let words = "b q v u h I N30 T-1 R5 F7 C9 MA J10 D3 O12 k s";
        assert!(!are_too_many(words.as_bytes(), 2) && are_too_many(words.as_bytes(), 3));
        let read = Command::parse(b"aGk=", words.as_bytes()).unwrap().flags;
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
    fn an_opaque_token_of_32_bytes_is_the_longest() {
        let long = |count| "O".to_owned() + &"1".repeat(count);
        for (count, is_long) in [(31, false), (32, true)] {
            let word = long(count);
            let command = Command::parse(b"k", word.as_bytes()).unwrap();
            assert_eq!(command.has_long_opaque(), is_long);
        }
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
            // Not a digit of base 64 among four: the key is "k".
            ("b", "CLIENT_ERROR error decoding key"),
            // The last one is named, but for a letter that cannot be.
            ("Tx Dx", "CLIENT_ERROR invalid numeric delta value"),
            ("Dx Fx", "CLIENT_ERROR invalid numeric delta value"),
            ("Dx b Fx", "CLIENT_ERROR error decoding key"),
            ("Dx y", "CLIENT_ERROR invalid flag"),
            ("Dx v v", "CLIENT_ERROR duplicate flag"),
        ] {
            assert_eq!(flags(words), Err(error), "{words:?}");
        }
    }
}
