//! `signal`: none is lost between two waits, each listener gets each, and the rest of the contract.
//!
//! Signals belong to the process, so each test has one of its own.

mod common;

use common::{ends, in_child, is_child, runtime};
use rustix::process::Signal as Number;
use std::{
    future::{Future, poll_fn},
    io,
    pin::pin,
    sync::mpsc,
    task::Poll,
    time::Duration,
};
use urgency::{
    Shutdown, block_on,
    future::race,
    signal::{
        ctrl_c,
        unix::{SignalKind, signal},
    },
    yield_now,
};

/// The calling thread handles the signal before this returns: of one for the process another thread may, and later.
fn raise(number: Number) {
    // SAFETY: a plain number in, a plain number out.
    assert_eq!(unsafe { libc::raise(number.as_raw()) }, 0);
}

/// Whether `future` is ready now.
async fn is_ready(future: impl Future) -> bool {
    let mut future = pin!(future);
    poll_fn(|cx| Poll::Ready(future.as_mut().poll(cx).is_ready())).await
}

#[test]
fn a_signal_to_a_child_of_a_fork_is_not_the_parents() {
    if !is_child() {
        return in_child("a_signal_to_a_child_of_a_fork_is_not_the_parents");
    }
    ends(|| {
        let mut hears = signal(SignalKind::user_defined1()).unwrap();
        // SAFETY: the child makes two system calls.
        unsafe {
            match libc::fork() {
                0 => {
                    libc::raise(libc::SIGUSR1);
                    libc::_exit(0);
                }
                child => {
                    let mut status = 1;
                    assert_eq!(libc::waitpid(child, &raw mut status, 0), child);
                    assert_eq!(status, 0);
                }
            }
        }
        block_on(async {
            assert!(!is_ready(hears.recv()).await);
            raise(Number::USR1);
            hears.recv().await;
        });
    });
}

#[test]
fn a_signal_between_two_waits_is_not_lost_and_several_are_one() {
    if !is_child() {
        return in_child("a_signal_between_two_waits_is_not_lost_and_several_are_one");
    }
    ends(|| {
        let mut usr1 = signal(SignalKind::user_defined1()).unwrap();
        block_on(async {
            assert!(!is_ready(usr1.recv()).await);
            for count in 1..20 {
                (0..count).for_each(|_| raise(Number::USR1));
                assert_eq!(usr1.recv().await, Some(()));
                assert!(!is_ready(usr1.recv()).await);
            }
        });
    });
}

#[test]
fn ctrl_c_in_a_loop_loses_none_that_comes_while_nobody_waits() {
    if !is_child() {
        return in_child("ctrl_c_in_a_loop_loses_none_that_comes_while_nobody_waits");
    }
    ends(|| {
        let runtime = runtime(2);
        runtime.block_on(async {
            assert!(!is_ready(ctrl_c()).await, "and listens from now on");
            for _ in 0..20 {
                raise(Number::INT);
                yield_now().await;
                ctrl_c().await.unwrap();
                assert!(!is_ready(ctrl_c()).await, "it was given once");
            }
            // Another branch wins, again and again.
            for _ in 0..20 {
                race(async { drop(ctrl_c().await) }, yield_now()).await;
            }
            raise(Number::INT);
            ctrl_c().await.unwrap();
        });
    });
}

#[test]
fn all_that_wait_for_ctrl_c_get_it_and_what_a_dropped_wait_had_is_kept() {
    if !is_child() {
        return in_child("all_that_wait_for_ctrl_c_get_it_and_what_a_dropped_wait_had_is_kept");
    }
    ends(|| {
        let runtime = runtime(2);
        let (tell, told) = mpsc::channel();
        let waits: Vec<_> = (0..3)
            .map(|_| {
                let tell = tell.clone();
                runtime.spawn(async move {
                    let mut wait = pin!(ctrl_c());
                    assert!(!is_ready(&mut wait).await);
                    tell.send(()).unwrap();
                    wait.await.unwrap();
                })
            })
            .collect();
        waits.iter().for_each(|_| told.recv().unwrap());
        raise(Number::INT);
        waits.into_iter().for_each(|wait| wait.get().unwrap());
        block_on(async {
            {
                let mut dropped = pin!(ctrl_c());
                assert!(!is_ready(&mut dropped).await);
                raise(Number::INT);
            }
            ctrl_c().await.unwrap();
        });
    });
}

#[test]
fn each_listener_gets_each_signal_of_its_kind_and_no_other() {
    if !is_child() {
        return in_child("each_listener_gets_each_signal_of_its_kind_and_no_other");
    }
    ends(|| {
        let (one, other) = (runtime(1), runtime(1));
        let listen = |kind| signal(kind).unwrap();
        let (mut first, mut second) = (listen(SignalKind::hangup()), listen(SignalKind::hangup()));
        let mut none = listen(SignalKind::user_defined2());
        drop(listen(SignalKind::hangup()));
        raise(Number::HUP);
        assert_eq!(
            one.spawn(async move { first.recv().await }).get().unwrap(),
            Some(())
        );
        assert_eq!(
            other
                .spawn(async move { second.recv().await })
                .get()
                .unwrap(),
            Some(())
        );
        assert!(!block_on(is_ready(none.recv())));
        raise(Number::HUP);
        assert!(!block_on(is_ready(none.recv())), "and the process lives");
    });
}

#[test]
fn a_signal_wakes_a_runtime_with_nothing_else_to_do() {
    if !is_child() {
        return in_child("a_signal_wakes_a_runtime_with_nothing_else_to_do");
    }
    ends(|| {
        for round in 0..20 {
            let runtime = runtime(1 + round % 2);
            let mut term = signal(SignalKind::terminate()).unwrap();
            let (tell, told) = mpsc::channel();
            let waits = runtime.spawn(async move {
                assert!(!is_ready(term.recv()).await);
                tell.send(()).unwrap();
                term.recv().await
            });
            told.recv().unwrap();
            std::thread::sleep(Duration::from_millis(round as u64 % 3));
            raise(Number::TERM);
            assert_eq!(waits.get().unwrap(), Some(()));
        }
    });
}

#[test]
fn the_end_of_a_runtime_ends_its_waits_and_no_others() {
    if !is_child() {
        return in_child("the_end_of_a_runtime_ends_its_waits_and_no_others");
    }
    ends(|| {
        let first = runtime(1);
        assert!(!first.block_on(is_ready(ctrl_c())));
        let waits = first.spawn(ctrl_c());
        first.shutdown(Shutdown::Cancel);
        assert!(waits.get().is_err());
        raise(Number::INT);
        let second = runtime(1);
        second.block_on(ctrl_c()).unwrap();
        assert!(!second.block_on(is_ready(ctrl_c())), "it was given once");
    });
}

#[test]
fn a_signal_that_cannot_be_listened_to_is_an_error_that_names_it() {
    for number in [libc::SIGKILL, libc::SIGSTOP, libc::SIGSEGV] {
        let error = signal(SignalKind::from_raw(number)).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
        assert!(
            error.to_string().contains(&format!("signal {number} ")),
            "{error}"
        );
    }
    assert!(signal(SignalKind::from_raw(9999)).is_err());
}

#[test]
fn a_wait_for_ctrl_c_that_begins_as_another_is_dropped_is_no_error() {
    if !is_child() {
        return in_child("a_wait_for_ctrl_c_that_begins_as_another_is_dropped_is_no_error");
    }
    ends(|| {
        let runtime = runtime(2);
        let tasks = [0; 2].map(|_| {
            runtime.spawn(async {
                for _ in 0..50_000 {
                    assert!(!is_ready(ctrl_c()).await, "no signal has come");
                    yield_now().await;
                }
            })
        });
        for task in tasks {
            task.get().unwrap();
        }
    });
}
