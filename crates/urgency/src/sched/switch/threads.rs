//! The threads of a core set: spare ones, how they are made ([`making`]), and how they end.
//!
//! - A *spare* thread has nothing on its stack. It waits in the poller if a thread should be there, and otherwise in
//!   its mailbox, in a last-in first-out list. Of the spares that were last seen on the wanted processor, the warmest
//!   is used first (`pop_spare_for`).
//! - A thread is made when a worker needs one and no spare is left, up to the runtime's limit. A spare beyond
//!   [`KEPT_SPARES`] ends at once. Of the others, all but a few end when they have not been needed for [`KEPT_FOR`].
//! - Where lowered threads cannot be raised (`demotion.rs`), a thread runs work of its own class: a spare is chosen
//!   that fits the work, and a thread that finds work of another class hands its worker on ([`Job::pass_on`]). A thread
//!   inherits the class of the thread that makes it, so a lowered thread makes none: it leaves the worker to the thread
//!   in the poller, which is not lowered.

mod making;

pub(super) use making::First;

use super::{thread_options::ThreadOptions, without_thread::WithoutThread};
use crate::{
    protocol::demotion::USUAL,
    sched::{
        core::Core,
        job::Job,
        machine::claim::Want,
        serve::idle_spin::IdleSpin,
        stack::{Binding, Delivery, Me, Stack},
        worker::Worker,
    },
    sys::{
        self, chaos,
        mutex::{Mutex, MutexGuard},
    },
    tasks::{Runner, TaskRef},
};
use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

/// How many threads without work are kept for each worker.
const KEPT_SPARES: usize = 4;

/// For how long a thread without work is kept, but for one for each worker and [`FEW_SPARES`].
const KEPT_FOR: Duration = Duration::from_secs(1);

/// How many threads without work are kept for good beside one for each worker.
const FEW_SPARES: usize = 2;

/// The threads of a core set.
#[derive(Debug)]
pub(crate) struct Threads {
    spares: Mutex<Vec<Arc<Stack>>>,
    /// Every stack ever made, so that a worker's holder pointer stays valid; each at the place of its number, less one.
    stacks: Mutex<Vec<Arc<Stack>>>,
    /// Stacks that plain threads can borrow.
    externals: Mutex<Vec<Arc<Stack>>>,
    /// Stacks whose threads ended, for the next thread.
    retired: Mutex<Vec<Arc<Stack>>>,
    options: ThreadOptions,
    /// How many threads were ever made.
    made: AtomicUsize,
    alive: AtomicUsize,
    pub(super) without: WithoutThread,
    pub(crate) peak: AtomicUsize,
    pub(crate) refused: AtomicU64,
    /// How often the system has refused a thread since one was made.
    refused_in_turn: AtomicUsize,
    pub(crate) idle_spin: IdleSpin,
    /// How long visits last.
    pub(crate) visits: IdleSpin,
}

impl Threads {
    pub(crate) fn new(options: ThreadOptions) -> Self {
        Threads {
            spares: Mutex::default(),
            stacks: Mutex::default(),
            externals: Mutex::default(),
            retired: Mutex::default(),
            // Provided threads count from the beginning: there is no room for others.
            alive: AtomicUsize::new(if options.provided { options.limit } else { 0 }),
            options,
            made: AtomicUsize::new(0),
            without: WithoutThread::new(),
            peak: AtomicUsize::new(0),
            refused: AtomicU64::new(0),
            refused_in_turn: AtomicUsize::new(0),
            idle_spin: IdleSpin::default(),
            visits: IdleSpin::default(),
        }
    }

    /// Every stack ever made.
    pub(in crate::sched) fn stacks(&self) -> MutexGuard<'_, Vec<Arc<Stack>>> {
        self.stacks.lock()
    }

    /// The stack with this number. The list only grows: the number is the stack's for as long as the core set lives.
    pub(in crate::sched) fn numbered(&self, number: usize) -> Option<Arc<Stack>> {
        self.stacks().get(number.checked_sub(1)?).cloned()
    }

    /// The stack that runs `task`, which this runner claimed. A runner without a name is searched for.
    pub(crate) fn stack_of(&self, task: &TaskRef, runner: Runner) -> Option<Arc<Stack>> {
        let runs = |stack: &&Arc<Stack>| stack.task() == Some(task.as_raw());
        match runner.number() {
            Some(number) => self.numbered(number).filter(|stack| runs(&stack)),
            None => self.stacks().iter().find(runs).cloned(),
        }
    }

    /// The stacks with code of a job.
    pub(crate) fn stacks_of(&self, job: &Job) -> Vec<Arc<Stack>> {
        let stacks = self.stacks();
        let own = stacks.iter().filter(|stack| stack.is_of(job));
        own.cloned().collect()
    }

    /// Whether the embedder provides all threads.
    pub(crate) fn are_provided(&self) -> bool {
        self.options.provided
    }

    /// How large the stack of a thread of the runtime's own is, in bytes.
    pub(crate) fn stack_size(&self) -> usize {
        self.options.stack_size
    }

    /// Whether one more thread would be refused: by the limit, or as the system has refused the last one.
    pub(in crate::sched) fn may_be_refused(&self) -> bool {
        !self.are_provided()
            && (self.alive() >= self.options.limit
                || self.refused_in_turn.load(Ordering::Relaxed) != 0)
    }

    /// How many threads the runtime has now.
    pub(crate) fn alive(&self) -> usize {
        self.alive.load(Ordering::Acquire)
    }
}

impl Core {
    /// A spare thread that waits in its mailbox; the caller owes it a delivery.
    pub(crate) fn pop_spare(&self) -> Option<Arc<Stack>> {
        self.pop_spare_seen(USUAL, |_| true, |_| true)
    }

    /// The spare thread that has waited for longest, of the threads that may be in the poller.
    fn pop_rested(&self) -> Option<Arc<Stack>> {
        let mut spares = self.threads.spares.lock();
        let fits = |spare: &Arc<Stack>| spare.demotion.class() == USUAL || sys::thread::can_raise();
        let rested = spares.iter().position(fits).map(|it| spares.remove(it))?;
        drop(spares);
        rested.raise_thread();
        Some(rested)
    }

    /// As [`Core::pop_spare`], for work of a level of this class: a thread that is lowered no further, or else one that
    /// is raised. Of these the newest that was last seen on a processor that is `wanted`, or else `second`, or else
    /// anywhere. A woken thread often stays on the processor where it slept: while the processors are busy most of the
    /// time, the kernel does not look for an idle one.
    pub(super) fn pop_spare_seen(
        &self,
        class: u8,
        wanted: impl Fn(i32) -> bool,
        second: impl Fn(i32) -> bool,
    ) -> Option<Arc<Stack>> {
        if !self.demoted_stacks.any() {
            return self.pop_spare_that(|_| true, wanted, second);
        }
        let fits = |spare: &Stack| spare.demotion.class() <= class;
        let fitting = self.pop_spare_that(fits, &wanted, &second);
        if fitting.is_some() || !sys::thread::can_raise() {
            return fitting;
        }
        let lowered = self.pop_spare_that(|_| true, wanted, second)?;
        // Before it is woken: a lowered thread would have to wait for other processes before it could do so itself.
        lowered.raise_thread();
        Some(lowered)
    }

    /// Of the spares that fit, the most lowered, and of those the newest that is `wanted`, or else `second`.
    pub(super) fn pop_spare_that(
        &self,
        fits: impl Fn(&Stack) -> bool,
        wanted: impl Fn(i32) -> bool,
        second: impl Fn(i32) -> bool,
    ) -> Option<Arc<Stack>> {
        let mut spares = self.threads.spares.lock();
        let fitting = spares.iter().filter(|spare| fits(spare));
        let class = fitting.map(|spare| spare.demotion.class()).max()?;
        let fits = |spare: &Stack| fits(spare) && spare.demotion.class() == class;
        let place = spares
            .iter()
            .rposition(|spare| fits(spare) && wanted(spare.cpu()))
            .or_else(|| {
                let mut spares = spares.iter();
                spares.rposition(|spare| fits(spare) && second(spare.cpu()))
            })
            .or_else(|| spares.iter().rposition(|spare| fits(spare)))?;
        Some(spares.remove(place))
    }

    /// Every spare thread looks around: the runtime closes.
    pub(crate) fn rouse_spares(&self) {
        let spares = std::mem::take(&mut *self.threads.spares.lock());
        for spare in spares {
            spare.deliver(Delivery::Look);
        }
    }

    /// A thread should be in the poller, and none is.
    pub(crate) fn want_poller(&self) {
        if self.pollers.is_any() || self.closing.load(Ordering::SeqCst) || !self.pollers.send() {
            return;
        }
        match self.pop_rested() {
            Some(spare) => spare.deliver(Delivery::Look),
            None if self.spawn_thread(First::Look).is_some() => {}
            None => {
                self.pollers.arrive();
                self.serve_without_threads();
            }
        }
    }

    /// No thread could be made. While this one was tried, a caller that had a worker to start, and could make no thread
    /// either, took the runtime for one with a thread, and left the worker idle beside what waits.
    #[cold]
    fn serve_without_threads(&self) {
        if self.threads.alive() == 0 {
            let jobs = self.jobs();
            let claimed = jobs
                .iter()
                .filter_map(|job| Some((job, job.claim(Want::Offered)?)));
            claimed.for_each(|(job, worker)| job.start(worker));
        }
    }

    /// The whole life of a thread of the runtime.
    ///
    /// # Safety
    /// No other thread is `stack`.
    unsafe fn run_thread(self: &Arc<Self>, stack: Arc<Stack>, number: usize, first: First) {
        if matches!(first, First::Look) {
            // Before code of the program, which may wait for an event.
            self.pollers.arrive();
        }
        self.leave_inherited_class(&stack);
        self.pins.begins(&stack);
        self.threads.options.started(number);
        // SAFETY: by the caller's promise.
        let mut binding = unsafe { Binding::new(stack) };
        let mut next = Some(match first {
            First::Receive => binding.me().receive(self),
            First::Look => Delivery::Look,
        });
        while let Some(delivery) = next {
            if let Delivery::Look = delivery {
                self.pollers.arrive();
            } else if let Delivery::Worker(worker) = delivery {
                // Whether it comes from the poller or was called in and found work on its way: what it
                // runs may be long.
                self.call_in_poller();
                let mut next = Some(worker);
                while let Some(worker) = next {
                    let job = worker.job().expect("a worker in hand serves a job");
                    binding.take_up(job);
                    let me = binding.me();
                    let other = me.runtime().serve(me, worker);
                    next = other.map(|worker| &*self.workers[worker.id]);
                    me.runtime().flush_ring(&me);
                }
            }
            next = self.wait_as_spare(&mut binding);
        }
        binding.leave_job();
        let stack = binding.end();
        stack.forget_thread();
        self.threads.options.stopped(number);
        self.threads.retired.lock().push(stack);
        self.threads.alive.fetch_sub(1, Ordering::AcqRel);
        self.jobs()
            .iter()
            .for_each(|job| job.tasks.something_ended());
    }

    /// Waits as a spare thread: in the poller if a thread should be there, otherwise in the mailbox. `None`: the thread
    /// is to end.
    fn wait_as_spare(&self, binding: &mut Binding) -> Option<Delivery<'_>> {
        if let Some(worker) = self.claim_for_queued(binding.me()) {
            return Some(Delivery::Worker(worker));
        }
        if self.closing.load(Ordering::SeqCst) {
            return None;
        }
        // A lowered thread would come out of the poller late.
        if (!binding.me().is_too_low_for(USUAL) || self.is_poller_missing())
            && let Some(polled) = self.poll_as_spare(binding)
        {
            return Some(polled);
        }
        // Without the lock: what the job keeps of the program may start work when it is dropped, and needs the lock.
        binding.leave_job();
        {
            let mut spares = self.threads.spares.lock();
            let too_many = spares.len() >= KEPT_SPARES * self.workers.len() || chaos::one_in(8);
            if too_many && !self.threads.are_provided() {
                drop(spares);
                // Another thread may have relied on this one while the poller refused it (`protocol/pollers.rs`).
                return self.is_poller_missing().then_some(Delivery::Look);
            }
            binding.me().note_cpu();
            spares.push(binding.me().arc());
        }
        let me = binding.me();
        chaos::delay();
        // A thread that set `closing`, wanted a poller, or released a worker for us before we were in the list did not
        // see us.
        if (self.closing.load(Ordering::SeqCst)
            || self.is_poller_missing()
            || self.is_work_unserved(me))
            && self.unlist(&me)
        {
            let claimed = self.claim_for_queued(me);
            return Some(claimed.map_or(Delivery::Look, Delivery::Worker));
        }
        if !self.threads.are_provided()
            && self.threads.spares.lock().len() > self.workers.len() + FEW_SPARES
        {
            let delivery = me.receive_within(self, KEPT_FOR);
            if delivery.is_some() || self.unlist(&me) {
                return delivery;
            }
        }
        Some(me.receive(self))
    }

    /// Whether work of any job waits although a worker is idle.
    fn is_work_unserved(&self, me: Me<'_>) -> bool {
        self.idle.any() && self.jobs().iter().any(|job| job.is_work_unserved(me))
    }

    /// An idle worker, if work of any job waits for one; it serves that job.
    fn claim_for_queued(&self, me: Me<'_>) -> Option<&Worker> {
        let jobs = self.idle.any().then(|| self.jobs())?;
        let claimed = jobs.iter().find_map(|job| job.claim_for_queued(me))?;
        Some(&self.workers[claimed.id])
    }

    /// The whole life of a thread that the embedder provided.
    pub(crate) fn run_provided(self: &Arc<Self>, number: usize) {
        let stack = self.new_stack();
        stack.set_number(number);
        let _kept = self.kept_for_calls();
        // SAFETY: the stack is new.
        unsafe { self.run_thread(stack, number, First::Look) };
        sys::thread::usual_slices(); // The embedder's code goes on.
    }

    /// The job that a thread keeps for what it calls first and last: code of the program that may look for its runtime.
    fn kept_for_calls(&self) -> Option<Arc<Job>> {
        let has_calls = self.threads.options.has_calls();
        has_calls.then(|| self.jobs().iter().next().cloned())?
    }

    /// How many spare threads wait in their mailboxes.
    pub(super) fn spares(&self) -> usize {
        self.threads.spares.lock().len()
    }

    /// Takes a thread out of the list of spares. `false`: it has been popped already, and a delivery is coming.
    pub(super) fn unlist(&self, stack: &Stack) -> bool {
        let mut spares = self.threads.spares.lock();
        let place = spares
            .iter()
            .position(|spare| std::ptr::eq(&**spare, stack));
        place.map(|place| spares.remove(place)).is_some()
    }

    /// A stack for a plain thread.
    pub(crate) fn borrow_external(&self) -> Arc<Stack> {
        let external = self.threads.externals.lock().pop();
        external.unwrap_or_else(|| {
            let external = self.new_stack();
            external.pinned_to.never();
            external
        })
    }

    pub(crate) fn return_external(&self, stack: Arc<Stack>) {
        self.threads.externals.lock().push(stack);
    }
}
