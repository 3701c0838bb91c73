//! The core policy decides when a job starts or ends, and when its demand changes, not a while later; a job that spins
//! does not keep its cores; and a policy that is always wrong leaves no job without cores.

mod common;

use common::{ends, fib};
use std::{
    hint,
    sync::{
        Arc, Mutex,
        atomic::{
            AtomicBool, AtomicUsize,
            Ordering::{Relaxed, SeqCst},
        },
        mpsc,
    },
    thread::{self, ThreadId},
};
use urgency::{
    jobs::{CoreSet, JobHandle, JobState},
    policy::cores::{CorePolicy, Cores, Decision, DecisionError, Demand, Event, Request, Shares},
};

/// *Shares*, with the threads that asked about jobs that start, jobs that end, and demands that change.
#[derive(Clone, Default)]
struct Noted {
    shares: Shares,
    starts: Arc<Mutex<Vec<ThreadId>>>,
    exits: Arc<Mutex<Vec<ThreadId>>>,
    changes: Arc<Mutex<Vec<ThreadId>>>,
}

impl CorePolicy for Noted {
    fn decide(
        &mut self,
        event: Event,
        cores: &Cores,
        to: &mut Decision,
    ) -> Result<(), DecisionError> {
        let thread = thread::current().id();
        match event {
            Event::Start(_) => self.starts.lock().unwrap().push(thread),
            Event::Exit(_) => self.exits.lock().unwrap().push(thread),
            Event::Request(Request::Demand(_)) => self.changes.lock().unwrap().push(thread),
            _ => {}
        }
        self.shares.decide(event, cores, to)
    }

    fn is_work_conserving(&self) -> bool {
        true
    }
}

/// A job for each worker that is less urgent than others, and comes to scheduling points all the time.
fn occupy(set: &CoreSet, workers: usize) -> Arc<AtomicBool> {
    let stop = Arc::new(AtomicBool::new(false));
    let busy = Arc::new(AtomicUsize::new(0));
    for _ in 0..workers {
        let (stop, busy) = (stop.clone(), busy.clone());
        let works = move || {
            busy.fetch_add(1, SeqCst);
            while !stop.load(Relaxed) {
                fib(3);
            }
        };
        let job = set.job().priority(1).max_cpus(1).spawn_fn(works);
        job.unwrap().detach();
    }
    while busy.load(SeqCst) < workers {
        thread::yield_now();
    }
    stop
}

/// So many workers under a policy that notes which thread asks it, each with a job that works until it is told to stop.
fn occupied(workers: usize) -> (Noted, CoreSet, Arc<AtomicBool>) {
    let noted = Noted::default();
    let builder = CoreSet::builder().cores(workers);
    let set = builder.core_policy(noted.clone()).build().unwrap();
    let stop = occupy(&set, workers);
    (noted, set, stop)
}

#[test]
fn the_thread_that_submits_a_job_has_the_policy_decide_about_it() {
    for workers in [1, 2, 8] {
        ends(move || {
            let (noted, set, stop) = occupied(workers);
            let me = thread::current().id();
            let shape = set.job();
            // Now and then another thread decides at that moment, or a worker is idle because there are fewer
            // processors than workers.
            let by_me = || noted.starts.lock().unwrap().contains(&me);
            while !by_me() {
                assert_eq!(shape.clone().spawn_fn(|| fib(5)).unwrap().get().unwrap(), 5);
            }
            stop.store(true, SeqCst);
            set.drain();
        });
    }
}

#[test]
fn the_thread_that_ends_a_job_has_the_policy_decide_which_of_two_goes_on() {
    ends(|| {
        let (noted, set, stop) = occupied(1);
        let more = occupy_more(&set);
        let ended = Arc::new(Mutex::new(Vec::new()));
        let shape = set.job();
        let by_ended = || {
            let (exits, ended) = (noted.exits.lock().unwrap(), ended.lock().unwrap());
            exits.iter().any(|thread| ended.contains(thread))
        };
        while !by_ended() {
            let ended = ended.clone();
            let job = shape
                .clone()
                .spawn_fn(move || ended.lock().unwrap().push(thread::current().id()));
            job.unwrap().get().unwrap();
        }
        stop.store(true, SeqCst);
        more.store(true, SeqCst);
        set.drain();
    });
}

#[test]
fn the_thread_that_changes_a_demand_has_the_policy_decide_about_it() {
    for workers in [1, 2, 8] {
        ends(move || {
            let (noted, set, stop) = occupied(workers);
            let job = {
                let stop = stop.clone();
                let works = move || {
                    while !stop.load(Relaxed) {
                        fib(3);
                    }
                };
                set.spawn_fn(works).unwrap()
            };
            let me = thread::current().id();
            // Now and then another thread decides at that moment.
            let by_me = || noted.changes.lock().unwrap().contains(&me);
            for weight in (1..3).cycle() {
                let demand = Demand {
                    weight,
                    ..Demand::default()
                };
                job.set_demand(demand).unwrap();
                if by_me() {
                    break;
                }
            }
            stop.store(true, SeqCst);
            set.drain();
        });
    }
}

/// Gives a core that there is not. It is not work-conserving: a job has at most what it is given.
#[derive(Clone)]
struct Wrong;

impl CorePolicy for Wrong {
    fn decide(&mut self, _: Event, _: &Cores, to: &mut Decision) -> Result<(), DecisionError> {
        to.give(99, None)
    }
}

#[test]
fn jobs_go_on_under_a_policy_whose_every_answer_breaks_a_rule() {
    for workers in [1, 2, 8] {
        ends(move || {
            let set = CoreSet::builder().cores(workers).core_policy(Wrong);
            let set = set.build().unwrap();
            let (done, all) = (Arc::new(AtomicUsize::new(0)), 3 * workers + 2);
            let jobs: Vec<_> = (0..all)
                .map(|_| {
                    let done = done.clone();
                    let works = move || {
                        done.fetch_add(1, SeqCst);
                        // Each needs all others to have had a core.
                        while done.load(Relaxed) < all {
                            fib(3);
                        }
                    };
                    set.spawn_fn(works).unwrap()
                })
                .collect();
            let share = |job: &JobHandle<()>| job.stats().map(|stats| stats.share);
            while jobs.iter().filter_map(share).all(|it| it.rejections == 0) {
                thread::yield_now();
            }
            let rejected = jobs.iter().filter_map(share).find_map(|it| it.rejected);
            let unknown = DecisionError::UnknownCore {
                core: 99,
                cores: workers,
            };
            assert_eq!(rejected, Some(unknown));
            jobs.into_iter().for_each(|job| job.get().unwrap());
        });
    }
}

/// One more of them, which may have to wait for a worker.
fn occupy_more(set: &CoreSet) -> Arc<AtomicBool> {
    let stop = Arc::new(AtomicBool::new(false));
    let theirs = stop.clone();
    let works = move || {
        while !theirs.load(Relaxed) {
            fib(3);
        }
    };
    set.job().priority(1).spawn_fn(works).unwrap().detach();
    stop
}

#[test]
fn the_work_of_another_job_runs_though_jobs_that_spin_have_all_workers_and_never_check_in() {
    for workers in [1, 2, 8] {
        ends(move || {
            let set = CoreSet::builder().cores(workers).build().unwrap();
            let (done, spinning) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
            let spinners: Vec<_> = (0..workers)
                .map(|_| {
                    let (done, spinning) = (done.clone(), spinning.clone());
                    let spins = move || {
                        spinning.fetch_add(1, SeqCst);
                        // All of the other job's work comes before the end of this.
                        while done.load(Relaxed) < 100 {
                            hint::spin_loop();
                        }
                    };
                    set.job().max_cpus(1).spawn_fn(spins).unwrap()
                })
                .collect();
            while spinning.load(SeqCst) < workers {
                thread::yield_now();
            }
            for _ in 0..100 {
                let done = done.clone();
                let job = set.spawn_fn(move || done.fetch_add(1, SeqCst)).unwrap();
                job.get().unwrap();
            }
            let reliefs = |stats: urgency::Stats| stats.total().reliefs;
            let of_spinners = spinners
                .iter()
                .map(|job| reliefs(job.stats().expect("it has started")));
            assert!(of_spinners.sum::<u64>() > 0, "no spinner has lost a worker");
            spinners.into_iter().for_each(|job| job.get().unwrap());
        });
    }
}

#[test]
fn a_demand_that_no_job_could_have_is_refused_while_the_job_is_queued_too() {
    ends(|| {
        let cores = CoreSet::builder().cores(2).most_running(1).build().unwrap();
        let (end, ends) = mpsc::channel::<()>();
        let runs = cores.spawn_fn(move || _ = ends.recv()).unwrap();
        assert!(cores.job().min_cpus(3).spawn_fn(|| ()).is_err());
        let queued = cores.spawn_fn(|| 1).unwrap();
        assert_eq!(queued.control().state(), JobState::Queued);
        let too_many = Demand {
            min_cores: 3,
            ..Demand::default()
        };
        assert!(queued.control().set_demand(too_many).is_err());
        end.send(()).unwrap();
        runs.get().unwrap();
        assert_eq!(queued.get().unwrap(), 1);
    });
}
