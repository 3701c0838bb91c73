//! What waits for as long as other work goes on, by `docs/limits.md`: it has not begun while that work goes on, more
//! urgent work is served meanwhile, and in the end all of it has run.

mod common;

use common::{InProgress, all, ends, run_time, runtime, until, with_levels};
use std::{
    future::{Future, poll_fn},
    hint,
    pin::pin,
    sync::{
        Arc, Barrier,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::SeqCst},
    },
    thread,
    time::Duration,
};
use urgency::{
    At, JoinHandle, Runtime, block_on, join,
    life::CancellationToken,
    net::UnixStream,
    scheduling_point, scope,
    sync::{Notify, Semaphore, oneshot},
    task::JoinSet,
    time::sleep,
};

urgency::levels! { App: Urgent > Usual > Batch }

/// For how long relief lets a loop keep its worker from its equals: `LONG` in `sched/rescue/relief.rs`.
const LONG: Duration = Duration::from_millis(100);

/// Closures that go on until they are told to stop.
struct Endless {
    stop: Arc<AtomicBool>,
    /// For how long each has run, in nanoseconds.
    ran: Arc<[AtomicU64]>,
    closures: Vec<JoinHandle<()>>,
}

impl Endless {
    /// So many closures, each of which does this again and again.
    fn begin(at: &At, count: usize, part: fn()) -> Self {
        Self::begin_and_then(at, count, part, || ())
    }

    /// They do this when they have been told to stop.
    fn begin_and_then(
        at: &At,
        count: usize,
        part: fn(),
        then: impl FnOnce() + Clone + Send + 'static,
    ) -> Self {
        Self::of(count, part, then, |long| at.spawn_fn(long))
    }

    /// As many tasks, each of which does so in one poll.
    fn polls(at: &At, count: usize, part: fn()) -> Self {
        Self::of(count, part, || (), |long| at.spawn(async move { long() }))
    }

    fn of(
        count: usize,
        part: fn(),
        then: impl FnOnce() + Clone + Send + 'static,
        spawn: impl Fn(Box<dyn FnOnce() + Send>) -> JoinHandle<()>,
    ) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let ran: Arc<[AtomicU64]> = (0..count).map(|_| AtomicU64::new(0)).collect();
        let long = |i: usize| {
            let (stop, ran, then) = (stop.clone(), ran.clone(), then.clone());
            move || {
                let since = run_time();
                while !stop.load(SeqCst) {
                    part();
                    ran[i].store((run_time() - since).as_nanos() as u64, SeqCst);
                }
                then();
            }
        };
        let closures = (0..count).map(|i| spawn(Box::new(long(i)))).collect();
        Endless {
            stop,
            ran,
            closures,
        }
    }

    /// Waits until so many of them have run for this time.
    fn until(&self, count: usize, time: Duration) {
        let has_run = |ran: &&AtomicU64| ran.load(SeqCst) > time.as_nanos() as u64;
        until(|| self.ran.iter().filter(has_run).count() >= count);
    }

    /// For how long the one has run that has run for longest.
    fn longest(&self) -> Duration {
        let ran = self.ran.iter().map(|ran| ran.load(SeqCst));
        Duration::from_nanos(ran.max().unwrap_or(0))
    }

    fn end(self) {
        self.stop.store(true, SeqCst);
        all(self.closures);
    }
}

fn spins() {
    (0..1000).for_each(|_| hint::spin_loop());
}

fn checks_in() {
    spins();
    scheduling_point();
}

fn forks() {
    join(spins, spins);
}

/// Work of each kind at one level: tasks and closures that wait, then work that has not begun.
struct Work {
    at: At,
    /// How many have gone on, or begun.
    ran: Arc<AtomicUsize>,
    handles: Vec<JoinHandle<()>>,
    threads: Vec<thread::JoinHandle<()>>,
    tells: Vec<oneshot::Sender<()>>,
    end: UnixStream,
}

impl Work {
    fn that_waits(at: &At) -> Self {
        let (ran, begun) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let (tell_task, task_told) = oneshot::channel();
        let (tell_closure, closure_told) = oneshot::channel();
        let (end, other_end) = UnixStream::pair().unwrap();
        let counts = || {
            let (ran, begun) = (ran.clone(), begun.clone());
            (
                move || _ = begun.fetch_add(1, SeqCst),
                move || _ = ran.fetch_add(1, SeqCst),
            )
        };
        let [(begins, goes_on), reads, waits] = [(); 3].map(|()| counts());
        let task = at.spawn(async move {
            begins();
            task_told.await.unwrap();
            goes_on();
        });
        let reads = at.spawn(async move {
            reads.0();
            assert_eq!(other_end.read(&mut [0]).await.unwrap(), 1);
            reads.1();
        });
        let closure = at.spawn_fn(move || {
            waits.0();
            block_on(closure_told).unwrap();
            waits.1();
        });
        until(|| begun.load(SeqCst) == 3);
        Work {
            at: at.clone(),
            ran,
            handles: vec![task, reads, closure],
            threads: Vec::new(),
            tells: vec![tell_task, tell_closure],
            end,
        }
    }

    /// The waits are over, and more work comes: a task, a closure, and a thread of the program that calls in.
    fn comes(&mut self) {
        for tell in self.tells.drain(..) {
            tell.send(()).unwrap();
        }
        block_on(self.end.write_all(&[1])).unwrap();
        let begins = || {
            let ran = self.ran.clone();
            move || _ = ran.fetch_add(1, SeqCst)
        };
        let (task, closure, call) = (begins(), begins(), begins());
        self.handles.push(self.at.spawn(async move { task() }));
        self.handles.push(self.at.spawn_fn(closure));
        let at = self.at.clone();
        let calls = move || at.run(|| join(call, || ()).0);
        self.threads.push(thread::spawn(calls));
    }

    /// All of it ends.
    fn ends(self) {
        all(self.handles);
        self.threads.into_iter().for_each(|it| it.join().unwrap());
        assert_eq!(self.ran.load(SeqCst), 6);
    }
}

/// Work of each kind, beside whatever is less urgent.
fn urgent_work_is_served(runtime: &Runtime) {
    for _ in 0..20 {
        let mut work = Work::that_waits(&runtime.at(Urgent));
        work.comes();
        work.ends();
    }
}

/// How much of the work at the last level has run while closures above filled all workers. All of it has afterwards.
fn ran_beside(workers: usize, part: fn()) -> usize {
    ends(move || {
        let runtime = with_levels::<App>(workers);
        let mut work = Work::that_waits(&runtime.at(Batch));
        let above = Endless::begin(&runtime.at(Urgent), 2 * workers, part);
        above.until(workers, Duration::from_millis(1));
        work.comes();
        above.until(workers, 2 * LONG);
        let ran = work.ran.load(SeqCst);
        above.end();
        work.ends();
        ran
    })
}

#[test]
#[cfg_attr(urgency_chaos, ignore = "chaos relieves without need")]
fn less_urgent_work_waits_while_urgent_work_fills_all_workers_and_runs_when_that_ends() {
    for workers in [1, 2] {
        for part in [checks_in, forks, spins] {
            // A thread that sleeps in a page fault loses its worker to whatever waits: seldom three times.
            let ran: Vec<_> = (0..3)
                .map(|_| ran_beside(workers, part))
                .take_while(|ran| *ran > 0)
                .collect();
            assert!(ran.len() < 3, "{ran:?} of 6 ran; {workers} workers");
        }
    }
}

/// Counts its runs.
fn counted(ran: &Arc<AtomicUsize>) -> impl FnOnce() + Send + use<> {
    let ran = ran.clone();
    move || _ = ran.fetch_add(1, SeqCst)
}

/// Tasks have turns.
#[test]
#[cfg_attr(urgency_chaos, ignore = "chaos relieves without need")]
fn twice_as_many_endless_loops_as_workers_starve_closures_of_their_level_until_one_ends() {
    for (workers, part) in [(1, spins as fn()), (2, spins), (1, checks_in), (2, forks)] {
        ends(move || {
            let runtime = with_levels::<App>(workers);
            let level = runtime.at(Usual);
            let others = Endless::begin(&level, 2 * workers - 1, part);
            let one = Endless::begin(&level, 1, part);
            let ran = Arc::new(AtomicUsize::new(0));
            let closures: Vec<_> = (0..4).map(|_| level.spawn_fn(counted(&ran))).collect();
            // Each for so long that it would have lost its worker since to one more.
            others.until(2 * workers - 1, 3 * LONG);
            one.until(1, 3 * LONG);
            assert_eq!(ran.load(SeqCst), 0, "{workers} workers");
            for n in 0..20 {
                let task = level.spawn(async move { n });
                assert_eq!(task.get().unwrap(), n);
            }
            urgent_work_is_served(&runtime);
            assert!(!one.closures[0].is_finished());
            one.end();
            all(closures);
            assert!(!others.closures.iter().any(JoinHandle::is_finished));
            others.end();
        });
    }
}

/// How often a task at the level of twice as many polls as workers that fork for ever has a turn. It has all of its
/// turns when one of these has ended.
fn turns_beside_polls(workers: usize) -> usize {
    const SLEEPS: usize = 10;
    ends(move || {
        let runtime = with_levels::<App>(workers);
        let level = runtime.at(Usual);
        let others = Endless::polls(&level, 2 * workers - 1, forks);
        let one = Endless::polls(&level, 1, forks);
        others.until(2 * workers - 1, Duration::ZERO);
        one.until(1, Duration::ZERO);
        let turns = Arc::new(AtomicUsize::new(0));
        let counts = turns.clone();
        let task = level.spawn(async move {
            for _ in 0..SLEEPS {
                sleep(Duration::from_millis(1)).await;
                counts.fetch_add(1, SeqCst);
            }
        });
        let run = one.longest();
        one.until(1, run + 2 * LONG);
        let counted = turns.load(SeqCst);
        urgent_work_is_served(&runtime);
        assert!(!one.closures[0].is_finished());
        one.end();
        task.get().unwrap();
        assert!(!others.closures.iter().any(JoinHandle::is_finished));
        others.end();
        counted
    })
}

#[test]
#[cfg_attr(urgency_chaos, ignore = "chaos relieves without need")]
fn twice_as_many_polls_that_compute_as_workers_starve_tasks_of_their_level_until_one_ends() {
    for workers in [1, 2] {
        // A thread that sleeps in a page fault loses its worker to whatever waits: seldom three times.
        let turns = (0..3).map(|_| turns_beside_polls(workers));
        let turns: Vec<_> = turns.take_while(|turns| *turns > 0).collect();
        assert!(turns.len() < 3, "{turns:?} turns; {workers} workers");
    }
}

/// One of the endless closures at a level waits, or ends.
#[derive(Clone, Copy, Debug)]
enum Last {
    Waits,
    Ends,
}

/// Whether a closure had not begun that came behind twice as many endless equals as workers, beside a task that had its
/// turns among these. It has begun when one of them waited or ended.
fn waited_behind(workers: usize, part: fn(), last: Last) -> bool {
    ends(move || {
        let runtime = with_levels::<App>(workers);
        let level = runtime.at(Usual);
        let go_on = Arc::new(Notify::new());
        let goes_on = go_on.clone();
        let then = move || match last {
            Last::Waits => block_on(goes_on.notified()),
            Last::Ends => {}
        };
        let others = Endless::begin(&level, 2 * workers - 1, part);
        let one = Endless::begin_and_then(&level, 1, part, then);
        one.until(1, Duration::from_millis(1));
        others.until(2 * workers - 1, Duration::from_millis(1));
        let ran = Arc::new(AtomicUsize::new(0));
        let behind = level.spawn_fn(counted(&ran));
        let ticks = level.spawn(async {
            for _ in 0..20 {
                sleep(Duration::from_millis(1)).await;
            }
        });
        ticks.get().unwrap();
        one.until(1, 3 * LONG);
        others.until(2 * workers - 1, 3 * LONG);
        let waited = ran.load(SeqCst) == 0;
        one.stop.store(true, SeqCst);
        behind.get().unwrap();
        assert!(matches!(last, Last::Ends) || !one.closures[0].is_finished());
        assert!(!others.closures.iter().any(JoinHandle::is_finished));
        go_on.notify_one();
        one.end();
        others.end();
        waited
    })
}

#[test]
#[cfg_attr(urgency_chaos, ignore = "chaos relieves without need")]
fn a_closure_behind_twice_as_many_equals_that_check_in_begins_when_one_of_them_waits_or_ends() {
    for workers in [1, 2] {
        for part in [checks_in, forks] {
            for last in [Last::Waits, Last::Ends] {
                // A worker that comes back from a turn begins it, if the kernel interrupts the thread to which the
                // worker goes at that moment: seldom three times.
                let waited = (0..3).any(|_| waited_behind(workers, part, last));
                assert!(waited, "{workers} workers; the last {last:?}");
            }
        }
    }
}

/// How often a task is polled while it does this until an equal of it has run, which only relief lets it do.
fn polls_beside_an_equal<F: Future<Output = ()> + Send>(
    operation: impl Fn() -> F + Send + Sync + 'static,
) -> usize {
    ends(move || {
        let runtime = runtime(1);
        let (done, begun) = (
            Arc::new(AtomicBool::new(false)),
            Arc::new(AtomicBool::new(false)),
        );
        let (theirs, begins) = (done.clone(), begun.clone());
        let task = runtime.spawn(async move {
            let mut polls = 0;
            let mut endless = pin!(async {
                while !theirs.load(SeqCst) {
                    operation().await;
                    begins.store(true, SeqCst);
                }
            });
            poll_fn(|cx| {
                polls += 1;
                endless.as_mut().poll(cx)
            })
            .await;
            polls
        });
        until(|| begun.load(SeqCst));
        let equal = runtime.spawn_fn(move || done.store(true, SeqCst));
        equal.get().unwrap();
        task.get().unwrap()
    })
}

/// The first two take nothing from the budget of a poll.
#[test]
fn a_poll_of_operations_without_a_budget_delays_its_equals_as_an_endless_loop_does() {
    let cancelled = CancellationToken::new();
    cancelled.cancel();
    let waits = move || cancelled.clone().cancelled_owned();
    assert_eq!(polls_beside_an_equal(waits), 1);
    let joins = || async { assert!(JoinSet::<()>::new().join_next().await.is_none()) };
    assert_eq!(polls_beside_an_equal(joins), 1);
    let places = Arc::new(Semaphore::new(1));
    let takes = move || {
        let places = places.clone();
        async move { drop(places.acquire().await.unwrap()) }
    };
    assert!(polls_beside_an_equal(takes) > 1);
}

/// Each child waits for some time for all of them to have begun.
#[test]
fn with_one_worker_and_no_other_work_the_children_of_a_scope_run_one_after_another() {
    const CHILDREN: usize = 4;
    ends(|| {
        let runtime = runtime(1);
        let (in_progress, begun) = (InProgress::default(), AtomicUsize::new(0));
        let wait = || {
            begun.fetch_add(1, SeqCst);
            for _ in 0..20 {
                if begun.load(SeqCst) < CHILDREN {
                    thread::sleep(Duration::from_millis(1));
                }
            }
        };
        runtime.run(|| {
            scope(|s| (0..CHILDREN).for_each(|_| s.spawn(|| in_progress.during(wait))));
        });
        assert_eq!((begun.into_inner(), in_progress.most()), (CHILDREN, 1));
    });
}

/// The same where other work comes meanwhile: the worker of a child that sleeps goes on, with its siblings as well.
#[test]
fn children_that_sleep_until_all_have_begun_end_with_one_worker_if_other_work_comes() {
    const CHILDREN: usize = 4;
    ends(|| {
        let runtime = with_levels::<App>(1);
        let stop = Arc::new(AtomicBool::new(false));
        let stops = stop.clone();
        let ticks = runtime.at(Urgent).spawn(async move {
            while !stops.load(SeqCst) {
                sleep(Duration::from_millis(1)).await;
            }
        });
        let all = Barrier::new(CHILDREN);
        runtime.at(Batch).run(|| {
            scope(|s| (0..CHILDREN).for_each(|_| s.spawn(|| _ = all.wait())));
        });
        stop.store(true, SeqCst);
        ticks.get().unwrap();
    });
}
