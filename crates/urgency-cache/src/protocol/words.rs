//! A line cut into words at spaces.

/// The words of a line, from left to right. Only the space separates; a tab is part of a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Words<'a> {
    rest: &'a [u8],
}

impl<'a> Words<'a> {
    /// The words of `line`.
    #[must_use]
    pub fn new(line: &'a [u8]) -> Self {
        Words { rest: line }
    }

    /// What no word was taken from yet.
    #[must_use]
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// The last of the words that are left.
    #[must_use]
    pub fn last_word(&self) -> Option<&'a [u8]> {
        self.rest
            .rsplit(|&byte| byte == b' ')
            .find(|word| !word.is_empty())
    }
}

impl<'a> Iterator for Words<'a> {
    type Item = &'a [u8];

    #[inline]
    fn next(&mut self) -> Option<&'a [u8]> {
        let start = self.rest.iter().position(|&byte| byte != b' ')?;
        let word = &self.rest[start..];
        let end = word
            .iter()
            .position(|&byte| byte == b' ')
            .unwrap_or(word.len());
        let (word, rest) = word.split_at(end);
        self.rest = rest;
        Some(word)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spaces_separate_and_nothing_else_does() {
        let words: Vec<_> = Words::new(b"  get a\tb   c ").collect();
        assert_eq!(words, [&b"get"[..], b"a\tb", b"c"]);
        assert_eq!(Words::new(b"  ").next(), None);
        assert_eq!(Words::new(b"a bc  ").last_word(), Some(&b"bc"[..]));
        assert_eq!(Words::new(b" ").last_word(), None);
    }
}
