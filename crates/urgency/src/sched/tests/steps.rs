//! A counting build of the unit tests: how many workers are looked at for one operation of a program, by how many there
//! are. What one look finds may cost a cache line of another processor, so the number must not grow.
//!
//! Each worker counts how often its level or its holder is read, which every walk over workers does for each of them.
//! Where tasks are counted, the runtimes believe that there are as many processors as workers: nobody is in reserve.
//! Relief and searches do look at all workers, once in a millisecond or for each time that a worker goes idle. They are
//! not counted.

use crate::{
    Runtime,
    protocol::attention,
    sched::{job::Job, machine::claim::Want, worker::Worker},
    spawn,
    sys::{counted, thread::pretend_processors},
    tasks, yield_now,
};
use std::{
    cell::Cell,
    iter,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    thread,
    time::{Duration, Instant},
};

thread_local! {
    static ASIDE: Cell<bool> = const { Cell::new(false) };
    /// The looks of the calling thread.
    static OWN: Cell<u64> = const { Cell::new(0) };
}

/// A look at a worker, unless it is none of an operation's.
pub(in crate::sched) fn count(looks: &AtomicU64) {
    if !ASIDE.get() {
        looks.fetch_add(1, Relaxed);
        OWN.set(OWN.get() + 1);
    }
}

/// What the calling thread looks at until this is dropped is not counted.
pub(in crate::sched) struct Aside(bool, #[allow(dead_code, reason = "dropped")] counted::Aside);

impl Aside {
    pub(in crate::sched) fn new() -> Self {
        Aside(ASIDE.replace(true), counted::Aside::new())
    }
}

impl Drop for Aside {
    fn drop(&mut self) {
        ASIDE.set(self.0);
    }
}

crate::levels! {
    pub(in crate::sched) Two: Urgent > Batch
}

/// What is left of looks that are made once in a while is below this share of the workers, for each operation. A walk
/// for each is one.
const SHARE: f64 = 0.25;

/// Up to so many workers an operation may look at all, a few times each.
const GROUP: usize = 8;
const FEW: f64 = 12.0;

pub(in crate::sched) fn runtime(workers: usize, processors: Option<usize>) -> Runtime {
    pretend_processors(processors);
    let runtime = Runtime::builder().workers(workers).levels::<Two>().build();
    pretend_processors(None);
    runtime.unwrap()
}

/// How many looks at workers `operations` operations take, each.
fn looks(runtime: &Runtime, operations: usize, program: impl FnOnce()) -> f64 {
    let all = || {
        let workers = runtime.job().core.workers.iter();
        workers
            .map(|worker| worker.looks.load(Relaxed))
            .sum::<u64>()
    };
    let before = all();
    program();
    (all() - before) as f64 / operations as f64
}

fn assert_bounded(name: &str, of: impl Fn(usize) -> f64) {
    for workers in [1, 2, 8, 64, 256] {
        let looks = of(workers);
        println!("{name}, {workers} workers: {looks:.1}");
        let most = FEW * workers.min(GROUP) as f64 + SHARE * workers as f64;
        assert!(
            looks <= most,
            "{name}: {looks} looks with {workers} workers"
        );
    }
}

/// Awaits as many tasks as there are workers, each with an equal part of the operations.
fn with_tasks<F: Future<Output = ()> + Send + 'static>(
    workers: usize,
    operations: usize,
    task: impl Fn(usize) -> F,
) -> f64 {
    let runtime = runtime(workers, Some(workers));
    looks(&runtime, operations, || {
        let task = |_| runtime.spawn(task(operations / workers));
        let tasks: Vec<_> = (0..workers).map(task).collect();
        tasks.into_iter().for_each(|task| task.get().unwrap());
    })
}

#[test]
fn a_yield_looks_at_few_workers() {
    assert_bounded("yield", |workers| {
        with_tasks(workers, 200_000, |yields| async move {
            for _ in 0..yields {
                yield_now().await;
            }
        })
    });
}

#[test]
fn a_spawn_and_its_wake_up_look_at_few_workers() {
    assert_bounded("spawn", |workers| {
        with_tasks(workers, 100_000, |spawns| async move {
            for _ in 0..spawns {
                spawn(async {}).await.unwrap();
            }
        })
    });
}

/// Runs `f` while each of so many workers has a task at [`Batch`].
fn beside_busy_workers<T>(runtime: &Runtime, workers: usize, f: impl FnOnce() -> T) -> T {
    let ends = Arc::new(AtomicBool::new(false));
    let busy = |_| {
        let ends = ends.clone();
        runtime.at(Batch).spawn(async move {
            while !ends.load(Relaxed) {
                yield_now().await;
            }
        })
    };
    let busy: Vec<_> = (0..workers).map(busy).collect();
    let result = f();
    ends.store(true, Relaxed);
    busy.into_iter().for_each(|task| task.get().unwrap());
    result
}

#[test]
fn an_urgent_insertion_beside_less_urgent_work_looks_at_few_workers() {
    assert_bounded("urgent spawn", |workers| {
        let runtime = runtime(workers, Some(workers));
        beside_busy_workers(&runtime, workers, || {
            let before = OWN.get();
            let operations = 1000;
            for _ in 0..operations {
                runtime.at(Urgent).spawn(async {}).get().unwrap();
            }
            (OWN.get() - before) as f64 / f64::from(operations)
        })
    });
}

/// Runs `f` with the job and its workers, while all workers are in the calling thread's hands and serve this level.
/// Each has a stack of its own, which is inside the scheduler.
pub(super) fn with_all_claimed<T>(
    workers: usize,
    level: u8,
    f: impl FnOnce(&Arc<Job>, &[&Worker]) -> T,
) -> T {
    let runtime = runtime(workers, Some(workers));
    let job = runtime.job();
    let claimed: Vec<_> = iter::from_fn(|| job.claim(Want::Any)).collect();
    assert_eq!(claimed.len(), workers);
    let stacks: Vec<_> = claimed.iter().map(|_| job.core.borrow_external()).collect();
    for (worker, stack) in claimed.iter().zip(&stacks) {
        worker.set_holder(&**stack);
        worker.set_level(level);
        job.shows(worker, level);
    }
    let result = f(job, &claimed);
    claimed.into_iter().for_each(|worker| job.release(worker));
    job.start_idle();
    for stack in stacks {
        job.core.return_external(stack);
    }
    result
}

/// How many looks at workers the calling thread makes in `f`.
fn looks_of(f: impl FnOnce()) -> f64 {
    let before = OWN.get();
    f();
    (OWN.get() - before) as f64
}

#[test]
fn a_dispatch_below_others_looks_at_few_workers_and_relief_asks_the_rest() {
    assert_bounded("dispatch down", |workers| {
        with_all_claimed(workers, 0, |job, claimed| {
            let first = claimed[0];
            first.set_level(1);
            let looks = looks_of(|| job.shows(first, 1));
            let others = || job.core.workers.iter().filter(|it| it.id != first.id);
            let asked = |worker: &Worker| {
                let stack = job.core.holder(worker);
                stack.unwrap().attention.is_pending(attention::SHARE)
            };
            assert!(workers == 1 || others().any(|it| asked(it)));
            let limit = Instant::now() + Duration::from_secs(60);
            while !others().all(|it| asked(it)) {
                assert!(Instant::now() < limit, "some stacks above are not asked");
                thread::sleep(Duration::from_millis(1));
            }
            looks
        })
    });
}

#[test]
fn an_insertion_beside_equals_looks_at_no_worker() {
    for workers in [1, 2, 8, 64, 256] {
        let looks = with_all_claimed(workers, 1, |job, _| {
            // As if it had just expired: an insertion that finds it set looks at nothing.
            job.core.relief_timer.expire();
            let task = tasks::new(async {}, job.arc(), 1).0;
            looks_of(|| job.admit(task))
        });
        println!("insertion beside equals, {workers} workers: {looks:.1}");
        assert_eq!(looks, 0.0, "with {workers} workers");
    }
}

#[test]
fn a_plain_thread_that_enters_asks_few_workers() {
    assert_bounded("entry of a plain thread", |workers| {
        with_all_claimed(workers, 1, |job, _| looks_of(|| job.ask_equals(1)))
    });
}

#[test]
fn a_fork_looks_at_few_workers() {
    fn fib(n: u32) -> usize {
        if n < 2 {
            return 1;
        }
        let (a, b) = crate::join(|| fib(n - 1), || fib(n - 2));
        a + b
    }
    assert_bounded("fork", |workers| {
        let runtime = runtime(workers, None);
        let leaves = 46_368;
        looks(&runtime, leaves, || {
            assert_eq!(runtime.run(|| fib(23)), leaves)
        })
    });
}

/// All workers' threads are on one processor; a thread on another one asks whether it is crowded, as each hand-over
/// does where jobs share workers.
#[test]
fn whether_a_processor_is_crowded_is_known_without_a_look_at_each_worker() {
    let allowed = rustix::thread::sched_getaffinity(None).unwrap();
    let cpus: Vec<_> = (0..1024).filter(|&cpu| allowed.is_set(cpu)).collect();
    let on = |cpu| move || crate::sys::thread::pin(0, cpu);
    assert_bounded("crowded", |workers| {
        let (first, last) = (on(cpus[0]), on(*cpus.last().unwrap()));
        let measure = move || {
            first();
            let runtime = runtime(workers, Some(workers));
            let other = Runtime::builder().share_workers_with(&runtime);
            let _other = other.build().unwrap();
            beside_busy_workers(&runtime, workers, || {
                let core = &runtime.job().core;
                while core.idle.any() {
                    thread::yield_now();
                }
                last();
                let before = OWN.get();
                let operations = 1000;
                for _ in 0..operations {
                    core.is_crowded(&core.workers[0]);
                }
                (OWN.get() - before) as f64 / f64::from(operations)
            })
        };
        thread::spawn(measure).join().unwrap()
    });
}
