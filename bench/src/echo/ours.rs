//! A task per connection.

use super::Config;
use crate::engines;
use urgency::net::{TcpListener, TcpStream};
use urgency_measure::Sample;
use urgency_measure::client::lanes::MESSAGE;

/// One sample.
pub fn run(config: Config) -> Sample {
    config.allow_descriptors();
    let runtime = engines::ours::runtime(2);
    let listener = listen();
    let address = listener.local_addr().expect("a listener has an address");
    runtime.spawn(serve(listener)).detach();
    engines::ours::with_stats(config.measure(address), &runtime)
}

/// A listener on a free port.
pub fn listen() -> TcpListener {
    urgency::block_on(TcpListener::bind("127.0.0.1:0")).expect("loopback has a free port")
}

/// Accepts connections, each echoed by a task of its own at this task's level.
pub async fn serve(listener: TcpListener) {
    loop {
        let (stream, _) = listener
            .accept()
            .await
            .expect("connections can be accepted");
        urgency::spawn(echo(stream)).detach();
    }
}

async fn echo(stream: TcpStream) {
    stream.set_nodelay(true).expect("TCP_NODELAY can be set");
    let mut buffer = [0; MESSAGE];
    while let Ok(count @ 1..) = stream.read(&mut buffer).await {
        if stream.write_all(&buffer[..count]).await.is_err() {
            return;
        }
    }
}
