//! `Scope::sync` from every place that can reach the stack of its scope's owner: it waits for the children, or it does
//! nothing; it never waits for its own caller.

mod common;

use common::{ends, panics, runtime, still_works};
use std::{
    hint,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
    },
    thread,
};
use urgency::{Runtime, Scope, block_on, blocking, embed::Host, join, scheduling_point, scope};

fn spin_until(flag: &AtomicBool) {
    while !flag.load(SeqCst) {
        hint::spin_loop();
    }
}

/// As [`spin_until`], and answers requests for forks: a thief may come after the fork was made.
fn answer_until(flag: &AtomicBool) {
    while !flag.load(SeqCst) {
        scheduling_point();
    }
}

fn set(flag: &AtomicBool) {
    flag.store(true, SeqCst);
}

/// The owner waits for b of its `join`. The thief runs b, which has spawned a child, whose `join` the owner leaps into.
#[test]
fn a_sync_that_a_leap_brings_to_the_owners_stack_does_not_wait_for_its_own_child() {
    ends(|| {
        let runtime = runtime(2);
        for _ in 0..20 {
            let (stolen, synced) = (AtomicBool::new(false), AtomicBool::new(false));
            let (stolen, synced) = (&stolen, &synced);
            let ended = AtomicUsize::new(0);
            let ended = &ended;
            runtime.run(|| {
                scope(|s| {
                    let child = move || {
                        let sync = || {
                            set(synced);
                            s.sync();
                        };
                        join(|| answer_until(synced), sync);
                        ended.fetch_add(1, SeqCst);
                    };
                    let b = || {
                        set(stolen);
                        join(|| s.spawn(child), || ());
                    };
                    join(|| spin_until(stolen), b);
                });
            });
            assert_eq!(ended.load(SeqCst), 1);
        }
        still_works(&runtime);
    });
}

/// There are two threads and no others, so a thread that must wait runs what is ready on top of its wait.
#[test]
fn a_sync_that_runs_on_top_of_the_owners_wait_does_not_wait_for_its_own_child() {
    fn program<'scope>(s: &'scope Scope<'scope, '_>, stolen: &AtomicBool, synced: &AtomicBool) {
        set(stolen);
        let sync = || {
            set(synced);
            s.sync();
        };
        join(|| answer_until(synced), sync);
    }
    ends(|| {
        let runtime = Runtime::builder().workers(2).provided_threads();
        let runtime = runtime.build().unwrap();
        let host = Host::of(&runtime);
        let threads = [0, 1].map(|number| {
            let host = host.clone();
            thread::spawn(move || host.serve(number))
        });
        let at_end = [true, false].repeat(20);
        for waits_at_end in at_end {
            let closure = runtime.spawn_fn(move || {
                let (stolen, synced) = (AtomicBool::new(false), AtomicBool::new(false));
                scope(|s| {
                    s.spawn(|| program(s, &stolen, &synced));
                    answer_until(&stolen);
                    if !waits_at_end {
                        s.sync();
                        assert!(synced.load(SeqCst));
                    }
                });
            });
            closure.get().unwrap();
        }
        drop((runtime, host));
        threads
            .into_iter()
            .for_each(|thread| thread.join().unwrap());
    });
}

#[test]
fn a_sync_in_a_blocking_call_waits_for_the_children() {
    ends(|| {
        for workers in [1, 2] {
            let runtime = runtime(workers);
            let ended = AtomicUsize::new(0);
            runtime.run(|| {
                scope(|s| {
                    for round in 1..=20 {
                        for _ in 0..10 {
                            s.spawn(|| {
                                join(thread::yield_now, || ());
                                ended.fetch_add(1, SeqCst);
                            });
                        }
                        blocking(|| {
                            thread::yield_now();
                            s.sync();
                            assert_eq!(ended.load(SeqCst), 10 * round);
                            blocking(|| s.sync());
                        });
                    }
                });
            });
            assert_eq!(ended.load(SeqCst), 200);
            still_works(&runtime);
        }
    });
}

#[test]
fn a_sync_in_a_blocking_call_of_a_child_does_not_wait_for_itself() {
    ends(|| {
        for workers in [1, 2] {
            let runtime = runtime(workers);
            let ended = AtomicUsize::new(0);
            let ended = &ended;
            runtime.run(|| {
                scope(|s| {
                    for _ in 0..20 {
                        s.spawn(move || {
                            blocking(|| {
                                // A child that a blocking call spawns runs there at once.
                                s.spawn(|| {
                                    s.sync();
                                    ended.fetch_add(1, SeqCst);
                                });
                                s.sync();
                            });
                            ended.fetch_add(1, SeqCst);
                        });
                    }
                });
            });
            assert_eq!(ended.load(SeqCst), 40);
        }
    });
}

#[test]
fn a_panic_of_a_child_comes_out_of_a_sync_in_a_blocking_call() {
    ends(|| {
        let runtime = runtime(2);
        let text = panics(|| {
            runtime.run(|| {
                scope(|s| {
                    s.spawn(|| panic!("on purpose"));
                    blocking(|| s.sync());
                    unreachable!("the sync panics");
                });
            });
        });
        assert_eq!(text, "on purpose");
        still_works(&runtime);
    });
}

#[test]
fn a_sync_in_a_future_that_the_owner_blocks_on_waits_for_the_children() {
    ends(|| {
        let runtime = runtime(2);
        let ended = Arc::new(AtomicUsize::new(0));
        runtime.run(|| {
            scope(|s| {
                (0..10).for_each(|_| s.spawn(|| ended.fetch_add(1, SeqCst)));
                block_on(async { s.sync() });
                assert_eq!(ended.load(SeqCst), 10);
            });
        });
    });
}
