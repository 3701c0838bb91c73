//! Waiting in synchronous code: `block_on` for any future, `get` for a task, `blocking` for calls that block the
//! thread.
//!
//! - *A future.* Its waker is the stack's. A poll that is pending suspends the stack, and the worker does other work. A
//!   plain thread parks. A poll that yields is pending and woken at once: before the next one, ready work of the
//!   stack's level has turns.
//! - *A task that is ready*, and whose end is all that the stack waits for, runs on top of the wait
//!   ([`may_run_awaited`] has the conditions): then nothing is suspended.
//! - *A call that blocks.* The worker goes before the call, and the stack gets one after it. Meanwhile the stack is set
//!   aside: what the call forks goes to a stack of its own. Where such calls are over at once they keep the worker
//!   (`worker/blocking_calls.rs`).

use super::thread_options::STACK_SIZE;
use crate::{
    inherit::record::{self, Waits},
    sched::{
        Work, poll_context,
        serve::{run, turns::MOST_TURNS},
        stack::{Me, Stack},
    },
    sys::{chaos, clock},
    tasks::{JoinError, JoinHandle, Shared, TaskRef},
};
use std::{
    cell::Cell,
    future::Future,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    pin::{Pin, pin},
    ptr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
    thread::{self, Thread},
};

/// Polls `future` on the calling thread until it is ready.
///
/// On a stack of a runtime, waiting suspends the stack and its worker does something else: this is `get` of
/// the papers for any future. On a plain thread, waiting parks the thread. If the future
/// [yields](crate::yield_now()) on a stack, what is ready of its level goes first, as where a task yields.
///
/// # Panics
///
/// If polling the future panics.
///
/// # Examples
///
/// ```
/// assert_eq!(urgency::block_on(async { 6 * 7 }), 42);
/// ```
pub fn block_on<F: Future>(future: F) -> F::Output {
    Stack::with_current(|me| match me {
        Some(me) => block_on_stack(me, future, |_| None),
        None => block_on_thread(future),
    })
}

impl<T> JoinHandle<T> {
    /// Waits for the result and returns it: the blocking form of awaiting the handle. On a plain thread it parks the
    /// thread. On a worker a task that waits for a worker, at the caller's level, runs on the calling stack, as the
    /// closures of a `join` do; otherwise the stack is suspended, and the worker does other work meanwhile. (Where
    /// [`thread_stack_size`](crate::Builder::thread_stack_size) asked for more than the default, no task runs on a
    /// plain thread's stack.)
    ///
    /// # Errors
    /// The task panicked, was cancelled, its runtime was shut down, or the wait was refused: the caller is
    /// more urgent than the task, or is the task itself. Then the error has the handle
    /// ([`JoinError::into_handle`]).
    ///
    /// ```
    /// let answer = urgency::spawn_fn(|| 6 * 7);
    /// assert_eq!(answer.get().unwrap(), 42);
    /// ```
    pub fn get(self) -> Result<T, JoinError> {
        Stack::with_current(|me| match me {
            Some(me) => block_on_stack(me, self, |handle| Some(handle.get_mut().task())),
            None => block_on_thread(self),
        })
    }
}

impl<T: Clone + Send + Sync + 'static> Shared<T> {
    /// Waits for the result and returns a clone of it; the blocking form of awaiting.
    ///
    /// # Errors
    /// As for [`JoinHandle::get`]; a wait that is refused leaves this handle as it is.
    pub fn get(&self) -> Result<T, JoinError> {
        block_on(self.clone())
    }
}

/// How many awaited tasks a stack may run before it waits as if it could run none: then ready work of its equals has a
/// turn, and the entries of the tasks that it ran leave the pool.
const IN_A_ROW: u32 = 64;

/// One part in so many of a thread's stack may be in use where an awaited task begins on it.
const PARTS_OF_STACK: usize = 16;

/// The task that `future` waits for is to begin or to go on, and nothing else: `me`, which waits for it, may run it.
fn may_run_awaited(me: Me<'_>, awaited: &TaskRef) -> bool {
    let job = me.runtime();
    // At another level, or judged by another, so would be what `me` has forked, which others may steal meanwhile.
    let is_equal = || {
        awaited.level() == me.level()
            && (awaited.base_level() == me.waits_as() || job.levels.len() == 1)
    };
    let size = job.core.threads.stack_size();
    let has_room = || me.depth() < size / PARTS_OF_STACK;
    // The task may need the larger stack that the program asked for, which a plain thread need not have.
    let is_as_large = || size <= STACK_SIZE || !job.is_visited_here();
    awaited.is_queued()
        && awaited.is_of(job)
        && is_equal()
        && me.ran_awaited.load(Ordering::Relaxed) < IN_A_ROW
        && has_room()
        && is_as_large()
        && !chaos::one_in(4)
}

/// `awaited` names the task whose end is all that the future waits for. It gets the future as a poll does: a shared
/// reference to a future would end the references that the future has to itself.
fn block_on_stack<F: Future>(
    me: Me<'_>,
    future: F,
    awaited: impl Fn(Pin<&mut F>) -> Option<&TaskRef>,
) -> F::Output {
    let waker = Waker::from(me.arc());
    let (waits, waker) = if record::is_on() {
        record::waits(waker)
    } else {
        (Waits::NEVER, waker)
    };
    let mut context = Context::from_waker(&waker);
    let mut future = pin!(future);
    loop {
        run::check(me);
        let waits_before = me.waits();
        poll_context::has_yielded();
        let mut poll = || poll_context::polling_while(true, || future.as_mut().poll(&mut context));
        let polled = match me.runtime().lends(me) {
            true => poll_context::polling_on_top(poll),
            false => poll(),
        };
        if let Poll::Ready(output) = polled {
            return output;
        }
        let yields = poll_context::has_yielded();
        if me.waits() != waits_before {
            // All waits of a stack share one token. A wait inside of the poll may have consumed the wake-up that was
            // meant for this future.
            continue;
        }
        let job = me.runtime();
        let runs = awaited(future.as_mut()).filter(|task| may_run_awaited(me, task));
        if let Some(task) = runs.cloned() {
            job.come_in(me);
            me.note_wait();
            me.ran_awaited.fetch_add(1, Ordering::Relaxed);
            waits.during(|| job.run_here(me, Work::Task(task)));
            job.go_on(me);
            continue;
        }
        job.come_in(me);
        if job.lends(me) {
            waits.during(|| job.suspend_lending(me));
        } else {
            waits.during(|| job.suspend(me));
            let turns = match (poll_context::refill(), yields) {
                (_, true) => MOST_TURNS,
                (true, false) => 1,
                (false, false) => 0,
            };
            // A provided thread would have to run the others on top of this wait, for whose end they may wait
            // themselves.
            let gives_turn = |_| me.number().is_none() && job.give_turn(me);
            (0..turns).all(gives_turn);
        }
        job.go_on(me);
    }
}

/// A plain thread that waits.
struct Parked {
    thread: Thread,
    woken: AtomicBool,
}

impl Wake for Parked {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if !self.woken.swap(true, Ordering::AcqRel) {
            self.thread.unpark();
        }
    }
}

fn block_on_thread<F: Future>(future: F) -> F::Output {
    let parked = Arc::new(Parked {
        thread: thread::current(),
        woken: AtomicBool::new(false),
    });
    let waker = Waker::from(parked.clone());
    let mut context = Context::from_waker(&waker);
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return output;
        }
        poll_context::may_wait();
        give_kept_worker();
        while !parked.woken.swap(false, Ordering::AcqRel) {
            thread::park();
        }
    }
}

/// Runs a closure that may block the thread: a system call on a file, a foreign lock, a sleep.
///
/// The caller's worker is free for other work from the start, and the caller gets a worker back at the end. It costs
/// some 50 ns if the worker was not wanted meanwhile. On a plain thread this simply calls the closure. A blocking call
/// that is *not* declared is survived, too (relief), but holds its worker for a millisecond or two. So does a declared
/// one that blocks after hundreds of others that took less than 20 µs on average: such calls keep the worker, since two
/// thread switches take longer. What waits or works by means of this library there gives the worker away at once.
///
/// # Panics
///
/// If `f` panics.
///
/// # Examples
///
/// ```
/// let text = urgency::spawn_fn(|| urgency::blocking(|| std::fs::read_to_string("Cargo.toml")));
/// assert!(text.get()?.is_ok());
/// # Ok::<(), urgency::JoinError>(())
/// ```
pub fn blocking<R>(f: impl FnOnce() -> R) -> R {
    Stack::with_current(|me| match me {
        Some(me) => blocking_on(me, f),
        None => f(),
    })
}

fn blocking_on<R>(me: Me<'_>, f: impl FnOnce() -> R) -> R {
    let job = me.runtime();
    let level = || run::with_current_task(|task| task.map(TaskRef::level));
    let before = level();
    let calls = &me.worker().blocking_calls;
    let keeps = !chaos::one_in(2) && calls.begin();
    if !keeps {
        give_worker(me);
    }
    let outer = KEEPS.replace(if keeps { me.shared() } else { ptr::null() });
    let begun = clock::now();
    // If the worker was given away the stack is inside the scheduler meanwhile: none can be taken from it. What `f`
    // forks goes to a stack of its own.
    let result = me.set_aside(|| poll_context::outside_poll(|| catch_unwind(AssertUnwindSafe(f))));
    calls.lasted(keeps, clock::now().saturating_sub(begun));
    KEEPS.set(outer);
    if me.attention.is_inside() {
        job.regain(me);
        job.go_on(me);
    } else {
        // As if the worker had gone and come back.
        run::check(me);
    }
    if level() > before {
        // The task gave back a level that it had inherited, where the stack could not be told.
        run::with_current_task(|task| task.into_iter().for_each(run::lowered));
    }
    result.unwrap_or_else(|panic| resume_unwind(panic))
}

thread_local! {
    /// The stack whose code is in a declared blocking call that keeps the worker. Code that the scheduler calls sets a
    /// stack aside as well, and nothing would bring a worker back there.
    static KEEPS: Cell<*const Stack> = const { Cell::new(ptr::null()) };
}

/// The calling code is about to wait, or to work on another stack. If it is in a declared blocking call that keeps its
/// worker, the worker goes now.
pub(crate) fn give_kept_worker() {
    Stack::aside(|me| {
        let is_here = ptr::eq(KEEPS.get(), me.shared()) && Stack::with_current(|it| it.is_none());
        if is_here && !me.attention.is_inside() {
            me.taken_up(|| give_worker_if_held(me));
        }
    });
}

/// The code on `me` can do without a worker from now on.
fn give_worker(me: Me<'_>) {
    let job = me.runtime();
    job.come_in(me);
    job.share_all(me);
    job.release_and_look(me, me.worker());
}

/// As [`give_worker`], in the middle of a call: if it has lost its worker it waits for none.
fn give_worker_if_held(me: Me<'_>) {
    let job = me.runtime();
    let holds = job.finish(me, me.what());
    job.share_all(me);
    if holds {
        job.release_and_look(me, me.worker());
    }
}

/// Runs `f` as the stack `me`, with a worker, in the middle of a closure of [`blocking`] that was called there.
#[cold]
pub(crate) fn unblocked<R>(me: Me<'_>, f: impl FnOnce() -> R) -> R {
    let result = me.taken_up(|| {
        let job = me.runtime();
        let gave = me.attention.is_inside();
        if gave {
            job.regain(me);
            job.go_on(me);
        }
        let result = catch_unwind(AssertUnwindSafe(f));
        if gave {
            give_worker(me);
        }
        result
    });
    result.unwrap_or_else(|panic| resume_unwind(panic))
}
