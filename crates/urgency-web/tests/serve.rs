//! `serve`: an axum router as a server, its limits and its end.

use axum::{
    Extension, Json, Router,
    body::{Bytes, HttpBody as Body},
    extract::Path,
    routing::{get, post},
};
use http_body::Frame;
use http_body_util::Empty;
use hyper::{Request, client::conn::http2};
use serde::{Deserialize, Serialize};
use std::{
    convert::Infallible,
    future::{IntoFuture, pending},
    io::{self, Read, Write},
    net::{SocketAddr, TcpStream},
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
        mpsc,
    },
    task::{Context, Poll, ready},
    time::{Duration, Instant},
};
use urgency::{
    JoinHandle, Runtime, Shared,
    net::{TcpListener, UnixListener},
    time::{Sleep, sleep, timeout},
};
use urgency_web::{
    Serve, Served,
    rt::{Executor, Io},
    serve,
    serve::{Listener, Peer},
};

urgency::levels! { App: Urgent > Lazy }

/// A server, its address, and what ends it.
struct Server {
    address: SocketAddr,
    served: JoinHandle<io::Result<Served>>,
    stop: Shared<()>,
}

impl Server {
    fn new(router: Router) -> Server {
        Server::with(router, |serve| serve)
    }

    fn with(
        router: Router,
        set: impl FnOnce(Serve<TcpListener, Router>) -> Serve<TcpListener, Router>,
    ) -> Server {
        Server::on(bound().0, router, set)
    }

    fn on(
        listener: TcpListener,
        router: Router,
        set: impl FnOnce(Serve<TcpListener, Router>) -> Serve<TcpListener, Router>,
    ) -> Server {
        let address = listener.local_addr().unwrap();
        let stop = urgency::spawn(pending()).share();
        let stopped = stop.clone();
        let serve = serve(listener, router).until(async move {
            // Cancelled: that is the signal.
            let _ = stopped.await;
        });
        Server {
            address,
            served: urgency::spawn(set(serve).into_future()),
            stop,
        }
    }

    fn stop(self) -> Served {
        self.stop.abort();
        self.served.get().unwrap().unwrap()
    }
}

/// A listener, which takes connections and what they send before it is served: that is in time for any limit.
fn bound() -> (TcpListener, SocketAddr) {
    let listener = urgency::block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
    let address = listener.local_addr().unwrap();
    (listener, address)
}

fn request(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nhost: test\r\n\r\n")
}

/// The answer to one request on a connection of its own.
fn ask(address: SocketAddr, path: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(request(path).as_bytes()).unwrap();
    read_answer(&mut stream)
}

/// Reads a head and the body whose length it says.
fn read_answer(stream: &mut impl Read) -> String {
    let mut answer = Vec::new();
    let mut byte = [0];
    while !answer.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte).unwrap();
        answer.push(byte[0]);
    }
    let head = String::from_utf8_lossy(&answer).to_lowercase();
    let length = head.split("content-length: ").nth(1).unwrap();
    let length: usize = length.split('\r').next().unwrap().parse().unwrap();
    let head = answer.len();
    answer.resize(head + length, 0);
    stream.read_exact(&mut answer[head..]).unwrap();
    String::from_utf8(answer).unwrap()
}

fn is_closed(stream: &mut impl Read) -> bool {
    matches!(stream.read(&mut [0]), Ok(0) | Err(_))
}

#[derive(Deserialize, Serialize)]
struct User {
    name: String,
    age: u32,
}

#[test]
fn an_axum_router_answers_with_extractors_json_and_peers() {
    async fn older(Json(user): Json<User>) -> Json<User> {
        Json(User {
            age: user.age + 1,
            ..user
        })
    }
    let router = Router::new()
        .route("/hello/{name}", get(|Path(name): Path<String>| async move { format!("hello {name}") }))
        .route("/older", post(older))
        .route("/me", get(|Extension(Peer(peer)): Extension<Peer<SocketAddr>>| async move { peer.to_string() }));
    let server = Server::with(router, |serve| serve.peers(true));

    assert!(ask(server.address, "/hello/you").ends_with("\r\n\r\nhello you"));
    assert!(ask(server.address, "/nowhere").starts_with("HTTP/1.1 404"));
    let mut stream = TcpStream::connect(server.address).unwrap();
    let body = r#"{"name":"Ada","age":36}"#;
    let head = "POST /older HTTP/1.1\r\nhost: test\r\ncontent-type: application/json\r\n";
    write!(stream, "{head}content-length: {}\r\n\r\n{body}", body.len()).unwrap();
    assert!(read_answer(&mut stream).ends_with(r#"{"name":"Ada","age":37}"#));
    // The same connection again.
    stream.write_all(request("/me").as_bytes()).unwrap();
    let own = stream.local_addr().unwrap().to_string();
    assert!(read_answer(&mut stream).ends_with(&own));
    let served = server.stop();
    assert_eq!((served.accepted, served.left, served.cut), (3, 0, 0));
}

#[test]
fn a_server_that_is_told_to_stop_finishes_its_requests_and_closes_idle_connections() {
    let (began, has_begun) = mpsc::channel();
    let gate = urgency::spawn(pending::<()>()).share();
    let handler_gate = gate.clone();
    let router = Router::new().route(
        "/slow",
        get(move || async move {
            began.send(()).unwrap();
            let _ = handler_gate.await;
            "in the end"
        }),
    );
    let server = Server::new(router);
    let mut idle = TcpStream::connect(server.address).unwrap();
    let mut busy = TcpStream::connect(server.address).unwrap();
    busy.write_all(request("/slow").as_bytes()).unwrap();
    has_begun.recv().unwrap();
    server.stop.abort();
    assert!(is_closed(&mut idle));
    while TcpStream::connect(server.address).is_ok() {
        std::thread::yield_now();
    }
    assert!(!server.served.is_finished());
    gate.abort();
    assert!(read_answer(&mut busy).ends_with("in the end"));
    assert!(is_closed(&mut busy));
    let served = server.served.get().unwrap().unwrap();
    assert_eq!((served.cut, served.left, served.failed), (0, 0, 0));
}

#[test]
fn connections_that_do_not_finish_in_time_are_cut() {
    let (began, has_begun) = mpsc::channel();
    let router = Router::new().route(
        "/never",
        get(move || async move {
            began.send(()).unwrap();
            pending::<()>().await;
        }),
    );
    let server = Server::with(router, |serve| serve.drain(Duration::from_millis(20)));
    let mut stream = TcpStream::connect(server.address).unwrap();
    stream.write_all(request("/never").as_bytes()).unwrap();
    has_begun.recv().unwrap();
    let served = server.stop();
    assert_eq!((served.accepted, served.cut, served.left), (1, 1, 0));
    assert!(is_closed(&mut stream));
}

#[test]
fn no_more_connections_than_the_limit_are_served_at_a_time() {
    let live = Arc::new(AtomicUsize::new(0));
    let most = Arc::new(AtomicUsize::new(0));
    let seen = most.clone();
    let router = Router::new().route(
        "/",
        get(move || async move {
            most.fetch_max(live.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            sleep(Duration::from_millis(2)).await;
            live.fetch_sub(1, Ordering::SeqCst);
            "served"
        }),
    );
    let server = Server::with(router, |serve| serve.connections(3));
    let address = server.address;
    let clients: Vec<_> = (0..20)
        .map(|_| std::thread::spawn(move || ask(address, "/")))
        .collect();
    for client in clients {
        assert!(client.join().unwrap().ends_with("served"));
    }
    let served = server.stop();
    assert_eq!((served.accepted, served.left), (20, 0));
    assert!((1..=3).contains(&seen.load(Ordering::SeqCst)));
}

/// Waits until the server ends a connection, and for no more than 20 seconds.
fn is_ended(stream: &mut TcpStream) -> bool {
    let limit = Some(Duration::from_secs(20));
    stream.set_read_timeout(limit).unwrap();
    let mut bytes = Vec::new();
    match stream.read_to_end(&mut bytes) {
        Ok(_) => true,
        Err(error) => error.kind() == io::ErrorKind::ConnectionReset,
    }
}

const IDLE: Duration = Duration::from_millis(30);

#[test]
fn connections_without_a_request_end_after_the_limit_whatever_they_send() {
    let router = Router::new().route("/", get(|| async { "served" }));
    let (listener, address) = bound();
    let mut silent = TcpStream::connect(address).unwrap();
    let mut drip = TcpStream::connect(address).unwrap();
    let mut between = TcpStream::connect(address).unwrap();
    between.write_all(request("/").as_bytes()).unwrap();
    let begin = Instant::now();
    let server = Server::on(listener, router, |serve| serve.idle(IDLE));
    assert!(read_answer(&mut between).ends_with("served"));
    let mut later = between.try_clone().unwrap();
    let drips = std::thread::spawn(move || {
        let heads = [&mut drip, &mut later];
        for head in heads {
            let (begin, limit) = (Instant::now(), Duration::from_secs(20));
            let mut bytes = b"GET / HTTP/1.1\r\nx: ".iter().chain([b'x'].iter().cycle());
            while head.write_all(&[*bytes.next().unwrap()]).is_ok() {
                assert!(begin.elapsed() < limit, "a head that never ends is read");
                std::thread::sleep(Duration::from_millis(1));
            }
        }
    });
    assert!(is_ended(&mut silent));
    assert!(begin.elapsed() >= IDLE);
    drips.join().unwrap();
    assert!(is_ended(&mut between));
    let served = server.stop();
    assert_eq!((served.failed, served.left), (0, 0));
    assert!(served.cut >= 1, "the silent one: {served:?}");
}

#[test]
fn a_request_under_way_is_not_idle_while_it_is_handled_nor_while_its_response_is_made() {
    /// Three frames, each later than the limit.
    struct Frames(u8, Pin<Box<Sleep>>);

    impl Body for Frames {
        type Data = Bytes;
        type Error = Infallible;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            cx: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
            if self.0 == 3 {
                return Poll::Ready(None);
            }
            ready!(self.1.as_mut().poll(cx));
            self.0 += 1;
            self.1 = Box::pin(sleep(IDLE * 3));
            Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(b"frame ")))))
        }
    }

    let router = Router::new().route(
        "/",
        get(|| async {
            sleep(IDLE * 3).await;
            axum::body::Body::new(Frames(0, Box::pin(sleep(IDLE * 3))))
        }),
    );
    let (listener, address) = bound();
    let mut stream = TcpStream::connect(address).unwrap();
    // The end of an answer to HTTP/1.0 is the end of the connection.
    stream.write_all(b"GET / HTTP/1.0\r\n\r\n").unwrap();
    let server = Server::on(listener, router, |serve| serve.idle(IDLE));
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.ends_with("frame frame frame "), "{answer}");
    let served = server.stop();
    assert_eq!((served.finished, served.cut), (1, 0));
}

#[test]
fn a_client_that_does_not_read_its_answer_gives_its_place_back() {
    let router = Router::new()
        .route("/much", get(|| async { vec![0_u8; 64 << 20] }))
        .route("/", get(|| async { "served" }));
    let (listener, address) = bound();
    let mut lazy = TcpStream::connect(address).unwrap();
    lazy.write_all(request("/much").as_bytes()).unwrap();
    let server = Server::on(listener, router, |serve| serve.connections(1).idle(IDLE));
    assert!(ask(server.address, "/").ends_with("served"));
    assert_eq!(server.stop().cut, 1);
}

/// A body without an end, in pieces of 64 KiB.
struct Endless;

impl Body for Endless {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(&[0; 1 << 16])))))
    }
}

#[test]
fn a_client_that_does_not_read_a_response_that_is_still_made_gives_its_place_back() {
    let answer = || async { axum::body::Body::new(Endless) };
    let router = Router::new()
        .route("/endless", get(answer))
        .route("/", get(|| async { "served" }));
    let (listener, address) = bound();
    let mut lazy = TcpStream::connect(address).unwrap();
    lazy.write_all(request("/endless").as_bytes()).unwrap();
    let server = Server::on(listener, router, |serve| serve.connections(1).idle(IDLE));
    let mut next = TcpStream::connect(address).unwrap();
    next.set_read_timeout(Some(Duration::from_secs(20)))
        .unwrap();
    next.write_all(request("/").as_bytes()).unwrap();
    assert!(read_answer(&mut next).ends_with("served"));
    assert_eq!(server.stop().cut, 1);
}

#[test]
fn an_http_2_connection_without_requests_is_told_to_go() {
    let router = Router::new().route("/", get(|| async { "served" }));
    let server = Server::with(router, |serve| serve.idle(Duration::from_secs(1)));
    urgency::block_on(async {
        let stream = urgency::net::TcpStream::connect(server.address).await;
        let io = Io::new(stream.unwrap());
        let (mut sender, connection) = http2::handshake(Executor::new(), io).await.unwrap();
        let connection = urgency::spawn(connection);
        let request = Request::get("http://test/").body(Empty::<Bytes>::new());
        let response = sender.send_request(request.unwrap()).await.unwrap();
        assert_eq!(response.status(), 200);
        drop(response);
        // The sender lives: it is the server that ends the connection.
        assert!(timeout(Duration::from_secs(20), connection).await.is_ok());
        assert!(sender.is_closed());
    });
    assert_eq!(server.stop().left, 0);
}

#[test]
fn a_server_of_http_1_alone_does_not_answer_by_http_2() {
    let router = Router::new().route("/", get(|| async { "served" }));
    let server = Server::with(router, |serve| {
        serve.http(|http| *http = http.clone().http1_only())
    });
    assert!(ask(server.address, "/").ends_with("served"));
    let mut stream = TcpStream::connect(server.address).unwrap();
    let settings = [0, 0, 0, 4, 0, 0, 0, 0, 0];
    let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    stream
        .write_all(&[&preface[..], &settings].concat())
        .unwrap();
    let limit = Some(Duration::from_secs(20));
    stream.set_read_timeout(limit).unwrap();
    let mut frame = [0; 9];
    match stream.read(&mut frame) {
        Ok(length) => assert!(length < 4 || frame[3] != 4, "settings: {frame:?}"),
        Err(error) => assert_eq!(error.kind(), io::ErrorKind::ConnectionReset),
    }
}

#[test]
fn connections_run_at_the_level_that_the_server_says() {
    let runtime = Runtime::builder().levels::<App>().build().unwrap();
    let listener = urgency::block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
    let address = listener.local_addr().unwrap();
    let router = Router::new().route("/", get(|| async { urgency::current_level().to_string() }));
    let _serving = runtime.spawn(serve(listener, router).level(Urgent).into_future());
    assert!(ask(address, "/").ends_with("\r\n\r\nUrgent"));
}

#[test]
fn a_panicking_handler_ends_its_connection_and_no_other() {
    let router = Router::new()
        .route(
            "/bad",
            get(|| async {
                if true {
                    panic!("on purpose")
                }
            }),
        )
        .route("/good", get(|| async { "good" }));
    let server = Server::new(router);
    let mut good = TcpStream::connect(server.address).unwrap();
    let mut bad = TcpStream::connect(server.address).unwrap();
    bad.write_all(request("/bad").as_bytes()).unwrap();
    assert!(is_closed(&mut bad));
    good.write_all(request("/good").as_bytes()).unwrap();
    assert!(read_answer(&mut good).ends_with("good"));
    drop(good);
    let served = server.stop();
    assert_eq!((served.accepted, served.failed, served.left), (2, 1, 0));
}

/// Fails as a listener does without descriptors, for a while.
struct OutOfDescriptors {
    listener: TcpListener,
    failures_left: AtomicUsize,
}

impl Listener for OutOfDescriptors {
    type Stream = urgency::net::TcpStream;
    type Peer = SocketAddr;

    fn poll_accept(
        &self,
        cx: &mut std::task::Context<'_>,
    ) -> std::task::Poll<io::Result<(Self::Stream, SocketAddr)>> {
        let left = self.failures_left.load(Ordering::Relaxed);
        if left > 0 {
            self.failures_left.store(left - 1, Ordering::Relaxed);
            const EMFILE: i32 = 24;
            return std::task::Poll::Ready(Err(io::Error::from_raw_os_error(EMFILE)));
        }
        self.listener.poll_accept(cx)
    }
}

#[test]
fn a_server_without_descriptors_pauses_and_serves_again() {
    let listener = urgency::block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
    let address = listener.local_addr().unwrap();
    let listener = OutOfDescriptors {
        listener,
        failures_left: AtomicUsize::new(3),
    };
    let stop = urgency::spawn(pending::<()>()).share();
    let stopped = stop.clone();
    let router = Router::new().route("/", get(|| async { "again" }));
    let serve = serve(listener, router).until(async move {
        let _ = stopped.await;
    });
    let served = urgency::spawn(serve.into_future());
    assert!(ask(address, "/").ends_with("again"));
    stop.abort();
    assert_eq!(served.get().unwrap().unwrap().pauses, 3);
}

#[test]
fn a_router_is_served_on_a_unix_socket() {
    let path = std::env::temp_dir().join(format!("urgency-web-{}", std::process::id()));
    let listener = UnixListener::bind(&path).unwrap();
    let router = Router::new().route("/", get(|| async { "local" }));
    let _serving = urgency::spawn(serve(listener, router).into_future());
    let mut stream = std::os::unix::net::UnixStream::connect(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    stream.write_all(request("/").as_bytes()).unwrap();
    assert!(read_answer(&mut stream).ends_with("local"));
}
