//! The results of the parts as files: JSON, one array of rows for each part.
//!
//! Each row has the conditions under which it was measured, and is a scale for others only under the same. A
//! contender's earlier rows stay until it has new ones: a comparison of some, or one that was interrupted,
//! loses nothing of the rest. What `--quick` gives is no measurement and has files of its own.

use super::{Error, Options};
use crate::demo::files::Wanted;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use std::fmt;
use std::path::{Path, PathBuf};

/// What a result depends on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Conditions {
    connections: usize,
    keys: u32,
    servers_on: String,
    client_on: String,
}

impl Conditions {
    fn of(options: &Options) -> Self {
        Conditions {
            connections: options.connections,
            keys: options.keys,
            servers_on: options.servers_on().to_string(),
            client_on: options.client_on().to_string(),
        }
    }
}

impl fmt::Display for Conditions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} connections and {} keys, servers on processors {}, client on {}",
            self.connections, self.keys, self.servers_on, self.client_on
        )
    }
}

/// A row in a file.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Kept<R> {
    /// The row.
    #[serde(flatten)]
    pub row: R,
    /// None: nobody knows.
    conditions: Option<Conditions>,
}

fn path(options: &Options, part: &str) -> PathBuf {
    let quick = if options.quick { "-quick" } else { "" };
    options.save.join(format!("{part}{quick}.json"))
}

/// Whether the rows of a part could be written now.
pub fn probe(options: &Options, part: &str) -> Result<(), Error> {
    probe_file("the raw results", "--save", &path(options, part))
}

/// Whether a file could be written now. The directories above it are made.
pub fn probe_file(what: &'static str, option: &'static str, path: &Path) -> Result<(), Error> {
    make_directory(path)?;
    Wanted { what, option, path }.probe().map_err(Error::Write)
}

/// The rows of a part that are there.
pub fn earlier<R: DeserializeOwned>(options: &Options, part: &str) -> Result<Vec<Kept<R>>, Error> {
    let path = path(options, part);
    let Ok(text) = std::fs::read_to_string(&path) else {
        return Ok(Vec::new());
    };
    serde_json::from_str(&text).map_err(|cause| Error::File {
        path,
        cause: format!("{cause}; these are no results of this part: move the file away"),
    })
}

/// Writes the rows of a part, after earlier ones.
pub fn save<R: Serialize>(
    options: &Options,
    part: &str,
    earlier: &[Kept<R>],
    rows: &[R],
) -> Result<(), Error> {
    let conditions = Some(Conditions::of(options));
    let new = rows.iter().map(|row| {
        let conditions = conditions.clone();
        serde_json::to_string(&Kept { row, conditions })
    });
    let lines = earlier.iter().map(serde_json::to_string).chain(new);
    let lines: Vec<_> = lines
        .map(|line| line.expect("names and numbers can be JSON"))
        .collect();
    let text = format!("[\n{}\n]\n", lines.join(",\n"));
    write(path(options, part), &text)
}

/// Writes a file and the directories above it.
pub fn write(path: PathBuf, text: &str) -> Result<(), Error> {
    make_directory(&path)?;
    std::fs::write(&path, text).map_err(|cause| Error::File {
        path,
        cause: cause.to_string(),
    })
}

fn make_directory(path: &Path) -> Result<(), Error> {
    let directory = path.parent().map_or(Ok(()), std::fs::create_dir_all);
    directory.map_err(|cause| Error::File {
        path: path.to_owned(),
        cause: cause.to_string(),
    })
}

/// Reads the rows of a part that `is_wanted` takes and that were measured before under the same conditions;
/// `what` is for the error's words.
pub fn load<R: DeserializeOwned>(
    options: &Options,
    part: &str,
    what: &'static str,
    is_wanted: impl Fn(&R) -> bool,
) -> Result<Vec<R>, Error> {
    let conditions = Conditions::of(options);
    let mut rows = Vec::new();
    for kept in earlier::<R>(options, part)? {
        if kept.conditions.as_ref() == Some(&conditions) && is_wanted(&kept.row) {
            rows.push(kept.row);
        }
    }
    match rows.is_empty() {
        false => Ok(rows),
        true => Err(Error::Missing {
            what,
            conditions: conditions.to_string(),
            path: path(options, part),
        }),
    }
}
