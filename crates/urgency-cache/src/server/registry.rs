//! The table of connections: for the limit, for `stats conns`, and to end them.
//!
//! A connection writes its own line with plain stores; the table's lock is taken when a connection comes or goes.

use parking_lot::Mutex;
use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering::Relaxed},
    },
};

/// What a connection waits for or does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum State {
    /// It listens.
    Listening,
    /// It is between requests.
    Read,
    /// It has a part of a line.
    Wait,
    /// It has a part of a value.
    Value,
    /// It throws away a value.
    Swallow,
    /// It executes requests.
    Parse,
}

impl State {
    fn name(state: u8) -> &'static str {
        const NAMES: [&str; 6] = [
            "conn_listening",
            "conn_read",
            "conn_waiting",
            "conn_nread",
            "conn_swallow",
            "conn_parse_cmd",
        ];
        NAMES[usize::from(state)]
    }
}

/// A connection's line in the table.
#[derive(Debug)]
pub struct Registered {
    /// Its number; none is used twice.
    pub number: u64,
    peer: String,
    listener: Arc<str>,
    heard: AtomicU32,
    took: AtomicU32,
    state: AtomicU8,
}

impl Registered {
    /// Notes that the client sent something at `now`.
    #[inline]
    pub fn heard(&self, now: u32) {
        self.heard.store(now, Relaxed);
    }

    /// When the client sent something last.
    pub fn last_heard(&self) -> u32 {
        self.heard.load(Relaxed)
    }

    /// Notes that the client took a part of an answer at `now`, after it had let the server wait.
    pub fn took(&self, now: u32) {
        self.took.store(now, Relaxed);
    }

    /// When the client sent something or took something that it had let wait, last.
    pub fn last_active(&self) -> u32 {
        self.last_heard().max(self.took.load(Relaxed))
    }

    /// Notes what it does.
    #[inline]
    pub fn set_state(&self, state: State) {
        self.state.store(state as u8, Relaxed);
    }
}

/// See the module's text.
#[derive(Debug, Default)]
pub struct Registry {
    lines: Mutex<BTreeMap<u64, Arc<Registered>>>,
    next: AtomicU64,
    open: AtomicU32,
    total: AtomicU64,
    rejected: AtomicU64,
}

/// A line that is in the table as long as this lives.
#[derive(Debug)]
pub struct Place {
    registry: Arc<Registry>,
    line: Arc<Registered>,
}

impl Place {
    /// The line.
    pub fn line(&self) -> &Registered {
        &self.line
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.registry.lines.lock().remove(&self.line.number);
        self.registry.open.fetch_sub(1, Relaxed);
    }
}

impl Registry {
    fn line(&self, peer: String, listener: Arc<str>, state: State, now: u32) -> Arc<Registered> {
        let line = Arc::new(Registered {
            number: self.next.fetch_add(1, Relaxed),
            peer,
            listener,
            heard: AtomicU32::new(now),
            took: AtomicU32::new(now),
            state: AtomicU8::new(state as u8),
        });
        self.lines.lock().insert(line.number, Arc::clone(&line));
        line
    }

    /// Enters a connection, unless `limit` are open.
    pub fn enter(
        self: &Arc<Self>,
        peer: String,
        listener: &Arc<str>,
        now: u32,
        limit: u32,
    ) -> Option<Place> {
        let more = |open: u32| (open < limit).then_some(open + 1);
        self.open.fetch_update(Relaxed, Relaxed, more).ok()?;
        self.total.fetch_add(1, Relaxed);
        let line = self.line(peer, Arc::clone(listener), State::Read, now);
        Some(Place {
            registry: Arc::clone(self),
            line,
        })
    }

    /// Counts a connection that was one too many and is not to wait.
    pub fn reject(&self) {
        self.rejected.fetch_add(1, Relaxed);
    }

    /// Enters a listening socket for good.
    pub fn enter_listener(&self, address: &Arc<str>, now: u32) {
        self.line(
            address.to_string(),
            Arc::clone(address),
            State::Listening,
            now,
        );
    }

    /// The connections now.
    pub fn open(&self) -> u32 {
        self.open.load(Relaxed)
    }

    /// The connections ever.
    pub fn total(&self) -> u64 {
        self.total.load(Relaxed)
    }

    /// The connections that were one too many.
    pub fn rejected(&self) -> u64 {
        self.rejected.load(Relaxed)
    }

    /// Sets the counters back.
    pub fn reset(&self) {
        self.total.store(0, Relaxed);
        self.rejected.store(0, Relaxed);
    }

    /// Calls `push` with each fact about each connection, as `stats conns` names them.
    pub fn each(&self, now: u32, push: &mut dyn FnMut(&str, &str)) {
        for (number, line) in self.lines.lock().iter() {
            let state = line.state.load(Relaxed);
            push(&format!("{number}:addr"), &line.peer);
            if state != State::Listening as u8 {
                push(&format!("{number}:listen_addr"), &line.listener);
            }
            push(&format!("{number}:state"), State::name(state));
            let silence = now.saturating_sub(line.last_heard());
            push(
                &format!("{number}:secs_since_last_cmd"),
                &silence.to_string(),
            );
        }
    }
}
