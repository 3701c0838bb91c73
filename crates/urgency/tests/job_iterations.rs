//! Real-time tasks in the runtime: the period that a compressed task learns, when its iterations are released, and
//! which of them count as late. The clock stands still but for what a test moves, so nothing here depends on a time.

mod common;

use common::ends;
use std::{
    future::pending,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use urgency::{
    jobs::{CoreSet, Iterations, JobBuilder},
    policy::cores::{
        AtBoundary, Boundary, CorePolicy, Cores, Decision, DecisionError, Demand, Elastic, Event,
        Refusal, Release, Task,
    },
    runtime::Handle,
    time::{self, Instant, sleep},
};

const MS: u64 = 1_000_000;

fn ms(count: u64) -> Duration {
    Duration::from_millis(count)
}

fn job(cores: &CoreSet, task: Task) -> JobBuilder {
    let task = Some(task);
    cores.job().demand(Demand {
        task,
        ..Demand::default()
    })
}

fn cores(policy: impl CorePolicy + Clone + Send + Sync + 'static) -> CoreSet {
    set(2, policy)
}

fn set(cores: usize, policy: impl CorePolicy + Clone + Send + Sync + 'static) -> CoreSet {
    let set = CoreSet::builder().cores(cores).core_policy(policy);
    set.build().unwrap()
}

/// On two cores it has the period that it likes, 40 ms; on one it takes 60.
fn soft() -> Task {
    Task {
        longest: 80 * MS,
        ..Task::new(60 * MS, MS / 2, 40 * MS)
    }
}

fn rigid() -> Task {
    Task::new(5 * MS, MS / 2, 10 * MS)
}

fn compressed_and_released(policy: impl CorePolicy + Clone + Send + Sync + 'static) {
    let cores = cores(policy);
    let (ask, asked) = std::sync::mpsc::channel::<std::sync::mpsc::Sender<_>>();
    let job_of_its_own = job(&cores, soft()).spawn_fn(move || {
        for answer in asked {
            answer.send(Handle::current().period()).unwrap();
        }
    });
    let compressed = job_of_its_own.unwrap();
    let its_code_says = || {
        let (answer, answered) = std::sync::mpsc::channel();
        ask.send(answer).unwrap();
        answered.recv().unwrap()
    };
    assert_eq!(compressed.period(), Some(ms(40)));
    let other = job(&cores, rigid()).spawn(pending::<()>()).unwrap();
    assert_eq!(other.period(), Some(ms(10)));
    assert_eq!(
        compressed.period(),
        Some(ms(60)),
        "the other waits, and counts"
    );
    assert_eq!(its_code_says(), Some(ms(60)));
    let third = job(&cores, rigid()).spawn_fn(|| ());
    assert!(third.is_err(), "no third core");
    other.cancel();
    assert!(other.get().is_err());
    assert_eq!(its_code_says(), Some(ms(40)));
    drop(ask);
    let control = compressed.control();
    compressed.get().unwrap();
    assert_eq!(control.period(), None, "it is over");
}

#[test]
fn a_task_learns_the_period_that_it_has_to_keep_as_other_tasks_come_and_go() {
    compressed_and_released(Elastic::default());
    compressed_and_released(AtBoundary::new(Elastic::default(), Boundary::Job));
}

#[test]
fn a_change_of_one_tasks_demand_changes_the_period_of_another_at_once() {
    let cores = cores(Elastic::default());
    let first = job(&cores, soft()).spawn(pending::<()>()).unwrap();
    let other = cores.job().spawn(pending::<()>()).unwrap();
    assert_eq!((first.period(), other.period()), (Some(ms(40)), None));
    let task = Some(rigid());
    let demand = other.demand();
    other.set_demand(Demand { task, ..demand }).unwrap();
    assert_eq!(
        (first.period(), other.period()),
        (Some(ms(60)), Some(ms(10)))
    );
    other.set_demand(demand).unwrap();
    assert_eq!((first.period(), other.period()), (Some(ms(40)), None));
    cores.cancel_all();
    cores.drain();
}

#[test]
fn neither_of_two_equal_tasks_is_promised_the_odd_core() {
    let cores = set(3, Elastic::default());
    let [first, other] = [(); 2].map(|()| job(&cores, soft()).spawn(pending::<()>()).unwrap());
    assert_eq!(
        (first.period(), other.period()),
        (Some(ms(60)), Some(ms(60)))
    );
    cores.cancel_all();
    cores.drain();
}

#[test]
fn under_a_policy_without_a_word_about_periods_a_task_has_the_one_that_it_likes() {
    let cores = CoreSet::builder().cores(2).build().unwrap();
    let task = job(&cores, soft()).spawn_fn(|| Handle::current().period());
    assert_eq!(task.unwrap().get().unwrap(), Some(ms(40)));
}

#[test]
fn iterations_are_released_a_period_apart_and_a_late_one_puts_off_the_next() {
    let cores = cores(Elastic::default());
    let times = job(&cores, rigid()).spawn(async {
        time::pause();
        let (start, mut released) = (Instant::now(), Vec::new());
        let mut iterations = Iterations::current();
        for takes in [3, 25, 0, 0] {
            let iteration = iterations.next().await;
            released.push(iteration.released() - start);
            assert_eq!(iteration.deadline(), Some(iteration.released() + ms(10)));
            time::advance(ms(takes)).await;
        }
        released
    });
    let job = times.unwrap();
    let control = job.control();
    assert_eq!(job.get().unwrap(), [0, 10, 35, 45].map(ms));
    let share = control.stats().unwrap().share;
    assert_eq!((share.iterations, share.late), (4, 1));
}

#[test]
fn a_sporadic_task_is_released_by_its_events_and_no_sooner_than_a_period_after_the_last() {
    let cores = cores(Elastic::default());
    let task = Task {
        release: Release::Sporadic,
        ..rigid()
    };
    let times = job(&cores, task).spawn(async {
        time::pause();
        let (start, mut released) = (Instant::now(), Vec::new());
        let mut iterations = Iterations::current();
        // When the events come.
        for at in [4, 6, 50, 51] {
            time::sleep_until(start + ms(at)).await;
            let iteration = iterations.next().await;
            released.push(iteration.released() - start);
        }
        released
    });
    assert_eq!(times.unwrap().get().unwrap(), [4, 14, 50, 60].map(ms));
}

#[test]
fn a_period_that_is_stretched_meanwhile_moves_the_deadline_and_the_next_release() {
    let cores = cores(Elastic::default());
    let set = cores.clone();
    let first = job(&cores, soft()).spawn(async move {
        time::pause();
        let mut iterations = Iterations::current();
        let iteration = iterations.next().await;
        let start = iteration.released();
        assert_eq!(iteration.deadline(), Some(start + ms(40)));
        let other = job(&set, rigid()).spawn(pending::<()>()).unwrap();
        assert_eq!(iteration.deadline(), Some(start + ms(60)));
        time::advance(ms(50)).await;
        drop(iteration);
        let next = iterations.next().await.released() - start;
        other.cancel();
        next
    });
    let first = first.unwrap();
    let control = first.control();
    assert_eq!(first.get().unwrap(), ms(60));
    assert_eq!(control.stats().unwrap().share.late, 0, "50 ms of 60");
}

/// *Elastic* that looks at what was late each millisecond.
#[derive(Clone, Default)]
struct Looks {
    elastic: Elastic,
    late: Arc<AtomicU64>,
}

impl CorePolicy for Looks {
    fn decide(
        &mut self,
        event: Event,
        cores: &Cores,
        to: &mut Decision,
    ) -> Result<(), DecisionError> {
        if event == Event::Timer {
            let late = cores.jobs().iter().map(|job| job.usage().late).sum();
            self.late.fetch_add(late, Ordering::Relaxed);
        }
        to.set_timer(cores.now() + MS)?;
        self.elastic.decide(event, cores, to)
    }

    fn admit(
        &mut self,
        id: urgency::policy::cores::JobId,
        demand: &Demand,
        cores: &Cores,
    ) -> Result<(), Refusal> {
        self.elastic.admit(id, demand, cores)
    }
}

#[test]
fn a_policy_sees_the_iterations_that_were_late() {
    let policy = Looks::default();
    let cores = cores(policy.clone());
    let task = Task::new(MS / 2, MS / 4, MS);
    let job = job(&cores, task).spawn_fn(move || {
        let mut iterations = Iterations::current();
        // Late, as a whole.
        let iteration = iterations.blocking_next();
        urgency::block_on(sleep(ms(2)));
        drop(iteration);
        // The policy looks while the job has work.
        while policy.late.load(Ordering::Relaxed) == 0 {
            urgency::scheduling_point();
        }
        policy.late.load(Ordering::Relaxed)
    });
    assert_eq!(ends(|| job.unwrap().get().unwrap()), 1);
}
