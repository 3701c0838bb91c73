//! Memory of threads that were needed once is given back within seconds: their stacks. What they freed is the
//! allocator's, which gives it back when it is asked. Each test has a process of its own.

#![cfg(target_os = "linux")]

mod common;

use common::{ends, in_child, is_child, runtime, until};
use std::{
    hint,
    sync::{Arc, Barrier},
};
use urgency::{Runtime, blocking};

/// How many closures wait at once, each on a thread of its own.
const THREADS: usize = 200;

/// What each of them writes to, of its stack or of the heap.
const TOUCHED: usize = 1 << 20;

/// The resident memory of this process, in bytes.
fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let number = line.and_then(|line| line.split_whitespace().next());
    number.unwrap().parse::<usize>().unwrap() << 10
}

#[inline(never)]
fn touch_stack() {
    let mut memory = [0u8; TOUCHED];
    hint::black_box(&mut memory).fill(1);
    hint::black_box(&memory);
}

/// Small pieces, so that the allocator takes them from the thread's arena.
fn touch_heap() -> Vec<Vec<u8>> {
    (0..TOUCHED / 4096).map(|_| vec![1; 4096]).collect()
}

/// The resident memory while so many threads wait that each has run `touch`.
fn at_the_peak<T: Send + 'static>(runtime: &Runtime, threads: usize, touch: fn() -> T) -> usize {
    let (all, go) = (
        Arc::new(Barrier::new(threads + 1)),
        Arc::new(Barrier::new(threads + 1)),
    );
    let closures: Vec<_> = (0..threads)
        .map(|_| {
            let (all, go) = (all.clone(), go.clone());
            runtime.spawn_fn(move || {
                let touched = touch();
                blocking(|| {
                    all.wait();
                    go.wait();
                });
                drop(touched);
            })
        })
        .collect();
    all.wait();
    let peak = resident();
    go.wait();
    closures
        .into_iter()
        .for_each(|closure| closure.get().unwrap());
    until(|| runtime.stats().threads <= 2 + 6);
    peak
}

/// After many threads were needed, and have ended, again and again. Of what the process has grown by an eighth may stay
/// at the end: records of the threads, and the few that are kept.
fn given_back<T: Send + 'static>(touch: fn() -> T, trim: fn()) {
    let runtime = runtime(2);
    at_the_peak(&runtime, 4, || ());
    let before = resident();
    for round in 0..4 {
        let peak = at_the_peak(&runtime, THREADS, touch);
        assert!(peak >= before + THREADS * TOUCHED / 2, "{peak}");
        let freed = resident();
        trim();
        println!(
            "{round}: before {before}, peak {peak}, when the threads have ended {freed}, at the end {}",
            resident()
        );
        until(|| resident() <= before + (peak - before) / 8);
    }
}

#[test]
fn the_stacks_of_threads_that_were_needed_once_are_given_back_within_seconds() {
    const NAME: &str = "the_stacks_of_threads_that_were_needed_once_are_given_back_within_seconds";
    if is_child() {
        ends(|| given_back(touch_stack, || ()));
    } else {
        in_child(NAME);
    }
}

/// glibc keeps in its arenas what ended threads freed, until it is asked for it: the runtime holds nothing of it.
#[test]
#[cfg(target_env = "gnu")]
fn what_threads_that_were_needed_once_freed_is_the_allocators_to_give_back() {
    const NAME: &str = "what_threads_that_were_needed_once_freed_is_the_allocators_to_give_back";
    let trim = || {
        // SAFETY: a plain number in; it may be called at any time.
        unsafe { libc::malloc_trim(0) };
    };
    if is_child() {
        ends(move || given_back(touch_heap, trim));
    } else {
        in_child(NAME);
    }
}
