//! Tokio beside rayon, in the three arrangements that experts use today for a program that has urgent work and
//! batch work:
//!
//! - `tokio-rayon`: one rayon pool for all that computes.
//! - `tokio-rayon-nice`: the same with its threads at niceness 19, so that Tokio's threads come first.
//! - `tokio-two-pools`: a pool for compute that somebody waits for, as it is, and one for batch work at niceness 19.
//!
//! A program written over a [`Pair`] names the pool that each piece of work is for; where there is only one pool,
//! both names mean that.

use crate::engines;
use rayon::ThreadPool;
use std::sync::Arc;
use tokio::net::UnixStream;
use tokio::runtime::Runtime;
use tokio::sync::oneshot;

/// The names of the contenders with these arrangements, for bars.
pub const NAMES: &[&str] = &["tokio-rayon", "tokio-rayon-nice", "tokio-two-pools"];

/// Which pools there are.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Arrangement {
    /// One for everything.
    OnePool,
    /// One for everything, at niceness 19.
    NicePool,
    /// One for urgent compute, and one at niceness 19 for the rest.
    TwoPools,
    /// The same with one thread of each bound to each processor.
    BoundPools,
}

/// The arrangements with the contenders' names.
pub const ARRANGEMENTS: [(&str, Arrangement); 3] = [
    (NAMES[0], Arrangement::OnePool),
    (NAMES[1], Arrangement::NicePool),
    (NAMES[2], Arrangement::TwoPools),
];

/// A Tokio runtime and the pools beside it.
pub struct Pair {
    /// For what waits.
    pub tokio: Runtime,
    /// For compute that somebody waits for.
    pub urgent: Arc<ThreadPool>,
    /// For batch work.
    pub batch: Arc<ThreadPool>,
}

impl Pair {
    /// Each of them with so many threads.
    pub fn new(workers: usize, arrangement: Arrangement) -> Self {
        let usual = || Arc::new(engines::rayon::pool(workers));
        let nice = || Arc::new(engines::rayon::nice_pool(workers));
        let (urgent, batch) = match arrangement {
            Arrangement::OnePool => {
                let pool = usual();
                (pool.clone(), pool)
            }
            Arrangement::NicePool => {
                let pool = nice();
                (pool.clone(), pool)
            }
            Arrangement::TwoPools => (usual(), nice()),
            Arrangement::BoundPools => {
                let bound = |nice| Arc::new(engines::rayon::bound_pool(workers, nice));
                (bound(false), bound(true))
            }
        };
        Pair {
            tokio: engines::tokio::runtime(workers),
            urgent,
            batch,
        }
    }
}

/// Runs `work` in `pool`; its result can be awaited.
pub async fn run_in<T: Send + 'static>(
    pool: &ThreadPool,
    work: impl FnOnce() -> T + Send + 'static,
) -> T {
    let (reply, result) = oneshot::channel();
    pool.spawn(move || drop(reply.send(work())));
    result
        .await
        .expect("a panic in a pool has ended the process")
}

/// A stream of Tokio, to be called on its runtime.
pub fn stream(socket: std::os::unix::net::UnixStream) -> UnixStream {
    let is_set = socket.set_nonblocking(true);
    is_set.expect("a socket can be non-blocking");
    UnixStream::from_std(socket).expect("Tokio has its I/O driver")
}
