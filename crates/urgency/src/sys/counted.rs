//! The counting build: the unit tests' atomics, which say what an operation of a program costs.
//!
//! The types have the names and methods of `std::sync::atomic`, and stand for them in unit tests. Each access asks one
//! thread-local variable whether its thread is counted, and for which test. A counted thread notes its atomic steps
//! that order memory (read-modify-writes, fences and sequentially consistent stores: a locked instruction each on x86)
//! and the cache lines that it touches; a line counts once in each *window*. The program of a test
//! opens the windows: its tasks call [`Sums::operation`] where an operation begins. A thread is counted from the first
//! call on, for that test, the scheduler's part included.
//!
//! What is not counted: memory that is not atomic, and the insides of `Arc`, `Mutex`, the allocator and the kernel. The
//! queue of a pool is a foreign type as well, for which the pool says what it costs ([`queue`]).

use super::primitives::Queued;
pub(crate) use std::sync::atomic::Ordering;
use std::{
    cell::{Cell, RefCell},
    collections::HashSet,
    fmt,
    ops::Deref,
    sync::atomic,
};

/// The size of a cache line, as a power of two.
const LINE: u32 = 6;

/// What the counted threads of one test did.
#[derive(Debug, Default)]
pub(crate) struct Sums {
    operations: atomic::AtomicU64,
    steps: atomic::AtomicU64,
    lines: atomic::AtomicU64,
}

/// What one operation costs on average.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cost {
    pub(crate) steps: f64,
    pub(crate) lines: f64,
}

thread_local! {
    static SUMS: Cell<Option<&'static Sums>> = const { Cell::new(None) };
    static WINDOW: RefCell<HashSet<usize>> = RefCell::default();
}

impl Sums {
    /// Lives as long as threads that may count.
    pub(crate) fn forever() -> &'static Sums {
        Box::leak(Box::default())
    }

    /// An operation begins on the calling thread.
    pub(crate) fn operation(&'static self) {
        self.operations.fetch_add(1, Ordering::Relaxed);
        self.goes_on();
    }

    /// Another part of an operation begins on the calling thread.
    pub(crate) fn goes_on(&'static self) {
        SUMS.set(Some(self));
        WINDOW.with_borrow_mut(HashSet::clear);
    }

    /// The calling thread is not counted, until it begins an operation.
    pub(crate) fn stop() {
        SUMS.set(None);
    }

    /// What an operation cost so far.
    pub(crate) fn cost(&self) -> Cost {
        let each = |sum: &atomic::AtomicU64| {
            sum.load(Ordering::Relaxed) as f64 / self.operations.load(Ordering::Relaxed) as f64
        };
        Cost {
            steps: each(&self.steps),
            lines: each(&self.lines),
        }
    }
}

/// What the calling thread does until this is dropped is not counted.
pub(crate) struct Aside(Option<&'static Sums>);

impl Aside {
    pub(crate) fn new() -> Self {
        Aside(SUMS.take())
    }
}

impl Drop for Aside {
    fn drop(&mut self) {
        SUMS.set(self.0);
    }
}

/// An access to the line of an address.
#[inline]
fn access(address: usize, steps: u64) {
    let Ok(Some(sums)) = SUMS.try_with(Cell::get) else {
        return;
    };
    let is_new = WINDOW.try_with(|window| window.borrow_mut().insert(address >> LINE));
    sums.steps.fetch_add(steps, Ordering::Relaxed);
    sums.lines
        .fetch_add(u64::from(is_new == Ok(true)), Ordering::Relaxed);
}

/// A sequentially consistent fence is a locked instruction.
#[inline]
pub(crate) fn fence(order: Ordering) {
    if let Ok(Some(sums)) = SUMS.try_with(Cell::get)
        && order == Ordering::SeqCst
    {
        sums.steps.fetch_add(1, Ordering::Relaxed);
    }
    atomic::fence(order);
}

/// An access to a `SegQueue`: its two positions lie 128 bytes apart, its entries elsewhere.
pub(crate) fn queue<T>(queue: &crossbeam_queue::SegQueue<T>, what: Queued) {
    let head = (&raw const *queue).addr();
    let tail = head + 128;
    match what {
        Queued::Looked => {
            access(head, 0);
            access(tail, 0);
        }
        Queued::Popped => {
            access(head, 1);
            access(tail, 0);
            access(head + 64, 1);
        }
        Queued::Pushed => {
            access(tail, 1);
            access(tail + 64, 1);
        }
    }
}

macro_rules! counted {
    ($($name:ident, $value:ty, [$($update:ident),*];)*) => {$(
        #[derive(Default)]
        #[repr(transparent)]
        pub(crate) struct $name(atomic::$name);

        #[allow(dead_code, reason = "no type has users of all its methods")]
        impl $name {
            pub(crate) const fn new(value: $value) -> Self {
                $name(atomic::$name::new(value))
            }

            counted!(methods $value);

            $(
                #[inline]
                pub(crate) fn $update(&self, value: $value, order: Ordering) -> $value {
                    self.change().$update(value, order)
                }
            )*
        }

        counted!(traits [] $name, atomic::$name);
    )*};

    (methods $value:ty) => {
        #[inline]
        fn change(&self) -> &<Self as Deref>::Target {
            access((&raw const *self).addr(), 1);
            &self.0
        }

        #[inline]
        pub(crate) fn load(&self, order: Ordering) -> $value {
            access((&raw const *self).addr(), 0);
            self.0.load(order)
        }

        #[inline]
        pub(crate) fn store(&self, value: $value, order: Ordering) {
            // A sequentially consistent store is a locked instruction.
            access((&raw const *self).addr(), u64::from(order == Ordering::SeqCst));
            self.0.store(value, order);
        }

        #[inline]
        pub(crate) fn swap(&self, value: $value, order: Ordering) -> $value {
            self.change().swap(value, order)
        }

        #[inline]
        pub(crate) fn compare_exchange(
            &self,
            from: $value,
            to: $value,
            order: Ordering,
            otherwise: Ordering,
        ) -> Result<$value, $value> {
            self.change().compare_exchange(from, to, order, otherwise)
        }

        #[inline]
        pub(crate) fn compare_exchange_weak(
            &self,
            from: $value,
            to: $value,
            order: Ordering,
            otherwise: Ordering,
        ) -> Result<$value, $value> {
            self.change().compare_exchange_weak(from, to, order, otherwise)
        }

        #[inline]
        pub(crate) fn fetch_update(
            &self,
            order: Ordering,
            otherwise: Ordering,
            update: impl FnMut($value) -> Option<$value>,
        ) -> Result<$value, $value> {
            self.change().fetch_update(order, otherwise, update)
        }

        #[inline]
        pub(crate) fn get_mut(&mut self) -> &mut $value {
            self.0.get_mut()
        }

        #[inline]
        pub(crate) fn into_inner(self) -> $value {
            self.0.into_inner()
        }
    };

    (traits [$($of:ident)?] $name:ty, $inner:ty) => {
        impl$(<$of>)? Deref for $name {
            type Target = $inner;

            fn deref(&self) -> &$inner {
                &self.0
            }
        }

        impl$(<$of>)? fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

counted! {
    AtomicBool, bool, [fetch_and, fetch_or];
    AtomicI32, i32, [fetch_add, fetch_sub];
    AtomicIsize, isize, [fetch_add, fetch_sub];
    AtomicU8, u8, [fetch_and, fetch_or, fetch_min, fetch_max];
    AtomicU32, u32, [fetch_add, fetch_sub, fetch_and, fetch_or];
    AtomicU64, u64, [fetch_add, fetch_sub, fetch_and, fetch_or, fetch_min, fetch_max];
    AtomicUsize, usize, [fetch_add, fetch_sub, fetch_and, fetch_or, fetch_min, fetch_max];
}

/// As the others.
#[repr(transparent)]
pub(crate) struct AtomicPtr<T>(atomic::AtomicPtr<T>);

#[allow(dead_code, reason = "as above")]
impl<T> AtomicPtr<T> {
    pub(crate) const fn new(value: *mut T) -> Self {
        AtomicPtr(atomic::AtomicPtr::new(value))
    }

    counted!(methods *mut T);
}

counted!(traits [T] AtomicPtr<T>, atomic::AtomicPtr<T>);
