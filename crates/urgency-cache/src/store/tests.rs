//! Tests through the public interface.

use super::*;

mod limits;

fn store() -> Store {
    Store::new(&Limits::default()).unwrap()
}

fn value(store: &Store, key: &[u8], now: u32) -> Option<Vec<u8>> {
    store.get(key, now, |item| {
        let mut value = Vec::new();
        item.copy_to(&mut value);
        value
    })
}

fn set(store: &Store, key: &[u8], data: &[u8], expires: u32, now: u32) -> u64 {
    store
        .entry(key, now)
        .set(&NewItem {
            expires,
            value: &[data],
            ..NewItem::default()
        })
        .unwrap()
}

#[test]
fn what_was_set_is_read_until_it_expires() {
    let store = store();
    set(&store, b"a", b"1", 10, 2);
    assert_eq!(value(&store, b"a", 9).as_deref(), Some(&b"1"[..]));
    assert_eq!(value(&store, b"a", 10), None);
    assert!(store.entry(b"a", 10).item().is_none());
}

#[test]
fn each_write_gets_a_higher_cas_id() {
    let store = store();
    let first = set(&store, b"a", b"1", 0, 2);
    let second = set(&store, b"b", b"2", 0, 2);
    assert!(second > first);
    let third = store.entry(b"a", 2).append(&[b"x"]).unwrap();
    assert!(third > second);
    assert_eq!(store.get(b"a", 2, |item| item.cas()), Some(third));
}

#[test]
fn a_flush_takes_what_was_stored_before_its_time() {
    let store = store();
    set(&store, b"a", b"1", 0, 2);
    store.flush_all(5, 2);
    assert!(value(&store, b"a", 4).is_some());
    assert!(value(&store, b"a", 5).is_none());
    set(&store, b"a", b"2", 0, 5);
    assert!(value(&store, b"a", 6).is_some());
    store.flush_all(0, 6);
    assert!(value(&store, b"a", 6).is_none());
}

#[test]
fn too_large_is_said_with_the_limit() {
    let store = store();
    let value = vec![0; 2 << 20];
    let error = store.entry(b"a", 2).set(&NewItem {
        value: &[&value],
        ..NewItem::default()
    });
    assert!(
        matches!(
            error,
            Err(StoreError::TooLarge {
                most: 1_048_576,
                ..
            })
        ),
        "{error:?}"
    );
}

#[test]
fn writes_alone_grow_the_tables_so_that_buckets_stay_short() {
    let store = Store::new(&Limits {
        shards: Some(2),
        ..Limits::default()
    })
    .unwrap();
    for i in 0..100_000u32 {
        set(&store, &i.to_le_bytes(), b"x", 0, 2);
        if i % 1000 == 0 {
            let stats = store.stats(2);
            let buckets = stats.hash_bytes / 64;
            let items = stats.curr_items;
            assert!(items < 9 * buckets, "{items} items in {buckets} buckets");
            assert!(
                items < 2000 || buckets < items,
                "{buckets} buckets for {items} items"
            );
        }
    }
    let stats = store.stats(2);
    assert!(
        1 << stats.hash_power_level > 50_000,
        "{}",
        stats.hash_power_level
    );
    assert!((0..100_000u32).all(|i| value(&store, &i.to_le_bytes(), 2).is_some()));
}

#[test]
fn a_full_store_makes_room_for_the_table_when_items_become_small() {
    let limits = Limits {
        memory: 4 << 20,
        shards: Some(1),
        ..Limits::default()
    };
    let store = Store::new(&limits).unwrap();
    for i in 0..10_000u32 {
        set(&store, &i.to_le_bytes(), &[0; 2000], 0, 2);
    }
    for i in 0..200_000u32 {
        set(&store, &i.to_le_bytes(), b"x", 0, 2);
    }
    store.check();
    let stats = store.stats(2);
    assert!(stats.curr_items > 40_000, "{} items", stats.curr_items);
    assert!(stats.curr_items < 9 * stats.hash_bytes / 64);
    assert!(stats.allocated <= 4 << 20);
}

fn small(memory: u64, shards: u32) -> Store {
    let limits = Limits {
        memory,
        shards: Some(shards),
        ..Limits::default()
    };
    Store::new(&Limits {
        item_size_max: memory / 2,
        ..limits
    })
    .unwrap()
}

/// Sets numbered items of `len` bytes.
fn write(store: &Store, items: std::ops::Range<u32>, len: usize, expires: u32) {
    for i in items {
        set(store, &i.to_le_bytes(), &vec![7; len], expires, 2);
    }
}

/// Sets numbered items until something was evicted; returns how many there were.
fn fill(store: &Store, value: &[u8], now: u32) -> u32 {
    for i in 0u32.. {
        set(store, &i.to_le_bytes(), value, 0, now);
        if store.stats(now).evictions > 0 {
            return i + 1;
        }
    }
    unreachable!("memory is limited")
}

fn there(store: &Store, i: u32) -> bool {
    store.entry(&i.to_le_bytes(), 2).item().is_some()
}

#[test]
fn the_oldest_are_evicted_first() {
    let store = small(1 << 20, 1);
    let n = fill(&store, &[7; 200], 2);
    for i in n..n + 500 {
        set(&store, &i.to_le_bytes(), &[7; 200], 0, 2);
    }
    let first = (0..n).find(|i| there(&store, *i)).unwrap();
    // Each page that the growing table gets costs 264 items.
    assert!(
        (490..=800).contains(&first),
        "{first} evicted after {n} + 500 writes"
    );
    assert!((first..n + 500).all(|i| there(&store, i)));
}

#[test]
fn what_is_read_twice_survives_a_scan_and_what_is_read_once_does_not() {
    let store = small(1 << 20, 1);
    for (name, reads) in [(b"zero", 0), (b"once", 1), (b"more", 2)] {
        set(&store, name, &[1; 100], 0, 2);
        (0..reads).for_each(|_| assert!(value(&store, name, 2).is_some()));
    }
    let n = fill(&store, &[7; 200], 2);
    write(&store, n..2 * n, 200, 0);
    assert!(store.entry(b"zero", 2).item().is_none());
    assert!(store.entry(b"once", 2).item().is_none());
    assert!(store.entry(b"more", 2).item().is_some());
}

#[test]
fn what_is_read_twice_survives_when_pages_go_to_large_items() {
    // A large item takes pages from the other shard, without looking at its order first.
    for (len, large) in [
        (2000, 300_000),
        (20_000, 300_000),
        (40_000, 200_000),
        (66_560, 66_560),
    ] {
        for _ in 0..3 {
            let store = small(6 << 20, 2);
            set(&store, b"canary", &vec![1; len], 0, 2);
            let mut small = 0u32;
            while store.stats(2).allocated < (6 << 20) - 200_000 {
                set(&store, &small.to_le_bytes(), &vec![7; len], 0, 2);
                small += 1;
            }
            (0..2).for_each(|_| assert!(value(&store, b"canary", 2).is_some()));
            write(&store, 1_000_000..1_000_006, large, 0);
            let stats = store.stats(2);
            assert!(value(&store, b"canary", 2).is_some(), "{len}: {stats:?}");
        }
    }
}

#[test]
fn short_lived_items_are_not_evicted_while_others_are_there() {
    let limits = Limits {
        memory: 1 << 20,
        item_size_max: 1 << 18,
        ..Limits::default()
    };
    let store = Store::new(&Limits {
        temporary_ttl: Some(60),
        ..limits
    })
    .unwrap();
    for i in 0..100u32 {
        set(&store, format!("temp {i}").as_bytes(), &[1; 100], 62, 2);
    }
    let n = fill(&store, &[7; 200], 2);
    write(&store, n..3 * n, 200, 0);
    assert!((0..100).all(|i| value(&store, format!("temp {i}").as_bytes(), 61).is_some()));
    assert_eq!(store.stats(2).segments[Segment::Temp as usize].items, 100);
}

#[test]
fn the_crawler_gives_the_memory_of_the_expired_back() {
    let store = small(16 << 20, 4);
    let empty = store.stats(2).allocated;
    write(&store, 0..10_000u32, 500, 10);
    let full = store.stats(2).pages;
    let (mut cursor, mut steps) = (Cursor::default(), 0);
    while store.crawl_step(&mut cursor, 10, 200).more {
        steps += 1;
    }
    assert!(steps > 10, "it comes in steps");
    let stats = store.stats(10);
    assert_eq!((stats.curr_items, stats.crawler_reclaimed), (0, 10_000));
    assert_eq!(stats.expired_unfetched, 10_000);
    assert!(
        full > 80 && stats.pages <= 4,
        "{} of {full} pages stay",
        stats.pages
    );
    assert!(stats.allocated - stats.hash_bytes - 4 * heap::PAGE_COST <= empty);
    store.check();
}

#[test]
fn a_large_item_takes_its_pages_from_all_shards() {
    let store = small(16 << 20, 8);
    write(&store, 0..200_000u32, 100, 0);
    let large: Vec<_> = (0..7 << 20).map(|i| (i * 7 % 251) as u8).collect();
    for _ in 0..3 {
        set(&store, b"large", &large, 0, 2);
        assert!(value(&store, b"large", 2).unwrap() == large);
        store.check();
    }
    let mut entry = store.entry(b"large", 2);
    entry.append(&[b"tail"]).unwrap_err();
    assert_eq!(
        entry.item().unwrap().value_len(),
        large.len(),
        "a failed append changes nothing"
    );
    drop(entry);
    assert!(store.stats(2).allocated <= 16 << 20);
    assert!(store.entry(b"large", 2).remove());
    store.check();
}

#[test]
fn after_tiny_items_a_long_key_costs_a_few_of_them_only() {
    let store = small(2 << 20, 1);
    let n = fill(&store, b"x", 2);
    let before = store.stats(2).evictions;
    for i in 0..20u8 {
        set(&store, &[i + 1; 250], &[i; 600], 0, 2);
    }
    let evicted = store.stats(2).evictions - before;
    assert!(
        evicted < 20 * 60,
        "{evicted} of {n} tiny items for 20 items of 900 bytes"
    );
    assert!((0..20u8).all(|i| value(&store, &[i + 1; 250], 2) == Some(vec![i; 600])));
    store.check();
}

#[test]
fn pages_move_to_the_shard_whose_items_are_evicted_young() {
    let store = small(4 << 20, 2);
    let of = |shard: usize, from: u32| {
        let store = &store;
        (from..).filter(move |i| store.number(store.key(&i.to_le_bytes()).hash) == shard)
    };
    for i in of(0, 0).take(20_000) {
        set(&store, &i.to_le_bytes(), &[7; 200], 0, 2);
    }
    let pages = |shard: usize| store.shards[shard].0.lock().heap.page_count();
    let before = pages(0);
    for (turn, i) in of(1, 0).take(20_000).enumerate() {
        set(
            &store,
            &i.to_le_bytes(),
            &[7; 200],
            0,
            1000 + turn as u32 / 100,
        );
        store.rebalance_step(1000 + turn as u32 / 100, 50);
    }
    assert!(
        pages(0) < before && pages(1) > before / 4,
        "{before}: {} and {}",
        pages(0),
        pages(1)
    );
    store.check();
}

#[test]
fn without_eviction_nothing_is_lost_and_what_expires_makes_room() {
    let limits = Limits {
        memory: 1 << 20,
        item_size_max: 1 << 18,
        ..Limits::default()
    };
    let store = Store::new(&Limits {
        evict: false,
        ..limits
    })
    .unwrap();
    let new = NewItem {
        expires: 10,
        value: &[&[7; 200]],
        ..NewItem::default()
    };
    let n = (0u32..)
        .find(|i| store.entry(&i.to_le_bytes(), 2).set(&new).is_err())
        .unwrap();
    assert!(n > 2000 && (0..n).all(|i| there(&store, i)));
    let error = store.entry(b"more", 2).set(&new);
    assert!(
        matches!(error, Err(StoreError::OutOfMemory { .. })),
        "{error:?}"
    );
    store
        .entry(&0u32.to_le_bytes(), 2)
        .set(&new)
        .expect("an item can be replaced in its place");
    store
        .entry(b"more", 10)
        .set(&new)
        .expect("the dead make room");
    store.check();
}

#[test]
fn after_65_536_flushes_nothing_old_comes_back() {
    let store = small(2 << 20, 1);
    set(&store, b"old", b"1", 0, 2);
    for _ in 0..1 << 16 {
        store.flush_all(0, 2);
    }
    assert_eq!(value(&store, b"old", 2), None);
    store.check();
}

#[test]
fn a_panic_in_the_closure_of_a_read_harms_nobody() {
    let store = store();
    set(&store, b"a", b"1", 0, 2);
    let panics =
        std::panic::AssertUnwindSafe(|| store.get(b"a", 2, |_| panic!("mine")).unwrap_or(()));
    assert!(std::panic::catch_unwind(panics).is_err());
    assert_eq!(value(&store, b"a", 2).as_deref(), Some(&b"1"[..]));
    store.check();
}
