//! `process`: what children leave that were dropped, what waits leave, and what happens where something is missing.
//!
//! Children belong to the process, so each test has one of its own.

#![cfg(all(target_os = "linux", not(miri)))]

#[path = "common/children.rs"]
mod children;
mod common;

use children::{children, lasting, shell};
use common::{
    all, ends, in_child, is_child, no_more_descriptors, runtime, threads_and_descriptors, until,
};
use std::{
    io::{self, Read},
    os::fd::AsRawFd,
    process::Stdio,
    sync::mpsc,
    thread,
    time::Duration,
};
use urgency::{Shutdown, block_on, process::Command, spawn, time};

/// Sees to it that `pidfd_open` fails on the calling thread and the threads that it makes.
fn refuse_pidfd(error: i32) {
    let statement = |code: u32, value: u32| libc::sock_filter {
        code: code as u16,
        jt: 0,
        jf: 0,
        k: value,
    };
    let mut is_it = statement(
        libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K,
        libc::SYS_pidfd_open as u32,
    );
    is_it.jf = 1;
    let mut filter = [
        statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0),
        is_it,
        statement(
            libc::BPF_RET | libc::BPF_K,
            libc::SECCOMP_RET_ERRNO | error as u32,
        ),
        statement(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ALLOW),
    ];
    let program = libc::sock_fprog {
        len: filter.len() as u16,
        filter: filter.as_mut_ptr(),
    };
    // SAFETY: the program and the filter that it names outlive the calls, which change what this thread may call.
    unsafe {
        assert_eq!(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
        let mode = libc::SECCOMP_MODE_FILTER;
        assert_eq!(
            libc::prctl(libc::PR_SET_SECCOMP, mode, &raw const program),
            0
        );
    }
    let me = rustix::process::getpid();
    let refused = rustix::process::pidfd_open(me, rustix::process::PidfdFlags::empty());
    assert_eq!(refused.unwrap_err().raw_os_error(), error);
}

#[test]
fn a_program_that_is_not_there_is_not_found_and_nothing_is_left_of_the_attempt() {
    let name = "a_program_that_is_not_there_is_not_found_and_nothing_is_left_of_the_attempt";
    if !is_child() {
        return in_child(name);
    }
    ends(|| {
        let runtime = runtime(1);
        runtime.block_on(async {
            let before = threads_and_descriptors().1;
            let mut command = Command::new("/nowhere/at all");
            command.stdin(Stdio::piped());
            for _ in 0..3 {
                let error = command.spawn().unwrap_err();
                assert_eq!(error.kind(), io::ErrorKind::NotFound);
                let error = command.output().await.unwrap_err();
                assert_eq!(error.kind(), io::ErrorKind::NotFound);
                let error = command.status().await.unwrap_err();
                assert_eq!(error.kind(), io::ErrorKind::NotFound);
            }
            assert_eq!(children(), []);
            assert_eq!(threads_and_descriptors().1, before);
        });
    });
}

#[test]
fn waits_that_ended_or_were_dropped_leave_no_descriptor() {
    if !is_child() {
        return in_child("waits_that_ended_or_were_dropped_leave_no_descriptor");
    }
    ends(|| {
        let runtime = runtime(1);
        runtime.block_on(async {
            let (mut child, input) = lasting();
            let before = threads_and_descriptors().1;
            for _ in 0..20 {
                shell("echo; echo >&2").output().await.unwrap();
                let limit = Duration::from_millis(1);
                assert!(time::timeout(limit, child.wait()).await.is_err());
            }
            assert_eq!(threads_and_descriptors().1, before);
            drop(input);
            child.wait().await.unwrap();
            assert_eq!(children(), []);
        });
    });
}

#[test]
fn dropped_children_leave_no_zombie_and_no_descriptor() {
    if !is_child() {
        return in_child("dropped_children_leave_no_zombie_and_no_descriptor");
    }
    ends(|| {
        let runtime = runtime(2);
        let before = threads_and_descriptors().1;
        let inputs: Vec<_> = (0..20)
            .map(|_| runtime.run(|| lasting().1)) // The child is dropped there.
            .collect();
        assert_eq!(children().len(), 20);
        thread::sleep(Duration::from_millis(10));
        assert_eq!(children().len(), 20, "they go on");
        drop(inputs);
        // Nothing else happens in this process.
        until(|| children().is_empty());
        until(|| threads_and_descriptors().1 == before);
        drop(runtime);
    });
}

#[test]
fn a_child_that_is_to_be_killed_when_it_is_dropped_is_killed_and_reaped() {
    if !is_child() {
        return in_child("a_child_that_is_to_be_killed_when_it_is_dropped_is_killed_and_reaped");
    }
    ends(|| {
        let runtime = runtime(1);
        let mut inputs = Vec::new();
        let mut command = Command::new("cat");
        command.stdin(Stdio::piped()).kill_on_drop(true);
        runtime.block_on(async {
            let mut child = command.spawn().unwrap();
            inputs.extend(child.stdin.take());
            drop(child);
            // A future that is dropped drops its child.
            let mut waits = command.spawn().unwrap();
            inputs.extend(waits.stdin.take());
            let limit = Duration::from_millis(1);
            assert!(
                time::timeout(limit, waits.wait_with_output())
                    .await
                    .is_err()
            );
        });
        until(|| children().is_empty());
        drop(inputs);
    });
}

#[test]
fn children_that_were_dropped_without_a_runtime_are_reaped_at_the_next_use() {
    if !is_child() {
        return in_child("children_that_were_dropped_without_a_runtime_are_reaped_at_the_next_use");
    }
    ends(|| {
        let (children_there, inputs): (Vec<_>, Vec<_>) = [lasting(), lasting()].into_iter().unzip();
        drop(children_there);
        drop(inputs);
        until(|| children().iter().all(|(_, state)| state == "Z"));
        assert_eq!(children().len(), 2);
        let (mut child, input) = lasting();
        assert_eq!(children().len(), 1, "the zombies are gone");
        drop(input);
        block_on(child.wait()).unwrap();
        spawn(async {}).get().unwrap(); // There is a global runtime from now on.
        drop(lasting());
        until(|| children().is_empty());
    });
}

#[test]
fn a_dropped_child_outlives_the_runtime_that_watches_it_and_is_reaped_at_the_next_use() {
    let name = "a_dropped_child_outlives_the_runtime_that_watches_it_and_is_reaped_at_the_next_use";
    if !is_child() {
        return in_child(name);
    }
    ends(|| {
        let before = threads_and_descriptors().1;
        let first = runtime(1);
        let input = first.run(|| lasting().1);
        first.shutdown(Shutdown::Cancel);
        drop(first);
        until(|| threads_and_descriptors().1 == before + 1);
        assert_eq!(children().len(), 1, "it goes on");
        let second = runtime(1);
        second.block_on(async {
            let status = Command::new("true").status().await;
            assert!(status.unwrap().success());
        });
        // From now on the second runtime watches it.
        drop(input);
        until(|| children().is_empty());
    });
}

#[test]
fn children_that_the_end_of_a_runtime_kills_are_reaped_by_it() {
    if !is_child() {
        return in_child("children_that_the_end_of_a_runtime_kills_are_reaped_by_it");
    }
    ends(|| {
        let mut command = Command::new("cat");
        command.stdin(Stdio::piped()).kill_on_drop(true);
        let leaves_some = |_: &usize| {
            let runtime = runtime(2);
            let (tell, told) = mpsc::channel();
            for _ in 0..3 {
                let mut child = command.spawn().unwrap();
                let tell = tell.clone();
                runtime.spawn(async move {
                    let _input = child.stdin.take();
                    tell.send(()).unwrap();
                    child.wait().await
                });
            }
            (0..3).for_each(|_| told.recv().unwrap());
            runtime.shutdown(Shutdown::Cancel);
            drop(runtime);
            until(|| children().iter().all(|(_, state)| state == "Z"));
            !children().is_empty()
        };
        let left = (0..30).filter(leaves_some).count();
        // A child may get no processor for longer than it is waited for.
        assert!(left <= 5, "zombies are left after {left} of 30 runtimes");
    });
}

#[test]
fn a_runtime_ends_while_children_are_waited_for_and_the_children_go_on() {
    if !is_child() {
        return in_child("a_runtime_ends_while_children_are_waited_for_and_the_children_go_on");
    }
    ends(|| {
        let runtime = runtime(2);
        let (tell, told) = mpsc::channel();
        let (mut first, first_input) = lasting();
        let (mut second, second_input) = lasting();
        let (mut third, third_input) = lasting();
        let says = tell.clone();
        let task = runtime.spawn(async move {
            says.send(()).unwrap();
            first.wait().await
        });
        let closure = runtime.spawn_fn(move || {
            tell.send(()).unwrap();
            block_on(second.wait())
        });
        (0..2).for_each(|_| told.recv().unwrap());
        let waits =
            runtime.block_on(async { time::timeout(Duration::from_millis(5), third.wait()).await });
        assert!(waits.is_err());
        // As long as it may, a shutdown waits for closures; then the ones that wait for a descriptor end.
        runtime.shutdown_within(Shutdown::Cancel, Duration::from_millis(10));
        assert!(task.get().is_err());
        assert!(!matches!(closure.get(), Ok(Ok(_))));
        assert_eq!(children().len(), 3);
        drop((first_input, second_input, third_input));
        // In another runtime the wait goes on.
        assert!(common::runtime(1).block_on(third.wait()).unwrap().success());
        until(|| {
            block_on(Command::new("true").status()).unwrap();
            children().is_empty()
        });
    });
}

#[test]
fn without_a_pidfd_children_are_waited_for_by_a_blocking_call() {
    if !is_child() {
        return in_child("without_a_pidfd_children_are_waited_for_by_a_blocking_call");
    }
    ends(|| {
        refuse_pidfd(libc::EPERM);
        let runtime = runtime(1);
        let (mut child, input) = lasting();
        runtime.block_on(async {
            let threads = || threads_and_descriptors().0;
            let limit = Duration::from_millis(5);
            assert!(time::timeout(limit, child.wait()).await.is_err());
            let before = threads();
            for _ in 0..20 {
                assert!(time::timeout(limit, child.wait()).await.is_err());
            }
            assert!(threads() <= before + 2, "there is one call for all waits");
            drop(input);
            assert!(child.wait().await.unwrap().success());
            let output = shell("echo out; exit 4").output().await.unwrap();
            assert_eq!(
                (output.stdout, output.status.code()),
                (b"out\n".to_vec(), Some(4))
            );
            let (mut killed, _input) = lasting();
            killed.kill().await.unwrap();
            drop(lasting());
        });
        until(|| children().iter().all(|(_, state)| state == "Z"));
        runtime
            .block_on(async { Command::new("true").status().await })
            .unwrap();
        assert_eq!(children(), []);
    });
}

#[test]
fn without_descriptors_a_child_is_waited_for() {
    if !is_child() {
        return in_child("without_descriptors_a_child_is_waited_for");
    }
    ends(|| {
        let runtime = runtime(1);
        let none_left = no_more_descriptors();
        let mut child = shell("exit 6").spawn().unwrap();
        assert_eq!(runtime.block_on(child.wait()).unwrap().code(), Some(6));
        drop(none_left);
    });
}

#[test]
fn in_a_copy_of_the_process_a_drop_kills_nothing() {
    if !is_child() {
        return in_child("in_a_copy_of_the_process_a_drop_kills_nothing");
    }
    ends(|| {
        let mut command = Command::new("cat");
        let mut child = command
            .stdin(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let input = child.stdin.take().unwrap();
        // SAFETY: the copy drops the child, which allocates nothing there, and ends.
        let copy = unsafe {
            match libc::fork() {
                0 => {
                    drop(child);
                    libc::_exit(0)
                }
                copy => copy,
            }
        };
        let mut status = 1;
        // SAFETY: the status outlives the call.
        assert_eq!(unsafe { libc::waitpid(copy, &raw mut status, 0) }, copy);
        assert_eq!(status, 0);
        thread::sleep(Duration::from_millis(20));
        assert!(child.try_wait().unwrap().is_none());
        drop(input);
        assert!(block_on(child.wait()).unwrap().success());
    });
}

#[test]
fn children_that_are_waited_for_take_no_thread() {
    if !is_child() {
        return in_child("children_that_are_waited_for_take_no_thread");
    }
    ends(|| {
        let runtime = runtime(1);
        let (mut inputs, mut waits) = (Vec::new(), Vec::new());
        for _ in 0..50 {
            let (mut child, input) = lasting();
            inputs.push(input);
            let mut wait = Box::pin(async move { child.wait().await.unwrap() });
            let (tell, told) = mpsc::channel();
            waits.push(runtime.spawn(async move {
                assert!(common::poll(wait.as_mut()).is_pending());
                tell.send(()).unwrap();
                wait.await
            }));
            told.recv().unwrap();
        }
        thread::sleep(Duration::from_millis(10));
        let (threads, _) = threads_and_descriptors();
        assert!(threads < 20, "{threads}");
        drop(inputs);
        assert!(all(waits).iter().all(|status| status.success()));
    });
}

#[test]
fn a_child_that_other_code_has_reaped_is_an_error_and_not_another_process() {
    if !is_child() {
        return in_child("a_child_that_other_code_has_reaped_is_an_error_and_not_another_process");
    }
    ends(|| {
        let mut child = Command::new("true").spawn().unwrap();
        let number = child.id().unwrap() as i32;
        let mut status = 0;
        // SAFETY: the status outlives the call.
        assert_eq!(unsafe { libc::waitpid(number, &raw mut status, 0) }, number);
        let error = runtime(1).block_on(child.wait()).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::ECHILD));
    });
}

/// The kernel says that a traced child has ended when it has, and shows its status only when the tracer lets go.
#[test]
fn a_child_that_another_process_traces_is_waited_for_until_that_lets_go() {
    if !is_child() {
        return in_child("a_child_that_another_process_traces_is_waited_for_until_that_lets_go");
    }
    ends(|| {
        let (mut child, input) = lasting();
        let number = child.id().unwrap() as i32;
        let (mut seized, seizes) = io::pipe().unwrap();
        let (holds, let_go) = io::pipe().unwrap();
        // SAFETY: the copy makes system calls only, over its own variables, and ends.
        let tracer = unsafe {
            match libc::fork() {
                0 => {
                    let none = std::ptr::null_mut::<libc::c_void>();
                    let seized = libc::ptrace(libc::PTRACE_SEIZE, number, none, none) == 0;
                    let mut answer = u8::from(seized);
                    libc::close(input.as_raw_fd());
                    libc::close(let_go.as_raw_fd());
                    libc::write(seizes.as_raw_fd(), (&raw const answer).cast(), 1);
                    libc::read(holds.as_raw_fd(), (&raw mut answer).cast(), 1);
                    libc::_exit(0)
                }
                tracer => tracer,
            }
        };
        let mut answer = [0];
        seized.read_exact(&mut answer).unwrap();
        if answer == [0] {
            println!("skipped: this process may not trace another");
            drop(let_go);
            return;
        }
        let runtime = runtime(1);
        let waits = runtime.spawn(async move { child.wait().await.unwrap() });
        drop(input);
        until(|| children().contains(&(number as u32, "Z".to_owned())));
        thread::sleep(Duration::from_millis(20));
        assert!(!waits.is_finished());
        drop(let_go);
        assert!(waits.get().unwrap().success());
        let mut status = 0;
        // SAFETY: the status outlives the call.
        assert_eq!(unsafe { libc::waitpid(tracer, &raw mut status, 0) }, tracer);
    });
}
