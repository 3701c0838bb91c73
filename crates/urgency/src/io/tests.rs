//! The driver by itself, and `Async` over pipes.

use super::Async;
use crate::reactor::timers::TimerKey;
use crate::reactor::{
    directions::{Direction, Directions},
    driver::{Driver, WaitOutcome},
    poller::Interest,
};
use std::{
    io::{Read, Write},
    os::fd::AsFd,
    sync::{
        Arc, Barrier, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
    thread,
    time::{Duration, Instant},
};

/// Counts how often it is woken, and notes its name.
struct Counted {
    name: usize,
    count: AtomicUsize,
    log: Arc<Mutex<Vec<usize>>>,
}

impl Wake for Counted {
    fn wake(self: Arc<Self>) {
        self.count.fetch_add(1, Ordering::SeqCst);
        self.log.lock().unwrap().push(self.name);
    }
}

fn counted(name: usize, log: &Arc<Mutex<Vec<usize>>>) -> (Arc<Counted>, Waker) {
    let counted = Arc::new(Counted {
        name,
        count: AtomicUsize::new(0),
        log: log.clone(),
    });
    (counted.clone(), counted.into())
}

fn wake_all(ready: &mut Vec<Waker>) {
    ready.drain(..).for_each(Waker::wake);
}

fn timer(driver: &Driver, after: Duration, waker: &Waker) -> TimerKey {
    driver.add_timer(Instant::now() + after, waker).unwrap()
}

const LONG: Duration = Duration::from_secs(3600);
const SHORT: Duration = Duration::from_millis(2);

#[test]
fn a_new_driver_waits_for_nothing() {
    let driver = Driver::new().unwrap();
    assert!(!driver.has_interest());
    let mut ready = Vec::new();
    let outcome = driver.wait(false, &mut ready).unwrap();
    assert_eq!(outcome, WaitOutcome::default());
    assert!(ready.is_empty());
}

#[test]
fn each_notification_ends_exactly_one_wait() {
    let driver = Driver::new().unwrap();
    let returned = Arc::new(AtomicUsize::new(0));
    let waiters: Vec<_> = (0..4)
        .map(|_| {
            let (driver, returned) = (driver.clone(), returned.clone());
            thread::spawn(move || {
                let outcome = driver.wait(true, &mut Vec::new()).unwrap();
                returned.fetch_add(1, Ordering::SeqCst);
                outcome
            })
        })
        .collect();
    for n in 1..=4 {
        // Looks without waiting do not take it away.
        driver.notify();
        assert!(!driver.wait(false, &mut Vec::new()).unwrap().notified);
        while returned.load(Ordering::SeqCst) < n {
            thread::yield_now();
        }
        thread::sleep(SHORT);
        assert_eq!(returned.load(Ordering::SeqCst), n);
    }
    for waiter in waiters {
        let outcome = waiter.join().unwrap();
        assert!(outcome.notified && !outcome.relief && outcome.events == 0);
    }
}

#[test]
fn notifications_that_come_together_are_not_merged() {
    for _ in 0..50 {
        let driver = Driver::new().unwrap();
        let start = Arc::new(Barrier::new(4));
        let waiters: Vec<_> = (0..3)
            .map(|_| {
                let (driver, start) = (driver.clone(), start.clone());
                thread::spawn(move || {
                    start.wait();
                    driver.wait(true, &mut Vec::new()).unwrap().notified
                })
            })
            .collect();
        start.wait();
        (0..3).for_each(|_| driver.notify());
        for waiter in waiters {
            assert!(waiter.join().unwrap());
        }
    }
}

#[test]
fn a_notification_without_a_waiter_ends_the_next_wait() {
    let driver = Driver::new().unwrap();
    driver.notify();
    assert!(driver.wait(true, &mut Vec::new()).unwrap().notified);
}

#[test]
fn relief_is_reported_once_and_armed_anew_only_on_demand() {
    let driver = Driver::new().unwrap();
    driver.arm_relief(SHORT);
    driver.arm_relief(SHORT);
    assert!(!driver.has_interest(), "relief alone is no interest");
    let outcome = driver.wait(true, &mut Vec::new()).unwrap();
    assert!(outcome.relief && !outcome.notified);
    thread::sleep(2 * SHORT);
    assert!(!driver.wait(false, &mut Vec::new()).unwrap().relief);
    driver.arm_relief(SHORT);
    assert!(driver.wait(true, &mut Vec::new()).unwrap().relief);
}

#[test]
fn an_earlier_relief_replaces_a_later_one() {
    let driver = Driver::new().unwrap();
    driver.arm_relief(LONG);
    driver.arm_relief(SHORT);
    assert!(driver.wait(true, &mut Vec::new()).unwrap().relief);
}

#[test]
fn relief_comes_before_a_later_timer_and_the_timer_still_comes() {
    let driver = Driver::new().unwrap();
    let log = Arc::default();
    let (counted, waker) = counted(0, &log);
    let start = Instant::now();
    driver.add_timer(start + 20 * SHORT, &waker).unwrap();
    driver.arm_relief(SHORT);
    let mut ready = Vec::new();
    let first = driver.wait(true, &mut ready).unwrap();
    assert!(first.relief);
    while ready.is_empty() {
        driver.wait(true, &mut ready).unwrap();
    }
    assert!(Instant::now() >= start + 20 * SHORT, "a timer fired early");
    wake_all(&mut ready);
    assert_eq!(counted.count.load(Ordering::SeqCst), 1);
    assert!(!driver.has_interest());
}

#[test]
fn timers_fire_in_the_order_of_their_deadlines() {
    let driver = Driver::new().unwrap();
    let log = Arc::default();
    let start = Instant::now() + SHORT;
    for name in [7, 3, 9, 1, 5] {
        let (_, waker) = counted(name, &log);
        let at = start + Duration::from_micros(name as u64);
        driver.add_timer(at, &waker).unwrap();
    }
    let mut ready = Vec::new();
    while driver.has_interest() {
        driver.wait(true, &mut ready).unwrap();
        wake_all(&mut ready);
    }
    assert_eq!(*log.lock().unwrap(), [1, 3, 5, 7, 9]);
}

/// All become readable while nobody looks: the order is the kernel's, and goes through unchanged.
#[test]
fn readiness_wakes_in_the_order_in_which_the_descriptors_became_readable() {
    const PIPES: usize = 100;
    let driver = Driver::new().unwrap();
    let log = Arc::default();
    let mut pipes: Vec<_> = (0..PIPES)
        .map(|name| {
            let (reader, writer) = std::io::pipe().unwrap();
            let directions = Arc::<Directions>::default();
            let readiness = directions.of(Direction::Read);
            assert!(readiness.retract(readiness.look()));
            assert!(readiness.watch(&counted(name, &log).1));
            let watched = directions.clone();
            driver
                .watch(reader.as_fd(), Interest::READ, watched)
                .unwrap();
            (writer, reader)
        })
        .collect();
    let order: Vec<_> = (0..PIPES).map(|n| n * 37 % PIPES).collect();
    for &name in &order {
        pipes[name].0.write_all(b"x").unwrap();
    }
    let mut ready = Vec::new();
    while ready.len() < PIPES {
        driver.wait(true, &mut ready).unwrap();
    }
    wake_all(&mut ready);
    assert_eq!(*log.lock().unwrap(), order);
}

#[test]
fn a_cancelled_timer_wakes_nobody_and_leaves_no_interest() {
    let driver = Driver::new().unwrap();
    let log = Arc::default();
    let (counted, waker) = counted(0, &log);
    let key = timer(&driver, SHORT, &waker);
    assert!(driver.has_interest());
    driver.cancel_timer(key);
    driver.cancel_timer(key);
    assert!(!driver.has_interest());
    thread::sleep(2 * SHORT);
    let mut ready = Vec::new();
    assert_eq!(driver.wait(false, &mut ready).unwrap().events, 0);
    assert!(ready.is_empty());
    assert_eq!(counted.count.load(Ordering::SeqCst), 0);
    assert!(!driver.rewake_timer(key, &waker));
}

#[test]
fn the_hook_is_called_when_interest_begins_and_only_then() {
    let driver = Driver::new().unwrap();
    let calls = Arc::new(AtomicUsize::new(0));
    let counter = calls.clone();
    driver.on_interest(move || {
        counter.fetch_add(1, Ordering::SeqCst);
    });
    let first = timer(&driver, LONG, Waker::noop());
    let second = timer(&driver, LONG, Waker::noop());
    assert_eq!(calls.load(Ordering::SeqCst), 1);
    driver.cancel_timer(first);
    driver.cancel_timer(second);
    timer(&driver, LONG, Waker::noop());
    assert_eq!(calls.load(Ordering::SeqCst), 2);
}

#[test]
fn shutdown_wakes_everybody_and_refuses_newcomers() {
    let driver = Driver::new().unwrap();
    let log = Arc::default();
    let (counted, waker) = counted(0, &log);
    timer(&driver, LONG, &waker);
    driver.shutdown();
    assert_eq!(counted.count.load(Ordering::SeqCst), 1);
    assert!(!driver.has_interest());
    let refused = driver.add_timer(Instant::now(), &waker).unwrap_err();
    assert!(refused.to_string().contains("shut down"));
    let (reader, _writer) = std::io::pipe().unwrap();
    let refused = driver
        .watch(reader.as_fd(), Interest::READ, Arc::default())
        .unwrap_err();
    assert!(refused.to_string().contains("shut down"));
}

#[test]
fn many_threads_in_the_poller_share_the_events_without_losing_any() {
    const THREADS: usize = 4;
    const TIMERS: usize = 2000;
    let driver = Driver::new().unwrap();
    let log = Arc::default();
    let all: Vec<_> = (0..TIMERS).map(|name| counted(name, &log)).collect();
    let waiters: Vec<_> = (0..THREADS)
        .map(|_| {
            let driver = driver.clone();
            thread::spawn(move || {
                let mut ready = Vec::new();
                while !driver.wait(true, &mut ready).unwrap().notified {
                    wake_all(&mut ready);
                }
                wake_all(&mut ready);
            })
        })
        .collect();
    for (n, (_, waker)) in all.iter().enumerate() {
        timer(&driver, Duration::from_micros(n as u64 * 3 % 5000), waker);
    }
    while driver.has_interest() {
        thread::sleep(SHORT);
    }
    (0..THREADS).for_each(|_| driver.notify());
    for waiter in waiters {
        waiter.join().unwrap();
    }
    for (counted, _) in &all {
        assert_eq!(counted.count.load(Ordering::SeqCst), 1);
    }
}

fn poll_once<F: Future + Unpin>(future: &mut F, waker: &Waker) -> Poll<F::Output> {
    std::pin::Pin::new(future).poll(&mut Context::from_waker(waker))
}

#[test]
fn regular_files_are_refused_with_what_to_do_instead() {
    let file = std::fs::File::open("/proc/self/exe").unwrap();
    let error = Async::new(file).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::InvalidInput);
    assert!(error.to_string().contains("urgency::fs"), "{error}");
}

#[test]
fn a_pipe_can_be_waited_for_in_both_directions() {
    let (reader, writer) = std::io::pipe().unwrap();
    let (reader, writer) = (Async::new(reader).unwrap(), Async::new(writer).unwrap());
    const BYTES: usize = 300_000;
    let sender = crate::spawn(async move {
        let mut sent = 0;
        while sent < BYTES {
            let chunk = [7; 4096];
            let chunk = &chunk[..(BYTES - sent).min(4096)];
            sent += writer
                .write_with(|mut pipe| pipe.write(chunk))
                .await
                .unwrap();
        }
    });
    let received = crate::block_on(async move {
        let mut buffer = [0; 1000];
        let mut received = 0;
        loop {
            reader.readable().await.unwrap();
            match reader
                .read_with(|mut pipe| pipe.read(&mut buffer))
                .await
                .unwrap()
            {
                0 => break received,
                count => received += count,
            }
        }
    });
    sender.get().unwrap();
    assert_eq!(received, BYTES);
}

#[test]
fn a_descriptor_that_was_closed_never_wakes_its_successor_by_an_old_event() {
    let log = Arc::default();
    let mut reused = 0;
    // Other tests open descriptors, too; mostly the number is the same.
    for _ in 0..200 {
        let (reader, mut writer) = std::io::pipe().unwrap();
        let number = std::os::fd::AsRawFd::as_raw_fd(&reader);
        let old = Async::new(reader).unwrap();
        let (woken, waker) = counted(0, &log);
        let mut future = Box::pin(old.readable());
        assert!(poll_once(&mut future, &waker).is_pending());
        writer.write_all(b"x").unwrap();
        drop(future);
        drop(old);
        drop(writer);
        let before = woken.count.load(Ordering::SeqCst);
        assert!(before <= 1);

        let (reader, mut writer) = std::io::pipe().unwrap();
        reused += usize::from(std::os::fd::AsRawFd::as_raw_fd(&reader) == number);
        let new = Async::new(reader).unwrap();
        let (woken, waker) = counted(1, &log);
        let mut future = Box::pin(new.readable());
        assert!(poll_once(&mut future, &waker).is_pending());
        thread::yield_now();
        assert_eq!(woken.count.load(Ordering::SeqCst), 0);
        writer.write_all(b"y").unwrap();
        while woken.count.load(Ordering::SeqCst) == 0 {
            thread::yield_now();
        }
        assert!(poll_once(&mut future, &waker).is_ready());
    }
    assert_ne!(reused, 0, "the test tested nothing");
}

#[test]
fn a_descriptor_given_back_can_be_registered_again() {
    let (reader, mut writer) = std::io::pipe().unwrap();
    let log = Arc::default();
    let (_, waker) = counted(0, &log);
    let first = Async::new(reader).unwrap();
    assert!(poll_once(&mut Box::pin(first.readable()), &waker).is_pending());
    let again = Async::new(first.into_inner()).unwrap();
    writer.write_all(b"z").unwrap();
    crate::block_on(again.readable()).unwrap();
}

/// More than the first bound of watchers.
#[test]
fn many_tasks_that_watch_an_idle_descriptor_are_at_rest() {
    const TASKS: usize = 100;
    let runtime = crate::Runtime::builder().workers(1).build().unwrap();
    let (reader, _writer) = std::io::pipe().unwrap();
    let reader = Arc::new(Async::new(reader).unwrap());
    let polls = Arc::new(AtomicUsize::new(0));
    let _tasks: Vec<_> = (0..TASKS)
        .map(|_| {
            let (reader, polls) = (reader.clone(), polls.clone());
            runtime.spawn(std::future::poll_fn(move |cx| {
                polls.fetch_add(1, Ordering::SeqCst);
                reader.poll_readable(cx)
            }))
        })
        .collect();
    let start = Instant::now();
    let mut before = 0;
    loop {
        let now = polls.load(Ordering::SeqCst);
        if now >= TASKS && now == before {
            break;
        }
        assert!(start.elapsed() < 10_000 * SHORT, "{now} polls, and no end");
        before = now;
        thread::sleep(25 * SHORT);
    }
}

#[test]
fn one_open_file_in_two_sources_is_refused_only_for_the_same_descriptor() {
    let (reader, _writer) = std::io::pipe().unwrap();
    let first = Async::new(&reader).unwrap();
    let second = Async::new(&reader).unwrap();
    assert!(poll_once(&mut Box::pin(first.readable()), Waker::noop()).is_pending());
    match poll_once(&mut Box::pin(second.readable()), Waker::noop()) {
        Poll::Ready(Err(error)) => {
            assert!(error.to_string().contains("share one Async"), "{error}");
        }
        other => panic!("expected an error, got {other:?}"),
    }
}
