//! What a server is told at its start.

use super::connection::Protocol;
use std::time::Duration;

/// See the module's text. The store's limits are its own ([`Limits`](crate::store::Limits)).
#[derive(Clone, Debug)]
pub struct Settings {
    /// The most connections at a time.
    pub connections_max: u32,
    /// Whether a connection too many is refused (or waits to be accepted).
    pub refuse_too_many: bool,
    /// The longest value that is read into memory; the store knows exactly what fits.
    pub item_size_max: usize,
    /// The number of workers, for `stats`.
    pub threads: usize,
    /// The protocol that connections speak.
    pub protocol: Protocol,
    /// How long a connection may be silent, in whole seconds, rounded up; `None` for ever. It is closed up to
    /// two seconds later. A client that takes answers is not silent.
    pub idle_timeout: Option<Duration>,
    /// How many requests of one connection are executed before others have their turn; at least 1.
    pub requests_per_turn: u32,
    /// Whether `flush_all` is allowed.
    pub flush_allowed: bool,
    /// Whether `stats cachedump` and `lru_crawler metadump` are allowed.
    pub dump_allowed: bool,
    /// Whether `shutdown` is allowed.
    pub shutdown_allowed: bool,
    /// Whether tests may move the time with `debugtime`.
    pub debug_commands: bool,
    /// What separates the prefix of a key.
    pub delimiter: u8,
    /// Whether requests are counted by prefix from the start.
    pub detail: bool,
    /// The port of TCP, for `stats settings`.
    pub port: u16,
    /// The port of UDP, for `stats settings`.
    pub udp_port: u16,
    /// Further lines of `stats settings`.
    pub shown: Vec<(&'static str, String)>,
}

impl Default for Settings {
    /// memcached's.
    fn default() -> Self {
        Settings {
            connections_max: 1024,
            refuse_too_many: true,
            item_size_max: 1 << 20,
            threads: 4,
            protocol: Protocol::Detect,
            idle_timeout: None,
            requests_per_turn: 256,
            flush_allowed: true,
            dump_allowed: true,
            shutdown_allowed: false,
            debug_commands: false,
            delimiter: b':',
            detail: false,
            port: 11211,
            udp_port: 0,
            shown: Vec::new(),
        }
    }
}
