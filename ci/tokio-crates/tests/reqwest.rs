//! reqwest opens Tokio's sockets, sets Tokio's timers and spawns by `tokio::spawn`. Here its futures are tasks of Urgency, at a level, and it talks
//! to our own server.

use axum::{
    Json, Router,
    body::Body,
    routing::{get, post},
};
use std::{
    future::{IntoFuture, pending},
    net::SocketAddr,
    time::Duration,
};
use tokio_crates::{Batch, Interactive, either_level, runtime};
use urgency::{Runtime, net::TcpListener};
use urgency_web::{serve, tokio_driver::TokioDriver};

fn server(runtime: &Runtime) -> SocketAddr {
    let listener = urgency::block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
    let address = listener.local_addr().unwrap();
    let echo = |Json(value): Json<serde_json::Value>| async move { Json(value) };
    let router = Router::new()
        .route("/", get(|| async { "hello" }))
        .route("/big", get(|| async { Body::from(vec![7; 3_000_000]) }))
        .route("/echo", post(echo))
        .route("/never", get(|| async { pending::<()>().await }));
    let serving = serve(listener, router).into_future();
    runtime.at(Interactive).spawn(serving).detach();
    address
}

#[test]
fn reqwest_fetches_posts_and_times_out_in_tasks_of_urgency() {
    let (driver, runtime) = (TokioDriver::start().unwrap(), runtime());
    let address = server(&runtime);
    let fetching = driver.run(async move {
        let (client, at) = (reqwest::Client::new(), |path| {
            format!("http://{address}{path}")
        });
        let hello = client.get(at("/")).send().await?.text().await?;
        assert_eq!(hello, "hello");
        let big = client.get(at("/big")).send().await?.bytes().await?;
        assert_eq!(big.len(), 3_000_000);
        let sent = serde_json::json!({ "numbers": [1, 2, 3] });
        let echo = client.post(at("/echo")).json(&sent).send().await?;
        assert_eq!(echo.json::<serde_json::Value>().await?, sent);
        let never = client.get(at("/never")).timeout(Duration::from_millis(30));
        assert!(never.send().await.unwrap_err().is_timeout());
        assert_eq!(urgency::current_level(), Batch.into());
        Ok::<_, reqwest::Error>(())
    });
    runtime.at(Batch).spawn(fetching).get().unwrap().unwrap();
}

#[test]
fn many_requests_at_once_come_back() {
    let (driver, runtime) = (TokioDriver::start().unwrap(), runtime());
    let address = server(&runtime);
    let client = driver.enter(reqwest::Client::new);
    let requests: Vec<_> = (0..200)
        .map(|n| {
            let client = client.clone();
            let fetching = driver.run(async move {
                let answer = client.get(format!("http://{address}/")).send().await?;
                answer.text().await
            });
            runtime.at(either_level(n)).spawn(fetching)
        })
        .collect();
    for request in requests {
        assert_eq!(request.get().unwrap().unwrap(), "hello");
    }
}
