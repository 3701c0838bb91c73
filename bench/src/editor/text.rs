//! What an editor computes: colouring text, parsing files, and finding names that fit what was typed.

use std::hint::black_box;

/// Text with the result of lexing it.
pub struct Text {
    bytes: Vec<u8>,
    tokens: u64,
}

impl Text {
    /// Random source code of so many bytes.
    pub fn random(random: &mut fastrand::Rng, len: usize) -> Self {
        const WORDS: [&str; 12] = [
            "fn ",
            "let ",
            "x1 ",
            "= ",
            "name ",
            "(",
            ") ",
            "{\n",
            "}\n",
            "\"text\" ",
            "42; ",
            "# why\n",
        ];
        let mut bytes = Vec::new();
        while bytes.len() < len {
            bytes.extend_from_slice(WORDS[random.usize(..WORDS.len())].as_bytes());
        }
        let tokens = lex(&bytes);
        Text { bytes, tokens }
    }

    /// Lexes the text so many times, as many passes of an analysis would go over it, and returns its tokens;
    /// panics if a pass has another result.
    pub fn lex(&self, passes: u32) -> u64 {
        for _ in 0..passes {
            assert_eq!(lex(black_box(&self.bytes)), self.tokens, "a wrong result");
        }
        self.tokens
    }
}

/// What a byte is in.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Space,
    Word,
    Number,
    Quoted,
    Comment,
    Sign,
}

const STATES: [State; 6] = [
    State::Space,
    State::Word,
    State::Number,
    State::Quoted,
    State::Comment,
    State::Sign,
];

/// What follows a state when a byte comes.
const fn next(state: State, byte: u8) -> State {
    match (state, byte) {
        (State::Quoted, b'"') | (State::Comment, b'\n') => State::Space,
        (State::Quoted, _) => State::Quoted,
        (State::Comment, _) => State::Comment,
        (State::Word, b'a'..=b'z' | b'0'..=b'9' | b'_') => State::Word,
        (_, b'"') => State::Quoted,
        (_, b'#') => State::Comment,
        (_, b'a'..=b'z' | b'_') => State::Word,
        (_, b'0'..=b'9') => State::Number,
        (_, b' ' | b'\n') => State::Space,
        _ => State::Sign,
    }
}

/// [`next`] as a table by state and byte, the state in the lower bits, and above them whether a token begins. A
/// table has no branches, so how long a pass takes does not depend on what a processor has learnt of the text.
const TABLE: [[u8; 256]; 6] = {
    let mut table = [[0; 256]; 6];
    let mut state = 0;
    while state < 6 {
        let mut byte = 0;
        while byte < 256 {
            let next = next(STATES[state], byte as u8);
            // A sign is a token of its own, whatever it follows.
            let begins = match next {
                State::Space => false,
                State::Sign => true,
                _ => next as usize != state,
            };
            table[state][byte] = next as u8 | (begins as u8) << 7;
            byte += 1;
        }
        state += 1;
    }
    table
};

/// How many tokens there are. One copy for all contenders: where the compiler put it into each, one's loop was slower.
#[inline(never)]
fn lex(bytes: &[u8]) -> u64 {
    let (mut state, mut tokens) = (State::Space as u8, 0);
    for &byte in bytes {
        let entry = TABLE[usize::from(state)][usize::from(byte)];
        tokens += u64::from(entry >> 7);
        state = entry & 0x7f;
    }
    tokens
}

/// A part of the index of names.
pub struct Names(Vec<String>);

/// How well a name fits, and where it is: the greatest is the best.
pub type Fit = (u32, usize);

impl Names {
    /// So many random names.
    pub fn random(random: &mut fastrand::Rng, count: usize) -> Self {
        let name = |_| {
            let len = random.usize(6..20);
            (0..len).map(|_| random.lowercase()).collect()
        };
        Names((0..count).map(name).collect())
    }

    /// The name that fits best.
    #[inline(never)]
    pub fn best(&self, typed: &str) -> Fit {
        let fits = self.0.iter().enumerate();
        let best = fits
            .map(|(at, name)| (fit(name, black_box(typed)), at))
            .max();
        best.unwrap_or_default()
    }
}

/// A score: the letters of `typed` that `name` has in this order. Letters that follow each other in `name` count more.
fn fit(name: &str, typed: &str) -> u32 {
    let (mut rest, mut score, mut follows) = (typed.bytes().peekable(), 0, false);
    for byte in name.bytes() {
        let is_next = rest.next_if_eq(&byte).is_some();
        score += match (is_next, follows) {
            (true, true) => 3,
            (true, false) => 1,
            _ => 0,
        };
        follows = is_next;
    }
    score
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_words_numbers_signs_quotes_and_comments() {
        assert_eq!(lex(b"let x1 = f(42); # one two\n\"a b\" "), 10);
    }

    #[test]
    fn of_two_names_the_one_whose_letters_follow_each_other_fits_better() {
        let fits = ["urge", "u_r_g_e", "egru"].map(|name| fit(name, "urge"));
        assert_eq!(fits, [10, 4, 1]);
    }
}
