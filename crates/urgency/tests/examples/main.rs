//! Every public item has an example that runs as a doctest, or is plain without one.
//!
//! The sources are read as text. An item is a `pub` function, type, trait, constant, static or exported macro, or what
//! a public trait has. Its *room* is a folder or a file of `src/`; in another crate than `urgency`, a folder or all
//! files that are in none. A *maker* of a type is a function of the room that gives it.
//!
//! An item has an example if there is one in its own documentation, or
//!
//! - for a function or constant: an example in its file names it, or one in its room does that names its type, too, or
//!   a maker of that type; for what is no type's, and for a macro: an example in its room names it; or its
//!   documentation says that it is as another item of its crate ("As [`spawn`]", "The blocking form of"), which has
//!   one by these rules;
//! - for a type or a trait: there is one in the text of its file, or an example in its file names the type or a maker,
//!   or the documentation of a maker has one, or an example in its room names the type; or it is an `Error`, whose text
//!   is tested. A type whose name is the only one in its crate has the whole crate as its room;
//! - for a type that belongs to a trait: the trait has one.
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

mod forms;
mod source;

use forms::links;
use source::{File, Item, names, read};
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

/// How many forms may lead to each other, up to one that has an example.
const LONGEST: usize = 3;

/// Whether the documentation says that the item is as another one, which has an example.
fn is_form(item: &Item, rooms: &[Vec<&File>], longest: usize) -> bool {
    let is_longer = longest > 0;
    let is_shown = |other: &Item, file: &File, room: &[&File]| {
        other.has_example
            || match other.kind {
                "fn" | "const" | "static" | "macro" => is_called(other, file, room),
                _ => is_longer && is_type_shown(&other.name, file, room, rooms, longest - 1),
            }
            || is_longer && is_form(other, rooms, longest - 1)
    };
    links(&item.docs).any(|link| {
        let mut files = rooms
            .iter()
            .flat_map(|room| room.iter().map(move |file| (file, room)));
        files.any(|(file, room)| {
            let mut linked = file.items.iter().filter(|other| link.is(other, item));
            linked.any(|other| is_shown(other, file, room))
        })
    })
}

fn items<'a>(files: &'a [&File]) -> impl Iterator<Item = &'a Item> {
    files.iter().flat_map(|file| &file.items)
}

fn examples<'a>(files: &'a [&File]) -> impl Iterator<Item = &'a String> {
    files.iter().flat_map(|file| &file.examples)
}

/// Whether the function or constant of a file has an example in this room.
fn is_called(item: &Item, file: &File, room: &[&File]) -> bool {
    let is_of_type = |example: &String| {
        let of = &item.of;
        let is_maker = |maker: &Item| maker.makes(of) && names(example, &maker.name);
        of.is_empty() || names(example, of) || items(room).any(is_maker)
    };
    let is_named = |example: &&String| names(example, &item.name);
    file.examples.iter().any(|example| is_named(&example))
        || examples(room).filter(is_named).any(is_of_type)
}

/// Whether the type of this name in a file has an example in this room, or in the crate.
fn is_type_shown(
    name: &str,
    file: &File,
    room: &[&File],
    rooms: &[Vec<&File>],
    longest: usize,
) -> bool {
    let all = rooms.iter().flatten().copied().collect::<Vec<_>>();
    let is_it = |item: &&Item| item.kind != "fn" && item.of.is_empty() && item.name == name;
    let is_only_one = |files: &[&File]| items(files).filter(is_it).count() == 1;
    let room = if is_only_one(&all) { &all } else { room };
    let makers = || items(room).filter(|maker| maker.makes(name));
    let is_here = |example: &String| {
        names(example, name) || makers().any(|maker| names(example, &maker.name))
    };
    file.has_example
        || file.examples.iter().any(is_here)
        || makers().any(|maker| maker.has_example || is_form(maker, rooms, longest))
        || is_only_one(room) && examples(room).any(|example| names(example, name))
        || names(&file.errors, name)
}

/// What lacks an example in a file of a room of a crate.
fn missing(
    file: &File,
    room: &[&File],
    rooms: &[Vec<&File>],
    is_public: impl Fn(&str) -> bool,
) -> Vec<(usize, String)> {
    let is_form = |item: &Item| is_form(item, rooms, LONGEST);
    let is_type_shown = |name: &str| is_type_shown(name, file, room, rooms, LONGEST);
    let has_example = |item: &Item| {
        item.has_example
            || match item.kind {
                "fn" => is_form(item) || is_plain(item) || is_called(item, file, room),
                "const" | "static" | "macro" => is_form(item) || is_called(item, file, room),
                _ if item.of.is_empty() => is_type_shown(&item.name),
                _ => {
                    let of = |other: &Item| other.name == item.of && other.has_example;
                    file.items.iter().any(of) || is_type_shown(&item.of)
                }
            }
    };
    let name_of = |item: &Item| match item.of.as_str() {
        "" => item.name.clone(),
        of => format!("{of}::{}", item.name),
    };
    let lacks = |item: &&Item| {
        let reached = if item.of.is_empty() {
            &item.name
        } else {
            &item.of
        };
        is_public(reached) && !has_example(item)
    };
    let lacking = file.items.iter().filter(lacks);
    lacking
        .map(|item| (item.line, format!("{} {}", item.kind, name_of(item))))
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
    let sources = files.iter().map(|file| fs::read_to_string(file).unwrap());
    let sources: Vec<String> = sources.collect();
    let contents: Vec<File> = sources.iter().map(|source| read(source)).collect();
    let mut rooms = HashMap::<_, Vec<&File>>::new();
    for (file, content) in files.iter().zip(&contents) {
        rooms.entry(room(file)).or_default().push(content);
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
    let every: Vec<Vec<&File>> = rooms.values().cloned().collect();
    let mut lacking = Vec::new();
    for (file, content) in files.iter().zip(&contents) {
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
        let found = missing(content, &rooms[&room(file)], &every, is_public).into_iter();
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
    /// How many there can be.
    pub const MOST: u32 = 1;
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
    // Another file of the room. It names `turn`, and not of what; `Turned` has a link, and no maker with an example.
    let other = "
/// What [`It`] becomes.
pub struct Turned;

/// The same.
pub type Same = Turned;

/// ```
/// other.turn();
/// let opened: Opened = opened();
/// ```
pub fn others() -> Opened {}

/// See [`others`].
pub struct Opened;
";
    let files = [read(source), read(other)];
    let room = [&files[0], &files[1]];
    let found = files
        .iter()
        .flat_map(|file| missing(file, &room, &[room.to_vec()], |_| true));
    let found: Vec<String> = found.map(|(_, item)| item).collect();
    let first = [
        "fn shut",
        "fn It::turn",
        "const It::MOST",
        "trait Thing",
        "fn Thing::thing",
    ];
    let all = first.into_iter().chain(["struct Turned", "type Same"]);
    assert_eq!(found, all.collect::<Vec<_>>());
}
