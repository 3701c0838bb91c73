//! Fork-join: results, panics, nesting, borrowing, from anywhere.

mod common;

use common::{ends, fib, rounds, runtime};
use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Mutex,
        atomic::{
            AtomicBool, AtomicUsize,
            Ordering::{Relaxed, SeqCst},
        },
    },
};
use urgency::{join, scope};

#[test]
fn a_plain_thread_can_join() {
    assert_eq!(fib(20), 6765);
}

#[test]
fn every_number_of_workers_computes_the_same() {
    for workers in [1, 2, 3, 4, 9] {
        let runtime = runtime(workers);
        assert_eq!(runtime.run(|| fib(24)), 46368, "{workers} workers");
    }
}

#[test]
fn many_plain_threads_join_at_once() {
    std::thread::scope(|s| {
        for _ in 0..8 {
            s.spawn(|| assert_eq!(fib(18), 2584));
        }
    });
}

#[test]
fn a_panic_of_either_side_reaches_the_caller_after_both_ended() {
    let runtime = runtime(2);
    for left in [false, true] {
        let ended = AtomicUsize::new(0);
        let result = catch_unwind(AssertUnwindSafe(|| {
            runtime.run(|| {
                let side = |panics: bool| {
                    fib(12);
                    ended.fetch_add(1, Relaxed);
                    assert!(!panics, "on purpose");
                };
                join(|| side(left), || side(!left));
            })
        }));
        assert!(result.is_err());
        assert!((1..=2).contains(&ended.load(Relaxed)));
        assert_eq!(runtime.run(|| fib(10)), 55, "the runtime goes on");
    }
}

#[test]
fn a_panic_of_the_left_side_waits_for_the_right_one_that_was_stolen() {
    ends(|| {
        let runtime = runtime(2);
        let [began, panics, ended] = [(); 3].map(|()| AtomicBool::new(false));
        let joined = runtime.run(|| {
            let left = || {
                while !began.load(SeqCst) {
                    std::thread::yield_now();
                }
                panics.store(true, SeqCst);
                panic!("on purpose")
            };
            let right = || {
                began.store(true, SeqCst);
                while !panics.load(SeqCst) {
                    std::thread::yield_now();
                }
                for _ in 0..rounds(100) {
                    std::thread::yield_now();
                }
                ended.store(true, SeqCst);
            };
            let joined = catch_unwind(AssertUnwindSafe(|| join(left, right)));
            (joined.is_err(), ended.load(SeqCst))
        });
        assert_eq!(joined, (true, true));
    });
}

#[test]
fn a_scope_waits_for_all_its_children_and_theirs() {
    let runtime = runtime(3);
    let count = AtomicUsize::new(0);
    runtime.run(|| {
        scope(|s| {
            for _ in 0..rounds(100) {
                s.spawn(|| {
                    fib(8);
                    for _ in 0..10 {
                        s.spawn(|| {
                            fib(5);
                            count.fetch_add(1, Relaxed);
                        });
                    }
                });
            }
        });
    });
    assert_eq!(count.load(Relaxed), 10 * rounds(100));
}

#[test]
fn sync_waits_for_the_children_spawned_so_far() {
    let runtime = runtime(2);
    let count = AtomicUsize::new(0);
    runtime.run(|| {
        scope(|s| {
            for round in 1..=rounds(20) {
                for _ in 0..50 {
                    s.spawn(|| {
                        fib(6);
                        count.fetch_add(1, Relaxed);
                    });
                }
                s.sync();
                assert_eq!(count.load(Relaxed), round * 50);
            }
        });
    });
}

#[test]
fn sync_inside_a_child_does_not_wait_for_itself() {
    let runtime = runtime(2);
    let count = AtomicUsize::new(0);
    runtime.run(|| {
        scope(|s| {
            for _ in 0..rounds(200) {
                s.spawn(|| {
                    s.spawn(|| count.fetch_add(1, Relaxed));
                    s.sync();
                    count.fetch_add(1, Relaxed);
                });
            }
        });
    });
    assert_eq!(count.load(Relaxed), 2 * rounds(200));
}

#[test]
fn a_panic_of_a_child_reaches_the_scope_and_the_others_run() {
    let runtime = runtime(2);
    let count = AtomicUsize::new(0);
    let result = catch_unwind(AssertUnwindSafe(|| {
        runtime.run(|| {
            scope(|s| {
                for i in 0..100 {
                    let count = &count;
                    s.spawn(move || {
                        fib(5);
                        count.fetch_add(1, Relaxed);
                        assert_ne!(i, 50, "on purpose");
                    });
                }
            });
        });
    }));
    assert!(result.is_err());
    assert_eq!(count.load(Relaxed), 100);
}

#[test]
fn spawns_in_a_join_inside_a_scope_belong_to_the_scope() {
    let runtime = runtime(2);
    let count = AtomicUsize::new(0);
    runtime.run(|| {
        scope(|s| {
            for _ in 0..rounds(200) {
                join(
                    || {
                        s.spawn(|| count.fetch_add(1, Relaxed));
                        fib(4)
                    },
                    || {
                        s.spawn(|| count.fetch_add(1, Relaxed));
                        fib(4)
                    },
                );
            }
        });
    });
    assert_eq!(count.load(Relaxed), 2 * rounds(200));
}

/// rayon#592: a join under a lock, beside other work that wants the lock.
#[test]
fn a_lock_held_across_a_join_does_not_deadlock() {
    let runtime = runtime(4);
    let lock = Mutex::new(0);
    runtime.run(|| {
        scope(|s| {
            for _ in 0..rounds(200) {
                s.spawn(|| {
                    let mut held = lock.lock().unwrap();
                    let (a, b) = join(|| fib(8), || fib(8));
                    *held += a + b;
                });
            }
        });
    });
    assert_eq!(lock.into_inner().unwrap(), rounds(200) as u64 * 42);
}

#[test]
fn borrowed_data_is_written_by_both_sides() {
    fn double(numbers: &mut [u32]) {
        if numbers.len() <= 4 {
            numbers.iter_mut().for_each(|n| *n *= 2);
        } else {
            let middle = numbers.len() / 2;
            let (left, right) = numbers.split_at_mut(middle);
            join(|| double(left), || double(right));
        }
    }
    let mut numbers: Vec<u32> = (0..rounds(10_000) as u32).collect();
    double(&mut numbers);
    assert!(numbers.iter().enumerate().all(|(i, n)| *n == 2 * i as u32));
}

#[test]
fn a_sync_of_a_scope_inside_a_join_runs_each_closure_once() {
    for workers in [1, 2] {
        let runtime = runtime(workers);
        let (children, others) = (AtomicUsize::new(0), AtomicUsize::new(0));
        runtime.run(|| {
            for _ in 0..rounds(100) {
                scope(|s| {
                    s.spawn(|| children.fetch_add(1, Relaxed));
                    join(
                        || {
                            s.spawn(|| children.fetch_add(1, Relaxed));
                            s.sync();
                        },
                        || others.fetch_add(1, Relaxed),
                    );
                    s.sync();
                });
            }
        });
        assert_eq!(
            (children.into_inner(), others.into_inner()),
            (2 * rounds(100), rounds(100))
        );
    }
}

#[test]
fn a_sync_of_an_outer_scope_leaves_the_children_of_an_inner_one_to_that() {
    for workers in [1, 2] {
        let done = AtomicUsize::new(0);
        runtime(workers).run(|| {
            scope(|outer| {
                outer.spawn(|| done.fetch_add(1, Relaxed));
                let mut seen = 0;
                scope(|inner| {
                    outer.sync();
                    inner.spawn(|| seen = 7);
                    outer.sync();
                });
                assert_eq!(seen, 7);
            });
        });
        assert_eq!(done.into_inner(), 1);
    }
}

#[test]
fn a_countdown_waited_for_inside_a_join_ends_and_leaves_the_join_its_job() {
    use urgency::embed::{Countdown, Host};
    for workers in [1, 2] {
        let (done, others) = (AtomicUsize::new(0), AtomicUsize::new(0));
        runtime(workers).run(|| {
            let host = Host::current().unwrap();
            for _ in 0..rounds(20) {
                let ended = Countdown::new(1);
                // SAFETY: waited for below.
                unsafe {
                    host.spawn_unchecked(|| {
                        done.fetch_add(1, Relaxed);
                        Countdown::one_ended(&ended);
                    });
                }
                join(|| ended.wait(), || others.fetch_add(1, Relaxed));
            }
        });
        assert_eq!(
            (done.into_inner(), others.into_inner()),
            (rounds(20), rounds(20))
        );
    }
}
