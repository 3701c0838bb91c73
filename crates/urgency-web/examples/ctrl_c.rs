//! A server that ends when it is asked to: at ctrl-c or SIGTERM it takes no more connections, answers the
//! requests that it has, and the program ends.
//!
//! ```sh
//! cargo run --release -p urgency-web --example ctrl_c -- 8080
//! ```
//!
//! Without an argument it takes a free port, asks itself once, and then asks itself to end.

use axum::{Router, routing::get};
use signal_hook::{
    consts::{SIGINT, SIGTERM},
    low_level::{pipe, raise},
};
use std::{
    error::Error,
    future::Future,
    io::{self, Read, Write},
    net::{SocketAddr, TcpStream},
    os::unix::net::UnixStream as StdUnixStream,
    time::Duration,
};
use urgency::{
    Runtime, Shutdown,
    net::{TcpListener, UnixStream},
};
use urgency_web::serve;

/// Ready when the first ctrl-c or SIGTERM has come. The signal's handler writes a byte into a socket, which
/// is as much as a handler may do, and the future reads it.
fn asked_to_end() -> io::Result<impl Future<Output = ()> + Send + 'static> {
    let (arrived, arrives) = StdUnixStream::pair()?;
    for signal in [SIGINT, SIGTERM] {
        pipe::register(signal, arrives.try_clone()?)?;
    }
    let arrived = UnixStream::try_from(arrived)?;
    Ok(async move {
        // An error would mean that no signal can come any more: then it is better to end, too.
        let _ = arrived.read(&mut [0]).await;
    })
}

fn main() -> Result<(), Box<dyn Error>> {
    let port = std::env::args()
        .nth(1)
        .map(|port| port.parse::<u16>())
        .transpose()?;
    let stop = asked_to_end()?;
    let runtime = Runtime::builder().build()?;
    let listener = TcpListener::bind(("127.0.0.1", port.unwrap_or(0)))?;
    let address = listener.local_addr()?;
    let router = Router::new().route("/", get(|| async { "hello" }));
    println!("listening on http://{address}");
    if port.is_none() {
        std::thread::spawn(move || {
            let asked = ask(address);
            raise(SIGTERM)?;
            asked
        });
    }

    let server = serve(listener, router)
        .until(stop)
        .drain(Duration::from_secs(5));
    let served = runtime.block_on(async { server.await })?;
    println!("{served:?}");
    // What is left has had its time.
    println!("{:?}", runtime.shutdown(Shutdown::Cancel));
    Ok(())
}

/// The answer to one request.
fn ask(address: SocketAddr) -> io::Result<String> {
    let mut stream = TcpStream::connect(address)?;
    stream.write_all(b"GET / HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}
