//! hyper-util's pooled client on the runtime's sockets.
#![cfg(feature = "client")]

use axum::{Router, routing::get};
use http_body_util::{BodyExt, Empty};
use hyper::body::Bytes;
use hyper_util::client::legacy::Client;
use std::future::{IntoFuture, pending};
use urgency::net::TcpListener;
use urgency_web::{client::Connector, rt::Executor, serve};

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
