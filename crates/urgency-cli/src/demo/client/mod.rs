//! The load client's process.
//!
//! A client must not be starved by what it measures: it is a process of its own, of plain threads, raised to
//! the real-time class SCHED_FIFO where that is permitted (`real_time.rs`). It runs on none of the runtimes
//! that it measures.
//!
//! It is an *open loop*: requests are due at times that do not depend on the answers (`arrivals.rs`), and a
//! latency counts from the time at which the request was *due*. A server that stalls can therefore neither
//! make the client ask less often nor hide the wait of the requests that could not be sent meanwhile
//! (coordinated omission).
//!
//! Threads: the main thread sends, over [`CONNECTIONS`] connections in turn; one thread per connection
//! receives (`connection.rs`); one reports.
//!
//! 1. Connect. Raise the class, so that all threads started from here on inherit it.
//! 2. For `warm_up_ms` requests are sent and not recorded; then the client says `Begun`.
//! 3. For `run_ms` requests are recorded; then it says `Sent`.
//! 4. It waits up to `grace_ms` for the last replies, gives up the replies that are still missing, closes the
//!    connections, and says `Done`.

mod arrivals;
mod connection;
mod real_time;

use super::{
    error::Error,
    latencies::Latencies,
    messages::{ClientSays, ClientSpec, say},
    wire,
};
use arrivals::Times;
use connection::Connection;
use std::{
    sync::mpsc::{Receiver, RecvTimeoutError, channel},
    thread,
    time::{Duration, Instant},
};

/// Connections of one client.
pub const CONNECTIONS: usize = 8;
/// Time between two reports of progress.
const REPORT: Duration = Duration::from_millis(250);
/// How often the client looks whether the last replies have come.
const LOOK: Duration = Duration::from_millis(2);

/// The process.
pub fn main(spec: &ClientSpec) -> Result<(), Error> {
    let connections = (0..CONNECTIONS)
        .map(|_| Connection::open(spec.server))
        .collect::<Result<Vec<_>, _>>()?;
    let not_real_time = real_time::enter().err();
    thread::scope(|scope| {
        let receivers: Vec<_> = connections
            .iter()
            .map(|connection| scope.spawn(|| connection.receive()))
            .collect();
        let (all_sent, reporter) = channel();
        scope.spawn(|| report(reporter, &connections));
        let sent = send(spec, &connections);
        drop(all_sent);
        if sent.is_ok() {
            say(&ClientSays::Sent);
            await_replies(&connections, Duration::from_millis(spec.grace_ms));
        }
        connections.iter().for_each(Connection::close);
        for receiver in receivers {
            receiver.join().expect("a receiver does not panic")?;
        }
        sent
    })?;
    let mut latencies = total(&connections);
    for waited in connections.iter().flat_map(Connection::give_up) {
        latencies.unanswered(waited);
    }
    say(&ClientSays::Done {
        latencies,
        not_real_time,
    });
    Ok(())
}

/// Sends what is due when it is due.
fn send(spec: &ClientSpec, connections: &[Connection]) -> Result<(), Error> {
    let start = Instant::now();
    let recorded_from = Duration::from_millis(spec.warm_up_ms);
    let end = recorded_from + Duration::from_millis(spec.run_ms);
    let mut begun = false;
    let due = Times::new(spec.rate, spec.arrivals, spec.seed).take_while(|due| *due < end);
    for (sequence, due) in (0..).zip(due) {
        thread::sleep((start + due).saturating_duration_since(Instant::now()));
        let recorded = due >= recorded_from;
        if recorded && !begun {
            say(&ClientSays::Begun);
            begun = true;
        }
        let connection = &connections[sequence as usize % connections.len()];
        connection.send(sequence, sequence % wire::KEYS, start + due, recorded)?;
    }
    if !begun {
        say(&ClientSays::Begun);
    }
    thread::sleep((start + end).saturating_duration_since(Instant::now()));
    Ok(())
}

fn await_replies(connections: &[Connection], limit: Duration) {
    let since = Instant::now();
    while since.elapsed() < limit && !connections.iter().all(Connection::is_quiet) {
        thread::sleep(LOOK);
    }
}

/// Says how it goes, until all is sent.
fn report(all_sent: Receiver<()>, connections: &[Connection]) {
    while all_sent.recv_timeout(REPORT) == Err(RecvTimeoutError::Timeout) {
        let latencies = total(connections);
        if let (Some(p50), Some(p99)) = (latencies.quantile(0.5), latencies.quantile(0.99)) {
            say(&ClientSays::Progress {
                answered: latencies.answered_count(),
                p50_ms: p50.ms,
                p99_ms: p99.ms,
            });
        }
    }
}

fn total(connections: &[Connection]) -> Latencies {
    let mut total = Latencies::new();
    for connection in connections {
        connection.add_to(&mut total);
    }
    total
}
