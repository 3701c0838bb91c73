//! Counts the words of many files in parallel: a scope reads them, `join` merges the counts.
//!
//! `cargo run --release -p urgency --example word_count [FILE...]`; without a file, this library's own sources.
use std::{
    collections::HashMap,
    env, fs, io,
    path::{Path, PathBuf},
};

type Counts = HashMap<String, usize>;

fn count(text: &str) -> Counts {
    let mut counts = Counts::new();
    let words = text.split(|c: char| !c.is_alphabetic());
    for word in words.filter(|word| !word.is_empty()) {
        *counts.entry(word.to_lowercase()).or_default() += 1;
    }
    counts
}

/// Divide and conquer: any free worker merges the second half.
fn merge(counts: &mut [Counts]) -> Counts {
    match counts {
        [] => Counts::new(),
        [one] => std::mem::take(one),
        many => {
            let (left, right) = many.split_at_mut(many.len() / 2);
            let (mut into, from) = urgency::join(|| merge(left), || merge(right));
            for (word, times) in from {
                *into.entry(word).or_default() += times;
            }
            into
        }
    }
}

fn sources(folder: &Path, found: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            sources(&path, found)?;
        } else {
            found.push(path);
        }
    }
    Ok(())
}

fn main() -> io::Result<()> {
    let mut paths: Vec<PathBuf> = env::args_os().skip(1).map(PathBuf::from).collect();
    if paths.is_empty() {
        sources(
            &Path::new(env!("CARGO_MANIFEST_DIR")).join("src"),
            &mut paths,
        )?;
    }

    let mut results: Vec<io::Result<Counts>> = Vec::new();
    results.resize_with(paths.len(), || Ok(Counts::new()));
    // The children borrow the paths and write into the results of this frame.
    urgency::scope(|s| {
        for (path, result) in paths.iter().zip(&mut results) {
            s.spawn(move || {
                let text = urgency::blocking(|| fs::read_to_string(path));
                *result = text.map(|text| count(&text));
            });
        }
    });

    let mut counts = results.into_iter().collect::<io::Result<Vec<_>>>()?;
    let mut words: Vec<_> = merge(&mut counts).into_iter().collect();
    words.sort_unstable_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    println!("{} words in {} files", words.len(), paths.len());
    for (word, times) in words.iter().take(10) {
        println!("{times:6} {word}");
    }
    Ok(())
}
