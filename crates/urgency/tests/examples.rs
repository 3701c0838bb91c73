//! Every public item has an example that runs as a doctest, or is plain without one.
//!
//! The sources are read as text. An item is a `pub` function, type, trait or exported macro, or a function of a public
//! trait. It has an example if
//!
//! - an example in a documentation comment of the same room (a folder or a file of `src/`; in another crate than
//!   `urgency`, a folder or all files that are in none) names it; for a type or a
//!   trait an example in the same file will do, whatever it names; or
//! - its documentation says that it is as another one ("As [`spawn`]", "The blocking form of"), which has one; for a
//!   type: its documentation has a link to the item that gives or takes it, or it is an `Error`, whose text is tested.
//!
//! Not public is a `pub` item of a private module that no `pub use` names, and what is in `HIDDEN`.
//!
//! Plain without one is
//!
//! - a getter: it takes nothing but `self`, gives a value, and is documented by what that value is ("The level.",
//!   "Whether it is closed."), not by what the function does;
//! - a question: it gives `bool`, and its documentation begins with "Whether";
//! - a setter of a builder: it takes `self` and a value, and gives `Self`;
//! - a constructor without arguments, or from one value (`new`, `from_..`);
//! - a poll (`poll_..`): the form for futures that are written by hand.

use std::{
    collections::HashMap,
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
};

/// The first words of a getter's documentation.
const NOUNS: &[&str] = &[
    "A", "About", "All", "An", "As", "At", "Each", "For", "From", "How", "If", "In", "Its",
    "Nothing", "One", "Since", "So", "The", "This", "What", "When", "Where", "Whether", "Which",
    "With", "Without",
];

/// Rooms for other crates of this workspace, whose tests show them.
const HIDDEN: &[&str] = &["embed", "entry.rs"];

/// The other crates that are published for programs to use. (The applications are crates as well: what is public in
/// `urgency-cache`, `urgency-cli`, `urgency-load`, `urgency-measure` and `urgency-sim` is for their own binaries, tests
/// and benchmarks. The macros of `urgency-levels` are `urgency`'s, and have their examples there.)
const OTHERS: [&str; 3] = ["urgency-policy", "urgency-resctrl", "urgency-web"];

/// How the documentation of a form of something else begins or goes on.
const FORMS: &[&str] = &[
    "As [`",
    "as [`",
    "form of",
    "The form for",
    "The same as [`",
    "; see [`",
    "See [`",
    "Like [`",
];

struct Item {
    line: usize,
    /// The type whose method it is; empty for other items.
    of: String,
    kind: &'static str,
    name: String,
    signature: String,
    docs: String,
}

/// The items of a file, and the code of its examples.
fn read(source: &str) -> (Vec<Item>, String) {
    let (mut items, mut examples) = (Vec::new(), String::new());
    let (mut docs, mut attributes) = (String::new(), String::new());
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
            } else if fence == Some(true) {
                examples.push_str(text);
                examples.push('\n');
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
            if items.iter().all(is_new) {
                items.push(Item {
                    line: number + 1,
                    of: of.clone(),
                    kind,
                    name,
                    signature: signature.join(" "),
                    docs: std::mem::take(&mut docs),
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
    }
    (items, examples)
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
    for modifier in ["const ", "async ", "unsafe "] {
        rest = rest.strip_prefix(modifier).unwrap_or(rest);
    }
    for kind in ["fn", "struct", "enum", "trait"] {
        if let Some(rest) = rest
            .strip_prefix(kind)
            .and_then(|rest| rest.strip_prefix(' '))
        {
            return Some((kind, first_name(rest)));
        }
    }
    None
}

fn names(examples: &str, name: &str) -> bool {
    examples
        .split(|c: char| !c.is_alphanumeric() && c != '_')
        .any(|word| word == name)
}

/// Whether a function is plain without an example; see the text on top.
fn is_plain(item: &Item) -> bool {
    let arguments = item.signature.split_once('(').map_or("", |(_, rest)| rest);
    let (arguments, result) = arguments.split_once(')').unwrap_or((arguments, ""));
    let mut arguments = arguments
        .split(',')
        .map(str::trim)
        .filter(|argument| !argument.is_empty());
    let first = arguments.next().unwrap_or("");
    let has_self = first.ends_with("self") || first.starts_with("self:");
    let others = arguments.count() + usize::from(!has_self && !first.is_empty());
    let first_word = item.docs.split([' ', ',', '.', ':']).next().unwrap_or("");
    let is_getter = has_self && others == 0 && result.contains("->") && NOUNS.contains(&first_word);
    let is_setter = first.ends_with("self")
        && !first.contains('&')
        && others == 1
        && result.contains("-> Self");
    let is_question = result.contains("bool") && first_word == "Whether";
    let makes = item.name.starts_with("new") || item.name.starts_with("from_");
    let is_constructor = !has_self && others <= 1 && makes;
    is_getter || is_question || is_setter || is_constructor || item.name.starts_with("poll_")
}

/// What lacks an example in a file, whose room has these.
fn missing(source: &str, of_room: &str, is_public: impl Fn(&str) -> bool) -> Vec<(usize, String)> {
    let (items, of_file) = read(source);
    let has_example = |item: &Item| {
        let is_form = FORMS.iter().any(|form| item.docs.contains(form));
        let is_shown = is_form || names(of_room, &item.name);
        match item.kind {
            "fn" => is_shown || is_plain(item),
            "macro" => is_shown,
            _ => {
                let mut texts = source.split("error_text!(").skip(1);
                let is_error = source.contains(&format!("Error for {}", item.name))
                    || texts.any(|text| names(text.split(['|', '"']).next().unwrap(), &item.name));
                is_shown || is_error || !of_file.is_empty() || item.docs.contains("[`")
            }
        }
    };
    let is_reached = |item: &Item| {
        is_public(if item.of.is_empty() {
            &item.name
        } else {
            &item.of
        })
    };
    let lacks = items
        .into_iter()
        .filter(|item| is_reached(item) && !has_example(item));
    lacks
        .map(|item| (item.line, format!("{} {}", item.kind, item.name)))
        .collect()
}

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if path.is_dir() && !["tests", "loom"].contains(&name) {
            sources(&path, found);
        } else if name.ends_with(".rs") && !["tests.rs", "loom.rs", "stress.rs"].contains(&name) {
            found.push(path);
        }
    }
}

/// What lacks an example in the sources of a crate, by file and line.
fn missing_in(src: &Path) -> Vec<String> {
    let mut files = Vec::new();
    sources(src, &mut files);
    files.sort();
    let is_own = src.parent() == Some(Path::new(env!("CARGO_MANIFEST_DIR")));
    let room = |file: &Path| {
        let inner = file.strip_prefix(src).unwrap();
        // The files of a small crate that are in no folder are one room.
        let is_in_none = !is_own && inner.components().count() == 1;
        let first = inner.components().next().filter(|_| !is_in_none);
        first.map_or_else(OsString::new, |first| first.as_os_str().to_owned())
    };
    let mut examples = HashMap::<_, String>::new();
    let sources = files.iter().map(|file| fs::read_to_string(file).unwrap());
    let sources: Vec<String> = sources.collect();
    for (file, source) in files.iter().zip(&sources) {
        examples
            .entry(room(file))
            .or_default()
            .push_str(&read(source).1);
    }
    // What a `pub use` names, and the files of public modules.
    let statements = sources.iter().flat_map(|source| source.split(';'));
    let exports = statements.filter_map(|statement| statement.split("pub use ").nth(1));
    let exports = exports.collect::<Vec<_>>().join(";");
    let modules: Vec<&str> = sources
        .iter()
        .flat_map(|source| source.lines())
        .filter_map(|line| line.trim().strip_prefix("pub mod ")?.strip_suffix(';'))
        .collect();
    let mut lacking = Vec::new();
    for (file, source) in files.iter().zip(&sources) {
        let module = if file.ends_with("mod.rs") {
            file.parent().unwrap()
        } else {
            file
        };
        let name = module.file_stem().unwrap().to_str().unwrap();
        let is_open = name == "lib" || modules.contains(&name);
        let is_public = |name: &str| is_open || names(&exports, name);
        if HIDDEN.contains(&room(file).to_str().unwrap()) {
            continue;
        }
        let found = missing(source, &examples[&room(file)], is_public).into_iter();
        lacking.extend(found.map(|(line, item)| format!("{}:{line}: {item}", file.display())));
    }
    lacking
}

#[test]
fn every_public_item_has_an_example_or_is_plain() {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    let others = OTHERS.map(|name| own.with_file_name(name));
    let sources = [own.to_owned()].into_iter().chain(others);
    // A package is without the other crates.
    let sources = sources
        .map(|path| path.join("src"))
        .filter(|src| src.exists());
    let lacking: Vec<String> = sources.flat_map(|src| missing_in(&src)).collect();
    assert!(
        lacking.is_empty(),
        "these {} items need an example in the documentation of their room, which names them:\n{}",
        lacking.len(),
        lacking.join("\n")
    );
}

#[test]
fn an_item_without_an_example_is_named_and_a_plain_one_is_not() {
    let source = "
/// Opens it.
pub fn open() {}

/// Shuts it.
pub fn shut(it: It) {}

/// The one.
///
/// ```
/// open();
/// ```
pub struct It;

impl It {
    /// The width.
    pub fn width(&self) -> u32 { 1 }
    /// Turns it.
    pub fn turn(&self) -> u32 { 1 }
    /// As [`open`], but wide.
    pub fn open_wide(&self) {}
    #[doc(hidden)]
    pub fn hidden(&self) {
    }
    pub(crate) fn inner(&self) {}
}

pub trait Thing {
    /// Does it.
    fn thing(&self);
}
";
    let found: Vec<String> = missing(source, &read(source).1, |_| true)
        .into_iter()
        .map(|(_, item)| item)
        .collect();
    assert_eq!(found, ["fn shut", "fn turn", "fn thing"]);
}
