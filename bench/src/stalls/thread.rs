//! The control: builders and sentinel are plain threads.

use super::{Config, build, sample, sentinel};
use std::future::ready;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Waker};
use std::thread;
use urgency_measure::Sample;

/// Runs a future that never waits.
fn run<F: Future>(future: F) -> F::Output {
    let mut context = Context::from_waker(Waker::noop());
    match pin!(future).poll(&mut context) {
        Poll::Ready(output) => output,
        Poll::Pending => unreachable!("it never waits"),
    }
}

/// One sample of the builders.
pub fn sst_build(config: Config) -> Sample {
    let over = AtomicBool::new(false);
    let late = thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| run(build(&over, || ready(()))));
        }
        let sleep = |time| {
            thread::sleep(time);
            ready(())
        };
        let late = run(sentinel(config, sleep));
        over.store(true, Ordering::Relaxed);
        late
    });
    sample(&late, config.rounds.into())
}
