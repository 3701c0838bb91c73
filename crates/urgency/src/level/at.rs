//! `TypedAt`: a level, as a type, of a certain runtime.

use super::{Cx, Level, Levels, SendBody, TypedHandle};
use crate::{At, runtime::Handle};
use std::{any::TypeId, fmt, marker::PhantomData};

/// A level of a runtime, as a type: the typed form of [`At`]. [`Level::on`] makes one.
///
/// Spawning needs no worker: this is how a plain thread makes typed work, also while all workers are busy.
///
/// ```
/// use urgency::{Runtime, levels};
///
/// levels! { App: Interactive > Batch }
///
/// let rt = Runtime::builder().levels::<App>().build()?;
/// let rows = Batch.on(&rt).spawn_fn(|_| vec![3, 5]);
/// let sum = Batch.on(&rt).run(|cx| rows.get(cx).map(|rows| rows.iter().sum::<u32>()));
/// assert_eq!(sum?, 8);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct TypedAt<L> {
    at: At,
    level: PhantomData<fn() -> L>,
}

impl<L: Level> TypedAt<L> {
    #[track_caller]
    pub(super) fn new(runtime: Handle) -> Self {
        let levels = &runtime.job().levels;
        if let Err(error) = levels.check(TypeId::of::<L::Order>(), L::Order::NAME) {
            panic!("{error}");
        }
        TypedAt {
            at: At::new(runtime, L::LEVEL.into()),
            level: PhantomData,
        }
    }

    /// As [`Level::spawn`], here.
    pub fn spawn<F, T>(&self, body: F) -> TypedHandle<T, L>
    where
        F: for<'cx> SendBody<'cx, L, Result = T>
            + for<'cx> AsyncFnOnce(Cx<'cx, L>) -> T
            + Send
            + 'static,
        T: Send + 'static,
    {
        TypedHandle::new(self.at.spawn(body(Cx::new())))
    }

    /// As [`Level::spawn_fn`], here.
    pub fn spawn_fn<F, T>(&self, body: F) -> TypedHandle<T, L>
    where
        F: for<'cx> FnOnce(Cx<'cx, L>) -> T + Send + 'static,
        T: Send + 'static,
    {
        TypedHandle::new(self.at.spawn_fn(move || body(Cx::new())))
    }

    /// Runs a closure on the calling thread, now. See [`At::run`].
    ///
    /// # Panics
    ///
    /// If `body` panics, and if the runtime was shut down.
    pub fn run<F, R>(&self, body: F) -> R
    where
        F: for<'cx> FnOnce(Cx<'cx, L>) -> R,
    {
        self.at.run(|| body(Cx::new()))
    }
}

impl<L> Clone for TypedAt<L> {
    fn clone(&self) -> Self {
        TypedAt {
            at: self.at.clone(),
            level: PhantomData,
        }
    }
}

impl<L> fmt::Debug for TypedAt<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("TypedAt").field(&self.at).finish()
    }
}
