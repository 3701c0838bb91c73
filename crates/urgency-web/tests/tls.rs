//! HTTPS on both sides: a server with `Tls`, hyper-util's pooled client with `Connector`.
#![cfg(all(feature = "tls", feature = "client"))]

use axum::{Router, routing::get};
use http::{StatusCode, Version};
use http_body_util::{BodyExt, Empty};
use hyper::body::Bytes;
use hyper_util::{client::legacy::Client, server::conn::auto::Builder};
use std::{
    future::{IntoFuture, pending},
    io::{ErrorKind, Write},
    net::SocketAddr,
};
use urgency::{JoinHandle, Shared, net::TcpListener};
use urgency_web::{
    Served,
    client::Connector,
    rt::Executor,
    serve,
    tls::{Tls, client_trusting},
};

const CERTIFICATE: &[u8] = include_bytes!("keys/cert.pem");
const KEY: &[u8] = include_bytes!("keys/key.pem");

struct Server {
    address: SocketAddr,
    served: JoinHandle<std::io::Result<Served>>,
    stop: Shared<()>,
}

fn server() -> Server {
    server_with(|_| {})
}

fn server_with(http: impl FnOnce(&mut Builder<Executor>)) -> Server {
    let listener = urgency::block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
    let address = listener.local_addr().unwrap();
    let stop = urgency::spawn(pending()).share();
    let stopped = stop.clone();
    let big = || async { "x".repeat(1_000_000) };
    let router = Router::new()
        .route(
            "/",
            get(|version: Version| async move { format!("{version:?}") }),
        )
        .route("/big", get(big));
    let serve = serve(listener, router)
        .tls(Tls::from_pem(CERTIFICATE, KEY).unwrap())
        .http(http)
        .until(async move {
            let _ = stopped.await;
        });
    Server {
        address,
        served: urgency::spawn(serve.into_future()),
        stop,
    }
}

type PooledClient = Client<Connector, Empty<Bytes>>;

fn client(protocols: &[&[u8]]) -> PooledClient {
    let mut config = client_trusting(CERTIFICATE).unwrap();
    config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
    Client::builder(Executor::new()).build(Connector::with_tls(config))
}

async fn text(client: &PooledClient, address: SocketAddr, path: &str) -> String {
    let uri = format!("https://{address}{path}").parse().unwrap();
    let response = client.get(uri).await.unwrap();
    assert_eq!(response.status(), StatusCode::OK);
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    String::from_utf8(bytes.into()).unwrap()
}

#[test]
fn https_speaks_the_version_that_client_and_server_agree_on() {
    let server = server();
    urgency::block_on(async {
        for (protocols, version) in [
            (&[b"h2".as_slice(), b"http/1.1"][..], "HTTP/2.0"),
            (&[b"http/1.1"], "HTTP/1.1"),
        ] {
            let client = client(protocols);
            assert_eq!(text(&client, server.address, "/").await, version);
            assert_eq!(text(&client, server.address, "/big").await.len(), 1_000_000);
        }
    });
    server.stop.abort();
    let served = server.served.get().unwrap().unwrap();
    // A pooled client may open one more than it needs.
    assert!(served.accepted >= 2 && served.left == 0, "{served:?}");
}

#[test]
fn a_server_of_one_version_does_not_agree_on_the_other() {
    let both = [b"h2".as_slice(), b"http/1.1"];
    let http1 = server_with(|http| *http = http.clone().http1_only());
    let http2 = server_with(|http| *http = http.clone().http2_only());
    urgency::block_on(async {
        assert_eq!(text(&client(&both), http1.address, "/").await, "HTTP/1.1");
        assert_eq!(text(&client(&both), http2.address, "/").await, "HTTP/2.0");
        // It hears of it in the handshake.
        let uri: http::Uri = format!("https://{}/", http2.address).parse().unwrap();
        let refused = client(&both[1..]).get(uri).await.unwrap_err();
        assert!(refused.is_connect(), "{refused:?}");
    });
}

#[test]
fn a_client_that_does_not_trust_the_certificate_is_refused_and_the_server_goes_on() {
    let server = server();
    urgency::block_on(async {
        let stranger = trusts_nobody();
        let uri: http::Uri = format!("https://{}/", server.address).parse().unwrap();
        assert!(stranger.get(uri).await.is_err());
        let client = client(&[b"http/1.1"]);
        assert_eq!(text(&client, server.address, "/").await, "HTTP/1.1");
    });
}

/// Trusts nobody.
fn trusts_nobody() -> PooledClient {
    let config = client_trusting(b"").unwrap();
    Client::builder(Executor::new()).build(Connector::with_tls(config))
}

#[test]
fn a_peer_that_does_not_speak_tls_is_counted_as_failed() {
    let server = server();
    let mut stream = std::net::TcpStream::connect(server.address).unwrap();
    stream
        .write_all(b"GET / HTTP/1.1\r\nhost: test\r\n\r\n")
        .unwrap();
    std::io::copy(&mut stream, &mut std::io::sink()).unwrap();
    server.stop.abort();
    let served = server.served.get().unwrap().unwrap();
    assert_eq!((served.accepted, served.failed), (1, 1));
}

#[test]
fn a_peer_in_the_middle_of_its_handshake_does_not_hold_up_the_end() {
    let server = server();
    let mut silent = std::net::TcpStream::connect(server.address).unwrap();
    let mut slow = std::net::TcpStream::connect(server.address).unwrap();
    // The begin of a record that does not come.
    slow.write_all(&[22, 3, 1, 2, 0, 1]).unwrap();
    urgency::block_on(async {
        let client = client(&[b"http/1.1"]);
        assert_eq!(text(&client, server.address, "/").await, "HTTP/1.1");
    });
    server.stop.abort();
    let served = server.served.get().unwrap().unwrap();
    // An end that waited for them would count both as failed after ten seconds.
    assert_eq!((served.failed, served.cut, served.left), (0, 0, 0));
    for stream in [&mut silent, &mut slow] {
        // Its end, or an error.
        let _ = std::io::copy(stream, &mut std::io::sink());
    }
}

#[test]
fn what_is_wrong_with_a_certificate_is_said() {
    let no_chain = Tls::from_pem(b"nothing", KEY).unwrap_err();
    assert_eq!(no_chain.kind(), ErrorKind::InvalidInput);
    assert!(no_chain.to_string().contains("CERTIFICATE"), "{no_chain}");
    assert_eq!(
        Tls::from_pem(CERTIFICATE, b"").unwrap_err().kind(),
        ErrorKind::InvalidInput
    );
}
