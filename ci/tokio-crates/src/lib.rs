//! Crates that need Tokio, tried on `urgency_web::tokio_driver`; see `tests/`. Here is what each of these tests needs: a runtime of two levels, and
//! for some a server of Debian's on a port of its own.

use std::{
    net::{TcpListener, TcpStream},
    process::{Child, Command, Stdio},
};
use urgency::{LevelId, Runtime};

urgency::levels! { pub App: Interactive > Batch }

/// Two workers and the levels of [`App`].
pub fn runtime() -> Runtime {
    let builder = Runtime::builder().workers(2).levels::<App>();
    builder.build().expect("two workers can be had")
}

/// Interactive for even numbers, batch for odd ones.
pub fn either_level(number: usize) -> LevelId {
    [Interactive.into(), Batch.into()][number % 2]
}

/// A server's process. It ends with the value.
pub struct Server {
    process: Child,
    /// Where it listens, on 127.0.0.1.
    pub port: u16,
}

impl Server {
    /// Starts the program of a Debian package of the same name, with a free port after `port_option`, and waits until it accepts connections.
    pub fn start(program: &str, arguments: &[&str], port_option: &str) -> Server {
        let free = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let port = free.local_addr().expect("it is bound").port();
        drop(free);
        let process = Command::new(program)
            .args(arguments)
            .args([port_option, &port.to_string()])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap_or_else(|error| panic!("{program}: {error}; install Debian's package"));
        let mut server = Server { process, port };
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            let ended = server.process.try_wait().expect("it is our child");
            assert_eq!(ended, None, "{program} ended by itself");
            std::thread::yield_now();
        }
        server
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
