//! A set whose tasks start at a certain level.

use super::JoinSet;
use crate::{
    life::held::Held,
    rank::LevelId,
    spawn::{At, at},
    tasks::AbortHandle,
};
use std::future::Future;

/// A [`JoinSet`] at a level; see [`JoinSet::at`].
#[derive(Debug)]
pub struct JoinSetAt<'a, T> {
    set: &'a mut JoinSet<T>,
    at: At,
}

impl<T: Send + 'static> JoinSetAt<'_, T> {
    /// As [`JoinSet::spawn`], at the level.
    pub fn spawn(&mut self, future: impl Future<Output = T> + Send + 'static) -> AbortHandle {
        let held = Held::new(future, self.set.bell());
        self.set.add(self.at.spawn(held.run()))
    }

    /// As [`JoinSet::spawn_fn`], at the level.
    pub fn spawn_fn(&mut self, closure: impl FnOnce() -> T + Send + 'static) -> AbortHandle {
        let held = Held::new(closure, self.set.bell());
        self.set.add(self.at.spawn_fn(move || held.call()))
    }
}

impl<T: Send + 'static> JoinSet<T> {
    /// The set, whose tasks start at a level of the calling code's runtime.
    ///
    /// ```
    /// use urgency::{Runtime, current_level, levels, task::JoinSet};
    ///
    /// levels! { App: Interactive > Batch }
    ///
    /// let runtime = Runtime::builder().levels::<App>().build()?;
    /// let level = runtime.block_on(async {
    ///     let mut tasks = JoinSet::new();
    ///     tasks.at(Interactive).spawn(async { current_level() });
    ///     tasks.join_next().await.unwrap().unwrap()
    /// });
    /// assert_eq!(level, Interactive.id());
    /// # Ok::<(), urgency::BuildError>(())
    /// ```
    ///
    /// # Panics
    ///
    /// If the current runtime has no such level.
    #[track_caller]
    pub fn at(&mut self, level: impl Into<LevelId>) -> JoinSetAt<'_, T> {
        JoinSetAt {
            at: at(level),
            set: self,
        }
    }

    pub(super) fn here(&mut self) -> JoinSetAt<'_, T> {
        JoinSetAt {
            at: At::here(),
            set: self,
        }
    }
}
