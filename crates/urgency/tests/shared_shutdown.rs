//! The end of runtimes that share workers, in the middle of what they do: alone in a process, whose descriptors are
//! counted.

mod common;

use common::{ends, threads_and_descriptors};
use std::{
    sync::{Arc, Weak},
    thread,
    time::{Duration, Instant},
};
use urgency::{Runtime, sync::mpsc, time, yield_now};

/// Four pairs of tasks of `runtime` send each other messages until it ends. What each of them keeps.
fn exchange(runtime: &Runtime, kept: &mut Vec<Weak<()>>) {
    let mut keep = || {
        let keeps = Arc::new(());
        kept.push(Arc::downgrade(&keeps));
        keeps
    };
    for _ in 0..4 {
        let (sender, mut receiver) = mpsc::channel(2);
        let keeps = [keep(), keep()];
        let [sends, receives] = keeps;
        let sends = async move {
            let _keeps = sends;
            while sender.send(()).await.is_ok() {
                yield_now().await;
            }
        };
        let receives = async move {
            let _keeps = receives;
            while receiver.recv().await.is_some() {}
        };
        runtime.spawn(sends).detach();
        runtime.spawn(receives).detach();
    }
}

/// The one worker is with one of the two when both end, and the policy has left the other none. (A task of that one
/// waited for a worker for good, or an entry of its pool kept the job, and the job the entry.)
#[test]
fn runtimes_that_share_workers_and_are_dropped_in_the_middle_of_their_work_leave_nothing() {
    ends(|| {
        let before = threads_and_descriptors();
        let rounds = || {
            let mut kept = Vec::new();
            for _ in 0..40 {
                let one = Runtime::builder().workers(1).build().unwrap();
                let other = Runtime::builder().share_workers_with(&one).build();
                let other = other.unwrap();
                exchange(&one, &mut kept);
                exchange(&other, &mut kept);
                one.block_on(time::sleep(Duration::from_micros(100)));
                drop(one);
                drop(other);
            }
            kept
        };
        let kept = thread::scope(|scope| {
            let threads: Vec<_> = (0..6).map(|_| scope.spawn(rounds)).collect();
            let kept = threads.into_iter().map(|thread| thread.join().unwrap());
            kept.flatten().collect::<Vec<_>>()
        });
        let limit = Instant::now() + Duration::from_secs(20);
        let left = || kept.iter().filter(|it| it.strong_count() != 0).count();
        while left() != 0 || threads_and_descriptors() != before {
            assert!(
                Instant::now() < limit,
                "{} futures are left; threads and descriptors: {before:?}, now {:?}",
                left(),
                threads_and_descriptors()
            );
            thread::sleep(Duration::from_millis(10));
        }
    });
}
