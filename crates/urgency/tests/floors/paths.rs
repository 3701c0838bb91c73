//! Rust's sources as text: the words and signs, and the paths that they form.

/// A word, `::`, or another sign of Rust's, and its line. What is in quotes is no token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Token {
    pub(crate) text: String,
    pub(crate) line: usize,
}

pub(crate) fn tokens(source: &str) -> Vec<Token> {
    let text: Vec<char> = source.chars().collect();
    let mut tokens = Vec::new();
    let (mut at, mut line) = (0, 1);
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    while at < text.len() {
        let rest = &text[at..];
        let next = rest.get(1).copied().unwrap_or(' ');
        let length = match rest[0] {
            _ if string(rest) > 0 => string(rest),
            '/' if next == '/' => rest.iter().position(|&c| c == '\n').unwrap_or(rest.len()),
            '/' if next == '*' => block_comment(rest),
            '\'' => character_or_lifetime(rest),
            c if is_word(c) => {
                let length = rest.iter().position(|&c| !is_word(c)).unwrap_or(rest.len());
                let word = rest[..length].iter().collect();
                tokens.push(Token { text: word, line });
                length
            }
            c if c.is_whitespace() => 1,
            ':' if next == ':' => {
                tokens.push(Token {
                    text: "::".into(),
                    line,
                });
                2
            }
            c => {
                tokens.push(Token {
                    text: c.into(),
                    line,
                });
                1
            }
        };
        line += rest[..length].iter().filter(|&&c| c == '\n').count();
        at += length;
    }
    tokens
}

fn block_comment(rest: &[char]) -> usize {
    let (mut at, mut depth) = (0, 0);
    while at < rest.len() {
        match rest[at..] {
            ['/', '*', ..] => (depth, at) = (depth + 1, at + 2),
            ['*', '/', ..] => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
        if depth == 0 {
            break;
        }
    }
    at
}

/// The length of a string that begins here, with both its quotes.
fn quoted(rest: &[char]) -> usize {
    let mut at = 1;
    while at < rest.len() && rest[at] != '"' {
        at += if rest[at] == '\\' { 2 } else { 1 };
    }
    (at + 1).min(rest.len())
}

/// The length of `".."`, `b".."`, `r".."`, `br#".."#` and their like, if one begins here, else 0.
fn string(rest: &[char]) -> usize {
    let prefix = rest.iter().take_while(|c| "rbc".contains(**c)).count();
    let hashes = rest[prefix..].iter().take_while(|&&c| c == '#').count();
    let is_raw = rest[..prefix].contains(&'r');
    if prefix > 2 || hashes > 0 && !is_raw || rest.get(prefix + hashes) != Some(&'"') {
        return 0;
    }
    if !is_raw {
        return prefix + quoted(&rest[prefix..]);
    }
    let start = prefix + hashes + 1;
    let closing = std::iter::once('"').chain(std::iter::repeat_n('#', hashes));
    let closing: Vec<char> = closing.collect();
    let end = rest[start..]
        .windows(closing.len())
        .position(|window| window == closing);
    end.map_or(rest.len(), |end| start + end + closing.len())
}

/// The length of `'a'`, or of the quote of a lifetime, whose name is a word like others.
fn character_or_lifetime(rest: &[char]) -> usize {
    match rest {
        [_, '\\', _, tail @ ..] => 3 + tail.iter().position(|&c| c == '\'').map_or(0, |at| at + 1),
        [_, _, '\'', ..] => 3,
        _ => 1,
    }
}

/// A path of a `use` tree, or of code.
#[derive(Debug)]
pub(crate) struct UsedPath {
    pub(crate) names: Vec<String>,
    /// The last name, or the one behind `as`.
    pub(crate) known_as: String,
    pub(crate) line: usize,
}

impl UsedPath {
    /// The names from the root of the crate on, for a path in this module. `None`: the path names nothing below the
    /// root.
    pub(crate) fn absolute(&self, module: &[String]) -> Option<Vec<String>> {
        let first = self.names[0].as_str();
        let rest = &self.names[usize::from(first != "super")..];
        let up = rest.iter().take_while(|name| *name == "super").count();
        let start = match first {
            "crate" => &[],
            _ => &module[..module.len().saturating_sub(up)],
        };
        let below = &rest[up..];
        let is_itself = below.is_empty() || matches!(below[0].as_str(), "*" | "self");
        let names: Vec<_> = start.iter().chain(below).cloned().collect();
        (!(start.is_empty() && is_itself)).then_some(names)
    }
}

/// Reads the path at `at`, with its groups, and leaves `at` behind it.
pub(crate) fn use_tree(
    tokens: &[Token],
    at: &mut usize,
    before: &mut Vec<String>,
    paths: &mut Vec<UsedPath>,
) {
    let length = before.len();
    let text = |at: usize| tokens.get(at).map_or("", |token| token.text.as_str());
    loop {
        match text(*at) {
            "{" => {
                *at += 1;
                while *at < tokens.len() && text(*at) != "}" {
                    if text(*at) == "," {
                        *at += 1;
                    } else {
                        use_tree(tokens, at, before, paths);
                    }
                }
                *at += 1;
                break;
            }
            name => {
                let line = tokens.get(*at).map_or(0, |token| token.line);
                before.push(name.to_owned());
                *at += 1;
                if text(*at) == "::" {
                    *at += 1;
                    // `Vec::<u8>::new`: the path ends before the types.
                    if text(*at) != "<" {
                        continue;
                    }
                }
                let known_as = if text(*at) == "as" {
                    *at += 2;
                    text(*at - 1).to_owned()
                } else {
                    name.to_owned()
                };
                paths.push(UsedPath {
                    names: before.clone(),
                    known_as,
                    line,
                });
                break;
            }
        }
    }
    before.truncate(length);
}

/// Whether the item behind these tokens is under `#[cfg(test)]` or `#[cfg(all(test, ..))]`.
pub(crate) fn is_for_tests(before: &[Token]) -> bool {
    let item = before
        .iter()
        .rposition(|token| matches!(token.text.as_str(), ";" | "}" | "{"));
    let attributes: Vec<_> = before[item.map_or(0, |at| at + 1)..]
        .iter()
        .map(|token| token.text.as_str())
        .collect();
    let is_one = |wanted: &[&str]| {
        attributes
            .windows(wanted.len())
            .any(|window| window == wanted)
    };
    is_one(&["cfg", "(", "test", ")"]) || is_one(&["cfg", "(", "all", "(", "test"])
}
