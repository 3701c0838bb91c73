//! Reads and writes are tasks of Tokio; flushes sort in the urgent pool, compaction forks in the batch pool.

use super::{Config, Scene};
use crate::engines::pair::{self, Arrangement, Pair, run_in};
use rayon::{ThreadPool, prelude::*};
use std::sync::Arc;
use tokio::io::AsyncReadExt as _;
use urgency_measure::Sample;
use urgency_measure::client::pacer::{ARRIVAL, arrival, socket};

/// One sample.
pub fn run(config: Config, arrangement: Arrangement) -> Sample {
    let pair = Pair::new(2, arrangement);
    let scene = Scene::new(config);
    pair.tokio.spawn(compact(scene.clone(), pair.batch.clone()));
    let (ask, asked) = socket();
    pair.tokio
        .spawn(accept(scene.clone(), pair.urgent.clone(), asked));
    let sample = scene.measure(config, ask);
    // Compaction never ends; the pools end with the process.
    std::mem::forget(pair);
    sample
}

async fn accept(scene: Arc<Scene>, pool: Arc<ThreadPool>, asked: std::os::unix::net::UnixStream) {
    let mut asked = pair::stream(asked);
    let mut bytes = [0; ARRIVAL];
    while asked.read_exact(&mut bytes).await.is_ok() {
        let (scene, pool, number) = (scene.clone(), pool.clone(), arrival(bytes));
        match scene.is_write(number) {
            false => drop(tokio::spawn(async move { scene.read(number) })),
            true => drop(tokio::spawn(async move { write(scene, &pool, number) })),
        }
    }
}

fn write(scene: Arc<Scene>, pool: &ThreadPool, number: usize) {
    if let Some(full) = scene.write(number) {
        pool.spawn(move || {
            let store = &scene.store;
            store.flush(&full, |entries| entries.par_sort_by_key(|entry| entry.key));
        });
    }
}

/// Each round is a job of its own, handed in from outside, so that where there is one pool a flush gets its turn.
async fn compact(scene: Arc<Scene>, pool: Arc<ThreadPool>) {
    loop {
        let scene = scene.clone();
        let round = move || {
            let store = &scene.store;
            if !store.compact_flushed() {
                let parts = store.parts().par_iter().with_max_len(1);
                parts.for_each(|part| store.compact_cold(part));
            }
        };
        run_in(&pool, round).await;
    }
}
