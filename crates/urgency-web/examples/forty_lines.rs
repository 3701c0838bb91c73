//! A web service in forty lines: two levels, all cores, and an end in good order at SIGTERM.
use axum::{Router, extract::Path, routing::get};
use std::error::Error;
use urgency::net::TcpListener;
use urgency::signal::unix::{SignalKind, signal};
use urgency::{Runtime, Shutdown, par};
use urgency_web::{level::LevelLayer, serve};

urgency::levels! { App: Interactive > Batch }

fn is_prime(n: u64) -> bool {
    (2..)
        .take_while(|d| d * d <= n)
        .all(|d| !n.is_multiple_of(d))
}

/// Forks over all cores in the middle of async code, and gives way to interactive requests.
async fn primes(Path(below): Path<u64>) -> String {
    let count = par::reduce(2..below, |n| u64::from(is_prime(n)), |a, b| a + b);
    format!("{} primes below {below}\n", count.unwrap_or(0))
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut terminate = signal(SignalKind::terminate())?;
    let runtime = Runtime::builder().levels::<App>().build()?;
    let router = Router::new()
        .route("/", get(async || "hello\n"))
        .route(
            "/stats",
            get(async || format!("{:#?}\n", Runtime::current().stats())),
        )
        .route("/primes/{below}", get(primes))
        .layer(
            LevelLayer::new()
                .path("/primes", Batch)
                .otherwise(Interactive),
        );
    let listener = runtime.block_on(TcpListener::bind("127.0.0.1:8080"))?;
    let server = serve(listener, router)
        .level(Interactive)
        .until(async move { _ = terminate.recv().await });
    println!("{:?}", runtime.block_on(async { server.await })?);
    println!("{:?}", runtime.shutdown(Shutdown::Cancel));
    Ok(())
}
