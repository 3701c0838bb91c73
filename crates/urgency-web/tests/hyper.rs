//! hyper's own programs, on Urgency: its servers and clients with the three runtime traits.

use bytes::Bytes;
use http_body_util::{BodyExt, Empty, Full, combinators::BoxBody};
use hyper::{
    Method, Request, Response, StatusCode,
    body::{Body, Frame, Incoming},
    client, server,
    service::service_fn,
};
use std::{
    convert::Infallible,
    future::Future,
    io,
    net::SocketAddr,
    pin::Pin,
    sync::atomic::{AtomicUsize, Ordering},
    task::{Context, Poll},
    time::Duration,
};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use urgency::net::{TcpListener, TcpStream};
use urgency_web::rt::{Executor, Io, Timer};

type Answer = Response<BoxBody<Bytes, io::Error>>;

fn full(bytes: impl Into<Bytes>) -> BoxBody<Bytes, io::Error> {
    Full::new(bytes.into())
        .map_err(|never| match never {})
        .boxed()
}

fn status(status: StatusCode) -> Answer {
    let mut response = Response::new(full(""));
    *response.status_mut() = status;
    response
}

/// The routes of the examples: hello, echo, upper case while it streams, reversed, a file, a small API, an upgrade.
async fn routes(mut request: Request<Incoming>) -> Result<Answer, hyper::Error> {
    Ok(match (request.method(), request.uri().path()) {
        (&Method::GET, "/") => Response::new(full("hello")),
        (&Method::POST, "/echo") => {
            Response::new(request.into_body().map_err(io::Error::other).boxed())
        }
        (&Method::POST, "/echo/upper") => {
            let upper =
                |frame: Frame<Bytes>| frame.map_data(|data| data.to_ascii_uppercase().into());
            let body = request.into_body().map_frame(upper);
            Response::new(body.map_err(io::Error::other).boxed())
        }
        (&Method::POST, "/echo/reversed") => {
            let limit = 64 * 1024;
            if request
                .body()
                .size_hint()
                .upper()
                .is_none_or(|most| most > limit)
            {
                return Ok(status(StatusCode::PAYLOAD_TOO_LARGE));
            }
            let whole = request.into_body().collect().await?.to_bytes();
            Response::new(full(whole.iter().rev().copied().collect::<Vec<_>>()))
        }
        (&Method::GET, "/file") => match urgency::fs::read("Cargo.toml").await {
            Ok(content) => Response::new(full(content)),
            Err(_) => status(StatusCode::NOT_FOUND),
        },
        (&Method::POST, "/api/sum") => {
            let whole = request.into_body().collect().await?.to_bytes();
            match serde_json::from_slice::<Vec<i64>>(&whole) {
                Ok(numbers) => {
                    let sum = serde_json::json!({ "sum": numbers.iter().sum::<i64>() });
                    let mut response = Response::new(full(sum.to_string()));
                    let json = "application/json".parse().expect("a valid value");
                    response.headers_mut().insert("content-type", json);
                    response
                }
                Err(_) => status(StatusCode::BAD_REQUEST),
            }
        }
        (&Method::GET, "/upgrade") => {
            let upgrade = hyper::upgrade::on(&mut request);
            urgency::spawn(async move {
                let mut stream = Io::new(upgrade.await.expect("the client asked for it"));
                let word = read_exactly(&mut stream, 4)
                    .await
                    .expect("the client sends 4 bytes");
                write_all(&mut stream, &[b"you said ", &word[..]].concat())
                    .await
                    .expect("the client reads");
            })
            .detach();
            let mut response = status(StatusCode::SWITCHING_PROTOCOLS);
            let name = "talk".parse().expect("a valid value");
            response.headers_mut().insert("upgrade", name);
            response
        }
        _ => status(StatusCode::NOT_FOUND),
    })
}

async fn read_exactly(stream: &mut (impl AsyncRead + Unpin), count: usize) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; count];
    let mut buffer = ReadBuf::new(&mut bytes);
    while buffer.remaining() > 0 {
        let before = buffer.remaining();
        std::future::poll_fn(|cx| Pin::new(&mut *stream).poll_read(cx, &mut buffer)).await?;
        if buffer.remaining() == before {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
    Ok(bytes)
}

async fn write_all(stream: &mut (impl AsyncWrite + Unpin), mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        let count = std::future::poll_fn(|cx| Pin::new(&mut *stream).poll_write(cx, bytes)).await?;
        bytes = &bytes[count..];
    }
    std::future::poll_fn(|cx| Pin::new(&mut *stream).poll_flush(cx)).await
}

#[derive(Clone, Copy)]
enum Version {
    Http1,
    Http2,
}

fn server(version: Version) -> SocketAddr {
    let listener = urgency::block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
    let address = listener.local_addr().unwrap();
    urgency::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let io = Io::new(stream);
            urgency::spawn(async move {
                let service = service_fn(routes);
                // A client that goes away is an error of the connection.
                let _ = match version {
                    Version::Http1 => {
                        let builder = &mut server::conn::http1::Builder::new();
                        let connection = builder.timer(Timer::new()).serve_connection(io, service);
                        connection.with_upgrades().await
                    }
                    Version::Http2 => {
                        let builder = &mut server::conn::http2::Builder::new(Executor::new());
                        builder
                            .timer(Timer::new())
                            .serve_connection(io, service)
                            .await
                    }
                };
            })
            .detach();
        }
    })
    .detach();
    address
}

/// A client's connection of either version.
enum Client {
    Http1(client::conn::http1::SendRequest<BoxBody<Bytes, io::Error>>),
    Http2(client::conn::http2::SendRequest<BoxBody<Bytes, io::Error>>),
}

impl Client {
    async fn new(address: SocketAddr, version: Version) -> Client {
        let io = Io::new(TcpStream::connect(address).await.unwrap());
        match version {
            Version::Http1 => {
                let (client, connection) = client::conn::http1::handshake(io).await.unwrap();
                urgency::spawn(connection.with_upgrades()).detach();
                Client::Http1(client)
            }
            Version::Http2 => {
                let shake = client::conn::http2::handshake(Executor::new(), io);
                let (client, connection) = shake.await.unwrap();
                urgency::spawn(connection).detach();
                Client::Http2(client)
            }
        }
    }

    async fn send(
        &mut self,
        method: Method,
        path: &str,
        body: BoxBody<Bytes, io::Error>,
    ) -> Response<Incoming> {
        let request = Request::builder().method(method).header("host", "test");
        match self {
            Client::Http1(client) => {
                let request = request.uri(path).body(body).unwrap();
                client.ready().await.unwrap();
                client.send_request(request).await.unwrap()
            }
            Client::Http2(client) => {
                let request = request
                    .uri(format!("http://test{path}"))
                    .body(body)
                    .unwrap();
                client.send_request(request).await.unwrap()
            }
        }
    }

    async fn text(&mut self, method: Method, path: &str, body: &str) -> (StatusCode, String) {
        let response = self.send(method, path, full(body.to_owned())).await;
        let status = response.status();
        let bytes = response.into_body().collect().await.unwrap().to_bytes();
        (status, String::from_utf8(bytes.into()).unwrap())
    }
}

fn the_examples_answer(version: Version) {
    urgency::block_on(async {
        let address = server(version);
        let mut client = Client::new(address, version).await;
        let ok = |text: &str| (StatusCode::OK, text.to_owned());
        assert_eq!(client.text(Method::GET, "/", "").await, ok("hello"));
        assert_eq!(
            client.text(Method::POST, "/echo", "as it is").await,
            ok("as it is")
        );
        assert_eq!(
            client.text(Method::POST, "/echo/upper", "louder").await,
            ok("LOUDER")
        );
        assert_eq!(
            client.text(Method::POST, "/echo/reversed", "abc").await,
            ok("cba")
        );
        let manifest = std::fs::read_to_string("Cargo.toml").unwrap();
        assert_eq!(client.text(Method::GET, "/file", "").await, ok(&manifest));
        assert_eq!(
            client.text(Method::POST, "/api/sum", "[1, 2, 39]").await,
            ok("{\"sum\":42}")
        );
        let (status, _) = client.text(Method::POST, "/api/sum", "{").await;
        assert_eq!(status, StatusCode::BAD_REQUEST);
        let (status, _) = client.text(Method::GET, "/nowhere", "").await;
        assert_eq!(status, StatusCode::NOT_FOUND);
        let (status, _) = client
            .text(Method::POST, "/echo/reversed", &"x".repeat(70_000))
            .await;
        assert_eq!(status, StatusCode::PAYLOAD_TOO_LARGE);
    });
}

#[test]
fn hypers_examples_answer_over_http_1() {
    the_examples_answer(Version::Http1);
}

#[test]
fn hypers_examples_answer_over_http_2() {
    the_examples_answer(Version::Http2);
}

/// A body of `left` pieces, with a pause before each.
struct Slowly {
    left: usize,
    pause: Pin<Box<urgency::time::Sleep>>,
}

impl Body for Slowly {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        if self.left == 0 {
            return Poll::Ready(None);
        }
        std::task::ready!(self.pause.as_mut().poll(cx));
        self.left -= 1;
        self.pause = Box::pin(urgency::time::sleep(Duration::from_millis(1)));
        Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(&[b'.'; 10_000])))))
    }
}

#[test]
fn a_body_of_a_megabyte_streams_both_ways_at_once() {
    for version in [Version::Http1, Version::Http2] {
        urgency::block_on(async {
            let mut client = Client::new(server(version), version).await;
            let body = Slowly {
                left: 100,
                pause: Box::pin(urgency::time::sleep(Duration::ZERO)),
            };
            let response = client.send(Method::POST, "/echo", body.boxed()).await;
            let back = response.into_body().collect().await.unwrap().to_bytes();
            assert_eq!(back.len(), 1_000_000);
        });
    }
}

#[test]
fn one_http_2_connection_carries_many_requests_at_once() {
    urgency::block_on(async {
        let client = Client::new(server(Version::Http2), Version::Http2).await;
        let Client::Http2(client) = client else {
            unreachable!("asked for HTTP/2");
        };
        let answered = std::sync::Arc::new(AtomicUsize::new(0));
        let requests: Vec<_> = (0..100)
            .map(|n| {
                let mut client = Client::Http2(client.clone());
                let answered = answered.clone();
                urgency::spawn(async move {
                    let text = format!("number {n}");
                    let (_, back) = client.text(Method::POST, "/echo", &text).await;
                    assert_eq!(back, text);
                    answered.fetch_add(1, Ordering::Relaxed);
                })
            })
            .collect();
        for request in requests {
            request.await.unwrap();
        }
        assert_eq!(answered.load(Ordering::Relaxed), 100);
    });
}

#[test]
fn an_upgraded_connection_speaks_another_protocol() {
    urgency::block_on(async {
        let mut client = Client::new(server(Version::Http1), Version::Http1).await;
        let Client::Http1(sender) = &mut client else {
            unreachable!("asked for HTTP/1");
        };
        let request = Request::get("/upgrade")
            .header("host", "test")
            .header("connection", "upgrade")
            .header("upgrade", "talk")
            .body(full(""))
            .unwrap();
        let response = sender.send_request(request).await.unwrap();
        assert_eq!(response.status(), StatusCode::SWITCHING_PROTOCOLS);
        let mut stream = Io::new(hyper::upgrade::on(response).await.unwrap());
        write_all(&mut stream, b"ping").await.unwrap();
        let answer = read_exactly(&mut stream, 13).await.unwrap();
        assert_eq!(answer, b"you said ping");
    });
}

#[test]
fn a_client_that_sends_no_headers_is_cut_off_in_time() {
    urgency::block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let silent = TcpStream::connect(listener.local_addr().unwrap())
            .await
            .unwrap();
        let (stream, _) = listener.accept().await.unwrap();
        let service =
            service_fn(|_| async { Ok::<_, Infallible>(Response::new(Empty::<Bytes>::new())) });
        let served = server::conn::http1::Builder::new()
            .timer(Timer::new())
            .header_read_timeout(Duration::from_millis(10))
            .serve_connection(Io::new(stream), service)
            .await;
        assert!(served.unwrap_err().is_timeout());
        drop(silent);
    });
}
