//! Tokio serves. Requests compute in rayon pools, one for each lane, or serially in `spawn_blocking`. The batch is in a
//! pool of its own with niceness 19.

use super::{Scene, work};
use crate::echo;
use crate::engines;
use crate::engines::pair::run_in;
use rayon::ThreadPool;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use urgency_measure::Sample;
use urgency_measure::client::lanes::MESSAGE;

/// Where requests compute.
#[derive(Clone)]
enum Place {
    /// A pool for each lane, most urgent first.
    Pools(Arc<Vec<ThreadPool>>),
    /// `spawn_blocking`.
    Blocking,
}

static LOCK: Mutex<()> = Mutex::new(());

fn lock() -> MutexGuard<'static, ()> {
    LOCK.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One sample with a pool for each lane, and `batch` threads for the batch.
pub fn pools(scene: Scene, batch: usize) -> Sample {
    let steps = scene.lanes.len() as u8;
    let niceness = (0..steps).map(|rank| 19 * rank / steps);
    let pool = |niceness| engines::rayon::pool_of_niceness(scene.workers, niceness);
    run(
        scene,
        batch,
        Place::Pools(Arc::new(niceness.map(pool).collect())),
    )
}

/// One sample with `spawn_blocking`.
pub fn blocking(scene: Scene) -> Sample {
    run(scene, scene.workers, Place::Blocking)
}

fn run(scene: Scene, batch_threads: usize, place: Place) -> Sample {
    let runtime = engines::tokio::runtime(scene.workers);
    let pool = engines::rayon::nice_pool(batch_threads);
    let listener = runtime.block_on(echo::tokio::listen());
    let address = listener.local_addr().expect("a listener has an address");
    runtime.spawn(accept(scene, place, listener));
    let start = || {
        pool.spawn(move || {
            loop {
                batch(scene, work::BATCH);
            }
        });
    };
    let sample = scene.measure(address, start);
    // The batch never ends; its pool ends with the process.
    std::mem::forget((pool, runtime));
    sample
}

async fn accept(scene: Scene, place: Place, listener: TcpListener) {
    loop {
        let (stream, _) = listener
            .accept()
            .await
            .expect("connections can be accepted");
        tokio::spawn(serve(scene, place.clone(), stream));
    }
}

async fn serve(scene: Scene, place: Place, mut stream: TcpStream) {
    stream.set_nodelay(true).expect("TCP_NODELAY can be set");
    let mut message = [0; MESSAGE];
    while stream.read_exact(&mut message).await.is_ok() {
        let (lane, units) = scene.request(&message);
        let locked = move || {
            if scene.locks {
                let _held = lock();
                work::request_held();
            }
        };
        let done = match &place {
            // An echo.
            _ if units == 0 => 0,
            Place::Pools(pools) => {
                let work = move || {
                    locked();
                    compute(units)
                };
                run_in(&pools[lane], work).await
            }
            Place::Blocking => {
                let work = move || {
                    locked();
                    work::compute(units)
                };
                let done = tokio::task::spawn_blocking(work).await;
                done.expect("nothing is cancelled")
            }
        };
        assert_eq!(done, units, "wrong result");
        if stream.write_all(&message).await.is_err() {
            return;
        }
    }
}

fn compute(units: u64) -> u64 {
    let Some((left, right)) = work::halves(units) else {
        return work::compute(units);
    };
    let (left, right) = rayon::join(|| compute(left), || compute(right));
    left + right
}

fn batch(scene: Scene, leaves: Range<u64>) {
    if let Some((left, right)) = work::batch_halves(&leaves) {
        rayon::join(|| batch(scene, left), || batch(scene, right));
        return;
    }
    work::batch_leaf();
    if scene.locks {
        let _held = lock();
        work::batch_held();
    }
}
