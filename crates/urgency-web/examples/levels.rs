//! A service with two kinds of requests on one runtime: `/` is answered at once, and `/batch/primes/{n}`
//! computes on all cores, at a lower level. Both are handlers of one axum router; the batch one forks with
//! `join` like any other code.
//!
//! ```sh
//! cargo run --release -p urgency-web --example levels -- 8080
//! curl localhost:8080/batch/primes/20000000 & wrk -c 64 -d 2 --latency http://localhost:8080/
//! ```
//!
//! Without an argument it takes a free port, asks itself a few times for both, and ends.

use axum::{Json, Router, extract::Path, routing::get};
use serde::Serialize;
use std::{
    error::Error,
    future::IntoFuture,
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
    time::{Duration, Instant},
};
use urgency::{Runtime, Shutdown, join, net::TcpListener};
use urgency_web::{level::LevelLayer, serve};

urgency::levels! {
    App:
        /// What a person waits for, and all connections.
        Interactive >
        /// What may take its time.
        Batch
}

#[derive(Serialize)]
struct Primes {
    below: u64,
    count: u64,
    level: String,
    took_ms: u128,
}

/// How many primes there are in `from..to`, by trial division, in parallel.
fn primes(from: u64, to: u64) -> u64 {
    if to - from <= 1000 {
        let is_prime = |n: &u64| {
            *n > 1
                && (2..)
                    .take_while(|d| d * d <= *n)
                    .all(|d| !n.is_multiple_of(d))
        };
        return (from..to).filter(is_prime).count() as u64;
    }
    let middle = from.midpoint(to);
    let (low, high) = join(|| primes(from, middle), || primes(middle, to));
    low + high
}

async fn count(Path(below): Path<u64>) -> Json<Primes> {
    let start = Instant::now();
    Json(Primes {
        below,
        count: primes(0, below),
        level: urgency::current_level().to_string(),
        took_ms: start.elapsed().as_millis(),
    })
}

fn main() -> Result<(), Box<dyn Error>> {
    let port = std::env::args()
        .nth(1)
        .map(|port| port.parse::<u16>())
        .transpose()?;
    let runtime = Runtime::builder().levels::<App>().build()?;
    let listener = urgency::block_on(TcpListener::bind(("127.0.0.1", port.unwrap_or(0))))?;
    let address = listener.local_addr()?;

    // At most eight batch requests at a time; the ninth is told to come back in a second.
    let levels = LevelLayer::new()
        .path("/batch", Batch)
        .bound(Batch, 8, Duration::from_secs(1));
    let counts = levels.in_flight();
    let router = Router::new()
        .route("/", get(|| async { "hello" }))
        .route("/batch/primes/{below}", get(count))
        .layer(levels);
    let server = serve(listener, router).level(Interactive);
    let served = runtime.at(Interactive).spawn(server.into_future());
    println!("listening on http://{address}");
    if port.is_some() {
        served.get()??;
        return Ok(());
    }

    let batch = std::thread::spawn(move || ask(address, "/batch/primes/300000"));
    while counts.at(Batch) == 0 && !batch.is_finished() {
        std::thread::yield_now();
    }
    let mut slowest = Duration::ZERO;
    for _ in 0..100 {
        let start = Instant::now();
        assert!(ask(address, "/")?.ends_with("hello"));
        slowest = slowest.max(start.elapsed());
    }
    println!("the slowest of 100 requests beside the batch took {slowest:?}");
    let answer = batch.join().expect("the client does not panic")?;
    let json = answer.rsplit("\r\n\r\n").next().unwrap_or_default();
    println!("the batch answered {json}");
    assert!(
        json.contains("\"count\":25997") && json.contains("\"level\":\"Batch\""),
        "{json}"
    );
    println!("{:?}", runtime.shutdown(Shutdown::Cancel));
    Ok(())
}

/// The answer to one request.
fn ask(address: SocketAddr, path: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(address)?;
    write!(
        stream,
        "GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n"
    )?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}
