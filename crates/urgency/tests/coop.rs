//! The budget of a poll, as `task::coop` shows it: to be without one, to take from it, to ask what is left.

mod common;

use common::ends;
use std::{
    future::{Future, pending, poll_fn, ready},
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    task::{Context, Poll, Waker},
    thread,
    time::Duration,
};
use urgency::{
    Runtime, block_on, spawn,
    sync::mpsc,
    task::coop::{consume_budget, cooperative, has_budget_remaining, poll_proceed, unconstrained},
    time::sleep,
};

urgency::levels! { App: Interactive > Batch }

/// As many operations as a poll has, and as many as take several.
const BUDGET: usize = 128;
const MANY: usize = 20 * BUDGET;

/// The result of `future`, and how many polls it took.
async fn polls<F: Future>(future: F) -> (F::Output, usize) {
    let mut future = pin!(future);
    let mut polls = 0;
    let count = |cx: &mut Context<'_>| {
        polls += 1;
        future.as_mut().poll(cx)
    };
    let output = poll_fn(count).await;
    (output, polls)
}

async fn receive_many() {
    let (sender, mut receiver) = mpsc::channel(MANY);
    for n in 0..MANY {
        sender.try_send(n).unwrap();
    }
    for n in 0..MANY {
        assert_eq!(receiver.recv().await, Some(n));
    }
}

#[test]
fn without_a_budget_one_poll_makes_all_operations_that_need_not_wait() {
    ends(|| {
        let runtime = Runtime::builder().workers(1).build().unwrap();
        let (_, with) = runtime.spawn(polls(receive_many())).get().unwrap();
        assert_eq!(with, MANY / BUDGET);
        let (_, without) = runtime
            .spawn(polls(unconstrained(receive_many())))
            .get()
            .unwrap();
        assert_eq!(without, 1);
    });
}

#[test]
fn after_a_future_without_a_budget_its_task_has_what_was_left_before() {
    ends(|| {
        let task = spawn(poll_fn(|cx| {
            for left in (0..BUDGET).rev() {
                assert!(has_budget_remaining());
                assert!(pin!(consume_budget()).poll(cx).is_ready());
                let nested = async {
                    receive_many().await;
                    has_budget_remaining()
                };
                assert_eq!(pin!(unconstrained(nested)).poll(cx), Poll::Ready(true));
                assert_eq!(has_budget_remaining(), left != 0);
            }
            assert!(pin!(consume_budget()).poll(cx).is_pending());
            Poll::Ready(())
        }));
        task.get().unwrap();
    });
}

#[test]
fn a_future_without_a_budget_is_without_one_after_it_has_waited_on_its_stack() {
    ends(|| {
        let runtime = Runtime::builder().workers(1).build().unwrap();
        let handle = runtime.handle().clone();
        let (_, count) = runtime
            .spawn(polls(unconstrained(async move {
                // It runs on top, with a budget of its own.
                handle.spawn(receive_many()).get().unwrap();
                receive_many().await;
                block_on(sleep(Duration::from_millis(1)));
                receive_many().await;
            })))
            .get()
            .unwrap();
        assert_eq!(count, 1);
    });
}

#[test]
fn more_urgent_work_runs_beside_a_future_without_a_budget() {
    ends(|| {
        let builder = Runtime::builder().workers(1);
        let runtime = builder.levels::<App>().build().unwrap();
        let over = Arc::new(AtomicBool::new(false));
        let theirs = over.clone();
        let loops = runtime.at(Batch).spawn(unconstrained(async move {
            while !theirs.load(Relaxed) {
                receive_many().await;
            }
        }));
        let urgent = runtime
            .at(Interactive)
            .spawn(async move { over.store(true, Relaxed) });
        urgent.get().unwrap();
        loops.get().unwrap();
    });
}

#[test]
fn a_cooperative_future_takes_from_the_budget_when_it_is_ready() {
    ends(|| {
        let runtime = Runtime::builder().workers(1).build().unwrap();
        let loops = async {
            for n in 0..MANY {
                assert_eq!(cooperative(ready(n)).await, n);
            }
        };
        assert_eq!(runtime.spawn(polls(loops)).get().unwrap().1, MANY / BUDGET);
        let looks = poll_fn(|cx| {
            for _ in 0..MANY {
                assert!(pin!(cooperative(pending::<()>())).poll(cx).is_pending());
            }
            Poll::Ready(has_budget_remaining())
        });
        assert!(runtime.spawn(looks).get().unwrap());
    });
}

/// Only operations on descriptors, which may be system calls, ask for the time.
#[test]
fn a_poll_of_cooperative_futures_and_timers_may_last() {
    ends(|| {
        let runtime = Runtime::builder().workers(1).build().unwrap();
        let last = async {
            for n in 0..BUDGET / 2 {
                assert_eq!(cooperative(ready(n)).await, n);
                sleep(Duration::ZERO).await;
                // Longer than a poll of operations on descriptors.
                thread::sleep(Duration::from_micros(100));
            }
        };
        assert_eq!(runtime.spawn(polls(last)).get().unwrap().1, 1);
    });
}

#[test]
fn a_cooperative_future_is_not_polled_once_the_budget_is_used_up() {
    ends(|| {
        let (is_polled, polls) = spawn(polls(async {
            for _ in 0..BUDGET {
                consume_budget().await;
            }
            let mut is_polled = false;
            let future = poll_fn(|_| {
                is_polled = true;
                Poll::Ready(())
            });
            let mut future = pin!(cooperative(future));
            poll_fn(|cx| {
                assert!(future.as_mut().poll(cx).is_pending());
                Poll::Ready(())
            })
            .await;
            is_polled
        }))
        .get()
        .unwrap();
        assert_eq!((is_polled, polls), (false, 1));
    });
}

#[test]
fn a_thread_that_polls_has_no_budget_to_use_up() {
    let is_left = block_on(async {
        for _ in 0..MANY {
            consume_budget().await;
        }
        has_budget_remaining()
    });
    assert!(is_left && has_budget_remaining());
    let mut cx = Context::from_waker(Waker::noop());
    assert!(pin!(receive_many()).poll(&mut cx).is_ready());
}

/// As [`cooperative`], by the parts.
fn proceeds_if(cx: &mut Context<'_>, is_ready: bool) -> Poll<()> {
    let proceeds = std::task::ready!(poll_proceed(cx));
    if !is_ready {
        return Poll::Pending;
    }
    proceeds.made_progress();
    Poll::Ready(())
}

#[test]
fn an_operation_that_made_no_progress_takes_nothing_from_the_budget() {
    ends(|| {
        let task = spawn(poll_fn(|cx| {
            for _ in 0..MANY {
                assert!(proceeds_if(cx, false).is_pending());
            }
            for _ in 0..BUDGET {
                assert!(has_budget_remaining());
                assert!(proceeds_if(cx, true).is_ready());
            }
            assert!(!has_budget_remaining());
            assert!(proceeds_if(cx, true).is_pending());
            Poll::Ready(())
        }));
        task.get().unwrap();
        // What is given back is what there was, whatever was taken meanwhile.
        let task = spawn(poll_fn(|cx| {
            let proceeds = poll_proceed(cx);
            for _ in 1..BUDGET {
                assert!(proceeds_if(cx, true).is_ready());
            }
            assert!(!has_budget_remaining());
            drop(proceeds);
            for _ in 0..BUDGET {
                assert!(proceeds_if(cx, true).is_ready());
            }
            Poll::Ready(has_budget_remaining())
        }));
        assert!(!task.get().unwrap());
    });
}

#[test]
fn where_there_is_no_budget_an_operation_gives_none_back() {
    ends(|| {
        let mut cx = Context::from_waker(Waker::noop());
        let outside = poll_proceed(&mut cx);
        assert!(outside.is_ready() && has_budget_remaining());
        let task = spawn(poll_fn(|cx| {
            let without = pin!(unconstrained(poll_fn(poll_proceed))).poll(cx);
            for _ in 0..BUDGET {
                assert!(proceeds_if(cx, true).is_ready());
            }
            drop(without);
            Poll::Ready(has_budget_remaining())
        }));
        assert!(!task.get().unwrap());
    });
}
