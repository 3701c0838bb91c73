//! Code that waits for a task of another job lends that job its priority for as long as it waits.

mod common;

use common::{ends, until};
use std::{
    future::{Future, IntoFuture, pending, poll_fn},
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
        mpsc,
    },
    task::Poll,
    time::Duration,
};
use urgency::{
    JoinHandle, Runtime, block_on,
    jobs::{CoreSet, JobHandle},
    join,
    policy::cores::Demand,
    scheduling_point, spawn, spawn_fn,
    sync::oneshot,
    time::{sleep, timeout},
};

/// A task of the calling job that ends when the job is as urgent as this.
async fn becomes(priority: u8) -> u8 {
    while Runtime::current().demand().priority != priority {
        sleep(Duration::from_millis(1)).await;
    }
    priority
}

/// A job of priority 9 whose task ends when the job has another priority, and the job's container. The job goes on.
fn calm(set: &CoreSet, until: u8) -> (JobHandle<()>, Runtime, JoinHandle<u8>) {
    let (tell, told) = mpsc::channel();
    let root = async move {
        let part = spawn(becomes(until));
        tell.send((Runtime::current(), part)).unwrap();
        pending().await
    };
    let job = set.job().priority(9).spawn(root).unwrap();
    let (container, part) = told.recv().unwrap();
    (job, container, part)
}

/// The code of a job that waits in this way has what it waits for, and the other job is as calm as before.
fn lends(waits: impl FnOnce(JoinHandle<u8>) -> u8 + Send + 'static) {
    ends(|| {
        let set = CoreSet::builder().cores(2).build().unwrap();
        let (calm, container, part) = calm(&set, 3);
        let urgent = set.job().priority(3).spawn_fn(|| waits(part)).unwrap();
        assert_eq!(urgent.get().unwrap(), 3);
        assert_eq!(container.demand().priority, 9);
        calm.cancel();
        set.drain();
    });
}

#[test]
fn a_job_for_whose_task_more_urgent_code_waits_is_as_urgent_until_that_ends() {
    lends(|part| part.get().unwrap());
    lends(|part| block_on(async { part.await.unwrap() }));
    lends(|part| spawn(async { part.await.unwrap() }).get().unwrap());
    lends(|part| spawn_fn(|| part.get().unwrap()).get().unwrap());
    lends(|part| join(|| (), || part.get().unwrap()).1);
    lends(|part| common::stolen(|| part.get().unwrap()));
    lends(|part| part.share().get().unwrap());
    lends(|part| spawn(part.share()).get().unwrap().unwrap());
}

#[test]
fn what_a_wait_for_a_part_lends_follows_the_waiter_and_ends_when_it_is_given_up() {
    ends(|| {
        let set = CoreSet::builder().cores(2).build().unwrap();
        let (calm, container, part) = calm(&set, 0);
        let priority_is = |priority| until(|| container.demand().priority == priority);
        let part = part.share();
        let waits = |priority| {
            let part = part.clone();
            let job = set.job().priority(priority);
            let (give_up, given_up) = oneshot::channel::<()>();
            let root = async move {
                urgency::select! {
                    _ = part => unreachable!("it goes on"),
                    _ = given_up => pending::<()>().await,
                }
            };
            (job.spawn(root).unwrap(), give_up)
        };
        let (first, first_gives_up) = waits(5);
        priority_is(5);
        let (second, _keeps) = waits(3);
        priority_is(3);
        let demand = Demand {
            priority: 7,
            ..Demand::default()
        };
        second.set_demand(demand).unwrap();
        priority_is(5);
        first_gives_up.send(()).unwrap();
        priority_is(7);
        second.cancel();
        priority_is(9);
        first.cancel();
        calm.cancel();
        set.drain();
    });
}

#[test]
fn a_wait_for_a_part_that_takes_too_long_lends_nothing_afterwards() {
    ends(|| {
        let set = CoreSet::builder().cores(2).build().unwrap();
        let (calm, container, part) = calm(&set, 0);
        let (lent, was_lent) = mpsc::channel();
        let look = container.clone();
        let root = async move {
            let mut part = part;
            let too_long = sleep(Duration::from_millis(20));
            urgency::select! {
                _ = &mut part => unreachable!("it goes on"),
                () = too_long => (),
            }
            lent.send(look.demand().priority).unwrap();
            assert!(timeout(Duration::from_millis(1), part).await.is_err());
            pending::<()>().await;
        };
        let urgent = set.job().priority(3).spawn(root).unwrap();
        assert_eq!(was_lent.recv().unwrap(), 3);
        until(|| container.demand().priority == 9);
        assert!(!urgent.is_over());
        urgent.cancel();
        calm.cancel();
        set.drain();
    });
}

#[test]
fn a_job_for_which_a_job_waits_whose_task_is_awaited_is_as_urgent_too() {
    ends(|| {
        let set = CoreSet::builder().cores(2).build().unwrap();
        let last = set.job().priority(9).spawn(becomes(2)).unwrap();
        let (tell, told) = mpsc::channel();
        let root = async move {
            let part = spawn(async move { last.await.unwrap() });
            tell.send(part).unwrap();
            pending::<()>().await;
        };
        let middle = set.job().priority(5).spawn(root).unwrap();
        let part = told.recv().unwrap();
        let first = set.job().priority(2).spawn_fn(|| part.get().unwrap());
        assert_eq!(first.unwrap().get().unwrap(), 2);
        middle.cancel();
        set.drain();
    });
}

#[test]
fn a_job_may_wait_for_a_task_of_a_job_that_waits_for_it() {
    ends(|| {
        let set = CoreSet::builder().cores(2).build().unwrap();
        let (give, given) = oneshot::channel::<JoinHandle<u8>>();
        let urgent = set.job().priority(1).spawn(async {
            let part = given.await.unwrap();
            part.await.unwrap()
        });
        let urgent = urgent.unwrap();
        let calm = set.job().priority(9).spawn(async move {
            let (go_on, goes_on) = oneshot::channel();
            let part = spawn(async {
                goes_on.await.unwrap();
                7
            });
            give.send(part).ok().unwrap();
            // From then on the urgent job waits for the task, and only then this one waits for the urgent job.
            becomes(1).await;
            let (part, _) = urgency::join!(urgent.into_future(), async { go_on.send(()).unwrap() });
            part.unwrap()
        });
        assert_eq!(calm.unwrap().get().unwrap(), 7);
    });
}

#[test]
fn a_runtime_beside_the_jobs_lends_its_priority_to_the_job_of_a_task_that_it_awaits() {
    ends(|| {
        let demand = Demand {
            priority: 4,
            ..Demand::default()
        };
        let service = Runtime::builder().workers(2).demand(demand);
        let service = service.build().unwrap();
        let set = CoreSet::beside(&service);
        let (calm, container, part) = calm(&set, 4);
        assert_eq!(service.run(|| part.get().unwrap()), 4);
        assert_eq!(container.demand().priority, 9);
        calm.cancel();
        set.drain();
    });
}

#[test]
fn a_wait_for_a_task_of_a_less_urgent_job_ends_while_urgent_jobs_fill_all_cores() {
    for cores in [1, 2] {
        ends(move || {
            let set = CoreSet::builder().cores(cores).build().unwrap();
            let (tell, told) = mpsc::channel();
            let goes_on = Arc::new(AtomicBool::new(false));
            let holds = goes_on.clone();
            let root = async move {
                let part = spawn_fn(move || {
                    while !holds.load(SeqCst) {
                        scheduling_point();
                    }
                    scheduling_point();
                });
                tell.send(part).unwrap();
                pending::<()>().await;
            };
            let calm = set.job().priority(9).spawn(root).unwrap();
            let part = told.recv().unwrap();
            let end = Arc::new(AtomicBool::new(false));
            let begun = Arc::new(AtomicUsize::new(0));
            let fill = || {
                let (end, begun) = (end.clone(), begun.clone());
                let root = move || {
                    begun.fetch_add(1, SeqCst);
                    while !end.load(SeqCst) {
                        join(scheduling_point, scheduling_point);
                    }
                };
                set.job().priority(3).max_cpus(1).spawn_fn(root).unwrap()
            };
            let fillers: Vec<_> = (0..cores).map(|_| fill()).collect();
            until(|| begun.load(SeqCst) == cores);
            let waits = set
                .job()
                .priority(2)
                .spawn(async { part.await.unwrap() })
                .unwrap();
            goes_on.store(true, SeqCst);
            waits.get().unwrap();
            assert!(fillers.iter().all(|filler| !filler.is_over()));
            end.store(true, SeqCst);
            fillers.into_iter().for_each(|filler| filler.get().unwrap());
            calm.cancel();
            set.drain();
        });
    }
}

/// The handle is polled as its task ends, and kept: nobody polls it again. (The job was as urgent as the waiter from
/// then on, after 138 of 2,999 waits.)
#[test]
fn a_wait_that_begins_as_the_task_ends_lends_nothing_beyond_it() {
    ends(|| {
        let keeper = Runtime::builder().workers(4).build().unwrap();
        let set = CoreSet::beside(&keeper);
        let (ask, asked) = mpsc::channel::<Arc<AtomicBool>>();
        let (give, given) = mpsc::channel();
        let root = move || {
            give.send(Err(Runtime::current())).unwrap();
            for ends in asked {
                let spins = move || {
                    while !ends.load(SeqCst) {
                        std::hint::spin_loop();
                    }
                };
                give.send(Ok(spawn_fn(spins))).unwrap();
            }
        };
        let calm = set.job().priority(5).spawn_fn(root).unwrap();
        let container = given.recv().unwrap().unwrap_err();
        for round in 0..500u32 {
            let (end, begins) = (Arc::new(AtomicBool::new(false)), AtomicBool::new(false));
            ask.send(end.clone()).unwrap();
            let mut part = given.recv().unwrap().unwrap();
            let begins = Arc::new(begins);
            let begun = begins.clone();
            let polls = keeper.spawn(async move {
                begun.store(true, SeqCst);
                let is_ready = poll_fn(|cx| Poll::Ready(Pin::new(&mut part).poll(cx).is_ready()));
                (is_ready.await, part)
            });
            while !begins.load(SeqCst) {
                std::hint::spin_loop();
            }
            (0..round % 40 * 5).for_each(|_| std::hint::spin_loop());
            end.store(true, SeqCst);
            let (is_ready, part) = polls.get().unwrap();
            if !is_ready {
                until(|| part.is_finished() && container.demand().priority == 5);
            }
        }
        drop(ask);
        calm.get().unwrap();
        set.drain();
    });
}
