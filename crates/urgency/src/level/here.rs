//! From untyped code into typed code of the level at which it runs anyway.
//!
//! A handler of a web server, a callback of another crate: the caller runs at some level, and no type says which. The
//! check at run time is the bridge; behind it the types take over again. A body that gets its [`Cx`](super::Cx) in this
//! way is part of the task that asked, so it runs at that task's level for its whole life (rule 3 of `cx.rs`).

use super::{Level, LevelId, Levels};
use crate::sched::stack::{FOR_ANYTHING, Stack};
use std::{any::TypeId, fmt};

/// Code asked for the proof of a level at which it does not run; see [`Level::here`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WrongLevel {
    wanted: LevelId,
    found: Option<LevelId>,
}

impl WrongLevel {
    /// The level that was asked for.
    pub fn wanted(&self) -> LevelId {
        self.wanted
    }

    /// The level at which the code runs; `None` on a plain thread, which has none.
    pub fn found(&self) -> Option<LevelId> {
        self.found
    }
}

impl fmt::Display for WrongLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let wanted = self.wanted;
        match self.found {
            Some(found) => write!(
                f,
                "code that runs at level `{found}` asked for the proof that it runs at `{wanted}`; let it run at \
                 `{wanted}` (for requests: a rule of the `LevelLayer`), or ask for `{found}`"
            ),
            None => write!(
                f,
                "a plain thread asked for the proof that it runs at level `{wanted}`, and it has no level; use \
                 `{wanted}.on(&runtime).run(..)` or `{wanted}.on(&runtime).spawn(..)`"
            ),
        }
    }
}

impl std::error::Error for WrongLevel {}

/// Whether the calling code was made at level `L`. A level to which it was raised does not count: that may end.
pub(super) fn check<L: Level>() -> Result<(), WrongLevel> {
    let wanted = L::LEVEL.into();
    Stack::with_own(|me| {
        let me = me.ok_or(WrongLevel {
            wanted,
            found: None,
        })?;
        let levels = &me.runtime().levels;
        let own = match me.waits_as() {
            FOR_ANYTHING => me.level(),
            level => level,
        };
        let is_of_order = levels
            .check(TypeId::of::<L::Order>(), L::Order::NAME)
            .is_ok();
        if is_of_order && own == L::RANK {
            return Ok(());
        }
        let found = Some(levels.named(own));
        Err(WrongLevel { wanted, found })
    })
}
