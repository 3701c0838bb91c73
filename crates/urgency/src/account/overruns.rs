//! What lost its worker to relief, by name.
//!
//! A cold account: it is written when work comes back that had kept a worker from others for more than a relief period.
//! The names are the type names of closures and futures. The compiler makes them of the path of the function in which
//! the closure or future is written, so they lead to the place.

use crate::sys::{clock, fork::Process, mutex::Mutex};
use std::{collections::HashMap, fmt, time::Duration};

/// The name of a type, made when it is asked for.
pub(crate) type Name = fn() -> &'static str;

/// So many different pieces of work are told apart; what comes then is counted under [`OTHERS`].
const MOST: usize = 256;
const OTHERS: &str = "others";

/// Work that did not come to a scheduling point while others waited, so that relief took its worker; see
/// [`Stats::overruns`](crate::Stats::overruns). Its thread may be lowered in the kernel's scheduler until it does,
/// and a thread or process that it makes meanwhile stays there: see
/// [`Builder::lower_threads`](crate::Builder::lower_threads).
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Overrun {
    /// The name of the type of the closure or future, as [`std::any::type_name`] gives it: it contains the path of the
    /// function that wrote it, perhaps inside types of this library.
    pub what: &'static str,
    /// The name of its level.
    pub level: &'static str,
    /// How often it came back after it had lost its worker to relief. This is counted when its thread comes to the
    /// scheduler, which may be a moment after its result is there.
    pub times: u64,
    /// How many of it go on now, and have not come back since they lost their workers. A loop that never ends and never
    /// checks in is found by this alone.
    pub now: usize,
    /// The longest that it went on, of what came back and of what goes on now. (It may have had a worker again, and
    /// not have noticed.)
    pub longest: Duration,
}

/// Work that goes on after it has lost its worker to relief.
#[derive(Debug)]
pub(crate) struct GoesOn {
    pub(crate) what: Name,
    pub(crate) level: u8,
    /// For so long so far.
    pub(crate) ticks: u64,
}

impl Overrun {
    /// Nothing of it goes on any more.
    pub(crate) fn come_back(&mut self) {
        self.times += std::mem::take(&mut self.now) as u64;
    }

    /// What came back after the snapshot `earlier`, or goes on.
    pub(crate) fn since(now: &[Overrun], earlier: &[Overrun]) -> Vec<Overrun> {
        let before = |of: &Overrun| {
            let same = |one: &&Overrun| one.what == of.what && one.level == of.level;
            earlier.iter().find(same).map_or(0, |one| one.times)
        };
        let later = |of: &Overrun| Overrun {
            times: of.times.saturating_sub(before(of)),
            ..*of
        };
        let is_new = |one: &Overrun| one.times != 0 || one.now != 0;
        now.iter().map(later).filter(is_new).collect()
    }
}

/// The most characters of a label.
const LABEL: usize = 80;

/// The path of the function that wrote the code, without types and closures around it, at most 80
/// characters: short enough for a label of a metric. Closures of one function have the same text, so add up what has
/// the same label.
///
/// ```
/// use urgency::{Overrun, Runtime};
///
/// fn reindex() {
///     let end = std::time::Instant::now() + std::time::Duration::from_millis(50);
///     while std::time::Instant::now() < end {} // no scheduling point
/// }
///
/// let runtime = Runtime::builder().workers(1).build()?;
/// let late = runtime.spawn_fn(|| reindex());
/// runtime.spawn(async {}).get().unwrap(); // waits, so relief takes the worker
/// late.get().unwrap();
/// let overruns: Vec<Overrun> = runtime.stats().overruns;
/// for overrun in overruns {
///     println!("{overrun}, level {}: {} times", overrun.level, overrun.times);
/// }
/// # Ok::<(), urgency::BuildError>(())
/// ```
impl fmt::Display for Overrun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(label(self.what))
    }
}

/// The path of the program's own code, cut to a label. The end of a path says the most, so a long path loses its
/// beginning.
fn label(what: &str) -> &str {
    let path = own_path(what);
    let path = path.split("::{{").next().unwrap_or(path);
    let mut begin = path.len().saturating_sub(LABEL);
    while !path.is_char_boundary(begin) {
        begin += 1;
    }
    &path[begin..]
}

/// The path in a type's name that leads to the program's own code: the path of the first closure or async block outside
/// the crates through which code is spawned, or else the first other path outside them. A name without either is cut
/// before its parameters.
pub(crate) fn own_path(what: &str) -> &str {
    const CARRIERS: [&str; 7] = [
        "urgency",
        "urgency_web",
        "core",
        "alloc",
        "std",
        "axum",
        "hyper",
    ];
    let is_path = |c: char| c.is_alphanumeric() || "_:{}".contains(c);
    let is_own = |path: &&str| {
        let root = path.split_once("::").map(|(root, _)| root);
        root.is_some_and(|root| !root.is_empty() && !CARRIERS.contains(&root))
    };
    let own = || what.split(|c| !is_path(c)).filter(is_own);
    let of_closure = own().find(|path| path.contains("{{"));
    let path = of_closure.or_else(|| own().next());
    // A boxed future has neither. What spawned it is the library's, and says nothing.
    let carried = || what.rsplit("carried::Carried<").next().unwrap_or(what);
    path.unwrap_or_else(|| carried().split('<').next().unwrap_or(what))
}

/// See the module's text.
#[derive(Debug, Default)]
pub(crate) struct Overruns(Mutex<ByNameAndLevel>);

/// How often, how many now, and the longest in ticks.
type ByNameAndLevel = HashMap<(&'static str, u8), (u64, usize, u64)>;

/// The entry of this work in an account, which tells so many apart.
fn entry(all: &mut ByNameAndLevel, name: Name, level: u8) -> &mut (u64, usize, u64) {
    let mut key = (name(), level);
    if all.len() >= MOST && !all.contains_key(&key) {
        key.0 = OTHERS;
    }
    all.entry(key).or_default()
}

impl Overruns {
    /// Something came back after `ticks` without its worker.
    pub(crate) fn note(&self, name: Name, level: u8, ticks: u64) {
        let mut all = self.0.lock();
        let (times, _, longest) = entry(&mut all, name, level);
        *times += 1;
        *longest = ticks.max(*longest);
    }

    /// All of them and what goes on, what went on for longest first. Without what came back, if the lock is lost in a
    /// child of `fork`.
    pub(crate) fn list(
        &self,
        levels: &[&'static str],
        goes_on: Vec<GoesOn>,
        process: Process,
    ) -> Vec<Overrun> {
        let came_back = self.0.lock_in(process).map(|all| all.clone());
        let mut overruns = came_back.unwrap_or_default();
        for one in goes_on {
            let (_, now, longest) = entry(&mut overruns, one.what, one.level);
            *now += 1;
            *longest = one.ticks.max(*longest);
        }
        let mut list: Vec<_> = overruns
            .iter()
            .map(|(&(what, level), &(times, now, longest))| Overrun {
                what,
                level: levels[usize::from(level)],
                times,
                now,
                longest: clock::to_duration(longest),
            })
            .collect();
        list.sort_by(|a, b| (b.longest, a.what).cmp(&(a.longest, b.what)));
        list
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_work_is_one_entry_and_there_is_a_limit_to_their_number() {
        let overruns = Overruns::default();
        for ticks in [3, 9, 5] {
            overruns.note(|| "a", 0, ticks);
        }
        overruns.note(|| "a", 1, 1);
        let list = overruns.list(&["up", "low"], vec![], Process::this());
        assert_eq!(list.len(), 2);
        assert_eq!((list[0].what, list[0].level, list[0].times), ("a", "up", 3));
        for level in 0..=u8::MAX {
            overruns.note(|| "b", level, 1);
        }
        overruns.note(|| "c", 0, 1);
        let all = overruns.0.lock();
        assert!(all.contains_key(&(OTHERS, 0)) && !all.contains_key(&("c", 0)));
    }

    #[test]
    fn what_goes_on_is_listed_beside_what_came_back() {
        let overruns = Overruns::default();
        overruns.note(|| "a", 0, 3);
        let goes_on = |what: Name, ticks| GoesOn {
            what,
            level: 0,
            ticks,
        };
        let now = || vec![goes_on(|| "b", 9), goes_on(|| "a", 2), goes_on(|| "b", 5)];
        let list = overruns.list(&["up"], now(), Process::this());
        let counts: Vec<_> = list.iter().map(|it| (it.what, it.times, it.now)).collect();
        assert_eq!(counts, [("b", 0, 2), ("a", 1, 1)]);
        assert_eq!(Overrun::since(&list, &list).len(), 2, "they still go on");
        let later = overruns.list(&["up"], vec![], Process::this());
        assert!(Overrun::since(&later, &list).is_empty());
        assert_eq!((later.len(), later[0].now), (1, 0));
    }

    #[test]
    fn a_label_is_the_path_of_the_programs_own_function() {
        let long = format!("app::{}::run::{{{{closure}}}}", "deep".repeat(40));
        for (what, expected) in [
            ("app::index::reindex::{{closure}}", "app::index::reindex"),
            (
                "urgency::level::at::TypedAt<app::Batch>::spawn_fn<app::main::{{closure}}, app::Rows>::{{closure}}",
                "app::main",
            ),
            (
                "core::pin::Pin<alloc::boxed::Box<app::Job<u32>>>",
                "app::Job",
            ),
            ("<app::Pool as app::Serve>::run::{{closure}}", "app::Pool"),
            ("urgency::time::sleep::Sleep", "urgency::time::sleep::Sleep"),
            (
                "urgency::spawn::carried::Carried<core::pin::Pin<alloc::boxed::Box<dyn core::future::Future>>>",
                "core::pin::Pin",
            ),
            ("others", "others"),
            ("", ""),
        ] {
            assert_eq!(label(what), expected);
        }
        assert!(label(&long).len() <= LABEL && label(&long).ends_with("deep::run"));
    }

    #[test]
    fn what_is_new_since_a_snapshot_is_what_came_back_after_it() {
        let overruns = Overruns::default();
        overruns.note(|| "a", 0, 3);
        overruns.note(|| "b", 0, 3);
        let before = overruns.list(&["up"], vec![], Process::this());
        overruns.note(|| "b", 0, 9);
        let since = Overrun::since(&overruns.list(&["up"], vec![], Process::this()), &before);
        assert_eq!(since.len(), 1);
        assert_eq!((since[0].what, since[0].times), ("b", 1));
    }
}
