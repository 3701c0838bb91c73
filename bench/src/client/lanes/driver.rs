//! The other side of the client's process: starts it, tells it when there is load, and takes what it logged.

use super::Lanes;
use crate::harness::events::Events;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;

/// A client of lanes in a process of its own.
pub struct Client {
    child: Child,
    orders: ChildStdin,
    opened: u64,
    drained: Arc<AtomicU64>,
    /// Returns the last line.
    reader: JoinHandle<String>,
}

impl Client {
    /// Starts it.
    pub fn start(lanes: &Lanes) -> Self {
        let spec = serde_json::to_string(lanes).expect("lanes can be written as JSON");
        let program = std::env::current_exe().expect("the running program has a path");
        let mut child = Command::new(program)
            .args(["--lanes", &spec])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the load client can be started");
        let orders = child.stdin.take().expect("stdin is piped");
        let lines = BufReader::new(child.stdout.take().expect("stdout is piped")).lines();
        let drained = Arc::new(AtomicU64::new(0));
        let counter = drained.clone();
        let reader = std::thread::spawn(move || {
            let mut last = String::new();
            for line in lines {
                last = line.expect("the client writes text");
                if last == "drained" {
                    counter.fetch_add(1, Ordering::Release);
                }
            }
            last
        });
        Client {
            child,
            orders,
            opened: 0,
            drained,
            reader,
        }
    }

    /// Lets it send from `start` until before `end`.
    pub fn open(&mut self, start: u64, end: u64) {
        writeln!(self.orders, "{start} {end}").expect("the load client reads its orders");
        self.opened += 1;
    }

    /// Whether all replies have come, or were given up.
    pub fn is_drained(&mut self) -> bool {
        let ended = self.child.try_wait();
        assert!(
            matches!(ended, Ok(None)),
            "the load client failed: {ended:?}"
        );
        self.drained.load(Ordering::Acquire) == self.opened
    }

    /// Ends it: every latency.
    pub fn end(mut self) -> Events {
        drop(self.orders);
        let last = self.reader.join().expect("reading a pipe does not panic");
        self.child.wait().expect("the client can be waited for");
        serde_json::from_str(&last).expect("the load client prints what it measured")
    }
}
