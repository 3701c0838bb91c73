//! Plain threads: one per connection, which blocks in `read`, and one per processor, which computes. The
//! kernel shares the processors among them.
//!
//! Threads have no `join`, so the compute is the plain recursion for both kinds: the same results, without
//! the cost of forking.

use super::{Serving, address, cannot_listen};
use crate::demo::{compute, error::Error, messages::ServerSpec};
use std::{
    io::{self, Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    thread,
};
use urgency_measure::client::lanes::chain;

struct Threads {
    address: SocketAddr,
    workers: usize,
}

pub fn serve(spec: &ServerSpec) -> Result<impl Serving + use<>, Error> {
    let listener = TcpListener::bind(address(spec)).map_err(cannot_listen(spec))?;
    let address = listener.local_addr().map_err(cannot_listen(spec))?;
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            // A connection ends with the client's.
            thread::spawn(|| answer(stream).ok());
        }
    });
    Ok(Threads {
        address,
        workers: spec.workers,
    })
}

fn answer(mut stream: TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut request = [0; chain::MESSAGE];
    loop {
        stream.read_exact(&mut request)?;
        stream.write_all(&chain::reply(&request))?;
    }
}

impl Serving for Threads {
    fn address(&self) -> SocketAddr {
        self.address
    }

    fn compute(&self) {
        for _ in 0..self.workers {
            thread::spawn(|| compute::sequential());
        }
    }
}
