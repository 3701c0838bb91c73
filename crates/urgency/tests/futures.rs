//! Several futures at once: `race`, `zip`, `join_all` and their kin, `select!`.

mod common;

use common::{poll, rounds};
use std::{
    future::{Future, pending, ready},
    pin::{Pin, pin},
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    task::Poll,
};
use urgency::{
    block_on,
    future::{Either, join_all, race, race_all, try_join, try_join_all, zip},
    select,
    sync::oneshot,
    time::{Duration, timeout},
    yield_now,
};

#[test]
fn of_two_that_are_ready_the_first_wins_and_the_others_are_dropped() {
    assert_eq!(block_on(race(ready(1), ready(2))), Either::First(1));
    assert_eq!(block_on(race(pending::<()>(), ready(2))), Either::Second(2));
    let (sender, receiver) = oneshot::channel::<()>();
    assert_eq!(block_on(race(receiver, ready(()))), Either::Second(()));
    assert!(sender.is_closed(), "the loser was dropped");
    let (place, output) = block_on(race_all([
        Box::pin(async { pending::<u32>().await }) as Pin<Box<dyn Future<Output = u32>>>,
        Box::pin(ready(7)),
        Box::pin(ready(8)),
    ]));
    assert_eq!((place, output), (1, 7));
}

#[test]
fn a_thousand_joined_futures_that_end_one_by_one_are_polled_once_for_each_wake_up() {
    let polls = Arc::new(AtomicUsize::new(0));
    let (senders, receivers): (Vec<_>, Vec<_>) =
        (0..rounds(1000)).map(|_| oneshot::channel()).unzip();
    let futures = receivers.into_iter().map(|receiver| {
        let polls = polls.clone();
        let mut receiver = Box::pin(receiver);
        std::future::poll_fn(move |cx| {
            polls.fetch_add(1, SeqCst);
            receiver.as_mut().poll(cx)
        })
    });
    let mut all = pin!(join_all(futures));
    assert!(poll(all.as_mut()).is_pending());
    let mut outputs = None;
    for (n, sender) in senders.into_iter().enumerate() {
        assert!(outputs.is_none());
        sender.send(n).unwrap();
        if let Poll::Ready(ready) = poll(all.as_mut()) {
            outputs = Some(ready);
        }
    }
    let outputs: Vec<_> = outputs.unwrap().into_iter().map(Result::unwrap).collect();
    assert_eq!(outputs, (0..rounds(1000)).collect::<Vec<_>>());
    assert_eq!(polls.load(SeqCst), 2 * rounds(1000));
}

#[test]
fn joins_end_with_all_or_with_the_first_error() {
    assert_eq!(block_on(zip(ready(1), ready('b'))), (1, 'b'));
    let fails = try_join(pending::<Result<(), _>>(), ready(Err::<(), _>("no")));
    assert_eq!(block_on(fails), Err("no"));
    assert_eq!(
        block_on(try_join(ready(Ok::<_, ()>(1)), ready(Ok(2)))),
        Ok((1, 2))
    );
    let of = |n: i32| async move { if n < 3 { Ok(n) } else { Err(n) } };
    assert_eq!(block_on(try_join_all([0, 1, 2].map(of))), Ok(vec![0, 1, 2]));
    assert_eq!(block_on(try_join_all([0, 5, 4].map(of))), Err(5));
    assert_eq!(block_on(join_all([0; 0].map(of))), []);
}

#[test]
fn select_takes_the_first_that_is_ready_and_its_code_may_leave_the_function() {
    async fn first(n: Option<u32>) -> Result<u32, &'static str> {
        let mut rounds = 0;
        loop {
            select! {
                biased;
                () = pending::<()>() => unreachable!(),
                found = ready(n) => {
                    rounds += 1;
                    if rounds == 3 {
                        return found.ok_or("nothing");
                    }
                }
                () = async { unreachable!("the one before was ready") } => {}
            }
        }
    }
    assert_eq!(block_on(first(Some(3))), Ok(3));
    assert_eq!(block_on(first(None)), Err("nothing"));
    let waited = block_on(async {
        select! {
            biased;
            () = pending() => 1,
            default => 2,
        }
    });
    assert_eq!(waited, 2);
}

#[test]
fn a_branch_that_is_always_ready_keeps_no_other_from_its_turn_unless_biased() {
    block_on(async {
        // Of 200 turns the second branch gets none with a chance of 2^-200.
        let mut turns = [0, 0];
        for _ in 0..200 {
            select! {
                () = ready(()) => turns[0] += 1,
                () = ready(()) => turns[1] += 1,
            }
        }
        assert!(turns.iter().all(|&n| n > 0), "{turns:?}");
        for _ in 0..200 {
            select! {
                biased;
                () = ready(()) => {}
                () = ready(()) => panic!("the first is ready"),
            }
        }
    });
}

#[test]
fn a_select_goes_on_without_the_branches_that_are_disabled() {
    block_on(async {
        let asks = false;
        let got = select! {
            n = ready(1), if asks => n,
            Some(n) = ready(None) => n,
            n = yielding(3) => n,
            else => 4,
        };
        assert_eq!(got, 3);
        let got = select! {
            n = ready(1), if asks => n,
            Some(n) = ready(None) => n,
            else => 4,
        };
        assert_eq!(got, 4);
    });

    async fn yielding(n: i32) -> i32 {
        yield_now().await;
        n
    }
}

/// Writes its number down when it is dropped.
struct Dropped<'a>(u32, &'a Mutex<Vec<u32>>);

impl Drop for Dropped<'_> {
    fn drop(&mut self) {
        self.1.lock().unwrap().push(self.0);
    }
}

#[test]
fn branches_are_dropped_in_the_order_in_which_they_are_written() {
    let order = Mutex::new(Vec::new());
    // Waits, or ends at once with an error.
    let branch = |number: u32, waits: bool| {
        let dropped = Dropped(number, &order);
        async move {
            let _dropped = &dropped;
            if waits {
                pending::<()>().await;
            }
            Err::<(), ()>(())
        }
    };
    let taken = || std::mem::take(&mut *order.lock().unwrap());
    block_on(async {
        select! {
            _ = branch(1, true) => unreachable!(),
            _ = branch(2, false) => {}
            _ = branch(3, true) => unreachable!(),
        }
        // What ends is dropped then.
        assert_eq!(taken(), [2, 1, 3]);
        let failed = urgency::try_join!(branch(1, true), branch(2, true), branch(3, false));
        assert!(failed.is_err());
        assert_eq!(taken(), [3, 1, 2]);
        let cut = timeout(Duration::ZERO, async {
            urgency::join!(branch(1, true), branch(2, true))
        });
        assert!(cut.await.is_err());
        assert_eq!(taken(), [1, 2]);
    });
}

#[test]
fn a_select_names_nothing_that_hides_a_name_of_the_program() {
    #[derive(Debug, PartialEq)]
    enum Won {
        Alice,
        Nobody,
    }
    let won = |alice: bool| {
        block_on(async {
            select! {
                Won::Alice = async { if alice { Won::Alice } else { Won::Nobody } } => Won::Alice,
                else => Won::Nobody,
            }
        })
    };
    assert_eq!([won(true), won(false)], [Won::Alice, Won::Nobody]);
}
