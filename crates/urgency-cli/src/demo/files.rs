//! The files that the demo writes, probed before anything is measured: a run whose results cannot be kept
//! must fail at once, not at its end.
//!
//! Probing opens the file for appending, which changes nothing in a file that exists; one that did not exist
//! is removed again.

use super::error::Error;
use std::{
    fs::{self, OpenOptions},
    path::Path,
};

/// A file that the user asked for.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'a> {
    /// What it holds, for errors.
    pub what: &'static str,
    /// The option that names it.
    pub option: &'static str,
    /// Its path.
    pub path: &'a Path,
}

impl Wanted<'_> {
    /// Whether it could be written now.
    pub fn probe(self) -> Result<(), Error> {
        let existed = self.path.exists();
        OpenOptions::new()
            .append(true)
            .create(true)
            .open(self.path)
            .map_err(self.failed())?;
        match existed {
            true => Ok(()),
            false => fs::remove_file(self.path).map_err(self.failed()),
        }
    }

    /// Writes it.
    pub fn write(self, content: &str) -> Result<(), Error> {
        fs::write(self.path, content).map_err(self.failed())
    }

    fn failed(&self) -> impl FnOnce(std::io::Error) -> Error {
        let Wanted { what, option, path } = *self;
        let path = path.to_owned();
        move |cause| Error::Write {
            what,
            option,
            path,
            cause,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(path: &Path) -> Wanted<'_> {
        Wanted {
            what: "the picture",
            option: "--picture",
            path,
        }
    }

    #[test]
    fn probing_leaves_no_trace() {
        let directory = std::env::temp_dir().join(format!("urgency-probe-{}", std::process::id()));
        fs::create_dir_all(&directory).expect("a directory for temporary files");
        let path = directory.join("a.svg");
        wanted(&path).probe().expect("it can be written");
        assert!(!path.exists());
        wanted(&path).write("kept").expect("it can be written");
        wanted(&path).probe().expect("it can be written");
        assert_eq!(fs::read_to_string(&path).expect("it is there"), "kept");
        fs::remove_dir_all(&directory).expect("it is there");
    }

    #[test]
    fn a_place_that_is_none_is_an_error_that_names_it_and_the_option() {
        let error = wanted(Path::new("/no/such/place/a.svg"))
            .probe()
            .expect_err("there is no such directory");
        let text = error.to_string();
        for part in ["the picture", "/no/such/place/a.svg", "--picture PATH"] {
            assert!(text.contains(part), "{text}");
        }
    }
}
