//! What the runtime does without where the system refuses something, by the table at the end of `docs/limits.md`: work
//! is late, and none is lost. Each test is in a process of its own.

mod common;

use common::{
    all, ends, fib, in_child, is_child, no_more_descriptors, run_time, runtime, still_works, until,
    with_levels,
};
use std::{
    hint,
    sync::{
        Arc,
        atomic::{
            AtomicBool, AtomicUsize,
            Ordering::{Relaxed, SeqCst},
        },
        mpsc,
    },
    time::Duration,
};
use urgency::{JoinHandle, LevelId, Runtime, join, par, scheduling_point, spawn, time};

urgency::levels! { App: Urgent > Usual > Batch }

/// For how long relief lets a loop keep its worker from its equals: `LONG` in `sched/rescue/relief.rs`.
const LONG: Duration = Duration::from_millis(100);

/// Runs `test` in a process of its own.
#[track_caller]
fn alone(name: &str, test: fn()) {
    match is_child() {
        true => ends(test),
        false => in_child(name),
    }
}

/// A closure that loops without a scheduling point until it is told to stop. It has begun, and tells when it has run
/// for long.
fn endless(
    runtime: &Runtime,
    level: impl Into<LevelId>,
    stop: &Arc<AtomicBool>,
) -> (JoinHandle<()>, Arc<AtomicBool>) {
    let (stop, (tell, told)) = (stop.clone(), mpsc::channel());
    let long = Arc::new(AtomicBool::new(false));
    let tells = long.clone();
    let handle = runtime.at(level).spawn_fn(move || {
        let since = run_time();
        tell.send(()).unwrap();
        while !stop.load(Relaxed) {
            (0..1000).for_each(|_| hint::spin_loop());
            if run_time() - since > 3 * LONG {
                tells.store(true, SeqCst);
            }
        }
    });
    told.recv().unwrap();
    (handle, long)
}

/// The calling thread, and all that it makes, are refused the system call.
#[cfg(target_os = "linux")]
fn refuse_membarrier() {
    let statement = |code: u32, if_so: u8, if_not: u8, k: u32| libc::sock_filter {
        code: code as u16,
        jt: if_so,
        jf: if_not,
        k,
    };
    let refused = libc::SECCOMP_RET_ERRNO | libc::EPERM as u32;
    let filter = [
        // The number of the call is the first field of what a filter sees.
        statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, 0),
        statement(
            libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K,
            0,
            1,
            libc::SYS_membarrier as u32,
        ),
        statement(libc::BPF_RET | libc::BPF_K, 0, 0, refused),
        statement(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let program = libc::sock_fprog {
        len: filter.len() as u16,
        filter: filter.as_ptr().cast_mut(),
    };
    // SAFETY: the kernel copies `program` and `filter`, which outlive the calls.
    unsafe {
        assert_eq!(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
        let set = libc::prctl(
            libc::PR_SET_SECCOMP,
            libc::SECCOMP_MODE_FILTER,
            &raw const program,
        );
        assert_eq!(set, 0, "{}", std::io::Error::last_os_error());
        assert_eq!(libc::syscall(libc::SYS_membarrier, 0, 0, 0), -1);
    }
}

/// A private fork of a long leaf is not stolen before the next scheduling point of its stack.
#[test]
#[cfg(target_os = "linux")]
#[cfg_attr(urgency_chaos, ignore = "chaos publishes without need")]
fn without_membarrier_a_thief_waits_for_the_owners_next_scheduling_point() {
    alone(
        "without_membarrier_a_thief_waits_for_the_owners_next_scheduling_point",
        || {
            refuse_membarrier();
            let runtime = runtime(2);
            // Whether the fork began in the middle of the leaf that was forked with it.
            let is_stolen = || {
                let (busy, begun) = (Arc::new(AtomicBool::new(true)), AtomicBool::new(false));
                let theirs = busy.clone();
                // The other worker is busy when the fork is made, and asks no stack for forks.
                let (tell, told) = mpsc::channel();
                let other = runtime.spawn_fn(move || {
                    tell.send(()).unwrap();
                    while theirs.load(SeqCst) {
                        hint::spin_loop();
                    }
                });
                told.recv().unwrap();
                let leaf = || {
                    busy.store(false, SeqCst);
                    let since = run_time();
                    while run_time() - since < Duration::from_millis(30) {
                        hint::spin_loop();
                    }
                    let early = begun.load(SeqCst);
                    while !begun.load(SeqCst) {
                        scheduling_point();
                    }
                    early
                };
                let early = runtime.run(|| join(leaf, || begun.store(true, SeqCst)).0);
                other.get().unwrap();
                early
            };
            // A fork is public from the beginning if a worker still counts as one that would come for it. A thief
            // that did not wait would steal each time.
            assert!((0..20).any(|_| !is_stolen()), "stolen from 20 leaves");
        },
    );
}

#[test]
#[cfg(target_os = "linux")]
fn without_membarrier_all_kinds_of_work_end() {
    alone("without_membarrier_all_kinds_of_work_end", || {
        refuse_membarrier();
        for workers in [1, 2, 8] {
            let runtime = with_levels::<App>(workers);
            still_works(&runtime);
            assert_eq!(runtime.run(|| fib(20)), 6765);
            let sum = runtime.run(|| par::reduce(0..1000u64, |n| fib(n % 10), u64::wrapping_add));
            assert_eq!(
                sum,
                (0..1000).map(|n| fib(n % 10)).reduce(u64::wrapping_add)
            );
            let stop = Arc::new(AtomicBool::new(false));
            let loops: Vec<_> = (0..workers)
                .map(|_| endless(&runtime, Batch, &stop).0)
                .collect();
            for level in [Urgent.into(), Usual.into(), Batch.into()] {
                let level: LevelId = level;
                for n in 0..10 {
                    let waits = runtime.at(level).spawn(async move {
                        time::sleep(Duration::from_millis(1)).await;
                        spawn(async move { n }).await.unwrap()
                    });
                    assert_eq!(waits.get().unwrap(), n);
                }
            }
            stop.store(true, SeqCst);
            all(loops);
            // A poll does not end before what it has made ready has run on another worker.
            if workers > 1 {
                let done = Arc::new(AtomicBool::new(false));
                let polls = runtime.spawn(async move {
                    let theirs = done.clone();
                    spawn(async move { theirs.store(true, SeqCst) }).detach();
                    while !done.load(SeqCst) {
                        hint::spin_loop();
                    }
                });
                polls.get().unwrap();
            }
        }
    });
}

#[test]
#[cfg(target_os = "linux")]
fn without_descriptors_urgent_work_waits_for_a_loop_until_that_ends_or_there_are_some_again() {
    alone(
        "without_descriptors_urgent_work_waits_for_a_loop_until_that_ends_or_there_are_some_again",
        || {
            let mut files = Some(no_more_descriptors());
            let runtime = with_levels::<App>(1);
            let ran = Arc::new(AtomicUsize::new(0));
            let urgent = || {
                let ran = ran.clone();
                runtime
                    .at(Urgent)
                    .spawn_fn(move || ran.fetch_add(1, SeqCst))
            };
            for ends in [true, false] {
                let stop = Arc::new(AtomicBool::new(false));
                let (handle, long) = endless(&runtime, Batch, &stop);
                let waits = urgent();
                until(|| long.load(SeqCst));
                assert!(!waits.is_finished());
                if ends {
                    stop.store(true, SeqCst);
                } else {
                    files = None;
                    // The next work sees that there are some.
                    urgent().get().unwrap();
                }
                waits.get().unwrap();
                assert!(ends || !handle.is_finished());
                stop.store(true, SeqCst);
                handle.get().unwrap();
            }
            drop(files);
            assert_eq!(ran.load(SeqCst), 3);
        },
    );
}

/// Whether a thread sleeps is not to be had from `/proc`.
#[test]
#[cfg(target_os = "linux")]
fn where_no_descriptor_is_left_for_a_look_loops_and_calls_that_sleep_keep_nobody_for_ever() {
    alone(
        "where_no_descriptor_is_left_for_a_look_loops_and_calls_that_sleep_keep_nobody_for_ever",
        || {
            for workers in [1, 2] {
                let runtime = with_levels::<App>(workers);
                // It has its descriptors before they become scarce.
                still_works(&runtime);
                let files = no_more_descriptors();
                let stop = Arc::new(AtomicBool::new(false));
                let loops: Vec<_> = (0..workers)
                    .map(|_| endless(&runtime, Batch, &stop).0)
                    .collect();
                for n in 0..10 {
                    for level in [Urgent.into(), Batch.into()] {
                        let level: LevelId = level;
                        assert_eq!(runtime.at(level).spawn(async move { n }).get().unwrap(), n);
                        assert_eq!(runtime.at(level).spawn_fn(move || n).get().unwrap(), n);
                    }
                }
                assert!(!loops.iter().any(JoinHandle::is_finished));
                let (tell, told): (Vec<_>, Vec<_>) =
                    (0..2 * workers).map(|_| mpsc::channel()).unzip();
                let sleep = |told: mpsc::Receiver<usize>| {
                    runtime.at(Urgent).spawn_fn(move || told.recv().unwrap())
                };
                let sleeping: Vec<_> = told.into_iter().map(sleep).collect();
                let sender = runtime.at(Batch).spawn_fn(move || {
                    tell.into_iter()
                        .enumerate()
                        .for_each(|(n, tell)| tell.send(n).unwrap());
                });
                assert_eq!(all(sleeping), (0..2 * workers).collect::<Vec<_>>());
                sender.get().unwrap();
                stop.store(true, SeqCst);
                all(loops);
                drop(files);
            }
        },
    );
}
