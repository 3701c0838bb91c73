//! The floors of the library: a room (a folder or a file of `src/`) imports only from rooms below it.
//!
//! [`FLOORS`] is the order, and [`SCHED`] the order of the rooms inside `sched/`, its folders. This test reads the
//! sources as text (`paths.rs`, `tree.rs`) and needs nothing but the standard library, so `ci/floors.sh` builds it
//! alone in a second. What counts as an import:
//!
//! - a path that begins with `crate::`, in a `use` (each name of each group) and in the middle of code;
//! - a path of as many `super::` as leave the room, likewise;
//! - a name at the root of the crate (`crate::join`): it is an import from the room that `lib.rs` takes it from.
//!
//! What does not count: comments, so the links of the documentation; modules under `#[cfg(test)]`; and `lib.rs`, which
//! is above everything. Inside `sched/` the files beside the folders, the *trunk*, are the lowest room. They name the
//! types of what a core set, a job or a stack keeps for the rooms above: [`FIELDS`] has these, and each of them is in
//! use. Likewise [`SHOWN`] has the types that the room `runtime` shows to programs as its own, because Tokio has them
//! there, and takes from a room above. A method of a type is not seen. Where a room adds methods to a type from below
//! (`sched/switch/block.rs` adds `get` to `JoinHandle`), the rooms between them must not call these.

mod inside;
mod paths;
mod tree;

use std::{
    fmt::Write,
    path::{Path, PathBuf},
};
use tree::{Import, Rooms, TRUNK, Tree, circles};

/// A floor's name, and its rooms with what each is.
type Floor = (&'static str, &'static [(&'static str, &'static str)]);

/// The floors, the lowest first, and the rooms on each. A room may import the rooms that come before it in this list,
/// on its own floor as well.
const FLOORS: &[Floor] = &[
    (
        "0 system",
        &[(
            "sys",
            "clock, threads, primitives (of `std` or of loom), chaos",
        )],
    ),
    (
        "1 protocols",
        &[(
            "protocol",
            "small lock-free types, each with its loom model",
        )],
    ),
    (
        "2 mechanisms",
        &[
            (
                "rank",
                "levels as data: the number, the order, the table of a runtime",
            ),
            ("account", "counters, histograms, labels of overruns"),
            (
                "tasks",
                "a task: state, cell, wakers, handles; it knows its scheduler by a trait",
            ),
            ("reactor", "the poller, readiness, timers, the driver"),
            (
                "inherit",
                "what work inherits: deadline, locals, a recorded thread",
            ),
        ],
    ),
    (
        "3 scheduler",
        &[(
            "sched",
            "workers, stacks, pools; how a stack waits and blocks",
        )],
    ),
    (
        "4 runtime",
        &[
            (
                "runtime",
                "the builder, the handle, the way from any thread to its runtime",
            ),
            ("fork", "`join` and `scope`"),
            ("time", "sleeps, timeouts, intervals, the pausable clock"),
            ("spawn", "the door of tasks"),
        ],
    ),
    (
        "5 faces",
        &[
            ("policy", "the policies that a builder takes"),
            ("future", "combinations of futures"),
            ("level", "levels as types"),
            ("par", "parallel loops, scans, sorts"),
            ("sync", "locks, channels, and what else suspends"),
            ("life", "cancellation, scopes, deadlines, locals, admission"),
            ("jobs", "programs of their own on one set of cores"),
            ("task", "tasks as programs see them"),
            ("fs", "files"),
            ("io", "descriptors, standard streams"),
            ("net", "sockets"),
            ("signal", "signals of the system"),
            ("process", "child processes"),
            ("tokio_io", "Tokio's traits for the sockets"),
            (
                "embed",
                "for crates with a fork-join interface of their own",
            ),
            ("entry", "what the attributes `main` and `test` expand to"),
        ],
    ),
];

/// The rooms inside `sched`, in the same way. Here the trunk is below its folders, and imports [`FIELDS`] only.
const SCHED: &[Floor] = &[(
    "3 scheduler",
    &[
        (
            TRUNK,
            "what there is: core set, job, worker, stack, poll context",
        ),
        ("machine", "which workers run, and on which processors"),
        ("order", "the ready contexts of a level, and which is next"),
        ("share", "what each worker serves, if not simply prompt"),
        ("inherit", "what code has from other code"),
        ("rescue", "work that waits gets a worker"),
        ("forks", "which workers would come for a fork"),
        ("serve", "the loop: work gets in, is found, and runs"),
        ("switch", "how a worker changes threads"),
        ("poll", "which thread waits for events"),
        ("cores", "which job a worker serves"),
        ("doors", "what other rooms ask of the scheduler"),
    ],
)];

/// The types of the trunk's fields that belong to rooms above it.
const FIELDS: &[&str] = &[
    "sched::cores::Sharing",
    "sched::cores::Standing",
    "sched::doors::capacities::Capacities",
    "sched::doors::shutdown::Tasks",
    "sched::forks::held_back::HeldBack",
    "sched::forks::held_back::WakeUps",
    "sched::forks::pinned::Pinned",
    "sched::inherit::proxy::Proxy",
    "sched::machine::entitled::Entitled",
    "sched::machine::pins::Pin",
    "sched::machine::pins::PinnedTo",
    "sched::machine::pins::Pins",
    "sched::order::notes::Notes",
    "sched::order::pool::Pool",
    "sched::order::pools::Pools",
    "sched::rescue::demotion::DemotedStacks",
    "sched::rescue::overrunning::Overrunning",
    "sched::share::seats::SeatAssigner",
    "sched::switch::external::ExternalThreads",
    "sched::switch::thread_options::ThreadOptions",
    "sched::switch::threads::Threads",
];

/// The types that `runtime` shows to programs, and that are of rooms above it.
const SHOWN: &[&str] = &[
    "life::LocalOptions",
    "life::LocalRuntime",
    "life::LocalRuntimeEnterGuard",
];

/// What is wrong with the imports of these rooms, a line each: rooms without a floor, floors without a room, and
/// imports from a room above.
fn complaints(rooms: &Rooms, floors: &[Floor]) -> Vec<String> {
    let order: Vec<(&str, &str)> = floors
        .iter()
        .flat_map(|(floor, rooms)| rooms.iter().map(move |(room, _)| (*room, *floor)))
        .collect();
    let place = |room: &str| order.iter().position(|(known, _)| *known == room);
    let mut complaints = Vec::new();
    for room in &rooms.rooms {
        if place(room).is_none() {
            complaints.push(format!(
                "the room `{room}` has no floor: enter it in the list of tests/floors/main.rs"
            ));
        }
    }
    for (room, floor) in &order {
        if !rooms.rooms.contains(*room) {
            complaints.push(format!(
                "the room `{room}` on floor {floor} does not exist: take it out of the list"
            ));
        }
    }
    for Import {
        file,
        line,
        from,
        to,
        path,
        ..
    } in &rooms.imports
    {
        if let (Some(own), Some(other)) = (place(from), place(to))
            && own < other
        {
            let (own, other) = (order[own].1, order[other].1);
            complaints.push(format!(
                "{file}:{line}: `{path}` is an import from the room `{to}` (floor {other}), which is above `{from}` (floor {own})"
            ));
        }
    }
    complaints
}

/// Takes the imports of these types by one room out, and names the types that it does not import.
fn take_out(types: &[&str], room: &str, rooms: &mut Rooms) -> Vec<String> {
    let mut unused = types.to_vec();
    rooms.imports.retain(|import| {
        let is_of = |known: &&str| {
            let rest = import.full.strip_prefix(known);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
        };
        let known = types.iter().find(|known| is_of(known));
        let known = known.filter(|_| import.from == room);
        unused.retain(|other| Some(other) != known);
        known.is_none()
    });
    unused
        .iter()
        .map(|unused| {
            format!("`{room}` does not import `{unused}`: take it out of FIELDS or SHOWN")
        })
        .collect()
}

/// The table of the rooms, with what each imports from, for a reader of the test's output.
fn table(rooms: &Rooms, floors: &[Floor]) -> String {
    let arrows = rooms.arrows();
    let mut table = String::new();
    for (floor, rooms) in floors {
        for (room, what) in *rooms {
            let below: Vec<_> = arrows
                .get(*room)
                .into_iter()
                .flatten()
                .map(|(room, _)| room.as_str())
                .collect();
            writeln!(
                table,
                "{floor:13} {room:9} {what}\n{:24}imports: {}",
                "",
                below.join(" ")
            )
            .expect("a string");
        }
    }
    for circle in circles(&arrows) {
        writeln!(
            table,
            "a circle of {} rooms: {}",
            circle.len(),
            circle.join(" ")
        )
        .expect("a string");
    }
    table
}

/// Prints the table, and fails on any complaint, or on a circle.
fn check(rooms: &Rooms, floors: &[Floor], mut complaints: Vec<String>) {
    println!("{}", table(rooms, floors));
    complaints.extend(self::complaints(rooms, floors));
    assert!(
        complaints.is_empty(),
        "{}\nMove what is needed down to the lower room, or let the upper one hand it over.",
        complaints.join("\n")
    );
    assert_eq!(circles(&rooms.arrows()), Vec::<Vec<String>>::new());
}

#[test]
fn no_room_imports_from_a_room_above_it() {
    let mut rooms = Tree::read(&source()).rooms();
    let unused = take_out(SHOWN, "runtime", &mut rooms);
    check(&rooms, FLOORS, unused);
    assert!(
        rooms.imports.len() > 300,
        "the reader of paths found next to nothing"
    );
}

#[test]
fn no_room_inside_the_scheduler_imports_from_a_room_above_it() {
    let mut rooms = Tree::read(&source()).rooms_inside("sched");
    assert!(
        rooms.imports.len() > 200,
        "the reader of paths found next to nothing"
    );
    let unused = take_out(FIELDS, TRUNK, &mut rooms);
    check(&rooms, SCHED, unused);
}

/// Two floors, for trees that tests make up.
const TWO: &[Floor] = &[
    ("0", &[("low", ""), ("middle", "")]),
    ("1", &[("high", "")]),
];

const ROOT: &str = "mod low; mod middle; mod high; pub use {low::Base, high::{top, Top as Summit}}; \
                    pub use other_crate::Foreign;";

/// The complaints about a tree of three rooms whose lowest has this file, and `low/inner.rs` that one.
fn of_low(low: &str, inner: &str) -> Vec<String> {
    let tree = Tree::of([
        ("lib.rs", ROOT),
        ("low/mod.rs", low),
        ("low/inner.rs", inner),
        ("middle.rs", "use crate::low::Base;"),
        ("high.rs", "use crate::{low::{self, inner::Thing}, middle};"),
    ]);
    complaints(&tree.rooms(), TWO)
}

#[test]
fn an_upward_import_is_named_with_its_file_its_line_and_both_rooms() {
    let complaints = of_low("mod inner;\n\nuse crate::high::top;\n", "");
    assert_eq!(
        complaints,
        [
            "low/mod.rs:3: `crate::high::top` is an import from the room `high` (floor 1), which is above `low` (floor 0)"
        ]
    );
}

#[test]
fn every_form_of_a_path_upwards_is_seen() {
    for (low, inner) in [
        ("use crate::{middle::{a}, low::c};", ""),
        (
            "use crate::{\n    low::{c, d},\n    high::{e as f},\n};",
            "",
        ),
        ("fn f() { crate::high::g::<u8>() }", ""),
        ("fn f() -> Vec<crate::high::G> { Vec::new() }", ""),
        ("macro_rules! m { () => { $crate::high::g() } }", ""),
        ("use super::high::g;", ""),
        ("mod deeper { use super::super::high::g; }", ""),
        ("", "use super::super::high::g;"),
        ("", "fn f() { super::super::middle::g() }"),
        ("", "use super::super::{middle::g, low::h};"),
        ("", "use self::super::super::high::g;"),
        ("fn f() { crate::top() }", ""),
        ("use crate::{Base, Summit};", ""),
        ("pub use crate::high::*;", ""),
        (
            "const C: char = '\"'; use crate::high::g; const D: char = '\"';",
            "",
        ),
        ("fn f<'a>(_: &'a str) { crate::high::g() }", ""),
        ("const S: &str = r#\"\"\"#; use crate::high::g;", ""),
        ("mod tests { use crate::high::g; }", ""),
        ("#[cfg(not(test))] mod m { use crate::high::g; }", ""),
        ("#[cfg(test)] use crate::high::g;", ""),
    ] {
        assert_eq!(of_low(low, inner).len(), 1, "{low} {inner}");
    }
}

#[test]
fn what_stays_inside_or_goes_down_or_is_only_mentioned_is_allowed() {
    for (low, inner) in [
        (
            "use crate::low::inner::Thing; use crate::{Base, Foreign};",
            "use super::Base;",
        ),
        (
            "mod deeper { use super::inner::Thing; }",
            "use self::part::high; mod part { use super::super::Base; }",
        ),
        (
            "// use crate::high::g;\n/* crate::high /* nested */ crate::high */",
            "",
        ),
        (
            "/// See [`g`](crate::high::g).\nfn f() { print(\"crate::high::g \\\" crate::high\") }",
            "",
        ),
        (
            "#[cfg(test)] mod tests { use crate::high::g; fn f() { crate::middle::h() } }",
            "",
        ),
        ("#[cfg(all(test, loom))] mod inner;", "use crate::high::g;"),
        (
            "use other::crate_name::high; use std::high;",
            "use high::g;",
        ),
        (
            "pub(crate) fn f() {} pub(in crate::low) fn g() {}",
            "pub(super) fn h() {}",
        ),
    ] {
        assert_eq!(of_low(low, inner), Vec::<String>::new(), "{low} {inner}");
    }
}

#[test]
fn a_room_without_a_floor_and_a_floor_without_its_room_are_named() {
    let tree = Tree::of([
        ("lib.rs", ""),
        ("low.rs", ""),
        ("attic/mod.rs", ""),
        ("high.rs", ""),
    ]);
    let complaints = complaints(&tree.rooms(), TWO);
    assert_eq!(complaints.len(), 2);
    assert!(
        complaints[0].contains("`attic` has no floor")
            && complaints[1].contains("`middle` on floor 0")
    );
}

#[test]
fn rooms_that_import_each_other_are_a_circle() {
    let tree = Tree::of([
        ("lib.rs", ""),
        ("a.rs", "use crate::b::X;"),
        ("b.rs", "use crate::c::X;"),
        ("c.rs", "use crate::a::X;"),
        ("d.rs", "use crate::a::X;"),
    ]);
    assert_eq!(circles(&tree.rooms().arrows()), [["a", "b", "c"]]);
}

/// The library's sources, for `cargo test` and for a program that `ci/floors.sh` starts at the root of the tree.
fn source() -> PathBuf {
    Path::new(option_env!("CARGO_MANIFEST_DIR").unwrap_or("crates/urgency")).join("src")
}
