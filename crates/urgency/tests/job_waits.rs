//! Waits for a job by code that is of no job, and what a wait lends whatever the core policy admits.

mod common;

use common::{ends, until};
use std::{
    future::{Future, IntoFuture, pending},
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::SeqCst},
        mpsc,
    },
    task::{Context, Waker},
    time::Duration,
};
use urgency::{
    Runtime,
    jobs::{CoreSet, JobError, JobErrorKind, JobHandle},
    join,
    policy::cores::{
        CorePolicy, Cores, Decision, DecisionError, Demand, Event, JobId, Refusal, Shares,
    },
    sync::oneshot,
    time::sleep,
};

fn urgent(priority: u8) -> Demand {
    Demand {
        priority,
        ..Demand::default()
    }
}

/// Code of a job, until that is as urgent as this.
async fn becomes(priority: u8) {
    while Runtime::current().demand().priority != priority {
        sleep(Duration::from_millis(1)).await;
    }
}

fn service(priority: u8) -> Runtime {
    let builder = Runtime::builder().workers(2);
    builder.demand(urgent(priority)).build().unwrap()
}

#[test]
fn a_job_for_which_a_runtime_beside_it_waits_is_as_urgent_and_so_on() {
    ends(|| {
        let service = service(2);
        let set = CoreSet::beside(&service);
        let last = set.job().priority(9).spawn(becomes(2)).unwrap();
        let first = set.job().priority(5).spawn(async move {
            becomes(2).await;
            last.await.unwrap();
        });
        service.block_on(async { first.unwrap().await.unwrap() });
    });
}

#[test]
fn what_a_runtime_lends_follows_its_priority_and_ends_with_the_wait() {
    ends(|| {
        let service = service(3);
        let set = CoreSet::beside(&service);
        let (tell, told) = mpsc::channel();
        let job = set.job().priority(9).spawn(async move {
            for priority in [3, 1, 9] {
                becomes(priority).await;
                tell.send(()).unwrap();
            }
            pending::<()>().await;
        });
        let job = job.unwrap();
        let control = job.control();
        let waits = service.spawn(async { job.await.is_err() });
        told.recv().unwrap();
        service.set_demand(urgent(1)).unwrap();
        told.recv().unwrap();
        waits.abort();
        told.recv().unwrap();
        assert_eq!(control.demand().priority, 9);
        control.cancel();
        set.drain();
    });
}

#[test]
fn a_service_that_fills_all_cores_waits_for_a_less_urgent_job_and_has_its_result() {
    ends(|| {
        let service = service(0);
        let set = CoreSet::beside(&service);
        let end = Arc::new(AtomicBool::new(false));
        let spins = (0..4).map(|_| {
            let end = end.clone();
            service.spawn_fn(move || {
                while !end.load(SeqCst) {
                    join(|| (), || ());
                }
            })
        });
        let spins: Vec<_> = spins.collect();
        let backup = set.job().priority(1).spawn_fn(|| "saved").unwrap();
        assert_eq!(service.run(|| backup.get().unwrap()), "saved");
        end.store(true, SeqCst);
        spins.into_iter().for_each(|spin| spin.get().unwrap());
    });
}

#[test]
fn a_task_that_other_code_put_into_a_job_waits_as_code_of_the_job() {
    ends(|| {
        let set = CoreSet::builder().cores(2).build().unwrap();
        let (tell, told) = mpsc::channel();
        let (_end, ends) = oneshot::channel::<()>();
        let job: JobHandle<()> = set
            .spawn(async move {
                tell.send(Runtime::current()).unwrap();
                let _ = ends.await;
            })
            .unwrap();
        let runtime = told.recv().unwrap();
        let waits = runtime.spawn(async { job.await.map_err(|error| error.kind()) });
        assert_eq!(waits.get().unwrap(), Err(JobErrorKind::WaitsForItself));
    });
}

/// *Shares* that admit nothing once they are told to.
#[derive(Clone, Default)]
struct Full {
    shares: Shares,
    is_full: Arc<AtomicBool>,
}

impl CorePolicy for Full {
    fn admit(&mut self, _: JobId, _: &Demand, _: &Cores) -> Result<(), Refusal> {
        match self.is_full.load(SeqCst) {
            true => Err(Refusal::Own("it is full")),
            false => Ok(()),
        }
    }

    fn decide(
        &mut self,
        event: Event,
        cores: &Cores,
        decision: &mut Decision,
    ) -> Result<(), DecisionError> {
        self.shares.decide(event, cores, decision)
    }

    fn is_work_conserving(&self) -> bool {
        true
    }
}

#[test]
fn a_priority_is_lent_though_the_core_policy_would_admit_no_demand_with_it() {
    ends(|| {
        let policy = Full::default();
        let set = CoreSet::builder().cores(2).core_policy(policy.clone());
        let set = set.build().unwrap();
        let calm = set.job().priority(9).spawn(becomes(0)).unwrap();
        let control = calm.control();
        let (go_on, goes_on) = oneshot::channel();
        let urgent = set.spawn(async move {
            goes_on.await.unwrap();
            calm.await.unwrap();
        });
        policy.is_full.store(true, SeqCst);
        assert!(control.set_demand(Demand::default()).is_err());
        go_on.send(()).unwrap();
        urgent.unwrap().get().unwrap();
        until(|| control.is_over());
    });
}

/// A wait that goes from hand to hand.
struct Given(Wait);

type Wait = Pin<Box<dyn Future<Output = Result<u32, JobError>> + Send>>;

#[test]
fn a_job_may_wait_for_one_that_is_over_and_has_given_its_wait_for_the_first_one_away() {
    ends(|| {
        let set = CoreSet::builder().cores(2).build().unwrap();
        let (give, given) = oneshot::channel::<JobHandle<u32>>();
        let giver = set.spawn(async move {
            let mut wait: Wait = given.await.unwrap().into_future();
            let mut cx = Context::from_waker(Waker::noop());
            assert!(wait.as_mut().poll(&mut cx).is_pending());
            Given(wait)
        });
        let giver = giver.unwrap();
        let is_over = giver.control();
        let (pass, passed) = oneshot::channel::<JobHandle<Given>>();
        let waits = set.spawn(async move {
            let Given(wait) = passed.await.unwrap().await.unwrap();
            drop(wait);
            7
        });
        let waits = waits.unwrap();
        let control = waits.control();
        give.send(waits).unwrap();
        until(|| is_over.is_over());
        pass.send(giver).unwrap();
        until(|| control.is_over());
        assert_eq!(control.stats().unwrap().panicked, 0);
    });
}
