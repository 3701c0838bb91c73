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
//! A stack keeps the job that its code belongs to. Its thread takes another one up ([`Stack::take_up`]) with nothing on
//! the stack only: no code, no forks, no task in the ring. A spare thread that waits for a delivery keeps none. Other
//! threads compare the job with their own ([`Stack::is_of`]), or ask for a reference ([`Stack::job`]).

use super::{Origin, core::Core, job::Job, worker::Worker};
use crate::protocol::{
    attention::Attention, demotion::Demotion, mailbox::Mailbox, ring::Ring, suspension::Suspension,
};
use crate::{
    account::overruns::Name,
    inherit::Frames,
    protocol::deque::{Deque, Stolen},
    sched::{Forked, Kind},
    sys::{self, clock, thread::Processors},
    tasks::{Header, TaskRef},
};
use std::{
    cell::Cell,
    mem::ManuallyDrop,
    ptr::{self, NonNull},
    sync::{
        Arc, Mutex, Weak,
        atomic::{
            AtomicBool, AtomicI32, AtomicPtr, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering,
        },
    },
    thread::{self, Thread},
    time::Duration,
};

/// How long a ring's only entry is left to its owner, in nanoseconds since the poll that woke it began:
/// several times what it costs to run it on another processor.
const OWNERS_TIME: f64 = 5_000.0;

/// What a thread may run between two visits to the poller without counting as one that computes, in nanoseconds.
const BRIEFLY: f64 = 1_000_000.0;

thread_local! {
    static CURRENT: Cell<*const Stack> = const { Cell::new(ptr::null()) };
    /// The stack that a declared blocking call has set aside.
    static ASIDE: Cell<*const Stack> = const { Cell::new(ptr::null()) };
}

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
    /// The innermost scope that is open here, as an identity. The stack's own.
    scope: AtomicPtr<()>,
    level: AtomicU8,
    /// The levels whose pools hold an entry for this deque, a bit for each.
    pub(crate) queued: AtomicU64,
    /// The worker that this stack holds; meaningful while it holds one. Written inside the scheduler, read by the stack
    /// and by the thread that took its worker (ordered by the attention word).
    worker: AtomicPtr<Worker>,
    /// Tasks at this stack's level that its polls made ready.
    pub(crate) ring: Ring<Header>,
    pub(crate) suspension: Suspension,
    mailbox: Mailbox<Worker>,
    thread: Mutex<Option<Thread>>,
    /// The level by which its waits are judged: the level at which its code was created, while `level` is the level to
    /// which that code was raised. A fork has the level of the code that forked it, wherever it runs. Written by the
    /// stack, read by thieves.
    waits_as: AtomicU8,
    /// The task that the stack runs. Written by the stack, compared by `stack_of`.
    task: AtomicPtr<Header>,
    /// The kernel's thread id.
    pub(crate) tid: AtomicI32,
    /// How long the thread had run when it was asked to check in, in nanoseconds.
    pub(crate) asked_at: AtomicU64,
    /// How long it had run when relief last looked at it, in nanoseconds.
    pub(crate) seen_at: AtomicU64,
    /// It has lost its worker, and not come to a scheduling point since, though it may have the worker back.
    pub(crate) overruns: AtomicBool,
    /// When the thread came out of the poller with a worker last, in ticks; 0 if it has not.
    left_poller_at: AtomicU64,
    /// When its worker was revoked last, in ticks.
    pub(crate) lost_worker_at: AtomicU64,
    /// When it became ready to go on, in ticks; 0 if it runs.
    ready_since: AtomicU64,
    /// When relief took its worker, in ticks; 0 if it did not, or the stack has come back since.
    pub(crate) relieved_at: AtomicU64,
    /// The kind of the stolen fork that the thread runs; null if it runs none.
    forked: AtomicPtr<Kind>,
    /// The processor that the thread was last seen on.
    cpu: AtomicI32,
    /// Whether the thread asked the kernel to run it soon when it wakes. Used by the thread itself.
    urgent: AtomicBool,
    /// Where the thread may run, if a hand-off called it to its giver's processor. Written by the thread that has the
    /// right to deliver.
    home: Mutex<Option<Processors>>,
    pub(crate) demotion: Demotion,
    /// The number of a provided thread, plus one; zero for other threads.
    number: AtomicUsize,
    /// How often the stack has begun to wait; its own.
    waits: AtomicU32,
    /// See [`Stack::nesting`]; its own.
    nesting: AtomicU32,
    /// The job whose code the stack runs; null if none. Written by the stack, compared by others.
    job: AtomicPtr<Job>,
    /// The reference for that pointer.
    kept: Mutex<Option<Arc<Job>>>,
    core: Weak<Core>,
    myself: Weak<Stack>,
}

/// What a spare thread receives instead of a worker.
#[derive(Debug, PartialEq, Eq, Clone, Copy)]
pub(crate) enum Delivery {
    /// A worker to serve with.
    Worker(*const Worker),
    /// Look around again: a thread should be in the poller.
    Look,
}

impl Stack {
    pub(crate) fn new(core: Weak<Core>) -> Arc<Self> {
        Arc::new_cyclic(|myself| Stack {
            attention: Attention::new_busy(),
            level: AtomicU8::new(0),
            queued: AtomicU64::new(0),
            deque: Deque::new(),
            frames: Frames::default(),
            scope: AtomicPtr::new(ptr::null_mut()),
            worker: AtomicPtr::new(ptr::null_mut()),
            ring: Ring::new(),
            suspension: Suspension::new(),
            mailbox: Mailbox::new(),
            thread: Mutex::new(None),
            waits_as: AtomicU8::new(0),
            task: AtomicPtr::new(ptr::null_mut()),
            tid: AtomicI32::new(0),
            asked_at: AtomicU64::new(0),
            seen_at: AtomicU64::new(0),
            overruns: AtomicBool::new(false),
            left_poller_at: AtomicU64::new(0),
            lost_worker_at: AtomicU64::new(0),
            ready_since: AtomicU64::new(0),
            relieved_at: AtomicU64::new(0),
            forked: AtomicPtr::new(ptr::null_mut()),
            cpu: AtomicI32::new(-1),
            urgent: AtomicBool::new(false),
            home: Mutex::new(None),
            demotion: Demotion::new(),
            number: AtomicUsize::new(0),
            waits: AtomicU32::new(0),
            nesting: AtomicU32::new(0),
            job: AtomicPtr::new(ptr::null_mut()),
            kept: Mutex::new(None),
            core,
            myself: myself.clone(),
        })
    }

    /// The stack of the calling thread, null in a plain thread.
    #[inline(always)]
    pub(crate) fn current_ptr() -> *const Stack {
        CURRENT.get()
    }

    /// Runs `f` with the stack of the calling thread, if it has one.
    #[inline]
    pub(crate) fn with_current<R>(f: impl FnOnce(Option<&Stack>) -> R) -> R {
        // SAFETY: the pointer is set by `bind` from a stack that its thread keeps until `unbind`, and
        // only this thread reads it.
        f(unsafe { CURRENT.get().as_ref() })
    }

    /// The thread that will be this stack: a delivery may come before it runs.
    pub(crate) fn set_thread(&self, thread: Thread) {
        *self.lock_thread() = Some(thread);
    }

    /// The calling thread is this stack from now on.
    pub(crate) fn bind(&self) {
        self.set_thread(thread::current());
        self.tid
            .store(crate::sys::thread::current_id(), Ordering::Relaxed);
        CURRENT.set(self);
    }

    /// The thread is about to end: the kernel may give its number to another one before the stack has a thread
    /// again.
    pub(crate) fn forget_thread(&self) {
        self.tid.store(0, Ordering::Relaxed);
    }

    /// Runs `f` as a plain thread of this stack's runtime: what it spawns and forks belongs there. It does not
    /// unwind.
    pub(crate) fn set_aside<R>(&self, f: impl FnOnce() -> R) -> R {
        CURRENT.set(ptr::null());
        let outer = ASIDE.replace(self);
        let result = f();
        ASIDE.set(outer);
        CURRENT.set(self);
        result
    }

    /// Runs `f`, inside of [`Stack::set_aside`], as this stack again. It does not unwind.
    pub(crate) fn taken_up<R>(&self, f: impl FnOnce() -> R) -> R {
        debug_assert!(CURRENT.get().is_null());
        CURRENT.set(self);
        let result = f();
        CURRENT.set(ptr::null());
        result
    }

    /// Runs `f`, code of the program's that the scheduler calls: it must find no stack, which would be one
    /// that is inside the scheduler. It does not unwind.
    pub(crate) fn outside_scheduler<R>(f: impl FnOnce() -> R) -> R {
        // SAFETY: as in `with_current`.
        match unsafe { CURRENT.get().as_ref() } {
            Some(me) => me.set_aside(f),
            None => f(),
        }
    }

    /// Runs `f` with the stack of the calling thread, be it set aside, if it has one.
    #[inline]
    pub(crate) fn with_own<R>(f: impl FnOnce(Option<&Stack>) -> R) -> R {
        let me = CURRENT.get();
        let own = if me.is_null() { ASIDE.get() } else { me };
        // SAFETY: as in `with_current` and `aside`.
        f(unsafe { own.as_ref() })
    }

    /// Runs `f` with the stack that the calling plain thread has set aside, if it has.
    pub(crate) fn aside<R>(f: impl FnOnce(&Stack) -> R) -> Option<R> {
        // SAFETY: set for the time of a call on that stack's own thread, which keeps the stack.
        unsafe { ASIDE.get().as_ref() }.map(f)
    }

    /// The job of the stack that the calling plain thread has set aside, if it has.
    pub(crate) fn runtime_aside<'a>() -> Option<&'a Job> {
        // SAFETY: set for the time of a call on that stack's own thread, which keeps the stack, and takes up no other
        // job during the call.
        let job = unsafe { ASIDE.get().as_ref() }?.job.load(Ordering::Relaxed);
        // SAFETY: the stack keeps its job.
        unsafe { job.as_ref() }
    }

    /// The calling thread is a plain thread again.
    pub(crate) fn unbind(&self) {
        debug_assert!(ptr::eq(CURRENT.get(), self));
        CURRENT.set(ptr::null());
    }

    fn lock_thread(&self) -> std::sync::MutexGuard<'_, Option<Thread>> {
        self.thread
            .lock()
            .expect("nothing panics under the thread's lock")
    }

    /// An owned reference.
    pub(crate) fn arc(&self) -> Arc<Stack> {
        self.myself
            .upgrade()
            .expect("a stack that runs is referenced")
    }

    /// The job whose code is on this stack, for any thread.
    pub(crate) fn job(&self) -> Option<Arc<Job>> {
        self.lock_kept().clone()
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

    /// The job whose code is on this stack, for the stack's own thread.
    #[inline]
    pub(crate) fn runtime(&self) -> &Job {
        let job = self.runtime_ptr();
        debug_assert!(!job.is_null(), "a stack without a job runs nothing");
        // SAFETY: the stack keeps its job (`kept`), and takes up another one only when nothing of this one is on it, so
        // not while its thread uses the reference.
        unsafe { &*job }
    }

    /// The pointer of the `Arc` in which that job is.
    #[inline]
    pub(crate) fn runtime_ptr(&self) -> *const Job {
        self.job.load(Ordering::Relaxed)
    }

    fn lock_kept(&self) -> std::sync::MutexGuard<'_, Option<Arc<Job>>> {
        self.kept.lock().expect("nothing panics under this lock")
    }

    /// Whether the stack, the caller's, has no job, or one that has ended.
    pub(crate) fn has_no_open_job(&self) -> bool {
        self.runtime_ptr().is_null() || self.runtime().closing.load(Ordering::Relaxed)
    }

    /// The stack, the caller's, has nothing on it, and is about to run code of `job`.
    pub(crate) fn take_up(&self, job: Arc<Job>) {
        if !ptr::eq(self.runtime_ptr(), &*job) {
            self.exchange(Some(job));
        }
    }

    /// The stack, the caller's, has nothing on it, and waits for whatever comes.
    pub(crate) fn leave_job(&self) {
        if !self.runtime_ptr().is_null() {
            self.exchange(None);
        }
    }

    #[cold]
    fn exchange(&self, new: Option<Arc<Job>>) {
        debug_assert!(self.deque.seems_empty() && self.ring.is_empty());
        let pointer = new.as_ref().map_or(ptr::null(), Arc::as_ptr);
        let old = std::mem::replace(&mut *self.lock_kept(), new);
        self.job.store(pointer.cast_mut(), Ordering::SeqCst);
        // Entries of the old job's pools for this deque are stale; see `Job::insert_deque_as`.
        self.queued.store(0, Ordering::SeqCst);
        drop(old);
    }

    /// Whether the stack is one of this core set.
    pub(crate) fn is_in(&self, core: &Core) -> bool {
        ptr::eq(self.core.as_ptr(), core)
    }

    /// The core set, for the stack's own thread.
    #[inline]
    pub(crate) fn core(&self) -> &Core {
        // SAFETY: each thread keeps the core set while it is one of its stacks (`core.rs`).
        unsafe { &*self.core.as_ptr() }
    }

    /// As [`Deque::steal`], with what the thief has of the code that made the fork.
    pub(crate) fn steal(
        &self,
        raise: bool,
        admit: impl FnOnce() -> bool,
    ) -> (Stolen<Forked>, Origin) {
        let mut origin = Origin {
            inherited: None,
            waits_as: FOR_ANYTHING,
        };
        let on_steal = |forked: *const Forked, index| {
            super::find::on_steal(forked);
            origin.inherited = self.frames.at(index);
            // Under the deque's lock: the stack has not gone on to another computation.
            origin.waits_as = self.waits_as();
        };
        let stolen = self.deque.steal(raise, admit, on_steal);
        (stolen, origin)
    }

    /// A scope is opened, or over. Returns the one that was innermost.
    #[inline]
    pub(crate) fn enter_scope(&self, scope: *const ()) -> *const () {
        let outer = self.scope.load(Ordering::Relaxed);
        self.scope.store(scope.cast_mut(), Ordering::Relaxed);
        outer
    }

    pub(crate) fn innermost_scope(&self) -> *const () {
        self.scope.load(Ordering::Relaxed)
    }

    /// How many forks the stack runs on top of each other, and on top of what it began with: children that it took
    /// back, and forks that it stole in the middle of a wait. For the stack itself.
    pub(crate) fn nesting(&self) -> u32 {
        self.nesting.load(Ordering::Relaxed)
    }

    /// Runs `f`, which is forks on top of what this stack, the caller's, runs already. It does not unwind.
    #[inline]
    pub(crate) fn on_top<R>(&self, f: impl FnOnce() -> R) -> R {
        let outer = self.nesting();
        self.nesting.store(outer.wrapping_add(1), Ordering::Relaxed);
        let result = f();
        self.nesting.store(outer, Ordering::Relaxed);
        result
    }

    /// The worker that this stack holds. Only for the stack itself, or for the thread that took its worker.
    #[inline]
    pub(crate) fn worker(&self) -> &Worker {
        let worker = self.worker.load(Ordering::Relaxed);
        debug_assert!(!worker.is_null());
        // SAFETY: set by `hold`; workers live as long as the core set, which the stack's thread keeps.
        unsafe { &*worker }
    }

    /// The worker that this stack holds, or held last; it may never have held one.
    pub(crate) fn last_worker(&self) -> Option<&Worker> {
        // SAFETY: as in `worker`.
        unsafe { self.worker.load(Ordering::Relaxed).as_ref() }
    }

    /// This stack holds `worker` from now on, which serves its job. Called inside the scheduler.
    pub(crate) fn hold(&self, worker: &Worker) {
        worker.serve(self.runtime());
        self.worker
            .store(ptr::from_ref(worker).cast_mut(), Ordering::Relaxed);
        worker.set_holder(self);
    }

    /// The stack begins to wait, inside the scheduler.
    pub(crate) fn note_wait(&self) {
        let waits = self.waits.load(Ordering::Relaxed).wrapping_add(1);
        self.waits.store(waits, Ordering::Relaxed);
    }

    /// How often the stack has begun to wait. For the stack itself.
    pub(crate) fn waits(&self) -> u32 {
        self.waits.load(Ordering::Relaxed)
    }

    /// The stack is ready to go on. The caller has not yet told any other thread.
    pub(crate) fn note_ready(&self) {
        self.ready_since.store(clock::now(), Ordering::Relaxed);
    }

    /// The stack, the caller's, goes on. Returns for how long it was ready, in ticks.
    pub(crate) fn no_longer_waits(&self) -> Option<u64> {
        let since = self.ready_since.load(Ordering::Relaxed);
        self.ready_since.store(0, Ordering::Relaxed);
        (since != 0).then(|| clock::now().saturating_sub(since))
    }

    /// The calling thread, this stack's, comes out of the poller with a worker.
    pub(crate) fn note_left_poller(&self) {
        self.left_poller_at.store(clock::now(), Ordering::Relaxed);
    }

    /// Whether the calling thread, this stack's, has run for long since it was in the poller.
    pub(crate) fn has_computed_since_poll(&self) -> bool {
        let left = self.left_poller_at.load(Ordering::Relaxed);
        clock::now().saturating_sub(left) > clock::ticks(BRIEFLY)
    }

    /// Notes the processor that the calling thread, this stack's, runs on.
    #[inline]
    pub(crate) fn note_cpu(&self) {
        let cpu = crate::sys::thread::current_cpu();
        self.cpu.store(cpu, Ordering::Relaxed);
    }

    /// The processor that the thread was last seen on; -1 if unknown.
    pub(crate) fn cpu(&self) -> i32 {
        self.cpu.load(Ordering::Relaxed)
    }

    /// Whether the thread came from the poller, and has run nothing since that may be long.
    pub(crate) fn is_urgent(&self) -> bool {
        self.urgent.load(Ordering::Relaxed)
    }

    /// The calling thread, this stack's, is to run soon when the kernel wakes it, or as any other: by short
    /// slices, or in the real-time class if the program asked for it and may.
    #[inline]
    pub(crate) fn set_urgent(&self, urgent: bool) {
        if self.urgent.load(Ordering::Relaxed) != urgent {
            self.urgent.store(urgent, Ordering::Relaxed);
            if !(self.core().real_time && crate::sys::thread::set_real_time(urgent)) {
                crate::sys::thread::set_short_slice(urgent);
            }
        }
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

    /// The stolen fork that the calling thread, this stack's, runs from now on. Returns the one that it ran.
    pub(crate) fn set_fork(&self, forked: Option<&'static Kind>) -> Option<&'static Kind> {
        let new = forked.map_or(ptr::null_mut(), |kind| ptr::from_ref(kind).cast_mut());
        let old = self.forked.load(Ordering::Relaxed);
        self.forked.store(new, Ordering::Relaxed);
        // SAFETY: what is stored came from a static reference.
        unsafe { old.as_ref() }
    }

    /// Whether the calling thread, this stack's, is in the middle of a stolen fork.
    pub(crate) fn runs_fork(&self) -> bool {
        !self.forked.load(Ordering::Relaxed).is_null()
    }

    /// The name of what the calling thread, this stack's, is in the middle of.
    pub(crate) fn what(&self) -> Name {
        let forked = self.forked.load(Ordering::Relaxed);
        // SAFETY: as in `set_fork`.
        if let Some(kind) = unsafe { forked.as_ref() } {
            return kind.name;
        }
        match self.task() {
            // SAFETY: the task runs on the calling thread, whose reference this borrows, and does not drop.
            Some(task) => unsafe { ManuallyDrop::new(TaskRef::from_raw(task)) }.name(),
            None => || "a call from outside the runtime",
        }
    }

    pub(crate) fn set_task(&self, task: Option<NonNull<Header>>) {
        let task = task.map_or(ptr::null_mut(), NonNull::as_ptr);
        self.task.store(task, Ordering::Relaxed);
    }

    /// The level of the computation on this stack.
    #[inline]
    pub(crate) fn level(&self) -> u8 {
        self.level.load(Ordering::Relaxed)
    }

    /// The stack begins a computation of this level.
    pub(crate) fn set_level(&self, level: u8) {
        self.level.store(level, Ordering::Relaxed);
    }

    /// The level by which the waits of the code on this stack are judged, or [`FOR_ANYTHING`].
    #[inline]
    pub(crate) fn waits_as(&self) -> u8 {
        self.waits_as.load(Ordering::Relaxed)
    }

    #[inline]
    pub(crate) fn set_waits_as(&self, level: u8) {
        self.waits_as.store(level, Ordering::Relaxed);
    }

    /// The stack's task is at least as urgent as `level` now. Any thread may call this. Whether that is news.
    pub(crate) fn raise_level(&self, level: u8) -> bool {
        self.level.fetch_min(level, Ordering::SeqCst) > level
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

    /// Gives this stack's thread a worker. The caller has the right to (see `Mailbox`, rule 1).
    pub(crate) fn deliver(&self, delivery: Delivery) {
        let item = match delivery {
            Delivery::Worker(worker) => worker,
            Delivery::Look => look_token(),
        };
        let thread = self.lock_thread();
        let thread = thread.as_ref().expect("a stack that parks has a thread");
        self.mailbox.deliver(item, thread);
    }

    /// As [`Stack::deliver`], from a thread that is about to sleep: the receiver's runs on this processor next.
    pub(crate) fn deliver_here(&self, delivery: Delivery) {
        *self.lock_home() = sys::thread::call_here(self.tid.load(Ordering::Relaxed));
        self.deliver(delivery);
    }

    fn lock_home(&self) -> std::sync::MutexGuard<'_, Option<Processors>> {
        self.home.lock().expect("nothing panics under this lock")
    }

    /// Parks the calling thread, which is this stack's, until a delivery comes.
    pub(crate) fn receive(&self) -> Delivery {
        self.received(self.mailbox.receive())
    }

    /// As [`Stack::receive`], for this long at most. `None` may come early.
    pub(crate) fn receive_within(&self, limit: Duration) -> Option<Delivery> {
        let item = self.mailbox.receive_within(limit)?;
        Some(self.received(item))
    }

    fn received(&self, item: *const Worker) -> Delivery {
        if let Some(home) = self.lock_home().take() {
            sys::thread::send_home(&home);
        }
        if ptr::eq(item, look_token()) {
            Delivery::Look
        } else {
            Delivery::Worker(item)
        }
    }

    /// Ends the stack's wait.
    pub(crate) fn wake(&self) {
        if self.suspension.wake() {
            self.resume();
        }
    }

    /// The stack's wait is over; the caller ended it, and owes it an entry.
    pub(crate) fn resume(&self) {
        // None: an older entry was enough, and the stack has gone on, to its end.
        if let Some(job) = self.job() {
            job.resume(self.arc());
        }
    }
}

impl Drop for Stack {
    fn drop(&mut self) {
        // A runtime that was dropped with work left: the tasks were shut down, their entries are stale.
        while super::find::pop_ring(self).is_some() {}
    }
}

fn look_token() -> *const Worker {
    ptr::without_provenance(1)
}

impl std::task::Wake for Stack {
    fn wake(self: Arc<Self>) {
        Stack::wake(&self);
    }

    fn wake_by_ref(self: &Arc<Self>) {
        Stack::wake(self);
    }
}
