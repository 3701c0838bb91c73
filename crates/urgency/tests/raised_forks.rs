//! Code that more urgent code waits for may itself wait for forks that others stole, or for the tasks of a set. These
//! are raised as well: what lies between the two levels, and never ends here, does not keep them from running.

mod common;

use common::{ends, until, with_levels};
use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
    mpsc,
};
use urgency::{
    Runtime, blocking, current_level, join, life::task_scope, scheduling_point, scope, sync::Mutex,
    task::JoinSet,
};

urgency::levels! { App: Urgent > Between > Background }

/// What the parties have said.
#[derive(Default)]
struct Said {
    /// How many forks thieves have begun.
    stolen: AtomicUsize,
    /// How many closures of the level between have begun.
    between: AtomicUsize,
    go: AtomicBool,
    stop: AtomicBool,
}

impl Said {
    /// A fork that ends when all workers have been at the level between.
    fn stolen(&self) {
        self.stolen.fetch_add(1, SeqCst);
        while !self.go.load(SeqCst) {
            scheduling_point();
        }
    }

    fn await_thief(&self, count: usize) {
        while self.stolen.load(SeqCst) < count {
            std::hint::spin_loop();
        }
    }

    fn between(&self) {
        self.between.fetch_add(1, SeqCst);
        while !self.stop.load(SeqCst) {
            scheduling_point();
        }
    }
}

/// What the background computes.
type Computes = fn(&Arc<Said>);

/// One fork, of a `join`.
fn joins(said: &Arc<Said>) {
    join(|| said.await_thief(1), || said.stolen());
}

/// One fork, of a `scope`.
fn scopes(said: &Arc<Said>) {
    scope(|scope| {
        scope.spawn(|| said.stolen());
        scheduling_point();
        said.await_thief(1);
    });
}

/// A fork of a fork.
fn nests(said: &Arc<Said>) {
    let inner = || join(|| said.await_thief(2), || said.stolen());
    let outer = || {
        said.stolen.fetch_add(1, SeqCst);
        inner();
    };
    join(|| said.await_thief(1), outer);
}

/// A task of a set whose tasks are taken as they end.
fn joins_set(said: &Arc<Said>) {
    let said = said.clone();
    urgency::block_on(async {
        let mut set = JoinSet::new();
        set.spawn_fn(move || said.stolen());
        while set.join_next().await.is_some() {}
    });
}

/// A task of a scope.
fn scopes_tasks(said: &Arc<Said>) {
    let said = said.clone();
    urgency::block_on(task_scope(async move |scope| {
        scope.spawn_fn(move || said.stolen());
    }));
}

/// The background computes, and then no worker is left to it. It computes on when urgent code waits for its end, or for
/// the lock that it keeps.
fn is_raised((computes, forks): (Computes, usize), workers: usize, by_lock: bool) {
    let runtime = with_levels::<App>(workers);
    let (said, lock) = (Arc::new(Said::default()), Arc::new(Mutex::new(())));
    let background = {
        let (said, lock) = (said.clone(), lock.clone());
        Background.on(&runtime).spawn_fn(move |_| {
            let guard = by_lock.then(|| lock.blocking_lock());
            computes(&said);
            drop(guard);
        })
    };
    // A worker steals.
    until(|| said.stolen.load(SeqCst) == forks);
    for _ in 0..=workers {
        let said = said.clone();
        let between = Between.on(&runtime);
        between.spawn_fn(move |_| said.between()).detach();
    }
    // The level between has all workers.
    until(|| said.between.load(SeqCst) >= workers);
    said.go.store(true, SeqCst);
    let ended = Arc::new(AtomicBool::new(false));
    let ends = ended.clone();
    let urgent = move |cx: urgency::level::Cx<'_, Urgent>| {
        if by_lock {
            drop(lock.blocking_lock());
        } else {
            background.boost_get(cx).unwrap();
        }
        ends.store(true, SeqCst);
    };
    Urgent.on(&runtime).spawn_fn(urgent).detach();
    // Urgent code does not wait for good.
    until(|| ended.load(SeqCst));
    said.stop.store(true, SeqCst);
}

fn is_raised_for_both(computes: Computes, forks: usize, workers: &[usize]) {
    for &workers in workers {
        for by_lock in [true, false] {
            is_raised((computes, forks), workers, by_lock);
        }
    }
}

#[test]
fn a_fork_that_a_thief_has_is_raised_with_its_join() {
    is_raised_for_both(joins, 1, &[2, 8]);
}

#[test]
fn a_child_that_a_thief_has_is_raised_with_its_scope() {
    is_raised_for_both(scopes, 1, &[2, 8]);
}

#[test]
fn a_fork_that_was_stolen_from_a_thief_is_raised() {
    is_raised_for_both(nests, 2, &[3, 8]);
}

#[test]
fn a_task_of_a_join_set_is_raised_with_the_task_that_waits_for_the_set() {
    is_raised_for_both(joins_set, 1, &[1, 2, 8]);
}

#[test]
fn a_task_of_a_task_scope_is_raised_with_its_scope() {
    is_raised_for_both(scopes_tasks, 1, &[1, 2, 8]);
}

/// A fork whose owner waits for it, and runs a fork of that fork on top of its wait: `below` is what the thief runs
/// meanwhile, `on_top` what the owner does.
fn leaps(said: &Said, below: impl FnOnce() + Send, on_top: impl FnOnce() + Send) {
    let stolen = || {
        said.stolen.fetch_add(1, SeqCst);
        join(below, on_top);
    };
    join(|| said.await_thief(1), stolen);
}

fn is_urgent() -> bool {
    current_level() == Urgent.id()
}

#[test]
fn a_lock_that_is_kept_on_top_of_a_wait_for_forks_raises_its_keeper_and_not_the_forks() {
    ends(|| {
        let runtime = with_levels::<App>(2);
        let (said, lock) = (Arc::new(Said::default()), Arc::new(Mutex::new(())));
        let (is_locked, rounds) = (
            Arc::new(AtomicBool::new(false)),
            Arc::new(AtomicUsize::new(0)),
        );
        let urgent_rounds = Arc::new(AtomicUsize::new(0));
        let background = {
            let (said, lock, is_locked) = (said.clone(), lock.clone(), is_locked.clone());
            let urgent_rounds = urgent_rounds.clone();
            Background.on(&runtime).spawn_fn(move |_| {
                let below = || {
                    while !said.stop.load(SeqCst) {
                        scheduling_point();
                        rounds.fetch_add(1, SeqCst);
                        urgent_rounds.fetch_add(usize::from(is_urgent()), SeqCst);
                    }
                };
                let on_top = || {
                    let guard = lock.blocking_lock();
                    is_locked.store(true, SeqCst);
                    while !is_urgent() {
                        scheduling_point();
                    }
                    // Urgent code waits for the lock. The thief goes on as it was.
                    let seen = rounds.load(SeqCst);
                    while rounds.load(SeqCst) < seen + 300_000 {
                        std::hint::spin_loop();
                    }
                    said.stop.store(true, SeqCst);
                    drop(guard);
                };
                leaps(&said, below, on_top);
            })
        };
        until(|| is_locked.load(SeqCst));
        let urgent = Urgent.on(&runtime).spawn(async move |_| {
            drop(lock.lock().await);
        });
        urgent.erase().get().unwrap();
        background.erase().get().unwrap();
        assert_eq!(urgent_rounds.load(SeqCst), 0);
    });
}

/// No thread can be had for the code that keeps the lock, so the stack that waits for the fork runs it.
#[test]
fn a_lock_that_other_work_keeps_on_top_of_a_wait_for_forks_does_not_raise_the_forks() {
    ends(|| {
        let builder = Runtime::builder().workers(2).thread_limit(4);
        let runtime = builder.levels::<App>().build().unwrap();
        let sleeps = |thread| {
            let (wakes, sleeper) = mpsc::channel::<()>();
            let (says, begun) = mpsc::channel();
            let sleeps = runtime.at(thread).spawn_fn(move || {
                blocking(|| {
                    says.send(()).unwrap();
                    let _ = sleeper.recv();
                });
            });
            begun.recv().unwrap();
            (wakes, sleeps)
        };
        let asleep = [Background, Background].map(sleeps);
        let (said, lock) = (Arc::new(Said::default()), Arc::new(Mutex::new(())));
        let is_locked = Arc::new(AtomicBool::new(false));
        let rounds = Arc::new(AtomicUsize::new(0));
        let urgent_rounds = Arc::new(AtomicUsize::new(0));
        let waits = {
            let (said, is_locked) = (said.clone(), is_locked.clone());
            let (rounds, urgent_rounds) = (rounds.clone(), urgent_rounds.clone());
            runtime.at(Background).spawn_fn(move || {
                let stolen = || {
                    said.stolen.fetch_add(1, SeqCst);
                    // At a scheduling point the thief might run that work on top of itself.
                    while !is_locked.load(SeqCst) {
                        std::hint::spin_loop();
                    }
                    while !said.stop.load(SeqCst) {
                        scheduling_point();
                        rounds.fetch_add(1, SeqCst);
                        urgent_rounds.fetch_add(usize::from(is_urgent()), SeqCst);
                    }
                };
                let goes = || {
                    said.await_thief(1);
                    while !said.go.load(SeqCst) {
                        std::hint::spin_loop();
                    }
                };
                join(goes, stolen);
            })
        };
        until(|| said.stolen.load(SeqCst) == 1);
        let keeps = {
            let (said, lock, is_locked) = (said.clone(), lock.clone(), is_locked.clone());
            runtime.at(Background).spawn_fn(move || {
                let guard = lock.blocking_lock();
                is_locked.store(true, SeqCst);
                while !is_urgent() {
                    scheduling_point();
                }
                let seen = rounds.load(SeqCst);
                until(|| rounds.load(SeqCst) >= seen + 10_000);
                said.stop.store(true, SeqCst);
                drop(guard);
            })
        };
        said.go.store(true, SeqCst);
        until(|| is_locked.load(SeqCst));
        runtime.at(Urgent).run(|| drop(lock.blocking_lock()));
        keeps.get().unwrap();
        waits.get().unwrap();
        for (wakes, sleeps) in asleep {
            drop(wakes);
            sleeps.get().unwrap();
        }
        assert_ne!(runtime.stats().threads_refused, 0);
        assert_eq!(urgent_rounds.load(SeqCst), 0);
    });
}

#[test]
fn code_that_is_raised_in_the_middle_of_a_wait_for_forks_raises_them_when_it_waits_again() {
    ends(|| {
        let runtime = with_levels::<App>(2);
        let said = Arc::new(Said::default());
        let background = {
            let said = said.clone();
            Background.on(&runtime).spawn_fn(move |_| {
                let becomes_urgent = || {
                    while !is_urgent() {
                        scheduling_point();
                    }
                };
                let on_top = || {
                    said.go.store(true, SeqCst);
                    becomes_urgent();
                };
                leaps(&said, becomes_urgent, on_top);
            })
        };
        until(|| said.go.load(SeqCst));
        let urgent = Urgent.on(&runtime);
        let urgent = urgent.spawn_fn(move |cx| background.boost_get(cx).unwrap());
        urgent.erase().get().unwrap();
    });
}
