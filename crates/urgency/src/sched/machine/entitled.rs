//! How many workers may run at once: what the process is entitled to, also when that changes.
//!
//! The affinity of a process, its cpuset and the quota of its cgroup change while it runs, and nothing tells it. So an
//! expiry of the relief timer looks, [once a second](PERIOD). As many workers are in reserve as there are too many
//! (`reserve.rs`). While nothing waits for a worker the timer is off: workers that run when the quota shrinks go on
//! together until something waits.
//!
//! - *The program named no number of workers*, or only the most: then no more run than the process may use, its quota
//!   included. A worker that runs beyond that number is asked to leave (`cores/mod.rs`), and goes to the idle set.
//!   It comes out again when it is hungry, also for a thread that is awake (`Job::claim_awake`).
//! - *The program named the number*: then only the reserve follows, and only the affinity. Such a program may have code
//!   that spins until other code does something, and has more workers than processors for its sake. A quota does not
//!   count: one and a half processors are two that rest at times.
//!
//! # Whose affinity
//!
//! A process has none, its threads have. A program may pin threads, the runtime's included
//! (`Builder::on_thread_start`), and a hand-off restricts a thread for a moment. So a processor counts if any of these
//! may use it: the program's first thread, the thread that looks, and the threads that hold a worker or held one last.

use crate::sched::{core::Core, worker::NO_LEVEL};
use crate::sys::{clock, thread};
use std::{
    path::Path,
    sync::atomic::{AtomicU64, AtomicUsize, Ordering},
    time::Duration,
};
use urgency_resctrl::Entitlement;

/// How often an expiry looks. It takes some small files to be read, 50 to 100 µs.
const PERIOD: Duration = Duration::from_secs(1);

/// Whether, and how, the number of workers that may run follows what the process may use.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Follows {
    /// Not at all.
    Never,
    /// The reserve follows the affinity.
    Affinity,
    /// No more workers run than affinity and quota allow. The kernel's files are below this directory.
    Entitlement(&'static Path),
}

/// See the module's text.
#[derive(Debug)]
pub(crate) struct Entitled {
    follows: Follows,
    /// How many workers may run by the last look.
    usable: AtomicUsize,
    at_first: usize,
    /// When the last look was, in ticks.
    looked: AtomicU64,
}

impl Entitled {
    /// At first so many may run at once.
    pub(crate) fn new(follows: Follows, at_first: usize) -> Self {
        Entitled {
            follows,
            usable: AtomicUsize::new(at_first),
            at_first,
            looked: AtomicU64::new(clock::now()),
        }
    }

    /// How many workers may run at once.
    pub(crate) fn usable(&self) -> usize {
        self.usable.load(Ordering::Relaxed)
    }

    /// Whether a worker that runs beyond that number has to leave.
    pub(in crate::sched) fn binds(&self) -> bool {
        matches!(self.follows, Follows::Entitlement(_))
    }

    fn is_due(&self, now: u64) -> bool {
        let last = self.looked.load(Ordering::Relaxed);
        !matches!(self.follows, Follows::Never)
            && now.saturating_sub(last) >= clock::ticks(PERIOD.as_nanos() as f64)
            && self
                .looked
                .compare_exchange(last, now, Ordering::Relaxed, Ordering::Relaxed)
                .is_ok()
    }

    fn look(&self, tids: &[i32]) -> Option<usize> {
        let cpus = thread::affinity(tids)?;
        match self.follows {
            Follows::Never => None,
            Follows::Affinity => Some(cpus.len()),
            // Where a file of the kernel's is not what it should be, the number stays.
            Follows::Entitlement(root) => {
                let entitlement = Entitlement::read_at(root, cpus);
                entitlement.ok().map(|entitlement| entitlement.workers())
            }
        }
    }
}

impl Core {
    /// The relief timer expired: looks, if it is time to. Where seats are assigned, each worker has one, and the number
    /// is the first one again. Whether more workers may run than before.
    pub(in crate::sched) fn follow_entitlement(&self, has_seats: bool) -> bool {
        let entitled = &self.entitled;
        if !entitled.is_due(clock::now()) {
            return false;
        }
        let now = if has_seats {
            Some(entitled.at_first)
        } else {
            let held = self.workers.iter().filter_map(|w| self.holder(w));
            let tids = held.map(|stack| stack.tid.load(Ordering::Relaxed));
            let all = tids.filter(|&tid| tid != 0).chain([0, thread::first_id()]);
            entitled.look(&all.collect::<Vec<_>>())
        };
        let Some(now) = now else {
            return false;
        };
        let before = entitled.usable.swap(now, Ordering::Relaxed);
        if now != before {
            let held = if has_seats { usize::MAX } else { 0 };
            self.idle.set_processors(now, held);
        }
        now > before
    }

    /// How many workers run that have to leave.
    pub(in crate::sched) fn superfluous(&self) -> usize {
        if !self.entitled.binds() || self.idle.in_reserve() == 0 {
            return 0;
        }
        let busy = self.workers.iter().filter(|w| w.level() != NO_LEVEL);
        busy.count()
            .saturating_sub(self.workers.len() - self.idle.in_reserve())
    }
}

#[cfg(all(test, target_os = "linux", not(miri), not(urgency_loom)))]
mod tests {
    use crate::Runtime;
    use std::{
        env, fs,
        path::{Path, PathBuf},
        process,
        sync::{
            Arc,
            atomic::{AtomicBool, Ordering::SeqCst},
        },
        thread,
        time::{Duration, Instant},
    };
    use urgency_policy::level::{FixedShares, Otherwise, Schedule};

    /// A test's root directory of a machine with one cgroup, which may change its quota.
    fn root(test: &str) -> &'static Path {
        let root = env::temp_dir().join(format!("urgency-entitled-{test}-{}", process::id()));
        let files = [
            (
                "proc/self/mountinfo",
                "30 23 0:26 / /cgroup rw - cgroup2 cgroup2 rw\n",
            ),
            ("proc/self/cgroup", "0::/service\n"),
        ];
        for (name, text) in files {
            let path = root.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        fs::create_dir_all(root.join("cgroup/service")).unwrap();
        Box::leak(Box::<PathBuf>::new(root))
    }

    fn until(is_so: impl Fn() -> bool) {
        let limit = Instant::now() + Duration::from_secs(60);
        while !is_so() {
            assert!(Instant::now() < limit, "it does not come");
            thread::sleep(Duration::from_millis(1));
        }
    }

    #[test]
    fn a_quota_that_is_written_while_the_workers_are_busy_counts_within_a_look_or_two() {
        let root = root("busy");
        let runtime = Runtime::builder().root(root).build().unwrap();
        let workers = runtime.stats().workers.len();
        let stop = Arc::new(AtomicBool::new(false));
        let spin = || {
            let stop = stop.clone();
            runtime.spawn_fn(move || {
                while !stop.load(SeqCst) {
                    crate::scheduling_point();
                }
            })
        };
        let tasks: Vec<_> = (0..2 * workers).map(|_| spin()).collect();
        for (quota, expected) in [
            ("100000 100000", 1),
            ("max 100000", workers),
            ("150000 100000", 1),
            ("200000 100000", workers.min(2)),
        ] {
            fs::write(root.join("cgroup/service/cpu.max"), quota).unwrap();
            until(|| {
                let share = runtime.stats().share;
                (share.usable, share.serving) == (expected, expected)
            });
        }
        stop.store(true, SeqCst);
        tasks.into_iter().for_each(|task| task.get().unwrap());
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    #[cfg_attr(
        urgency_chaos,
        ignore = "a worker whose last look is delayed takes the plain thread's stack, until an expiry"
    )]
    fn a_plain_thread_that_enters_beside_a_busy_closure_exceeds_no_quota() {
        let root = root("external");
        let runtime = Runtime::builder()
            .root(root)
            .most_workers(2)
            .build()
            .unwrap();
        let spin = |end: &Arc<AtomicBool>, at_each: fn()| {
            let end = end.clone();
            move || {
                while !end.load(SeqCst) {
                    at_each();
                }
            }
        };
        let (seen, end) = (Arc::default(), Arc::default());
        // While these wait for workers the quota is looked at.
        let waiting: Vec<_> = (0..3)
            .map(|_| runtime.spawn_fn(spin(&seen, crate::scheduling_point)))
            .collect();
        fs::write(root.join("cgroup/service/cpu.max"), "100000 100000").unwrap();
        until(|| runtime.stats().share.usable == 1);
        seen.store(true, SeqCst);
        waiting.into_iter().for_each(|task| task.get().unwrap());
        let busy = runtime.spawn_fn(spin(&end, std::hint::spin_loop));
        // It has begun, and the other worker has found nothing. The last expiry may have counted a stack that slept:
        // the next one comes within some periods.
        until(|| {
            let stats = runtime.stats();
            let in_reserve = runtime.job().core.idle.in_reserve();
            stats.total().closures == 4 && stats.share.serving == 1 && in_reserve == 1
        });
        let inside = runtime.clone();
        let plain = thread::spawn(move || runtime.run(|| inside.stats().share.serving));
        assert_eq!(plain.join().unwrap(), 1);
        end.store(true, SeqCst);
        busy.get().unwrap();
        fs::remove_dir_all(root).unwrap();
    }

    crate::levels! { Two: Upper > Lower }

    /// The quota has had workers put into reserve before the seats came, and the next look goes back to the first
    /// number.
    #[test]
    fn where_each_worker_has_a_seat_none_is_in_reserve_after_a_look() {
        let root = root("seats");
        let builder = Runtime::builder().root(root).most_workers(8);
        let runtime = builder.levels::<Two>().build().unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let spin = |number: usize| {
            let stop = stop.clone();
            let at = match number % 2 {
                0 => runtime.at(Upper),
                _ => runtime.at(Lower),
            };
            at.spawn_fn(move || {
                while !stop.load(SeqCst) {
                    crate::scheduling_point();
                }
            })
        };
        let tasks: Vec<_> = (0..16).map(spin).collect();
        fs::write(root.join("cgroup/service/cpu.max"), "100000 100000").unwrap();
        until(|| runtime.stats().share.usable == 1);
        let seats = FixedShares::of_workers(&[4, 4], Otherwise::Wait);
        runtime.set_schedule(Schedule::Fixed(seats)).unwrap();
        until(|| runtime.stats().share.serving == 8);
        // The next look comes within a second.
        let set = Instant::now();
        while set.elapsed() < Duration::from_secs(2) {
            assert_eq!(runtime.stats().share.usable, 8, "{:?} later", set.elapsed());
            thread::sleep(Duration::from_millis(1));
        }
        until(|| runtime.stats().share.serving == 8);
        // An expiry that counted before the seats came may end after they have come.
        runtime.job().core.idle.set_held(0);
        until(|| runtime.stats().share.usable == 8);
        stop.store(true, SeqCst);
        tasks.into_iter().for_each(|task| task.get().unwrap());
        fs::remove_dir_all(root).unwrap();
    }
}
