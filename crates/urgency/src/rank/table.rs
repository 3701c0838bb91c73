//! The levels of one runtime, as data: how many, their names, which may wait for which.
//!
//! A runtime is built with one order. The table is a copy of the order's constants and never changes,
//! so looking into it needs no synchronisation. The rule of waiting is the policy crate's; the types
//! of the program enforce the same rule at compile time, and the scheduler asks here for every wait
//! whose levels the types do not know.
//!
//! Levels of two orders have the same numbers, so a number says nothing without its order: work of an
//! order that the runtime was not built with is refused ([`WrongOrder`]), instead of running at
//! whatever level has the same rank.

use super::{LevelId, Levels};
use std::any::TypeId;
use urgency_policy::order;

/// See the module's text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LevelTable {
    order: TypeId,
    name: &'static str,
    names: &'static [&'static str],
    above: &'static [u64],
}

impl LevelTable {
    /// The most levels that a table can have.
    pub(crate) const LIMIT: usize = order::MAX_LEVELS;

    /// The levels of the order `O`.
    ///
    /// An implementation of `Levels` that does not come from `levels!` may be nonsense; it is refused
    /// at compile time, where a runtime is built with it.
    pub(crate) fn of<O: Levels>() -> Self {
        const {
            assert!(
                !O::NAMES.is_empty() && O::NAMES.len() <= Self::LIMIT,
                "an order has 1 to 64 levels"
            );
            assert!(
                O::NAMES.len() == O::ABOVE.len(),
                "an order has one mask for each of its levels"
            );
        }
        LevelTable {
            order: TypeId::of::<O>(),
            name: O::NAME,
            names: O::NAMES,
            above: O::ABOVE,
        }
    }

    /// The number of levels, 1 to 64. Every rank below it is a level.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.names.len()
    }

    /// The names of the levels by rank.
    pub(crate) fn names(&self) -> &'static [&'static str] {
        self.names
    }

    /// A level with its name; a rank that only another runtime has is called `?`.
    pub(crate) fn named(&self, rank: u8) -> LevelId {
        let name = self.names.get(usize::from(rank)).copied().unwrap_or("?");
        LevelId::named(rank, name)
    }

    /// May work at the level of rank `waiter` wait for work at the level of rank `awaited`?
    #[inline]
    pub(crate) fn may_wait(&self, waiter: u8, awaited: u8) -> bool {
        order::may_wait(self.above, waiter, awaited)
    }

    /// Does a runtime with these levels accept work of this order?
    #[inline]
    pub(crate) fn check(&self, order: TypeId, name: &'static str) -> Result<(), WrongOrder> {
        if self.order == order {
            Ok(())
        } else {
            Err(WrongOrder {
                used: name,
                built_with: self.name,
            })
        }
    }
}

/// A level was used in a runtime that was built with the levels of another order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WrongOrder {
    used: &'static str,
    built_with: &'static str,
}

impl WrongOrder {
    /// The name of the order whose level was used.
    pub fn used(&self) -> &'static str {
        self.used
    }

    /// The name of the order that the runtime was built with.
    pub fn built_with(&self) -> &'static str {
        self.built_with
    }
}

error_text!(WrongOrder, |it| format_args!(
    "a level of the order `{used}` was used in a runtime that was built with the levels of `{built_with}`; build the \
     runtime with `Runtime::builder().levels::<{used}>()` and use the level inside it, or use a level of \
     `{built_with}`",
    used = it.used,
    built_with = it.built_with,
));
