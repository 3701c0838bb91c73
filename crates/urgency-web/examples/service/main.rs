//! A whole service on one runtime: a search that forks, a health check above it, a batch below it, SQLite between them,
//! metrics, and an end in good order at SIGTERM.
//!
//! ```sh
//! cargo run --release -p urgency-web --features axum,client --example service -- 8080 &
//! curl localhost:8080/search/urgent; curl localhost:8080/health; curl localhost:8080/metrics; kill %1
//! ```
//!
//! Without an argument it takes a free port, is its own client for a moment, sends itself a SIGTERM in the middle of a
//! reindex, and ends.
//!
//! # Strict levels or a share
//!
//! Strict levels (the default) say: while anybody searches, nothing is reindexed. That is right if a batch may wait for
//! the night. Here it may not: at a constant load of searches the index would never become fresh. So the levels have
//! shares, and `Reindex` gets a tenth of the processors' time even under full load, in turns of 5 ms. What a level does
//! not use goes to the most urgent one that has work, so an idle service reindexes on all cores all the same. The price
//! is that a search may find a core in such a turn. Leave `.fairness(..)` out, and less urgent work never costs a
//! search more than one leaf.
//!
//! # Which code may wait for which
//!
//! The handlers take [`At`] and wait with its `cx`. A search that waited for a reindex would not compile.

#[path = "../../../urgency/examples/prometheus.rs"]
#[allow(dead_code, reason = "its main is another program")]
mod prometheus;
mod store;

use axum::{
    Router,
    extract::{Path, State},
    http::StatusCode,
    routing::get,
};
use http_body_util::{BodyExt, Empty};
use hyper::body::Bytes;
use hyper_util::client::legacy::Client;
use std::{
    error::Error,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};
use store::Store;
use urgency::{
    Criterion, Runtime, Shutdown,
    future::race,
    level::Cx,
    net::TcpListener,
    signal::{
        ctrl_c,
        unix::{SignalKind, signal},
    },
    time::{interval, sleep},
};
use urgency_web::{
    At,
    client::Connector,
    level::LevelLayer,
    rt::{Executor, Timer},
    serve,
};

urgency::levels! {
    Service:
        /// Health, metrics, and all connections: microseconds each.
        Health >
        /// What a person waits for.
        Search >
        /// What may take its time, but not for ever.
        Reindex
}

/// By level: what each gets when all of them have more work than there is time.
const SHARES: [f64; 3] = [0.2, 0.7, 0.1];

struct App {
    store: Store,
    reindexed: AtomicU64,
    missed: AtomicU64,
}

async fn health(State(app): State<Arc<App>>) -> String {
    let (times, missed) = (app.reindexed.load(Relaxed), app.missed.load(Relaxed));
    format!("ok, reindexed {times} times, {missed} times skipped")
}

async fn metrics() -> String {
    prometheus::text(&Runtime::current().stats())
}

async fn search(
    at: At<Search>,
    State(app): State<Arc<App>>,
    Path(word): Path<String>,
) -> Result<String, StatusCode> {
    at.run(async move |cx| {
        // On a stack of its own, since SQLite blocks.
        let found = Search.spawn_fn(move |_| app.store.search(&word));
        match found.wait(cx).await {
            Ok(Ok(hits)) => Ok(format!("{hits} hits")),
            // Cancelled by a shutdown, or SQLite failed.
            _ => Err(StatusCode::SERVICE_UNAVAILABLE),
        }
    })
    .await
}

/// Reindexes again and again, until a shutdown cancels it.
async fn reindex_every(cx: Cx<'_, Reindex>, period: Duration, app: Arc<App>) {
    let mut ticks = interval(period);
    loop {
        ticks.tick().await;
        app.missed.fetch_add(ticks.missed(), Relaxed);
        let shared = app.clone();
        let reindex = cx.level().spawn_fn(move |_| shared.store.reindex());
        match reindex.wait(cx).await {
            Ok(Ok(_)) => drop(app.reindexed.fetch_add(1, Relaxed)),
            Ok(Err(error)) => eprintln!("the index stays as it is: {error}"),
            Err(ended) => return eprintln!("no more reindexing: {ended}"),
        }
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let port = std::env::args().nth(1).map(|port| port.parse::<u16>());
    let port = port.transpose()?;
    // From here on SIGTERM does not end the process by itself.
    let mut terminate = signal(SignalKind::terminate())?;
    let runtime = Runtime::builder()
        .levels::<Service>()
        .fairness(Criterion::from_shares(&SHARES)?)
        .build()?;
    let app = Arc::new(App {
        store: Store::with_documents(20_000)?,
        reindexed: AtomicU64::new(0),
        missed: AtomicU64::new(0),
    });

    let levels = LevelLayer::new()
        .path("/search", Search)
        .otherwise(Health)
        .bound(Search, 64, Duration::from_secs(1));
    let router = Router::new()
        .route("/health", get(health))
        .route("/metrics", get(metrics))
        .route("/search/{word}", get(search))
        .with_state(app.clone())
        .layer(levels);
    let listener = urgency::block_on(TcpListener::bind(("127.0.0.1", port.unwrap_or(0))))?;
    let address = listener.local_addr()?;
    println!("listening on http://{address}");

    let period = Duration::from_millis(if port.is_some() { 5_000 } else { 5 });
    let own = app.clone();
    Reindex
        .on(&runtime)
        .spawn(async move |cx| reindex_every(cx, period, own).await)
        .detach();
    let client = port.is_none().then(|| {
        let client = runtime.at(Health).spawn(be_a_client(address));
        (client, app.clone())
    });

    let stop = async move {
        race(terminate.recv(), ctrl_c()).await;
    };
    let server = serve(listener, router)
        .level(Health)
        .until(stop)
        .drain(Duration::from_secs(5));
    let served = runtime.block_on(async { server.await })?;
    println!("{served:?}");
    // Searches that are under way end. The reindex is cancelled, whatever it is doing.
    let how = Shutdown::DrainDownTo(Search.into());
    println!(
        "{:?}",
        runtime.shutdown_within(how, Duration::from_secs(10))
    );
    if let Some((client, app)) = client {
        client.get()?.map_err(|error| error.to_string())?;
        assert_eq!(app.store.searches()?, 100);
        assert_eq!((served.cut, served.left), (0, 0));
    }
    Ok(())
}

/// Asks for everything a few times, then sends this process a SIGTERM while there is a reindex.
async fn be_a_client(address: SocketAddr) -> Result<(), urgency_web::BoxError> {
    let client: Client<_, Empty<Bytes>> = Client::builder(Executor::new())
        .pool_timer(Timer::new())
        .build(Connector::new());
    let ask = async |path: &str| -> Result<String, urgency_web::BoxError> {
        let response = client
            .get(format!("http://{address}{path}").parse()?)
            .await?;
        assert_eq!(response.status(), StatusCode::OK, "{path}");
        let body = response.into_body().collect().await?.to_bytes();
        Ok(String::from_utf8(body.to_vec())?)
    };
    while ask("/health").await?.starts_with("ok, reindexed 0 times") {
        sleep(Duration::from_millis(1)).await;
    }
    for _ in 0..100 {
        assert_eq!(ask("/search/URGENT").await?, "100000 hits");
        assert!(ask("/health").await?.starts_with("ok"));
    }
    let metrics = ask("/metrics").await?;
    assert!(
        metrics.contains("urgency_ready_seconds_count{level=\"Search\"}"),
        "{metrics}"
    );
    println!("{}", ask("/health").await?);
    rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::TERM)?;
    Ok(())
}
