//! The tasks of a runtime, and its end.
//!
//! # Shutdown in steps
//!
//! 1. *Drain*: wait until no task is alive (or until the given time is over); being prompt, the most urgent end first.
//!    *Drain down to a level*: first refuse new tasks below the level and cancel the ones that there are, the least
//!    urgent first; then drain. *Cancel*: skip this.
//! 2. Close the table of live tasks: a later spawn gives a handle that reports `ShutDown`. A plain thread is refused
//!    from now on.
//! 3. Cancel what is alive. A suspended task becomes ready and a worker drops its future; a running
//!    closure goes on to its end, but a task that it waits for ends with an error.
//! 4. Wait until no task is alive, or until the given time is over; but a tenth of a second at least, since a worker
//!    has to drop each cancelled task.
//! 5. Set `closing`, wake all threads, shut the driver down, and have all stacks of the job that wait look again. From
//!    now on a thread ends when it finds nothing ready. Ready work is still run: a stack that resumes must be able to
//!    unwind. Plain threads that are inside may still need the driver and relief: if there are any, the last one does
//!    this when it leaves (`external.rs`).
//! 6. Whatever is alive now is seized: a suspended future is dropped here; what still runs is *left*,
//!    and reported.
//!
//! Between 5 and 6 a task may be woken that no thread may run any more. Its future is not dropped by the wake-up, whose
//! thread may have locks that the future's destructor takes. It is kept until it has been seized ([`Tasks::keep`]). If
//! a plain thread did step 5 when it left, while a shutdown waits in step 4, the shutdown does step 6 before it waits
//! on.
//!
//! Dropping the runtime without a shutdown does steps 2, 5 and 6, and waits for nothing.
//!
//! A task that shuts its own runtime down cannot wait for itself, nor for others that do the same: it is reported as
//! left. Tasks are counted and not calls: of two calls that a task forked, either is on another stack, and both are for
//! one task (`stack/stuck.rs`). Any number of threads may shut a runtime down, at once or in turn: each waits and
//! reports, and the first to reach a step takes it.
//!
//! *The account*: every task that was ever spawned is, at the end, finished, panicked, cancelled or left.

use crate::sys::{
    mutex::Mutex,
    primitives::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering},
};
use crate::{
    rank::LevelId,
    sched::{
        job::Job,
        poll_context,
        stack::{Stack, TaskName},
        switch::block::{blocking, give_kept_worker},
    },
    tasks::{LiveTasks, Ran, TaskRef},
};
use std::{
    cmp::Reverse,
    sync::{Condvar, PoisonError},
    time::{Duration, Instant},
};

/// How long a cancelled task may take at least to end, when the time for a shutdown is over.
pub(crate) const CANCEL_GRACE: Duration = Duration::from_millis(100);

/// The tasks of a runtime.
pub(crate) struct Tasks {
    pub(crate) live: LiveTasks,
    pub(crate) panicked: AtomicU64,
    pub(crate) cancelled: AtomicU64,
    /// A thread waits for the table to become empty.
    awaited: AtomicBool,
    /// There is something in `when_empty`.
    watched: AtomicBool,
    /// Is called when the table is closed and has become empty.
    when_empty: Mutex<Option<Box<dyn FnOnce() + Send>>>,
    /// Threads that wait in a shutdown of this runtime inside of it, and for each call of theirs the tasks that cannot
    /// end before it: a task is there more than once if it forked several calls.
    ending: AtomicUsize,
    stuck: Mutex<Vec<TaskName>>,
    lock: Mutex<()>,
    ended: Condvar,
    /// The least urgent level whose tasks are admitted.
    least_admitted: AtomicU8,
    /// What was woken since `closing` was set; `None` once all has been seized.
    woken: Mutex<Option<Vec<TaskRef>>>,
}

debug_struct!(Tasks, |it| live: it.live);

impl Tasks {
    pub(crate) fn new(workers: usize) -> Self {
        Tasks {
            live: LiveTasks::new(workers),
            panicked: AtomicU64::new(0),
            cancelled: AtomicU64::new(0),
            awaited: AtomicBool::new(false),
            watched: AtomicBool::new(false),
            when_empty: Mutex::default(),
            ending: AtomicUsize::new(0),
            stuck: Mutex::default(),
            lock: Mutex::new(()),
            ended: Condvar::new(),
            least_admitted: AtomicU8::new(u8::MAX),
            woken: Mutex::new(Some(Vec::new())),
        }
    }

    /// Whether new tasks of this level may run. Asked after the task entered the table: a shutdown that refuses the
    /// level sees it there.
    pub(super) fn admits(&self, level: u8) -> bool {
        level <= self.least_admitted.load(Ordering::Relaxed)
    }

    /// A task has run so.
    pub(crate) fn count_cancelled(&self, ran: Ran) {
        if ran == Ran::Cancelled {
            self.cancelled.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Nothing of the task will run any more.
    pub(crate) fn seize(&self, task: TaskRef) {
        if task.shut_down() {
            self.cancelled.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// The task was woken after `closing` was set. Unless it has been seized, it will be. Until then this holds a
    /// reference to it: the last one would drop its future here.
    pub(super) fn keep(&self, task: TaskRef) {
        let mut woken = self.woken.lock();
        match &mut *woken {
            Some(tasks) => tasks.push(task),
            None => {
                drop(woken);
                drop(task);
            }
        }
    }

    /// No task less urgent than `level` is admitted from now on, and the present ones are cancelled.
    fn cancel_below(&self, level: u8) {
        self.least_admitted.store(level, Ordering::SeqCst);
        let mut tasks = self.live.tasks();
        tasks.retain(|task| task.level() > level);
        tasks.sort_by_key(|task| Reverse(task.level()));
        tasks.iter().for_each(TaskRef::cancel);
    }

    fn report(&self) -> Report {
        let spawned = self.live.entered();
        let left = self.live.len() as u64;
        let panicked = self.panicked.load(Ordering::Relaxed);
        let cancelled = self.cancelled.load(Ordering::Relaxed);
        Report {
            spawned,
            finished: spawned.saturating_sub(left + panicked + cancelled),
            panicked,
            cancelled,
            left,
        }
    }

    /// Whether only tasks are alive that wait for a shutdown. Each counts once.
    fn are_ended(&self) -> bool {
        let stuck = self.stuck.lock();
        let first = |(index, task): &(usize, &TaskName)| !stuck[..*index].contains(task);
        self.live.len() <= stuck.iter().enumerate().filter(first).count()
    }

    /// Waits until `is_done`, which changes only after a call of [`Tasks::tell_waiters`].
    fn wait_until(&self, deadline: Option<Instant>, is_done: impl Fn() -> bool) -> bool {
        self.awaited.store(true, Ordering::SeqCst);
        let mut guard = self.lock.lock();
        loop {
            if is_done() {
                return true;
            }
            let left = deadline.map_or(Duration::MAX, |it| {
                it.saturating_duration_since(Instant::now())
            });
            if left.is_zero() {
                return false;
            }
            let waited = self.ended.wait_timeout(guard, left);
            guard = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Calls `call` once when the table is closed and a task has left it empty, on the thread that ended the task. Each
    /// later task must have been entered before the table is closed, or be refused by it: its end is looked at.
    pub(crate) fn when_empty(&self, call: Box<dyn FnOnce() + Send>) {
        *self.when_empty.lock() = Some(call);
        self.watched.store(true, Ordering::SeqCst);
    }

    /// Something has changed that [`Tasks::wait_until`] waits for.
    fn tell_waiters(&self) {
        if self.awaited.load(Ordering::SeqCst) {
            drop(self.lock.lock());
            self.ended.notify_all();
        }
    }

    pub(in crate::sched) fn something_ended(&self) {
        self.tell_waiters();
        if self.watched.load(Ordering::Relaxed) && self.live.is_closed() && self.live.len() == 0 {
            let call = self.when_empty.lock().take();
            call.into_iter().for_each(|call| call());
        }
    }

    /// Step 6. `tasks` are all that are alive: no further one is admitted.
    fn seize_all(&self, tasks: Vec<TaskRef>) {
        tasks.into_iter().for_each(|task| self.seize(task));
        let woken = self.woken.lock().take();
        // Behind the lock.
        drop(woken);
    }
}

/// How [`Runtime::shutdown`](crate::Runtime::shutdown) treats the tasks that are alive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shutdown {
    /// Waits for them, and for the tasks that they spawn.
    Drain,
    /// Waits for the tasks that are at least as urgent as this level, and for the tasks of such levels that they spawn,
    /// the most urgent first. Less urgent tasks are cancelled at once, the least urgent first, and no new ones are
    /// accepted.
    DrainDownTo(LevelId),
    /// Cancels them: a suspended task is dropped; a running closure ends by itself. If it waits for a task of the
    /// runtime, it has an error. Other waits of it, for a lock, a message, a time or a descriptor, are not ended, and
    /// the shutdown waits for them, [`shutdown_within`](crate::Runtime::shutdown_within) for so long at most. Then a
    /// closure that sleeps is unwound, and a wait for a descriptor is an error, also for one that first waited in
    /// another runtime. A wait for a lock or a message goes on, and so does the closure's handle wait for its result:
    /// see [the end](crate::Runtime#the-end).
    Cancel,
}

/// The account of a shutdown, which [`Runtime::shutdown`](crate::Runtime::shutdown) gives: what became of every task
/// that was ever spawned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Report {
    /// Tasks that were spawned, async ones and closures.
    pub spawned: u64,
    /// Tasks that returned a result.
    pub finished: u64,
    /// Tasks that panicked.
    pub panicked: u64,
    /// Tasks that were cancelled, by their handles or by the shutdown.
    pub cancelled: u64,
    /// Tasks that had not ended when the time was over: closures that run or wait. The runtime does not wait for them.
    /// Closures that sleep or wait for a descriptor are ended just afterwards; the others end by themselves or never. A
    /// later shutdown counts anew.
    pub left: u64,
}

impl Job {
    /// The module's steps. Without `within`, a drain waits as long as it takes.
    pub(crate) fn shut_down(&self, how: Shutdown, within: Option<Duration>) -> Report {
        self.core.process.must_be_this();
        if how != Shutdown::Cancel || !poll_context::decides() {
            poll_context::may_wait();
        }
        if self.is_current() {
            // The calling stack gives its worker to the tasks that it waits for.
            return blocking(|| self.shut_down(how, within));
        }
        let stuck = Stack::with_own(|me| me.map(|me| Stack::stuck_of(me, self)));
        let stuck = stuck.unwrap_or_default();
        // A plain thread that entered is none of the threads whose end is awaited.
        let inside = Stack::is_aside_of(self) && !self.is_visited_here() || !stuck.is_empty();
        let tasks = &self.tasks;
        tasks
            .ending
            .fetch_add(usize::from(inside), Ordering::SeqCst);
        tasks.stuck.lock().extend(&stuck);
        tasks.something_ended();
        give_kept_worker();
        let report = self.shut_down_from_outside(how, within);
        let mut all = tasks.stuck.lock();
        for task in stuck {
            let found = all.iter().position(|it| *it == task);
            all.swap_remove(found.expect("each call takes back what it gave"));
        }
        drop(all);
        tasks
            .ending
            .fetch_sub(usize::from(inside), Ordering::SeqCst);
        report
    }

    fn shut_down_from_outside(&self, how: Shutdown, within: Option<Duration>) -> Report {
        let deadline = within.and_then(|within| Instant::now().checked_add(within));
        let is_empty = || self.tasks.are_ended();
        if let Shutdown::DrainDownTo(level) = how {
            self.tasks.cancel_below(level.rank());
        }
        if how != Shutdown::Cancel {
            self.tasks.wait_until(deadline, is_empty);
        }
        let tasks = self.tasks.live.close();
        self.externals.refuse();
        tasks.iter().for_each(TaskRef::cancel);
        drop(tasks);
        let deadline = deadline.map(|deadline| deadline.max(Instant::now() + CANCEL_GRACE));
        let is_closing = || self.closing.load(Ordering::SeqCst);
        let in_time = self
            .tasks
            .wait_until(deadline, || is_empty() || is_closing());
        if in_time && !is_empty() {
            self.tasks.seize_all(self.tasks.live.tasks());
            self.tasks.wait_until(deadline, is_empty);
        }
        if self.externals.is_empty() {
            self.close();
        }
        self.tasks.seize_all(self.tasks.live.tasks());
        // Threads that are still in user code end by themselves; those without work are awaited, so that a runtime that
        // was shut down in good order leaves nothing behind. Threads that other jobs share stay.
        let soon = Instant::now() + Duration::from_secs(1);
        let until = deadline.map_or(soon, |deadline| deadline.min(soon));
        self.tasks.wait_until(Some(until), || {
            !self.externals.is_empty()
                || self.core.goes_on()
                || self.core.threads.alive() <= self.tasks.ending.load(Ordering::SeqCst)
        });
        self.tasks.report()
    }

    /// What dropping a runtime does: waits for nothing.
    pub(crate) fn abandon_all(&self) {
        let tasks = self.tasks.live.close();
        self.close();
        self.tasks.seize_all(tasks);
    }

    pub(in crate::sched) fn close(&self) {
        if self.closing.swap(true, Ordering::SeqCst) {
            return;
        }
        self.tasks.tell_waiters();
        self.end_schedule();
        self.core.ended();
        self.end_waits();
        if self.core.goes_on() {
            self.core.demands_changed();
        }
    }

    /// The stacks of this job that wait look again, and find that it has ended (`caller::has_ended`). A driver that
    /// goes on would wake none of them: the core set's, if other jobs share it, or another runtime's, in which a
    /// descriptor or a timer was polled first.
    fn end_waits(&self) {
        for stack in self.core.threads.stacks_of(self) {
            stack.wake();
        }
    }
}
