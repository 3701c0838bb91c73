//! Idle workers and searchers: which workers sleep, which look for work, which must be woken.
//!
//! An idle worker is a permission that no stack uses: a bit in this set. It needs no thread. A thread that has work for
//! it claims the bit, and then uses the worker itself (a plain thread that calls `join`, a thread that returns from the
//! poller with an event in hand) or hands it to a spare thread.
//!
//! A *searcher* is a thread that has a worker, has no work, and is still looking. While there is a searcher, an
//! insertion wakes no thread: a wake-up costs the waker 10 µs and the sleeper 30 to 50.
//!
//! # Reserve
//!
//! A runtime may have more workers than there are processors, for code that sleeps in the kernel. A worker without work
//! is *hungry* while fewer workers run than there are processors; the others are *in reserve*. A worker of the reserve
//! would only share a processor with workers that run. So an insertion starts no worker of the reserve, and no stack
//! publishes a fork for one; `sched/rescue/reserve.rs` says when they are needed after all. (When every idle worker was
//! hungry, fib(32) on 2 processors took 5 ms with 2 workers, 326 ms with 64 and 1.6 s with 256: each fork was
//! published.)
//!
//! - Idle workers and searchers are *free*. With W workers, P processors and B stacks that hold a worker and do not
//!   come to a scheduling point (`sched/rescue/reserve.rs`), W - P - B free workers are in reserve, and the other free
//!   workers are hungry.
//! - P changes while the runtime runs, if the process may use other processors than before
//!   (`sched/machine/entitled.rs`).
//! - One word counts both. A worker is counted as a searcher, *then* asks whether it is hungry. So of several workers
//!   that run dry at once, the last finds out that it is hungry.
//! - The count of idle workers goes up before the bit is set, and down after it was cleared. It is never too low.
//! - A worker that runs dry takes tasks and stacks from the pools, whether it would be in reserve or not. A thread that
//!   runs already (it comes from the poller, or is an external thread) may take a worker of the reserve. So may a stack
//!   that can go on: its thread is there.
//!
//! # Protocol (no lost wake-up)
//!
//! - Inserter: 1. put the entry into the pool; 2. announce the level (a full barrier); 3. if no worker searches, claim
//!   an idle worker that is not in reserve and start it.
//! - Searcher that gives up: 1. its worker is an idle one in the word; 2. the worker's bit is set; 3. the job has a
//!   searcher less ([`Searchers::give_up`], which ends with a full barrier); 4. look at the levels once more; if there
//!   is work, claim a worker back. A stack that starts asks whether a worker is hungry, and keeps its forks to itself
//!   if none is. So at every moment it must see a searcher or an idle worker. Step 1 is one change of the word: at no
//!   moment does the worker count twice. (A thread that is awake takes a worker beyond a quota if it sees one more
//!   than is free.)
//! - Searcher that found work: [`Searchers::stop`], a full barrier, and if there is more work and no other worker
//!   searches, start the next idle worker: a woken worker wakes the next.
//!
//! *Named race, "first fork under release"*: a stack forks in a poll, and keeps the fork to itself, while a worker goes
//! idle that would have asked for it. A stack without forks that knows of a hungry worker says that it hides none
//! (`Worker::hides_forks`): when its poll begins, or when it answers a request. It has no room then. So its next fork
//! comes into the scheduler (`Attention::is_for_forks`), first says otherwise, and then looks whether a worker is
//! hungry. The worker that goes idle is hungry first, and then looks: one of the two sees the other. If a stack may
//! hide forks, the worker sees them behind a barrier on all processors.
//!
//! *Named race, "insert under release"*: the inserter looks at the set before the bit is there, the
//! worker looks at the levels before the announcement is there. The two barriers exclude that both look too early.
//!
//! # Orders
//!
//! - A worker is handed over by its bit: a claim acquires what a release has released. The counts hand over nothing.
//! - A release counts up in a sequentially consistent step, since a stack looks at the count behind a store, without a
//!   barrier ("first fork under release"). Another thread may see the other steps of the counts late. A count of idle
//!   workers that is too high costs a look in vain. Whether a worker searches matters to the others when it stops, and
//!   that step ends with a barrier; so does its release before. A worker that asks whether it is hungry has counted
//!   itself in the same word, which has one order of its steps whatever their orders are.
//! - [`Idle::set_held`] ends with a barrier for what its caller looks at next. Of an entry that comes meanwhile, its
//!   inserter sees the smaller reserve, or the expiry that makes it smaller sees the entry, or the relief timer is set.

use crate::sys::{
    chaos,
    primitives::atomic::{AtomicU64, AtomicUsize, Ordering, fence},
};
use crossbeam_utils::CachePadded;

/// One idle worker, in [`Idle::free`]; the lower half counts searchers.
const IDLE: u64 = 1 << 32;

/// See the module's text.
#[derive(Debug)]
pub(crate) struct Idle {
    words: Box<[AtomicU64]>,
    /// Idle workers and searchers.
    free: CachePadded<AtomicU64>,
    /// How many free workers are in reserve.
    withheld: AtomicUsize,
    /// How many workers there are.
    workers: usize,
    /// How many processors there are for them. It changes if the process may use others than before.
    processors: AtomicUsize,
}

/// How many workers of a job search. [`Idle`] counts the searchers of all jobs.
#[derive(Debug)]
pub(crate) struct Searchers(AtomicUsize);

impl Idle {
    /// A set for `workers` workers on so many processors, all in use.
    pub(crate) fn new(workers: usize, processors: usize) -> Self {
        Idle {
            words: (0..workers.div_ceil(64))
                .map(|_| AtomicU64::new(0))
                .collect(),
            free: CachePadded::new(AtomicU64::new(0)),
            withheld: AtomicUsize::new(workers.saturating_sub(processors)),
            workers,
            processors: AtomicUsize::new(processors),
        }
    }

    /// No stack uses worker `id` any longer. Ends with a full barrier.
    pub(crate) fn release(&self, id: usize) {
        self.put_in(id, IDLE);
    }

    /// Sets the worker's bit, after `counts` was added to the word. Ends with a full barrier.
    fn put_in(&self, id: usize, counts: u64) {
        chaos::delay();
        self.free.fetch_add(counts, Ordering::SeqCst);
        let old = self.words[id / 64].fetch_or(1 << (id % 64), Ordering::SeqCst);
        debug_assert_eq!(old >> (id % 64) & 1, 0, "a worker was released twice");
        fence(Ordering::SeqCst);
        chaos::delay();
    }

    /// Takes an idle worker, if there is one; `hint` is looked at first.
    pub(crate) fn claim(&self, hint: usize) -> Option<usize> {
        let first = hint / 64;
        for step in 0..self.words.len() {
            let index = (first + step) % self.words.len();
            let word = &self.words[index];
            let wanted = if step == 0 { 1 << (hint % 64) } else { 0 };
            let one = |idle: u64| match idle & wanted {
                0 => idle & idle.wrapping_neg(),
                wanted => wanted,
            };
            let take = |idle| (idle != 0).then(|| idle & !one(idle));
            if let Ok(idle) = word.fetch_update(Ordering::SeqCst, Ordering::SeqCst, take) {
                self.free.fetch_sub(IDLE, Ordering::Relaxed);
                return Some(index * 64 + one(idle).trailing_zeros() as usize);
            }
        }
        None
    }

    /// Takes this worker, if it is idle.
    pub(crate) fn claim_exactly(&self, id: usize) -> bool {
        let bit = 1 << (id % 64);
        let claimed = self.words[id / 64].fetch_and(!bit, Ordering::SeqCst) & bit != 0;
        if claimed {
            self.free.fetch_sub(IDLE, Ordering::Relaxed);
        }
        claimed
    }

    /// Whether this worker is idle.
    pub(crate) fn contains(&self, id: usize) -> bool {
        self.words[id / 64].load(Ordering::SeqCst) >> (id % 64) & 1 != 0
    }

    /// Whether any worker is idle, or about to be.
    #[inline]
    pub(crate) fn any(&self) -> bool {
        self.free.load(Ordering::SeqCst) >= IDLE
    }
}

impl Searchers {
    pub(crate) fn new() -> Self {
        Searchers(AtomicUsize::new(0))
    }

    /// The calling worker starts to search.
    pub(crate) fn start(&self, idle: &Idle) {
        idle.free.fetch_add(1, Ordering::Relaxed);
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    /// The calling worker found work. Ends with a full barrier.
    pub(crate) fn stop(&self, idle: &Idle) {
        chaos::delay();
        idle.free.fetch_sub(1, Ordering::Relaxed);
        self.one_less();
    }

    /// The calling worker, `id`, has found nothing: it is idle from now on. Ends with a full barrier.
    pub(crate) fn give_up(&self, idle: &Idle, id: usize) {
        idle.put_in(id, IDLE - 1);
        self.one_less();
    }

    fn one_less(&self) {
        let old = self.0.fetch_sub(1, Ordering::Relaxed);
        debug_assert_ne!(old, 0);
        fence(Ordering::SeqCst);
        chaos::delay();
    }

    /// How many workers search.
    #[inline]
    pub(crate) fn count(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

impl Idle {
    /// Whether a worker without work is hungry: fewer run than there are processors.
    #[inline]
    pub(crate) fn is_any_hungry(&self) -> bool {
        let free = self.free.load(Ordering::SeqCst);
        free != 0 && (free / IDLE + free % IDLE) as usize > self.withheld.load(Ordering::SeqCst)
    }

    /// How many workers run.
    fn running(&self) -> usize {
        // The count of the idle ones may be too high for a moment.
        let idle = (self.free.load(Ordering::Relaxed) / IDLE) as usize;
        self.workers.saturating_sub(idle)
    }

    /// Whether more than one worker runs.
    #[inline]
    pub(crate) fn do_several_run(&self) -> bool {
        self.running() > 1
    }

    /// Whether a worker runs for each processor.
    pub(crate) fn is_each_processor_in_use(&self) -> bool {
        self.are_in_use(self.processors.load(Ordering::Relaxed))
    }

    /// Whether a worker runs for each of so many processors.
    pub(crate) fn are_in_use(&self, processors: usize) -> bool {
        self.running() >= processors
    }

    /// Whether the workers that run have a processor each.
    pub(crate) fn has_each_a_processor(&self) -> bool {
        self.running() <= self.processors.load(Ordering::Relaxed)
    }

    /// Whether there are more workers than processors.
    #[inline]
    pub(crate) fn may_hold_back(&self) -> bool {
        self.workers > self.processors.load(Ordering::Relaxed)
    }

    /// How many free workers are in reserve.
    pub(crate) fn in_reserve(&self) -> usize {
        self.withheld.load(Ordering::Relaxed)
    }

    /// So many stacks hold a worker and do not come to a scheduling point: so many fewer workers are in reserve. Ends
    /// with a full barrier.
    pub(crate) fn set_held(&self, held: usize) {
        let run_at_once = self.processors.load(Ordering::Relaxed);
        let withheld = self
            .workers
            .saturating_sub(run_at_once.saturating_add(held));
        self.withheld.store(withheld, Ordering::SeqCst);
        fence(Ordering::SeqCst);
    }

    /// There are so many processors for these workers from now on, and so many stacks are held up. Without a count the
    /// caller counts these next, and starts workers if more are hungry: an idle worker does not look by itself.
    pub(crate) fn set_processors(&self, processors: usize, held: usize) {
        self.processors.store(processors, Ordering::Relaxed);
        self.set_held(held);
    }
}

#[cfg(all(test, not(urgency_loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_processor_is_free_if_fewer_workers_run() {
        let idle = Idle::new(3, 2);
        assert!(idle.is_each_processor_in_use());
        idle.release(0);
        assert!(idle.is_each_processor_in_use(), "two run");
        idle.release(2);
        assert!(!idle.is_each_processor_in_use());
        assert!(!Idle::new(1, 2).is_each_processor_in_use());
        assert!(idle.has_each_a_processor(), "one runs, on two");
        assert!(!Idle::new(3, 2).has_each_a_processor());
        idle.set_processors(1, 0);
        assert!(idle.is_each_processor_in_use(), "one runs, on one");
    }
}

#[cfg(all(test, urgency_loom))]
#[path = "idle_loom.rs"]
mod loom_models;
