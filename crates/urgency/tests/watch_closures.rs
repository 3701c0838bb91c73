//! Closures that change the value of a `watch` in its place: they are the program's, and may fork and wait.

mod common;

use common::{ends, fib, until, with_levels};
use std::{
    future::Future,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::SeqCst},
    },
    task::{Context, Wake, Waker},
    thread,
    time::{Duration, Instant},
};
use urgency::{
    Runtime, block_on, join, scheduling_point,
    sync::{self_deadlocks, watch},
    time::sleep,
};

urgency::levels! { App: High > Middle > Low }

/// Forks for this long.
fn forks_for(time: Duration) {
    let begun = Instant::now();
    while begun.elapsed() < time {
        join(|| fib(10), || fib(10));
    }
}

#[test]
fn readers_beyond_the_limit_of_threads_wait_for_a_closure_that_forks_or_waits() {
    let closures: [fn(); 2] = [
        || forks_for(Duration::from_millis(50)),
        || block_on(sleep(Duration::from_millis(50))),
    ];
    for (workers, closure) in [1, 2].into_iter().flat_map(|n| closures.map(|c| (n, c))) {
        let seen = ends(move || {
            let builder = Runtime::builder().workers(workers).thread_limit(16);
            let runtime = builder.build().unwrap();
            let (sender, receiver) = watch::channel(0);
            let begun = Arc::new(AtomicBool::new(false));
            let theirs = begun.clone();
            let changes = runtime.spawn_fn(move || {
                sender.send_modify(|value| {
                    theirs.store(true, SeqCst);
                    closure();
                    *value = 1;
                });
                sender.send(2)
            });
            until(|| begun.load(SeqCst));
            let read = || {
                let receiver = receiver.clone();
                runtime.spawn(async move { *receiver.borrow() })
            };
            let readers: Vec<_> = (0..40).map(|_| read()).collect();
            let seen: Vec<u32> = readers.into_iter().map(|r| r.get().unwrap()).collect();
            changes.get().unwrap().unwrap();
            seen
        });
        assert!(seen.iter().all(|&value| value != 0), "{seen:?}");
    }
}

/// Without it the reader waits until the middle level has ended.
#[test]
fn an_urgent_reader_raises_the_closure_for_which_it_waits() {
    ends(|| {
        let runtime = with_levels::<App>(1);
        let (sender, receiver) = watch::channel(0);
        let (begun, over) = (
            Arc::new(AtomicBool::new(false)),
            Arc::new(AtomicBool::new(false)),
        );
        let theirs = begun.clone();
        let changes = runtime.at(Low).spawn_fn(move || {
            sender.send_modify(|value| {
                theirs.store(true, SeqCst);
                forks_for(Duration::from_millis(20));
                *value = 1;
            });
        });
        until(|| begun.load(SeqCst));
        let theirs = over.clone();
        let middle = runtime.at(Middle).spawn_fn(move || {
            // Until the reader has ended, or for far longer than it needs.
            let limit = Instant::now() + Duration::from_secs(20);
            while !theirs.load(SeqCst) && Instant::now() < limit {
                scheduling_point();
            }
            theirs.load(SeqCst)
        });
        let reader = runtime.at(High).spawn(async move { *receiver.borrow() });
        assert_eq!(reader.get().unwrap(), 1);
        over.store(true, SeqCst);
        assert!(middle.get().unwrap(), "the reader ended first");
        changes.get().unwrap();
    });
}

#[test]
fn a_closure_that_reads_its_own_place_is_named() {
    ends(|| {
        let runtime = Runtime::builder().workers(1).build().unwrap();
        let (sender, receiver) = watch::channel(0);
        let before = self_deadlocks().suspected;
        // It waits for ever, and the runtime is never shut down.
        let waits =
            runtime.spawn_fn(move || sender.send_modify(|value| *value = *receiver.borrow()));
        until(|| self_deadlocks().suspected > before);
        let last = self_deadlocks().last.unwrap();
        assert!(last.file().ends_with("watch_closures.rs"), "{last}");
        waits.detach();
        std::mem::forget(runtime);
    });
}

struct Sends {
    sender: watch::Sender<u32>,
    called: AtomicBool,
}

impl Wake for Sends {
    fn wake(self: Arc<Self>) {
        self.called.store(true, SeqCst);
        self.sender.send(2).unwrap();
    }
}

/// The thread that calls the waker for a timer may not wait, and the value is in use.
#[test]
fn a_waker_sends_what_it_sends_after_the_closure() {
    ends(|| {
        let runtime = Runtime::builder().workers(1).build().unwrap();
        let (sender, receiver) = watch::channel(0);
        let sends = Arc::new(Sends {
            sender: sender.clone(),
            called: AtomicBool::new(false),
        });
        let waker = Waker::from(sends.clone());
        let _inside = runtime.enter();
        let begun = AtomicBool::new(false);
        thread::scope(|threads| {
            threads.spawn(|| {
                sender.send_modify(|value| {
                    begun.store(true, SeqCst);
                    until(|| sends.called.load(SeqCst));
                    thread::sleep(Duration::from_millis(80));
                    *value = 1;
                });
            });
            until(|| begun.load(SeqCst));
            // If this thread stalls, a timer is over before it is polled, and calls no waker.
            let _timer = loop {
                let mut timer = Box::pin(sleep(Duration::from_millis(20)));
                let polled = timer.as_mut().poll(&mut Context::from_waker(&waker));
                if polled.is_pending() {
                    break timer;
                }
            };
            until(|| *receiver.borrow() == 2);
        });
    });
}
