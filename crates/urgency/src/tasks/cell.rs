//! The one allocation of a task: header, scheduler, and the future or what became of it.
//!
//! ```text
//! Cell<F, S> = | Header: state, vtable, stamp, level.., waiter, waits | Arc<S> | Stage<F> |
//! ```
//!
//! Everything outside of this file and `new` sees `NonNull<Header>`, which is the cell's own
//! address with the cell's provenance; the vtable in the header leads back to `F` and `S`.
//! The stage is one of: the future, its output, its panic, the reason why it was given up, nothing. The state word
//! alone decides which thread may touch the stage (state.rs, rules 1 and 5).
//!
//! # What happens at the end of a future
//!
//! 1. The future is dropped in place. A panic of that drop is the task's panic, unless the poll has panicked already;
//!    panics are never swallowed while a waiter can still see them.
//! 2. The result takes its place.
//! 3. `Schedule::panicked`, if the task ended in or after a poll, and `Schedule::released` are told, so that a thread
//!    that sees the result finds the task counted. Without a handle, `Schedule::unheard` is told of the panic before
//!    `released`, so that a shutdown that counts the task comes after what the scheduler does about it.
//! 4. Only then does the caller publish `COMPLETED` (run.rs).
//!
//! A handle that is dropped after step 3 drops a panic that no code has seen. `Schedule::unheard` hears of it from the
//! thread that drops the result. So it hears of each panic that no handle gives to code, once, whenever the handle
//! went.
//!
//! Size, measured on 64 bits (tests/life.rs, `a_task_costs_at_most_80_bytes_beyond_its_future`).
//! Rejected: a padding of the cell to 128 bytes against false sharing (Tokio does it): twice the
//! memory of a million small tasks, and neighbours mostly live on the same worker.

use super::{
    Caller, Guarded, Id, JoinError, JoinErrorKind, Schedule, TaskRef, WakerSlot,
    boost::Waits,
    once_box::OnceBox,
    state::{Runner, State},
};
use crate::sys::{
    mutex::Mutex,
    primitives::{
        Arc,
        atomic::{AtomicU8, AtomicU32, AtomicU64},
    },
};
use std::{
    any::{Any, TypeId},
    future::Future,
    mem::ManuallyDrop,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    ptr::{self, NonNull},
    task::{Context, Poll},
};

/// A flag of a task: it was made of a closure.
pub(super) const CLOSURE: u8 = 1;
/// A flag of a task: it was raised for code that may wait for it since; see boost.rs.
pub(super) const BOOSTED: u8 = 2;
/// Code hears of the task's panic that does not have it from the handle.
pub(super) const HEARD: u8 = 4;
/// Code of another job has waited for it; see boost.rs.
pub(super) const LENT: u8 = 8;
/// Its last poll took long.
pub(super) const COMPUTES: u8 = 16;

/// What every task has, whatever its future.
pub(crate) struct Header {
    pub(super) state: State,
    pub(super) vtable: &'static Vtable,
    /// Clock ticks at which the task became ready; the scheduler's to write.
    pub(super) ready_since: AtomicU64,
    /// Where the task runs now: lowered by boosts, raised again when what it inherited is over.
    pub(super) level: AtomicU8,
    /// Where the task was created.
    pub(super) base_level: u8,
    /// Where it would run without what it inherits; see boost.rs.
    pub(super) own_level: AtomicU8,
    /// `CLOSURE`, `BOOSTED`, `HEARD`, `LENT` and `COMPUTES`.
    pub(super) flags: AtomicU8,
    /// The place in the list of live tasks (live.rs).
    pub(super) live_slot: AtomicU32,
    /// The waker of the handle (state.rs, rule 6).
    pub(super) waiter: WakerSlot,
    /// The tasks that this one waits for, and what it inherits (boost.rs); made when there is something to note.
    pub(super) waits: OnceBox<Mutex<Waits>>,
}

/// What a panic carried, behind a thin pointer.
pub(super) struct Payload(pub(super) Box<dyn Any + Send>);

/// What unwinds code in the middle of a wait that its runtime, which was shut down, can never end. It is no panic of
/// the program's: nothing is printed, and the task ends as one that was shut down.
pub(crate) struct Stopped;

enum Stage<F: Future> {
    Future(F),
    Finished(F::Output),
    Panicked(Box<Payload>),
    /// A panic of which `Schedule::unheard` was told: there is no handle.
    Unheard(#[expect(dead_code, reason = "dropped with the result")] Box<Payload>),
    Cancelled,
    ShutDown,
    /// The result was taken.
    Empty,
}

/// The operations that need to know the types.
pub(super) struct Vtable {
    /// Polls once; on `Ready` steps 1 to 3 are done. Needs the future (rule 1).
    pub(super) poll: unsafe fn(NonNull<Header>, &mut Context<'_>) -> Poll<()>,
    /// Gives the future up: steps 1 to 3. Needs the future (rule 1).
    pub(super) abandon: unsafe fn(NonNull<Header>, JoinErrorKind),
    /// Moves the result to `*mut Option<Result<T, JoinError>>`. Needs the result (rule 5).
    pub(super) take: unsafe fn(NonNull<Header>, *mut ()),
    /// Drops the result, and tells the scheduler of a panic that nothing has heard of. Needs the result (rule 5).
    pub(super) discard: unsafe fn(NonNull<Header>),
    /// Tells the scheduler of a panic that was taken, and that is dropped unseen.
    pub(super) unheard: unsafe fn(&TaskRef),
    /// Puts an entry into the scheduler's queue.
    pub(super) schedule: unsafe fn(TaskRef),
    /// Puts a second entry there after a boost.
    pub(super) promote: unsafe fn(TaskRef),
    /// Tells the scheduler of a boost of a running task.
    pub(super) raised: unsafe fn(&TaskRef, Runner),
    /// Frees the cell. Needs the last reference of a finished task (rule 7).
    pub(super) free: unsafe fn(NonNull<Header>),
    /// The address of the scheduler.
    pub(super) scheduler: unsafe fn(NonNull<Header>) -> *const (),
    /// The name of a level in the scheduler.
    pub(super) name_of: unsafe fn(NonNull<Header>, u8) -> &'static str,
    /// What the scheduler knows of the code that calls.
    pub(super) caller: &'static dyn Caller,
    /// The name of the future's type.
    pub(super) name: fn() -> &'static str,
    /// The type of the result.
    pub(super) output: fn() -> TypeId,
}

/// See the module text. `repr(C)`: the header's address is the cell's.
#[repr(C)]
pub(super) struct Cell<F: Future, S> {
    header: Header,
    scheduler: Arc<S>,
    stage: Guarded<Stage<F>>,
}

impl<F, S> Cell<F, S>
where
    F: Future + 'static,
    F::Output: 'static,
    S: Schedule,
{
    const VTABLE: Vtable = Vtable {
        poll: poll::<F, S>,
        abandon: abandon::<F, S>,
        take: take::<F, S>,
        discard: discard::<F, S>,
        unheard: unheard::<F, S>,
        schedule: schedule::<F, S>,
        promote: promote::<F, S>,
        raised: raised::<F, S>,
        free: free::<F, S>,
        scheduler: scheduler::<F, S>,
        name_of: name_of::<F, S>,
        caller: S::CALLER,
        name: std::any::type_name::<F>,
        output: TypeId::of::<F::Output>,
    };

    /// A cell with two references: one entry, one handle.
    pub(super) fn allocate(
        future: F,
        scheduler: Arc<S>,
        level: u8,
        is_closure: bool,
    ) -> NonNull<Header> {
        let cell = Box::new(Cell {
            header: Header {
                state: State::new(),
                vtable: &Self::VTABLE,
                ready_since: AtomicU64::new(0),
                level: AtomicU8::new(level),
                base_level: level,
                own_level: AtomicU8::new(level),
                flags: AtomicU8::new(if is_closure { CLOSURE } else { 0 }),
                live_slot: AtomicU32::new(u32::MAX),
                waiter: WakerSlot::new(),
                waits: OnceBox::new(),
            },
            scheduler,
            stage: Guarded::new(Stage::Future(future)),
        });
        NonNull::from(Box::leak(cell)).cast()
    }
}

/// The cell behind a header.
///
/// # Safety
/// `header` comes from `Cell::<F, S>::allocate` and is counted for the time of `'a`.
unsafe fn cell<'a, F: Future, S>(header: NonNull<Header>) -> &'a Cell<F, S> {
    // SAFETY: same address (repr(C)), the cell's provenance, alive by the caller's promise; every
    // part that changes is behind an atomic, a lock or a `Guarded`.
    unsafe { header.cast().as_ref() }
}

/// Runs `drop` and returns what it panicked with.
pub(crate) fn caught(drop: impl FnOnce()) -> Option<Box<dyn Any + Send>> {
    catch_unwind(AssertUnwindSafe(drop)).err()
}

/// Calls code of the program. A panic of it ends here, and no other code learns of it.
pub(crate) fn contained(call: impl FnOnce()) {
    if let Some(payload) = caught(call) {
        discard_payload(payload);
    }
}

/// Drops a panic's payload, whose own drop may panic, with a payload whose own drop may panic.
pub(crate) fn discard_payload(mut payload: Box<dyn Any + Send>) {
    for _ in 0..4 {
        match caught(|| drop(payload)) {
            Some(next) => payload = next,
            None => return,
        }
    }
    std::mem::forget(payload);
}

/// Steps 1 to 3 of the module text.
///
/// # Safety
/// The caller owns the future (rule 1), which is still in the stage.
unsafe fn end<F: Future, S: Schedule>(
    header: NonNull<Header>,
    mut result: Stage<F>,
    stage: *mut Stage<F>,
) {
    let is_abandoned = matches!(result, Stage::Cancelled | Stage::ShutDown);
    // SAFETY: the future is there and dropped once: its place is overwritten below, and nobody else
    // looks before `COMPLETED`.
    if let Some(payload) = caught(|| unsafe { ptr::drop_in_place(stage) }) {
        if matches!(result, Stage::Panicked(_)) {
            discard_payload(payload);
        } else {
            let unseen =
                std::mem::replace(&mut result, Stage::Panicked(Box::new(Payload(payload))));
            contained(|| drop(unseen));
        }
    }
    let is_panic = matches!(result, Stage::Panicked(_));
    // SAFETY: as above; the old value was dropped.
    unsafe { stage.write(result) };
    // SAFETY: the caller's reference outlives this borrow.
    let task = ManuallyDrop::new(unsafe { TaskRef::from_raw(header) });
    task.forget_waits();
    // SAFETY: as in `cell`; F and S are the cell's.
    let scheduler = &unsafe { cell::<F, S>(header) }.scheduler;
    if is_panic && !is_abandoned {
        scheduler.panicked(&task);
    }
    if is_panic && task.is_detached() {
        scheduler.unheard(&task);
        // SAFETY: as above; the value that was written is read once, and its place written again.
        if let Stage::Panicked(payload) = unsafe { stage.read() } {
            // SAFETY: as above.
            unsafe { stage.write(Stage::Unheard(payload)) };
        }
    }
    scheduler.released(&task);
}

unsafe fn poll<F: Future, S: Schedule>(header: NonNull<Header>, cx: &mut Context<'_>) -> Poll<()> {
    // SAFETY: the vtable belongs to this cell, and the caller has a reference.
    let cell = unsafe { cell::<F, S>(header) };
    cell.stage.with_mut(|stage| {
        let polled = catch_unwind(AssertUnwindSafe(|| {
            // SAFETY: the caller owns the future (rule 1), so that nobody else has a reference into
            // the stage; it is never moved before it is dropped.
            match unsafe { &mut *stage } {
                // SAFETY: as above: pinned by the heap cell.
                Stage::Future(future) => unsafe { Pin::new_unchecked(future) }.poll(cx),
                _ => unreachable!("a claimed task has its future"),
            }
        }));
        let result = match polled {
            Ok(Poll::Pending) => return Poll::Pending,
            Ok(Poll::Ready(output)) => Stage::Finished(output),
            Err(payload) if payload.is::<Stopped>() => {
                cell.header.state.seize();
                return Poll::Pending;
            }
            Err(payload) => Stage::Panicked(Box::new(Payload(payload))),
        };
        // SAFETY: the future is ours and still in place.
        unsafe { end::<F, S>(header, result, stage) };
        Poll::Ready(())
    })
}

unsafe fn abandon<F: Future, S: Schedule>(header: NonNull<Header>, reason: JoinErrorKind) {
    // SAFETY: the vtable belongs to this cell, and the caller has a reference.
    let cell = unsafe { cell::<F, S>(header) };
    let result = match reason {
        JoinErrorKind::ShutDown => Stage::ShutDown,
        _ => Stage::Cancelled,
    };
    cell.stage.with_mut(|stage| {
        // SAFETY: the caller owns the future, which is still in place.
        unsafe { end::<F, S>(header, result, stage) }
    });
}

unsafe fn take<F: Future, S>(header: NonNull<Header>, into: *mut ()) {
    // SAFETY: the vtable belongs to this cell, and the caller has a reference.
    let cell = unsafe { cell::<F, S>(header) };
    // SAFETY: the caller owns the result (rule 5).
    let stage = cell
        .stage
        .with_mut(|stage| unsafe { stage.replace(Stage::Empty) });
    let id = Id(header.addr().get());
    let result = match stage {
        Stage::Finished(output) => Some(Ok(output)),
        Stage::Panicked(payload) => Some(Err(JoinError::panicked(id, payload.0))),
        Stage::Cancelled => Some(Err(JoinError::cancelled(id))),
        Stage::ShutDown => Some(Err(JoinError::shut_down(id))),
        Stage::Empty => None,
        Stage::Unheard(_) => unreachable!("it had no handle"),
        Stage::Future(_) => unreachable!("a finished task has no future"),
    };
    // SAFETY: the caller passes a place for exactly this type.
    unsafe {
        into.cast::<Option<Result<F::Output, JoinError>>>()
            .write(result)
    };
}

unsafe fn discard<F: Future, S: Schedule>(header: NonNull<Header>) {
    // SAFETY: the vtable belongs to this cell, and the caller has a reference.
    let cell = unsafe { cell::<F, S>(header) };
    // SAFETY: the caller owns the result (rule 5).
    let stage = cell
        .stage
        .with_mut(|stage| unsafe { stage.replace(Stage::Empty) });
    if matches!(stage, Stage::Panicked(_)) {
        // SAFETY: the caller's reference outlives this borrow.
        let task = ManuallyDrop::new(unsafe { TaskRef::from_raw(header) });
        cell.scheduler.unheard(&task);
    }
    contained(|| drop(stage));
}

unsafe fn unheard<F: Future, S: Schedule>(task: &TaskRef) {
    // SAFETY: the vtable belongs to this cell, and the caller has a reference.
    unsafe { cell::<F, S>(task.as_raw()) }
        .scheduler
        .unheard(task);
}

/// Hands `task` to its scheduler by `call`.
///
/// Once the entry is in a queue, another worker may finish and free the task, and with it the last
/// reference to the scheduler, while `call` still runs. A thread that keeps the scheduler alive
/// itself need not care; any other one counts it.
///
/// # Safety
/// `S` is the type of the task's scheduler.
unsafe fn hand_over<F: Future, S: Schedule>(task: TaskRef, call: impl FnOnce(&S, TaskRef)) {
    // SAFETY: the vtable belongs to this cell; `task` counts it until it is handed over.
    let scheduler = unsafe { &cell::<F, S>(task.as_raw()).scheduler };
    if scheduler.is_kept_alive_here() {
        let scheduler = Arc::as_ptr(scheduler);
        // SAFETY: kept alive by the calling thread, as it just said.
        call(unsafe { &*scheduler }, task);
    } else {
        call(&Arc::clone(scheduler), task);
    }
}

unsafe fn schedule<F: Future, S: Schedule>(task: TaskRef) {
    // SAFETY: the vtable belongs to this cell.
    unsafe { hand_over::<F, S>(task, S::schedule) };
}

unsafe fn promote<F: Future, S: Schedule>(task: TaskRef) {
    // SAFETY: the vtable belongs to this cell.
    unsafe { hand_over::<F, S>(task, S::promote) };
}

unsafe fn raised<F: Future, S: Schedule>(task: &TaskRef, runner: Runner) {
    // SAFETY: the vtable belongs to this cell; `task` counts it.
    unsafe { cell::<F, S>(task.as_raw()) }
        .scheduler
        .raised(task, runner);
}

unsafe fn scheduler<F: Future, S>(header: NonNull<Header>) -> *const () {
    // SAFETY: the vtable belongs to this cell, and the caller has a reference.
    Arc::as_ptr(unsafe { &cell::<F, S>(header).scheduler }).cast()
}

unsafe fn name_of<F: Future, S: Schedule>(header: NonNull<Header>, level: u8) -> &'static str {
    // SAFETY: the vtable belongs to this cell, and the caller has a reference.
    unsafe { cell::<F, S>(header) }.scheduler.name_of(level)
}

unsafe fn free<F: Future, S>(header: NonNull<Header>) {
    // SAFETY: the last reference is the caller's, and the cell came from a box.
    drop(unsafe { Box::from_raw(header.cast::<Cell<F, S>>().as_ptr()) });
}
