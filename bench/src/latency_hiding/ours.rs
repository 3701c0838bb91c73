//! Leaves as async tasks, as closures that block in `get`, and without any wait.

use super::{BASE, Config, N, add, serial_fib, timer};
use crate::engines;
use nix::sys::timerfd::TimerFlags;
use std::ops::Range;
use std::pin::Pin;
use std::time::Duration;
use urgency::{Runtime, io::Async, policy::Kind};
use urgency_measure::Sample;

/// One sample without waits.
pub fn ideal(config: Config) -> Sample {
    forked(config, Kind::Aging, || fib(N))
}

/// One sample with leaves that are closures: each starts its wait and blocks in `get`.
pub fn closures(config: Config, order: &str) -> Sample {
    let order = order.parse().expect("the name of an order");
    after(config, order, move || wait(config.delay))
}

/// One sample in which each leaf waits for a task that is ready.
pub fn future(config: Config) -> Sample {
    after(config, Kind::Aging, || async {})
}

/// One sample in which that task makes and reads a timer that has expired.
pub fn descriptor(config: Config) -> Sample {
    after(config, Kind::Aging, move || async move {
        let expired = timer(config.delay, TimerFlags::empty()).wait();
        expired.expect("a timer can be read");
    })
}

/// One sample in which that task waits for the reactor's word before it reads.
pub fn event(config: Config) -> Sample {
    after(config, Kind::Aging, move || async move {
        let timer = timer(config.delay, TimerFlags::TFD_NONBLOCK);
        let timer = Async::new(timer).expect("a timer can be polled");
        timer.readable().await.expect("a timer expires");
        timer.get_ref().wait().expect("a timer can be read");
    })
}

/// One sample of fork-join in which each leaf blocks until a task of its own is done.
fn after<F: Future<Output = ()> + Send + 'static>(
    config: Config,
    order: Kind,
    task: impl Fn() -> F + Sync + Send,
) -> Sample {
    forked(config, order, || {
        let done = urgency::spawn(task()).get();
        done.expect("nothing is cancelled");
        fib(N)
    })
}

/// One sample of fork-join with this leaf.
fn forked(config: Config, order: Kind, leaf: impl Fn() -> u64 + Sync + Send) -> Sample {
    let runtime = Runtime::builder().workers(config.workers).pool(order);
    let runtime = runtime.build().expect("threads can be started");
    let sample = config.measure(config.leaves, |leaves| {
        runtime.run(|| map_reduce(leaves, &leaf))
    });
    engines::ours::with_stats(sample, &runtime)
}

/// One sample with leaves that are async tasks.
pub fn tasks(config: Config) -> Sample {
    let runtime = engines::ours::runtime(config.workers);
    let sample = config.measure(config.leaves, |leaves| {
        let whole = runtime.spawn(map_reduce_async(leaves, config.delay));
        whole.get().expect("nothing is cancelled")
    });
    engines::ours::with_stats(sample, &runtime)
}

async fn wait(delay: Duration) {
    let timer = Async::new(timer(delay, TimerFlags::TFD_NONBLOCK)).expect("a timer can be polled");
    let expired = timer.read_with(|timer| timer.wait().map_err(std::io::Error::from));
    expired.await.expect("a timer can be read");
}

fn map_reduce(leaves: Range<u64>, leaf: &(impl Fn() -> u64 + Sync)) -> u64 {
    if leaves.end - leaves.start == 1 {
        return leaf();
    }
    let middle = leaves.start.midpoint(leaves.end);
    let (a, b) = urgency::join(
        || map_reduce(leaves.start..middle, leaf),
        || map_reduce(middle..leaves.end, leaf),
    );
    add(a, b)
}

fn map_reduce_async(
    leaves: Range<u64>,
    delay: Duration,
) -> Pin<Box<dyn Future<Output = u64> + Send>> {
    Box::pin(async move {
        if leaves.end - leaves.start == 1 {
            wait(delay).await;
            return fib(N);
        }
        let middle = leaves.start.midpoint(leaves.end);
        let low = urgency::spawn(map_reduce_async(leaves.start..middle, delay));
        let high = map_reduce_async(middle..leaves.end, delay).await;
        add(low.await.expect("nothing is cancelled"), high)
    })
}

fn fib(n: u32) -> u64 {
    if n < BASE {
        return serial_fib(n);
    }
    let (a, b) = urgency::join(|| fib(n - 1), || fib(n - 2));
    a + b
}
