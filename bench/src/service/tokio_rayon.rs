//! Tokio with two workers serves; rayon computes, in one pool for searches and the reindex, or in two.

use super::corpus::{self, Corpus};
use super::index::{DOCUMENTS, Index};
use super::{Config, measure};
use crate::harness::Sample;
use crate::{echo, engines};
use axum::{Router, routing::get};
use rayon::ThreadPool;
use std::sync::Arc;

/// Where searches and the reindex run.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Pools {
    /// In one pool.
    One,
    /// In one pool, at niceness 19.
    Nice,
    /// Searches in one, the reindex in another at niceness 19.
    Two,
}

/// One sample.
pub fn run(config: Config, pools: Pools) -> Sample {
    let searching = Arc::new(match pools {
        Pools::One | Pools::Two => engines::rayon::pool(2),
        Pools::Nice => engines::rayon::nice_pool(2),
    });
    let indexing = match pools {
        Pools::One | Pools::Nice => searching.clone(),
        Pools::Two => Arc::new(engines::rayon::nice_pool(2)),
    };
    let (corpus, index) = (Corpus::new(config.scale), Index::new());
    let search = move || search(searching.clone(), corpus, index);
    let router = Router::new()
        .route("/health", get(|| async { "ok" }))
        .route("/search", get(search));
    let runtime = engines::tokio::runtime(2);
    let listener = runtime.block_on(echo::tokio::listen());
    let address = listener.local_addr().expect("a listener has an address");
    runtime.spawn(async move {
        axum::serve(listener, router)
            .await
            .expect("nobody ended the server");
    });
    let start = || {
        indexing.spawn(move || {
            loop {
                write(index, 0..DOCUMENTS, config.leaf());
            }
        });
    };
    let sample = measure(config, corpus, index, address, start);
    // The reindex never ends; its pool ends with the process.
    std::mem::forget((indexing, runtime));
    sample
}

async fn search(pool: Arc<ThreadPool>, corpus: &'static Corpus, index: &'static Index) -> String {
    let (send, found) = tokio::sync::oneshot::channel();
    pool.spawn(move || {
        index.look_up();
        // The client may have gone away.
        let _ = send.send(scan(corpus.text()));
    });
    let found = found.await.expect("the pool answers");
    found.to_string()
}

fn scan(text: &[u8]) -> u64 {
    let Some((left, right)) = corpus::halves(text) else {
        return corpus::count(text);
    };
    let (left, right) = rayon::join(|| scan(left), || scan(right));
    left + right
}

fn write(index: &Index, documents: std::ops::Range<u64>, leaf: u64) {
    let length = documents.end - documents.start;
    if length <= leaf {
        return index.write(documents);
    }
    let middle = documents.start + length / 2;
    rayon::join(
        || write(index, documents.start..middle, leaf),
        || write(index, middle..documents.end, leaf),
    );
}
