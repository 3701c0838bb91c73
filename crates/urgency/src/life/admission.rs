//! A limit on how many tasks of a level there are: backpressure at the place where work comes in (Dissertation, 4.4.6).
//!
//! A level with a capacity has a semaphore of so many permits. Code that brings work from outside asks for admission
//! *before* it makes the work, and so decides what happens when there is no room. It may wait ([`admit`]), so that a
//! queue builds up where it can be seen, in the kernel's accept queue or with the caller. Or it may fail and shed
//! ([`try_admit`]), with the work still in hand. The task carries the permit until its future is gone.
//!
//! The plain `spawn` forms do not ask: they are for the parts of work that was admitted, and a part that is refused
//! would leave the whole hanging.

use super::held::Held;
use crate::{
    JoinHandle, LevelId,
    spawn::{At, at},
    sync::{Permit, Semaphore},
};
use std::{
    future::Future,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

/// The limits of a runtime, by level.
#[derive(Debug)]
struct Limits(Vec<Option<Limit>>);

#[derive(Debug)]
struct Limit {
    tasks: u32,
    permits: Arc<Semaphore>,
    refused: AtomicU64,
}

impl Limits {
    /// The limit of a level, if it has one.
    fn of(at: &At) -> Option<&Limit> {
        let limits = at.handle.job().capacities.made(Limits::new);
        limits.0[usize::from(at.new_at.level)].as_ref()
    }

    /// For so many levels.
    fn new(levels: usize, limits: &[(LevelId, u32)]) -> Self {
        let limit = |rank: usize| {
            let of_rank = |(level, _): &&(LevelId, u32)| usize::from(level.rank()) == rank;
            let &(_, tasks) = limits.iter().rev().find(of_rank)?;
            Some(Limit {
                tasks,
                permits: Arc::new(Semaphore::new(tasks as usize)),
                refused: AtomicU64::new(0),
            })
        };
        Limits((0..levels).map(limit).collect())
    }
}

/// The capacity of a level, and what became of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Capacity {
    /// How many admitted tasks there may be at once.
    pub limit: u32,
    /// How many more could be admitted now.
    pub free: u32,
    /// How often [`try_admit`] was refused.
    pub refused: u64,
}

impl Capacity {
    /// The capacity of a level of the current runtime; `None` if the level has no limit.
    ///
    /// # Panics
    ///
    /// If the current runtime has no such level.
    #[track_caller]
    pub fn of(level: impl Into<LevelId>) -> Option<Capacity> {
        let at = at(level);
        let limit = Limits::of(&at)?;
        Some(Capacity {
            limit: limit.tasks,
            free: limit.permits.available_permits() as u32,
            refused: limit.refused.load(Relaxed),
        })
    }
}

/// The right to one more task of a level. If it is dropped unused, it goes to the next waiter.
#[derive(Debug)]
#[must_use = "an admission that is dropped goes to the next"]
pub struct Admission {
    at: At,
    /// `None` if the level has no limit.
    permit: Option<Permit<Arc<Semaphore>>>,
}

impl Admission {
    /// Starts the task that was admitted, at the level that it was admitted to.
    pub fn spawn<F>(self, future: F) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        let held = Held::new(future, self.permit);
        self.at.spawn(held.run())
    }

    /// As [`spawn`](Self::spawn), for a closure.
    pub fn spawn_fn<F, T>(self, closure: F) -> JoinHandle<T>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        let held = Held::new(closure, self.permit);
        self.at.spawn_fn(move || held.call())
    }
}

/// Waits until there is room for one more task of this level in the current runtime; at once if the level has no
/// [capacity](crate::Builder::capacity). Waiters are served more urgent levels first, and in order within a level.
///
/// An accept loop that asks first stops accepting when there is too much work:
///
/// ```
/// use urgency::{Runtime, levels, life::admit};
///
/// levels! { App: Control > Requests }
///
/// let runtime = Runtime::builder().levels::<App>().capacity(Requests, 2).build()?;
/// let served = runtime.block_on(async {
///     let mut served = Vec::new();
///     for n in 0..10 { // each is a connection
///         let admission = admit(Requests).await;
///         served.push(admission.spawn(async move { n }));
///     }
///     urgency::future::join_all(served).await.len()
/// });
/// assert_eq!(served, 10);
/// # Ok::<(), urgency::BuildError>(())
/// ```
///
/// # Cancellation
///
/// Dropping the future gives up the place in the queue; an admission that it had been handed goes to the next.
///
/// # Panics
///
/// If the current runtime has no such level.
#[track_caller]
pub fn admit(level: impl Into<LevelId>) -> impl Future<Output = Admission> + Send {
    let at = at(level);
    async move {
        let permits = Limits::of(&at);
        let permit = match permits.map(|limit| limit.permits.clone()) {
            Some(permits) => permits.acquire_owned().await.ok(),
            None => None,
        };
        Admission { at, permit }
    }
}

/// As [`admit`], for closures and plain threads.
///
/// # Panics
///
/// If the current runtime has no such level.
#[track_caller]
pub fn blocking_admit(level: impl Into<LevelId>) -> Admission {
    crate::block_on(admit(level))
}

/// Room for one more task of this level, if there is some and nobody waits for it.
///
/// # Errors
///
/// If there is none: the work is still in hand, to be answered with a refusal, kept for later or dropped.
///
/// # Panics
///
/// If the current runtime has no such level.
///
/// ```
/// use urgency::{Runtime, levels, life::{Capacity, try_admit}};
///
/// levels! { App: Control > Requests }
///
/// let runtime = Runtime::builder().levels::<App>().capacity(Requests, 1).build()?;
/// runtime.run(|| {
///     let first = try_admit(Requests).expect("there is room");
///     let refused = try_admit(Requests).unwrap_err();
///     assert_eq!(refused.limit(), 1);
///     drop(first);
///     assert!(try_admit(Requests).is_ok());
///     assert_eq!(Capacity::of(Requests).unwrap().refused, 1);
/// });
/// # Ok::<(), urgency::BuildError>(())
/// ```
#[track_caller]
pub fn try_admit(level: impl Into<LevelId>) -> Result<Admission, AtCapacity> {
    let at = at(level);
    let try_acquire = |limit: &Limit| {
        let permit = limit.permits.clone().try_acquire_owned();
        permit.map_err(|_| {
            limit.refused.fetch_add(1, Relaxed);
            let (level, limit) = (at.level(), limit.tasks);
            AtCapacity { level, limit }
        })
    };
    let permit = Limits::of(&at).map(try_acquire).transpose()?;
    Ok(Admission { at, permit })
}

/// A level has as many admitted tasks as it may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AtCapacity {
    level: LevelId,
    limit: u32,
}

impl AtCapacity {
    /// The level.
    pub fn level(&self) -> LevelId {
        self.level
    }

    /// How many admitted tasks it may have.
    pub fn limit(&self) -> u32 {
        self.limit
    }
}

error_text!(AtCapacity, |it| format_args!(
    "level {} has the {} admitted task(s) that it may have, or others wait for admission; `admit` waits, and \
     `Builder::capacity` sets the limit",
    it.level, it.limit
));
