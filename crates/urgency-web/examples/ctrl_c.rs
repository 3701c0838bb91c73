//! A server that ends when it is asked to: at ctrl-c or SIGTERM it takes no more connections, answers the
//! requests that it has, and the program ends.
//!
//! ```sh
//! cargo run --release -p urgency-web --example ctrl_c -- 8080
//! ```
//!
//! Without an argument it takes a free port, asks itself once, and then asks itself to end.

use axum::{Router, routing::get};
use rustix::process::{Signal, getpid, kill_process};
use std::{
    error::Error,
    io::{self, Read, Write},
    net::{SocketAddr, TcpStream},
    time::Duration,
};
use urgency::{
    Runtime, Shutdown,
    future::race,
    net::TcpListener,
    signal::unix::{SignalKind, signal},
};
use urgency_web::serve;

fn main() -> Result<(), Box<dyn Error>> {
    let port = std::env::args()
        .nth(1)
        .map(|port| port.parse::<u16>())
        .transpose()?;
    // From here on neither ends the process by itself.
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let runtime = Runtime::builder().build()?;
    let listener = urgency::block_on(TcpListener::bind(("127.0.0.1", port.unwrap_or(0))))?;
    let address = listener.local_addr()?;
    let router = Router::new().route("/", get(|| async { "hello" }));
    println!("listening on http://{address}");
    if port.is_none() {
        std::thread::spawn(move || {
            let asked = ask(address);
            kill_process(getpid(), Signal::TERM)?;
            asked
        });
    }

    let server = serve(listener, router)
        .until(async move {
            race(interrupt.recv(), terminate.recv()).await;
        })
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
