//! A server of its own for each test, and a client that takes no nonsense.

#![allow(dead_code, reason = "no test file uses all of it")]

pub mod cases;
pub mod requests;

use std::{
    io::{self, Read, Write},
    net::{SocketAddr, TcpStream},
    sync::Arc,
    thread,
    time::Duration,
};
use urgency::{Runtime, Shutdown, net::TcpListener, net::UdpSocket};
use urgency_cache::{
    server::{
        Server, Settings,
        listen::{self, CacheLevels, Levels, Sockets},
    },
    store::{Limits, Store},
};

/// A server on a port of its own, which ends with this.
pub struct Running {
    pub server: Arc<Server>,
    pub address: SocketAddr,
    pub udp: SocketAddr,
    runtime: Option<Runtime>,
}

impl Running {
    pub fn new() -> Self {
        Running::with(Settings::default(), &Limits::default())
    }

    pub fn with(settings: Settings, limits: &Limits) -> Self {
        Running::after(settings, limits, 2, |_| ())
    }

    /// With items of up to so many bytes.
    pub fn with_item_size_max(bytes: usize) -> Self {
        let limits = Limits {
            item_size_max: bytes as u64,
            ..Limits::default()
        };
        let settings = Settings {
            item_size_max: bytes,
            ..Settings::default()
        };
        Running::with(settings, &limits)
    }

    /// With so many workers, and after `early` has done something with the address that nobody serves yet.
    pub fn after(
        settings: Settings,
        limits: &Limits,
        workers: usize,
        early: impl FnOnce(SocketAddr),
    ) -> Self {
        let runtime = Runtime::builder()
            .levels::<CacheLevels>()
            .workers(workers)
            .build()
            .unwrap();
        let listener = urgency::block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let socket = urgency::block_on(UdpSocket::bind("127.0.0.1:0")).unwrap();
        let (address, udp) = (listener.local_addr().unwrap(), socket.local_addr().unwrap());
        early(address);
        let server = Arc::new(Server::new(Store::new(limits).unwrap(), settings));
        let sockets = Sockets {
            tcp: vec![listener],
            udp: vec![socket],
            ..Sockets::default()
        };
        listen::start(&server, &runtime, Levels::default(), sockets).unwrap();
        Running {
            server,
            address,
            udp,
            runtime: Some(runtime),
        }
    }

    pub fn client(&self) -> Client {
        Client::connect(self.address)
    }

    /// Waits until clients that send hold the right to so many bytes.
    #[track_caller]
    pub fn wait_for_held(&self, bytes: usize) {
        for _ in 0..20_000 {
            if self.server.held().0 == bytes {
                return;
            }
            thread::sleep(Duration::from_millis(1));
        }
        panic!("{} bytes are held", self.server.held().0);
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let runtime = self.runtime.take().unwrap();
        let report = runtime.shutdown_within(Shutdown::Cancel, Duration::from_secs(10));
        assert_eq!(report.left, 0, "a task outlives its server");
    }
}

/// A client.
pub struct Client {
    pub stream: TcpStream,
}

impl Client {
    pub fn connect(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(20)))
            .unwrap();
        Client { stream }
    }

    pub fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.stream.write_all(bytes.as_ref()).unwrap();
    }

    /// Reads exactly what is expected.
    #[track_caller]
    pub fn expect(&mut self, expected: impl AsRef<[u8]>) {
        let expected = expected.as_ref();
        let mut got = vec![0; expected.len()];
        let mut length = 0;
        while length < got.len() {
            match self.stream.read(&mut got[length..]).unwrap() {
                0 => break,
                count => length += count,
            }
        }
        let (got, expected) = (got[..length].escape_ascii(), expected.escape_ascii());
        assert_eq!(got.to_string(), expected.to_string());
    }

    #[track_caller]
    pub fn ask(&mut self, request: impl AsRef<[u8]>, answer: impl AsRef<[u8]>) {
        self.send(request);
        self.expect(answer);
    }

    /// Reads until the server closes the connection.
    pub fn rest(&mut self) -> Vec<u8> {
        let mut rest = Vec::new();
        match self.stream.read_to_end(&mut rest) {
            Ok(_) => rest,
            // The server had not read everything when it closed.
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => rest,
            Err(error) => panic!("the server keeps the connection: {error}"),
        }
    }

    /// Waits until a statistic is what it must become.
    #[track_caller]
    pub fn wait_for(&mut self, name: &str, wanted: u64) {
        for _ in 0..4000 {
            if self.stat(name) == wanted {
                return;
            }
            thread::sleep(Duration::from_millis(5));
        }
        panic!("{name} is {}, and should be {wanted}", self.stat(name));
    }

    /// The value of a statistic.
    #[track_caller]
    pub fn stat(&mut self, name: &str) -> u64 {
        self.stat_of("", name)
    }

    /// The value of a statistic that `stats` with `what` gives.
    #[track_caller]
    pub fn stat_of(&mut self, what: &str, name: &str) -> u64 {
        self.send(format!("stats {what}\r\n"));
        let mut text = Vec::new();
        while !text.ends_with(b"END\r\n") {
            let mut byte = [0; 4096];
            let count = self.stream.read(&mut byte).unwrap();
            assert_ne!(count, 0);
            text.extend_from_slice(&byte[..count]);
        }
        let text = String::from_utf8(text).unwrap();
        let start = format!("STAT {name} ");
        let line = text.lines().find_map(|line| line.strip_prefix(&start));
        line.unwrap_or_else(|| panic!("no {name} in {text}"))
            .parse()
            .unwrap()
    }
}
