//! Timers as a program uses them.

use super::*;
use crate::{block_on, spawn};
use std::{
    future::{pending, poll_fn, ready},
    pin::Pin,
    sync::{Arc, Mutex},
    task::{Context, Poll, Waker},
};

const SHORT: Duration = Duration::from_millis(3);
const LONG: Duration = Duration::from_secs(3600);

#[test]
fn a_sleep_is_never_over_early() {
    for micros in [0, 1, 10, 100, 1000, 5000] {
        let duration = Duration::from_micros(micros);
        let deadline = Instant::now() + duration;
        block_on(sleep(duration));
        assert!(Instant::now() >= deadline);
    }
}

#[test]
fn a_sleep_starts_when_it_is_made() {
    let sleep = sleep(SHORT);
    std::thread::sleep(SHORT);
    let mut sleep = sleep;
    assert!(poll(&mut sleep).is_ready());
    assert!(sleep.is_elapsed());
    assert!(poll(&mut sleep).is_ready(), "and stays over");
}

fn poll<F: Future + Unpin>(future: &mut F) -> Poll<F::Output> {
    Pin::new(future).poll(&mut Context::from_waker(Waker::noop()))
}

#[test]
fn ten_thousand_sleeps_end_each_once_and_in_order_of_deadline() {
    const COUNT: u64 = 10_000;
    let start = Instant::now() + 20 * SHORT;
    let order = Arc::new(Mutex::new(Vec::new()));
    let handles: Vec<_> = (0..COUNT)
        .map(|n| {
            // A permutation of the deadlines, one each microsecond.
            let at = n * 7919 % COUNT;
            let order = order.clone();
            spawn(async move {
                let deadline = start + Duration::from_micros(at);
                sleep_until(deadline).await;
                assert!(Instant::now() >= deadline);
                order.lock().unwrap().push(at);
            })
        })
        .collect();
    for handle in handles {
        handle.get().unwrap();
    }
    let mut order = std::mem::take(&mut *order.lock().unwrap());
    assert_eq!(order.len(), COUNT as usize);
    order.sort_unstable();
    order.dedup();
    assert_eq!(order.len(), COUNT as usize);
}

#[test]
fn a_reset_sleep_ends_at_its_new_time_only() {
    let mut rest = sleep(SHORT);
    assert!(poll(&mut rest).is_pending());
    rest.reset(Instant::now() + LONG);
    std::thread::sleep(2 * SHORT);
    assert!(poll(&mut rest).is_pending());
    let deadline = Instant::now() + SHORT;
    rest.reset(deadline);
    block_on(&mut rest);
    assert!(Instant::now() >= deadline);
}

#[test]
fn a_sleep_wakes_the_task_that_polled_it_last() {
    let mut rest = sleep(2 * SHORT);
    assert!(poll(&mut rest).is_pending());
    // Would hang if the first waker were the one that is woken.
    block_on(rest);
}

#[test]
fn a_sleep_beyond_the_clock_never_ends_and_does_not_panic() {
    assert!(poll(&mut sleep(Duration::MAX)).is_pending());
    let limited = block_on(timeout(SHORT, sleep(Duration::MAX)));
    assert!(limited.is_err());
}

#[test]
fn a_timeout_lets_a_result_in_time_through_and_cuts_off_the_rest() {
    assert_eq!(block_on(timeout(LONG, ready(5))), Ok(5));
    assert_eq!(block_on(timeout(Duration::ZERO, ready(5))), Ok(5));
    let elapsed = block_on(timeout(SHORT, pending::<()>())).unwrap_err();
    let error = std::io::Error::from(elapsed);
    assert_eq!(error.kind(), std::io::ErrorKind::TimedOut);
    let past = Instant::now();
    assert!(block_on(deadline(past, pending::<()>())).is_err());
}

#[test]
fn a_timeout_drops_its_future_with_itself() {
    let alive = Arc::new(());
    let inside = alive.clone();
    let limited = timeout(SHORT, async move {
        let _inside = inside;
        pending::<()>().await
    });
    assert!(block_on(limited).is_err());
    assert_eq!(Arc::strong_count(&alive), 1);
}

#[test]
fn a_tick_that_was_missed_is_skipped_and_the_grid_stays() {
    let start = Instant::now();
    let mut ticks = interval_at(start, SHORT);
    assert_eq!(block_on(ticks.tick()), start);
    std::thread::sleep(SHORT * 5 / 2);
    let second = block_on(ticks.tick());
    let periods = |tick: Instant| (tick - start).as_nanos() as f64 / SHORT.as_nanos() as f64;
    assert!(periods(second) >= 2.0, "skipped: {}", periods(second));
    let third = block_on(ticks.tick());
    for tick in [second, third] {
        assert_eq!(periods(tick).fract(), 0.0, "off the grid");
    }
    assert!(third > second);
}

#[test]
fn a_dropped_tick_is_not_lost() {
    block_on(async {
        let mut ticks = interval_at(Instant::now() + SHORT, LONG);
        {
            let mut tick = std::pin::pin!(ticks.tick());
            poll_fn(|cx| {
                assert!(tick.as_mut().poll(cx).is_pending());
                Poll::Ready(())
            })
            .await;
        }
        ticks.tick().await;
    });
}

#[test]
#[should_panic = "period is zero"]
fn an_interval_of_zero_is_refused() {
    let _ = interval(Duration::ZERO);
}
