//! What a child inherits of the thread that spawns it. The rest is in `tests/process.rs` and `tests/orphans.rs`.

use super::{Command, orphans};
use crate::{
    Runtime,
    sched::{
        doors::shutdown::CANCEL_GRACE,
        stack::{Me, Stack},
    },
    sys::thread::slice,
};
use std::{
    hint,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::SeqCst},
        mpsc,
    },
    thread,
    time::{Duration, Instant},
};

/// How the kernel's scheduler treats a thread, or a process with one.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Treated {
    class: u32,
    nice: i32,
    /// In nanoseconds.
    slice: u64,
}

fn treated(process: i32) -> Treated {
    // The kernel's `sched_attr`, first version, in words.
    let mut words = [0_u64; 6];
    let size = size_of_val(&words);
    // SAFETY: the kernel writes at most `size` bytes, which is the size of `words`.
    let got = unsafe {
        libc::syscall(
            libc::SYS_sched_getattr,
            process,
            words.as_mut_ptr(),
            size,
            0,
        )
    };
    assert_eq!(got, 0, "{}", std::io::Error::last_os_error());
    let halves = |word: u64| {
        let bytes = word.to_ne_bytes();
        let half = |at: usize| u32::from_ne_bytes(bytes[at..at + 4].try_into().unwrap());
        (half(0), half(4))
    };
    Treated {
        class: halves(words[0]).1,
        nice: halves(words[2]).0 as i32,
        slice: words[3],
    }
}

/// How a child is treated that the calling code spawns.
fn treated_child() -> Treated {
    let mut child = Command::new("sleep").arg("600").spawn().unwrap();
    let treated = treated(child.id().unwrap() as i32);
    crate::block_on(child.kill()).unwrap();
    treated
}

/// Runs `f` on a stack of a runtime.
fn on_stack<R: Send>(runtime: &Runtime, f: impl FnOnce(Me<'_>) -> R + Send) -> R {
    runtime.run(|| Stack::with_current(|me| f(me.unwrap())))
}

#[test]
fn a_child_of_a_thread_with_short_or_long_slices_has_usual_ones_and_the_thread_keeps_its_own() {
    let usual = treated(0);
    let runtime = Runtime::builder().workers(1).build().unwrap();
    on_stack(&runtime, |me| {
        me.set_urgent(true);
        let short = slice();
        assert_eq!(treated_child(), usual);
        // A call that blocks is long: from then on the slices are long ones.
        let long = slice();
        assert_eq!(treated_child(), usual);
        assert_eq!(slice(), long);
        if short != Some(usual.slice) {
            assert!(short < long, "{short:?}, {long:?}");
        }
        me.set_urgent(true);
        assert_eq!(slice(), short);
        me.set_urgent(false);
    });
}

#[test]
fn a_child_of_a_thread_in_the_real_time_class_is_in_the_usual_one() {
    let usual = treated(0);
    let runtime = Runtime::builder().workers(1).real_time_polling(true);
    let runtime = runtime.build().unwrap();
    if !runtime.stats().real_time {
        return;
    }
    on_stack(&runtime, |me| {
        me.set_urgent(true);
        assert_eq!(treated(0).class, libc::SCHED_RR as u32);
        assert_eq!(treated_child().class, usual.class);
        me.set_urgent(false);
    });
}

#[test]
#[cfg_attr(urgency_chaos, ignore = "chaos relieves without need")]
fn a_child_of_a_lowered_thread_is_in_the_usual_class_where_the_process_may_raise_it() {
    crate::levels! { Two: Upper > Lower }
    let usual = treated(0);
    let runtime = Runtime::builder().workers(1).levels::<Two>();
    let runtime = runtime.build().unwrap();
    if !runtime.stats().can_raise {
        return;
    }
    // In some rounds the thread has come back to its class by itself when it spawns.
    for _ in 0..10 {
        let was_lowered = Arc::new(AtomicBool::new(false));
        let (lowered, (tell, told)) = (was_lowered.clone(), mpsc::channel());
        let lower = runtime.at(Lower).spawn_fn(move || {
            tell.send(()).unwrap();
            while treated(0).class != libc::SCHED_IDLE as u32 {
                hint::spin_loop();
            }
            lowered.store(true, SeqCst);
            treated_child()
        });
        told.recv().unwrap();
        let upper = runtime.at(Upper).spawn_fn(move || {
            while !was_lowered.load(SeqCst) {
                hint::spin_loop();
            }
        });
        upper.get().unwrap();
        assert_eq!(lower.get().unwrap(), usual);
    }
}

#[test]
fn a_child_that_has_ended_before_it_is_dropped_is_reaped_by_the_drop() {
    let runtime = Runtime::builder().workers(1).build().unwrap();
    runtime.run(|| {
        for _ in 0..20 {
            let child = Command::new("true").spawn().unwrap();
            let pid = rustix::process::Pid::from_raw(child.id().unwrap() as i32).unwrap();
            use rustix::process::{WaitId, WaitIdOptions, waitid};
            let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
            waitid(WaitId::Pid(pid), options).unwrap();
            drop(child);
            let gone = waitid(WaitId::Pid(pid), options).unwrap_err();
            assert_eq!(gone, rustix::io::Errno::CHILD);
        }
        assert_eq!(orphans::left(), 0);
    });
}

#[test]
fn the_driver_forgets_an_orphan_that_was_reaped() {
    let runtime = Runtime::builder().workers(1).build().unwrap();
    let driver = runtime.job().core.driver().unwrap().clone();
    let watches = || runtime.block_on(async { driver.has_interest() });
    assert!(!watches());
    let mut child = Command::new("cat");
    let mut child = child.stdin(std::process::Stdio::piped()).spawn().unwrap();
    let input = child.stdin.take();
    runtime.run(|| drop(child));
    assert!(watches());
    drop(input);
    let limit = Instant::now() + Duration::from_secs(60);
    while watches() {
        assert!(Instant::now() < limit, "it is watched still");
        thread::sleep(Duration::from_millis(1));
    }
}

/// As one that sleeps in the kernel.
#[test]
fn a_killed_child_that_does_not_end_is_not_waited_for_without_a_limit() {
    let mut child = std::process::Command::new("cat");
    let mut child = child.stdin(std::process::Stdio::piped()).spawn().unwrap();
    let pidfd = orphans::pidfd(&child).unwrap();
    let killed = Instant::now();
    assert!(!orphans::ends_soon(&pidfd, killed));
    assert!(killed.elapsed() >= CANCEL_GRACE);
    child.kill().unwrap();
    while !orphans::ends_soon(&pidfd, Instant::now()) {}
    child.wait().unwrap();
}
