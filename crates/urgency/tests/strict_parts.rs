//! Under a policy that is not work-conserving a runtime has what the policy says, whether others have work beside it
//! or not, and also when the others are gone.

mod common;

use common::{Count, ends, fib, until};
use std::sync::{
    Arc, Mutex,
    atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
};
use urgency::{
    Runtime,
    jobs::{CoreSet, JobErrorKind, JobShutdown},
    policy::cores::{
        CorePolicy, Cores, Decision, DecisionError, Elastic, Event, Feedback, JobId, StaticEqual,
    },
    scheduling_point,
};

fn first<P: CorePolicy + Clone + Send + Sync + 'static>(workers: usize, policy: P) -> Runtime {
    let builder = Runtime::builder().workers(workers).core_policy(policy);
    builder.build().unwrap()
}

fn beside(other: &Runtime) -> Runtime {
    let builder = Runtime::builder().share_workers_with(other);
    builder.build().unwrap()
}

/// Closures that compute until they are told to end.
fn busy(runtime: &Runtime, count: usize) -> (Arc<AtomicBool>, Arc<AtomicUsize>) {
    let (stop, begun) = (Arc::<AtomicBool>::default(), Arc::<AtomicUsize>::default());
    for _ in 0..count {
        let (stop, begun) = (stop.clone(), begun.clone());
        let computes = move || {
            begun.fetch_add(1, SeqCst);
            while !stop.load(SeqCst) {
                fib(3);
            }
        };
        runtime.spawn_fn(computes).detach();
    }
    (stop, begun)
}

/// Each of two runtimes has one of two workers. Then one is gone, and the work of the other needs both workers.
fn the_one_that_is_left_has_both<P: CorePolicy + Clone + Send + Sync + 'static>(policy: P) {
    ends(move || {
        let left = first(2, policy);
        let goes = beside(&left);
        let (stop_left, begun) = busy(&left, 2);
        let (stop_goes, _) = busy(&goes, 2);
        until(|| [&left, &goes].map(|it| it.stats().share.entitled) == [Some(1); 2]);
        stop_goes.store(true, SeqCst);
        drop(goes);
        until(|| begun.load(SeqCst) == 2);
        until(|| left.stats().share.serving == 2);
        stop_left.store(true, SeqCst);
    });
}

#[test]
fn a_runtime_that_is_left_alone_has_all_that_the_policy_gives_it_then() {
    the_one_that_is_left_has_both(Elastic::default());
    the_one_that_is_left_has_both(Feedback::default());
}

/// How many of four closures of a runtime run at once.
fn at_once(runtime: &Runtime) -> usize {
    let (now, most) = (Arc::<AtomicUsize>::default(), Arc::<AtomicUsize>::default());
    let closures: Vec<_> = (0..4)
        .map(|_| {
            let (now, most) = (now.clone(), most.clone());
            runtime.spawn_fn(move || {
                most.fetch_max(now.fetch_add(1, SeqCst) + 1, SeqCst);
                (0..300).for_each(|_| scheduling_point());
                now.fetch_sub(1, SeqCst);
            })
        })
        .collect();
    closures.into_iter().for_each(|it| it.get().unwrap());
    most.load(SeqCst)
}

#[test]
fn a_runtime_that_is_alone_has_no_more_than_its_fixed_part() {
    ends(|| {
        let alone = first(2, StaticEqual::new(2).unwrap());
        for _ in 0..20 {
            assert_eq!(at_once(&alone), 1);
            // To the policy it is another job when it has work again.
            until(|| alone.stats().share.entitled.is_none());
        }
    });
}

#[test]
fn a_runtime_whose_work_had_paused_has_no_more_than_its_part_when_it_goes_on() {
    ends(|| {
        let pauses = first(3, StaticEqual::new(3).unwrap());
        let other = beside(&pauses);
        let (stop, _) = busy(&other, 1);
        until(|| other.stats().share.entitled == Some(1));
        for _ in 0..20 {
            assert_eq!(at_once(&pauses), 1);
            until(|| pauses.stats().share.entitled.is_none());
        }
        stop.store(true, SeqCst);
    });
}

/// Gives all cores to the youngest job. Notes both names of each job that enters.
#[derive(Clone, Default)]
struct Notes(Arc<Mutex<Vec<(JobId, JobId)>>>);

impl CorePolicy for Notes {
    fn decide(
        &mut self,
        event: Event,
        cores: &Cores,
        to: &mut Decision,
    ) -> Result<(), DecisionError> {
        if let Event::Start(id) = event {
            let first = cores.job(id).map(|job| job.first()).unwrap();
            self.0.lock().unwrap().push((id, first));
        }
        let youngest = cores.jobs().last().map(|job| job.id());
        cores
            .available()
            .try_for_each(|core| to.give(core, youngest))
    }
}

#[test]
fn a_runtime_whose_work_pauses_is_one_job_to_the_policy_and_the_jobs_of_a_container_are_several() {
    ends(|| {
        let notes = Notes::default();
        let pauses = first(2, notes.clone());
        for _ in 0..5 {
            pauses.spawn_fn(|| ()).get().unwrap();
            until(|| pauses.stats().share.entitled.is_none());
        }
        let names = notes.0.lock().unwrap().clone();
        assert!(
            names.len() >= 5 && names.iter().all(|it| it.1 == names[0].0),
            "{names:?}"
        );
        let notes = Notes::default();
        let cores = CoreSet::builder().cores(2).core_policy(notes.clone());
        let cores = cores.build().unwrap();
        for _ in 0..5 {
            cores.spawn_fn(|| ()).unwrap().get().unwrap();
        }
        let mut names: Vec<_> = notes.0.lock().unwrap().iter().map(|it| it.1).collect();
        names.dedup();
        assert!(names.len() >= 5, "{names:?}");
    });
}

/// The only part has two cores, of which the first job uses one.
#[test]
fn a_new_job_without_a_part_has_no_idle_core_either() {
    ends(|| {
        let cores = CoreSet::builder().cores(2);
        let cores = cores.core_policy(StaticEqual::new(1).unwrap());
        let cores = cores.build().unwrap();
        for _ in 0..20 {
            let (began, ends) = (Arc::<AtomicBool>::default(), Arc::<AtomicBool>::default());
            let [its, theirs] = [began.clone(), ends.clone()];
            let first = cores.spawn_fn(move || {
                while !theirs.load(SeqCst) {
                    scheduling_point();
                }
                its.load(SeqCst)
            });
            let first = first.unwrap();
            until(|| first.stats().is_some_and(|it| it.share.entitled == Some(2)));
            let its = began.clone();
            let second = cores.spawn_fn(move || its.store(true, SeqCst)).unwrap();
            until(|| began.load(SeqCst) || second.stats().unwrap().share.entitled == Some(0));
            ends.store(true, SeqCst);
            assert!(!first.get().unwrap(), "the second has run beside the first");
            second.get().unwrap();
        }
    });
}

/// Gives nobody a core.
#[derive(Clone)]
struct Miser;

impl CorePolicy for Miser {
    fn decide(&mut self, _: Event, _: &Cores, _: &mut Decision) -> Result<(), DecisionError> {
        Ok(())
    }
}

#[test]
fn jobs_without_a_core_end_when_they_are_cancelled() {
    for workers in [1, 2, 8, 64] {
        ends(move || {
            let set = CoreSet::builder().cores(workers).core_policy(Miser);
            let set = set.build().unwrap();
            let captured = Count::default();
            let [task, closure] = [(); 2].map(|()| captured.on_drop());
            let task = set.spawn(async move { drop(task) }).unwrap();
            let closure = set.spawn_fn(move || drop(closure)).unwrap();
            until(|| task.stats().unwrap().share.entitled == Some(0));
            set.shutdown(JobShutdown::Cancel);
            for job in [task, closure] {
                assert_eq!(job.get().unwrap_err().kind(), JobErrorKind::Cancelled);
            }
            until(|| captured.get() == 2);
        });
    }
}
