//! Decoders in `spawn_blocking`, behind a semaphore that admits packets in order, two at a time; windows fork in the
//! urgent pool, the backfill forks in the batch pool, each batch a job of its own.

use super::{Aggregate, Pipeline, aggregate};
use crate::engines::pair::{self, Arrangement, Pair, run_in};
use rayon::{ThreadPool, prelude::*};
use std::sync::Arc;
use tokio::io::AsyncReadExt as _;
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;
use urgency_measure::Sample;
use urgency_measure::client::pacer::{ARRIVAL, arrival, socket};
use urgency_measure::loaded::Lengths;

/// Decoders at once: as many as there are processors.
const DECODERS: usize = 2;

/// One sample.
pub fn run(lengths: Lengths, arrangement: Arrangement) -> Sample {
    let pair = Pair::new(2, arrangement);
    let pipeline = Pipeline::new();
    pair.tokio
        .spawn(backfill(pipeline.clone(), pair.batch.clone()));
    let (send, received) = socket();
    pair.tokio
        .spawn(receive(pipeline.clone(), pair.urgent.clone(), received));
    let sample = pipeline.measure(lengths, send);
    // The backfill never ends; the pools end with the process.
    std::mem::forget(pair);
    sample
}

async fn receive(
    pipeline: Arc<Pipeline>,
    pool: Arc<ThreadPool>,
    received: std::os::unix::net::UnixStream,
) {
    let mut received = pair::stream(received);
    let mut bytes = [0; ARRIVAL];
    let decoders = Arc::new(Semaphore::new(DECODERS));
    while received.read_exact(&mut bytes).await.is_ok() {
        let packet = arrival(bytes);
        let permit = decoders.clone().acquire_owned().await;
        let (pipeline, pool) = (pipeline.clone(), pool.clone());
        spawn_blocking(move || {
            decode(&pipeline, &pool, packet);
            drop(permit);
        });
    }
}

fn decode(pipeline: &Arc<Pipeline>, pool: &ThreadPool, packet: usize) {
    for window in pipeline.decode(packet) {
        let pipeline = pipeline.clone();
        pool.spawn(move || {
            let all = window.packets.par_iter().with_max_len(1).map(aggregate);
            let all = all.reduce(Aggregate::default, Aggregate::and);
            pipeline.emit(&window, all);
        });
    }
}

async fn backfill(pipeline: Arc<Pipeline>, pool: Arc<ThreadPool>) {
    loop {
        let pipeline = pipeline.clone();
        let batch = move || {
            let packets = pipeline.archive().par_iter().with_max_len(1);
            packets.for_each(|packet| pipeline.backfill(packet));
        };
        run_in(&pool, batch).await;
    }
}
