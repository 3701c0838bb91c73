//! What the scheduler knows of the calling thread without asking its stack: variables of the thread, read by
//! insertions.
//!
//! - It polls a task. Then the first task that the poll makes ready may be left to the end of the poll (`insert.rs`,
//!   step 4), goes into the ring of the polling stack, and has the poll's beginning as its time. And the poll has a
//!   budget.
//! - It comes from the poller with a batch of wake-ups, which are counted.
//! - It is about to wait for the task that it makes ready, and leaves its processor.

use super::{
    job::Job,
    stack::{Me, Stack},
};
use crate::{
    sys::{chaos, clock},
    tasks::TaskRef,
};
use std::{cell::Cell, ptr};

/// Whether the calling thread polls a task, and may defer a wake-up.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Polling {
    No,
    /// The next wake-up may be deferred to the end of the poll.
    MayDefer,
    Deferred,
    /// The thread comes from the poller with a batch of wake-ups; so many entries were made for one job.
    Batch(usize),
}

/// How many entries a batch of wake-ups made for one job. Those for others were ordinary insertions.
#[derive(Clone, Copy)]
pub(crate) struct Woken {
    entries: usize,
    job: *const Job,
}

impl Default for Woken {
    fn default() -> Self {
        Woken {
            entries: 0,
            job: ptr::null(),
        }
    }
}

impl Woken {
    /// How many of them are of this job.
    pub(crate) fn of(self, job: &Job) -> usize {
        if ptr::eq(self.job, job) {
            self.entries
        } else {
            0
        }
    }
}

/// Whether the calling thread is about to wait for what it makes ready, and how long such waits lasted.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Departure {
    None,
    /// It goes on with the computation of which it makes forks ready.
    Stays,
    Short,
    Long,
}

/// What this thread polls.
struct PollContext {
    polling: Cell<Polling>,
    /// When the current poll or batch began, in ticks.
    began: Cell<u64>,
    /// How many operations the current poll may still do without waiting.
    budget_left: Cell<u32>,
    departure: Cell<Departure>,
    /// The innermost poll is one of `block_on`.
    blocks: Cell<bool>,
    /// The job for which the batch is, to be compared; null as long as that is open.
    batch: Cell<*const Job>,
    /// Counts what the thread puts into shards in turn.
    turn: Cell<u32>,
    /// It runs code of a policy, under a lock of the runtime.
    decides: Cell<bool>,
    /// What it makes ready holds a lock.
    grants: Cell<bool>,
    /// The future that it polls lets others go first.
    yields: Cell<bool>,
}

thread_local! {
    // One variable, used by `context`: `LocalKey::set` is a call.
    static CONTEXT: PollContext = const {
        PollContext {
            polling: Cell::new(Polling::No),
            began: Cell::new(0),
            budget_left: Cell::new(u32::MAX),
            departure: Cell::new(Departure::None),
            blocks: Cell::new(false),
            batch: Cell::new(ptr::null()),
            turn: Cell::new(0),
            decides: Cell::new(false),
            grants: Cell::new(false),
            yields: Cell::new(false),
        }
    };
}

/// `LocalKey::with` is not marked for inlining: each insertion made two calls here, or none, by how the compiler cut
/// the crate into units. `try_with` is marked.
#[inline(always)]
fn context<R>(f: impl FnOnce(&PollContext) -> R) -> R {
    CONTEXT
        .try_with(f)
        .expect("a variable without a destructor is never gone")
}

#[inline]
fn polling() -> Polling {
    context(|this| this.polling.get())
}

#[inline]
fn set_polling(polling: Polling) {
    context(|this| this.polling.set(polling));
}

/// One poll of a task may do so many operations that need not wait. A task whose channel is never empty, or whose
/// socket is always readable, would otherwise run for ever, before the other tasks of its level.
pub(crate) const BUDGET: u32 = 128;

/// A poll of operations on descriptors lets others go first after this time, in nanoseconds: by then the workers are to
/// look for events ([`poll_mode`](crate::protocol::poll_mode)).
const LONGEST: f64 = 100_000.0;

/// A poll is asked for how long it has lasted once in so many operations.
const UNTIMED: u32 = 4;

/// Whether the task polled on this thread may do one more such operation. Where no task is polled: always.
#[inline]
pub(crate) fn may_go_on() -> bool {
    context(|this| {
        if this.polling.get() == Polling::No {
            return true;
        }
        let left = this.budget_left.get();
        this.budget_left.set(left.saturating_sub(1));
        left != 0
    })
}

/// What is left of the budget of the task polled on this thread, if one is polled and has a budget.
#[inline]
pub(crate) fn budget() -> Option<u32> {
    context(|this| {
        let left = this.budget_left.get();
        (this.polling.get() != Polling::No && left <= BUDGET).then_some(left)
    })
}

/// Makes `left` what [`budget`] gives, if that gives something.
#[inline]
pub(crate) fn set_budget(left: u32) {
    if budget().is_some() {
        context(|this| this.budget_left.set(left));
    }
}

/// Whether the task polled on this thread may do no more such operations.
#[inline]
pub(crate) fn is_used_up() -> bool {
    context(|this| this.polling.get() != Polling::No && this.budget_left.get() == 0)
}

/// The same before an operation that may be a system call, of which the whole budget takes milliseconds: where the peer
/// runs on the processor of the calling thread, each answer is there before the next operation looks for it. So the
/// budget is used up as well when the poll has lasted for [`LONGEST`].
#[inline]
pub(crate) fn is_used_up_or_long() -> bool {
    context(|this| {
        let left = this.budget_left.get();
        let looks = left % UNTIMED == 0 && left < BUDGET && this.polling.get() != Polling::No;
        if looks && clock::now().saturating_sub(this.began.get()) > clock::ticks(LONGEST) {
            this.budget_left.set(0);
        }
    });
    is_used_up()
}

/// Runs `f`, a poll in the middle of the poll that runs on this thread, without a budget: with more operations than it
/// makes in a minute.
pub(crate) fn without_budget<R>(f: impl FnOnce() -> R) -> R {
    during(|this| &this.budget_left, u32::MAX, f)
}

/// The code on this thread has waited, in the middle of a poll if one runs: the budget begins anew. Whether that
/// poll had used it up, so that others are to go first.
pub(crate) fn refill() -> bool {
    context(|this| {
        if this.budget_left.get() > BUDGET {
            return false; // without a budget
        }
        let polls = matches!(this.polling.get(), Polling::MayDefer | Polling::Deferred);
        if polls {
            this.began.set(clock::now());
        }
        this.budget_left.replace(BUDGET) == 0 && polls
    })
}

/// The future that is polled on this thread is about to yield.
pub(crate) fn yields() {
    context(|this| this.yields.set(true));
}

/// Whether a future that was polled on this thread has yielded since this was asked last.
pub(crate) fn has_yielded() -> bool {
    context(|this| this.yields.take())
}

/// Asked by an insertion that would start an idle worker: may it be left to the end of the poll that
/// runs on this thread? Once for each poll: two new entries are more than this worker can take next.
#[inline]
pub(crate) fn defer_wake_up(job: &Job) -> bool {
    let may_defer = polling() == Polling::MayDefer && !chaos::one_in(2);
    let defers = may_defer && Stack::with_current(|me| is_of(me, job));
    if defers {
        set_polling(Polling::Deferred);
    }
    defers
}

/// The time at which something becomes ready now. Inside a poll, that poll's beginning: a clock reading
/// costs as much as two locked instructions, and a poll that matters is short.
#[inline]
pub(crate) fn ready_stamp() -> u64 {
    match polling() {
        Polling::No => clock::now(),
        _ => context(|this| this.began.get()),
    }
}

/// A poll of a task begins at `now`.
#[inline]
pub(crate) fn begin_poll(now: u64) {
    context(|this| {
        this.polling.set(Polling::MayDefer);
        this.began.set(now);
        this.budget_left.set(BUDGET);
    });
}

/// The poll on this thread, which took long, is about to end: what it makes ready now did not become ready as it began.
pub(crate) fn ends_late() {
    context(|this| this.began.set(clock::now()));
}

/// The code on this thread goes on, or begins something on top of a poll: that poll is not about to end, and leaves no
/// more wake-ups to its end. Only a poll that its worker shows as brief does so (`rescue/revoke.rs` relies on that).
/// Whether that code is a poll.
#[inline]
pub(crate) fn lasts() -> bool {
    let polling = polling();
    if polling == Polling::MayDefer {
        set_polling(Polling::Deferred);
    }
    matches!(polling, Polling::MayDefer | Polling::Deferred)
}

/// Whatever was run has ended. Whether it was a poll that deferred a wake-up.
#[inline]
pub(crate) fn end_poll() -> bool {
    context(|this| this.polling.replace(Polling::No)) == Polling::Deferred
}

/// Whether the code on this thread is a poll of a task: if it is pending, the thread goes back to the scheduler.
pub(crate) fn polls_task() -> bool {
    matches!(polling(), Polling::MayDefer | Polling::Deferred) && !context(|this| this.blocks.get())
}

/// Runs `f`, polls of a future for which this thread waits (`blocks`), or which it makes for the scheduler.
pub(crate) fn polling_while<R>(blocks: bool, f: impl FnOnce() -> R) -> R {
    during(|this| &this.blocks, blocks, f)
}

/// Runs `f` while a variable of the thread has this value.
#[inline]
fn during<T: Copy, R>(of: fn(&PollContext) -> &Cell<T>, value: T, f: impl FnOnce() -> R) -> R {
    struct Outer<T: Copy>(fn(&PollContext) -> &Cell<T>, T);
    impl<T: Copy> Drop for Outer<T> {
        fn drop(&mut self) {
            context(|this| self.0(this).set(self.1));
        }
    }
    let _outer = Outer(of, context(|this| of(this).replace(value)));
    f()
}

/// Whether the calling code may not wait: see [`may_wait`].
pub(crate) fn is_waiting_refused() -> bool {
    decides() || matches!(polling(), Polling::Batch(_))
}

/// # Panics
///
/// In a waker that the scheduler calls for an event or a timer: the thread may have the only worker, or be the only one
/// that waits for events. In a policy: what it waits for may need the policy's answer.
pub(crate) fn may_wait() {
    assert!(
        !decides(),
        "a policy may neither fork nor wait, for the end of a runtime neither: the thread that asks it decides for \
         others meanwhile; spawn a task that does it"
    );
    assert!(
        !matches!(polling(), Polling::Batch(_)),
        "a waker that an event or a timer wakes may neither fork nor wait, for the end of a runtime neither: the \
         thread that calls it serves others; spawn a task that does it"
    );
}

/// Makes something ready with `f` to which the calling code has handed a lock.
pub(crate) fn granting(f: impl FnOnce()) {
    during(|this| &this.grants, true, f);
}

/// Whether what is made ready now holds a lock.
pub(crate) fn grants() -> bool {
    context(|this| this.grants.get())
}

/// Runs `f`, code of a policy (`policy_code.rs`).
pub(crate) fn deciding<R>(f: impl FnOnce() -> R) -> R {
    during(|this| &this.decides, true, f)
}

/// Whether the calling code is a policy's.
pub(crate) fn decides() -> bool {
    context(|this| this.decides.get())
}

/// Runs `f`, which is no part of the poll that this thread may be in the middle of: `f` runs on another stack, or on
/// none. Tasks that `f` makes ready are not left to that poll's end, nor to the ring of a stack that polls nothing.
pub(crate) fn outside_poll<R>(f: impl FnOnce() -> R) -> R {
    during(|this| &this.polling, Polling::No, f)
}

/// Runs `f`, which polls a task or runs a closure on top of what this thread runs already.
pub(crate) fn on_top<R>(is_closure: bool, f: impl FnOnce() -> R) -> R {
    apart(|| match is_closure {
        true => f(),
        false => polling_on_top(f),
    })
}

/// Runs `f`, a poll with a beginning and a budget of its own. It leaves no wake-up to its end, at which nothing looks.
pub(crate) fn polling_on_top<R>(f: impl FnOnce() -> R) -> R {
    during(
        |this| &this.polling,
        Polling::Deferred,
        || {
            context(|this| this.began.set(clock::now()));
            during(|this| &this.budget_left, BUDGET, f)
        },
    )
}

/// Runs `f`, which runs something else on top of what this thread runs already.
pub(crate) fn apart<R>(f: impl FnOnce() -> R) -> R {
    outside_poll(|| during(|this| &this.budget_left, BUDGET, || polling_while(false, f)))
}

/// Makes something ready with `f` for which this thread is going to wait at once.
pub(crate) fn departing(departure: Departure, f: impl FnOnce()) {
    during(|this| &this.departure, departure, f);
}

pub(crate) fn departure() -> Departure {
    context(|this| this.departure.get())
}

/// Puts a task that a poll on this thread made ready into the ring of the polling stack. Gives it back if
/// it belongs elsewhere, or the ring is full.
#[inline]
pub(crate) fn push_to_ring(job: &Job, task: TaskRef) -> Option<TaskRef> {
    let polls = matches!(polling(), Polling::MayDefer | Polling::Deferred);
    if !polls || task.computes() || chaos::one_in(4) {
        return Some(task);
    }
    Stack::with_current(|me| {
        let mine = me.filter(|me| {
            me.is_of(job)
                && me.level() == task.level()
                && me.ring().push(task.as_raw().as_ptr(), task.ready_since())
        });
        match mine {
            Some(_) => {
                // The ring owns the reference now.
                std::mem::forget(task);
                None
            }
            None => Some(task),
        }
    })
}

/// A name of the calling thread that no other has at the same time.
pub(crate) fn thread() -> usize {
    context(|this| ptr::from_ref(this).addr())
}

/// A number for each call, of which different threads count from different ones.
pub(crate) fn next_turn() -> u32 {
    context(|this| {
        let turn = this.turn.get().wrapping_add(1);
        this.turn.set(turn);
        // The variables of different threads are pages apart.
        turn.wrapping_add((ptr::from_ref(this).addr() >> 12) as u32)
    })
}

fn is_of(me: Option<Me<'_>>, job: &Job) -> bool {
    me.is_some_and(|me| me.is_of(job))
}

/// Whether the calling thread inserts a batch into `job`, and counts the entry. The first entry of a batch decides for
/// which job it is, if it is for none yet.
#[inline]
pub(crate) fn is_batch_of(job: &Job) -> bool {
    let Polling::Batch(entries) = polling() else {
        return false;
    };
    let of = context(|this| this.batch.get());
    let is_open = || of.is_null() && Stack::is_own_in(&job.core);
    let counts = ptr::eq(of, job) || is_open();
    if counts {
        context(|this| this.batch.set(job));
        set_polling(Polling::Batch(entries + 1));
    }
    counts
}

/// Runs `f`, a batch of wake-ups, for `job` if that is not null, and returns how many entries it made. A waker may be
/// the program's code.
pub(crate) fn in_batch(job: *const Job, f: impl FnOnce()) -> Woken {
    let before = context(|this| {
        this.batch.set(job);
        this.began.set(clock::now());
        this.polling.replace(Polling::Batch(0))
    });
    Stack::outside_scheduler(f);
    let job = context(|this| this.batch.get());
    match context(|this| this.polling.replace(before)) {
        Polling::Batch(entries) => Woken { entries, job },
        _ => Woken::default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Runtime;

    /// It waits in the middle of its poll: whatever it left to the end of that would wait as well.
    #[test]
    #[cfg_attr(urgency_chaos, ignore = "chaos defers no wake-up at times")]
    fn a_stack_that_gives_its_worker_away_leaves_no_wake_up_to_the_end_of_its_poll() {
        let runtime = Runtime::builder().workers(1).build().unwrap();
        let job = runtime.job().arc();
        let task = runtime.spawn(async move {
            let defers = |gives: bool| {
                Stack::with_current(|me| {
                    let me = me.unwrap();
                    begin_poll(clock::now());
                    job.come_in(me);
                    if gives {
                        job.share_all(me);
                    }
                    let defers = defer_wake_up(&job);
                    job.go_on(me);
                    defers
                })
            };
            (defers(false), defers(true))
        });
        assert_eq!(task.get().unwrap(), (true, false));
    }
}
