//! What a file of source text says: its public items, with their documentation, and the code of its examples.

pub struct Item {
    pub line: usize,
    /// The type whose method it is; empty for other items.
    pub of: String,
    pub kind: &'static str,
    pub name: String,
    pub signature: String,
    pub docs: String,
    /// Its documentation has one.
    pub has_example: bool,
}

impl Item {
    /// Whether it is a function that gives the type of this name. A constructor is left out: the type's name is there
    /// where it is called.
    pub fn makes(&self, name: &str) -> bool {
        let result = self.signature.rsplit_once("->").map_or("", |(_, to)| to);
        let is_constructor = self.name.starts_with("new") || self.name.starts_with("from_");
        let is_own = self.of == name && names(result, "Self");
        self.kind == "fn" && !is_constructor && (is_own || names(result, name))
    }
}

/// What there is in a file.
#[derive(Default)]
pub struct File {
    pub items: Vec<Item>,
    /// The code of each example.
    pub examples: Vec<String>,
    /// The text at its top has one.
    pub has_example: bool,
    /// What stands before the type's name in the texts of its errors.
    pub errors: String,
}

pub fn read(source: &str) -> File {
    let mut file = File::default();
    let (mut docs, mut attributes, mut has_example) = (String::new(), String::new(), false);
    let mut of = String::new();
    // Of a fence that is open: whether it is an example.
    let mut fence = None::<bool>;
    let (mut in_trait, mut skipped_until) = (false, None::<String>);
    let lines: Vec<&str> = source.lines().collect();
    for (number, line) in lines.iter().enumerate() {
        let code = line.trim_start();
        if let Some(end) = &skipped_until {
            if line == end {
                skipped_until = None;
            }
            continue;
        }
        if let Some(text) = code
            .strip_prefix("///")
            .or_else(|| code.strip_prefix("//!"))
        {
            let text = text.trim_start();
            if let Some(language) = text.strip_prefix("```") {
                fence = match fence {
                    Some(_) => None,
                    None => Some(!["text", "ignore", "toml"].contains(&language)),
                };
                if fence == Some(true) {
                    file.examples.push(String::new());
                    has_example |= code.starts_with("///");
                    file.has_example |= code.starts_with("//!");
                }
            } else if fence == Some(true) {
                let example = file.examples.last_mut().unwrap();
                example.push_str(text);
                example.push('\n');
            } else if fence.is_none() && code.starts_with("///") {
                docs.push_str(text);
                docs.push(' ');
            }
            continue;
        }
        if code.starts_with("#[") || (!attributes.is_empty() && !attributes.ends_with("]\n")) {
            attributes.push_str(code);
            attributes.push('\n');
            continue;
        }
        let indent = line.len() - code.len();
        if indent == 0 && code == "}" {
            in_trait = false;
            of.clear();
        }
        if indent == 0 && code.starts_with("impl") {
            of = implemented(code);
        }
        let is_hidden = attributes.contains("doc(hidden)");
        let is_test = attributes.contains("cfg(test)") || attributes.contains("cfg(all(test");
        if (is_hidden || is_test) && code.ends_with('{') {
            skipped_until = Some(format!("{}}}", " ".repeat(indent)));
        } else if !is_hidden
            && !is_test
            && let Some((kind, name)) = item(code, in_trait && indent == 4, &attributes)
        {
            let end = |line: &&&str| !line.contains(['{', ';']);
            let mut signature: Vec<&str> =
                lines[number..].iter().take_while(end).copied().collect();
            signature.push(lines[number + signature.len()]);
            let is_new = |item: &Item| item.name != name || item.docs != docs;
            if file.items.iter().all(is_new) {
                file.items.push(Item {
                    line: number + 1,
                    of: of.clone(),
                    kind,
                    name,
                    signature: signature.join(" "),
                    docs: std::mem::take(&mut docs),
                    has_example,
                });
            }
        }
        let is_trait = code.starts_with("pub trait ") || code.starts_with("pub unsafe trait ");
        if indent == 0 && is_trait && !code.ends_with('}') {
            in_trait = true;
            of = code
                .split("trait ")
                .nth(1)
                .map_or_else(String::new, first_name);
        }
        docs.clear();
        attributes.clear();
        has_example = false;
    }
    let texts = source.split("error_text!(").skip(1);
    let types = texts.map(|text| text.split(['|', '"']).next().unwrap());
    let written = source.split("Error for ").skip(1);
    let types = types.chain(written.map(|text| text.split_whitespace().next().unwrap_or("")));
    file.errors = types.collect::<Vec<_>>().join(" ");
    file
}

fn first_name(text: &str) -> String {
    let end = text.find(|c: char| !c.is_alphanumeric() && c != '_');
    text[..end.unwrap_or(text.len())].to_owned()
}

/// The type of an `impl`.
fn implemented(code: &str) -> String {
    let mut rest = code.trim_start_matches("impl");
    if rest.starts_with('<') {
        let (mut depth, mut end) = (0, 0);
        for (at, c) in rest.char_indices() {
            depth += i32::from(c == '<') - i32::from(c == '>');
            if depth == 0 {
                end = at + 1;
                break;
            }
        }
        rest = &rest[end..];
    }
    let own = rest.split(" for ").last().unwrap_or(rest);
    first_name(own.trim_start())
}

/// What `code` begins, if that is public.
fn item(code: &str, in_trait: bool, attributes: &str) -> Option<(&'static str, String)> {
    if let Some(rest) = code.strip_prefix("macro_rules! ") {
        return attributes
            .contains("macro_export")
            .then(|| ("macro", first_name(rest)));
    }
    let mut rest = match code.strip_prefix("pub ") {
        Some(rest) => rest,
        None if in_trait => code,
        None => return None,
    };
    let whole = rest;
    for modifier in ["const ", "async ", "unsafe "] {
        rest = rest.strip_prefix(modifier).unwrap_or(rest);
    }
    let kinds = ["fn", "struct", "enum", "trait", "type", "static"];
    let (kind, rest) = kinds
        .into_iter()
        .find_map(|kind| Some((kind, rest.strip_prefix(kind)?.strip_prefix(' ')?)))
        .or_else(|| Some(("const", whole.strip_prefix("const ")?)))?;
    Some((kind, first_name(rest)))
}

pub fn names(examples: &str, name: &str) -> bool {
    examples
        .split(|c: char| !c.is_alphanumeric() && c != '_')
        .any(|word| word == name)
}
