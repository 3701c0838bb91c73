//! One runtime of two workers with three levels; axum by `urgency_web::serve`, and its layer that gives
//! requests levels.

use super::corpus::{self, Corpus};
use super::index::{self, DOCUMENTS, Index};
use super::{Config, measure};
use crate::echo;
use crate::engines::ours::with_stats;
use axum::{Router, routing::get};
use urgency::{Criterion, Runtime, join};
use urgency_measure::Sample;
use urgency_web::level::LevelLayer;

urgency::levels! {
    /// The service's levels.
    Levels:
        /// Connections, and requests that ask whether it lives.
        Health >
        /// Searches.
        Search >
        /// The reindex.
        Reindex
}

/// Shares of the levels for a service that asks for some: a tenth for the reindex.
const SHARES: [f64; 3] = [0.45, 0.45, 0.1];

/// One sample; with `shares` the reindex has some of the machine under any load.
pub fn run(config: Config, shares: bool) -> Sample {
    let builder = Runtime::builder().workers(2).levels::<Levels>();
    let builder = if shares {
        let criterion = Criterion::from_shares(&SHARES).expect("the shares add up to 1");
        builder.fairness(criterion)
    } else {
        builder
    };
    let runtime = builder.build().expect("threads can be started");
    let (corpus, index) = (Corpus::new(config.scale), Index::new());
    let search = move || async move {
        index.look_up();
        scan(corpus.text()).to_string()
    };
    let levels = LevelLayer::new().path("/search", Search).otherwise(Health);
    let router = Router::new()
        .route("/health", get(|| async { "ok" }))
        .route("/search", get(search))
        .layer(levels);
    let listener = echo::ours::listen();
    let address = listener.local_addr().expect("a listener has an address");
    let server = async move {
        let served = urgency_web::serve(listener, router).await;
        unreachable!("nobody ended the server: {served:?}");
    };
    runtime.at(Health).spawn(server).detach();
    let start = || {
        let reindex = move || {
            loop {
                write(index, 0..DOCUMENTS, config.leaf());
            }
        };
        runtime.at(Reindex).spawn_fn(reindex).detach();
    };
    let alone = || {
        let handle = runtime.at(Search).spawn_fn(|| scan(corpus.text()));
        handle.get().expect("a scan ends")
    };
    let alone = corpus.parallel_scan_ns(alone);
    let sample = measure(config, corpus, index, address, start).with("scan_ns", alone);
    let sample = with_stats(sample, &runtime);
    // The reindex never ends; the runtime ends with the process.
    std::mem::forget(runtime);
    sample
}

fn scan(text: &[u8]) -> u64 {
    let Some((left, right)) = corpus::halves(text) else {
        return corpus::count(text);
    };
    let (left, right) = join(|| scan(left), || scan(right));
    left + right
}

fn write(index: &Index, documents: std::ops::Range<u64>, leaf: u64) {
    let Some((left, right)) = index::halves(&documents, leaf) else {
        return index.write(documents);
    };
    join(|| write(index, left, leaf), || write(index, right, leaf));
}
