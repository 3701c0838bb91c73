//! The store beside a map: whatever it answers must be what a map would, or nothing.
//!
//! With little memory it may forget, never lie: an item that it has is the last one stored under the key, with its
//! value, flags, expiry and CAS id. With memory enough it may not forget either. After each sequence,
//! every invariant of `check.rs` holds.

use std::collections::HashMap;

use proptest::prelude::*;

use super::*;

#[derive(Clone, Debug)]
enum Op {
    Set { key: u16, len: u32, ttl: u32 },
    Append { key: u16, len: u16 },
    Prepend { key: u16, len: u16 },
    Replace { key: u16, len: u16 },
    Get { key: u16 },
    Touch { key: u16, ttl: u32 },
    Stale { key: u16, on: bool },
    Remove { key: u16 },
    Flush { delay: u32 },
    Wait { seconds: u32 },
    Lru,
    Crawl,
    Grow,
    Rebalance,
    Limit { pages: u32 },
}

fn op(keys: u16, len: u32) -> impl Strategy<Value = Op> {
    let key = 0..keys;
    let ttl = prop_oneof![3 => Just(0u32), 1 => 1u32..20];
    let len = prop_oneof![8 => 0..200u32, 3 => 200..3000u32, 1 => 0..len];
    prop_oneof![
        24 => (key.clone(), len, ttl.clone()).prop_map(|(key, len, ttl)| Op::Set { key, len, ttl }),
        3 => (key.clone(), 0..400u16).prop_map(|(key, len)| Op::Append { key, len }),
        3 => (key.clone(), 0..400u16).prop_map(|(key, len)| Op::Prepend { key, len }),
        3 => (key.clone(), 0..400u16).prop_map(|(key, len)| Op::Replace { key, len }),
        12 => key.clone().prop_map(|key| Op::Get { key }),
        2 => (key.clone(), ttl).prop_map(|(key, ttl)| Op::Touch { key, ttl }),
        1 => (key.clone(), any::<bool>()).prop_map(|(key, on)| Op::Stale { key, on }),
        5 => key.prop_map(|key| Op::Remove { key }),
        1 => (0..3u32).prop_map(|delay| Op::Flush { delay }),
        2 => (1..4u32).prop_map(|seconds| Op::Wait { seconds }),
        1 => Just(Op::Lru),
        1 => Just(Op::Crawl),
        1 => Just(Op::Grow),
        2 => Just(Op::Rebalance),
        1 => (0..40u32).prop_map(|pages| Op::Limit { pages }),
    ]
}

#[derive(Clone, Debug, PartialEq)]
struct Known {
    value: Vec<u8>,
    flags: u32,
    expires: u32,
    cas: u64,
    stale: bool,
}

fn bytes(seed: u64, len: usize) -> Vec<u8> {
    let words = (seed << 20..).map(|n| n.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes());
    words.take(len.div_ceil(8)).flatten().take(len).collect()
}

fn name(key: u16) -> Vec<u8> {
    let mut name = format!("key-{key}-").into_bytes();
    name.extend(bytes(u64::from(key), usize::from(key) * 37 % 240));
    name.truncate(KEY_MOST);
    name
}

struct World {
    store: Store,
    known: HashMap<u16, Known>,
    now: u32,
    flush_at: Option<u32>,
    count: u64,
    forgets: bool,
    cursor: Cursor,
    base: u64,
}

impl World {
    fn new(memory: u64, shards: u32, forgets: bool, evict: bool) -> World {
        let limits = Limits {
            memory,
            shards: Some(shards),
            item_size_max: (memory / 2).min(1 << 20),
            temporary_ttl: Some(3),
            evict,
            ..Limits::default()
        };
        World {
            store: Store::new(&limits).unwrap(),
            known: HashMap::new(),
            now: 2,
            flush_at: None,
            count: 0,
            forgets,
            cursor: Cursor::default(),
            base: memory,
        }
    }

    fn tick(&mut self) {
        if self.flush_at.is_some_and(|at| at <= self.now) {
            self.flush_at = None;
            self.known.clear();
        }
        let now = self.now;
        self.known
            .retain(|_, known| known.expires == 0 || known.expires > now);
    }

    fn see(&self, item: &ItemView<'_>) -> Known {
        let mut value = Vec::new();
        item.copy_to(&mut value);
        assert_eq!(value.len(), item.value_len());
        Known {
            value,
            flags: item.flags(),
            expires: item.expires(),
            cas: item.cas(),
            stale: item.is_stale(),
        }
    }

    fn agree(&mut self, key: u16, seen: Option<Known>) {
        match (&seen, self.known.get(&key)) {
            (Some(seen), Some(known)) => assert_eq!(seen, known),
            (Some(_), None) => panic!("an item that should not be there"),
            (None, Some(_)) => {
                assert!(self.forgets, "an item is gone");
                self.known.remove(&key);
            }
            (None, None) => {}
        }
    }

    fn write(
        &mut self,
        key: u16,
        write: impl FnOnce(&mut Entry<'_>, &mut Known, &[u8]),
        len: usize,
    ) {
        let name = name(key);
        self.count += 1;
        let data = bytes(self.count, len);
        let seen = self
            .store
            .entry(&name, self.now)
            .item()
            .map(|item| self.see(&item));
        self.agree(key, seen.clone());
        let Some(mut known) = seen else { return };
        let mut entry = self.store.entry(&name, self.now);
        write(&mut entry, &mut known, &data);
        let after = entry.item().is_some();
        drop(entry);
        if after {
            self.known.insert(key, known);
        } else {
            assert!(self.forgets);
            self.known.remove(&key);
        }
    }

    fn run(&mut self, op: &Op) {
        self.tick();
        let now = self.now;
        match *op {
            Op::Set { key, len, ttl } => {
                self.count += 1;
                let value = bytes(self.count, len as usize);
                let flags = self.count as u32;
                let expires = if ttl == 0 { 0 } else { now + ttl };
                let name = name(key);
                let mut entry = self.store.entry(&name, now);
                let parts = value.split_at(value.len() / 3);
                let new = NewItem {
                    flags,
                    expires,
                    value: &[parts.0, parts.1],
                    cas: None,
                };
                match entry.set(&new) {
                    Ok(cas) => {
                        let known = Known {
                            value,
                            flags,
                            expires,
                            cas,
                            stale: false,
                        };
                        self.known.insert(key, known);
                    }
                    Err(StoreError::OutOfMemory { .. }) => {
                        assert!(self.forgets);
                        if entry.item().is_none() {
                            self.known.remove(&key);
                        }
                    }
                    Err(StoreError::TooLarge { .. }) => assert!(len > 1000),
                    Err(error) => panic!("{error}"),
                }
            }
            Op::Append { key, len } => self.write(
                key,
                |entry, known, data| {
                    if let Ok(cas) = entry.append(&[data]) {
                        known.value.extend_from_slice(data);
                        (known.cas, known.stale) = (cas, false);
                    }
                },
                len.into(),
            ),
            Op::Prepend { key, len } => self.write(
                key,
                |entry, known, data| {
                    if let Ok(cas) = entry.prepend(&[data]) {
                        known.value.splice(0..0, data.iter().copied());
                        (known.cas, known.stale) = (cas, false);
                    }
                },
                len.into(),
            ),
            Op::Replace { key, len } => self.write(
                key,
                |entry, known, data| {
                    if entry.replace_value(&[data], Some(77)).is_ok() {
                        known.value = data.to_vec();
                        known.cas = 77;
                    }
                },
                len.into(),
            ),
            Op::Get { key } => {
                let seen = self.store.get(&name(key), now, |item| self.see(item));
                self.agree(key, seen);
            }
            Op::Touch { key, ttl } => self.write(
                key,
                |entry, known, _| {
                    known.expires = if ttl == 0 { 0 } else { now + ttl };
                    assert!(entry.set_expires(known.expires));
                },
                0,
            ),
            Op::Stale { key, on } => self.write(
                key,
                |entry, known, _| {
                    known.stale = on;
                    known.flags = 5;
                    assert!(entry.set_stale(on) && entry.set_won(on) && entry.set_flags(5));
                },
                0,
            ),
            Op::Remove { key } => {
                let was = self.store.entry(&name(key), now).remove();
                let known = self.known.remove(&key).is_some();
                assert!(was == known || (known && self.forgets));
            }
            Op::Flush { delay } => {
                self.store.flush_all(now + delay, now);
                self.flush_at = Some(now + delay);
            }
            Op::Wait { seconds } => self.now += seconds,
            Op::Lru => drop(self.store.lru_step(now, 10)),
            Op::Crawl => {
                let mut cursor = self.cursor;
                self.store.crawl_step(&mut cursor, now, 100);
                self.cursor = cursor;
            }
            Op::Grow => drop(self.store.grow_step(10)),
            Op::Rebalance => drop(self.store.rebalance_step(now, 20)),
            Op::Limit { pages } => {
                if self.forgets {
                    let limit = self.base - u64::from(pages % 8) * (1 << 15);
                    // Below the least the old limit stays.
                    let _ = self.store.set_memory_limit(limit);
                    for _ in 0..1000 {
                        if !self.store.rebalance_step(now, 1000).more {
                            break;
                        }
                    }
                }
            }
        }
        let stats = self.store.stats(self.now);
        let limit = stats.limit.max(self.base);
        assert!(
            stats.allocated <= limit,
            "{} above {limit}",
            stats.allocated
        );
    }

    fn end(&mut self) {
        self.tick();
        self.store.check();
        for key in 0..300 {
            let seen = self.store.get(&name(key), self.now, |item| self.see(item));
            self.agree(key, seen);
        }
    }
}

fn play(ops: &[Op], memory: u64, shards: u32, forgets: bool, evict: bool) {
    let mut world = World::new(memory, shards, forgets, evict);
    for op in ops {
        world.run(op);
        if cfg!(urgency_chaos) {
            world.store.check();
        }
    }
    world.end();
}

fn cases(cases: u32) -> ProptestConfig {
    let cases = std::env::var("URGENCY_CASES")
        .ok()
        .and_then(|n| n.parse().ok())
        .unwrap_or(cases);
    ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::with_cases(cases)
    }
}

proptest! {
    #![proptest_config(cases(12))]

    #[test]
    fn with_memory_enough_it_is_a_map(ops in prop::collection::vec(op(300, 100_000), 1..400)) {
        play(&ops, 64 << 20, 2, false, true);
    }

    #[test]
    fn with_little_memory_it_forgets_but_never_lies(
        ops in prop::collection::vec(op(300, 300_000), 1..2000),
    ) {
        play(&ops, 1 << 20, 1, true, true);
    }

    #[test]
    fn shards_share_little_memory(ops in prop::collection::vec(op(300, 300_000), 1..2000)) {
        play(&ops, 3 << 20, 4, true, true);
    }

    #[test]
    fn without_eviction_a_full_store_says_so(
        ops in prop::collection::vec(op(300, 100_000), 1..1000),
    ) {
        play(&ops, 1 << 20, 1, true, false);
    }
}
