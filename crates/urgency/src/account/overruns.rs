//! What lost its worker to relief, by name.
//!
//! A cold account: it is written when work comes back that had kept a worker from others for more than a
//! relief period. The names are those of the types of closures and futures; the compiler makes them of the
//! path of the function in which they are written, so they lead to the place.

use crate::os::clock;
use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard},
    time::Duration,
};

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
    /// How often it came back after it had lost its worker to relief.
    pub times: u64,
    /// The longest that it went on without a worker.
    pub longest: Duration,
}

/// See the module's text.
#[derive(Debug, Default)]
pub(crate) struct Overruns(Mutex<ByNameAndLevel>);

/// How often, and the longest in ticks.
type ByNameAndLevel = HashMap<(&'static str, u8), (u64, u64)>;

impl Overruns {
    fn locked(&self) -> MutexGuard<'_, ByNameAndLevel> {
        self.0.lock().expect("nothing panics under this lock")
    }

    /// Something came back after `ticks` without its worker.
    pub(crate) fn note(&self, name: Name, level: u8, ticks: u64) {
        let mut all = self.locked();
        let mut key = (name(), level);
        if all.len() >= MOST && !all.contains_key(&key) {
            key.0 = OTHERS;
        }
        let (times, longest) = all.entry(key).or_default();
        *times += 1;
        *longest = ticks.max(*longest);
    }

    /// All of them, what went on for longest first.
    pub(crate) fn list(&self, levels: &[&'static str]) -> Vec<Overrun> {
        let mut list: Vec<_> = self
            .locked()
            .iter()
            .map(|(&(what, level), &(times, longest))| Overrun {
                what,
                level: levels[usize::from(level)],
                times,
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
        let list = overruns.list(&["up", "low"]);
        assert_eq!(list.len(), 2);
        assert_eq!((list[0].what, list[0].level, list[0].times), ("a", "up", 3));
        for level in 0..=u8::MAX {
            overruns.note(|| "b", level, 1);
        }
        overruns.note(|| "c", 0, 1);
        let all = overruns.locked();
        assert!(all.contains_key(&(OTHERS, 0)) && !all.contains_key(&("c", 0)));
    }
}
