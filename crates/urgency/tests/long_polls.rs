//! Polls that compute hold up no brief work of their level. Alone in its file: the computations of other tests would
//! take the processors.

mod common;

use common::{ends, run_time, until};
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
    },
    time::Duration,
};
use urgency::{Runtime, levels, time::sleep, yield_now};

levels! { App: Urgent > Batch }

/// A timer waits neither for the end of the poll that runs, nor for a poll that waits and took long the last time.
#[test]
fn timers_are_served_beside_polls_that_compute() {
    const SLEEPS: usize = 50;
    ends(|| {
        for (workers, has_levels) in [(1, false), (2, false), (1, true), (2, true)] {
            let mut builder = Runtime::builder().workers(workers);
            if has_levels {
                builder = builder.levels::<App>();
            }
            let runtime = builder.build().unwrap();
            let (stop, polls) = (
                Arc::new(AtomicBool::new(false)),
                Arc::new(AtomicUsize::new(0)),
            );
            let computation = || {
                let (stop, polls) = (stop.clone(), polls.clone());
                runtime.spawn(async move {
                    while !stop.load(SeqCst) {
                        polls.fetch_add(1, SeqCst);
                        // Of its own time: beside other tests a sleep takes longer, and so does a poll.
                        let end = run_time() + Duration::from_millis(40);
                        while run_time() < end {}
                        yield_now().await;
                    }
                })
            };
            let computations: Vec<_> = (0..2 * workers).map(|_| computation()).collect();
            // Each has had its first poll, and is known.
            until(|| polls.load(SeqCst) > 4 * workers);
            let before = polls.load(SeqCst);
            let sleeps = runtime.spawn(async {
                for _ in 0..SLEEPS {
                    sleep(Duration::from_millis(1)).await;
                }
            });
            sleeps.get().unwrap();
            let polls = polls.load(SeqCst) - before;
            stop.store(true, SeqCst);
            computations.into_iter().for_each(|it| it.get().unwrap());
            // As many on each worker, or more, if a sleep waited for the end of a poll.
            let most = SLEEPS * workers / 2;
            assert!(
                cfg!(urgency_chaos) || polls < most,
                "{polls} polls with {workers} workers, several levels: {has_levels}"
            );
        }
    });
}
