//! `At`: typed levels in handlers of axum.
#![cfg(feature = "axum")]

use axum::{Router, routing::get};
use std::{
    future::IntoFuture,
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
};
use urgency::{Runtime, level::AtLeast, level::Level, net::TcpListener};
use urgency_web::{At, level::LevelLayer, serve};

urgency::levels! { App: Interactive > Batch }

/// After a deliberate change of a message: `TRYBUILD=overwrite`, and read the difference.
#[test]
fn a_handler_that_waits_for_less_urgent_work_does_not_compile() {
    let cases = trybuild::TestCases::new();
    cases.pass("tests/ui/pass_*.rs");
    cases.compile_fail("tests/ui/inversion_*.rs");
}

async fn double<L: Level>(at: At<L>) -> String
where
    Interactive: AtLeast<L>,
{
    at.run(async |cx| {
        let number = Interactive.spawn_fn(|_| 21).wait(cx).await.unwrap();
        format!("{} at {}", 2 * number, urgency::current_level())
    })
    .await
}

fn ask(address: SocketAddr, path: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nhost: test\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn a_handler_runs_at_the_level_that_it_names_or_answers_500_and_names_both() {
    let runtime = Runtime::builder()
        .workers(2)
        .levels::<App>()
        .build()
        .unwrap();
    let listener = urgency::block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
    let address = listener.local_addr().unwrap();
    let router = Router::new()
        .route("/", get(double::<Interactive>))
        .route("/batch", get(double::<Batch>))
        .route("/batch/wrong", get(double::<Interactive>))
        .layer(LevelLayer::new().path("/batch", Batch));
    let serve = serve(listener, router).level(Interactive);
    runtime.at(Interactive).spawn(serve.into_future()).detach();
    assert!(ask(address, "/").ends_with("42 at Interactive"));
    assert!(ask(address, "/batch").ends_with("42 at Batch"));
    let wrong = ask(address, "/batch/wrong");
    assert!(wrong.starts_with("HTTP/1.1 500"), "{wrong}");
    assert!(
        wrong.contains("runs at level `Batch`") && wrong.contains("at `Interactive`"),
        "{wrong}"
    );
}
