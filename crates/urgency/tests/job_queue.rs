//! The queue of a core set: which job starts next, and what a queued job holds back.

mod common;

use common::{ends, least, until};
use std::{
    fmt,
    future::pending,
    sync::{Arc, Mutex, mpsc},
    thread,
    time::{Duration, Instant},
};
use urgency::{
    Runtime,
    jobs::{CoreSet, CoreSetBuilder, JobErrorKind, JobHandle, JobState},
    policy::{LevelSchedule, Schedule, cores::Demand},
    sync::oneshot,
};
use urgency_policy::level::{Period, Seat};

fn set(describe: impl FnOnce(CoreSetBuilder) -> CoreSetBuilder) -> CoreSet {
    describe(CoreSet::builder().cores(2)).build().unwrap()
}

/// A job that has begun, and ends when the sender is used.
fn busy(set: &CoreSet, demand: Demand) -> (JobHandle<()>, oneshot::Sender<()>) {
    let (begin, begun) = mpsc::channel();
    let (end, ends) = oneshot::channel();
    let root = async move {
        begin.send(()).unwrap();
        let _ = ends.await;
    };
    let job = set.job().demand(demand).spawn(root).unwrap();
    begun.recv().unwrap();
    (job, end)
}

type Order = Arc<Mutex<Vec<&'static str>>>;

/// A job that notes its name.
fn notes(set: &CoreSet, order: &Order, name: &'static str, priority: u8) -> JobHandle<()> {
    let order = order.clone();
    let root = move || order.lock().unwrap().push(name);
    set.job().priority(priority).spawn_fn(root).unwrap()
}

#[test]
fn the_most_urgent_queued_job_starts_first_and_the_oldest_first_of_one_priority() {
    ends(|| {
        let set = set(|builder| builder.most_running(1));
        let (first, end) = busy(&set, Demand::default());
        let order = Order::default();
        let all = [
            ("calm", 9),
            ("usual", 2),
            ("calm too", 9),
            ("urgent", 0),
            ("usual too", 2),
        ];
        let jobs = all.map(|(name, priority)| notes(&set, &order, name, priority));
        assert!(jobs.iter().all(|job| job.state() == JobState::Queued));
        end.send(()).unwrap();
        first.get().unwrap();
        jobs.into_iter().for_each(|job| job.get().unwrap());
        assert_eq!(
            *order.lock().unwrap(),
            ["urgent", "usual", "usual too", "calm", "calm too"]
        );
    });
}

#[test]
fn the_place_of_a_queued_job_follows_its_priority() {
    ends(|| {
        let set = set(|builder| builder.most_running(1));
        let (first, end) = busy(&set, Demand::default());
        let order = Order::default();
        let jobs = ["a", "b", "c", "d"].map(|name| notes(&set, &order, name, 5));
        let change = |job: &JobHandle<()>, priority| {
            let demand = Demand {
                priority,
                ..job.demand()
            };
            job.set_demand(demand).unwrap();
        };
        change(&jobs[2], 1);
        change(&jobs[0], 7);
        change(&jobs[3], 0);
        // Back again, it has the place that it had.
        change(&jobs[3], 5);
        change(&jobs[1], 5);
        end.send(()).unwrap();
        first.get().unwrap();
        jobs.into_iter().for_each(|job| job.get().unwrap());
        assert_eq!(*order.lock().unwrap(), ["c", "b", "d", "a"]);
    });
}

/// Two jobs run, one of which has been promised a core, and a job that needs both cores has had its turn in vain. The
/// one that ends lets it start.
fn with_one_held_back(then: impl FnOnce(&CoreSet, JobHandle<()>, oneshot::Sender<()>)) {
    let set = set(|builder| builder.most_running(2));
    let (holds, end) = busy(&set, least(1));
    let (other, let_go) = busy(&set, Demand::default());
    let wide = set.job().demand(Demand {
        priority: 4,
        ..least(2)
    });
    let wide = wide.spawn_fn(|| ()).unwrap();
    let_go.send(()).unwrap();
    other.get().unwrap();
    until(|| set.stats().running == 1);
    assert_eq!(wide.state(), JobState::Queued);
    then(&set, wide, end);
    let _ = holds.get();
    set.drain();
}

#[test]
fn a_job_that_cannot_start_holds_back_equals_and_less_urgent_ones_and_no_more_urgent_one() {
    ends(|| {
        with_one_held_back(|set, wide, end| {
            let order = Order::default();
            let equal = notes(set, &order, "equal", 4);
            let calm = notes(set, &order, "calm", 5);
            let urgent = notes(set, &order, "urgent", 3);
            urgent.get().unwrap();
            assert_eq!(*order.lock().unwrap(), ["urgent"]);
            assert_eq!(equal.state(), JobState::Queued);
            assert_eq!(calm.state(), JobState::Queued);
            end.send(()).unwrap();
            wide.get().unwrap();
            equal.get().unwrap();
            calm.get().unwrap();
        });
    });
}

#[test]
fn what_a_job_held_back_starts_when_it_is_cancelled_or_asks_for_less() {
    ends(|| {
        with_one_held_back(|set, wide, end| {
            let behind = set.job().priority(4).spawn_fn(|| 7).unwrap();
            assert_eq!(behind.state(), JobState::Queued);
            wide.cancel();
            assert_eq!(behind.get().unwrap(), 7);
            assert_eq!(wide.get().unwrap_err().kind(), JobErrorKind::Cancelled);
            end.send(()).unwrap();
        });
        with_one_held_back(|set, wide, end| {
            let behind = set.job().priority(4).spawn_fn(|| 7).unwrap();
            assert_eq!(behind.state(), JobState::Queued);
            wide.set_demand(least(1)).unwrap();
            wide.get().unwrap();
            assert_eq!(behind.get().unwrap(), 7);
            end.send(()).unwrap();
        });
    });
}

/// Code of a job that runs, or of other runtimes on its cores, has been promised a core by `hold`. A queued job that
/// needs both cores has had its turn in vain, and starts when `give_back` has given that core back.
fn starts_when_given_back<H>(
    hold: impl FnOnce(&CoreSet, &Runtime) -> H,
    give_back: impl FnOnce(&H),
) {
    let set = set(|builder| builder.most_running(3));
    let (tell, told) = mpsc::channel();
    let endless = set.spawn(async move {
        tell.send(Runtime::current()).unwrap();
        pending::<()>().await;
    });
    let endless = endless.unwrap();
    let runtime = told.recv().unwrap();
    let holds = hold(&set, &runtime);
    let fill = (set.stats().running..3).map(|_| busy(&set, Demand::default()));
    let mut fillers: Vec<_> = fill.collect();
    let wide = set.job().demand(least(2)).spawn_fn(|| ()).unwrap();
    let (filler, let_go) = fillers.pop().unwrap();
    let_go.send(()).unwrap();
    filler.get().unwrap();
    until(|| set.stats().running == 2);
    thread::sleep(Duration::from_millis(10));
    assert_eq!(wide.state(), JobState::Queued);
    give_back(&holds);
    wide.get().unwrap();
    assert_eq!(endless.state(), JobState::Running);
    set.cancel_all();
    set.drain();
}

#[test]
fn a_queued_job_starts_when_a_running_job_asks_for_less() {
    ends(|| {
        let holds = |set: &CoreSet, _: &Runtime| busy(set, least(1));
        starts_when_given_back(holds, |(job, _end)| {
            job.set_demand(Demand::default()).unwrap();
        });
    });
}

#[test]
fn a_queued_job_starts_when_the_runtime_of_a_running_job_asks_for_less() {
    ends(|| {
        let holds = |_: &CoreSet, runtime: &Runtime| {
            runtime.set_demand(least(1)).unwrap();
            runtime.clone()
        };
        starts_when_given_back(holds, |runtime| {
            runtime.set_demand(Demand::default()).unwrap();
        });
    });
}

#[test]
fn a_queued_job_starts_when_a_runtime_on_its_cores_asks_for_less_or_ends() {
    ends(|| {
        let holds = |_: &CoreSet, runtime: &Runtime| {
            let beside = Runtime::builder().share_workers_with(runtime);
            Mutex::new(beside.demand(least(1)).build().ok())
        };
        starts_when_given_back(holds, |beside| {
            let beside = beside.lock().unwrap();
            let beside = beside.as_ref().unwrap();
            beside.set_demand(Demand::default()).unwrap();
        });
        starts_when_given_back(holds, |beside| {
            let beside = beside.lock().unwrap().take();
            drop(beside.unwrap());
        });
    });
}

#[test]
fn a_queued_job_starts_when_a_job_of_another_set_on_its_cores_is_over() {
    ends(|| {
        let holds = |_: &CoreSet, runtime: &Runtime| busy(&CoreSet::beside(runtime), least(1));
        starts_when_given_back(holds, |(job, _end)| job.cancel());
    });
}

type Code = Box<dyn FnOnce() + Send>;

/// The code of the program that runs when a job has been refused its demand, and is not back in the queue; or when it
/// has its container, and has not begun.
#[derive(Clone, Default)]
struct WhenRefused(Arc<Mutex<Option<Code>>>);

impl WhenRefused {
    fn run(&self, code: impl FnOnce() + Send + 'static) {
        *self.0.lock().unwrap() = Some(Box::new(code));
    }
}

impl fmt::Debug for WhenRefused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WhenRefused")
    }
}

impl LevelSchedule for WhenRefused {
    fn period(&self) -> Period {
        Period::Never
    }

    fn seat(&mut self, _: usize, _: usize, _: u64) -> Seat {
        Seat::PROMPT
    }
}

/// The start drops the copy from which it built a runtime, or did not.
impl Drop for WhenRefused {
    fn drop(&mut self) {
        let code = self.0.lock().unwrap().take();
        code.into_iter().for_each(|code| code());
    }
}

/// A job that needs both cores, which tells when it is refused these.
fn wide(set: &CoreSet, priority: u8) -> (JobHandle<()>, WhenRefused) {
    let refused = WhenRefused::default();
    let schedule = Schedule::own(refused.clone());
    let job = set.job().runtime(|builder| builder.schedule(schedule));
    let demand = Demand {
        priority,
        ..least(2)
    };
    (job.demand(demand).spawn_fn(|| ()).unwrap(), refused)
}

#[test]
fn a_queued_job_starts_that_was_refused_what_was_given_back_before_it_was_queued_again() {
    ends(|| {
        let set = set(|builder| builder.most_running(3));
        let (endless, _end) = busy(&set, Demand::default());
        let (holds, end) = busy(&set, least(1));
        let (filler, let_go) = busy(&set, Demand::default());
        let (wide, refused) = wide(&set, 0);
        refused.run(move || {
            end.send(()).unwrap();
            until(|| holds.is_over());
            // Its end looks for queued jobs, too.
            thread::sleep(Duration::from_millis(50));
        });
        let_go.send(()).unwrap();
        filler.get().unwrap();
        wide.get().unwrap();
        assert_eq!(endless.state(), JobState::Running);
        set.cancel_all();
        set.drain();
    });
}

/// What is asked of a queued job has no error, since it may be had later. So the job that cannot have it does not
/// start.
#[test]
fn a_job_that_asks_for_more_while_it_starts_has_that_or_stays_in_the_queue() {
    ends(|| {
        let set = set(|builder| builder.most_running(2));
        let (holds, end) = busy(&set, least(1));
        let (filler, let_go) = busy(&set, Demand::default());
        let starts = WhenRefused::default();
        let schedule = Schedule::own(starts.clone());
        let job = set.job().runtime(|builder| builder.schedule(schedule));
        let job = job.spawn(async { Runtime::current().demand().min_cores });
        let job = job.unwrap();
        let (control, (tell, told)) = (job.control(), mpsc::channel());
        starts.run(move || {
            let changed = control.set_demand(least(2));
            tell.send(changed).unwrap();
        });
        let_go.send(()).unwrap();
        filler.get().unwrap();
        told.recv().unwrap().unwrap();
        thread::sleep(Duration::from_millis(10));
        assert_eq!(job.state(), JobState::Queued);
        end.send(()).unwrap();
        holds.get().unwrap();
        assert_eq!(job.get().unwrap(), 2);
    });
}

#[test]
fn no_less_urgent_job_passes_a_queued_one_that_is_about_to_be_refused() {
    ends(|| {
        let set = set(|builder| builder.most_running(8));
        let (_holds, end) = busy(&set, least(1));
        let mut fillers: Vec<_> = (0..7).map(|_| busy(&set, Demand::default())).collect();
        let (wide, refused) = wide(&set, 4);
        let mut one_ends = || {
            let (filler, let_go) = fillers.pop().unwrap();
            let_go.send(()).unwrap();
            filler.get().unwrap();
            until(|| set.stats().running == 1 + fillers.len());
            thread::sleep(Duration::from_millis(10));
            assert_eq!(wide.state(), JobState::Queued);
        };
        // There is room for some more.
        (0..4).for_each(|_| one_ends());
        let (tell, told) = mpsc::channel();
        let its = set.clone();
        refused.run(move || {
            let [urgent, equal, calm] = [3, 4, 5].map(|priority| {
                let job = its.job().priority(priority);
                job.spawn(pending::<()>()).unwrap()
            });
            let states = [&urgent, &equal, &calm].map(|job| job.state());
            tell.send(states).unwrap();
            urgent.cancel();
            equal.cancel();
            calm.cancel();
        });
        one_ends();
        let states = told.recv().unwrap();
        assert_eq!(
            states,
            [JobState::Running, JobState::Queued, JobState::Queued]
        );
        end.send(()).unwrap();
        wide.get().unwrap();
        set.cancel_all();
        set.drain();
    });
}

#[test]
fn all_are_cancelled_at_once_and_none_of_them_starts() {
    ends(|| {
        let set = set(|builder| builder.most_running(1));
        let (running, _end) = busy(&set, Demand::default());
        let order = Order::default();
        let jobs: Vec<_> = (0..100).map(|_| notes(&set, &order, "ran", 0)).collect();
        set.cancel_all();
        for job in jobs {
            assert_eq!(job.get().unwrap_err().kind(), JobErrorKind::Cancelled);
        }
        assert_eq!(running.get().unwrap_err().kind(), JobErrorKind::Cancelled);
        set.drain();
        assert!(order.lock().unwrap().is_empty());
        let stats = set.stats();
        assert_eq!((stats.submitted, stats.over), (101, 101));
    });
}

#[test]
fn a_job_tells_when_it_was_submitted_when_it_started_and_when_it_was_over() {
    ends(|| {
        let set = set(|builder| builder.most_running(1));
        let before = Instant::now();
        let (first, end) = busy(&set, Demand::default());
        let [calm, urgent, never] = [5, 0, 7].map(|priority| {
            let job = set.job().priority(priority);
            job.spawn_fn(|| ()).unwrap()
        });
        let controls = [&first, &calm, &urgent, &never].map(|job| job.control());
        let [first_times, calm_times, urgent_times, _] = controls.each_ref().map(|job| job.times());
        assert!(before <= first_times.submitted && first_times.submitted <= calm_times.submitted);
        assert!(calm_times.submitted <= urgent_times.submitted);
        assert!(first_times.started.is_some() && first_times.over.is_none());
        assert_eq!((calm_times.started, calm_times.running()), (None, None));
        // The oldest one, though it is not the first.
        assert!(set.stats().oldest_queued >= Some(urgent_times.queued()));
        never.cancel();
        end.send(()).unwrap();
        for job in [first, calm, urgent] {
            job.get().unwrap();
        }
        let [first, calm, urgent, never] = controls.map(|job| job.times());
        assert!(first.started <= urgent.started && urgent.started <= calm.started);
        assert!(calm.started <= calm.over && calm.over.is_some());
        assert!(calm.queued() >= urgent.queued());
        assert_eq!((never.started, never.running()), (None, None));
        assert_eq!(never.over, Some(never.submitted + never.queued()));
        assert_eq!(set.stats().oldest_queued, None);
    });
}

#[test]
fn a_handle_gives_the_result_of_a_job_that_is_over_and_itself_before() {
    ends(|| {
        let set = set(|builder| builder);
        let (job, end) = busy(&set, Demand::default());
        let job = job.try_get().unwrap_err();
        end.send(()).unwrap();
        until(|| job.is_over());
        job.try_get().unwrap().unwrap();
        let (cancelled, _end) = busy(&set, Demand::default());
        cancelled.cancel();
        until(|| cancelled.is_over());
        let error = cancelled.try_get().unwrap().unwrap_err();
        assert_eq!(error.kind(), JobErrorKind::Cancelled);
    });
}

/// It speaks of the demand's fields, and says what sets them.
#[test]
fn the_error_of_a_refused_job_names_the_methods_of_its_description() {
    ends(|| {
        let cores = set(|builder| builder);
        let too_many = cores.job().min_cpus(3).spawn_fn(|| ()).unwrap_err();
        let crossed = cores.job().min_cpus(2).max_cpus(1).spawn_fn(|| ());
        for (error, says) in [
            (too_many, "min_cores is 3"),
            (crossed.unwrap_err(), "max_cores is 1"),
        ] {
            let text = error.to_string();
            let all = [
                says,
                "`min_cpus` is its min_cores",
                "`max_cpus`",
                "the job's",
            ];
            assert!(all.iter().all(|it| text.contains(it)), "{text}");
        }
    });
}
