//! A runtime carries out what its core policy says of cache and bandwidth, on a model of the kernel.

#![allow(missing_docs)]
#![cfg(target_os = "linux")]

mod kernel;

use kernel::{
    Kernel,
    machine::{Fault, intel},
    newest_first::{self, NewestFirst},
};
use std::{
    io,
    path::Path,
    sync::{
        Arc, Mutex, MutexGuard,
        atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
    },
    thread,
    time::{Duration, Instant},
};
use urgency::{
    BuildError, Runtime,
    jobs::{CoreSet, JobHandle},
    runtime::PartitionError,
};
use urgency_policy::cores::{CorePolicy, Cores, Decision, DecisionError, Event, Shares};
use urgency_resctrl::{Files, MountOptions, Partition};

/// The model, for a runtime's thread and the test's.
#[derive(Clone)]
struct Machine(Arc<Mutex<Kernel>>);

impl Machine {
    fn new() -> Self {
        Machine(Arc::new(Mutex::new(Kernel::new(intel()))))
    }

    fn lock(&self) -> MutexGuard<'_, Kernel> {
        self.0.lock().unwrap()
    }

    fn partition(&self) -> Partition<Machine> {
        Partition::open(self.clone(), MountOptions::default(), "t").unwrap()
    }

    /// What the processors 0 and 1 have of the cache and the bandwidth.
    fn limits(&self) -> [(u64, u64); 2] {
        let kernel = self.lock();
        [0, 1].map(|cpu| (kernel.value(cpu, "L3"), kernel.value(cpu, "MB")))
    }

    #[track_caller]
    fn until(&self, expected: [(u64, u64); 2]) {
        let limit = Instant::now() + Duration::from_secs(60);
        while self.limits() != expected {
            assert!(Instant::now() < limit, "it stays at {:x?}", self.limits());
            thread::sleep(Duration::from_millis(1));
        }
    }
}

impl Files for Machine {
    fn read(&self, path: &Path) -> io::Result<String> {
        self.lock().read(path)
    }

    fn write(&self, path: &Path, text: &str) -> io::Result<usize> {
        self.lock().write(path, text)
    }

    fn make_dir(&self, path: &Path) -> io::Result<()> {
        self.lock().make_dir(path)
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        self.lock().remove_dir(path)
    }

    fn directories(&self, path: &Path) -> io::Result<Vec<String>> {
        self.lock().directories(path)
    }
}

const OLD: (u64, u64) = (newest_first::OLD_WAYS, 10);
const NEW: (u64, u64) = (newest_first::NEW_WAYS, 100);
const FREE: (u64, u64) = (0x7ff, 100);

/// As [`NewestFirst`], and the newest job has all of the bandwidth.
#[derive(Clone)]
struct Pair;

impl CorePolicy for Pair {
    fn decide(
        &mut self,
        event: Event,
        cores: &Cores,
        decision: &mut Decision,
    ) -> Result<(), DecisionError> {
        NewestFirst.decide(event, cores, decision)?;
        let newest = cores.jobs().last();
        newest.map_or(Ok(()), |job| decision.set_bandwidth(job.id(), 100))
    }
}

/// As [`Pair`], and tells how many jobs it has seen at once.
#[derive(Clone)]
struct Tells(Arc<AtomicUsize>);

impl CorePolicy for Tells {
    fn decide(
        &mut self,
        event: Event,
        cores: &Cores,
        decision: &mut Decision,
    ) -> Result<(), DecisionError> {
        self.0.fetch_max(cores.jobs().len(), SeqCst);
        Pair.decide(event, cores, decision)
    }
}

/// Equal parts, and from the second event on all ways for the first job.
#[derive(Clone, Default)]
struct Asks(Shares);

impl CorePolicy for Asks {
    fn decide(
        &mut self,
        event: Event,
        cores: &Cores,
        decision: &mut Decision,
    ) -> Result<(), DecisionError> {
        self.0.decide(event, cores, decision)?;
        match event {
            Event::Start(_) | Event::Exit(_) => Ok(()),
            _ => decision.set_cache_ways(cores.jobs()[0].id(), NEW.0),
        }
    }
}

/// A job that could use any number of cores until `stop`.
fn wide(cores: &CoreSet, stop: &Arc<AtomicBool>) -> JobHandle<()> {
    let stop = stop.clone();
    let job = cores.spawn_fn(move || {
        let spins = |_| {
            let stop = stop.clone();
            urgency::spawn_fn(move || {
                while !stop.load(SeqCst) {
                    urgency::scheduling_point();
                }
            })
        };
        let all: Vec<_> = (0..6).map(spins).collect();
        all.into_iter().for_each(|task| task.get().unwrap());
    });
    job.unwrap()
}

fn has_two_processors() -> bool {
    thread::available_parallelism().unwrap().get() > 1
}

#[test]
fn the_processors_of_each_job_have_its_ways_and_bandwidth_and_lose_them_with_it() {
    if !has_two_processors() {
        return;
    }
    let machine = Machine::new();
    let cores = CoreSet::builder().pinned_to([0, 1]).core_policy(Pair);
    let cores = cores.partition(machine.partition()).build().unwrap();
    let (stop_old, stop_new) = (Arc::default(), Arc::default());
    let old = wide(&cores, &stop_old);
    let new = wide(&cores, &stop_new);
    let limit = Instant::now() + Duration::from_secs(60);
    // Which of the two processors is whose is the runtime's affair.
    while !matches!(machine.limits(), [OLD, NEW] | [NEW, OLD]) {
        assert!(
            Instant::now() < limit,
            "it stays at {:x?}",
            machine.limits()
        );
        thread::sleep(Duration::from_millis(1));
    }
    assert_ne!(cores.partition().unwrap().plans, 0);
    stop_new.store(true, SeqCst);
    new.get().unwrap();
    machine.until([NEW, NEW]);
    stop_old.store(true, SeqCst);
    old.get().unwrap();
    assert!(cores.partition().unwrap().refused.is_none());
    cores.release_partition();
    assert_eq!(machine.limits(), [FREE, FREE]);
    assert!(machine.lock().groups().is_empty());
    let unlimited = cores.spawn_fn(|| 6 * 7).unwrap();
    assert_eq!(unlimited.get().unwrap(), 42);
}

#[test]
fn a_job_alone_has_its_limits_too_and_takes_none_of_an_earlier_jobs() {
    if !has_two_processors() {
        return;
    }
    let machine = Machine::new();
    let cores = CoreSet::builder().pinned_to([0, 1]).core_policy(Pair);
    let cores = cores.partition(machine.partition()).build().unwrap();
    for _ in 0..3 {
        let stop = Arc::default();
        let job = wide(&cores, &stop);
        machine.until([NEW, NEW]);
        stop.store(true, SeqCst);
        job.get().unwrap();
        machine.until([FREE, FREE]);
    }
}

#[test]
fn one_task_of_a_plain_runtime_has_the_policys_limits_while_it_runs() {
    let machine = Machine::new();
    let builder = Runtime::builder().pin_workers_to([0]).core_policy(Pair);
    let runtime = builder.partition(machine.partition()).build().unwrap();
    let (stop, theirs) = (Arc::new(AtomicBool::new(false)), machine.clone());
    let stopped = stop.clone();
    let task = runtime.spawn_fn(move || {
        while !stopped.load(SeqCst) {
            urgency::scheduling_point();
        }
        theirs.limits()[0]
    });
    machine.until([NEW, FREE]);
    stop.store(true, SeqCst);
    assert_eq!(task.get().unwrap(), NEW);
    drop(runtime);
    assert_eq!(machine.limits(), [FREE, FREE]);
    assert!(machine.lock().groups().is_empty());
}

#[test]
fn files_that_panic_end_the_partition_and_nothing_else() {
    #[derive(Clone)]
    struct Broken(Machine, Arc<AtomicBool>);

    impl Files for Broken {
        fn read(&self, path: &Path) -> io::Result<String> {
            self.0.read(path)
        }

        fn write(&self, path: &Path, text: &str) -> io::Result<usize> {
            assert!(!self.1.swap(false, SeqCst), "the files are broken");
            self.0.write(path, text)
        }

        fn make_dir(&self, path: &Path) -> io::Result<()> {
            self.0.make_dir(path)
        }

        fn remove_dir(&self, path: &Path) -> io::Result<()> {
            self.0.remove_dir(path)
        }

        fn directories(&self, path: &Path) -> io::Result<Vec<String>> {
            self.0.directories(path)
        }
    }

    let files = Broken(Machine::new(), Arc::default());
    let partition = Partition::open(files.clone(), MountOptions::default(), "t").unwrap();
    let builder = Runtime::builder().pin_workers_to([0]).core_policy(Pair);
    let runtime = builder.partition(partition).build().unwrap();
    files.1.store(true, SeqCst);
    let limit = Instant::now() + Duration::from_secs(60);
    let report = || runtime.partition().unwrap();
    while !report().panicked {
        assert!(Instant::now() < limit, "{:?}", report());
        let spins = || (0..1000).for_each(|_| urgency::scheduling_point());
        runtime.spawn_fn(spins).get().unwrap();
    }
    assert_eq!(runtime.spawn_fn(|| 6 * 7).get().unwrap(), 42);
}

#[test]
fn what_the_kernel_refuses_is_reported_and_tried_again_with_the_next_plan() {
    if !has_two_processors() {
        return;
    }
    let machine = Machine::new();
    let most = Arc::new(AtomicUsize::new(0));
    let policy = Tells(most.clone());
    let cores = CoreSet::builder().pinned_to([0, 1]).core_policy(policy);
    let cores = cores.partition(machine.partition()).build().unwrap();
    machine.lock().fail(1, Fault::Refused);
    let (stop_old, stop_new) = (Arc::default(), Arc::default());
    let old = wide(&cores, &stop_old);
    let new = wide(&cores, &stop_new);
    let limit = Instant::now() + Duration::from_secs(60);
    loop {
        let report = cores.partition().unwrap();
        // The end of a job that the policy has not seen is no reason for a next plan. And the plan that is refused must
        // not be the last one.
        let is_next_seen = most.load(SeqCst) == 2 && machine.lock().has_failed();
        if is_next_seen && (report.refused.is_some() || report.plans > 0) {
            break;
        }
        assert!(Instant::now() < limit, "nothing was carried out");
        thread::sleep(Duration::from_millis(1));
    }
    stop_new.store(true, SeqCst);
    new.get().unwrap();
    machine.until([NEW, NEW]);
    assert!(cores.partition().unwrap().refused.is_none());
    stop_old.store(true, SeqCst);
    old.get().unwrap();
}

#[test]
fn without_a_partition_a_policy_that_asks_for_cache_has_the_error() {
    let cores = CoreSet::builder().cores(2).core_policy(Asks::default());
    let cores = cores.build().unwrap();
    assert!(cores.partition().is_none());
    let stop = Arc::default();
    let jobs = [wide(&cores, &stop), wide(&cores, &stop)];
    let limit = Instant::now() + Duration::from_secs(60);
    let rejected = || jobs[0].stats().and_then(|stats| stats.share.rejected);
    while rejected() != Some(DecisionError::NoCacheControl) {
        assert!(Instant::now() < limit, "{:?}", rejected());
        thread::sleep(Duration::from_millis(1));
    }
    stop.store(true, SeqCst);
    jobs.into_iter().for_each(|job| job.get().unwrap());
}

#[test]
fn a_partition_needs_pinned_workers_on_its_processors_and_serves_one_runtime() {
    let machine = Machine::new();
    let of = |error| BuildError::Partition(error);
    let builder = Runtime::builder().workers(1).partition(machine.partition());
    assert_eq!(builder.build().unwrap_err(), of(PartitionError::NotPinned));

    let builder = Runtime::builder().pin_workers_to([0]);
    let builder = builder.partition(machine.partition());
    let first = builder.clone().build().unwrap();
    assert_eq!(builder.build().unwrap_err(), of(PartitionError::Taken));
    drop(first);

    machine.lock().make_dir(Path::new("other")).unwrap();
    machine
        .lock()
        .write(Path::new("other/cpus_list"), "0\n")
        .unwrap();
    let builder = Runtime::builder().pin_workers_to([0]);
    let error = builder.partition(machine.partition()).build().unwrap_err();
    assert_eq!(error, of(PartitionError::NotOurs { cpu: 0 }));
}
