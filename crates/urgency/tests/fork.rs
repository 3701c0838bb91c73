//! The child of a `fork` has none of the runtime's threads: it is told so, and does not hang.
#![cfg(target_os = "linux")]

mod common;

use common::{ends, fib, in_child, is_child, runtime, with_levels};
use futures_io::AsyncWrite as _;
use std::{
    future::poll_fn,
    io::{PipeReader, Read as _, Write as _},
    panic::{AssertUnwindSafe, catch_unwind},
    pin::{Pin, pin},
    sync::mpsc,
    task::{Context, Poll},
    time::Duration,
};
use urgency::{
    Runtime, Shutdown, block_on,
    embed::worker_index,
    io::Async,
    jobs::{CoreSet, JobState},
    join, scope, spawn, spawn_fn, time,
};

/// Runs `f` in a forked process. `true`: it returns `true` there, in good time.
fn forked(f: impl FnOnce() -> bool) -> bool {
    // SAFETY: the child runs `f` and ends without a destructor. It allocates, which glibc permits after `fork`, and
    // takes no other lock that a thread of the parent may hold.
    unsafe {
        match libc::fork() {
            0 => {
                libc::alarm(20);
                let held = catch_unwind(AssertUnwindSafe(f)).unwrap_or(false);
                libc::_exit(i32::from(!held));
            }
            child => {
                let mut status = 0;
                assert_eq!(libc::waitpid(child, &raw mut status, 0), child);
                libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0
            }
        }
    }
}

/// Whether `f` panics because of the fork.
fn is_refused<R>(f: impl FnOnce() -> R) -> bool {
    let Err(panic) = catch_unwind(AssertUnwindSafe(|| drop(f()))) else {
        return false;
    };
    let text = panic.downcast_ref::<&str>().copied().unwrap_or_default();
    text.contains("made by `fork`")
}

#[test]
fn the_child_of_a_fork_is_refused_by_its_parents_runtime_and_may_build_its_own() {
    let me = "the_child_of_a_fork_is_refused_by_its_parents_runtime_and_may_build_its_own";
    if !is_child() {
        return in_child(me);
    }
    ends(|| {
        // Nothing is printed in the child, whose locks may be taken for good.
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(|_| ()));
        let runtime = runtime(2);
        assert_eq!((fib(10), runtime.run(|| fib(10))), (55, 55));
        assert!(forked(|| is_refused(|| join(|| 1, || 2))));
        assert!(forked(|| is_refused(|| scope(|s| s.spawn(|| 1)))));
        assert!(forked(|| is_refused(|| spawn(async { 1 }))));
        assert!(forked(|| is_refused(|| spawn_fn(|| 1))));
        assert!(forked(|| is_refused(|| runtime.run(|| fib(10)))));
        assert!(forked(|| is_refused(|| runtime.spawn(async { 1 }))));
        assert!(forked(|| {
            is_refused(|| block_on(time::sleep(Duration::from_millis(1))))
        }));
        let cores = CoreSet::builder().cores(1).build().unwrap();
        let mut job = Some(cores.spawn(std::future::pending::<()>()).unwrap());
        assert!(forked(|| is_refused(|| cores.drain())));
        assert!(forked(|| is_refused(|| cores.spawn_fn(|| 1))));
        assert!(forked(|| is_refused(|| job.take().unwrap().get())));
        let (reader, mut writer) = std::io::pipe().unwrap();
        let reader = Async::new(reader).unwrap();
        let reads = async |pipe: &Async<PipeReader>| {
            let mut byte = [0];
            pipe.read_with(|mut pipe| pipe.read(&mut byte))
                .await
                .unwrap();
            byte
        };
        // The first read registers it.
        runtime.run(|| assert!(common::poll(pin!(reads(&reader))).is_pending()));
        assert!(forked(|| is_refused(|| block_on(reads(&reader)))));
        writer.write_all(&[7]).unwrap();
        assert_eq!(runtime.block_on(reads(&reader)), [7]);
        // What reads or marks returns, so that a destructor in the child may call it.
        let waits = runtime.spawn(std::future::pending::<()>());
        assert!(forked(|| {
            waits.abort();
            job.as_ref().unwrap().cancel();
            runtime.stats().workers.len() == 2
        }));
        assert!(!waits.is_finished());
        // A task that had ended needs nobody.
        let mut ended = Some(runtime.spawn(async { 7 }));
        while !ended.as_ref().unwrap().is_finished() {
            std::thread::yield_now();
        }
        assert!(forked(|| ended.take().unwrap().get().unwrap() == 7));
        assert_eq!(job.as_ref().unwrap().state(), JobState::Running);
        let last = Runtime::builder().workers(1).build().unwrap();
        let mut last = Some(last);
        assert!(forked(|| {
            let last = last.take().unwrap();
            is_refused(|| last.shutdown(Shutdown::Drain))
        }));
        assert!(forked(|| {
            let own = common::runtime(2);
            own.run(|| fib(15)) == 610 && own.spawn(async { 7 }).get().unwrap() == 7
        }));
        // On a stack of the runtime: a fork needs nobody, a wait for others is refused.
        runtime.run(|| {
            assert!(forked(|| {
                fib(10) == 55 && is_refused(|| block_on(std::future::pending::<()>()))
            }));
        });
        assert_eq!((fib(10), runtime.run(|| fib(10))), (55, 55));
        std::panic::set_hook(usual);
    });
}

urgency::levels! { App: Urgent > Background }

/// No thread of the child gives the worker back.
#[test]
fn a_child_whose_worker_was_revoked_before_the_fork_has_that_workers_number() {
    let me = "a_child_whose_worker_was_revoked_before_the_fork_has_that_workers_number";
    if !is_child() {
        return in_child(me);
    }
    ends(|| {
        let runtime = with_levels::<App>(1);
        let [(begins, urgent_began), (ends, told)] = [(); 2].map(|()| mpsc::channel());
        let (runs, begun) = mpsc::channel();
        let background = runtime.at(Background).spawn_fn(move || {
            runs.send(()).unwrap();
            // Urgent code has the worker.
            urgent_began.recv().unwrap();
            let index = forked(|| (0..2).all(|_| worker_index() == Some(0)));
            ends.send(()).unwrap();
            index
        });
        begun.recv().unwrap();
        let urgent = runtime.at(Urgent).spawn_fn(move || {
            begins.send(()).unwrap();
            told.recv().unwrap();
        });
        urgent.get().unwrap();
        assert!(background.get().unwrap());
    });
}

#[test]
fn the_end_of_main_in_a_copy_waits_for_no_write_of_the_original() {
    let me = "the_end_of_main_in_a_copy_waits_for_no_write_of_the_original";
    if !is_child() {
        return in_child(me);
    }
    #[urgency::main(worker_threads = 1)]
    async fn ends_at_once() {}
    ends(|| {
        let (mut reader, writer) = std::io::pipe().unwrap();
        let file = std::fs::File::from(std::os::fd::OwnedFd::from(writer));
        let mut file = urgency::fs::File::from_std(file);
        // Nobody reads, so a write does not end.
        let begins = async {
            for _ in 0..8 {
                let mut write = |cx: &mut Context<'_>| {
                    Pin::new(&mut file)
                        .poll_write(cx, &[1; 65_536])
                        .is_pending()
                };
                if poll_fn(|cx| Poll::Ready(write(cx))).await {
                    return;
                }
                time::sleep(Duration::from_millis(10)).await;
            }
        };
        block_on(begins);
        assert!(forked(|| {
            ends_at_once();
            true
        }));
        std::thread::spawn(move || std::io::copy(&mut reader, &mut std::io::sink()));
        ends_at_once();
    });
}
