//! `scope`: any number of children that may borrow from the frame around them.
//!
//! A child is a fork in its stack's own memory (`protocol/child_memory.rs`). Its scope must not end before it, so
//! children are counted, but as cheaply as can be. A child that its scope's own stack pushed and takes back needs no
//! count at all: the stack sees its own deque. A child that was stolen, or was spawned from another stack, is counted
//! in `remote` until it has run. It is counted from the spawn on, or from the steal on: under the deque's lock, before
//! the owner can see the child gone. So the usual child costs a push and a pop, no allocation and no locked
//! instruction.
//!
//! The wait of [`Scope::sync`]: first run the stack's own children, youngest first, down to where the scope began. (The
//! forks below belong to frames that are not done with them.) Then wait until `remote` is zero.
//!
//! # Rules
//!
//! 1. `owner` is the stack that opened the scope; only it looks at `base`.
//! 2. `remote` never becomes zero while a counted child can still spawn: a child is counted before its
//!    parent ends.
//! 3. A `sync` waits only in the code that opened the scope, and only while nothing that this code began
//!    since then is unfinished. Three conditions, each for a kind of code that reaches the owner's stack:
//!    - The stack runs nothing on top of the code that opened the scope ([`Stack::nesting`] tells). A child, or a
//!      child's fork that came here by a leap, would wait for its own ancestor, which lies below it on this stack, or
//!      on another stack that waits for it. So would a fork that the stack runs in the middle of a wait because no more
//!      threads can be had.
//!    - No inner scope is open (the stack's innermost scope tells), and
//!    - no `join` is unfinished (the deque's tags tell): both rely on the indices of their forks.
//! 4. The thread that makes `remote` zero wakes the owner and does not touch the scope afterwards: the
//!    decrement that shows zero is its last access.
//!
//! *Named race, "sync from a leap"*: a thief steals b of a `join` of the owner; b spawns a child, which forks; the
//! owner, which waits for b, leaps and gets what the child forked; that calls `sync`. Nothing is pushed above
//! `base` and no inner scope is open, yet the child waits for this very code. `nesting` differs.

use super::spin::Spin;
use crate::sys::primitives::atomic::{AtomicBool, Ordering};
use crate::{
    protocol::{countdown::Countdown, forked::Payload},
    sched::{Forked, Kind},
    sys::mutex::Mutex,
};
use crate::{
    sched::{
        inherit::{inheriting::inheriting, thieves::AwaitsForks},
        serve::run::{self, check},
        stack::{Me, Stack},
        switch::block::unblocked,
    },
    tasks::discard_payload,
};
use std::{
    alloc::Layout,
    marker::PhantomData,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    ptr::{self, NonNull},
};

/// So many children may wait in a deque; beyond that, `spawn` runs the child itself. It bounds the memory of
/// a scope, and is far more than thieves need to keep busy.
const MOST_PENDING: usize = 1024;

/// A scope in which children can be spawned; see [`scope()`].
///
/// ```
/// use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
/// use urgency::{Scope, scope};
///
/// /// A child uses the scope of its parent.
/// fn count<'scope>(scope: &'scope Scope<'scope, '_>, leaves: &'scope AtomicU32, depth: u32) {
///     if depth == 0 {
///         leaves.fetch_add(1, Relaxed);
///         return;
///     }
///     for _ in 0..2 {
///         scope.spawn(move || count(scope, leaves, depth - 1));
///     }
/// }
///
/// let leaves = AtomicU32::new(0);
/// scope(|scope| count(scope, &leaves, 4));
/// assert_eq!(leaves.into_inner(), 16);
/// ```
pub struct Scope<'scope, 'env: 'scope> {
    /// The stack that opened the scope. It outlives the scope: its thread is in `scope` until all children have ended.
    owner: NonNull<Stack>,
    base: usize,
    remote: Countdown,
    /// The owner's [`Stack::nesting`] in the code that opened the scope.
    nesting: u32,
    panicked: AtomicBool,
    panic: Mutex<Option<Payload>>,
    /// Invariant over both lifetimes, as in the standard library's scoped threads.
    scope: PhantomData<&'scope mut &'scope ()>,
    env: PhantomData<&'env mut &'env ()>,
}

debug_struct!(Scope<'_, '_>);

/// Opens a scope: `f` and the children that it spawns may borrow everything that outlives the call.
///
/// Returns what `f` returns, when `f` and all children have ended. It can be called from anywhere, as
/// [`join()`](crate::join()), and nests freely. Children of one scope may run in parallel with each other
/// and with `f`, on any worker; none outlives the scope, whatever `f` does.
///
/// # Panics
///
/// If `f` or a child panics, the panic is resumed here after all children have ended; the panic of `f`
/// goes first, then the first of a child. The other children run to their end.
///
/// # Depth
///
/// Nested forks take stack as nested calls do: a scope and its child some 350 bytes in a release build, a
/// [`join()`](crate::join()) 80, and what the closures use. Any part of the recursion may run on a thread of the
/// runtime, whose stack has 2 MiB unless [`Builder::thread_stack_size`](crate::Builder::thread_stack_size) says
/// otherwise: room for some thousands of nested scopes. Deeper ones overflow it, which ends the process, even where
/// the calling thread has a larger stack. Fork in halves rather than one from the other; or ask for larger stacks,
/// which cost address space until they are used.
///
/// # Examples
///
/// ```
/// let words = ["urgent", "work", "goes", "first"];
/// let mut lengths = [0; 4];
/// urgency::scope(|s| {
///     for (word, length) in words.iter().zip(&mut lengths) {
///         s.spawn(move || *length = word.len());
///     }
/// });
/// assert_eq!(lengths, [6, 4, 4, 5]);
/// ```
pub fn scope<'env, F, R>(f: F) -> R
where
    F: for<'scope> FnOnce(&'scope Scope<'scope, 'env>) -> R,
{
    crate::runtime::as_stack(|me| scope_on(me, f))
}

fn scope_on<'env, F, R>(me: Me<'_>, f: F) -> R
where
    F: for<'scope> FnOnce(&'scope Scope<'scope, 'env>) -> R,
{
    let scope = Scope {
        owner: NonNull::from(me.shared()),
        base: me.deque.bottom(),
        remote: Countdown::new(),
        nesting: me.nesting(),
        panicked: AtomicBool::new(false),
        panic: Mutex::new(None),
        scope: PhantomData,
        env: PhantomData,
    };
    let outer = me.enter_scope((&raw const scope).cast());
    let result = catch_unwind(AssertUnwindSafe(|| f(&scope)));
    scope.wait(me);
    me.enter_scope(outer);
    match result {
        Err(panic) => {
            // Before the unwinding: what a child's panic carries may panic when it is dropped.
            scope.take_panic().into_iter().for_each(discard_payload);
            resume_unwind(panic)
        }
        Ok(result) => {
            scope.resume_panic();
            result
        }
    }
}

/// Where the innermost scope of this stack began: the forks below are not its own. 0 if none is open.
pub(crate) fn innermost_base(me: Me<'_>) -> usize {
    let scope = me.innermost_scope().cast::<Scope<'static, 'static>>();
    // SAFETY: null, or a scope that is open, in a frame of the calling thread.
    unsafe { scope.as_ref() }.map_or(0, |scope| scope.base)
}

impl<'scope, 'env> Scope<'scope, 'env> {
    /// Spawns a child. It may run at any time from now until the scope ends, on any worker.
    ///
    /// The call is a scheduling point. A child takes memory for its closure and five words, which its stack keeps
    /// for children: 64 KiB. One that comes when these are full, is larger than a kibibyte, is aligned to more than
    /// 16 bytes or is stolen costs an allocation. If 1024 children wait already, the call runs the child itself, so
    /// that any number of children needs bounded memory; therefore, do not hold a lock across `spawn` that the child
    /// takes.
    ///
    /// # Panics
    ///
    /// A panic of the child is resumed where the scope ends, or at the next [`Scope::sync`].
    ///
    /// # Examples
    ///
    /// ```
    /// use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
    /// let count = AtomicU32::new(0);
    /// urgency::scope(|s| {
    ///     s.spawn(|| {
    ///         s.spawn(|| count.fetch_add(1, Relaxed)); // children spawn children
    ///         count.fetch_add(1, Relaxed);
    ///     });
    /// });
    /// assert_eq!(count.into_inner(), 2);
    /// ```
    pub fn spawn<F, T>(&'scope self, child: F)
    where
        F: FnOnce() -> T + Send + 'scope,
    {
        Stack::with_current(|me| match me {
            Some(me) => self.spawn_on(me, child),
            // A plain thread that got hold of the scope, or a blocking call: it runs the child itself.
            None => self.run_at_once(child),
        });
    }

    #[inline(always)]
    fn spawn_on<F, T>(&'scope self, me: Me<'_>, child: F)
    where
        F: FnOnce() -> T + Send + 'scope,
    {
        let counted = !self.is_owned_by(me);
        let base = if counted { 0 } else { self.base };
        if me.deque.bottom() - base >= MOST_PENDING {
            check(me);
            me.on_top(|| self.run_child(child));
            return;
        }
        if counted {
            self.remote.begin();
        }
        let child = Child::pushable(me, self, counted, inheriting(child));
        // SAFETY: the child lives until it has run, which is before the scope ends: it is in the owner's deque above
        // `base`, or counted.
        unsafe { me.deque().push_boxed(child) };
        me.deque().make_room();
        check(me);
    }

    /// Waits until all children that were spawned so far have ended.
    ///
    /// It waits in the code that opened the scope, and in a closure that this code calls: also in one of
    /// [`blocking`](crate::blocking), which has a worker until the wait is over.
    ///
    /// It does nothing in a child, in what a child forks, and on other threads: it would wait for its own caller. It
    /// may do nothing, too, where something that began inside the scope is not over: in a closure of a `join`, in
    /// an inner scope, or in [`Runtime::run`](crate::runtime::Handle::run).
    ///
    /// # Panics
    ///
    /// Resumes the first panic of a child.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
    /// let done = AtomicU32::new(0);
    /// urgency::scope(|s| {
    ///     for _ in 0..10 {
    ///         s.spawn(|| done.fetch_add(1, Relaxed));
    ///     }
    ///     s.sync();
    ///     assert_eq!(done.load(Relaxed), 10);
    /// });
    /// ```
    pub fn sync(&'scope self) {
        Stack::with_current(|me| match me {
            Some(me) if self.is_owned_by(me) => self.sync_on(me),
            Some(_) => {}
            None => {
                Stack::aside(|aside| {
                    if self.is_owned_by(aside) {
                        unblocked(aside, || self.sync_on(aside));
                    }
                });
            }
        });
    }

    /// Whether this stack opened the scope.
    #[inline]
    fn is_owned_by(&self, me: Me<'_>) -> bool {
        ptr::eq(me.shared(), self.owner.as_ptr())
    }

    /// As [`Scope::sync`], on the owner's stack.
    fn sync_on(&self, me: Me<'_>) {
        // Rule 3.
        if me.nesting() == self.nesting
            && ptr::eq(me.innermost_scope(), ptr::from_ref(self).cast())
            && me.deque().is_boxed_above(self.base)
        {
            me.has_no_fork_from(self.base);
            self.wait(me);
            self.resume_panic();
        }
    }

    /// Waits for all children. `me` is the owner's stack.
    #[inline]
    fn wait(&self, me: Me<'_>) {
        check(me);
        run::run_pushed_above(me, self.base);
        if !self.remote.is_over() {
            self.wait_for_remote(me);
        }
    }

    #[cold]
    fn wait_for_remote(&self, me: Me<'_>) {
        let job = me.runtime();
        let _awaits = AwaitsForks::begin(me);
        let mut spin = Spin::new();
        while !self.remote.is_over() {
            if spin.goes_on(me) {
                check(me);
                continue;
            }
            job.come_in(me);
            if !self.remote.is_over() {
                job.suspend(me);
            }
            job.go_on(me);
        }
    }

    #[inline]
    fn resume_panic(&self) {
        // A locked instruction costs as much as a child.
        if self.panicked.load(Ordering::Acquire)
            && let Some(panic) = self.take_panic()
        {
            resume_unwind(panic);
        }
    }

    #[cold]
    fn take_panic(&self) -> Option<Payload> {
        let mut panic = self.panic.lock();
        self.panicked.store(false, Ordering::Relaxed);
        panic.take()
    }

    /// Runs a child in the middle of the code that spawns it.
    #[cold]
    fn run_at_once<T>(&self, child: impl FnOnce() -> T) {
        Stack::with_own(|me| match me {
            Some(me) => me.on_top(|| self.run_child(child)),
            None => self.run_child(child),
        });
    }

    /// Does not unwind.
    #[inline(always)]
    fn run_child<T>(&self, child: impl FnOnce() -> T) {
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| drop(child()))) {
            self.child_panicked(panic);
        }
    }

    #[cold]
    fn child_panicked(&self, panic: Payload) {
        let mut first = self.panic.lock();
        if first.is_none() {
            *first = Some(panic);
            self.panicked.store(true, Ordering::Release);
        } else {
            drop(first);
            // A child ends without unwinding, whatever its payload does.
            discard_payload(panic);
        }
    }

    /// A counted child has ended.
    ///
    /// # Safety
    /// The caller counted for one in `remote`, so `this` is valid until the decrement.
    unsafe fn child_ended(this: *const Self) {
        // SAFETY: `this` is valid until the decrement, and its owner with it; afterwards a reference of our own keeps
        // the owner, whose runtime need not be ours.
        let owner = unsafe { (*this).owner.as_ref().arc() };
        // SAFETY: as above; this is the last access.
        if unsafe { (*this).remote.end() } {
            owner.wake();
        }
    }
}

/// A child that has not begun: in the memory of the stack that spawned it, or in a box (`protocol/child_memory.rs`).
#[repr(C)]
struct Child<F, T> {
    header: Forked,
    scope: *const Scope<'static, 'static>,
    /// Whether the scope counts it in `remote`. Written under the deque's lock, by its one thief.
    counted: bool,
    closure: F,
    result: PhantomData<fn() -> T>,
}

impl<F: FnOnce() -> T + Send, T> Child<F, T> {
    #[inline(always)]
    fn pushable(me: Me<'_>, scope: &Scope<'_, '_>, counted: bool, closure: F) -> *const Forked {
        let scope = ptr::from_ref(scope).cast();
        let Some(place) = me.child_memory().take(Layout::new::<Self>()) else {
            return Self::boxed(scope, counted, closure);
        };
        let place = place.cast::<Self>().as_ptr();
        // Field by field: what was stored in halves a moment ago is read as a whole late.
        // SAFETY: memory of this layout, and nothing else is in it.
        unsafe {
            (&raw mut (*place).header).write(Forked::new(&Self::KIND));
            (&raw mut (*place).scope).write(scope);
            (&raw mut (*place).counted).write(counted);
            (&raw mut (*place).closure).write(closure);
        }
        place.cast_const().cast()
    }

    #[cold]
    fn boxed(scope: *const Scope<'static, 'static>, counted: bool, closure: F) -> *const Forked {
        let child = Child::<F, T> {
            header: Forked::new(&Self::BOXED),
            scope,
            counted,
            closure,
            result: PhantomData,
        };
        Box::into_raw(Box::new(child)).cast_const().cast()
    }

    /// In the memory of a stack.
    const KIND: Kind = Kind {
        execute: Self::execute,
        stolen: Self::stolen,
        name: std::any::type_name::<F>,
    };

    /// In a box.
    const BOXED: Kind = Kind {
        execute: Self::execute_boxed,
        stolen: Self::stolen_boxed,
        name: std::any::type_name::<F>,
    };

    /// # Safety
    /// As [`Kind::execute`].
    unsafe fn execute(this: *const Forked) {
        // SAFETY: the stack that runs the child has taken it back, and uses its memory for no other before this has
        // moved it out.
        unsafe { this.cast::<Self>().read() }.run();
    }

    /// # Safety
    /// As [`Kind::execute`].
    unsafe fn execute_boxed(this: *const Forked) {
        // SAFETY: `this` heads a box that the stack that runs the child owns now.
        unsafe { Box::from_raw(this.cast_mut().cast::<Self>()) }.run();
    }

    #[inline(always)]
    fn run(self) {
        let (scope, counted) = (self.scope, self.counted);
        // SAFETY: the scope waits for this child: it is in the owner's deque or counted.
        unsafe { &*scope }.run_child(self.closure);
        if counted {
            // SAFETY: counted by the spawn or the steal, ended here.
            unsafe { Scope::child_ended(scope) };
        }
    }

    /// Rule 2 of `protocol/child_memory.rs`.
    ///
    /// # Safety
    /// As [`Kind::stolen`].
    unsafe fn stolen(this: *const Forked) -> *const Forked {
        // SAFETY: the fork is in the deque, so the child is alive; under the lock no other thread touches it, and its
        // owner does not look at it again.
        let child = unsafe { this.cast::<Self>().read() };
        let this = Self::boxed(child.scope, child.counted, child.closure);
        // SAFETY: as above.
        unsafe { Self::stolen_boxed(this) }
    }

    /// # Safety
    /// As [`Kind::stolen`].
    unsafe fn stolen_boxed(this: *const Forked) -> *const Forked {
        // SAFETY: the fork is in the deque, or was a moment ago, so the child and its scope are alive; under the lock
        // no other thread touches the child.
        unsafe {
            Forked::init_thief(this);
            let child = &mut *this.cast_mut().cast::<Self>();
            if !std::mem::replace(&mut child.counted, true) {
                (*child.scope).remote.begin();
            }
        }
        this
    }
}

// SAFETY: children reach the scope by reference from other threads: the counters are atomic, the
// panic is locked, `base` and `owner`, a `Sync` stack that outlives the scope, are only read.
unsafe impl Sync for Scope<'_, '_> {}
