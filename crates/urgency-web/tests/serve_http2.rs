//! `serve` and HTTP/2: clients that do not open their windows.

use axum::{
    Router,
    body::{Body, Bytes},
    routing::get,
};
use futures_core::Stream;
use std::{
    convert::Infallible,
    future::{IntoFuture, pending},
    io::{ErrorKind, Read, Write},
    net::{SocketAddr, TcpStream},
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    task::{Context, Poll, ready},
    time::{Duration, Instant},
};
use urgency::{
    Runtime, block_on,
    net::TcpListener,
    time::{Sleep, sleep},
};
use urgency_web::serve;

const IDLE: Duration = Duration::from_millis(50);

/// Pieces of a body, each as late, until there were so many.
struct Pieces {
    left: usize,
    late: Duration,
    timer: Pin<Box<Sleep>>,
    living: Arc<AtomicUsize>,
}

impl Stream for Pieces {
    type Item = Result<Bytes, Infallible>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.left == 0 {
            return Poll::Ready(None);
        }
        ready!(self.timer.as_mut().poll(cx));
        self.left -= 1;
        self.timer = Box::pin(sleep(self.late));
        Poll::Ready(Some(Ok(Bytes::from_static(&[b'x'; 1 << 14]))))
    }
}

impl Drop for Pieces {
    fn drop(&mut self) {
        self.living.fetch_sub(1, SeqCst);
    }
}

/// A server with `/many`, 4,096 pieces at once, and `/late`, three pieces that are late. And how many bodies live.
fn server() -> (SocketAddr, Arc<AtomicUsize>) {
    server_on(Runtime::global(), IDLE)
}

fn server_on(runtime: &Runtime, idle: Duration) -> (SocketAddr, Arc<AtomicUsize>) {
    let listener = block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
    let address = listener.local_addr().unwrap();
    let living = Arc::<AtomicUsize>::default();
    let counted = living.clone();
    let answer = move |left, late| {
        let living = counted.clone();
        get(move || async move {
            living.fetch_add(1, SeqCst);
            let timer = Box::pin(sleep(late));
            Body::from_stream(Pieces {
                left,
                late,
                timer,
                living,
            })
        })
    };
    let router = Router::new()
        .route("/many", answer(4096, Duration::ZERO))
        .route("/late", answer(3, IDLE * 4));
    let serving = serve(listener, router).idle(idle).until(pending());
    runtime.spawn(serving.into_future()).detach();
    (address, living)
}

fn frame(kind: u8, flags: u8, stream: u8, payload: &[u8]) -> Vec<u8> {
    let length = u8::try_from(payload.len()).unwrap();
    [&[0, 0, length, kind, flags, 0, 0, 0, stream], payload].concat()
}

/// Begins by HTTP/2, with windows of this size for responses.
fn connect(address: SocketAddr, window: u32) -> TcpStream {
    let mut stream = TcpStream::connect(address).unwrap();
    let limit = Some(Duration::from_secs(20));
    stream.set_read_timeout(limit).unwrap();
    let settings = [&[0, 4][..], &window.to_be_bytes()].concat();
    let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    let begin = [preface, frame(4, 0, 0, &settings)].concat();
    stream.write_all(&begin).unwrap();
    stream
}

/// `GET path`, whose end is the end of the request.
fn ask(stream: &mut TcpStream, id: u8, path: &str) {
    let length = |text: &str| u8::try_from(text.len()).unwrap();
    let mut head = vec![0x82, 0x86, 0x04, length(path)];
    head.extend(path.as_bytes());
    head.extend([0x41, length("test")]);
    head.extend(b"test");
    stream.write_all(&frame(1, 5, id, &head)).unwrap();
}

/// What the server sends until the connection ends, or until 48 KiB of responses are there.
fn read(stream: &mut TcpStream) -> usize {
    let mut data = 0;
    while data < 3 << 14 {
        let mut head = [0; 9];
        match stream.read_exact(&mut head) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => panic!("nothing for 20 s"),
            Err(_) => break,
            Ok(()) => {}
        }
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
        let mut payload = vec![0; usize::try_from(length).unwrap()];
        stream.read_exact(&mut payload).unwrap();
        if head[3] == 0 {
            data += payload.len();
        }
    }
    data
}

#[test]
fn a_client_whose_windows_stay_closed_loses_its_connection_and_its_responses() {
    let (address, living) = server();
    for (window, taken) in [(0, 0), (100, 100)] {
        let mut stream = connect(address, window);
        ask(&mut stream, 1, "/many");
        ask(&mut stream, 3, "/many");
        assert_eq!(read(&mut stream), 2 * taken);
        let begin = Instant::now();
        while living.load(SeqCst) > 0 {
            assert!(begin.elapsed() < Duration::from_secs(20), "a body is kept");
            std::thread::yield_now();
        }
    }
}

#[test]
fn a_response_that_is_still_made_is_under_way_while_another_waits_for_the_client() {
    let (address, _) = server();
    let mut stream = connect(address, 1 << 15);
    ask(&mut stream, 1, "/many");
    // All of the first window, and the first piece of this one.
    ask(&mut stream, 3, "/late");
    let mut other = connect(address, 1 << 16);
    ask(&mut other, 1, "/late");
    assert_eq!(read(&mut other), 3 << 14);
    assert_eq!(read(&mut stream), 3 << 14);
}

#[test]
fn a_client_that_pings_and_does_not_read_loses_its_connection_as_well() {
    let (address, living) = server();
    let mut stream = connect(address, 0);
    ask(&mut stream, 1, "/many");
    let begin = Instant::now();
    while living.load(SeqCst) == 0 {
        std::thread::yield_now();
    }
    while living.load(SeqCst) > 0 {
        assert!(begin.elapsed() < Duration::from_secs(20), "a body is kept");
        // An error if the connection has been cut.
        let _ = stream.write_all(&frame(6, 0, 0, b"are you?"));
        std::thread::sleep(IDLE / 5);
    }
}

#[test]
fn a_runtime_with_open_streams_can_be_dropped() {
    let runtime = Runtime::builder().workers(2).build().unwrap();
    let (address, living) = server_on(&runtime, Duration::MAX);
    let mut stream = connect(address, 100);
    for (id, path) in [(1, "/many"), (3, "/late"), (5, "/many"), (7, "/late")] {
        ask(&mut stream, id, path);
    }
    while living.load(SeqCst) < 4 {
        std::thread::yield_now();
    }
    let dropping = std::thread::spawn(move || drop(runtime));
    let begin = Instant::now();
    // A connection of h2 wakes its streams under the lock that they take as they are dropped.
    while !dropping.is_finished() || living.load(SeqCst) > 0 {
        assert!(begin.elapsed() < Duration::from_secs(20), "it hangs");
        std::thread::yield_now();
    }
}
