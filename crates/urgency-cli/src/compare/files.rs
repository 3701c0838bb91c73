//! The results of the parts as files: JSON, one array of rows for each part.

use super::{Error, Options};
use serde::{Serialize, de::DeserializeOwned};
use std::path::PathBuf;

fn path(options: &Options, part: &str) -> PathBuf {
    options.save.join(format!("{part}.json"))
}

/// Writes the rows of a part.
pub fn save<R: Serialize>(options: &Options, part: &str, rows: &[R]) -> Result<(), Error> {
    let path = path(options, part);
    let lines: Vec<_> = rows
        .iter()
        .map(|row| serde_json::to_string(row).expect("names and numbers can be JSON"))
        .collect();
    let text = format!("[\n{}\n]\n", lines.join(",\n"));
    write(path, &text)
}

/// Writes a file and the directories above it.
pub fn write(path: PathBuf, text: &str) -> Result<(), Error> {
    let directory = path.parent().map_or(Ok(()), std::fs::create_dir_all);
    directory
        .and_then(|()| std::fs::write(&path, text))
        .map_err(|cause| Error::File {
            path,
            cause: cause.to_string(),
        })
}

/// Reads the rows of a part that was measured before; `what` is for the error's words.
pub fn load<R: DeserializeOwned>(
    options: &Options,
    part: &str,
    what: &'static str,
) -> Result<Vec<R>, Error> {
    let path = path(options, part);
    let Ok(text) = std::fs::read_to_string(&path) else {
        return Err(Error::Missing { what, path });
    };
    serde_json::from_str(&text).map_err(|cause| Error::File {
        path,
        cause: cause.to_string(),
    })
}
