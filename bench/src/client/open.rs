//! The open loop: requests at intended times (a Poisson process with a fixed seed), connections in turn;
//! latency counts from the intended time.
//!
//! These descriptors wake the thread: the connections, a timer set to the time of the next send, and standard
//! input: when that is closed, nothing more is sent. After the last send it waits up to [`GRACE`] for
//! replies; a request still without one counts with the time that it has waited, so a server that never
//! answers does not look fast.

use super::Load;
use super::connection::Connection;
use crate::harness::Sample;
use crate::harness::timing::Latencies;
use nix::errno::Errno;
use nix::sys::epoll::{EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use std::time::{Duration, Instant};

const GRACE: Duration = Duration::from_secs(3);
const TIMER: u64 = u64::MAX;
const INPUT: u64 = u64::MAX - 1;

/// Latencies from the intended times, and `unanswered`.
pub fn run(load: &Load, per_s: f64) -> Sample {
    let (epoll, mut connections) = Connection::open_all(load.server, load.connections);
    let timer = TimerFd::new(
        ClockId::CLOCK_MONOTONIC,
        TimerFlags::TFD_NONBLOCK | TimerFlags::TFD_CLOEXEC,
    )
    .expect("a timer descriptor");
    epoll
        .add(&timer, EpollEvent::new(EpollFlags::EPOLLIN, TIMER))
        .expect("a timer can be polled");
    epoll
        .add(
            std::io::stdin(),
            EpollEvent::new(EpollFlags::EPOLLIN, INPUT),
        )
        .expect("a pipe can be polled");

    let mut random = fastrand::Rng::with_seed(7);
    let mut gap = move || Duration::from_secs_f64(-(1.0 - random.f64()).ln() / per_s);
    let start = Instant::now() + Duration::from_millis(load.warm_up_ms);
    let mut end = start + Duration::from_millis(load.run_ms);
    let mut next = Instant::now() + gap();
    let mut sequence = 0;
    let mut under_way = 0;
    let mut latencies = Latencies::new();
    let mut events = vec![EpollEvent::empty(); load.connections + 2];
    set(&timer, next);
    loop {
        let now = Instant::now();
        if now > end && (under_way == 0 || now > end + GRACE) {
            break;
        }
        let ready = match epoll.wait(&mut events, EpollTimeout::from(100u16)) {
            Ok(ready) => ready,
            Err(Errno::EINTR) => 0,
            Err(error) => panic!("epoll_wait: {error}"),
        };
        for event in &events[..ready] {
            match event.data() {
                TIMER => continue,
                INPUT => {
                    end = end.min(Instant::now());
                    epoll.delete(std::io::stdin()).expect("it was added once");
                    continue;
                }
                _ => {}
            }
            connections[event.data() as usize].receive(|since| {
                under_way -= 1;
                if since >= start {
                    latencies.record(since.elapsed());
                }
            });
        }
        while next <= Instant::now() && next < end {
            let connection = sequence as usize % connections.len();
            connections[connection].send(sequence, next);
            sequence += 1;
            under_way += 1;
            next += gap();
        }
        if next < end {
            set(&timer, next);
        }
    }
    let mut unanswered = 0;
    for since in connections.iter_mut().flat_map(Connection::unanswered) {
        unanswered += 1;
        latencies.record(since.elapsed());
    }
    latencies
        .sample("")
        .with("unanswered", f64::from(unanswered))
}

fn set(timer: &TimerFd, at: Instant) {
    // Relative, at least 1 ns: a time of 0 would disarm the timer. Setting it also clears an earlier expiration.
    let wait = at
        .saturating_duration_since(Instant::now())
        .max(Duration::from_nanos(1));
    let expiration = Expiration::OneShot(TimeSpec::from_duration(wait));
    timer
        .set(expiration, TimerSetTimeFlags::empty())
        .expect("a one-shot timer can be set");
}
