//! `join`: two closures, potentially in parallel.
//!
//! 1. The fork b goes on the deque; the scheduling point; a runs.
//! 2. If b is still there (nearly always), it is taken back and called directly.
//! 3. If b was stolen, the stack waits for it, in this order. It *leaps*: it steals back from the thief what the
//!    thief's computation forked (all of it descends from b, so nothing foreign ever runs on this stack). Then it spins
//!    about as long as a wake-up costs. Then it suspends, and its worker goes on.
//!
//! If a panics and b has not started, b is never started. If a panics and b was stolen, the stack waits for b. Then the
//! panic of a goes on. If only b panics, the panic of b goes on. An interface that promises its callers to run b
//! whatever a does asks for that with a constant (`RUN_B`).

use super::right_branch::RightBranch;
use super::spin::Spin;
use crate::protocol::{
    deque::{Popped, Stolen},
    forked::Payload,
};
use crate::{
    protocol::attention::SHARE,
    sched::{
        Origin, StolenFork,
        inherit::thieves::AwaitsForks,
        serve::run::{self, check},
        stack::{Me, Stack},
    },
    tasks::contained,
};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// How many turns a joiner waits for the thief to fork by itself before it asks.
const TURNS_BEFORE_ASKING: u32 = 16;
/// How many turns a joiner waits for the thief's owner to answer a request before it raises the split.
const TURNS_BEFORE_RAISE: u32 = 512;

/// Runs `a` and `b`, potentially in parallel, and returns both results.
///
/// It can be called from anywhere: from a task or closure of a runtime, from inside another `join`, or
/// from a plain thread (which then works on the global runtime until `join` returns). `a` runs on the
/// calling thread at once; `b` runs there afterwards, unless another worker was free and took it.
/// While the call waits for a stolen `b` it runs nothing but what `b` itself forked: a lock held across `join` cannot
/// deadlock with a fork of unrelated code.
///
/// The call is a scheduling point: more urgent work that is ready is run before it goes on.
///
/// Nested calls take stack, wherever they run: see "Depth" at [`scope()`](crate::scope()).
///
/// # How small to split
///
/// Until a leaf takes 10 to 500 µs. A fork costs some 3 ns, so smaller leaves gain nothing. More urgent work waits for
/// the end of a leaf, or takes its worker after a millisecond: see [what that costs](crate#how-long-a-leaf-may-be).
///
/// This is `spawn` and `sync` of the papers (Prompt I-Cilk, section 2).
///
/// # Panics
///
/// A panic of either closure is resumed in the caller, after both have ended. If both panic, the panic of `a` is
/// resumed. If `a` panics before `b` was started, `b` is dropped without being run.
///
/// # Examples
///
/// ```
/// fn sum(numbers: &[u64]) -> u64 {
///     if numbers.len() < 1000 {
///         return numbers.iter().sum();
///     }
///     let (left, right) = numbers.split_at(numbers.len() / 2);
///     let (left, right) = urgency::join(|| sum(left), || sum(right));
///     left + right
/// }
/// let numbers: Vec<u64> = (0..100_000).collect();
/// assert_eq!(sum(&numbers), 4_999_950_000);
/// ```
#[inline]
pub fn join<A, B, RA, RB>(a: A, b: B) -> (RA, RB)
where
    A: FnOnce() -> RA + Send,
    B: FnOnce() -> RB + Send,
    RA: Send,
    RB: Send,
{
    Stack::with_current(|me| match me {
        Some(me) => join_on::<false, _, _, _, _>(me, a, |_| b()),
        None => join_outside(a, b),
    })
}

/// As [`join`] on the stack `me`; b learns whether it was stolen, and runs whatever a does.
#[inline(always)]
pub(crate) fn join_told<A, B, RA, RB>(me: Me<'_>, a: A, b: B) -> (RA, RB)
where
    A: FnOnce() -> RA + Send,
    B: FnOnce(bool) -> RB + Send,
    RA: Send,
    RB: Send,
{
    join_on::<true, _, _, _, _>(me, a, b)
}

/// The thread has no stack.
#[cold]
#[inline(never)]
fn join_outside<A, B, RA, RB>(a: A, b: B) -> (RA, RB)
where
    A: FnOnce() -> RA + Send,
    B: FnOnce() -> RB + Send,
    RA: Send,
    RB: Send,
{
    crate::runtime::as_stack(move |me| join_on::<false, _, _, _, _>(me, a, |_| b()))
}

/// Steps 1 and 2 of the module's text.
#[inline(always)]
fn join_on<const RUN_B: bool, A, B, RA, RB>(me: Me<'_>, a: A, b: B) -> (RA, RB)
where
    A: FnOnce() -> RA + Send,
    B: FnOnce(bool) -> RB + Send,
    RA: Send,
    RB: Send,
{
    let forked = &RightBranch::new(b);
    // SAFETY: the fork stays in this frame until it was popped as ours or its latch is set: every way out of this
    // function goes through one of the two.
    let index = unsafe { me.deque().push(forked.as_forked()) };
    // Read again rather than compared with `index`: with one read, the comparison delays the push, and fib
    // takes 15 % longer (measured).
    if me.deque.bottom() > me.attention.room() {
        after_push_cold(me);
    }
    let ra = match catch_unwind(AssertUnwindSafe(a)) {
        Ok(ra) => ra,
        Err(panic) => after_panic::<RUN_B, _, _>(me, forked, index, panic),
    };
    if take_back(me, index) == Popped::Mine {
        // SAFETY: just popped as ours.
        let b = unsafe { forked.lent.take_back() };
        return (ra, b(false));
    }
    match await_stolen(me, forked) {
        Ok(rb) => (ra, rb),
        Err(panic) => resume_unwind(panic),
    }
}

/// There is a request for this stack, or its deque is full.
#[cold]
#[inline(never)]
fn after_push_cold(me: Me<'_>) {
    me.deque().make_room();
    run::check_cold(me);
}

/// Takes back the fork at `index`, which belongs to the innermost unfinished `join` of this stack. Children that `a`
/// spawned into a scope around this `join` lie above it, and are run first.
#[inline(always)]
fn take_back(me: Me<'_>, index: usize) -> Popped {
    // Written as a difference: `index + 1` would live in a register across the call of `a`, and a fork is
    // bound by its stores.
    if me.deque.bottom().wrapping_sub(index) != 1 {
        run_spawned_above(me, index);
    }
    // SAFETY: the fork is the youngest.
    unsafe { me.pop_fork(index) }
}

#[cold]
#[inline(never)]
fn run_spawned_above(me: Me<'_>, index: usize) {
    run::run_pushed_above(me, index + 1);
}

/// The left closure panicked.
#[cold]
#[inline(never)]
fn after_panic<const RUN_B: bool, B, RB>(
    me: Me<'_>,
    forked: &RightBranch<B, RB>,
    index: usize,
    panic: Payload,
) -> !
where
    B: FnOnce(bool) -> RB + Send,
    RB: Send,
{
    if take_back(me, index) == Popped::Mine {
        // SAFETY: just popped as ours. A panic of its call or drop must not leave the frame early: it is
        // caught and dropped, the first panic is the one that counts.
        let unstarted = unsafe { forked.lent.take_back() };
        contained(|| {
            if RUN_B {
                unstarted(false);
            }
        });
    } else {
        let result = await_stolen(me, forked);
        contained(|| drop(result));
    }
    resume_unwind(panic)
}

/// Step 3 of the module's text.
#[cold]
#[inline(never)]
fn await_stolen<B, RB>(me: Me<'_>, forked: &RightBranch<B, RB>) -> Result<RB, Payload>
where
    B: FnOnce(bool) -> RB + Send,
    RB: Send,
{
    me.was_stolen();
    let awaits = AwaitsForks::begin(me);
    let mut spin = Spin::new();
    let mut turns = 0u32;
    // SAFETY: the pop has shown, under the deque's lock, that the fork was stolen.
    let latch = unsafe { forked.latch() };
    while !latch.is_done() {
        check(me);
        if let Some(leap) = steal_back(me, forked, turns) {
            awaits.interrupted(|| run::run_stolen(me, leap));
            spin = Spin::new();
            turns = 0;
            continue;
        }
        turns += 1;
        if !spin.goes_on(me) {
            let job = me.runtime();
            job.come_in(me);
            if latch.wait(me.shared()) {
                job.suspend(me);
            }
            job.go_on(me);
        }
    }
    // SAFETY: the latch is set, and this is the only place that takes a stolen fork's result.
    unsafe { forked.lent.take_result() }
}

/// Steals a fork that descends from `forked`, from the stack that runs `forked`.
fn steal_back<B, RB>(me: Me<'_>, forked: &RightBranch<B, RB>, turns: u32) -> Option<StolenFork>
where
    B: FnOnce(bool) -> RB + Send,
    RB: Send,
{
    // SAFETY: the fork is known to be stolen; its thief is null, or a stack of this runtime, which keeps all its
    // stacks.
    let (latch, thief) = unsafe { (forked.latch(), forked.thief().as_ref()?) };
    if thief.deque.seems_empty() {
        // A loop that forks only when it is asked (`par`) is asked.
        if turns == TURNS_BEFORE_ASKING {
            thief.attention.request(SHARE);
        }
        return None;
    }
    // While `forked` is not done, all that its thief's deque holds descends from it. Asked under the
    // deque's lock, so the thief cannot have gone on to anything else.
    let admit = || !latch.is_done();
    let raise = turns > TURNS_BEFORE_RAISE;
    match thief.steal(raise, admit) {
        (Stolen::Forked(taken, _), origin) => {
            let worker = me.worker();
            me.runtime().at(worker, me.level()).leaps.add(1);
            let origin = Origin {
                waits_as: me.waits_as(),
                ..origin
            };
            Some(StolenFork::new(taken, origin))
        }
        (Stolen::OnlyPrivate, _) => {
            thief.attention.request(SHARE);
            None
        }
        (Stolen::Empty | Stolen::Contended, _) => None,
    }
}
