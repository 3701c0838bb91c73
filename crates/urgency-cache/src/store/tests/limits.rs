//! Limits: which are refused, and how the store comes down to a lower one.

use super::*;

#[test]
fn limits_that_cannot_be_are_named_with_what_is_allowed() {
    let least = Store::new(&Limits {
        memory: 5,
        ..Limits::default()
    })
    .err();
    assert_eq!(
        least,
        Some(LimitsError::Memory {
            value: 5,
            least: MEMORY_LEAST
        })
    );
    let item = Limits {
        item_size_max: 40 << 20,
        ..Limits::default()
    };
    let message = Store::new(&item).err().unwrap().to_string();
    assert!(
        message.contains("41943040") && message.contains("33554432"),
        "{message}"
    );
    let shards = Store::new(&Limits {
        shards: Some(3),
        ..Limits::default()
    })
    .err();
    assert_eq!(
        shards,
        Some(LimitsError::Shards {
            value: 3,
            most: SHARDS_MOST
        })
    );
    let percent = Store::new(&Limits {
        hot_percent: 60,
        ..Limits::default()
    })
    .err();
    assert_eq!(percent, Some(LimitsError::Percent { hot: 60, warm: 40 }));
    assert!(small(2 << 20, 1).set_memory_limit(7).is_err());
}

#[test]
fn a_lowered_limit_is_reached_by_rebalancing_and_the_newest_stay() {
    let limits = Limits {
        memory: 16 << 20,
        shards: Some(4),
        ..Limits::default()
    };
    let store = Store::new(&limits).unwrap();
    write(&store, 0..50_000u32, 200, 0);
    store.set_memory_limit(9 << 20).unwrap();
    let mut steps = 0;
    while store.rebalance_step(2, 100).more {
        steps += 1;
    }
    let stats = store.stats(2);
    assert!(steps > 20, "it comes in steps");
    assert!(stats.allocated <= 9 << 20, "{}", stats.allocated);
    assert!(
        stats.curr_items * 250 > 7 << 20,
        "{} items",
        stats.curr_items
    );
    let newest = (40_000..50_000).filter(|i| there(&store, *i)).count();
    assert!(newest > 9_900, "{newest}");
    store.check();
}

#[test]
fn a_limit_that_cannot_be_reached_without_eviction_ends_the_work_all_the_same() {
    let limits = Limits {
        memory: 2 << 20,
        item_size_max: 1 << 18,
        evict: false,
        ..Limits::default()
    };
    let store = Store::new(&limits).unwrap();
    let new = NewItem {
        value: &[&[7; 200]],
        ..NewItem::default()
    };
    let n = (0u32..)
        .find(|i| store.entry(&i.to_le_bytes(), 2).set(&new).is_err())
        .unwrap();
    store.set_memory_limit(1 << 20).unwrap();
    let steps = (0..1000)
        .take_while(|_| store.rebalance_step(2, 100).more)
        .count();
    assert!(steps < 100, "{steps} steps");
    assert!((0..n).all(|i| there(&store, i)));
    store.check();
}

#[test]
fn a_lowered_limit_takes_from_a_starved_shard_what_is_above_it_and_no_more() {
    let limits = Limits {
        memory: 4 << 20,
        item_size_max: 1 << 18,
        shards: Some(1),
        ..Limits::default()
    };
    let store = Store::new(&limits).unwrap();
    write(&store, 0..10_000, 2000, 0);
    let is_starved = || {
        let shard = store.shards[0].0.lock();
        shard.starved && shard.heap.closing().is_some()
    };
    for i in 0u32.. {
        assert!(i < 200_000, "the table never lacks memory");
        set(&store, &i.to_le_bytes(), b"x", 0, 2);
        if is_starved() {
            break;
        }
    }
    store.set_memory_limit(3 << 20).unwrap();
    while store.rebalance_step(2, 100).more {}
    let stats = store.stats(2);
    assert!(stats.allocated <= 3 << 20, "{}", stats.allocated);
    assert!(stats.curr_items > 1000, "{} items", stats.curr_items);
    set(&store, b"new", b"x", 0, 2);
    store.check();
}
