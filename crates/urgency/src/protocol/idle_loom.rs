//! Models of the idle set and the searchers, used as `sched/` uses them.
//!
//! In loom a sequentially consistent load returns nothing older than the newest sequentially consistent store, but for
//! one thing: what the word began with. So where a race is decided by such loads, its words are written before the
//! threads begin ([`used`]), and the orders need no fence in the model that the code does not have.

use super::*;
use crate::protocol::{ready::Ready, relief_timer::ReliefTimer};
use loom::{
    cell::UnsafeCell,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::*, fence},
    },
    thread,
};

/// A set whose count has been written before, and its searchers.
fn used(workers: usize, processors: usize) -> (Arc<Idle>, Arc<Searchers>) {
    let idle = Idle::new(workers, processors);
    idle.free.store(0, SeqCst);
    (Arc::new(idle), Arc::new(Searchers::new()))
}

/// A flag that has been written before.
fn flag(value: bool) -> Arc<AtomicBool> {
    let flag = AtomicBool::new(value);
    flag.store(value, SeqCst);
    Arc::new(flag)
}

/// One worker that searches and gives up, one inserter: the entry is seen by the worker, or the
/// inserter got the worker.
#[test]
fn no_worker_sleeps_while_an_entry_is_ready() {
    loom::model(|| {
        let idle = Arc::new(Idle::new(1, 1));
        let searchers = Arc::new(Searchers::new());
        let ready = Arc::new(Ready::new());
        let pool = Arc::new(AtomicBool::new(false));
        searchers.start(&idle);
        let (i, s) = (idle.clone(), searchers.clone());
        let (r, p) = (ready.clone(), pool.clone());
        let inserter = thread::spawn(move || {
            p.store(true, Release);
            r.announce(0);
            s.count() == 0 && i.claim(0).is_some()
        });
        let mut found = ready.levels() != 0;
        if found {
            searchers.stop(&idle);
        } else {
            searchers.give_up(&idle, 0);
            found = ready.levels_after_writes() != 0 && idle.claim(0).is_some();
        }
        let started = inserter.join().unwrap();
        assert!(found || started, "the entry sleeps with the worker");
    });
}

/// As above, by a thread that gives a worker away without a search, and whose look has no barrier of its own.
#[test]
fn no_worker_is_released_while_an_entry_is_ready() {
    loom::model(|| {
        let idle = Arc::new(Idle::new(1, 1));
        let pool = Arc::new(AtomicBool::new(false));
        let (i, p) = (idle.clone(), pool.clone());
        let inserter = thread::spawn(move || {
            p.store(true, Release);
            fence(SeqCst);
            i.is_any_hungry() && i.claim(0).is_some()
        });
        idle.release(0);
        let found = pool.load(Acquire) && idle.claim(0).is_some();
        let started = inserter.join().unwrap();
        assert!(found || started, "the entry sleeps with the worker");
    });
}

/// A searcher takes an entry, and the inserter of a second one has left that to the searcher. A woken worker wakes the
/// next.
#[test]
fn a_searcher_that_finds_work_starts_the_next_worker_or_the_inserter_does() {
    loom::model(|| {
        let idle = Arc::new(Idle::new(2, 2));
        let searchers = Arc::new(Searchers::new());
        let ready = Arc::new(Ready::new());
        let second = Arc::new(AtomicBool::new(false));
        idle.release(1);
        ready.announce(0);
        searchers.start(&idle);
        let (i, s) = (idle.clone(), searchers.clone());
        let (r, p) = (ready.clone(), second.clone());
        let inserter = thread::spawn(move || {
            p.store(true, Release);
            r.announce(0);
            s.count() == 0 && i.is_any_hungry() && i.claim(0).is_some()
        });
        searchers.stop(&idle);
        let is_wanted = idle.is_any_hungry() && searchers.count() == 0 && second.load(Acquire);
        let next = is_wanted && idle.claim(0).is_some();
        let started = inserter.join().unwrap();
        assert!(next || started, "the entry sleeps beside an idle worker");
        assert!(!idle.any(), "of two free workers one is counted");
    });
}

/// What a thread wrote of its worker before the release is there for the thread that claims it, also if the worker was
/// taken and released again between the claim's look and its step.
#[test]
fn what_was_written_before_a_release_is_there_after_the_claim() {
    for exactly in [false, true] {
        loom::model(move || {
            let idle = Arc::new(Idle::new(1, 1));
            let worker = Arc::new(UnsafeCell::new(0));
            let claims_and_uses = move |idle: &Idle, worker: &UnsafeCell<u32>| {
                let claimed = match exactly {
                    true => idle.claim_exactly(0),
                    false => idle.claim(0).is_some(),
                };
                if claimed {
                    // SAFETY: the calling thread has the worker; loom checks it.
                    worker.with_mut(|worker| unsafe { *worker += 1 });
                }
                claimed
            };
            idle.release(0);
            let (i, w) = (idle.clone(), worker.clone());
            let other = thread::spawn(move || {
                if claims_and_uses(&i, &w) {
                    i.release(0);
                }
            });
            claims_and_uses(&idle, &worker);
            other.join().unwrap();
        });
    }
}

/// Worker 1 goes idle and is claimed at once. Worker 0 is idle all the time.
#[test]
fn the_count_of_idle_workers_is_never_too_low_and_right_in_the_end() {
    for exactly in [false, true] {
        loom::model(move || {
            let idle = Arc::new(Idle::new(2, 2));
            idle.release(0);
            let i = idle.clone();
            let releaser = thread::spawn(move || i.release(1));
            let claimed = match exactly {
                true => idle.claim_exactly(1).then_some(1),
                false => idle.claim(1),
            };
            assert!(claimed == Some(0) || idle.any(), "worker 0 is idle");
            releaser.join().unwrap();
            for id in 0..2 {
                assert_eq!(idle.contains(id), claimed != Some(id));
                assert_eq!(idle.claim_exactly(id), claimed != Some(id));
            }
            assert!(!idle.any() && !idle.is_any_hungry(), "no worker is idle");
        });
    }
}

/// An entry comes as an expiry finds that a stack is held up, so that a worker is no longer in reserve: a worker is
/// started for the entry, or the timer is set again.
#[test]
fn an_entry_that_comes_as_the_reserve_gets_smaller_starts_a_worker_or_sets_the_timer() {
    loom::model(|| {
        let idle = Arc::new(Idle::new(2, 1));
        let relief_timer = Arc::new(ReliefTimer::new());
        let ready = Arc::new(Ready::new());
        idle.release(1);
        assert!(!idle.is_any_hungry() && relief_timer.arm());
        let start = |idle: &Idle| idle.is_any_hungry() && idle.claim(0).is_some();
        let (i, t, r) = (idle.clone(), relief_timer.clone(), ready.clone());
        let inserter = thread::spawn(move || {
            r.announce(0);
            let starts = start(&i);
            if !starts && !t.is_soon() {
                t.arm();
            }
            starts
        });
        relief_timer.expire();
        idle.set_held(1);
        let mut started = ready.levels_after_writes() != 0 && start(&idle);
        started |= inserter.join().unwrap();
        assert!(started || relief_timer.is_set(), "the entry waits for good");
        assert!(idle.is_any_hungry() != started && idle.in_reserve() == 0);
    });
}

/// Three workers on two processors, of which two run dry at once: one of them finds that it is hungry, and asks the
/// third one's stack for forks.
#[test]
fn of_workers_that_run_dry_at_once_the_last_is_hungry() {
    loom::model(|| {
        let idle = Arc::new(Idle::new(3, 2));
        let searchers = Arc::new(Searchers::new());
        let runs_dry = |idle: &Idle, searchers: &Searchers, id| {
            searchers.start(idle);
            let asks = idle.is_any_hungry();
            searchers.give_up(idle, id);
            asks
        };
        let (i, s) = (idle.clone(), searchers.clone());
        let other = thread::spawn(move || runs_dry(&i, &s, 0));
        let asks = runs_dry(&idle, &searchers, 1);
        assert!(other.join().unwrap() || asks, "a processor is free");
        assert!(idle.is_any_hungry(), "the next fork stays private");
        assert_eq!(searchers.count(), 0);
        assert!(idle.claim_exactly(0) && idle.claim_exactly(1));
        assert!(!idle.is_any_hungry(), "no worker is free");
    });
}

/// Two workers, one of them in reserve, and the other one busy: whatever the one without work does, it is in reserve.
#[test]
fn a_searcher_that_gives_up_counts_once_at_every_moment() {
    loom::model(|| {
        let (idle, searchers) = used(2, 1);
        searchers.start(&idle);
        let i = idle.clone();
        let enters = thread::spawn(move || i.is_any_hungry());
        searchers.give_up(&idle, 0);
        assert!(!enters.join().unwrap(), "a quota is exceeded");
    });
}

/// A worker goes idle, with a search or without, while another polls a task: the first fork of the poll is seen, or its
/// stack sees that a worker is idle, and publishes the fork.
#[test]
fn the_first_fork_of_a_poll_sees_the_worker_that_goes_idle_or_is_seen_by_it() {
    for searches in [false, true] {
        loom::model(move || {
            let (idle, searchers) = used(2, 2);
            let (hides, forked) = (flag(false), Arc::new(AtomicBool::new(false)));
            let i = idle.clone();
            let (h, j) = (hides.clone(), forked.clone());
            let polls = thread::spawn(move || {
                j.store(true, Relaxed);
                h.store(true, SeqCst);
                i.is_any_hungry()
            });
            if searches {
                searchers.start(&idle);
                searchers.give_up(&idle, 0);
            } else {
                idle.release(0);
            }
            // If it may hide forks the barrier on all processors follows, after which the fork is seen.
            let seen = hides.load(SeqCst) && forked.load(Relaxed);
            let published = polls.join().unwrap();
            assert!(
                seen || published,
                "the fork is hidden while a worker sleeps"
            );
        });
    }
}

/// A stack begins what may fork; until then its worker shows no level. A worker that goes idle asks the stack, or
/// the stack sees that worker, and its first fork looks around.
#[test]
fn a_stack_that_begins_sees_the_worker_that_goes_idle_or_is_asked_by_it() {
    loom::model(|| {
        let (idle, searchers) = used(2, 2);
        let shows_level = flag(false);
        let (i, level) = (idle.clone(), shows_level.clone());
        let begins = thread::spawn(move || {
            let has_room = !i.is_any_hungry();
            level.store(true, SeqCst);
            has_room && !i.is_any_hungry()
        });
        searchers.start(&idle);
        searchers.give_up(&idle, 0);
        let asks = shows_level.load(SeqCst);
        let keeps_forks = begins.join().unwrap();
        assert!(asks || !keeps_forks, "forks are kept while a worker sleeps");
    });
}

/// A stack in a poll that began while no worker was hungry is asked for forks while it has none, and forks later.
/// Whether or not it said that it hides none, the worker that goes idle sees the fork, or the fork sees the worker.
#[test]
fn the_first_fork_after_an_answer_sees_the_worker_that_goes_idle_or_is_seen_by_it() {
    loom::model(|| {
        let (idle, searchers) = used(2, 2);
        let hides = flag(true);
        let (forked, asked) = (
            Arc::new(AtomicBool::new(false)),
            Arc::new(AtomicBool::new(false)),
        );
        let i = idle.clone();
        let (h, j, a) = (hides.clone(), forked.clone(), asked.clone());
        let polls = thread::spawn(move || {
            let is_hungry = || i.is_any_hungry();
            // The scheduling point.
            let has_room = !is_hungry();
            if !has_room {
                h.store(false, SeqCst);
            }
            // The fork.
            j.store(true, Relaxed);
            crate::protocol::fence::light();
            if has_room {
                return a.load(Relaxed);
            }
            h.store(true, SeqCst);
            is_hungry()
        });
        searchers.start(&idle);
        searchers.give_up(&idle, 0);
        asked.store(true, Relaxed);
        let mut seen = forked.load(Relaxed);
        if !seen && hides.load(SeqCst) {
            crate::protocol::fence::heavy();
            seen = forked.load(Relaxed);
        }
        let published = polls.join().unwrap();
        assert!(
            seen || published,
            "the fork is hidden while a worker sleeps"
        );
    });
}
