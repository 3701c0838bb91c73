//! Jobs, and runtimes on shared workers, that wait for as long as others go on, by `docs/limits.md`: a queue in order,
//! a place that a job without scheduling points keeps, waits that lend nothing. All of them have what they wait for in
//! the end.

mod common;

use common::{all, ends, fib, until};
use std::{
    future::pending,
    hint,
    sync::{
        Arc, Mutex as Foreign,
        atomic::{
            AtomicBool, AtomicUsize,
            Ordering::{Relaxed, SeqCst},
        },
        mpsc,
    },
    thread,
    time::Duration,
};
use urgency::{
    LevelId, Runtime,
    jobs::{CoreSet, JobHandle, JobState},
    join,
    policy::cores::Group,
    scheduling_point, spawn,
    sync::{Mutex, oneshot},
};

urgency::levels! { Two: High > Low }
urgency::levels! { Three: First > Second > Third }

/// Parts of jobs or of runtimes that go on until they are told to stop, and count their rounds.
#[derive(Clone, Default)]
struct Endless {
    stop: Arc<AtomicBool>,
    rounds: Arc<AtomicUsize>,
}

impl Endless {
    fn run(&self, part: impl Fn()) {
        while !self.stop.load(Relaxed) {
            part();
            self.rounds.fetch_add(1, Relaxed);
        }
    }

    /// Waits for so many rounds more.
    fn goes_on(&self, rounds: usize) {
        let before = self.rounds.load(Relaxed);
        until(|| self.rounds.load(Relaxed) >= before + rounds);
    }

    fn end(&self) {
        self.stop.store(true, Relaxed);
    }
}

fn spins() {
    (0..1000).for_each(|_| hint::spin_loop());
}

fn forks() {
    join(spins, spins);
}

/// A job that has begun, and ends when the sender is used.
fn busy(set: &CoreSet) -> (JobHandle<()>, oneshot::Sender<()>) {
    let (begin, begun) = mpsc::channel();
    let (end, ends) = oneshot::channel();
    let root = async move {
        begin.send(()).unwrap();
        let _ = ends.await;
    };
    let job = set.job().priority(9).spawn(root).unwrap();
    begun.recv().unwrap();
    (job, end)
}

#[test]
fn a_cancelled_job_that_never_checks_in_keeps_its_place_and_not_all_cores_until_its_code_ends() {
    ends(|| {
        let set = CoreSet::builder().cores(2).most_running(2).build().unwrap();
        let loops = Endless::default();
        let endless = loops.clone();
        let root = move || {
            join(|| endless.run(spins), || endless.run(spins));
        };
        let spinning = set.spawn_fn(root).unwrap();
        until(|| spinning.stats().is_some_and(|it| it.share.serving == 2));
        spinning.cancel();
        // They run in the other place, and not on its share of the cores.
        for _ in 0..20 {
            assert_eq!(set.spawn_fn(|| fib(12)).unwrap().get().unwrap(), 144);
        }
        let other = Endless::default();
        let works = other.clone();
        let other_job = set.spawn_fn(move || works.run(forks)).unwrap();
        let queued = set.spawn_fn(|| 7).unwrap();
        other.goes_on(1000);
        loops.goes_on(1000);
        assert_eq!(spinning.state(), JobState::Running);
        assert_eq!(queued.state(), JobState::Queued);
        loops.end();
        assert_eq!(queued.get().unwrap(), 7);
        let _ = spinning.get();
        assert_eq!(other_job.state(), JobState::Running);
        other.end();
        other_job.get().unwrap();
    });
}

/// As many jobs as a set lets run.
const MOST_RUNNING: usize = 64;

#[test]
fn a_queued_job_for_which_a_runtime_beside_the_jobs_waits_starts_in_its_turn() {
    ends(|| {
        let service = Runtime::builder().workers(2).build().unwrap();
        let set = CoreSet::beside(&service);
        let (tell, told) = mpsc::channel();
        let (end, ends) = oneshot::channel();
        let first = set.job().priority(9).spawn(async move {
            tell.send(Runtime::current()).unwrap();
            let _: Result<(), _> = ends.await;
        });
        let first = first.unwrap();
        let runtime = told.recv().unwrap();
        for _ in 1..MOST_RUNNING {
            let running = set.job().priority(9).spawn(pending::<()>());
            running.unwrap().detach();
        }
        until(|| set.stats().running == MOST_RUNNING);
        let queued = set.job().priority(5).spawn_fn(|| 7).unwrap();
        let control = queued.control();
        let (wait, waits) = mpsc::channel();
        let waiting = service.spawn_fn(move || {
            wait.send(()).unwrap();
            queued.get().unwrap()
        });
        waits.recv().unwrap();
        for _ in 0..20 {
            service.spawn_fn(|| fib(8)).get().unwrap();
            thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(control.state(), JobState::Queued);
        assert_eq!(runtime.demand().priority, 9, "the wait lends it nothing");
        end.send(()).unwrap();
        assert_eq!(waiting.get().unwrap(), 7);
        first.get().unwrap();
        set.cancel_all();
        set.drain();
    });
}

/// What the code of another job may wait for, and not lend to: a lock, or a message.
enum Part {
    Lock(Arc<Mutex<()>>),
    Message(oneshot::Receiver<()>),
}

/// Urgent code waits for a part of a less urgent job while urgent jobs fill all cores, and has it afterwards. (It may
/// have it before, if a filled core's thread has no processor for a while.)
fn waits_for(which: usize, cores: usize) {
    ends(move || {
        let set = CoreSet::builder().cores(cores).build().unwrap();
        let goes_on = Arc::new(AtomicBool::new(false));
        let (tell, told) = mpsc::channel();
        let holds = goes_on.clone();
        let held = move || {
            while !holds.load(Relaxed) {
                scheduling_point();
            }
            // It has come to the end of the loop without a core, perhaps, but not of this.
            scheduling_point();
        };
        let calm = set.job().priority(9).spawn(async move {
            let own = Runtime::current();
            match which {
                0 => {
                    let lock = Arc::new(Mutex::new(()));
                    let guard = lock.clone().lock_owned().await;
                    tell.send((own, Part::Lock(lock))).unwrap();
                    held();
                    drop(guard);
                }
                _ => {
                    let (sends, receives) = oneshot::channel();
                    tell.send((own, Part::Message(receives))).unwrap();
                    held();
                    sends.send(()).unwrap();
                }
            }
            pending::<()>().await;
        });
        let calm = calm.unwrap();
        let (runtime, part) = told.recv().unwrap();
        let above = Endless::default();
        let (begin, begun) = mpsc::channel();
        let fill = || {
            let (above, begin) = (above.clone(), begin.clone());
            let root = move || {
                begin.send(()).unwrap();
                above.run(forks);
            };
            set.job().max_cpus(1).spawn_fn(root).unwrap()
        };
        let fillers: Vec<_> = (0..cores).map(|_| fill()).collect();
        fillers.iter().for_each(|_| begun.recv().unwrap());
        let (waits, is_waiting) = mpsc::channel();
        let waiting = set.spawn(async move {
            waits.send(()).unwrap();
            match part {
                Part::Lock(lock) => drop(lock.lock().await),
                Part::Message(message) => message.await.unwrap(),
            }
        });
        let waiting = waiting.unwrap();
        is_waiting.recv().unwrap();
        until(|| runtime.stats().share.serving == 0);
        goes_on.store(true, SeqCst);
        above.goes_on(1_000);
        assert_eq!(runtime.demand().priority, 9, "the wait lends it nothing");
        above.end();
        waiting.get().unwrap();
        fillers.into_iter().for_each(|it| it.get().unwrap());
        calm.cancel();
        set.drain();
    });
}

#[test]
fn a_wait_for_a_lock_or_a_message_of_a_less_urgent_job_lends_it_nothing_and_ends_after_the_urgent_jobs()
 {
    for cores in [1, 2] {
        for which in 0..2 {
            waits_for(which, cores);
        }
    }
}

type Order = Arc<Foreign<Vec<u64>>>;

/// A job that notes its number.
fn notes(set: &CoreSet, order: &Order, number: u64, priority: u8) -> JobHandle<()> {
    let order = order.clone();
    let job = set.job().priority(priority).group(Group::new(number));
    job.spawn_fn(move || order.lock().unwrap().push(number))
        .unwrap()
}

#[test]
fn the_flood_of_one_tenant_is_before_what_another_one_submits_later_and_that_starts_after_it() {
    ends(|| {
        let set = CoreSet::builder().cores(2).most_running(1).build().unwrap();
        let (first, end) = busy(&set);
        let order = Order::default();
        let mut jobs: Vec<_> = (0..50).map(|_| notes(&set, &order, 1, 3)).collect();
        jobs.push(notes(&set, &order, 2, 3));
        end.send(()).unwrap();
        first.get().unwrap();
        jobs.into_iter().for_each(|job| job.get().unwrap());
        let order = order.lock().unwrap();
        assert_eq!(order.iter().position(|it| *it == 2), Some(50));
    });
}

/// Each urgent job submits the next one before it ends.
fn chain(set: &CoreSet, left: usize, calm: Arc<AtomicUsize>) {
    let its = set.clone();
    let job = set.job().priority(1).spawn_fn(move || {
        assert_eq!(calm.load(SeqCst), 0, "{left} urgent jobs are left");
        if left > 0 {
            chain(&its, left - 1, calm);
        }
    });
    job.unwrap().detach();
}

#[test]
fn a_calm_job_stays_in_the_queue_while_urgent_jobs_come_faster_than_they_end_and_starts_then() {
    ends(|| {
        let set = CoreSet::builder().cores(2).most_running(1).build().unwrap();
        let (first, end) = busy(&set);
        let ran = Arc::new(AtomicUsize::new(0));
        let counts = ran.clone();
        let calm = set.job().priority(2);
        let calm = calm.spawn_fn(move || counts.fetch_add(1, SeqCst)).unwrap();
        chain(&set, 200, ran);
        end.send(()).unwrap();
        first.get().unwrap();
        calm.get().unwrap();
        set.drain();
        let stats = set.stats();
        assert_eq!((stats.submitted, stats.over), (203, 203));
    });
}

/// Each spins until all have begun, without a scheduling point.
#[test]
fn many_jobs_that_spin_without_checking_in_all_run_at_once_and_so_does_the_rest() {
    const JOBS: usize = 32;
    for cores in [1, 2] {
        ends(move || {
            let set = CoreSet::builder().cores(cores).build().unwrap();
            let begun = Arc::new(AtomicUsize::new(0));
            let rest = Arc::new(AtomicBool::new(false));
            let jobs: Vec<_> = (0..JOBS)
                .map(|_| {
                    let (begun, rest) = (begun.clone(), rest.clone());
                    let root = move || {
                        begun.fetch_add(1, SeqCst);
                        while begun.load(Relaxed) < JOBS || !rest.load(Relaxed) {
                            hint::spin_loop();
                        }
                    };
                    set.spawn_fn(root).unwrap()
                })
                .collect();
            until(|| begun.load(SeqCst) == JOBS);
            for _ in 0..10 {
                assert_eq!(set.spawn_fn(|| fib(8)).unwrap().get().unwrap(), 21);
            }
            rest.store(true, SeqCst);
            jobs.into_iter().for_each(|job| job.get().unwrap());
        });
    }
}

/// Each has endless work at one of its levels, with and without scheduling points. Work of the other one that is more
/// urgent by the number of its level, or less urgent, goes on beside it, and waits for the workers of its own part.
#[test]
fn work_of_any_level_goes_on_beside_another_runtimes_work_of_any_level() {
    let highest: LevelId = High.into();
    let lowest: LevelId = Third.into();
    for workers in [1, 2] {
        for part in [forks, spins] {
            for swapped in [false, true] {
                ends(move || {
                    let builder = Runtime::builder().workers(workers);
                    let first = builder.levels::<Two>().build().unwrap();
                    let builder = Runtime::builder().share_workers_with(&first);
                    let second = builder.levels::<Three>().build().unwrap();
                    let at = [first.at(highest), second.at(lowest)];
                    let (busy, other) = match swapped {
                        false => (&at[0], &at[1]),
                        true => (&at[1], &at[0]),
                    };
                    let endless = Endless::default();
                    let closures: Vec<_> = (0..2 * workers)
                        .map(|_| {
                            let endless = endless.clone();
                            busy.spawn_fn(move || endless.run(part))
                        })
                        .collect();
                    endless.goes_on(100);
                    for n in 0..20 {
                        let task =
                            other.spawn(async move { spawn(async move { n }).await.unwrap() });
                        assert_eq!(task.get().unwrap(), n);
                        assert_eq!(other.spawn_fn(|| fib(8)).get().unwrap(), 21);
                    }
                    endless.goes_on(100);
                    endless.end();
                    all(closures);
                });
            }
        }
    }
}
