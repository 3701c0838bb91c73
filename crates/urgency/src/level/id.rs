//! A level as a number, for levels that are chosen at run time.

use super::{Level, table::LevelTable};
use std::fmt;

/// The rank of a level: 0 is the most urgent one, and there are at most [`LevelId::LIMIT`].
///
/// Ranks are a topological order of the levels: of two ordered levels, the more urgent one has the
/// smaller rank. Of two incomparable levels one has the smaller rank as well, so comparing ranks does
/// not say who may wait for whom. A level's type converts into its rank.
///
/// ```
/// use urgency::{LevelId, levels};
///
/// levels! { App: Interactive > Batch }
///
/// let chosen: LevelId = if true { Batch.into() } else { Interactive.into() };
/// assert_eq!(chosen.rank(), 1);
/// assert_eq!(LevelId::new(1), Some(chosen));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LevelId(u8);

impl LevelId {
    /// How many levels there can be: 64.
    pub const LIMIT: usize = LevelTable::LIMIT;

    /// The most urgent level.
    pub const MOST_URGENT: LevelId = LevelId(0);

    /// The level of this rank; `None` from [`LIMIT`](Self::LIMIT) on. Whether a runtime has this
    /// level is checked where it is used.
    pub const fn new(rank: u8) -> Option<LevelId> {
        if (rank as usize) < Self::LIMIT {
            Some(LevelId(rank))
        } else {
            None
        }
    }

    /// The level of a rank that a runtime's table holds.
    pub(crate) fn from_index(rank: u8) -> LevelId {
        debug_assert!(usize::from(rank) < Self::LIMIT);
        LevelId(rank)
    }

    /// The rank of this level, 0 for the most urgent one.
    #[inline]
    pub const fn rank(self) -> u8 {
        self.0
    }
}

/// A level of a runtime with the name that the program gave it.
///
/// Its text is the name and the rank: `` `Batch` (level 2) ``.
///
/// ```
/// use urgency::{Runtime, WaitErrorKind, levels};
///
/// levels! { App: Interactive > Batch }
///
/// let rt = Runtime::builder().levels::<App>().build()?;
/// let refused = rt.run_at(Interactive, || rt.spawn_at(Batch, async {}).get().unwrap_err());
/// let WaitErrorKind::Inversion { waiter, awaited } = refused.kind() else {
///     panic!("an interactive closure waited for a batch task");
/// };
/// assert_eq!((waiter.name(), awaited.name()), ("Interactive", "Batch"));
/// assert_eq!(awaited.to_string(), "`Batch` (level 1)");
/// # Ok::<(), urgency::BuildError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct NamedLevel {
    id: LevelId,
    name: &'static str,
}

impl NamedLevel {
    pub(super) fn new(id: LevelId, name: &'static str) -> Self {
        NamedLevel { id, name }
    }

    /// The level.
    pub fn id(self) -> LevelId {
        self.id
    }

    /// Its name in the program.
    pub fn name(self) -> &'static str {
        self.name
    }
}

impl fmt::Display for NamedLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` (level {})", self.name, self.id)
    }
}

impl<L: Level> From<L> for LevelId {
    #[inline]
    fn from(_: L) -> LevelId {
        LevelId(L::RANK)
    }
}

impl fmt::Display for LevelId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl fmt::Debug for LevelId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LevelId({})", self.0)
    }
}
