//! What `embed` promises to other fork-join interfaces.

mod common;

use common::{ends, until};
use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::SeqCst},
        mpsc::channel,
    },
    thread,
    time::{Duration, Instant},
};
use urgency::{
    LevelId, Runtime, block_on, blocking,
    embed::{Countdown, Host, worker_index},
    join, levels, scheduling_point, scope,
    sync::Notify,
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
    // Chaos makes the moment longer, and has threads end and begin anew all the time.
    let visits = if cfg!(urgency_chaos) { 3_000 } else { 30_000 };
    ends(move || {
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
            host.run(|_| (0..visits).for_each(|_| waits_for.run(|_| ())));
            done.store(true, SeqCst);
            drop(runtime);
        });
    });
}

levels! { App: Urgent > Usual }

/// A provided thread has an urgent closure on top of the code that made the fork.
#[test]
fn a_fork_of_code_that_has_other_code_on_top_waits_as_the_code_that_made_it() {
    /// Whether the closure was on top.
    fn is_on_top() -> bool {
        let runtime = Runtime::builder().workers(2).levels::<App>();
        let runtime = runtime.provided_threads().build().unwrap();
        let host = Host::of(&runtime);
        let threads = [0, 1].map(|number| {
            let host = host.clone();
            thread::spawn(move || host.serve(number))
        });
        let [begun, waits] = [(); 2].map(|()| Arc::new(AtomicBool::new(false)));
        let (occupied, comes) = (begun.clone(), waits.clone());
        let until = |flag: &AtomicBool| {
            while !flag.load(SeqCst) {
                scheduling_point();
            }
        };
        let [over, told] = [(); 2].map(|()| Arc::new(Notify::new()));
        let (tells, tell) = (told.clone(), over.clone());
        // Handles without a level: what may wait for what is found out when it waits.
        let (urgent, usual) = (LevelId::new(0).unwrap(), LevelId::new(1).unwrap());
        let awaited = runtime
            .at(usual)
            .spawn(async move { told.notified().await });
        let here = runtime.clone();
        let outcome = runtime.at(usual).spawn_fn(move || {
            let occupies = here.at(urgent).spawn_fn(move || until(&occupied));
            let own = thread::current().id();
            let top = here.at(urgent).spawn_fn(move || {
                begun.store(true, SeqCst);
                // The fork is stolen meanwhile, and begins to wait.
                until(&comes);
                thread::sleep(Duration::from_millis(2));
                tells.notify_one();
                tell.notify_one();
                thread::current().id() == own
            });
            let ((), (was_stolen, result)) = join(
                || block_on(over.notified()),
                || {
                    waits.store(true, SeqCst);
                    (thread::current().id() != own, awaited.get())
                },
            );
            result.expect("no inversion");
            occupies.get().unwrap();
            top.get().unwrap() && was_stolen
        });
        let was_on_top = outcome.get().unwrap();
        drop((runtime, host));
        threads
            .into_iter()
            .for_each(|thread| thread.join().unwrap());
        was_on_top
    }
    ends(|| until(is_on_top));
}
