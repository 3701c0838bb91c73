//! The rooms inside a room, in trees that are made up.

use super::{Floor, take_out};
use crate::tree::{TRUNK, Tree};

/// The complaints about the rooms inside of `house`, a trunk with the folders `cellar` and `attic`, with these files.
fn complaints(trunk: &str, cellar: &str, attic: &str) -> Vec<String> {
    let tree = Tree::of([
        ("lib.rs", "mod house; pub use house::attic::Roof;"),
        (
            "house/mod.rs",
            "mod wall; mod cellar; mod attic; #[cfg(test)] mod tests;",
        ),
        ("house/wall.rs", trunk),
        (
            "house/wall/brick.rs",
            "use super::Base; use crate::house::tests::count;",
        ),
        ("house/tests/mod.rs", "use crate::house::attic::Roof;"),
        ("house/cellar/mod.rs", "mod stairs;"),
        ("house/cellar/stairs.rs", cellar),
        (
            "house/attic/mod.rs",
            "use crate::house::{wall::Base, cellar::stairs::Step};",
        ),
        ("house/attic/beam.rs", attic),
    ]);
    let floors: &[Floor] = &[("1", &[(TRUNK, ""), ("cellar", ""), ("attic", "")])];
    let mut rooms = tree.rooms_inside("house");
    let mut complaints = take_out(&["house::attic::beam::Beam"], TRUNK, &mut rooms);
    complaints.extend(super::complaints(&rooms, floors));
    complaints
}

/// What the trunk of [`complaints`] is to have.
const FIELD: &str = "use super::attic::beam::Beam;";

#[test]
fn inside_a_room_every_form_of_a_path_upwards_is_seen() {
    for (trunk, cellar) in [
        ("", "use crate::house::attic::Roof;"),
        ("", "use crate::Roof;"),
        ("", "use super::super::{wall::Base, attic::Roof};"),
        ("", "fn f() { super::super::attic::g() }"),
        ("", "mod deeper { use super::super::super::attic::g; }"),
        ("", "use crate::house::attic::beam::Beam;"),
        ("use super::cellar::stairs::Step;", ""),
        ("use crate::house::attic::beam::Beams;", ""),
        ("fn f() { super::attic::beam::g() }", ""),
    ] {
        let trunk = format!("{FIELD} {trunk}");
        assert_eq!(complaints(&trunk, cellar, "").len(), 1, "{trunk} {cellar}");
    }
}

#[test]
fn inside_a_room_the_trunk_may_name_its_fields_and_folders_what_is_below() {
    for (trunk, cellar, attic) in [
        ("", "", ""),
        ("fn f() { super::attic::beam::Beam::new() }", "", ""),
        (
            "",
            "use super::Cold; use super::super::{wall::Base, Work};",
            "",
        ),
        (
            "",
            "",
            "use super::super::cellar::stairs; use super::Roof; use crate::Roof as R;",
        ),
        ("use self::brick::attic; use super::tests::count;", "", ""),
    ] {
        let trunk = format!("{FIELD} {trunk}");
        assert_eq!(
            complaints(&trunk, cellar, attic),
            Vec::<String>::new(),
            "{trunk} {cellar} {attic}"
        );
    }
    assert_eq!(
        complaints("", "", ""),
        ["`trunk` does not import `house::attic::beam::Beam`: take it out of FIELDS or SHOWN"]
    );
}
