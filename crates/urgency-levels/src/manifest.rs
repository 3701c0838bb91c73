//! The name under which a package depends on the library, as its manifest says it.
//!
//! An attribute's expansion has to name the library, and has no way to ask the compiler for its name. A program that
//! was written for Tokio may depend on it as `tokio = { package = "urgency", .. }`, and then nothing else in it has to
//! change. So the manifest is read, line by line: a table of a dependency is on one line, or under a header of its own.
//! A dependency that a package inherits has its name in the manifest of the workspace, which is in a folder above. A
//! package that says in which folder its workspace is needs the option `crate`.

use std::{fs, path::Path};

/// The path of the library in the package that is being compiled.
pub(crate) fn library() -> String {
    let folder = std::env::var_os("CARGO_MANIFEST_DIR");
    let name = folder.and_then(|folder| {
        let read = |folder: &Path| fs::read_to_string(folder.join("Cargo.toml"));
        let own = read(Path::new(&folder)).ok()?;
        let workspace = || {
            let manifests = Path::new(&folder).ancestors().map(read);
            manifests.filter_map(Result::ok).find(|it| is_workspace(it))
        };
        name_in(&own, workspace)
    });
    format!(
        "::{}",
        name.as_deref().unwrap_or("urgency").replace('-', "_")
    )
}

/// The name that a package's manifest gives to the package `urgency`, or its workspace's, if either gives another one.
fn name_in(own: &str, workspace: impl FnOnce() -> Option<String>) -> Option<String> {
    if let Some(name) = renamed(own) {
        return Some(name.to_owned());
    }
    let workspace = workspace()?;
    let name = renamed(&workspace)?;
    inherits(own, name).then(|| name.to_owned())
}

fn is_workspace(manifest: &str) -> bool {
    let mut lines = manifest.lines().map(str::trim);
    lines.any(|line| line.starts_with("[workspace]") || line.starts_with("[workspace."))
}

/// Whether the package has the dependency of this name from its workspace.
fn inherits(manifest: &str, name: &str) -> bool {
    let mut header = "";
    manifest.lines().map(str::trim).any(|line| {
        if let Some(name) = line.strip_prefix('[') {
            header = name.trim_end_matches(']');
            return false;
        }
        let Some((key, value)) = line.split_once('=') else {
            return false;
        };
        // `name.workspace = true`, `name = { workspace = true }`, or below `[dependencies.name]`.
        match key.trim() {
            "workspace" => header.rsplit('.').next() == Some(name),
            key if key == name => value.contains("workspace"),
            key => key.strip_suffix(".workspace") == Some(name),
        }
    })
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
    use super::{is_workspace, name_in, renamed};

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

    #[test]
    fn a_dependency_that_a_package_inherits_has_the_name_that_its_workspace_gives() {
        let workspace = "[workspace]\nmembers = [\"a\"]\n[workspace.dependencies]\n\
                         tokio = { package = \"urgency\", version = \"1\" }\n";
        assert!(is_workspace(workspace));
        let name = |own| name_in(own, || Some(workspace.to_owned()));
        for inherits in [
            "[dependencies]\ntokio.workspace = true\n",
            "[dev-dependencies]\ntokio = { workspace = true, features = [\"full\"] }\n",
            "[dependencies.tokio]\nworkspace = true\n",
        ] {
            assert!(!is_workspace(inherits));
            assert_eq!(name(inherits).as_deref(), Some("tokio"), "{inherits}");
        }
        for own in [
            "[dependencies]\nurgency = \"1\"\n",
            "[package]\nversion.workspace = true\n[dependencies]\nbytes.workspace = true\n",
        ] {
            assert_eq!(name(own), None, "{own}");
        }
        let renames = "[dependencies]\nother = { package = \"urgency\", version = \"1\" }\n";
        assert_eq!(name(renames).as_deref(), Some("other"));
    }
}
