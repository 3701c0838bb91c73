//! Tasks that pass tokens to each other; the same futures on all runtimes.
//!
//! A task's place holds its tokens and its waker. To give: add a token, then wake. To wait: look for a token,
//! register the waker, look again (so a token given in between is seen). Passes are counted down from the total; the
//! task that finds none left wakes all tasks, and all end.

use super::Config;
use atomic_waker::AtomicWaker;
use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::task::Poll;

#[derive(Default)]
struct Place {
    tokens: AtomicUsize,
    waker: AtomicWaker,
}

/// All places, and the passes that are left.
pub struct Ring {
    places: Vec<Place>,
    left: AtomicI64,
}

impl Ring {
    /// A ring in which the first places hold a token each.
    pub fn new(config: Config) -> Arc<Ring> {
        let places: Vec<Place> = (0..config.tasks).map(|_| Place::default()).collect();
        for place in &places[..config.tokens] {
            place.tokens.store(1, Ordering::Relaxed);
        }
        let left = AtomicI64::new(config.passes);
        Arc::new(Ring { places, left })
    }

    fn give(&self, index: usize) {
        self.places[index].tokens.fetch_add(1, Ordering::AcqRel);
        self.places[index].waker.wake();
    }

    /// Takes a token of this place, or `None` when no passes are left.
    async fn take(&self, index: usize) -> Option<()> {
        let place = &self.places[index];
        let take = || {
            if self.left.load(Ordering::Acquire) <= 0 {
                return Poll::Ready(None);
            }
            // Only the place's own task takes tokens away, so what was seen is still there.
            if place.tokens.load(Ordering::Acquire) > 0 {
                place.tokens.fetch_sub(1, Ordering::AcqRel);
                return Poll::Ready(Some(()));
            }
            Poll::Pending
        };
        poll_fn(|context| {
            if let Poll::Ready(token) = take() {
                return Poll::Ready(token);
            }
            place.waker.register(context.waker());
            take()
        })
        .await
    }
}

/// The task of one place; returns how many tokens it has passed on.
pub async fn member(ring: Arc<Ring>, index: usize) -> u64 {
    let mut random = fastrand::Rng::with_seed(index as u64);
    let mut passed = 0;
    while ring.take(index).await.is_some() {
        let left = ring.left.fetch_sub(1, Ordering::AcqRel);
        if left > 0 {
            passed += 1;
            ring.give(random.usize(0..ring.places.len()));
        }
        if left == 1 {
            ring.places.iter().for_each(|place| place.waker.wake());
        }
    }
    passed
}
