//! A task whose operations are always ready lets the other tasks of its level run: sockets, timers whose time is over.

mod common;

use common::ends;
use std::{
    future::{pending, poll_fn},
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    thread,
};
use urgency::{
    Runtime,
    net::{UdpSocket, UnixStream},
    time::{Duration, Instant, interval, sleep, sleep_until, timeout},
};

/// Eight tasks on two workers repeat `operation` until a task that is spawned after them has run.
fn lets_others_run<F: Future<Output = ()> + Send>(
    operation: impl Fn() -> F + Send + Sync + 'static,
) {
    ends(move || {
        let runtime = Runtime::builder().workers(2).build().unwrap();
        let (stop, operation) = (Arc::new(AtomicBool::new(false)), Arc::new(operation));
        let tasks: Vec<_> = (0..8)
            .map(|_| {
                let (stop, operation) = (stop.clone(), operation.clone());
                runtime.spawn(async move {
                    while !stop.load(Relaxed) {
                        operation().await;
                    }
                })
            })
            .collect();
        runtime
            .spawn(async move { stop.store(true, Relaxed) })
            .detach();
        tasks.into_iter().for_each(|task| task.get().unwrap());
    });
}

#[test]
fn a_task_whose_socket_is_always_ready_lets_others_run() {
    let echo = || async {
        let (one, other) = UnixStream::pair().unwrap();
        for _ in 0..1000 {
            assert_eq!(one.write(b"x").await.unwrap(), 1);
            assert_eq!(other.read(&mut [0; 1]).await.unwrap(), 1);
        }
    };
    lets_others_run(echo);
}

#[test]
fn a_task_that_sends_datagrams_to_itself_lets_others_run() {
    let echo = || async {
        let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let own = socket.local_addr().unwrap();
        for _ in 0..1000 {
            socket.send_to(b"x", own).await.unwrap();
            socket.recv_from(&mut [0; 1]).await.unwrap();
        }
    };
    lets_others_run(echo);
}

#[test]
fn a_task_whose_timers_are_over_lets_others_run() {
    lets_others_run(|| sleep(Duration::ZERO));
    lets_others_run(|| sleep_until(Instant::now()));
    lets_others_run(|| async {
        timeout(Duration::ZERO, pending::<()>()).await.unwrap_err();
    });
    lets_others_run(|| async {
        let mut ticks = interval(Duration::from_nanos(1));
        for _ in 0..1000 {
            ticks.tick().await;
        }
    });
}

/// What the limit is for uses up the budget in each poll.
/// Far fewer operations than a poll's budget has, of which each few take longer than a poll is to last.
#[test]
fn a_poll_whose_operations_last_lets_others_go_first() {
    const OPERATIONS: usize = 64;
    ends(|| {
        let runtime = Runtime::builder().workers(1).build().unwrap();
        let reads = async {
            let (one, other) = UnixStream::pair().unwrap();
            for _ in 0..OPERATIONS / 2 {
                thread::sleep(Duration::from_micros(100));
                assert_eq!(one.write(b"x").await.unwrap(), 1);
                assert_eq!(other.read(&mut [0; 1]).await.unwrap(), 1);
            }
        };
        let mut polls = 0;
        let task = runtime.spawn(async move {
            let mut reads = pin!(reads);
            poll_fn(|cx| {
                polls += 1;
                reads.as_mut().poll(cx)
            })
            .await;
            polls
        });
        let polls = task.get().unwrap();
        assert!(
            (OPERATIONS / 8..=OPERATIONS / 2).contains(&polls),
            "{polls} polls for {OPERATIONS} operations"
        );
    });
}

#[test]
fn a_time_limit_ends_an_operation_that_is_always_ready() {
    ends(|| {
        let runtime = Runtime::builder().workers(1).build().unwrap();
        let echo = async {
            let (one, other) = UnixStream::pair().unwrap();
            loop {
                one.write(b"x").await.unwrap();
                other.read(&mut [0; 1]).await.unwrap();
            }
        };
        for limit in [Duration::ZERO, Duration::from_millis(20)] {
            let limited = runtime.spawn(timeout(limit, async {
                loop {
                    sleep(Duration::ZERO).await;
                }
            }));
            let _: Result<(), _> = limited.get().unwrap();
        }
        let limited = runtime.spawn(timeout(Duration::from_millis(20), echo));
        let _: Result<(), _> = limited.get().unwrap();
    });
}

/// More descriptors than one poll has operations.
#[test]
fn of_many_sockets_that_one_task_watches_the_last_is_read_too() {
    ends(|| {
        let runtime = Runtime::builder().workers(1).build().unwrap();
        let pairs: Vec<_> = (0..400).map(|_| UnixStream::pair().unwrap()).collect();
        let (ours, theirs): (Vec<_>, Vec<_>) = pairs.into_iter().unzip();
        let watches = runtime.spawn(async move {
            let reads = theirs.iter().map(|socket| async move {
                let mut byte = [0];
                socket.read(&mut byte).await.unwrap();
                byte[0]
            });
            let mut reads: Vec<_> = reads.map(Box::pin).collect();
            std::future::poll_fn(move |cx| {
                let mut ready = reads.iter_mut().map(|read| read.as_mut().poll(cx));
                ready
                    .find(|read| read.is_ready())
                    .unwrap_or(std::task::Poll::Pending)
            })
            .await
        });
        let last = ours.last().unwrap();
        std::thread::sleep(Duration::from_millis(20));
        assert_eq!(runtime.block_on(last.write(b"x")).unwrap(), 1);
        assert_eq!(watches.get().unwrap(), b'x');
    });
}
