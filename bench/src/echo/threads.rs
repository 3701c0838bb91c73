//! A plain thread per connection, blocking.

use super::Config;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;
use urgency_measure::Sample;
use urgency_measure::client::lanes::MESSAGE;

/// One sample.
pub fn run(config: Config) -> Sample {
    config.allow_descriptors();
    config.measure(serve())
}

/// Serves on a free port, which it returns, until the process ends.
pub fn serve() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has a free port");
    let address = listener.local_addr().expect("a listener has an address");
    thread::spawn(move || {
        for stream in listener.incoming() {
            let stream = stream.expect("connections can be accepted");
            thread::Builder::new()
                .stack_size(64 * 1024)
                .spawn(move || echo(stream))
                .expect("a thread can be started");
        }
    });
    address
}

fn echo(mut stream: TcpStream) {
    stream.set_nodelay(true).expect("TCP_NODELAY can be set");
    let mut buffer = [0; MESSAGE];
    while let Ok(count @ 1..) = stream.read(&mut buffer) {
        if stream.write_all(&buffer[..count]).is_err() {
            return;
        }
    }
}
