//! A task per connection.

use super::Config;
use crate::engines;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use urgency_measure::Sample;
use urgency_measure::client::lanes::MESSAGE;

/// One sample.
pub fn run(config: Config) -> Sample {
    config.allow_descriptors();
    let runtime = engines::tokio::runtime(2);
    let listener = runtime.block_on(listen());
    let address = listener.local_addr().expect("a listener has an address");
    runtime.spawn(serve(listener));
    config.measure(address)
}

/// A listener on a free port.
pub async fn listen() -> TcpListener {
    TcpListener::bind("127.0.0.1:0")
        .await
        .expect("loopback has a free port")
}

/// Accepts connections, each echoed by a task of its own.
pub async fn serve(listener: TcpListener) {
    loop {
        let (stream, _) = listener
            .accept()
            .await
            .expect("connections can be accepted");
        tokio::spawn(echo(stream));
    }
}

async fn echo(mut stream: TcpStream) {
    stream.set_nodelay(true).expect("TCP_NODELAY can be set");
    let mut buffer = [0; MESSAGE];
    while let Ok(count @ 1..) = stream.read(&mut buffer).await {
        if stream.write_all(&buffer[..count]).await.is_err() {
            return;
        }
    }
}
