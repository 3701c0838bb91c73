//! What a dispatch costs below stacks that have a task each in their rings, which is their owners': by how many there
//! are. Threads of which a few run at a time do not show it, so all workers are in the hands of one thread.

use super::{costs::assert_row, steps::with_all_claimed};
use crate::{
    sched::{
        Work,
        job::Job,
        stack::{Binding, Me},
        worker::Worker,
    },
    sys::{clock, counted::Sums},
    tasks::{self, TaskRef},
};
use std::{mem, sync::Arc};

const DISPATCHES: usize = 640;

/// Puts a task that never grows old into the ring of a stack.
fn push(me: Me<'_>, task: TaskRef) {
    let since = clock::now() + (1 << 50);
    task.set_ready_since(since);
    assert!(me.ring().push(task.as_raw().as_ptr(), since));
    // The ring owns the reference now.
    mem::forget(task);
}

/// The calling thread is the worker's stack as well, which serves this level, and has so many tasks in its ring.
fn is_stack_of(job: &Arc<Job>, worker: &Worker, level: u8, tasks: usize) -> Binding {
    let stack = job.core.holder(worker).unwrap().arc();
    // SAFETY: no other thread is a stack that was borrowed for a plain thread, and lies idle.
    let mut binding = unsafe { Binding::new(stack) };
    binding.take_up(job.clone());
    let me = binding.me();
    me.hold(worker);
    // At each look it has just begun.
    me.runs_from(u64::MAX);
    me.set_level(level);
    worker.set_level(level);
    job.shows(worker, level);
    for _ in 0..tasks {
        push(me, tasks::new(async {}, job.arc(), level).0);
    }
    job.pools.announce_ring(&me, worker, level);
    binding
}

/// The calling thread is none of these stacks any more.
fn end(mut bindings: Vec<Binding>) {
    while let Some(mut binding) = bindings.pop() {
        while let Some(task) = binding.me().pop_ring() {
            drop(task);
        }
        binding.leave_job();
        binding.end();
    }
}

#[test]
#[cfg_attr(urgency_chaos, ignore = "chaos adds steps")]
fn a_dispatch_below_rings_costs_no_more_with_more_of_them() {
    assert_row("dispatch below rings", |workers| {
        with_all_claimed(workers, 0, |job, claimed| {
            let (below, above) = claimed.split_last().unwrap();
            let mut bindings: Vec<_> = above
                .iter()
                .map(|worker| is_stack_of(job, worker, 0, 1))
                .collect();
            bindings.push(is_stack_of(job, below, 1, 2));
            let me = bindings.last().unwrap().me();
            let sums = Sums::forever();
            for _ in 0..DISPATCHES {
                sums.operation();
                let work = job.next_ready(me, below, u64::MAX);
                Sums::stop();
                let Some(Work::Task(task)) = work else {
                    panic!("its own ring has tasks");
                };
                assert_eq!(task.level(), 1);
                push(me, task);
            }
            end(bindings);
            sums.cost()
        })
    });
}
