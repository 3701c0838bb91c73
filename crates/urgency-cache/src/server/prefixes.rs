//! `stats detail`: requests counted by the prefix of their keys.
//!
//! It is off unless a client turns it on, and then costs a lock for each request, as in memcached. A key has a prefix
//! if it contains the delimiter. At most [`PREFIXES_MAX`] prefixes are told apart, so that keys that are all prefix do
//! not fill the memory.

use parking_lot::Mutex;
use std::{
    collections::BTreeMap,
    fmt::Write,
    sync::atomic::{AtomicBool, Ordering::Relaxed},
};

/// The most prefixes that are counted.
const PREFIXES_MAX: usize = 10_000;

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    gets: u64,
    hits: u64,
    sets: u64,
    deletes: u64,
}

/// See the module's text.
#[derive(Debug)]
pub struct Prefixes {
    on: AtomicBool,
    delimiter: u8,
    counts: Mutex<BTreeMap<Box<[u8]>, Counts>>,
}

impl Prefixes {
    /// Counts of the keys' prefixes before `delimiter`.
    #[must_use]
    pub fn new(delimiter: u8, on: bool) -> Self {
        Prefixes {
            on: AtomicBool::new(on),
            delimiter,
            counts: Mutex::default(),
        }
    }

    /// Whether it counts.
    pub fn is_on(&self) -> bool {
        self.on.load(Relaxed)
    }

    /// Turns it on or off.
    pub fn turn(&self, on: bool) {
        self.on.store(on, Relaxed);
    }

    /// Forgets everything.
    pub fn reset(&self) {
        self.counts.lock().clear();
    }

    /// Counts a get.
    #[inline]
    pub fn record_get(&self, key: &[u8], hit: bool) {
        if self.is_on() {
            self.record(key, |counts| {
                counts.gets += 1;
                counts.hits += u64::from(hit);
            });
        }
    }

    /// Counts a set.
    #[inline]
    pub fn record_set(&self, key: &[u8]) {
        if self.is_on() {
            self.record(key, |counts| counts.sets += 1);
        }
    }

    /// Counts a delete.
    #[inline]
    pub fn record_delete(&self, key: &[u8]) {
        if self.is_on() {
            self.record(key, |counts| counts.deletes += 1);
        }
    }

    #[cold]
    fn record(&self, key: &[u8], count: impl FnOnce(&mut Counts)) {
        let Some(length) = key.iter().position(|&byte| byte == self.delimiter) else {
            return;
        };
        let mut all = self.counts.lock();
        if let Some(counts) = all.get_mut(&key[..length]) {
            count(counts);
        } else if all.len() < PREFIXES_MAX {
            count(all.entry(key[..length].into()).or_default());
        }
    }

    /// The counts as memcached prints them, without the last line.
    pub fn dump(&self) -> String {
        let mut text = String::new();
        for (prefix, counts) in self.counts.lock().iter() {
            let Counts {
                gets,
                hits,
                sets,
                deletes,
            } = counts;
            let prefix = String::from_utf8_lossy(prefix);
            let written = write!(
                text,
                "PREFIX {prefix} get {gets} hit {hits} set {sets} del {deletes}\r\n"
            );
            written.expect("a string takes everything");
        }
        text
    }
}
