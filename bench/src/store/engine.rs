//! A log-structured store in memory: what it does, and nothing about which thread does it when.
//!
//! - *Write*: a batch is appended to the log (a file), then goes into the active memtable. A memtable that is full
//!   is frozen, and a new one with a new log takes its place.
//! - *Flush*: a frozen memtable is sorted, encoded as a run and written to a file; its log is removed.
//! - *Read*: the active memtable, the frozen ones, the runs that were flushed since, the merged ones, the cold ones;
//!   the newest version counts.
//! - *Compaction*: [`FLUSHED`] flushed runs are merged into one (one leaf). Otherwise the cold runs are merged, in
//!   parts of very different sizes, verified, and dropped, so that there is always something to compact, and always
//!   the same.
//!
//! Locks are `std`'s. They are held for a look-up, an insertion or the exchange of a pointer; the log's lock for a
//! `write` into the page cache. No code waits or forks while it holds one. A write is durable against a crash of the
//! process, not of the machine: there is no `fsync`, because the disk's time is not what is compared.

use super::run::{Entry, Run, merge, mix};
use std::collections::HashMap;
use std::fs::{self, File};
use std::io::Write as _;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, RwLock};

/// How large the store is.
#[derive(Clone, Copy)]
pub struct Size {
    /// Cold runs, each of which has one of so many keys in a row.
    pub cold: u64,
    /// Entries of a cold run.
    pub cold_entries: u64,
    /// Entries of a write.
    pub batch: usize,
    /// Entries of a full memtable.
    pub memtable: usize,
}

/// So many flushed runs are merged into one.
pub const FLUSHED: usize = 4;
/// The parts of a merge of the cold runs, in fortieths of the keys.
const PARTS: [u64; 8] = [10, 1, 8, 2, 7, 3, 5, 4];
/// The first version of a write; the versions of the cold runs are below.
const FIRST_VERSION: u64 = 1 << 10;

type Memtable = HashMap<u64, Entry>;

/// The store.
pub struct Store {
    size: Size,
    log: Mutex<Log>,
    active: RwLock<Memtable>,
    shape: RwLock<Shape>,
    cold: Vec<Run>,
    parts: Vec<Part>,
    /// By key: the newest version that was written.
    written: Vec<AtomicU64>,
    folder: Folder,
    /// Entries that compaction has read.
    pub compacted: AtomicU64,
    /// Memtables that were written to files.
    pub flushed: AtomicU64,
}

/// The log of the active memtable.
struct Log {
    file: File,
    number: u64,
    next_version: u64,
    record: Vec<u8>,
}

/// A range of keys of the cold runs, and the digest of what merging it gives.
pub struct Part {
    keys: Range<u64>,
    digest: u64,
}

/// What there is beyond the active memtable and the cold runs.
#[derive(Default)]
struct Shape {
    frozen: Vec<Arc<Frozen>>,
    flushed: Vec<Arc<Run>>,
    merged: Vec<Arc<Run>>,
}

/// A memtable that is written no more.
pub struct Frozen {
    table: Memtable,
    number: u64,
}

/// The folder of logs and runs.
struct Folder(PathBuf);

impl Store {
    /// A store with its cold runs, and nothing written yet.
    pub fn new(size: Size) -> Self {
        let run = |number| {
            let entry = |row| Entry::new(cold_key(size, row, number), number + 1);
            Run::of(&(0..size.cold_entries).map(entry).collect::<Vec<_>>())
        };
        let cold: Vec<Run> = (0..size.cold).map(run).collect();
        let keys = size.cold * size.cold_entries;
        let mut fortieths = 0;
        let parts = PARTS.map(|part| {
            let keys = keys * fortieths / 40..keys * (fortieths + part) / 40;
            fortieths += part;
            let digest = merge(&cold, keys.clone()).digest;
            Part { keys, digest }
        });
        let folder = Folder::new();
        Store {
            size,
            log: Mutex::new(Log {
                file: folder.log(0),
                number: 0,
                next_version: FIRST_VERSION,
                record: Vec::new(),
            }),
            active: RwLock::default(),
            shape: RwLock::default(),
            cold,
            parts: parts.into(),
            written: (0..keys).map(|_| AtomicU64::new(0)).collect(),
            folder,
            compacted: AtomicU64::new(0),
            flushed: AtomicU64::new(0),
        }
    }

    /// Reads a key that the store has, and panics unless the value is at least as new as what was written before.
    pub fn read(&self, operation: usize) {
        let random = mix(operation as u64);
        let run = random % self.size.cold;
        let key = cold_key(self.size, (random >> 8) % self.size.cold_entries, run);
        let least = self.written[key as usize]
            .load(Ordering::Acquire)
            .max(run + 1);
        let entry = self.get(key).expect("a key that was written is there");
        entry.verify();
        assert!(entry.version >= least, "a stale value of {key}: {entry:?}");
    }

    fn get(&self, key: u64) -> Option<Entry> {
        let active = self.active.read().expect("nobody panics");
        if let Some(entry) = active.get(&key) {
            return Some(*entry);
        }
        drop(active);
        let shape = self.shape.read().expect("nobody panics");
        let frozen = shape
            .frozen
            .iter()
            .filter_map(|frozen| frozen.table.get(&key).copied());
        let runs = shape.flushed.iter().chain(&shape.merged);
        // Flushes may end in another order than they began, so the version decides.
        let written = frozen.chain(runs.filter_map(|run| run.get(key)));
        let newest = written.max_by_key(|entry| entry.version);
        newest.or_else(|| self.cold.iter().rev().find_map(|run| run.get(key)))
    }

    /// Writes a batch; returns the memtable that is to be flushed if that filled it.
    pub fn write(&self, operation: usize) -> Option<Arc<Frozen>> {
        let first = mix(!(operation as u64)) as usize % self.written.len();
        let mut log = self.log.lock().expect("nobody panics");
        let version = log.next_version;
        log.next_version += 1;
        // Keys that lie far apart, so that a memtable covers the store as random keys do.
        let key = |n| (first + n * (self.written.len() / self.size.batch + 1)) % self.written.len();
        let entries = (0..self.size.batch).map(|n| Entry::new(key(n) as u64, version));
        log.append(entries.clone());
        let mut active = self.active.write().expect("nobody panics");
        active.extend(entries.clone().map(|entry| (entry.key, entry)));
        let full = (active.len() >= self.size.memtable).then(|| {
            let frozen = Arc::new(Frozen {
                table: std::mem::take(&mut active),
                number: log.number,
            });
            // Before a reader finds the active one empty.
            let mut shape = self.shape.write().expect("nobody panics");
            shape.frozen.push(frozen.clone());
            frozen
        });
        drop(active);
        if full.is_some() {
            log.number += 1;
            log.file = self.folder.log(log.number);
        }
        drop(log);
        for entry in entries {
            self.written[entry.key as usize].fetch_max(version, Ordering::Release);
        }
        full
    }

    /// Sorts a frozen memtable with `sort`, and writes it as a run.
    pub fn flush(&self, frozen: &Arc<Frozen>, sort: impl FnOnce(&mut [Entry])) {
        let mut entries: Vec<Entry> = frozen.table.values().copied().collect();
        sort(&mut entries);
        let run = Arc::new(Run::of(&entries));
        let name = self.folder.0.join(format!("{}.run", frozen.number));
        fs::write(name, run.bytes()).expect("a file can be written");
        let mut shape = self.shape.write().expect("nobody panics");
        shape.frozen.retain(|other| !Arc::ptr_eq(other, frozen));
        shape.flushed.push(run);
        drop(shape);
        fs::remove_file(self.folder.log_name(frozen.number)).expect("the log is there");
        self.flushed.fetch_add(1, Ordering::Relaxed);
    }

    /// Merges flushed runs into one, if there are enough of them; returns whether there were.
    pub fn compact_flushed(&self) -> bool {
        let shape = self.shape.read().expect("nobody panics");
        if shape.flushed.len() < FLUSHED {
            return false;
        }
        let oldest: Vec<Arc<Run>> = shape.flushed[..FLUSHED].to_vec();
        drop(shape);
        let merged = Arc::new(merge(oldest.iter().map(Arc::as_ref), 0..u64::MAX));
        let mut shape = self.shape.write().expect("nobody panics");
        let is_old = |run: &Arc<Run>| oldest.iter().any(|old| Arc::ptr_eq(old, run));
        shape.flushed.retain(|run| !is_old(run));
        shape.merged.push(merged);
        drop(shape);
        let read: usize = oldest.iter().map(|run| run.len).sum();
        self.compacted.fetch_add(read as u64, Ordering::Relaxed);
        true
    }

    /// The parts of the cold runs, which can be merged in parallel.
    pub fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// Merges a part of the cold runs: one leaf.
    pub fn compact_cold(&self, part: &Part) {
        let merged = merge(&self.cold, part.keys.clone());
        assert_eq!(merged.digest, part.digest, "a wrong result of a merge");
        let read = part.keys.end - part.keys.start;
        self.compacted.fetch_add(read, Ordering::Relaxed);
    }

    /// Removes the store's files; flushes fail from now on. (Samples end by `exit`, so this is no `Drop`.)
    pub fn remove(&self) {
        let _ = fs::remove_dir_all(&self.folder.0);
    }

    /// Memtables that wait to be flushed.
    pub fn backlog(&self) -> usize {
        self.shape.read().expect("nobody panics").frozen.len()
    }
}

/// Of each [`Size::cold`] keys in a row a cold run has one: a random one, so that runs have keys in common.
fn cold_key(size: Size, row: u64, run: u64) -> u64 {
    row * size.cold + mix(row ^ mix(run)) % size.cold
}

impl Log {
    fn append(&mut self, entries: impl Iterator<Item = Entry>) {
        self.record.clear();
        for entry in entries {
            for word in [entry.key, entry.version].iter().chain(&entry.value) {
                self.record.extend_from_slice(&word.to_le_bytes());
            }
        }
        self.file
            .write_all(&self.record)
            .expect("the log can be written");
    }
}

impl Folder {
    fn new() -> Self {
        let name = format!("urgency-bench-store-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        fs::create_dir(&folder).expect("a folder for temporary files can be made");
        Folder(folder)
    }

    fn log_name(&self, number: u64) -> PathBuf {
        self.0.join(format!("{number}.log"))
    }

    fn log(&self, number: u64) -> File {
        File::create_new(self.log_name(number)).expect("a log can be made")
    }
}
