//! The name under which a package depends on the library, as its manifest says it.
//!
//! An attribute's expansion has to name the library, and has no way to ask the compiler for its name. A program that
//! was written for Tokio may depend on it as `tokio = { package = "urgency", .. }`, and then nothing else in it has to
//! change. So the manifest is read, line by line: a table of a dependency is on one line, or under a header of its own.
//! A name that only a workspace's manifest knows is not found; the option `crate` says it.

use std::path::Path;

/// The path of the library in the package that is being compiled.
pub(crate) fn library() -> String {
    let folder = std::env::var_os("CARGO_MANIFEST_DIR");
    let manifest = folder.and_then(|folder| {
        let path = Path::new(&folder).join("Cargo.toml");
        std::fs::read_to_string(path).ok()
    });
    let name = manifest.as_deref().and_then(renamed);
    format!("::{}", name.unwrap_or("urgency").replace('-', "_"))
}

/// The name that a manifest gives to the package `urgency`, if it gives another one.
fn renamed(manifest: &str) -> Option<&str> {
    let mut header = "";
    for line in manifest.lines().map(str::trim) {
        if let Some(name) = line.strip_prefix('[') {
            header = name.trim_end_matches(']');
        } else if names_package(line) {
            // `[dependencies.name]`; or below `[dependencies]`, `name = { .. }` or `name.package = ..`.
            let key = line.split('=').next()?.trim();
            let name = match key {
                "package" => header.rsplit('.').next()?,
                key => key.strip_suffix(".package").unwrap_or(key),
            };
            return Some(name.trim().trim_matches('"'));
        }
    }
    None
}

/// Whether the line says that the package of a dependency is the library.
fn names_package(line: &str) -> bool {
    let comment = line.starts_with('#');
    !comment
        && line.match_indices("package").any(|(at, word)| {
            let value = line[at + word.len()..].trim_start().strip_prefix('=');
            value.is_some_and(|value| value.trim_start().starts_with("\"urgency\""))
        })
}

#[cfg(test)]
mod tests {
    use super::renamed;

    #[test]
    fn a_dependency_under_another_name_is_found_on_one_line_and_below_a_header() {
        let one_line =
            "[dependencies]\nbytes = \"1\"\ntokio = { package = \"urgency\", features = [] }\n";
        assert_eq!(renamed(one_line), Some("tokio"));
        let header = "[package]\nname = \"x\"\n[dependencies.my-tokio]\nversion = \"1\"\npackage=\"urgency\"\n";
        assert_eq!(renamed(header), Some("my-tokio"));
    }

    #[test]
    fn a_dotted_key_names_a_package_and_a_comment_does_not() {
        let dotted = "[dependencies]\ntokio.package = \"urgency\"\ntokio.path = \"..\"\n";
        assert_eq!(renamed(dotted), Some("tokio"));
        let packager = "[dependencies]\npackager = { package = \"urgency\" }\n";
        assert_eq!(renamed(packager), Some("packager"));
        let comment = "[dependencies]\nurgency = \"1\"\n# tokio = { package = \"urgency\" }\n";
        assert_eq!(renamed(comment), None);
    }

    #[test]
    fn the_librarys_own_name_and_other_packages_are_no_renaming() {
        let manifest = "[package]\nname = \"urgency\"\n[dependencies]\nurgency = \"1\"\n\
                        web = { package = \"urgency-web\", version = \"1\" }\n";
        assert_eq!(renamed(manifest), None);
    }
}
