//! rayon, with threads for the connections.

use super::{BASE, Config, serial_fib};
use crate::{echo, engines};
use ::rayon::ThreadPool;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use urgency_measure::Sample;
use urgency_measure::client::lanes::MESSAGE;

/// The pool writes the replies.
pub fn run(config: Config) -> Sample {
    let pool = Arc::new(engines::rayon::pool(config.workers));
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has a free port");
    let address = listener.local_addr().expect("a listener has an address");
    let replies = pool.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (stream, pool) = (
                stream.expect("connections can be accepted"),
                replies.clone(),
            );
            std::thread::spawn(move || read(&stream, &pool));
        }
    });
    config.measure(address, |n| pool.install(|| fib(n)))
}

fn read(mut stream: &TcpStream, pool: &ThreadPool) {
    stream.set_nodelay(true).expect("TCP_NODELAY can be set");
    let mut buffer = [0; MESSAGE];
    while let Ok(()) = stream.read_exact(&mut buffer) {
        let mut reply = stream.try_clone().expect("a descriptor can be copied");
        pool.spawn(move || {
            // A client that has gone needs no reply.
            let _ = reply.write_all(&buffer);
        });
    }
}

/// The threads write them.
pub fn beside_threads(config: Config) -> Sample {
    let pool = engines::rayon::pool(config.workers);
    config.measure(echo::threads::serve(), |n| pool.install(|| fib(n)))
}

/// fib by `rayon::join`.
pub fn fib(n: u32) -> u64 {
    if n <= BASE {
        return serial_fib(n);
    }
    let (a, b) = ::rayon::join(|| fib(n - 1), || fib(n - 2));
    a + b
}
