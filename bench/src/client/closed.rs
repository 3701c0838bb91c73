//! The closed loop: each connection always has one request under way.

use super::Load;
use super::connection::Connection;
use crate::harness::Sample;
use crate::harness::timing::Latencies;
use nix::errno::Errno;
use nix::sys::epoll::{EpollEvent, EpollTimeout};
use std::time::{Duration, Instant};

/// Round trips for the load's duration: their distribution and `requests_per_s`.
pub fn run(load: &Load) -> Sample {
    let (epoll, mut connections) = Connection::open_all(load.server, load.connections);
    let mut sequence = 0;
    for connection in &mut connections {
        connection.send(sequence, Instant::now());
        sequence += 1;
    }
    let start = Instant::now() + Duration::from_millis(load.warm_up_ms);
    let end = start + Duration::from_millis(load.run_ms);
    let mut latencies = Latencies::new();
    let mut events = vec![EpollEvent::empty(); load.connections];
    let mut now = Instant::now();
    while now < end {
        let ready = match epoll.wait(&mut events, EpollTimeout::from(1000u16)) {
            Ok(ready) => ready,
            Err(Errno::EINTR) => 0,
            Err(error) => panic!("epoll_wait: {error}"),
        };
        for event in &events[..ready] {
            let connection = &mut connections[event.data() as usize];
            let mut replied = false;
            connection.receive(|since| {
                replied = true;
                now = Instant::now();
                if since >= start && now < end {
                    latencies.record(now - since);
                }
            });
            if replied {
                connection.send(sequence, Instant::now());
                sequence += 1;
            }
        }
        now = Instant::now();
    }
    assert!(
        latencies.len() > 0,
        "no reply came within {} ms",
        load.run_ms
    );
    let per_s = latencies.len() as f64 * 1000.0 / load.run_ms as f64;
    latencies.sample("").with("requests_per_s", per_s)
}
