//! A job: a closure forked by `join` or `scope`, as its deque and its thief see it.
//!
//! A [`Job`] is the header of a larger structure ([`StackJob`] in the frame of `join`, a boxed child
//! in `scope`): a function to call with the header's address, and a place where a thief leaves its
//! name. The rule is *exactly once*: a job that was pushed is run by whoever took it out of the deque
//! (its owner's pop or one steal), and by nobody else.
//!
//! What only a thief needs, its name and the latch, is initialised when the job is stolen
//! ([`Kind::stolen`], under the deque's lock): a fork is bound by its stores, and nearly no job is stolen.
//!
//! Panics are data: they are caught where a job is run by a thief and resumed at the join.

use super::latch::Latch;
use crate::sched::stack::Stack;
use std::{
    any::Any,
    cell::UnsafeCell,
    mem::{ManuallyDrop, MaybeUninit},
    panic::{AssertUnwindSafe, catch_unwind},
    ptr,
    sync::atomic::{AtomicPtr, Ordering},
};

/// What a panic carries.
pub(crate) type Payload = Box<dyn Any + Send>;

/// See the module's text.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Job {
    pub(crate) kind: &'static Kind,
    /// The stack that runs the stolen job, once it does: whom the joiner steals back from.
    /// Initialised by [`Kind::stolen`].
    thief: UnsafeCell<MaybeUninit<AtomicPtr<Stack>>>,
}

impl Job {
    #[inline(always)]
    pub(crate) const fn new(kind: &'static Kind) -> Self {
        Job {
            kind,
            thief: UnsafeCell::new(MaybeUninit::uninit()),
        }
    }

    /// Nobody runs the job yet.
    ///
    /// # Safety
    /// Called by [`Kind::stolen`], once, with a valid job that nobody else looks at.
    pub(crate) unsafe fn init_thief(this: *const Job) {
        // SAFETY: by the caller's promise.
        unsafe { (*(*this).thief.get()).write(AtomicPtr::new(ptr::null_mut())) };
    }

    /// Who runs the job.
    ///
    /// # Safety
    /// The job was stolen, and that is known through the deque's lock, or by being its thief.
    pub(crate) unsafe fn thief(&self) -> &AtomicPtr<Stack> {
        // SAFETY: initialised when it was stolen, and the lock orders that before this.
        unsafe { (*self.thief.get()).assume_init_ref() }
    }
}

/// What can be done with a job, by the structure that it heads.
#[derive(Debug)]
pub(crate) struct Kind {
    /// Runs the job on a thief's stack. Consumes it: the memory may be gone when it returns.
    pub(crate) execute: unsafe fn(*const Job),
    /// Called under the deque's lock when the job is stolen.
    pub(crate) stolen: unsafe fn(*const Job),
    /// The name of its closure's type.
    pub(crate) name: fn() -> &'static str,
}

/// The right-hand closure of a `join`, in the frame of that `join`. It is told whether it was stolen.
#[repr(C)]
pub(crate) struct StackJob<F, R> {
    job: Job,
    /// Initialised by [`Kind::stolen`].
    latch: UnsafeCell<MaybeUninit<Latch<Stack>>>,
    closure: UnsafeCell<ManuallyDrop<F>>,
    result: UnsafeCell<MaybeUninit<Result<R, Payload>>>,
}

impl<F, R> StackJob<F, R>
where
    F: FnOnce(bool) -> R + Send,
    R: Send,
{
    const KIND: Kind = Kind {
        execute: Self::execute,
        stolen: Self::stolen,
        name: std::any::type_name::<F>,
    };

    #[inline(always)]
    pub(crate) fn new(closure: F) -> Self {
        StackJob {
            job: Job::new(&Self::KIND),
            latch: UnsafeCell::new(MaybeUninit::uninit()),
            closure: UnsafeCell::new(ManuallyDrop::new(closure)),
            result: UnsafeCell::new(MaybeUninit::uninit()),
        }
    }

    #[inline(always)]
    pub(crate) fn as_job(&self) -> *const Job {
        (&raw const *self).cast()
    }

    /// The stack that runs the stolen job; null before it does.
    ///
    /// # Safety
    /// As [`Job::thief`].
    pub(crate) unsafe fn thief(&self) -> *const Stack {
        // SAFETY: by the caller's promise.
        unsafe { self.job.thief() }.load(Ordering::Acquire)
    }

    /// The latch that the thief sets.
    ///
    /// # Safety
    /// As [`Job::thief`].
    pub(crate) unsafe fn latch(&self) -> &Latch<Stack> {
        // SAFETY: initialised when the job was stolen, and the lock orders that before this.
        unsafe { (*self.latch.get()).assume_init_ref() }
    }

    /// # Safety
    /// As [`Kind::stolen`].
    unsafe fn stolen(this: *const Job) {
        // SAFETY: under the deque's lock nobody else looks at what only a thief needs.
        unsafe {
            Job::init_thief(this);
            (*(*this.cast::<Self>()).latch.get()).write(Latch::new());
        }
    }

    /// Takes the closure out, to call it in place.
    ///
    /// # Safety
    /// The job was popped by its owner, so nobody else has it, and this is called once.
    #[inline(always)]
    pub(crate) unsafe fn take_closure(&self) -> F {
        // SAFETY: by the caller's promise the closure is there and nobody else looks at it.
        unsafe { ManuallyDrop::take(&mut *self.closure.get()) }
    }

    /// Takes the result that a thief left.
    ///
    /// # Safety
    /// The latch is set, and this is called once.
    pub(crate) unsafe fn take_result(&self) -> Result<R, Payload> {
        // SAFETY: the thief wrote the result before it set the latch.
        unsafe { (*self.result.get()).assume_init_read() }
    }

    /// # Safety
    /// As [`Kind::execute`]: once, by the thief; `this` is the header of a `StackJob<F, R>`.
    unsafe fn execute(this: *const Job) {
        let this = this.cast::<Self>();
        // SAFETY: the joiner keeps the job alive until the latch is set; the closure is taken once.
        let closure = unsafe { ManuallyDrop::take(&mut *(*this).closure.get()) };
        let result = catch_unwind(AssertUnwindSafe(|| closure(true)));
        // SAFETY: only the thief touches the result before the latch is set.
        unsafe { (*(*this).result.get()).write(result) };
        // SAFETY: the job is valid until the joiner sees the latch set.
        let joiner = unsafe { Latch::set((*this).latch.get().cast::<Latch<Stack>>()) };
        if let Some(joiner) = joiner {
            // SAFETY: stacks live as long as their runtime, which runs this very code.
            unsafe { &*joiner }.wake();
        }
    }
}
