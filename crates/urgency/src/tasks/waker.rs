//! The waker of a task: its header's address and one static vtable.
//!
//! Cloning and dropping count references; waking by value turns the waker's reference into the
//! queue's entry. One vtable for all tasks makes `Waker::will_wake` exact: two wakers agree if and
//! only if they wake the same task. A waker of a finished task does nothing.
//! During a poll the waker is borrowed from the runner's reference and costs nothing.

use super::{Header, TaskRef, state::Dropped};
use std::{
    mem::ManuallyDrop,
    ptr::NonNull,
    task::{RawWaker, RawWakerVTable, Waker},
};

static VTABLE: RawWakerVTable = RawWakerVTable::new(clone, wake, wake_by_ref, drop_waker);

/// A waker that counts nothing.
///
/// # Safety
/// A reference to the task outlives the result.
#[inline]
pub(super) unsafe fn borrowed(header: NonNull<Header>) -> ManuallyDrop<Waker> {
    // SAFETY: the functions of `VTABLE` keep the contract of `RawWaker`: thread-safe, and each
    // clone is counted. The result is never dropped, so that the borrowed count stays as it is.
    ManuallyDrop::new(unsafe { Waker::new(header.as_ptr().cast_const().cast(), &VTABLE) })
}

/// The task behind a waker's data, not counted.
///
/// # Safety
/// `data` comes from a live waker made here.
unsafe fn task(data: *const ()) -> ManuallyDrop<TaskRef> {
    // SAFETY: made from a `NonNull` in `borrowed`; alive with the waker.
    ManuallyDrop::new(unsafe { TaskRef::from_raw(NonNull::new_unchecked(data.cast_mut().cast())) })
}

unsafe fn clone(data: *const ()) -> RawWaker {
    // SAFETY: contract of `RawWakerVTable`.
    unsafe { task(data) }.header().state.clone_ref();
    RawWaker::new(data, &VTABLE)
}

unsafe fn wake(data: *const ()) {
    // SAFETY: contract of `RawWakerVTable`.
    let task = unsafe { task(data) };
    let dropped = task.header().state.wake();
    if dropped == Dropped::Schedule {
        ManuallyDrop::into_inner(task).schedule();
    } else {
        ManuallyDrop::into_inner(task).dropped(dropped);
    }
}

unsafe fn wake_by_ref(data: *const ()) {
    // SAFETY: contract of `RawWakerVTable`.
    let task = unsafe { task(data) };
    if task.header().state.wake_by_ref() {
        // SAFETY: `wake_by_ref` has counted this reference.
        unsafe { TaskRef::from_raw(task.as_raw()) }.schedule();
    }
}

unsafe fn drop_waker(data: *const ()) {
    // SAFETY: contract of `RawWakerVTable`; the waker's reference goes with it.
    drop(ManuallyDrop::into_inner(unsafe { task(data) }));
}
