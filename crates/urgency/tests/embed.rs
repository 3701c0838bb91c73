//! What `embed` promises to other fork-join interfaces.

mod common;

use common::ends;
use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        atomic::{AtomicBool, Ordering::SeqCst},
        mpsc::channel,
    },
    thread,
    time::{Duration, Instant},
};
use urgency::{
    Runtime, blocking,
    embed::{Countdown, Host, worker_index},
    scope,
};

#[test]
fn threads_that_were_brought_find_all_work_however_they_meet_it() {
    let runtime = Runtime::builder().workers(2).provided_threads();
    let runtime = runtime.build().unwrap();
    let host = Host::of(&runtime);
    let threads: Vec<_> = (0..2)
        .map(|number| {
            let host = host.clone();
            thread::spawn(move || host.serve(number))
        })
        .collect();
    let begin = Instant::now();
    for round in 0..20_000_u32 {
        // The first blocks until the second has run, on the other thread, which may just go to sleep.
        let (send, receive) = channel();
        let (end, ended) = channel();
        host.spawn(move || {
            let _ = receive.recv();
            let _ = end.send(());
        });
        let (each, all) = channel();
        host.spawn_on_each(|number| {
            let each = each.clone();
            move || {
                let _ = each.send((number, worker_index()));
            }
        });
        (0..round % 64 * 16).for_each(|_| std::hint::spin_loop());
        host.spawn(move || {
            let _ = send.send(());
        });
        let limit = Duration::from_secs(20);
        ended.recv_timeout(limit).expect("a job is left behind");
        for _ in 0..2 {
            let (number, index) = all
                .recv_timeout(limit)
                .expect("a thread's job is left behind");
            assert_eq!(index, Some(number));
        }
        if begin.elapsed() > Duration::from_secs(1) {
            break;
        }
    }
    drop((runtime, host));
    threads
        .into_iter()
        .for_each(|thread| thread.join().unwrap());
}

#[test]
fn a_thread_of_a_runtime_stays_in_no_other_from_inside_of_a_blocking_call() {
    let own = Runtime::builder().workers(1).build().unwrap();
    let other = Runtime::builder().workers(1).provided_threads();
    let other = other.build().unwrap();
    let host = Host::of(&other);
    let stayed = own.run(|| blocking(|| catch_unwind(AssertUnwindSafe(|| host.stay(0)))));
    assert!(stayed.is_err());
    // Its place is free.
    let server = host.clone();
    let thread = thread::spawn(move || server.serve(0));
    assert!(host.run(|was_brought| was_brought));
    drop((other, host));
    thread.join().unwrap();
}

/// The scope at the same address as the one in which the countdown was made is another one, and began later in the
/// deque.
#[test]
fn a_wait_for_an_old_countdown_leaves_the_forks_of_outer_scopes_alone() {
    fn nested(is_first: bool, kept: &mut Option<Countdown>) {
        let ran = AtomicBool::new(false);
        scope(|outer| {
            if !is_first {
                outer.spawn(|| ());
            }
            scope(|inner| {
                let count = kept.get_or_insert_with(|| Countdown::new(0));
                count.wait();
                inner.spawn(|| ran.store(true, SeqCst));
            });
            assert!(ran.load(SeqCst), "the scope has ended before its child");
        });
    }
    let runtime = Runtime::builder().workers(1).build().unwrap();
    runtime.run(|| {
        let mut kept = None;
        for is_first in [true, false] {
            nested(is_first, &mut kept);
        }
    });
}

/// The worker for the work that came was in hand, so the stack whose wait ended saw no idle one.
#[test]
fn a_provided_thread_whose_wait_ends_at_the_moment_when_work_comes_goes_on() {
    ends(|| {
        let runtime = Runtime::builder().workers(1).provided_threads();
        let runtime = runtime.build().unwrap();
        let other = Runtime::builder().workers(1).build().unwrap();
        let (host, waits_for) = (Host::of(&runtime), Host::of(&other));
        let done = AtomicBool::new(false);
        thread::scope(|threads| {
            threads.spawn(|| host.serve(0));
            threads.spawn(|| {
                while !done.load(SeqCst) {
                    host.run(|_| ());
                }
            });
            host.run(|_| (0..30_000).for_each(|_| waits_for.run(|_| ())));
            done.store(true, SeqCst);
            drop(runtime);
        });
    });
}
