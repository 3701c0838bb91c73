//! What a text names exists: the tests that prove the guarantees, and the files that comments send a reader to.

use std::{
    fs,
    path::{Path, PathBuf},
};

fn walk(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if path.is_dir() && name != "target" && !name.starts_with('.') {
            walk(&path, found);
        } else if path.is_file() {
            found.push(path);
        }
    }
}

fn sources() -> (Vec<PathBuf>, Vec<(PathBuf, String)>) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut files = Vec::new();
    walk(&root, &mut files);
    let rust = files
        .iter()
        .filter(|file| file.extension() == Some("rs".as_ref()));
    let texts = rust.map(|file| (file.clone(), fs::read_to_string(file).unwrap()));
    let texts = texts.collect();
    (files, texts)
}

/// What stands in backticks in the comments of a text, with the number of the line.
fn in_backticks(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let lines = text.lines().enumerate();
    let comments = lines.filter_map(|(number, line)| Some((number + 1, line.split_once("//")?.1)));
    comments.flat_map(|(number, comment)| {
        let words = comment.split('`').skip(1).step_by(2);
        words.map(move |word| (number, word))
    })
}

#[test]
fn every_test_that_a_guarantee_names_exists() {
    let lib = include_str!("../src/lib.rs");
    let from = lib.find("//! # Guarantees").unwrap();
    let to = lib.find("//! # Errors").unwrap();
    let (_, texts) = sources();
    let is_name = |word: &&str| {
        let plain = word
            .chars()
            .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
        plain && word.matches('_').count() > 2
    };
    let names: Vec<&str> = in_backticks(&lib[from..to])
        .map(|(_, word)| word)
        .filter(is_name)
        .collect();
    assert!(names.len() > 30, "the guarantees were not found");
    let exists = |name: &&str| {
        texts
            .iter()
            .any(|(_, text)| text.contains(&format!("fn {name}(")))
    };
    let missing: Vec<&str> = names.into_iter().filter(|name| !exists(name)).collect();
    assert!(missing.is_empty(), "no test has these names: {missing:#?}");
}

#[test]
fn every_source_file_that_a_comment_names_exists() {
    let (files, texts) = sources();
    let is_path = |word: &str| {
        let plain = word
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "_-./".contains(c));
        plain && word.ends_with(".rs") && !word.starts_with('.')
    };
    let mut missing = Vec::new();
    for (file, text) in &texts {
        // Its comments are examples of comments.
        if file.ends_with("tests/floors/main.rs") {
            continue;
        }
        for (line, word) in in_backticks(text).filter(|(_, word)| is_path(word)) {
            if !files.iter().any(|file| file.ends_with(word)) {
                missing.push(format!("{}:{line}: {word}", file.display()));
            }
        }
    }
    assert!(missing.is_empty(), "no file has these paths: {missing:#?}");
}
