//! hyper-util's pooled client on the runtime's sockets.
#![cfg(feature = "client")]

use axum::{Router, routing::get};
use http_body_util::{BodyExt, Empty};
use hyper::body::Bytes;
use hyper_util::client::legacy::Client;
use std::{
    future::{IntoFuture, pending},
    io::ErrorKind,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::SeqCst},
    },
    time::Duration,
};
use tower_service::Service;
use urgency::{
    Runtime,
    net::{TcpListener, TcpSocket},
    scheduling_point,
};
use urgency_web::{
    client::{Connector, Step, StepTimedOut},
    rt::Executor,
    serve,
};

const LIMIT: Duration = Duration::from_millis(300);

/// The step for which a connection took too long.
fn late(connector: Connector, address: &str) -> Option<Step> {
    let connecting = connector.clone().call(address.parse().unwrap());
    let connecting = urgency::time::timeout(LIMIT * 40, connecting);
    let connected = urgency::block_on(connecting).expect("nothing limits it");
    match connected {
        // Nobody accepts it: it stays in the listener's queue.
        Ok(connection) => {
            std::mem::forget(connection);
            None
        }
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::TimedOut, "{error}");
            let late = error.get_ref().unwrap().downcast_ref::<StepTimedOut>();
            assert!(error.to_string().contains("`Connector::limit`"), "{error}");
            Some(late.unwrap().step())
        }
    }
}

#[test]
fn an_address_that_does_not_answer_is_an_error_of_the_step_to_connect() {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let listener = socket.listen(0).unwrap();
    let address = format!("http://{}/", listener.local_addr().unwrap());
    // The kernel answers no more when its queue is full.
    let connector = Connector::new().limit(LIMIT);
    let found = (0..100).find_map(|_| late(connector.clone(), &address));
    assert_eq!(found, Some(Step::Connect));
}

#[cfg(feature = "tls")]
#[test]
fn a_server_that_does_not_shake_hands_is_an_error_of_the_handshake() {
    // The kernel accepts for it.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("https://{}/", listener.local_addr().unwrap());
    let trusted = urgency_web::tls::client_trusting(include_bytes!("keys/cert.pem")).unwrap();
    let connector = Connector::with_tls(trusted).limit(LIMIT);
    assert_eq!(late(connector, &address), Some(Step::Handshake));
}

#[test]
fn a_pooled_client_uses_its_connections_again_and_says_what_an_address_lacks() {
    let listener = urgency::block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
    let port = listener.local_addr().unwrap().port();
    let router = Router::new().route("/", get(|| async { "pooled" }));
    let stop = urgency::spawn(pending::<()>()).share();
    let stopped = stop.clone();
    let serve = serve(listener, router).until(async move {
        let _ = stopped.await;
    });
    let served = urgency::spawn(serve.into_future());
    let client: Client<_, Empty<Bytes>> = Client::builder(Executor::new()).build(Connector::new());
    urgency::block_on(async {
        for _ in 0..100 {
            let uri = format!("http://localhost:{port}/").parse().unwrap();
            let response = client.get(uri).await.unwrap();
            let bytes = response.into_body().collect().await.unwrap().to_bytes();
            assert_eq!(bytes, "pooled");
        }
        let error = client.get("ftp://localhost/".parse().unwrap()).await;
        let error = format!("{:?}", error.unwrap_err());
        assert!(error.contains("neither http nor https"), "{error}");
    });
    stop.abort();
    let served = served.get().unwrap().unwrap();
    // It may open one while another is on its way back into the pool.
    assert!(served.accepted < 100, "{served:?}");
}

urgency::levels! { App: Interactive > Batch }

#[test]
fn an_urgent_request_uses_a_connection_that_a_batch_opened_if_the_executor_has_a_level() {
    let listener = urgency::block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
    let uri: http::Uri = format!("http://{}/", listener.local_addr().unwrap())
        .parse()
        .unwrap();
    let router = Router::new().route("/", get(|| async { "hello" }));
    let serving = serve(listener, router).into_future();
    urgency::spawn(serving).detach();
    let runtime = Runtime::builder().workers(2).levels::<App>();
    let runtime = runtime.build().unwrap();
    let executor = Executor::at(Interactive);
    let client: Client<_, Empty<Bytes>> = Client::builder(executor).build(Connector::new());
    let ask = move || {
        let asking = client.get(uri.clone());
        async move {
            let body = asking.await.unwrap().into_body();
            body.collect().await.unwrap().to_bytes()
        }
    };
    runtime.at(Batch).spawn(ask()).get().unwrap();
    let end = Arc::new(AtomicBool::new(false));
    let fill = |_| {
        let end = end.clone();
        runtime.at(Interactive).spawn_fn(move || {
            while !end.load(SeqCst) {
                scheduling_point();
            }
        })
    };
    let filling: Vec<_> = (0..4).map(fill).collect();
    let asking = urgency::time::timeout(Duration::from_secs(20), ask());
    let answer = runtime.at(Interactive).spawn(asking).get().unwrap();
    end.store(true, SeqCst);
    filling.into_iter().for_each(|task| task.get().unwrap());
    assert_eq!(answer.expect("it waits for the batch's level"), "hello");
}
