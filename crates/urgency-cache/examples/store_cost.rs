//! What the store costs: nanoseconds for each operation, and bytes for each item.
//!
//! `cargo run --release -p urgency-cache --example store_cost -- speed` measures reads, writes and a
//! mix of 95 % reads with Zipf-distributed keys, with one and two threads.
//! `... -- memory` fills a store with items of several sizes and prints what each takes beyond its key and value;
//!
//! It shows the library's interface as a program would use it. It is a yardstick, no benchmark with bars.

use std::time::Instant;

use urgency_cache::store::{Limits, NewItem, Store};

const VALUE: usize = 100;

fn key(i: u64) -> [u8; 20] {
    let mut key = *b"key:0000000000000000";
    let digits = b"0123456789abcdef";
    (0..16).for_each(|at| key[4 + at] = digits[(i >> (60 - 4 * at)) as usize & 15]);
    key
}

fn set(store: &Store, i: u64, value: &[u8]) {
    let new = NewItem {
        value: &[value],
        ..NewItem::default()
    };
    store
        .entry(&key(i), 2)
        .set(&new)
        .expect("there is memory for a small item");
}

fn get(store: &Store, i: u64, to: &mut Vec<u8>) -> bool {
    to.clear();
    store.get(&key(i), 2, |item| item.copy_to(to)).is_some()
}

/// Ranks of `0..items` with probabilities in proportion to `1 / rank^0.99`, spread over the key space.
fn zipf(items: u64, count: usize) -> Vec<u64> {
    let mut sums = Vec::with_capacity(items as usize);
    let mut sum = 0.0;
    for rank in 1..=items {
        sum += (rank as f64).powf(-0.99);
        sums.push(sum);
    }
    let mut rng = fastrand::Rng::with_seed(7);
    (0..count)
        .map(|_| {
            let rank = sums.partition_point(|s| *s < rng.f64() * sum) as u64;
            rank.wrapping_mul(0x9e37_79b9_7f4a_7c15) % items
        })
        .collect()
}

fn measure(name: &str, threads: usize, ops: u64, work: impl Fn(usize, u64) + Sync) {
    let start = Instant::now();
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let work = &work;
            scope.spawn(move || (0..ops).for_each(|i| work(thread, i)));
        }
    });
    let nanos = start.elapsed().as_nanos() as f64 / ops as f64;
    println!(
        "{name:<44} {threads} threads  {nanos:7.1} ns each  {:6.2} M/s",
        threads as f64 * 1e3 / nanos
    );
}

fn speed() {
    for (items, ops) in [(10_000, 5_000_000), (4_000_000, 3_000_000)] {
        let limits = Limits {
            memory: 2 << 30,
            ..Limits::default()
        };
        let store = Store::new(&limits).expect("the limits are fine");
        println!("{items} items of 20 + {VALUE} bytes");
        measure("set, new", 1, items, |_, i| set(&store, i, &[1; VALUE]));
        let order = zipf(items, 1 << 20);
        let uniform = |thread: usize, i: u64| {
            (i + thread as u64 * 77).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20
        };
        for threads in [1, 2] {
            measure("  choosing a key", threads, ops, |t, i| {
                std::hint::black_box(key(uniform(t, i) % items));
            });
            measure("get, uniform, copy", threads, ops, |t, i| {
                let mut value = [0; VALUE];
                let found = store.get(&key(uniform(t, i) % items), 2, |item| {
                    let mut at = 0;
                    for part in item.value() {
                        value[at..at + part.len()].copy_from_slice(part);
                        at += part.len();
                    }
                });
                std::hint::black_box((found, value));
            });
            measure("get, absent", threads, ops, |t, i| {
                let mut value = Vec::new();
                std::hint::black_box(get(&store, items + uniform(t, i), &mut value));
            });
            measure("set, same size", threads, ops, |t, i| {
                set(&store, uniform(t, i) % items, &[2; VALUE])
            });
            measure("95 % get, 5 % set, Zipf 0.99", threads, ops, |t, i| {
                let i = i as usize + t * 5003;
                let choice = order[i & (order.len() - 1)];
                if i.is_multiple_of(20) {
                    set(&store, choice, &[3; VALUE]);
                } else {
                    let mut value = [0; VALUE];
                    let found = store.get(&key(choice), 2, |item| {
                        let mut at = 0;
                        for part in item.value() {
                            value[at..at + part.len()].copy_from_slice(part);
                            at += part.len();
                        }
                    });
                    std::hint::black_box((found, value));
                }
            });
        }
    }
    let limits = Limits {
        memory: 64 << 20,
        ..Limits::default()
    };
    let store = Store::new(&limits).expect("the limits are fine");
    println!("64 MiB, full: every write evicts");
    (0..1_000_000).for_each(|i| set(&store, i, &[1; VALUE]));
    measure("set, one size", 1, 2_000_000, |_, i| {
        set(&store, 1_000_000 + i, &[1; VALUE])
    });
    measure("set, one size", 2, 1_000_000, |t, i| {
        set(&store, (10 + t as u64) << 40 | i, &[1; VALUE])
    });
    let sizes: Vec<_> = {
        let mut rng = fastrand::Rng::with_seed(3);
        (0..4096).map(|_| rng.usize(1..1000)).collect()
    };
    let value = [5; 1000];
    for round in 0..3 {
        measure("set, 1 to 1000 bytes", 1, 1_000_000, |_, i| {
            set(
                &store,
                (20 + round) << 40 | i,
                &value[..sizes[i as usize & 4095]],
            );
        });
    }
    let stats = store.stats(2);
    println!(
        "  {} items, {} of {} bytes allocated, {:.1} % of the pages free, {:.3} % of the writes in pieces",
        stats.curr_items,
        stats.allocated,
        stats.limit,
        100.0 * stats.free_bytes as f64 / (stats.pages * stats.page_size) as f64,
        100.0 * stats.split_items as f64 / stats.total_items as f64,
    );
}

fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    status
        .split(' ')
        .nth(1)
        .and_then(|n| n.parse::<u64>().ok())
        .unwrap_or(0)
        * 4096
}

fn memory() {
    println!("value  items     each: accounted - key - value, resident - key - value");
    for (size, items) in [
        (10, 1_000_000),
        (100, 1_000_000),
        (500, 300_000),
        (1000, 200_000),
        (4000, 50_000),
    ] {
        let before = resident();
        let limits = Limits {
            memory: 1 << 30,
            ..Limits::default()
        };
        let store = Store::new(&limits).expect("the limits are fine");
        (0..items).for_each(|i| set(&store, i, &vec![7; size]));
        let stats = store.stats(2);
        assert_eq!(stats.curr_items, items, "all fit");
        let net = items * (20 + size as u64);
        println!(
            "{size:5}  {items:8}  {:6.1}  {:6.1}",
            (stats.allocated - net) as f64 / items as f64,
            (resident() - before) as f64 / items as f64 - (20 + size) as f64,
        );
        drop(store);
    }
    println!("a full store of 64 MiB: how many items it keeps");
    for size in [10, 100, 500, 1000, 4000, 50_000, 600_000] {
        let items = (128 << 20) / (size as u64 + 20);
        let store = Store::new(&Limits::default()).expect("the limits are fine");
        (0..items).for_each(|i| set(&store, i, &vec![7; size]));
        let kept = store.stats(2).curr_items;
        let share = 100.0 * (kept * (20 + size as u64)) as f64 / (64 << 20) as f64;
        println!("{size:6} bytes: {kept:8} items, {share:.1} % of the memory is keys and values");
    }
}

fn main() {
    let mut args = std::env::args().skip(1);
    match args.next().as_deref() {
        Some("speed") => speed(),
        Some("memory") => memory(),
        _ => eprintln!("usage: store_cost speed | memory"),
    }
}
