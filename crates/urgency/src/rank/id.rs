//! A level as a number, for levels that are chosen at run time.
//!
//! A `LevelId` carries the name that the program gave the level, for texts. Two that differ only in the name are equal.

use super::table::LevelTable;
use std::{
    cmp::Ordering,
    fmt,
    hash::{Hash, Hasher},
};

/// The rank of a level: 0 is the most urgent one, and there are at most [`LevelId::LIMIT`].
///
/// Ranks are a topological order of the levels: of two ordered levels, the more urgent one has the
/// smaller rank. Of two incomparable levels one has the smaller rank as well, so comparing ranks does not say which
/// level may wait for which. A level's type converts into its rank.
///
/// As a text it is the level's name. A `LevelId` that was made of a number has no name, and shows the number.
///
/// ```
/// use urgency::{LevelId, Runtime, levels};
///
/// levels! { App: Interactive > Batch }
///
/// let chosen: LevelId = if true { Batch.into() } else { Interactive.into() };
/// assert_eq!((chosen.rank(), chosen.name()), (1, Some("Batch")));
/// assert_eq!(chosen.to_string(), "Batch");
///
/// let of_a_number = LevelId::new(1).expect("less than 64");
/// assert_eq!(of_a_number, chosen);
/// assert_eq!(of_a_number.to_string(), "1");
/// assert_eq!(LevelId::new(LevelId::LIMIT as u8), None, "there are 64 levels at most");
/// assert_eq!(LevelId::MOST_URGENT.rank(), 0);
///
/// let runtime = Runtime::builder().levels::<App>().build()?;
/// let level = runtime.at(of_a_number).spawn(async { urgency::current_level().to_string() });
/// assert_eq!(level.get().unwrap(), "Batch");
/// # Ok::<(), urgency::BuildError>(())
/// ```
#[derive(Clone, Copy)]
pub struct LevelId {
    rank: u8,
    /// Empty if it is not known.
    name: &'static str,
}

impl LevelId {
    /// How many levels there can be: 64.
    pub const LIMIT: usize = LevelTable::LIMIT;

    /// The most urgent level.
    pub const MOST_URGENT: LevelId = LevelId::named(0, "");

    /// The level of this rank; `None` from [`LIMIT`](Self::LIMIT) on. Whether a runtime has this
    /// level is checked where it is used.
    pub const fn new(rank: u8) -> Option<LevelId> {
        if (rank as usize) < Self::LIMIT {
            Some(LevelId::named(rank, ""))
        } else {
            None
        }
    }

    /// The level of a rank that a runtime's table holds, with its name there.
    pub(crate) const fn named(rank: u8, name: &'static str) -> LevelId {
        debug_assert!((rank as usize) < Self::LIMIT);
        LevelId { rank, name }
    }

    /// The rank of this level, 0 for the most urgent one.
    #[inline]
    pub const fn rank(self) -> u8 {
        self.rank
    }

    /// The name that the program gave this level; `None` if it was made of a number.
    pub const fn name(self) -> Option<&'static str> {
        if self.name.is_empty() {
            None
        } else {
            Some(self.name)
        }
    }
}

impl PartialEq for LevelId {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        self.rank == other.rank
    }
}

impl Eq for LevelId {}

impl PartialOrd for LevelId {
    #[inline]
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for LevelId {
    #[inline]
    fn cmp(&self, other: &Self) -> Ordering {
        self.rank.cmp(&other.rank)
    }
}

impl Hash for LevelId {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.rank.hash(state);
    }
}

impl fmt::Display for LevelId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.pad(name),
            None => fmt::Display::fmt(&self.rank, f),
        }
    }
}

impl fmt::Debug for LevelId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => write!(f, "LevelId({}, {name})", self.rank),
            None => write!(f, "LevelId({})", self.rank),
        }
    }
}
