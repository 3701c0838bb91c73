//! Many threads on one store, each value verified.
//!
//! A value is made from its key and a version, so that a reader recognises one that is torn, of another
//! key, or made up; and each key has one writer, whose versions only rise, so that a reader recognises one
//! that came back.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::thread;

use super::*;

const KEYS: u64 = 4000;
const WRITERS: u64 = 2;

fn write_value(key: u64, version: u64, value: &mut Vec<u8>) {
    let mut rng = fastrand::Rng::with_seed(key << 32 | version);
    let len = match rng.u32(..100) {
        0 => rng.usize(..150_000),
        1..10 => rng.usize(..5000),
        _ => rng.usize(..300),
    };
    value.clear();
    value.extend(version.to_le_bytes());
    let seed = rng.u64(..);
    value.extend((0..len / 8).flat_map(|i| (seed ^ i as u64).to_le_bytes()));
}

struct Bench {
    store: Store,
    now: AtomicU32,
    stop: AtomicBool,
    found: AtomicU64,
    deleted: Vec<AtomicU64>,
}

impl Bench {
    fn read(&self, key: u64, seen: &mut [u64], value: &mut Vec<u8>, expected: &mut Vec<u8>) {
        let name = format!("key {key}");
        let oldest = self.deleted[key as usize].load(Relaxed);
        value.clear();
        let found = self
            .store
            .get(name.as_bytes(), self.now.load(Relaxed), |item| {
                assert_eq!(item.key(), name.as_bytes());
                assert_eq!(item.flags(), key as u32);
                item.copy_to(value);
            });
        if found.is_some() {
            let version = u64::from_le_bytes(value[..8].try_into().unwrap());
            write_value(key, version, expected);
            assert!(
                value == expected,
                "key {key}, version {version}: the value is another"
            );
            assert!(version >= seen[key as usize], "an old version came back");
            assert!(version > oldest, "a removed version came back");
            seen[key as usize] = version;
            self.found.fetch_add(1, Relaxed);
        }
    }

    fn write(&self, mine: u64, ops: u64) {
        let mut rng = fastrand::Rng::with_seed(mine);
        let mut value = Vec::new();
        for version in 1..=ops {
            let key = rng.u64(..KEYS / WRITERS) * WRITERS + mine;
            let name = format!("key {key}");
            let now = self.now.load(Relaxed);
            let mut entry = self.store.entry(name.as_bytes(), now);
            if rng.u32(..20) == 0 {
                entry.remove();
                drop(entry);
                self.deleted[key as usize].store(version, Relaxed);
                continue;
            }
            write_value(key, version, &mut value);
            let (a, b) = value.split_at(value.len() / 2);
            let expires = if rng.bool() { 0 } else { now + rng.u32(1..20) };
            let new = NewItem {
                flags: key as u32,
                expires,
                value: &[a, b],
                cas: Some(version),
            };
            match entry.set(&new) {
                Ok(cas) => assert_eq!(cas, version),
                Err(StoreError::OutOfMemory { .. }) => drop(entry.remove()),
                Err(error) => panic!("{error}"),
            }
            assert!(self.store.budget.used() <= 4 << 20);
        }
    }
}

#[test]
fn every_value_read_under_writes_flushes_resizes_and_eviction_is_the_right_one() {
    let ops = if cfg!(debug_assertions) {
        15_000
    } else {
        150_000
    };
    let limits = Limits {
        memory: 4 << 20,
        shards: Some(4),
        ..Limits::default()
    };
    let bench = Bench {
        store: Store::new(&limits).unwrap(),
        now: AtomicU32::new(2),
        stop: AtomicBool::new(false),
        found: AtomicU64::new(0),
        deleted: (0..KEYS).map(|_| AtomicU64::new(0)).collect(),
    };
    let bench = &bench;
    thread::scope(|scope| {
        let writers: Vec<_> = (0..WRITERS)
            .map(|mine| scope.spawn(move || bench.write(mine, ops)))
            .collect();
        for reader in 0..2 {
            scope.spawn(move || {
                let mut rng = fastrand::Rng::with_seed(100 + reader);
                let mut seen = vec![0; KEYS as usize];
                let (mut value, mut expected) = (Vec::new(), Vec::new());
                while !bench.stop.load(Relaxed) {
                    bench.read(rng.u64(..KEYS), &mut seen, &mut value, &mut expected);
                }
            });
        }
        scope.spawn(move || {
            let mut cursor = Cursor::default();
            for turn in 0u64.. {
                if bench.stop.load(Relaxed) {
                    break;
                }
                let now = bench.now.load(Relaxed);
                bench.store.lru_step(now, 50);
                bench.store.grow_step(50);
                bench.store.crawl_step(&mut cursor, now, 50);
                bench.store.rebalance_step(now, 50);
                match turn % 64 {
                    0 => drop(bench.now.fetch_add(1, Relaxed)),
                    16 => bench.store.set_memory_limit(3 << 20).unwrap(),
                    48 => bench.store.set_memory_limit(4 << 20).unwrap(),
                    63 if turn % 7 == 0 => bench.store.flush_all(now + 1, now),
                    _ => {}
                }
                thread::yield_now();
            }
        });
        let written: Vec<_> = writers.into_iter().map(|writer| writer.join()).collect();
        // First, for the others' sake: a scope that panics waits for them.
        bench.stop.store(true, Relaxed);
        for result in written {
            result.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        }
    });
    bench.store.check();
    let shards = bench.store.shards.iter();
    let used: usize = shards.map(|shard| shard.0.lock().heap.page_count()).sum();
    let pages = used + bench.store.budget.pool.len();
    let most = (4 << 20) / heap::PAGE_COST as usize;
    assert!(
        pages <= most,
        "{pages} pages were allocated, {most} are allowed"
    );
    let stats = bench.store.stats(bench.now.load(Relaxed));
    assert!(bench.found.load(Relaxed) > 100, "the readers met items");
    assert!(stats.evictions > 0, "memory was short");
}
