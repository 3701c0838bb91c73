//! The parallel algorithms: results as by the sequential loop, with or without steals; panics without leaks;
//! promptness.

mod common;

use common::rounds;
use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::atomic::{AtomicBool, AtomicIsize, AtomicUsize, Ordering::SeqCst},
    time::{Duration, Instant},
};
use urgency::{Runtime, par};

fn with_runtimes(test: impl Fn()) {
    let counts: &[usize] = if cfg!(miri) { &[2] } else { &[1, 2, 5] };
    for &workers in counts {
        let runtime = Runtime::builder().workers(workers).build().unwrap();
        runtime.run(&test);
    }
}

/// A little work, so that thieves come in time.
fn work(n: u64) -> u64 {
    (0..20).fold(n, |n, _| {
        n.rotate_left(7).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    })
}

const SIZES: [u64; 7] = [0, 1, 2, 3, 100, rounds(4_097) as u64, MANY];

/// Enough for some steals.
const MANY: u64 = rounds(20_000) as u64;

#[test]
fn map_fold_reduce_and_for_each_give_what_the_loop_gives_in_its_order() {
    with_runtimes(|| {
        for size in SIZES {
            let expected: Vec<u64> = (0..size).map(work).collect();
            assert_eq!(par::map(0..size, work), expected);

            // Composition of affine maps: associative, and not commutative.
            let compose = |a: (u64, u64), b: (u64, u64)| {
                let slope = a.0.wrapping_mul(b.0);
                (slope, a.1.wrapping_mul(b.0).wrapping_add(b.1))
            };
            let affine = |n: u64| (work(n) | 1, n);
            let sequential = (0..size).map(affine).reduce(compose);
            assert_eq!(par::reduce(0..size, affine, compose), sequential);

            let text = par::fold(
                0..size,
                String::new,
                |mut text, n| {
                    text += if work(n).is_multiple_of(2) { "a" } else { "b" };
                    text
                },
                |a, b| a + &b,
            );
            let letter = |n| if work(n).is_multiple_of(2) { 'a' } else { 'b' };
            assert_eq!(text, (0..size).map(letter).collect::<String>());

            let mut seen = vec![0; size as usize];
            par::for_each(&mut seen[..], |seen: &mut u64| *seen = work(*seen) | 1);
            assert!(seen.iter().all(|&seen| seen == work(0) | 1));
        }
    });
}

#[test]
fn chunks_are_as_the_slice_has_them() {
    with_runtimes(|| {
        let numbers: Vec<u64> = (0..rounds(10_007) as u64).collect();
        for size in [1, 100, numbers.len() - 1, numbers.len(), usize::MAX] {
            let sums = par::map(par::chunks(&numbers, size), |c| c.iter().sum::<u64>());
            let expected: Vec<u64> = numbers.chunks(size).map(|c| c.iter().sum()).collect();
            assert_eq!(sums, expected);
            let mut copy = numbers.clone();
            par::for_each(par::chunks_mut(&mut copy, size), |c| c.reverse());
            let mut expected = numbers.clone();
            expected.chunks_mut(size).for_each(<[u64]>::reverse);
            assert_eq!(copy, expected);
        }
    });
}

#[test]
fn chunks_without_elements_are_a_panic_that_names_the_argument_and_says_what_to_do() {
    for (name, call) in [
        ("par::chunks`", (|| _ = par::chunks(&[1, 2], 0)) as fn()),
        ("par::chunks_mut`", || _ = par::chunks_mut(&mut [1, 2], 0)),
    ] {
        let panic = std::panic::catch_unwind(call).unwrap_err();
        let text = panic.downcast::<String>().unwrap();
        assert!(
            text.contains(name) && text.contains("`size` of 0"),
            "{text}"
        );
        assert!(text.contains("size.max(1)"), "{text}");
    }
}

#[test]
fn pairs_end_where_the_shorter_side_does_and_numbers_begin_at_zero() {
    with_runtimes(|| {
        let numbers: Vec<u64> = (0..rounds(10_007) as u64).collect();
        for shorter in [0, 1, numbers.len() / 2, numbers.len()] {
            let expected: Vec<_> = (7..).zip(&numbers[..shorter]).collect();
            let pairs = par::zip(7..numbers.len() + 7, &numbers[..shorter]);
            assert_eq!(par::map(pairs, |pair| pair), expected);
            let mut next = vec![0; shorter];
            let steps = par::zip(&mut next[..], par::enumerate(&numbers[..]));
            par::for_each(steps, |(next, (n, &number))| *next = n as u64 + number);
            assert!(
                next.iter().eq(numbers[..shorter]
                    .iter()
                    .map(|n| 2 * n)
                    .collect::<Vec<_>>()
                    .iter())
            );
        }
    });
}

#[test]
fn ranges_of_all_integers_go_to_their_ends() {
    assert_eq!(par::map(i8::MIN..i8::MAX, |n| n).len(), 255);
    assert_eq!(par::reduce(-5i64..6, |n| n, |a, b| a + b), Some(0));
    assert_eq!(
        par::reduce(u64::MAX - 3..u64::MAX, |n| n, u64::max),
        Some(u64::MAX - 1)
    );
    #[allow(
        clippy::reversed_empty_ranges,
        reason = "an empty range is what is tested"
    )]
    let empty = 5u32..3;
    assert_eq!(par::map(empty, |n| n), []);
}

#[test]
fn scan_is_the_running_combination() {
    with_runtimes(|| {
        for size in SIZES {
            let mut numbers: Vec<u64> = (0..size).map(work).collect();
            let mut sum = 0u64;
            let expected: Vec<u64> = numbers
                .iter()
                .map(|&n| {
                    sum = sum.wrapping_add(n);
                    sum
                })
                .collect();
            par::scan(&mut numbers, |a, b| {
                std::hint::black_box(work(*a));
                a.wrapping_add(*b)
            });
            assert_eq!(numbers, expected);
            let texts = (0..size.min(300)).map(|n| n.to_string());
            let mut prefixes: Vec<String> = texts.clone().collect();
            par::scan(&mut prefixes, |a, b| format!("{a}{b}"));
            let last = prefixes.last().cloned().unwrap_or_default();
            assert_eq!(last, texts.collect::<String>(), "in order");
        }
    });
}

#[test]
fn sorting_is_stable() {
    with_runtimes(|| {
        for size in [0u64, 1, 2, 4_096, 4_097, 40_003].map(|size| rounds(size as usize) as u64) {
            for keys in [2, 100, u64::MAX] {
                let mut pairs: Vec<(u64, u64)> = (0..size).map(|n| (work(n) % keys, n)).collect();
                let mut expected = pairs.clone();
                expected.sort_by_key(|&(key, _)| key);
                let mut by = pairs.clone();
                par::sort_by_key(&mut pairs, |&(key, _)| key);
                assert_eq!(pairs, expected);
                par::sort_by(&mut by, |a, b| a.0.cmp(&b.0));
                assert_eq!(by, expected);
            }
            let mut words: Vec<String> = (0..size / 4).map(|n| work(n).to_string()).collect();
            let mut expected = words.clone();
            expected.sort();
            par::sort(&mut words);
            assert_eq!(words, expected);
        }
    });
}

/// Counts the living.
#[derive(Debug)]
struct Counted<'a>(&'a AtomicIsize, u64);

impl<'a> Counted<'a> {
    fn new(alive: &'a AtomicIsize, n: u64) -> Self {
        alive.fetch_add(1, SeqCst);
        Counted(alive, n)
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, SeqCst);
    }
}

#[test]
fn a_panic_leaks_nothing_and_drops_nothing_twice() {
    with_runtimes(|| {
        for bad in [0, 1, MANY / 3, MANY - 1] {
            let alive = AtomicIsize::new(0);
            let mapped = catch_unwind(AssertUnwindSafe(|| {
                par::map(0..MANY, |n| {
                    assert_ne!(n, bad, "the bad one");
                    Counted::new(&alive, work(n))
                })
            }));
            assert!(mapped.is_err());
            assert_eq!(alive.load(SeqCst), 0, "map");

            let folded = catch_unwind(AssertUnwindSafe(|| {
                par::reduce(
                    0..MANY,
                    |n| {
                        assert_ne!(n, bad, "the bad one");
                        Counted::new(&alive, work(n))
                    },
                    |a, b| if a.1 < b.1 { a } else { b },
                )
            }));
            assert!(folded.is_err());
            assert_eq!(alive.load(SeqCst), 0, "reduce");
        }
    });
}

#[test]
fn a_scan_in_which_a_drop_panics_leaks_nothing() {
    /// Its drop panics if that is the n-th.
    #[derive(Debug)]
    struct Falls<'a>(Counted<'a>, &'a AtomicUsize);
    impl Clone for Falls<'_> {
        fn clone(&self) -> Self {
            Falls(Counted::new(self.0.0, 0), self.1)
        }
    }
    impl Drop for Falls<'_> {
        fn drop(&mut self) {
            if self.1.fetch_sub(1, SeqCst) == 1 {
                panic!("on purpose");
            }
        }
    }
    // One worker forks before the first item, so there are two runs.
    let runtime = Runtime::builder().workers(1).build().unwrap();
    for at in 1..=10 {
        let (alive, left) = (AtomicIsize::new(0), AtomicUsize::new(at));
        let scanned = catch_unwind(AssertUnwindSafe(|| {
            let mut items = [(); 2].map(|()| Falls(Counted::new(&alive, 0), &left));
            runtime.run(|| par::scan(&mut items, |a, _| a.clone()));
        }));
        assert_eq!(alive.load(SeqCst), 0, "drop {at}: {scanned:?}");
    }
}

#[test]
fn a_comparison_that_panics_leaves_each_element_in_the_slice_once() {
    with_runtimes(|| {
        for after in [0, rounds(1_000), rounds(200_000)] {
            let alive = AtomicIsize::new(0);
            let mut items: Vec<_> = (0..rounds(30_000) as u64)
                .map(|n| Counted::new(&alive, work(n)))
                .collect();
            let mut before: Vec<u64> = items.iter().map(|item| item.1).collect();
            let compared = AtomicUsize::new(0);
            let sorted = catch_unwind(AssertUnwindSafe(|| {
                par::sort_by(&mut items, |a, b| {
                    assert_ne!(compared.fetch_add(1, SeqCst), after, "the bad one");
                    a.1.cmp(&b.1)
                });
            }));
            assert!(sorted.is_err(), "{after}");
            let mut left: Vec<u64> = items.iter().map(|item| item.1).collect();
            left.sort();
            before.sort();
            assert_eq!(left, before);
            drop(items);
            assert_eq!(alive.load(SeqCst), 0);
        }
    });
}

#[test]
fn a_comparison_without_an_order_is_survived() {
    with_runtimes(|| {
        let calls = AtomicUsize::new(0);
        let mut numbers: Vec<u64> = (0..MANY).collect();
        let _ = catch_unwind(AssertUnwindSafe(|| {
            par::sort_by(&mut numbers, |a, b| {
                work(a ^ b ^ calls.fetch_add(1, SeqCst) as u64).cmp(&work(*a))
            });
        }));
        numbers.sort();
        assert!(numbers.into_iter().eq(0..MANY));
    });
}

#[test]
fn a_free_worker_gets_the_later_half_of_a_loop_that_runs_already() {
    let runtime = Runtime::builder().workers(2).build().unwrap();
    runtime.run(|| {
        let begun = AtomicUsize::new(0);
        // Ends only when two items run at the same time.
        par::for_each(0..2u32, |_| {
            begun.fetch_add(1, SeqCst);
            let until = Instant::now() + Duration::from_secs(20);
            while begun.load(SeqCst) < 2 {
                assert!(Instant::now() < until, "nobody took the other half");
                std::thread::yield_now();
            }
        });
    });
}

/// Waits, on a thread of the runtime, until `flag` is set.
fn wait_for(flag: &AtomicBool) {
    let until = Instant::now() + Duration::from_secs(20);
    while !flag.load(SeqCst) {
        assert!(
            Instant::now() < until,
            "nobody came for the rest of the loop"
        );
        urgency::scheduling_point();
        std::thread::yield_now();
    }
}

/// Each item in turn ends only when a later one has begun. The other worker is busy until that item has begun.
#[test]
fn a_worker_that_becomes_free_during_an_item_gets_items_after_it() {
    const ITEMS: u32 = 8;
    let runtime = Runtime::builder().workers(2).build().unwrap();
    for at in 0..ITEMS - 1 {
        let [is_busy, has_begun, has_later] = &[const { AtomicBool::new(false) }; 3];
        let item = |item| {
            let end = Instant::now() + Duration::from_micros(200);
            while Instant::now() < end {}
            if item == at {
                has_begun.store(true, SeqCst);
                let until = Instant::now() + Duration::from_secs(20);
                while !has_later.load(SeqCst) {
                    assert!(Instant::now() < until, "nothing beside item {at}");
                    std::thread::yield_now();
                }
            } else if has_begun.load(SeqCst) {
                has_later.store(true, SeqCst);
            }
        };
        runtime.run(|| {
            urgency::scope(|scope| {
                scope.spawn(move || {
                    is_busy.store(true, SeqCst);
                    wait_for(has_begun);
                });
                wait_for(is_busy);
                par::for_each(0..ITEMS, item);
            });
        });
    }
}

#[test]
fn a_loop_of_short_items_that_nobody_wants_a_part_of_hardly_forks() {
    const ITEMS: u64 = rounds(1_000_000) as u64;
    let runtime = Runtime::builder().workers(1).build().unwrap();
    let parts = AtomicUsize::new(0);
    let sum = runtime.run(|| {
        let start = || {
            parts.fetch_add(1, SeqCst);
            0
        };
        par::fold(0..ITEMS, start, |a, n| a + n, |a, b| a + b)
    });
    assert_eq!(sum, ITEMS * (ITEMS - 1) / 2);
    // Before its first item, and again only if the machine was so busy that a short item seemed long.
    let parts = parts.load(SeqCst);
    assert!((1..=20).contains(&parts), "{parts} parts");
}

#[test]
fn urgent_work_goes_first_beside_a_loop() {
    urgency::levels! { App: Interactive > Batch }
    let runtime = Runtime::builder()
        .workers(1)
        .levels::<App>()
        .build()
        .unwrap();
    let stop = &*Box::leak(Box::new(AtomicBool::new(false)));
    let rounds = &*Box::leak(Box::new(AtomicUsize::new(0)));
    let batch = runtime.at(Batch).spawn_fn(|| {
        while !stop.load(SeqCst) {
            par::reduce(0..10_000u64, work, u64::wrapping_add);
            rounds.fetch_add(1, SeqCst);
        }
    });
    for n in 0..100 {
        // A thread that has lost its worker may not have run since, if the machine has much else to do. It loses its
        // worker at once then, which counts as relief.
        let before = rounds.load(SeqCst);
        while rounds.load(SeqCst) < before + 2 {
            std::thread::yield_now();
        }
        let urgent = runtime.at(Interactive).spawn(async move { n });
        assert_eq!(urgent.get().unwrap(), n);
    }
    stop.store(true, SeqCst);
    batch.get().unwrap();
    let stats = runtime.stats();
    // The loop gave way by itself. On a busy machine relief often comes first: 67 times beside three processes.
    let batch = stats.levels[1].total;
    assert!(batch.abandonments >= 10, "{batch:?}");
}

#[test]
fn loops_nest_and_run_on_plain_threads() {
    const ROWS: u64 = rounds(64) as u64;
    const COLUMNS: u64 = rounds(1_000) as u64;
    let sums = par::map(0..ROWS, |row| {
        par::reduce(0..COLUMNS, |n| work(n) & row, u64::wrapping_add).unwrap()
    });
    let expected = (0..ROWS).map(|row| {
        (0..COLUMNS)
            .map(|n| work(n) & row)
            .fold(0, u64::wrapping_add)
    });
    assert!(sums.into_iter().eq(expected));
}
