//! Tokio with two workers serves; rayon computes, in one of the arrangements of `engines/pair.rs`.

use super::corpus::{self, Corpus};
use super::index::{self, DOCUMENTS, Index};
use super::{Config, measure};
use crate::echo;
use crate::engines::pair::{Arrangement, Pair, run_in};
use axum::{Router, routing::get};
use rayon::ThreadPool;
use std::sync::Arc;
use urgency_measure::Sample;

/// One sample.
pub fn run(config: Config, arrangement: Arrangement) -> Sample {
    let pair = Pair::new(2, arrangement);
    let (corpus, index) = (Corpus::new(config.scale), Index::new());
    let urgent = pair.urgent.clone();
    let search = move || search(urgent.clone(), corpus, index);
    let router = Router::new()
        .route("/health", get(|| async { "ok" }))
        .route("/search", get(search));
    let listener = pair.tokio.block_on(echo::tokio::listen());
    let address = listener.local_addr().expect("a listener has an address");
    pair.tokio.spawn(async move {
        axum::serve(listener, router)
            .await
            .expect("nobody ended the server");
    });
    let start = || {
        pair.batch.spawn(move || {
            loop {
                write(index, 0..DOCUMENTS, config.leaf());
            }
        });
    };
    let alone = corpus.parallel_scan_ns(|| pair.urgent.install(|| scan(corpus.text())));
    let sample = measure(config, corpus, index, address, start).with("scan_ns", alone);
    // The reindex never ends; its pool ends with the process.
    std::mem::forget(pair);
    sample
}

async fn search(pool: Arc<ThreadPool>, corpus: &'static Corpus, index: &'static Index) -> String {
    let found = move || {
        index.look_up();
        scan(corpus.text())
    };
    run_in(&pool, found).await.to_string()
}

fn scan(text: &[u8]) -> u64 {
    let Some((left, right)) = corpus::halves(text) else {
        return corpus::count(text);
    };
    let (left, right) = rayon::join(|| scan(left), || scan(right));
    left + right
}

fn write(index: &Index, documents: std::ops::Range<u64>, leaf: u64) {
    let Some((left, right)) = index::halves(&documents, leaf) else {
        return index.write(documents);
    };
    rayon::join(|| write(index, left, leaf), || write(index, right, leaf));
}
