//! The limits of a runtime on admitted tasks, by level: kept here for `life/admission.rs`, which makes semaphores of
//! them.
//!
//! A semaphore counts the admitted tasks, and belongs to a room above: the scheduler runs its waiters. So the scheduler
//! has the numbers, and a place for the semaphores that are made when a limit is first asked for.

use crate::rank::LevelId;
use std::{any::Any, fmt, sync::OnceLock};

/// See the module's text.
pub(crate) struct Capacities {
    levels: usize,
    limits: Box<[(LevelId, u32)]>,
    made: OnceLock<Box<dyn Any + Send + Sync>>,
}

impl Capacities {
    /// For so many levels. Of two limits of one level the later counts.
    pub(crate) fn new(levels: usize, limits: &[(LevelId, u32)]) -> Self {
        Capacities {
            levels,
            limits: limits.into(),
            made: OnceLock::new(),
        }
    }

    /// What `make` made of the number of levels and the limits, once. All callers use one type.
    pub(crate) fn made<T: Send + Sync + 'static>(
        &self,
        make: impl FnOnce(usize, &[(LevelId, u32)]) -> T,
    ) -> &T {
        let made = self
            .made
            .get_or_init(|| Box::new(make(self.levels, &self.limits)));
        made.downcast_ref().expect("one caller, one type")
    }
}

impl fmt::Debug for Capacities {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.limits.iter()).finish()
    }
}
