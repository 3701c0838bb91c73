//! `LevelLayer`: requests at levels of their own, behind one server.

use axum::{
    Router,
    body::{Body, Bytes},
    response::Response,
    routing::{get, post},
};
use http_body::Frame;
use std::{
    convert::Infallible,
    future::{IntoFuture, pending},
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
    pin::Pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
        mpsc,
    },
    task::{Context, Poll},
    time::Duration,
};
use urgency::{Runtime, net::TcpListener};
use urgency_web::{
    level::{InFlight, LevelLayer},
    serve,
};

urgency::levels! { App: Interactive > Batch }

/// A server whose connections are `Interactive` and whose requests have the levels that the layer gives.
struct Server {
    runtime: Runtime,
    address: SocketAddr,
    counts: InFlight,
}

impl Server {
    fn new(router: Router, layer: LevelLayer) -> Server {
        let runtime = Runtime::builder()
            .workers(2)
            .levels::<App>()
            .build()
            .unwrap();
        let listener = urgency::block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let address = listener.local_addr().unwrap();
        let counts = layer.in_flight();
        let serve = serve(listener, router.layer(layer)).level(Interactive);
        runtime.at(Interactive).spawn(serve.into_future()).detach();
        Server {
            runtime,
            address,
            counts,
        }
    }

    fn send(&self, method: &str, path: &str, rest: &str) -> TcpStream {
        let mut stream = TcpStream::connect(self.address).unwrap();
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nhost: test\r\nconnection: close\r\n{rest}"
        )
        .unwrap();
        stream
    }

    fn get(&self, path: &str) -> String {
        read_all(self.send("GET", path, "\r\n"))
    }
}

fn read_all(mut stream: TcpStream) -> String {
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

fn until(mut condition: impl FnMut() -> bool) {
    while !condition() {
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn to_batch() -> LevelLayer {
    LevelLayer::new().path("/batch", Batch)
}

async fn level() -> String {
    format!("level {}", urgency::current_level())
}

#[test]
fn each_request_runs_at_the_level_of_its_rule_and_answers_through_a_more_urgent_connection() {
    let router = Router::new()
        .route("/", get(level))
        .route("/batch", get(level))
        .route(
            "/batch/echo",
            post(|text: String| async move { format!("{} {text}", level().await) }),
        );
    let layer = to_batch().header("x-background", "yes", Batch);
    let server = Server::new(router, layer);
    assert!(server.get("/").ends_with("\r\n\r\nlevel Interactive"));
    assert!(server.get("/batch").ends_with("\r\n\r\nlevel Batch"));
    let by_header = read_all(server.send("GET", "/", "x-background: yes\r\n\r\n"));
    assert!(by_header.ends_with("\r\n\r\nlevel Batch"));
    let rest = "content-length: 5\r\ncontent-type: text/plain\r\n\r\nhello";
    assert!(read_all(server.send("POST", "/batch/echo", rest)).ends_with("level Batch hello"));
    // Nothing is in flight any more; the last task may be a moment behind its response.
    until(|| server.counts.at(Batch) == 0 && server.counts.at(Interactive) == 0);
}

#[test]
fn an_urgent_request_is_answered_while_batch_requests_hold_every_worker() {
    let (release, gate) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (released, running) = (release.clone(), gate.clone());
    let busy = move || async move {
        running.fetch_add(1, Ordering::SeqCst);
        // Computes, and looks for more urgent work as a fork would.
        while released.load(Ordering::SeqCst) == 0 {
            urgency::join(std::hint::spin_loop, urgency::scheduling_point);
        }
        "done"
    };
    let router = Router::new()
        .route("/", get(level))
        .route("/batch", get(busy));
    let server = Server::new(router, to_batch());
    let batch: Vec<_> = (0..4)
        .map(|_| server.send("GET", "/batch", "\r\n"))
        .collect();
    until(|| gate.load(Ordering::SeqCst) >= 2);
    // Their connections are urgent, whatever holds the workers.
    until(|| server.counts.at(Batch) == 4);
    for _ in 0..20 {
        assert!(server.get("/").ends_with("level Interactive"));
    }
    assert_eq!(server.counts.at(Batch), 4);
    release.store(1, Ordering::SeqCst);
    for stream in batch {
        assert!(read_all(stream).ends_with("done"));
    }
}

#[test]
fn a_level_at_its_bound_sheds_with_503_and_the_others_do_not() {
    let gate = urgency::spawn(pending::<()>()).share();
    let wait = gate.clone();
    let slow = move || async move {
        let _ = wait.await;
        "let through"
    };
    let router = Router::new()
        .route("/", get(level))
        .route("/batch", get(slow));
    let layer = to_batch().bound(Batch, 2, Duration::from_millis(1500));
    let server = Server::new(router, layer);
    let admitted: Vec<_> = (0..2)
        .map(|_| server.send("GET", "/batch", "\r\n"))
        .collect();
    until(|| server.counts.at(Batch) == 2);
    for _ in 0..3 {
        let answer = server.get("/batch");
        assert!(answer.starts_with("HTTP/1.1 503"), "{answer}");
        assert!(answer.contains("retry-after: 2\r\n"), "{answer}");
    }
    assert!(server.get("/").ends_with("level Interactive"));
    assert_eq!(
        (server.counts.shed(Batch), server.counts.shed(Interactive)),
        (3, 0)
    );
    gate.abort();
    for stream in admitted {
        assert!(read_all(stream).ends_with("let through"));
    }
    until(|| server.counts.at(Batch) == 0);
    assert!(server.get("/batch").starts_with("HTTP/1.1 200"));
}

#[test]
fn a_response_that_is_still_made_counts_at_the_level_of_the_connection_as_well() {
    let endless = || async {
        Response::new(Body::new(Levels {
            left: usize::MAX,
            pause: Some(Box::pin(urgency::time::sleep(Duration::ZERO))),
            fails: false,
        }))
    };
    let router = Router::new().route("/", get(endless));
    let layer = LevelLayer::new().bound(Interactive, 1, Duration::from_secs(1));
    let server = Server::new(router, layer);
    let mut stream = server.send("GET", "/", "\r\n");
    let mut start = [0; 12];
    stream.read_exact(&mut start).unwrap();
    assert_eq!(&start, b"HTTP/1.1 200");
    assert_eq!(server.counts.at(Interactive), 1);
    let mut second = server.send("GET", "/", "\r\n");
    second.read_exact(&mut start).unwrap();
    assert_eq!(&start, b"HTTP/1.1 503");
    drop(stream);
    until(|| server.counts.at(Interactive) == 0);
}

/// Tells when it is dropped.
struct Witness(mpsc::Sender<()>);

impl Drop for Witness {
    fn drop(&mut self) {
        let _ = self.0.send(());
    }
}

#[test]
fn a_client_that_goes_away_cancels_its_request() {
    let (tell, told) = mpsc::channel();
    let tell = Arc::new(Mutex::new(tell));
    let router = Router::new().route(
        "/batch",
        get(move || {
            let tell = tell.lock().unwrap().clone();
            async move {
                // A request that is cancelled before its handler ran has no witness.
                tell.send(()).unwrap();
                let _witness = Witness(tell);
                pending::<()>().await;
            }
        }),
    );
    let server = Server::new(router, to_batch());
    let stream = server.send("GET", "/batch", "\r\n");
    told.recv().unwrap();
    assert_eq!(server.counts.at(Batch), 1);
    drop(stream);
    told.recv().unwrap();
    until(|| server.counts.at(Batch) == 0);
}

#[test]
fn a_panicking_handler_at_another_level_is_a_500_and_its_connection_lives_on() {
    let router = Router::new()
        .route(
            "/batch",
            get(|| async {
                if true {
                    panic!("on purpose")
                }
            }),
        )
        .route("/", get(level));
    let server = Server::new(router, to_batch());
    let mut stream = TcpStream::connect(server.address).unwrap();
    stream
        .write_all(b"GET /batch HTTP/1.1\r\nhost: test\r\n\r\n")
        .unwrap();
    let mut start = [0; 12];
    stream.read_exact(&mut start).unwrap();
    assert_eq!(&start, b"HTTP/1.1 500");
    stream
        .write_all(b"GET / HTTP/1.1\r\nhost: test\r\nconnection: close\r\n\r\n")
        .unwrap();
    assert!(read_all(stream).ends_with("level Interactive"));
}

/// Frames that say at which level they were made. With a pause before each, the body is made while it is sent.
struct Levels {
    left: usize,
    pause: Option<Pin<Box<urgency::time::Sleep>>>,
    fails: bool,
}

impl http_body::Body for Levels {
    type Data = Bytes;
    type Error = std::io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, std::io::Error>>> {
        if self.left == 0 {
            let failure = self.fails.then(|| Err(std::io::Error::other("on purpose")));
            return Poll::Ready(failure);
        }
        if let Some(pause) = &mut self.pause {
            std::task::ready!(pause.as_mut().poll(cx));
            *pause = Box::pin(urgency::time::sleep(Duration::from_millis(1)));
        }
        self.left -= 1;
        let text = format!("<{}>", urgency::current_level());
        Poll::Ready(Some(Ok(Frame::data(text.into()))))
    }
}

fn levels(pauses: bool, fails: bool) -> Result<Response, Infallible> {
    Ok(Response::new(Body::new(Levels {
        left: 5,
        pause: pauses.then(|| Box::pin(urgency::time::sleep(Duration::ZERO))),
        fails,
    })))
}

#[test]
fn the_body_of_a_response_is_made_at_the_level_of_its_request() {
    let router = Router::new()
        .route("/batch/slow", get(|| async { levels(true, false) }))
        .route("/batch/fast", get(|| async { levels(false, false) }))
        .route("/slow", get(|| async { levels(true, false) }));
    let server = Server::new(router, to_batch());
    for (path, made_at) in [
        ("/batch/slow", "<Batch>"),
        ("/batch/fast", "<Batch>"),
        ("/slow", "<Interactive>"),
    ] {
        let answer = server.get(path);
        assert_eq!(answer.matches(made_at).count(), 5, "{answer}");
        assert!(
            answer.ends_with("0\r\n\r\n"),
            "the last chunk says that it is complete: {answer}"
        );
    }
}

#[test]
fn a_body_that_fails_does_not_end_as_if_it_were_complete() {
    let router = Router::new().route("/batch", get(|| async { levels(true, true) }));
    let server = Server::new(router, to_batch());
    let mut stream = server.send("GET", "/batch", "\r\n");
    let mut answer = String::new();
    let _ = stream.read_to_string(&mut answer);
    assert!(!answer.ends_with("0\r\n\r\n"), "{answer}");
    until(|| server.counts.at(Batch) == 0);
}

#[test]
fn a_shutdown_is_not_held_up_by_requests_at_another_level() {
    let router = Router::new().route("/batch", get(|| async { pending::<()>().await }));
    let server = Server::new(router, to_batch());
    let _streams: Vec<_> = (0..3)
        .map(|_| server.send("GET", "/batch", "\r\n"))
        .collect();
    until(|| server.counts.at(Batch) == 3);
    let report = server.runtime.shutdown(urgency::Shutdown::Cancel);
    assert_eq!(report.left, 0);
    assert_eq!(server.counts.at(Batch), 0);
}
