//! A loop that never ends never comes back to name itself, and is the one that an operator looks for: the statistics
//! name it while it goes on.

mod common;

use common::{all, ends};
use std::{
    hint,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed},
        mpsc::{Sender, channel},
    },
    thread,
};
use urgency::{At, JoinHandle, Overrun, Runtime, join};

urgency::levels! { App: Urgent > Idle }

/// Says that it has begun, and has no scheduling point until the flag is set.
fn spin(begun: &Sender<()>, stop: &AtomicBool) {
    begun.send(()).unwrap();
    while !stop.load(Relaxed) {
        hint::spin_loop();
    }
}

fn in_a_closure(at: At, begun: Sender<()>, stop: Arc<AtomicBool>) -> JoinHandle<()> {
    at.spawn_fn(move || spin(&begun, &stop))
}

fn in_a_poll(at: At, begun: Sender<()>, stop: Arc<AtomicBool>) -> JoinHandle<()> {
    at.spawn(async move { spin(&begun, &stop) })
}

fn in_a_stolen_fork(at: At, begun: Sender<()>, stop: Arc<AtomicBool>) -> JoinHandle<()> {
    at.spawn_fn(move || {
        let is_stolen = AtomicBool::new(false);
        let waits = || {
            while !is_stolen.load(Relaxed) {
                urgency::scheduling_point();
            }
        };
        let fork = || {
            is_stolen.store(true, Relaxed);
            spin(&begun, &stop);
        };
        join(waits, fork);
    })
}

/// What overran in the function of this name: how many go on, and how many came back.
fn counts(overruns: &[Overrun], place: &str) -> (usize, u64) {
    let its = || overruns.iter().filter(|it| it.what.contains(place));
    (its().map(|it| it.now).sum(), its().map(|it| it.times).sum())
}

#[test]
fn what_lost_its_worker_to_relief_is_named_while_it_goes_on() {
    type Place = fn(At, Sender<()>, Arc<AtomicBool>) -> JoinHandle<()>;
    let places: [(&str, usize, Place); 3] = [
        ("in_a_closure", 1, in_a_closure),
        ("in_a_poll", 1, in_a_poll),
        ("in_a_stolen_fork", 2, in_a_stolen_fork),
    ];
    for (place, workers, begin) in places {
        ends(move || {
            let runtime = Runtime::builder().workers(workers).levels::<App>();
            // A lowered thread would end late where other processes compute.
            let runtime = runtime.lower_threads(false).build().unwrap();
            let (stop, (begun, has_begun)) = (Arc::new(AtomicBool::new(false)), channel());
            let handle = begin(runtime.at(Idle), begun, stop.clone());
            has_begun.recv().unwrap();
            assert_eq!(counts(&runtime.stats().overruns, place).0, 0);
            let before = runtime.stats();
            // They need all workers at once, and do not sleep, so relief takes the loop's.
            while counts(&runtime.stats().overruns, place).0 == 0 {
                let began = Arc::new(AtomicUsize::new(0));
                let each = |_| {
                    let began = began.clone();
                    runtime.at(Urgent).spawn_fn(move || {
                        began.fetch_add(1, Relaxed);
                        while began.load(Relaxed) < workers {
                            hint::spin_loop();
                        }
                    })
                };
                let urgent: Vec<_> = (0..workers).map(each).collect();
                all(urgent);
            }
            let since = runtime.stats().since(&before);
            assert_eq!(counts(&since.overruns, place).0, 1);
            let its = |it: &&Overrun| it.what.contains(place) && it.now == 1;
            let it = since.overruns.iter().find(its).unwrap();
            assert_eq!(it.level, since.levels[1].name);
            assert!(!it.longest.is_zero());
            stop.store(true, Relaxed);
            handle.get().unwrap();
            // It counts as what came back a moment after its result is there.
            while !matches!(counts(&runtime.stats().overruns, place), (0, 1..)) {
                thread::yield_now();
            }
        });
    }
}
