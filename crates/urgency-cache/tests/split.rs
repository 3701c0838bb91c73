//! Requests that come in two pieces, over a real connection: wherever the cut is, the replies are the same.

#![allow(missing_docs)]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::Duration;
use urgency::{Runtime, net::TcpListener};
use urgency_cache::server::{
    Server, Settings,
    listen::{self, CacheLevels, Levels, Sockets},
};
use urgency_cache::store::{Limits, Store};

fn start() -> (Runtime, SocketAddr) {
    let runtime = Runtime::builder()
        .levels::<CacheLevels>()
        .workers(1)
        .build();
    let runtime = runtime.expect("a runtime of one worker");
    let listener = runtime
        .run(|| urgency::block_on(TcpListener::bind("127.0.0.1:0")))
        .expect("a free port");
    let address = listener.local_addr().expect("a bound address");
    let store = Store::new(&Limits::default()).expect("the default limits are possible");
    let server = Arc::new(Server::new(store, Settings::default()));
    let sockets = Sockets {
        tcp: vec![listener],
        ..Sockets::default()
    };
    listen::start(&server, &runtime, Levels::default(), sockets).expect("it listens");
    (runtime, address)
}

#[test]
fn a_request_that_is_cut_anywhere_gets_the_same_replies() {
    let (_runtime, address) = start();
    let requests = b"set k 5 0 4\r\nab\nc\r\nget k\r\nms k 2\r\nxy\r\nmg k v\r\n";
    let expected = b"STORED\r\nVALUE k 5 4\r\nab\nc\r\nEND\r\nHD\r\nVA 2\r\nxy\r\n";
    for cut in 1..requests.len() {
        let mut stream = TcpStream::connect(address).expect("it accepts");
        stream.set_nodelay(true).expect("a TCP stream");
        stream
            .set_read_timeout(Some(Duration::from_secs(10)))
            .expect("a TCP stream");
        stream.write_all(&requests[..cut]).expect("it reads");
        // Long enough for the first piece to be read alone, as a rule; the replies are the same if it was not.
        thread::sleep(Duration::from_millis(3));
        stream.write_all(&requests[cut..]).expect("it reads");
        let mut replies = vec![0; expected.len()];
        stream.read_exact(&mut replies).expect("it replies");
        assert_eq!(
            replies.escape_ascii().to_string(),
            expected.escape_ascii().to_string(),
            "cut after {cut} bytes"
        );
    }
}
