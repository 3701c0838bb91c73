//! The background work, in small steps between the requests.
//!
//! Two tasks. One moves items between the segments of the LRU, so that a write finds its victim at once. The
//! other, less urgent still, grows the tables, balances the memory and crawls for expired items. Both sleep
//! until something was stored, work until there is nothing to do, and pause: an idle server has no task that
//! wakes up. So an idle server keeps expired items until it is used again, which harms nobody.
//!
//! A third task, as urgent as the connections, looks for connections that hold memory which others wait for
//! ([`free_shares`]).
//!
//! A step is a few microseconds long, and after each step the task lets others run. More urgent work takes the worker
//! away anyway; the steps are for other tasks of the same level, and for the shard's lock.

use super::{Server, allowance::SWEEP};
use crate::store::{Cursor, Done};
use std::{future::Future, sync::Arc, time::Duration};

/// How much one step does: items, or buckets.
const STEP: u64 = 64;

/// The least time between two rounds of LRU upkeep.
const LRU_PAUSE: Duration = Duration::from_millis(10);

/// The least time between two rounds of the other work.
const BACKGROUND_PAUSE: Duration = Duration::from_millis(100);

/// The least time between two crawls, in seconds.
const CRAWL_PAUSE: u32 = 60;

/// How tasks wait on the runtime that runs them.
pub trait Pace: Send + Sync + 'static {
    /// Lets others run.
    fn give_way(&self) -> impl Future<Output = ()> + Send;

    /// Waits.
    fn pause(&self, time: Duration) -> impl Future<Output = ()> + Send;
}

/// Repeats a step until there is no more to do.
async fn work(pace: &impl Pace, mut step: impl FnMut() -> Done + Send) {
    while step().more {
        pace.give_way().await;
    }
}

/// Keeps the LRU in order, for ever.
pub async fn keep_lru(server: Arc<Server>, pace: impl Pace) {
    loop {
        server.upkeep.kicked().await;
        work(&pace, || server.store.lru_step(server.clock.now(), STEP)).await;
        pace.pause(LRU_PAUSE).await;
    }
}

/// Ends connections that hold memory without progress while others wait for it, for ever. For the connections' own
/// level: it is part of serving the others.
pub async fn free_shares(server: Arc<Server>, pace: impl Pace) {
    loop {
        server.crowded.kicked().await;
        while server.incoming.sweep() | server.outgoing.sweep() {
            pace.pause(SWEEP).await;
        }
    }
}

/// Grows the tables, balances the memory and crawls for expired items, for ever.
pub async fn grow_and_crawl(server: Arc<Server>, pace: impl Pace) {
    let mut last_crawl = server.clock.now();
    loop {
        server.background.kicked().await;
        work(&pace, || server.store.grow_step(STEP)).await;
        work(&pace, || {
            server.store.rebalance_step(server.clock.now(), STEP)
        })
        .await;
        let now = server.clock.now();
        let is_due = now.saturating_sub(last_crawl) >= CRAWL_PAUSE;
        if is_due || server.crawl_was_asked() {
            last_crawl = now;
            let mut cursor = Cursor::default();
            work(&pace, || {
                server
                    .store
                    .crawl_step(&mut cursor, server.clock.now(), STEP)
            })
            .await;
        }
        pace.pause(BACKGROUND_PAUSE).await;
    }
}
