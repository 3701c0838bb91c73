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
    pub(crate) path: String,
}

/// The sources of a crate: what a `src/` has, or what a test makes up. Paths are relative to `src/`.
pub(crate) struct Tree {
    files: BTreeMap<String, Vec<Token>>,
    /// Where `lib.rs` takes the names from that it has at the root of the crate; and macros that are exported.
    root: BTreeMap<String, String>,
    pub(crate) rooms: BTreeSet<String>,
    /// Files of modules under `#[cfg(test)]`, and what begins like these.
    tests: Vec<String>,
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
                        self.root.insert(third.text.clone(), room);
                    }
                }
                ("use", _) if file == "lib.rs" => {
                    let mut names = Vec::new();
                    use_tree(tokens, &mut (at + 1), &mut Vec::new(), &mut names);
                    for path in names {
                        self.root.insert(path.known_as, path.names[0].clone());
                    }
                }
                _ => {}
            }
        }
    }

    fn is_test(&self, file: &str) -> bool {
        let module = module_of(file).join("/");
        let is_in = |test: &String| module == *test || module.starts_with(&(test.clone() + "/"));
        self.tests.iter().any(is_in)
    }

    /// All imports that leave their room, in the order of files and lines.
    pub(crate) fn imports(&self) -> Vec<Import> {
        let mut imports = Vec::new();
        for (file, tokens) in &self.files {
            if let Some(room) = room_of(file)
                && !self.is_test(file)
            {
                self.imports_of(file, &room, tokens, &mut imports);
            }
        }
        imports.sort();
        imports.dedup();
        imports
    }

    fn imports_of(&self, file: &str, room: &str, tokens: &[Token], imports: &mut Vec<Import>) {
        let module = module_of(file);
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
                "crate" | "super" | "self"
                    if word(1) == "::" && (at == 0 || tokens[at - 1].text != "::") =>
                {
                    let inner = scopes.iter().filter(|scope| scope.module.is_some()).count();
                    let depth = module.len() + inner;
                    let mut names = Vec::new();
                    let mut end = at;
                    use_tree(tokens, &mut end, &mut Vec::new(), &mut names);
                    if !scopes.iter().any(|scope| scope.is_test) {
                        for path in names {
                            if let Some(first) = path.first_at_root(depth)
                                && let Some(to) = self.room_named(first, file, path.line)
                                && to != room
                            {
                                imports.push(Import {
                                    file: file.to_owned(),
                                    line: path.line,
                                    from: room.to_owned(),
                                    to,
                                    path: path.names.join("::"),
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

    /// The room of a name at the root of the crate; `None` if another crate's is re-exported there.
    fn room_named(&self, name: &str, file: &str, line: usize) -> Option<String> {
        if self.rooms.contains(name) {
            return Some(name.to_owned());
        }
        let Some(room) = self.root.get(name) else {
            panic!(
                "{file}:{line}: `crate::{name}`: no room has this name, and `lib.rs` does not re-export it"
            );
        };
        self.rooms.contains(room).then(|| room.clone())
    }

    /// A line for each room: what it imports from.
    pub(crate) fn arrows(&self) -> BTreeMap<String, BTreeMap<String, usize>> {
        let mut arrows: BTreeMap<String, BTreeMap<String, usize>> = BTreeMap::new();
        for room in &self.rooms {
            arrows.entry(room.clone()).or_default();
        }
        for import in self.imports() {
            *arrows
                .entry(import.from)
                .or_default()
                .entry(import.to)
                .or_default() += 1;
        }
        arrows
    }
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
