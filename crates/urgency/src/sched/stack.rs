//! A stack: an OS thread as the scheduler sees it.
//!
//! Urgency never moves a stack between threads, so a stack *is* a thread, and thread-locals,
//! backtraces, debuggers and profilers simply work. Most stacks belong to threads that the runtime
//! made; a plain thread that calls `join`, `scope` or `Runtime::run` borrows one for that time.
//!
//! A stack has the owner's side of everything that a scheduling point touches: the attention word,
//! the deque, the worker it holds. Other threads reach it through an `Arc` (queue entries, wakers) or
//! through a worker's holder pointer (valid while the core set lives: it keeps all its stacks).
//!
//! # The job whose code it runs
//!
//! A stack keeps the job that its code belongs to. Its thread takes another one up ([`Binding::take_up`]) with nothing
//! on the stack only: no code, no forks, no task in the ring. A spare thread that waits for a delivery keeps none.
//! Other threads compare the job with their own ([`Stack::is_of`]), or ask for a reference ([`Stack::job`]).

use super::{
    Origin, core::Core, forks::held_back::HeldBack, inherit::proxy::Proxy, job::Job,
    machine::pins::PinnedTo, worker::Worker, worker::runs::ShownRuns,
};
use crate::protocol::{
    attention::Attention, awaited_forks::AwaitedForks, child_memory::ChildMemory,
    code_level::CodeLevel, demotion::Demotion, home::Home, mailbox::Mailbox, pooled::Pooled,
    ring::Ring, suspension::Suspension,
};
use crate::sys::primitives::atomic::{
    AtomicBool, AtomicI32, AtomicPtr, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering,
};
use crate::{
    inherit::Frames,
    protocol::deque::{Deque, Stolen},
    sched::{Forked, Kind, Taken},
    sys::{clock, fork, mutex::Mutex, wake_up::Call},
    tasks::{Header, Runner, TaskRef},
};
use std::{
    iter,
    ptr::{self, NonNull},
    sync::{Arc, Weak},
    thread::Thread,
};

mod covered;
mod delivery;
mod me;
mod stuck;

pub(crate) use delivery::Delivery;
pub(crate) use me::{Binding, Me};
pub(crate) use stuck::TaskName;

/// How long a ring's only entry is left to its owner, in nanoseconds since the poll that woke it began:
/// several times what it costs to run it on another processor.
const OWNERS_TIME: f64 = 5_000.0;

/// What a thread may run between two visits to the poller without counting as one that computes, in nanoseconds.
const BRIEFLY: f64 = 1_000_000.0;

/// In place of a level: the code of a plain thread that named none. It may wait for anything.
pub(crate) const FOR_ANYTHING: u8 = u8::MAX;

/// See the module's text.
#[derive(Debug)]
#[repr(C, align(128))]
pub(crate) struct Stack {
    pub(crate) attention: Attention,
    pub(crate) deque: Deque<Forked>,
    /// What the code had that forked what lies in the deque.
    pub(crate) frames: Frames,
    /// Where the children of scopes are that lie in the deque.
    child_memory: ChildMemory,
    /// The innermost scope that is open here, as an identity. The stack's own.
    scope: AtomicPtr<()>,
    code_level: CodeLevel,
    covered: covered::Covered,
    /// The levels whose pools hold an entry for this deque, a bit for each.
    pub(crate) pooled: Pooled,
    /// The worker that this stack holds, or held last; the first of the core set before it holds any, so that it may
    /// always be followed. Written inside the scheduler, read by the stack and by the thread that took its worker
    /// (ordered by the attention word).
    worker: AtomicPtr<Worker>,
    /// Tasks at this stack's level that its polls made ready.
    pub(crate) ring: Ring<Header>,
    pub(crate) suspension: Suspension,
    mailbox: Mailbox,
    thread: Mutex<Option<Thread>>,
    /// The level by which its waits are judged: the level at which its code was created, while `level` is the level to
    /// which that code was raised. A fork has the level of the code that forked it, wherever it runs. Written by the
    /// stack, read by thieves.
    waits_as: AtomicU8,
    /// The task that the stack runs. Written by the stack before it claims the task, compared by `stack_of`.
    task: AtomicPtr<Header>,
    /// Under which name it claims tasks: `stack_of` finds the stack by that.
    runner: Runner,
    /// The name of a task below that one, or of the task whose fork the stack runs, and up to which index of the deque
    /// the forks are of no task: `stuck.rs`.
    bottom_task: AtomicUsize,
    plain: AtomicUsize,
    /// The kernel's thread id.
    pub(crate) tid: AtomicI32,
    /// How long the thread had run when it was asked to check in, in nanoseconds.
    pub(crate) asked_at: AtomicU64,
    /// When it was asked to check in, in ticks.
    pub(crate) check_in_asked_at: AtomicU64,
    /// How long it had run when relief last looked at it, in nanoseconds.
    pub(crate) seen_at: AtomicU64,
    /// It has lost its worker, and not come to a scheduling point since, though it may have the worker back.
    pub(crate) overruns: AtomicBool,
    /// When the thread came out of the poller with a worker last, in ticks; 0 if it has not.
    left_poller_at: AtomicU64,
    /// When its worker was revoked last, in ticks, and what the worker shows that is restored to it.
    pub(crate) lost_worker_at: AtomicU64,
    pub(super) lost_in: ShownRuns,
    /// When it became ready to go on, in ticks; 0 if it runs.
    pub(super) ready_since: AtomicU64,
    /// When relief took its worker, in ticks; 0 if it did not, or the stack has come back since.
    pub(crate) relieved_at: AtomicU64,
    pub(in crate::sched) beside: crate::protocol::beside::Beside,
    /// The kind of the stolen fork that the thread runs; null if it runs none.
    forked: AtomicPtr<Kind>,
    /// The stack that the thread was, or had set aside, before it was this one; null if none. The thread's own.
    under: AtomicPtr<Stack>,
    /// The processor that the thread was last seen on.
    cpu: AtomicI32,
    /// Whether the thread asked the kernel to run it soon when it wakes. Used by the thread itself.
    urgent: AtomicBool,
    home: Home<Call>,
    pub(crate) demotion: Demotion,
    pub(super) held_back: HeldBack,
    pub(super) pinned_to: PinnedTo,
    pub(super) proxy: Proxy,
    /// The number of a provided thread, plus one; zero for other threads.
    number: AtomicUsize,
    /// Where the thread became this stack, as an address. Its own.
    base: AtomicUsize,
    /// How often the stack has begun to wait; its own.
    waits: AtomicU32,
    /// Since when it has had a worker, or has run what it runs, in ticks: the later of both. A turn that took its
    /// worker meanwhile does not count. Written by the stack.
    pub(super) runs_since: AtomicU64,
    /// When it began its last poll or closure, in ticks. Written by the stack.
    pub(super) began: AtomicU64,
    /// How many tasks it ran for which it waited, since it was suspended last; its own.
    pub(crate) ran_awaited: AtomicU32,
    /// See [`Stack::nesting`]; its own.
    nesting: AtomicU32,
    pub(crate) awaited_forks: AwaitedForks,
    /// The job whose code the stack runs; null if none. Written by the stack, compared by others.
    job: AtomicPtr<Job>,
    /// The reference for that pointer.
    kept: Mutex<Option<Arc<Job>>>,
    core: Weak<Core>,
    myself: Weak<Stack>,
}

impl Stack {
    /// The name of what a stack runs that runs neither a task nor a fork.
    pub(crate) const OUTSIDE: crate::account::overruns::Name = || "a call from outside the runtime";

    /// A stack in no list.
    #[cfg(test)]
    pub(crate) fn new(core: &Arc<Core>) -> Arc<Self> {
        Stack::numbered(core, 0)
    }

    /// The stack with this number in the core set's list.
    pub(crate) fn numbered(core: &Arc<Core>, number: usize) -> Arc<Self> {
        let first = ptr::from_ref(&*core.workers[0]).cast_mut();
        Arc::new_cyclic(|myself| Stack {
            attention: Attention::new_busy(),
            code_level: CodeLevel::new(),
            covered: covered::Covered::default(),
            pooled: Pooled::new(),
            deque: Deque::new(),
            frames: Frames::default(),
            child_memory: ChildMemory::new(),
            scope: AtomicPtr::new(ptr::null_mut()),
            worker: AtomicPtr::new(first),
            ring: Ring::new(),
            suspension: Suspension::new(),
            mailbox: Mailbox::new(),
            thread: Mutex::new(None),
            waits_as: AtomicU8::new(0),
            task: AtomicPtr::new(ptr::null_mut()),
            runner: Runner::numbered(number),
            bottom_task: AtomicUsize::new(0),
            plain: AtomicUsize::new(0),
            tid: AtomicI32::new(0),
            asked_at: AtomicU64::new(0),
            check_in_asked_at: AtomicU64::new(0),
            seen_at: AtomicU64::new(0),
            overruns: AtomicBool::new(false),
            left_poller_at: AtomicU64::new(0),
            lost_worker_at: AtomicU64::new(0),
            lost_in: ShownRuns::default(),
            ready_since: AtomicU64::new(0),
            relieved_at: AtomicU64::new(0),
            beside: crate::protocol::beside::Beside::new(),
            forked: AtomicPtr::new(ptr::null_mut()),
            under: AtomicPtr::new(ptr::null_mut()),
            cpu: AtomicI32::new(-1),
            urgent: AtomicBool::new(false),
            home: Home::new(),
            demotion: Demotion::new(),
            held_back: HeldBack::default(),
            pinned_to: PinnedTo::nowhere(),
            proxy: Proxy::of(number),
            number: AtomicUsize::new(0),
            base: AtomicUsize::new(0),
            waits: AtomicU32::new(0),
            runs_since: AtomicU64::new(0),
            began: AtomicU64::new(0),
            ran_awaited: AtomicU32::new(0),
            nesting: AtomicU32::new(0),
            awaited_forks: AwaitedForks::new(),
            job: AtomicPtr::new(ptr::null_mut()),
            kept: Mutex::new(None),
            core: Arc::downgrade(core),
            myself: myself.clone(),
        })
    }

    /// The thread that will be this stack: a delivery may come before it runs.
    pub(crate) fn set_thread(&self, thread: Thread) {
        *self.thread.lock() = Some(thread);
    }

    /// The thread is about to end: the kernel may give its number to another one before the stack has a thread
    /// again. That thread is not urgent. Its name and handle go now: they lie where the thread's maker allocated, and
    /// an allocator gives back what is above the last piece in use.
    pub(crate) fn forget_thread(&self) {
        self.tid.store(0, Ordering::Relaxed);
        self.urgent.store(false, Ordering::Relaxed);
        drop(self.thread.lock().take());
    }

    /// An owned reference.
    pub(crate) fn arc(&self) -> Arc<Stack> {
        self.myself
            .upgrade()
            .expect("a stack that runs is referenced")
    }

    /// The job whose code is on this stack, for any thread.
    pub(crate) fn job(&self) -> Option<Arc<Job>> {
        self.kept.lock().clone()
    }

    /// Whether the code on this stack is of `job`. On another thread this is a hint: the stack may take up another one.
    #[inline]
    pub(crate) fn is_of(&self, job: &Job) -> bool {
        ptr::eq(self.job.load(Ordering::SeqCst), job)
    }

    /// Whether both have code of one job, as a hint.
    pub(crate) fn is_beside(&self, other: &Stack) -> bool {
        ptr::eq(
            self.job.load(Ordering::Relaxed),
            other.job.load(Ordering::Relaxed),
        )
    }

    /// The worker that this stack holds, or held last: one of its core set's. See [`Core::worker_of`].
    #[inline]
    pub(crate) fn worker_ptr(&self) -> *const Worker {
        self.worker.load(Ordering::Relaxed)
    }

    /// Whether the stack is one of this core set.
    pub(crate) fn is_in(&self, core: &Core) -> bool {
        ptr::eq(self.core.as_ptr(), core)
    }

    /// As [`Deque::steal`], with what the thief has of the code that made the fork.
    pub(crate) fn steal(
        &self,
        raise: bool,
        admit: impl FnOnce() -> bool,
    ) -> (Stolen<Taken>, Origin) {
        let mut origin = Origin {
            inherited: None,
            waits_as: FOR_ANYTHING,
            task: None,
            level: 0,
            from: None,
        };
        let on_steal = |forked: *const Forked, index| {
            origin.inherited = self.frames.at(index);
            // Under the deque's lock: the stack has not gone on to another computation.
            let covered = self.covered.at(index);
            origin.waits_as = covered.map_or_else(|| self.waits_as(), |below| below.waits_as);
            origin.task = self.origin_of(index);
            origin.level = covered.map_or_else(|| self.level_of_fork(index), |below| below.level);
            origin.from = Some((NonNull::from(self), index));
            // SAFETY: a fork in the deque is alive until its thief has run it, `join` and `scope` require `Send` of
            // its closure, and this is its one steal.
            unsafe { Taken::take(forked) }
        };
        let stolen = self.deque.steal(raise, admit, on_steal);
        (stolen, origin)
    }

    /// The tasks of `job` that cannot end before the calling code has returned: tasks of the stack `me`, which the
    /// thread is or has set aside, and of the stacks that the thread was before it called into other core sets.
    pub(crate) fn stuck_of(me: Me<'_>, job: &Job) -> Vec<TaskName> {
        // SAFETY: the calling thread is `me`. Each of these was written when the binding of the stack above was made;
        // the binding of the one below, which keeps it, is further out on this thread and outlives that.
        let under = |stack: &Stack| unsafe { stack.under.load(Ordering::Relaxed).as_ref() };
        let stacks = iter::successors(Some(me.shared()), |stack| under(stack));
        let own = stacks.filter(|stack| stack.is_of(job));
        own.flat_map(Stack::stuck).collect()
    }

    /// The stack is ready to go on. The caller has not yet told any other thread.
    pub(crate) fn note_ready(&self) {
        self.ready_since.store(clock::now(), Ordering::Relaxed);
    }

    /// The processor that the thread was last seen on; -1 if unknown.
    pub(crate) fn cpu(&self) -> i32 {
        self.cpu.load(Ordering::Relaxed)
    }

    /// The number of a provided thread.
    #[inline]
    pub(crate) fn number(&self) -> Option<usize> {
        self.number.load(Ordering::Relaxed).checked_sub(1)
    }

    pub(crate) fn set_number(&self, number: usize) {
        self.number.store(number + 1, Ordering::Relaxed);
    }

    /// The task that the stack runs.
    #[inline]
    pub(crate) fn task(&self) -> Option<NonNull<Header>> {
        NonNull::new(self.task.load(Ordering::Relaxed))
    }

    /// The kind of the stolen fork that the thread runs.
    pub(crate) fn forked(&self) -> Option<&'static Kind> {
        // SAFETY: what is stored came from a static reference (`Me::set_fork`).
        unsafe { self.forked.load(Ordering::Relaxed).as_ref() }
    }

    /// Under which name the stack claims tasks.
    #[inline]
    pub(crate) fn runner(&self) -> Runner {
        self.runner
    }

    /// The level of the computation on this stack.
    #[inline]
    pub(crate) fn level(&self) -> u8 {
        self.code_level.get()
    }

    /// The level by which the waits of the code on this stack are judged, or [`FOR_ANYTHING`].
    #[inline]
    pub(crate) fn waits_as(&self) -> u8 {
        self.waits_as.load(Ordering::Relaxed)
    }

    /// The level of the fork at this index: the stack's, or for a fork from before the stack inherited that, its own.
    pub(crate) fn level_of_fork(&self, index: usize) -> u8 {
        self.code_level.of_fork(index)
    }

    /// The stack's code is at least as urgent as `level` now. If its level was `own` and it inherits `level`, what it
    /// forked before stays at `own`. Any thread may call this. Whether that is news.
    pub(crate) fn raise_level(&self, level: u8, own: u8) -> bool {
        self.code_level.raise(level, own, || self.deque.bottom())
    }

    /// Whether others may take a task out of this stack's ring.
    pub(crate) fn offers_task(&self) -> bool {
        match self.ring.len() {
            0 => false,
            1 => {
                let age = clock::now().saturating_sub(self.ring.oldest());
                age > clock::ticks(OWNERS_TIME)
            }
            _ => true,
        }
    }

    /// Ends the stack's wait.
    pub(crate) fn wake(&self) {
        if self.suspension.wake() {
            self.resume();
        }
    }

    /// Takes the oldest task out of the ring.
    #[inline]
    pub(crate) fn pop_ring(&self) -> Option<TaskRef> {
        let task = NonNull::new(self.ring.pop()?).expect("a ring holds tasks");
        // SAFETY: the push left a counted reference in the ring, and each entry is taken once.
        Some(unsafe { TaskRef::from_raw(task) })
    }

    /// The stack's wait is over; the caller ended it, and owes it an entry.
    pub(crate) fn resume(&self) {
        let is_gone = |core: Arc<Core>| !core.process.is_this();
        if fork::is_copy() && self.core.upgrade().is_none_or(is_gone) {
            return;
        }
        // None: an older entry was enough, and the stack has gone on, to its end.
        if let Some(job) = self.job() {
            job.resume(self.arc());
        }
    }
}

impl Drop for Stack {
    fn drop(&mut self) {
        // A runtime that was dropped with work left: the tasks were shut down, their entries are stale.
        while self.pop_ring().is_some() {}
    }
}

impl std::task::Wake for Stack {
    fn wake(self: Arc<Self>) {
        Stack::wake(&self);
    }

    fn wake_by_ref(self: &Arc<Self>) {
        Stack::wake(self);
    }
}
