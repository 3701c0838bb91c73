//! The sources of a crate, their rooms, and which room imports from which.

use crate::paths::{Token, is_for_tests, tokens, use_tree};
use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

/// One import that leaves its room.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Import {
    pub(crate) file: String,
    pub(crate) line: usize,
    pub(crate) from: String,
    pub(crate) to: String,
    /// As it stands there.
    pub(crate) path: String,
    /// From the root of the crate on.
    pub(crate) full: String,
}

/// The rooms of a crate, or the rooms inside one of these, and what they import from each other, in the order of files
/// and lines.
pub(crate) struct Rooms {
    pub(crate) rooms: BTreeSet<String>,
    pub(crate) imports: Vec<Import>,
}

/// The files of a room that are in none of its folders, as a room among these.
pub(crate) const TRUNK: &str = "trunk";

/// The sources of a crate: what a `src/` has, or what a test makes up. Paths are relative to `src/`.
pub(crate) struct Tree {
    files: BTreeMap<String, Vec<Token>>,
    rooms: BTreeSet<String>,
    /// The path of each name that `lib.rs` has at the root of the crate; and macros that are exported.
    root: BTreeMap<String, Vec<String>>,
    /// Files of modules under `#[cfg(test)]`, and what begins like these.
    tests: Vec<String>,
}

/// A path in the sources, outside of tests.
struct Found<'a> {
    file: &'a str,
    line: usize,
    /// The modules down to its own.
    module: Vec<String>,
    /// The names from the root of the crate on.
    names: Vec<String>,
    text: String,
}

/// One place in a file's modules.
#[derive(Debug)]
struct Scope {
    /// The module's name, if these braces are a module's.
    module: Option<String>,
    is_test: bool,
}

impl Tree {
    pub(crate) fn read(source: &Path) -> Tree {
        let mut files = Vec::new();
        let mut folders = vec![source.to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(&folder)
                .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
            {
                let path = entry.expect("the folder was opened").path();
                if path.is_dir() {
                    folders.push(path);
                } else if path.extension().is_some_and(|extension| extension == "rs") {
                    let text = fs::read_to_string(&path)
                        .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
                    let name = path
                        .strip_prefix(source)
                        .expect("it is inside")
                        .display()
                        .to_string();
                    files.push((name, text));
                }
            }
        }
        Tree::of(
            files
                .iter()
                .map(|(name, text)| (name.as_str(), text.as_str())),
        )
    }

    pub(crate) fn of<'a>(files: impl IntoIterator<Item = (&'a str, &'a str)>) -> Tree {
        let files: BTreeMap<_, _> = files
            .into_iter()
            .map(|(name, text)| (name.to_owned(), tokens(text)))
            .collect();
        let mut tree = Tree {
            rooms: files.keys().filter_map(|file| room_of(file)).collect(),
            root: BTreeMap::new(),
            tests: Vec::new(),
            files: BTreeMap::new(),
        };
        for (file, tokens) in &files {
            tree.note_declarations(file, tokens);
        }
        tree.files = files;
        tree
    }

    /// Notes which files are tests, which macros are exported, and what is at the root.
    fn note_declarations(&mut self, file: &str, tokens: &[Token]) {
        let folder = module_of(file).join("/");
        let folder = if folder.is_empty() {
            folder
        } else {
            folder + "/"
        };
        for (at, window) in tokens.windows(3).enumerate() {
            let [first, name, third] = window else {
                unreachable!("three")
            };
            match (first.text.as_str(), third.text.as_str()) {
                ("mod", ";") if is_for_tests(&tokens[..at]) => {
                    self.tests.push(folder.clone() + &name.text)
                }
                ("macro_rules", _) => {
                    if let Some(room) = room_of(file) {
                        self.root.insert(third.text.clone(), vec![room]);
                    }
                }
                ("use", _) if file == "lib.rs" => {
                    let mut names = Vec::new();
                    use_tree(tokens, &mut (at + 1), &mut Vec::new(), &mut names);
                    for path in names {
                        self.root.insert(path.known_as, path.names);
                    }
                }
                _ => {}
            }
        }
    }

    fn is_test(&self, module: &[String]) -> bool {
        let module = module.join("/");
        let is_in = |test: &String| module == *test || module.starts_with(&(test.clone() + "/"));
        self.tests.iter().any(is_in)
    }

    /// The rooms of the crate: the folders and files of `src/`.
    pub(crate) fn rooms(&self) -> Rooms {
        let imports = self.imports(|names| names.first().cloned());
        Rooms {
            rooms: self.rooms.clone(),
            imports,
        }
    }

    /// The rooms inside a room: its folders with a `mod.rs`, and the [`TRUNK`].
    pub(crate) fn rooms_inside(&self, room: &str) -> Rooms {
        let folder = |file: &String| match module_of(file).as_slice() {
            [outer, inner] if outer == room && file.ends_with("/mod.rs") => Some(inner.clone()),
            _ => None,
        };
        let folders = self.files.keys().filter_map(folder);
        let folders: BTreeSet<_> = folders
            .filter(|inner| !self.is_test(&[room.to_owned(), inner.clone()]))
            .collect();
        let inside = |names: &[String]| match names {
            [outer, inner, ..] if outer == room && folders.contains(inner) => Some(inner.clone()),
            [outer, ..] if outer == room => Some(TRUNK.to_owned()),
            _ => None,
        };
        let imports = self.imports(inside);
        let mut rooms = folders.clone();
        rooms.insert(TRUNK.to_owned());
        Rooms { rooms, imports }
    }

    /// The imports that leave their room, where `room_of` names the room of a path.
    fn imports(&self, room_of: impl Fn(&[String]) -> Option<String>) -> Vec<Import> {
        let mut imports = Vec::new();
        for found in self.paths() {
            if let Some(from) = room_of(&found.module)
                && let Some(to) = room_of(&found.names)
                && from != to
            {
                imports.push(Import {
                    file: found.file.to_owned(),
                    line: found.line,
                    from,
                    to,
                    path: found.text,
                    full: found.names.join("::"),
                });
            }
        }
        imports.sort();
        imports.dedup();
        imports
    }

    /// All paths that begin with `crate`, `super` or `self`, but in tests and to tests.
    fn paths(&self) -> Vec<Found<'_>> {
        let mut paths = Vec::new();
        for (file, tokens) in &self.files {
            if room_of(file).is_some() && !self.is_test(&module_of(file)) {
                self.paths_of(file, tokens, &mut paths);
            }
        }
        paths.retain(|found| !self.is_test(&found.names));
        paths
    }

    fn paths_of<'a>(&'a self, file: &'a str, tokens: &[Token], paths: &mut Vec<Found<'a>>) {
        let mut scopes: Vec<Scope> = Vec::new();
        let mut at = 0;
        while at < tokens.len() {
            let word = |ahead: usize| {
                tokens
                    .get(at + ahead)
                    .map_or("", |token| token.text.as_str())
            };
            match word(0) {
                "{" => {
                    let is_module = at >= 2 && tokens[at - 2].text == "mod";
                    scopes.push(Scope {
                        module: is_module.then(|| tokens[at - 1].text.clone()),
                        is_test: is_module && is_for_tests(&tokens[..at - 2]),
                    });
                }
                "}" => drop(scopes.pop()),
                "crate" | "super" | "self" if word(1) == "::" && !is_continued(&tokens[..at]) => {
                    let mut module = module_of(file);
                    module.extend(scopes.iter().filter_map(|scope| scope.module.clone()));
                    let mut used = Vec::new();
                    let mut end = at;
                    use_tree(tokens, &mut end, &mut Vec::new(), &mut used);
                    if !scopes.iter().any(|scope| scope.is_test) {
                        for path in used {
                            let names = path.absolute(&module);
                            let names =
                                names.and_then(|names| self.resolved(names, file, path.line));
                            if let Some(names) = names {
                                paths.push(Found {
                                    file,
                                    line: path.line,
                                    module: module.clone(),
                                    names,
                                    text: path.names.join("::"),
                                });
                            }
                        }
                    }
                    // The braces of a group are none of a scope.
                    at = end;
                    continue;
                }
                _ => {}
            }
            at += 1;
        }
    }

    /// The path with its room, for one from the root of the crate; `None` if another crate's is re-exported there.
    fn resolved(&self, names: Vec<String>, file: &str, line: usize) -> Option<Vec<String>> {
        let name = &names[0];
        if self.rooms.contains(name) {
            return Some(names);
        }
        let Some(path) = self.root.get(name) else {
            panic!(
                "{file}:{line}: `crate::{name}`: no room has this name, and `lib.rs` does not re-export it"
            );
        };
        let names = path.iter().chain(&names[1..]).cloned().collect();
        self.rooms.contains(&path[0]).then_some(names)
    }
}

impl Rooms {
    /// What each room imports from, and how often.
    pub(crate) fn arrows(&self) -> BTreeMap<String, BTreeMap<String, usize>> {
        let mut arrows: BTreeMap<String, BTreeMap<String, usize>> = BTreeMap::new();
        for room in &self.rooms {
            arrows.entry(room.clone()).or_default();
        }
        for import in &self.imports {
            *arrows
                .entry(import.from.clone())
                .or_default()
                .entry(import.to.clone())
                .or_default() += 1;
        }
        arrows
    }
}

/// Whether the next word is none of a path's first ones: it goes on, or is where something is visible.
fn is_continued(before: &[Token]) -> bool {
    let ends_with = |end: &[&str]| {
        let words = before.iter().rev().map(|token| token.text.as_str());
        before.len() >= end.len() && words.zip(end.iter().rev()).all(|(word, end)| word == *end)
    };
    ends_with(&["::"]) || ends_with(&["pub", "(", "in"])
}

/// The room of a file: the folder or file in `src/`. `lib.rs` is in none.
fn room_of(file: &str) -> Option<String> {
    module_of(file).first().cloned()
}

/// The names of the modules down to a file's own.
fn module_of(file: &str) -> Vec<String> {
    let mut names: Vec<String> = file
        .trim_end_matches(".rs")
        .split('/')
        .map(str::to_owned)
        .collect();
    if names.last().is_some_and(|last| last == "mod") || file == "lib.rs" {
        names.pop();
    }
    names
}

/// The rooms that lie on a circle, circle by circle, each with its rooms in the order of their names.
pub(crate) fn circles(arrows: &BTreeMap<String, BTreeMap<String, usize>>) -> Vec<Vec<String>> {
    let reach = |from: &String| {
        let mut reached = BTreeSet::new();
        let mut open: Vec<&String> = arrows[from].keys().collect();
        while let Some(room) = open.pop() {
            if reached.insert(room.clone()) {
                open.extend(arrows[room].keys());
            }
        }
        reached
    };
    let reached: BTreeMap<&String, BTreeSet<String>> =
        arrows.keys().map(|room| (room, reach(room))).collect();
    let mut circles: Vec<Vec<String>> = Vec::new();
    for room in arrows.keys() {
        if reached[room].contains(room) && !circles.iter().any(|circle| circle.contains(room)) {
            let back =
                |other: &&String| reached[room].contains(*other) && reached[*other].contains(room);
            circles.push(arrows.keys().filter(back).cloned().collect());
        }
    }
    circles
}
