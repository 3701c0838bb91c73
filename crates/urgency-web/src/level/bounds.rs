//! How many requests are in flight at each level, and how many may be.
//!
//! A request enters before its handler starts, and leaves when its ticket is dropped: with the handler and
//! the body of its response, however they end. Entering counts first and looks then, so that at a bound of n
//! never more than n are in; of two that enter at once at the bound, both may be turned away only if it is
//! full.

use http::HeaderValue;
use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};
use urgency::LevelId;

#[derive(Debug, Default)]
struct Count {
    in_flight: AtomicUsize,
    shed: AtomicU64,
}

#[derive(Clone)]
struct Bound {
    most: usize,
    retry_after: HeaderValue,
}

/// The counts of a [`LevelLayer`](super::LevelLayer).
///
/// ```
/// # urgency::levels! { App: Interactive > Batch }
/// use urgency_web::level::LevelLayer;
///
/// let counts = LevelLayer::new().path("/batch", Batch).in_flight();
/// assert_eq!((counts.at(Batch), counts.shed(Batch)), (0, 0));
/// ```
#[derive(Clone, Debug)]
pub struct InFlight {
    counts: Arc<[Count; LevelId::LIMIT]>,
}

impl InFlight {
    fn count(&self, level: LevelId) -> &Count {
        &self.counts[usize::from(level.rank())]
    }

    /// Requests at `level` whose handlers have not ended, or whose responses are still being made.
    pub fn at(&self, level: impl Into<LevelId>) -> usize {
        self.count(level.into()).in_flight.load(Ordering::Relaxed)
    }

    /// Requests at `level` that were turned away.
    pub fn shed(&self, level: impl Into<LevelId>) -> u64 {
        self.count(level.into()).shed.load(Ordering::Relaxed)
    }
}

/// Bounds by level, with the counts.
#[derive(Clone)]
pub(super) struct Bounds {
    counts: InFlight,
    bounds: Arc<[Option<Bound>; LevelId::LIMIT]>,
}

impl Default for Bounds {
    fn default() -> Self {
        Bounds {
            counts: InFlight {
                counts: Arc::new(
                    [const {
                        Count {
                            in_flight: AtomicUsize::new(0),
                            shed: AtomicU64::new(0),
                        }
                    }; LevelId::LIMIT],
                ),
            },
            bounds: Arc::new([const { None }; LevelId::LIMIT]),
        }
    }
}

impl fmt::Debug for Bounds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bounds = self.bounds.iter().enumerate();
        let bounds = bounds.filter_map(|(rank, bound)| Some((rank, bound.as_ref()?.most)));
        f.debug_map().entries(bounds).finish()
    }
}

impl Bounds {
    pub(super) fn set(&mut self, level: LevelId, most: usize, retry_after: Duration) {
        let seconds = retry_after.as_secs() + u64::from(retry_after.subsec_nanos() > 0);
        let bound = Bound {
            most,
            retry_after: HeaderValue::from(seconds),
        };
        Arc::make_mut(&mut self.bounds)[usize::from(level.rank())] = Some(bound);
    }

    pub(super) fn in_flight(&self) -> InFlight {
        self.counts.clone()
    }

    /// Lets a request in, or says when it may try again.
    pub(super) fn enter(&self, level: LevelId) -> Result<Ticket, HeaderValue> {
        let count = self.counts.count(level);
        let before = count.in_flight.fetch_add(1, Ordering::Relaxed);
        let ticket = Ticket {
            counts: self.counts.clone(),
            level,
        };
        match &self.bounds[usize::from(level.rank())] {
            Some(bound) if before >= bound.most => {
                count.shed.fetch_add(1, Ordering::Relaxed);
                Err(bound.retry_after.clone())
            }
            _ => Ok(ticket),
        }
    }
}

/// A request in flight.
#[derive(Debug)]
pub(super) struct Ticket {
    counts: InFlight,
    level: LevelId,
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let count = self.counts.count(self.level);
        count.in_flight.fetch_sub(1, Ordering::Relaxed);
    }
}
