//! The server: requests carried out on the store, connections, and the background work.
//!
//! From the bottom up:
//!
//! - `clock`, `counters`, `signal`, `settings`, `registry`, `prefixes`: what all connections share, put
//!   together in [`Server`].
//! - `session` and the files `*_requests`: what a request does and what is answered. No sockets.
//! - `input`, `output`, [`connection`]: one client, in straight-line code, over any stream.
//! - [`upkeep`]: the background work. [`listen`]: sockets, and everything at its level; the only part that
//!   knows Urgency.
//!
//! Memory is bounded. A connection has 64 KiB for what it receives and 128 KiB for what it sends. What large values
//! need beyond, all connections share: [`ALLOWANCE`], or four of the largest values if that is more, in each of the
//! two directions ([`Server::held`]). A connection waits for its turn, and one that holds such memory without progress
//! while others wait is ended.

mod admin;
mod allowance;
mod binary_requests;
mod clock;
pub mod connection;
mod counters;
mod datagrams;
mod input;
pub mod listen;
mod meta_requests;
mod output;
mod prefixes;
mod registry;
mod session;
mod settings;
mod signal;
mod statistics;
mod text_requests;
pub mod upkeep;

pub use clock::Clock;
pub use registry::{Place, Registered};
pub use settings::Settings;
pub use signal::{Ending, Stop};
pub use text_requests::VERSION;

use crate::store::{LimitsError, Store};
use allowance::Allowance;
use counters::{Count, Counters, Tally};
use prefixes::Prefixes;
use registry::Registry;
use signal::Kick;
use std::{
    borrow::Cow,
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed},
    },
};

/// Bytes that all connections together may take for large values in each direction, at least.
pub const ALLOWANCE: usize = 64 << 20;

/// What memcached's `verbosity` goes up to.
const VERBOSITY_MAX: u32 = 2;

/// A cache server: the store and everything that connections share.
pub struct Server {
    /// The cache.
    pub store: Store,
    /// What it was told at its start.
    pub settings: Settings,
    /// Its time.
    pub clock: Clock,
    /// How it ends.
    pub stop: Stop,
    counters: Counters,
    registry: Arc<Registry>,
    prefixes: Prefixes,
    incoming: Allowance,
    outgoing: Allowance,
    /// A connection waits for one of the two.
    crowded: Arc<Kick>,
    upkeep: Kick,
    background: Kick,
    verbosity: AtomicU32,
    accepting: AtomicBool,
    listen_disabled: AtomicU64,
    listen_disabled_us: AtomicU64,
    crawl_asked: AtomicBool,
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let open = self.registry.open();
        f.debug_struct("Server")
            .field("open", &open)
            .finish_non_exhaustive()
    }
}

impl Server {
    /// A server over `store`.
    #[must_use]
    pub fn new(store: Store, settings: Settings) -> Self {
        let crowded = Arc::<Kick>::default();
        let allowance = ALLOWANCE.max(settings.item_size_max.saturating_mul(4));
        Server {
            clock: Clock::new(),
            stop: Stop::default(),
            counters: Counters::default(),
            registry: Arc::default(),
            prefixes: Prefixes::new(settings.delimiter, settings.detail),
            incoming: Allowance::new(allowance, Arc::clone(&crowded)),
            outgoing: Allowance::new(allowance, Arc::clone(&crowded)),
            crowded,
            upkeep: Kick::default(),
            background: Kick::default(),
            verbosity: AtomicU32::new(0),
            accepting: AtomicBool::new(true),
            listen_disabled: AtomicU64::new(0),
            listen_disabled_us: AtomicU64::new(0),
            crawl_asked: AtomicBool::new(false),
            store,
            settings,
        }
    }

    /// How much it says on standard error: 0 nothing but trouble, 1 what goes wrong with clients, 2
    /// connections as well.
    pub fn set_verbosity(&self, level: u32) {
        self.verbosity.store(level.min(VERBOSITY_MAX), Relaxed);
    }

    /// See [`set_verbosity`](Server::set_verbosity).
    pub fn verbosity(&self) -> u32 {
        self.verbosity.load(Relaxed)
    }

    /// Enters a connection from `peer` to `listener` into the table; `None` if there are too many, and it is
    /// counted as rejected.
    pub fn enter(&self, peer: String, listener: &Arc<str>) -> Option<Place> {
        let place = self.enter_if_there_is_room(peer, listener);
        if place.is_none() {
            self.registry.reject();
        }
        place
    }

    /// The same for a connection that may be entered later.
    fn enter_if_there_is_room(&self, peer: String, listener: &Arc<str>) -> Option<Place> {
        let limit = self.settings.connections_max;
        self.registry.enter(peer, listener, self.clock.now(), limit)
    }

    /// The connections now.
    pub fn open_connections(&self) -> u32 {
        self.registry.open()
    }

    /// The bytes that connections may fill with large values now: what clients send, and what they are sent.
    pub fn held(&self) -> (usize, usize) {
        (self.incoming.held(), self.outgoing.held())
    }

    /// The connections since the start, or since `stats reset`.
    pub fn total_connections(&self) -> u64 {
        self.registry.total()
    }

    /// The requests since the start, or since `stats reset`, that read, store, touch, delete or change a number.
    pub fn requests(&self) -> u64 {
        self.counters.requests()
    }

    /// Something was stored: there may be work in the background.
    #[inline]
    fn was_changed(&self) {
        self.upkeep.kick();
        self.background.kick();
    }

    /// `lru_crawler crawl`: look for expired items soon.
    fn crawl_now(&self) {
        self.crawl_asked.store(true, Relaxed);
        // Not a kick: no lock orders the flag before the look of a task that was kicked already.
        self.background.wake();
    }

    fn crawl_was_asked(&self) -> bool {
        self.crawl_asked.swap(false, Relaxed)
    }

    fn idle_kick(&self, number: u64) {
        let mut tally = Tally::default();
        tally.add(Count::IdleKicks);
        self.counters.report(number, &mut tally);
    }

    /// `cache_memlimit`.
    fn set_memory_limit(&self, megabytes: Option<u32>) -> Cow<'static, str> {
        let too_small = |least: u64| {
            let least = least.div_ceil(1 << 20);
            format!("MEMLIMIT_TOO_SMALL cannot set maxbytes to less than {least}m").into()
        };
        let answer = match megabytes.map(u64::from) {
            None => "ERROR",
            Some(..8) => return too_small(8 << 20),
            Some(1_000_000_001..) => "MEMLIMIT_ADJUST_FAILED input value is megabytes not bytes",
            Some(megabytes) => match self.store.set_memory_limit(megabytes << 20) {
                Ok(()) => {
                    // As in `crawl_now`: the limit is an atomic number.
                    self.background.wake();
                    "OK"
                }
                Err(LimitsError::Memory { least, .. }) => return too_small(least),
                Err(LimitsError::ItemSize { value, .. }) => return too_small(2 * value),
                Err(_) => "MEMLIMIT_ADJUST_FAILED out of bounds or unable to adjust",
            },
        };
        answer.into()
    }
}
