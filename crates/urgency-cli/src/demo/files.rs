//! The files that the demo writes, probed before anything is measured: a run whose results cannot be kept
//! must fail at once, not at its end.

use super::error::Error;
use std::{fs, path::Path};
use urgency_measure::output;

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
        output::probe(self.path).map_err(self.failed())
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

/// Whether two paths name one file, which would be written twice. Devices can be.
pub fn are_one(one: &Path, other: &Path) -> bool {
    let place = |path: &Path| {
        let directory = path
            .parent()
            .filter(|parent| !parent.as_os_str().is_empty());
        let directory = fs::canonicalize(directory.unwrap_or(Path::new(".")));
        let whole = || Some(directory.ok()?.join(path.file_name()?));
        fs::canonicalize(path).ok().or_else(whole)
    };
    match (place(one), place(other)) {
        (Some(one), Some(other)) => one == other && (!one.exists() || one.is_file()),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probing_through_a_link_to_nothing_leaves_the_link() {
        let name = format!("urgency-probe-link-{}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        fs::create_dir_all(&directory).expect("a directory for temporary files");
        let (link, target) = (directory.join("link"), directory.join("target"));
        std::os::unix::fs::symlink(&target, &link).expect("a link");
        wanted(&link).probe().expect("it can be written");
        assert!(fs::symlink_metadata(&link).is_ok(), "the link is gone");
        assert!(!target.exists());
        fs::remove_dir_all(&directory).expect("it is there");
    }

    #[test]
    fn one_file_with_two_paths_is_known_as_one() {
        for (one, other, are) in [
            ("x", "./x", true),
            ("/tmp/one.svg", "/tmp/../tmp/one.svg", true),
            ("x", "y", false),
            ("/dev/null", "/dev/null", false),
            ("/no/such/place/x", "/no/such/place/x", false),
        ] {
            assert_eq!(are_one(Path::new(one), Path::new(other)), are, "{one}");
        }
    }

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
