//! [`Me`]: the stack that the calling thread is. What only a stack's own thread may do is a method of `Me`.
//!
//! A function that takes `me: Me<'_>` runs on that stack's thread, and nothing else can call it: the scheduling point,
//! all that waits, all that forks. It costs what a reference costs.
//!
//! # Where a `Me` comes from
//!
//! 1. A thread becomes a stack by a [`Binding`]. To make one is the one promise that no type checks: no other thread
//!    is that stack. The lists in `threads.rs` see to it: a stack is in one of them, or bound.
//! 2. The thread remembers its stack in a variable, for code that is called without one
//!    ([`Stack::with_current`]). A declared blocking call, and a call of the program's code by the scheduler, set the
//!    stack *aside*: it is still this thread's, but no code below the call finds it by chance ([`Stack::with_own`]).
//!
//! A `Me` lives no longer than its binding. And as long as one lives, the stack keeps its job: to take up another one
//! takes the binding itself.
//!
//! # What a `Me` may be asked
//!
//! A thread in the poller is a stack, and may have no job and no worker. So what a `Me` gives is sound at any time:
//!
//! 1. [`Me::runtime`] looks whether there is a job, and panics if there is none.
//! 2. [`Me::worker`] is always one of the core set's: the one that the stack holds, or held last, or the first. All of
//!    a worker is atomic or behind a lock, so a stack that has lost its worker may ask as well. Whether it still holds
//!    it is in the attention word, and each way into the scheduler finds that out before it relies on it (`come_in` and
//!    `finish` in `run.rs`).

use super::{BRIEFLY, Delivery, Stack};
use crate::{
    account::overruns::Name,
    protocol::{
        attention::Attention, child_memory::ChildMemory, code_level::CodeLevel, deque::Deque,
        home::Home, mailbox::Mailbox, own::Own, ring::Ring, suspension::Suspension,
    },
    sched::{Forked, Kind, core::Core, job::Job, worker::Worker},
    sys::{self, clock, wake_up::Call},
    tasks::{Header, TaskRef},
};
use std::{
    cell::Cell,
    marker::PhantomData,
    mem::ManuallyDrop,
    num::NonZero,
    ptr::{self, NonNull},
    sync::{Arc, atomic::Ordering},
    thread,
    time::Duration,
};

/// See the module's text.
pub(crate) type Me<'a> = Own<'a, Stack>;

thread_local! {
    static CURRENT: Cell<*const Stack> = const { Cell::new(ptr::null()) };
    /// The stack that the scheduler has set aside, for a declared blocking call or other code of the program's.
    static ASIDE: Cell<*const Stack> = const { Cell::new(ptr::null()) };
}

/// The calling thread is a stack until this is dropped.
#[derive(Debug)]
pub(crate) struct Binding {
    stack: Arc<Stack>,
    /// The stack that the thread was before, if it is a thread of another core set.
    outer: *const Stack,
    this_thread: PhantomData<*const ()>,
}

impl Binding {
    /// The calling thread is this stack from now on.
    ///
    /// # Safety
    /// No other thread is that stack until the binding is dropped: it has just been made, or taken off the list of
    /// the stacks without a thread.
    pub(crate) unsafe fn new(stack: Arc<Stack>) -> Self {
        stack.set_thread(thread::current());
        let tid = sys::thread::current_id();
        stack.tid.store(tid, Ordering::Relaxed);
        stack.base.store(sys::thread::frame(), Ordering::Relaxed);
        let outer = CURRENT.replace(&*stack);
        let under = if outer.is_null() { ASIDE.get() } else { outer };
        stack.under.store(under.cast_mut(), Ordering::Relaxed);
        Binding {
            stack,
            outer,
            this_thread: PhantomData,
        }
    }

    #[inline]
    pub(crate) fn me(&self) -> Me<'_> {
        // SAFETY: by the promise of `new`, no other thread is this stack while the binding lives; and it does not leave
        // its thread.
        unsafe { Own::new(&*self.stack) }
    }

    /// The stack has nothing on it, and is about to run code of `job`.
    pub(crate) fn take_up(&mut self, job: Arc<Job>) {
        if !ptr::eq(self.me().runtime_ptr(), &*job) {
            self.exchange(Some(job));
        }
    }

    /// The stack has nothing on it, and waits for whatever comes.
    pub(crate) fn leave_job(&mut self) {
        if !self.me().runtime_ptr().is_null() {
            self.exchange(None);
        }
    }

    #[cold]
    fn exchange(&mut self, new: Option<Arc<Job>>) {
        let stack = &self.stack;
        debug_assert!(stack.deque.seems_empty() && stack.ring.is_empty());
        let pointer = new.as_ref().map_or(ptr::null(), Arc::as_ptr);
        // The level is one of the job's, also before the stack begins its code: a waker or a policy may spawn.
        if let Some(job) = &new {
            self.me().set_level(job.least_urgent());
        }
        let old = std::mem::replace(&mut *stack.kept.lock(), new);
        stack.job.store(pointer.cast_mut(), Ordering::SeqCst);
        // Entries of the old job's pools for this deque are stale; see `Job::insert_deque_as`.
        stack.pooled.clear();
        drop(old);
    }

    /// The thread is what it was before. The stack may be another thread's.
    pub(crate) fn end(self) -> Arc<Stack> {
        self.stack.clone()
    }
}

impl Drop for Binding {
    fn drop(&mut self) {
        debug_assert!(ptr::eq(CURRENT.get(), &*self.stack));
        CURRENT.set(self.outer);
    }
}

impl Stack {
    /// Runs `f` with the stack of the calling thread, if it has one.
    #[inline(always)]
    pub(crate) fn with_current<R>(f: impl FnOnce(Option<Me<'_>>) -> R) -> R {
        // SAFETY: the pointer comes from a binding of this thread, or from a `Me`, which outlives the call of `f`.
        f(unsafe { me_at(CURRENT.get()) })
    }

    /// Runs `f` with the stack of the calling thread, be it set aside, if it has one with code of a job.
    #[inline]
    pub(crate) fn with_own<R>(f: impl FnOnce(Option<Me<'_>>) -> R) -> R {
        let me = CURRENT.get();
        let own = if me.is_null() { ASIDE.get() } else { me };
        // SAFETY: as in `with_current` and `aside`.
        let own = unsafe { me_at(own) };
        // A thread in the poller may have no job, and calls wakers.
        f(own.filter(|own| !own.runtime_ptr().is_null()))
    }

    /// Runs `f` with the stack that the calling plain thread has set aside, if it has, with code of a job.
    pub(crate) fn aside<R>(f: impl FnOnce(Me<'_>) -> R) -> Option<R> {
        // SAFETY: set for the time of a call on that stack's own thread, which keeps the stack.
        let aside = unsafe { me_at(ASIDE.get()) };
        aside.filter(|me| !me.runtime_ptr().is_null()).map(f)
    }

    /// Whether the calling thread is this stack.
    pub(crate) fn is_current(stack: *const Stack) -> bool {
        ptr::eq(CURRENT.get(), stack)
    }

    /// Whether the calling plain thread has set aside a stack with code of `job`.
    pub(crate) fn is_aside_of(job: &Job) -> bool {
        Stack::aside(|me| me.is_of(job)).unwrap_or(false)
    }

    /// Whether the calling thread is one of this core set's, be its stack set aside.
    pub(crate) fn is_own_in(core: &Core) -> bool {
        let me = CURRENT.get();
        let own = if me.is_null() { ASIDE.get() } else { me };
        // SAFETY: as in `with_current` and `aside`.
        unsafe { me_at(own) }.is_some_and(|own| own.is_in(core))
    }

    /// Runs `f`, code of the program's that the scheduler calls: it must find no stack, which would be one that is
    /// inside the scheduler. It does not unwind.
    pub(crate) fn outside_scheduler<R>(f: impl FnOnce() -> R) -> R {
        Stack::with_current(|me| match me {
            Some(me) => me.set_aside(f),
            None => f(),
        })
    }
}

/// # Safety
/// The calling thread is this stack for `'a`, unless the pointer is null.
#[inline(always)]
unsafe fn me_at<'a>(stack: *const Stack) -> Option<Me<'a>> {
    // SAFETY: a thread keeps its stack, and no other thread is it.
    unsafe { stack.as_ref().map(|stack| Own::new(stack)) }
}

/// The parts of a stack that have an owner's side. It is the stack's thread's.
macro_rules! parts {
    ($($part:ident: $type:ty),*) => {
        impl<'a> Own<'a, Stack> {
            $(
                #[inline(always)]
                pub(crate) fn $part(self) -> Own<'a, $type> {
                    // SAFETY: the part belongs to the stack, and the calling thread is the stack for `'a`.
                    unsafe { Own::new(&self.shared().$part) }
                }
            )*
        }
    };
}

parts! {
    attention: Attention,
    code_level: CodeLevel,
    deque: Deque<Forked>,
    child_memory: ChildMemory,
    ring: Ring<Header>,
    suspension: Suspension,
    mailbox: Mailbox,
    home: Home<Call>
}

/// What the stack's thread does.
impl<'a> Own<'a, Stack> {
    /// Runs `f` as a plain thread of this stack's runtime: what it spawns and forks belongs there. It does not
    /// unwind.
    pub(crate) fn set_aside<R>(self, f: impl FnOnce() -> R) -> R {
        CURRENT.set(ptr::null());
        let outer = ASIDE.replace(self.shared());
        let result = f();
        ASIDE.set(outer);
        CURRENT.set(self.shared());
        result
    }

    /// Runs `f`, inside of [`Me::set_aside`], as this stack again. It does not unwind.
    pub(crate) fn taken_up<R>(self, f: impl FnOnce() -> R) -> R {
        debug_assert!(CURRENT.get().is_null());
        CURRENT.set(self.shared());
        let result = f();
        CURRENT.set(ptr::null());
        result
    }

    /// The job whose code is on this stack.
    ///
    /// # Panics
    ///
    /// If there is none: a stack without a job runs nothing.
    #[inline]
    pub(crate) fn runtime(self) -> &'a Job {
        // SAFETY: the stack keeps its job (`kept`), and takes up another one by its binding, which is not borrowed
        // then.
        let job = unsafe { self.runtime_ptr().as_ref() };
        job.expect("a stack without a job runs nothing")
    }

    /// The pointer of the `Arc` in which that job is.
    #[inline]
    pub(crate) fn runtime_ptr(self) -> *const Job {
        self.job.load(Ordering::Relaxed)
    }

    /// Whether the stack has no job, or one that has ended.
    pub(crate) fn has_no_open_job(self) -> bool {
        self.runtime_ptr().is_null() || self.runtime().closing.load(Ordering::Relaxed)
    }

    /// The core set.
    #[inline]
    pub(crate) fn core(self) -> &'a Core {
        // SAFETY: each thread keeps the core set while it is one of its stacks (`core.rs`).
        unsafe { &*self.shared().core.as_ptr() }
    }

    /// A scope is opened, or over. Returns the one that was innermost.
    #[inline]
    pub(crate) fn enter_scope(self, scope: *const ()) -> *const () {
        let outer = self.scope.load(Ordering::Relaxed);
        self.scope.store(scope.cast_mut(), Ordering::Relaxed);
        outer
    }

    pub(crate) fn innermost_scope(self) -> *const () {
        self.scope.load(Ordering::Relaxed)
    }

    /// How many forks the stack runs on top of each other, and on top of what it began with: children that it took
    /// back, and forks that it stole in the middle of a wait.
    pub(crate) fn nesting(self) -> u32 {
        self.nesting.load(Ordering::Relaxed)
    }

    /// Runs `f`, which is forks on top of what this stack runs already. It does not unwind.
    #[inline]
    pub(crate) fn on_top<R>(self, f: impl FnOnce() -> R) -> R {
        let outer = self.nesting();
        self.nesting.store(outer.wrapping_add(1), Ordering::Relaxed);
        let result = f();
        self.nesting.store(outer, Ordering::Relaxed);
        result
    }

    /// The worker that this stack holds; on one that has lost it or waits for one, see the module's text.
    #[inline]
    pub(crate) fn worker(self) -> &'a Worker {
        // SAFETY: set by `Stack::new` and `hold` to a worker of the core set, which lives as long as the core set, and
        // the stack's thread keeps that.
        unsafe { &*self.worker_ptr() }
    }

    /// This stack holds `worker` from now on, which serves its job. Called inside the scheduler.
    pub(crate) fn hold(self, worker: &Worker) {
        // By its number, so that it is one of this core set's whatever the caller has.
        let worker = &*self.core().workers[worker.id];
        worker.serve(self.runtime());
        self.worker
            .store(ptr::from_ref(worker).cast_mut(), Ordering::Relaxed);
        worker.set_holder(self.shared());
        self.core().places.goes_to(&worker.place, self.note_cpu());
        self.runs_from(clock::now());
        self.pinned_to.follow(worker, 0);
    }

    /// The stack begins to wait, inside the scheduler.
    pub(crate) fn note_wait(self) {
        let waits = self.waits.load(Ordering::Relaxed).wrapping_add(1);
        self.waits.store(waits, Ordering::Relaxed);
    }

    /// How often the stack has begun to wait.
    pub(crate) fn waits(self) -> u32 {
        self.waits.load(Ordering::Relaxed)
    }

    /// How many bytes lie between the frame that made the thread this stack and the calling one.
    pub(crate) fn depth(self) -> usize {
        let base = self.base.load(Ordering::Relaxed);
        base.abs_diff(sys::thread::frame())
    }

    /// The stack goes on. Returns for how long it was ready, in ticks.
    pub(crate) fn no_longer_waits(self) -> Option<u64> {
        let since = self.ready_since.load(Ordering::Relaxed);
        self.ready_since.store(0, Ordering::Relaxed);
        (since != 0).then(|| clock::now().saturating_sub(since))
    }

    /// The thread comes out of the poller with a worker.
    pub(crate) fn note_left_poller(self) {
        self.left_poller_at.store(clock::now(), Ordering::Relaxed);
    }

    /// Whether the thread has run for long since it was in the poller.
    pub(crate) fn has_computed_since_poll(self) -> bool {
        let left = self.left_poller_at.load(Ordering::Relaxed);
        clock::now().saturating_sub(left) > clock::ticks(BRIEFLY)
    }

    /// Notes the processor that the thread runs on, and returns it.
    #[inline]
    pub(crate) fn note_cpu(self) -> i32 {
        let cpu = sys::thread::current_cpu();
        self.cpu.store(cpu, Ordering::Relaxed);
        cpu
    }

    /// Whether the thread came from the poller, and has run nothing since that may be long.
    pub(crate) fn is_urgent(self) -> bool {
        self.urgent.load(Ordering::Relaxed)
    }

    /// The thread is to run soon when the kernel wakes it, or to be preempted by such a thread: by short slices and
    /// long ones, or in the real-time class if the program asked for it and may.
    #[inline]
    pub(crate) fn set_urgent(self, urgent: bool) {
        if self.urgent.load(Ordering::Relaxed) != urgent {
            self.urgent.store(urgent, Ordering::Relaxed);
            if !(self.core().real_time && sys::thread::set_real_time(urgent)) {
                sys::thread::set_slices(urgent);
            }
        }
    }

    /// The stolen fork that the thread runs from now on. Returns the one that it ran.
    pub(crate) fn set_fork(self, forked: Option<&'static Kind>) -> Option<&'static Kind> {
        let new = forked.map_or(ptr::null_mut(), |kind| ptr::from_ref(kind).cast_mut());
        let old = self.forked.load(Ordering::Relaxed);
        self.forked.store(new, Ordering::Relaxed);
        // SAFETY: as in `Stack::forked`.
        unsafe { old.as_ref() }
    }

    /// Whether the stack is in the middle of a stolen fork.
    pub(crate) fn runs_fork(self) -> bool {
        !self.forked.load(Ordering::Relaxed).is_null()
    }

    /// The name of what the thread is in the middle of.
    pub(crate) fn what(self) -> Name {
        if let Some(kind) = self.forked() {
            return kind.name;
        }
        self.with_task(|task| task.map_or(Stack::OUTSIDE, TaskRef::name))
    }

    /// Calls `f` with the task that the stack runs, if it runs one.
    #[inline]
    pub(crate) fn with_task<R>(self, f: impl FnOnce(Option<&TaskRef>) -> R) -> R {
        let task = self.task().map(|header| {
            // SAFETY: the entry that runs on this thread keeps the task alive; this borrow of it is not dropped.
            ManuallyDrop::new(unsafe { TaskRef::from_raw(header) })
        });
        f(task.as_deref())
    }

    /// The task that the stack runs from now on.
    pub(crate) fn set_task(self, task: Option<NonNull<Header>>) {
        let task = task.map_or(ptr::null_mut(), NonNull::as_ptr);
        self.task.store(task, Ordering::Relaxed);
    }

    /// The stack begins a computation of this level.
    pub(crate) fn set_level(self, level: u8) {
        self.code_level().begin(level);
    }

    /// The code that the stack runs from now on is to be judged by this level where it waits, or may wait for anything.
    #[inline]
    pub(crate) fn set_waits_as(self, level: u8) {
        self.waits_as.store(level, Ordering::Relaxed);
    }

    /// Parks the thread until a delivery comes, from its core set.
    pub(crate) fn receive(self, core: &Core) -> Delivery<'_> {
        self.received(self.mailbox().receive(), core)
    }

    /// As [`Me::receive`], for this long at most. `None` may come early.
    pub(crate) fn receive_within(self, core: &Core, limit: Duration) -> Option<Delivery<'_>> {
        let number = self.mailbox().receive_within(limit)?;
        Some(self.received(number, core))
    }

    fn received(self, number: NonZero<usize>, core: &Core) -> Delivery<'_> {
        self.home().go(|call| call.answer(&core.wake_up));
        Delivery::of_number(number, core)
    }
}

#[cfg(all(test, not(urgency_loom)))]
mod tests {
    use super::*;
    use crate::{Runtime, level::Level};
    use std::panic::{AssertUnwindSafe, catch_unwind};

    crate::levels! { Order: First > Second }

    #[test]
    fn a_stack_without_job_and_worker_names_a_worker_and_refuses_to_name_a_job() {
        let runtime = Runtime::builder().workers(2).build().unwrap();
        let stack = Stack::new(&runtime.job().core);
        // SAFETY: the stack is new.
        let binding = unsafe { Binding::new(stack) };
        assert_eq!(binding.me().worker().id, 0);
        let asked = catch_unwind(AssertUnwindSafe(|| ptr::from_ref(binding.me().runtime())));
        assert!(asked.is_err());
    }

    /// A thread in the poller may have no job when it calls code of the program's.
    #[test]
    fn code_that_a_stack_without_a_job_calls_runs_at_no_level() {
        let runtime = Runtime::builder().levels::<Order>().build().unwrap();
        let stack = Stack::new(&runtime.job().core);
        // SAFETY: the stack is new.
        let binding = unsafe { Binding::new(stack) };
        binding.me().set_aside(|| {
            assert_eq!(First.is_here().unwrap_err().found(), None);
            assert!(Stack::aside(|_| ()).is_none());
        });
    }

    #[test]
    fn a_thread_is_what_it_was_when_a_binding_ends() {
        let current = || Stack::with_current(|me| me.map(|me| ptr::from_ref(me.shared())));
        let of_both = [(); 2].map(|()| Runtime::builder().workers(1).build().unwrap());
        of_both[0].run(|| {
            let outer = current();
            let inner = of_both[1].run(current);
            assert!(inner.is_some() && inner != outer);
            assert_eq!(current(), outer);
        });
        assert_eq!(current(), None);
    }
}
