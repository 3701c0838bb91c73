//! Guards that give a part of what a lock guards, and the read and write guards of [`RwLock`](super::RwLock).
//!
//! A guard is what it *holds* (a lock that is released when the guard is dropped) and the address of the data.
//! Mapping a guard changes the address and keeps the lock. There are two kinds, whatever is held: [`Read`] gives
//! `&T`, [`Write`] gives `&mut T`. The names that programs use are aliases of them.
//!
//! A [`Write`] is of the [`Whole`] or of a [`Part`], and its type says of which. A part may have been reached by `&mut`
//! only: the inside of a `Cell`. No guard of a part becomes a reader's, because other readers can change the inside
//! through the `Cell`. And a [`Write`] is invariant over `T`, as `&mut T` is.

use std::{
    marker::PhantomData,
    ops::{Deref, DerefMut},
    ptr::NonNull,
};

/// Data that may be read while `H` is held.
///
/// The functions of a guard are called as `RwLockReadGuard::map(guard, ..)`, so that they hide none of the data's.
#[must_use = "the lock is released when its guard is dropped"]
pub struct Read<H, T: ?Sized> {
    data: NonNull<T>,
    held: H,
}

/// Data that may be changed while `H` is held.
///
/// The functions of a guard are called as `MappedMutexGuard::map(guard, ..)`, so that they hide none of the data's.
///
/// What is written lives as long as the lock says. This does not compile:
///
/// ```compile_fail,E0597
/// use urgency::sync::{RwLock, RwLockWriteGuard};
///
/// let lock: RwLock<&'static str> = RwLock::new("for ever");
/// {
///     let text = String::from("for a while");
///     let mut guard: RwLockWriteGuard<'_, &str> = lock.try_write().unwrap();
///     *guard = &text;
/// }
/// println!("{}", lock.try_read().unwrap());
/// ```
///
/// A guard of the whole may become a reader's, and other threads may read beside it. So it goes to another thread only
/// if the data is `Sync`. This does not compile:
///
/// ```compile_fail,E0277
/// use std::{cell::Cell, thread};
/// use urgency::sync::RwLock;
///
/// let lock = RwLock::new(Cell::new(1));
/// let guard = lock.try_write().unwrap();
/// thread::scope(|threads| {
///     threads.spawn(|| guard.downgrade().set(2)); // a race with
///     lock.try_read().unwrap().set(3);
/// });
/// ```
///
/// A guard of a part stays a writer's. This does not compile either:
///
/// ```compile_fail,E0599
/// use std::cell::Cell;
/// use urgency::sync::{RwLock, RwLockWriteGuard};
///
/// let lock = RwLock::new(Cell::new(1));
/// let part = RwLockWriteGuard::map(lock.try_write().unwrap(), |cell| cell.get_mut());
/// let one = part.downgrade(); // a `&i32`, where other readers would have the `Cell`
/// ```
#[must_use = "the lock is released when its guard is dropped"]
pub struct Write<H, T: ?Sized, K = Part> {
    data: NonNull<T>,
    held: H,
    kind: PhantomData<(*mut T, K)>,
}

/// A [`Write`] is of all that its lock guards.
///
/// ```
/// use urgency::sync::{RwLock, RwLockMappedWriteGuard, RwLockWriteGuard};
///
/// let lock = RwLock::new((1, 2));
/// // This guard is of the `Whole`: it may become a reader's.
/// let whole: RwLockWriteGuard<'_, (i32, i32)> = lock.try_write().unwrap();
/// drop(whole.downgrade());
/// // This one is of a `Part`, and stays a writer's.
/// let whole = lock.try_write().unwrap();
/// let mut part: RwLockMappedWriteGuard<'_, i32> = RwLockWriteGuard::map(whole, |pair| &mut pair.0);
/// *part = 3;
/// drop(part);
/// assert_eq!(*lock.try_read().unwrap(), (3, 2));
/// ```
#[derive(Debug)]
pub struct Whole;

/// A [`Write`] may be of a part of what its lock guards.
#[derive(Debug)]
pub struct Part;

// SAFETY: the guard gives `&T`, and what it holds goes where it may.
unsafe impl<H: Send, T: ?Sized + Sync> Send for Read<H, T> {}
// SAFETY: as above.
unsafe impl<H: Sync, T: ?Sized + Sync> Sync for Read<H, T> {}
// SAFETY: the guard gives `&mut T`, as a `&mut T` does, and what it holds goes where it may.
unsafe impl<H: Send, T: ?Sized + Send> Send for Write<H, T, Part> {}
// SAFETY: as above. It may become a reader's on its new thread, and then the thread that it came from may read as well:
// so the data must be `Sync`.
unsafe impl<H: Send, T: ?Sized + Send + Sync> Send for Write<H, T, Whole> {}
// SAFETY: a shared guard gives `&T`.
unsafe impl<H: Sync, T: ?Sized + Sync, K> Sync for Write<H, T, K> {}

impl<H, T: ?Sized> Read<H, T> {
    /// # Safety
    /// While `held` is held, `data` is valid, and nobody has it by `&mut`.
    pub(super) unsafe fn new(held: H, data: NonNull<T>) -> Self {
        Read { data, held }
    }

    pub(super) fn held(&self) -> &H {
        &self.held
    }

    /// A guard of a part of the data.
    ///
    /// ```
    /// use urgency::sync::{RwLock, RwLockReadGuard};
    ///
    /// let pair = RwLock::new((1, "one"));
    /// let name = RwLockReadGuard::map(pair.blocking_read(), |pair| &pair.1);
    /// assert_eq!(*name, "one");
    /// ```
    pub fn map<U: ?Sized>(guard: Self, part: impl FnOnce(&T) -> &U) -> Read<H, U> {
        let data = NonNull::from(part(&guard));
        Read {
            data,
            held: guard.held,
        }
    }

    /// A guard of a part of the data, if there is that part.
    ///
    /// # Errors
    ///
    /// With the guard, if there is not.
    ///
    /// ```
    /// use urgency::sync::{RwLock, RwLockReadGuard};
    ///
    /// let lock = RwLock::new(vec![1, 2]);
    /// let guard = lock.blocking_read();
    /// let first = RwLockReadGuard::try_map(guard, |list| list.first()).ok().unwrap();
    /// assert_eq!(*first, 1);
    /// ```
    pub fn try_map<U: ?Sized>(
        guard: Self,
        part: impl FnOnce(&T) -> Option<&U>,
    ) -> Result<Read<H, U>, Self> {
        match part(&guard).map(NonNull::from) {
            Some(data) => Ok(Read {
                data,
                held: guard.held,
            }),
            None => Err(guard),
        }
    }
}

impl<H, T: ?Sized, K> Write<H, T, K> {
    /// # Safety
    /// While `held` is held, `data` is valid, and nobody else has it.
    pub(super) unsafe fn new(held: H, data: NonNull<T>) -> Self {
        Write {
            data,
            held,
            kind: PhantomData,
        }
    }

    pub(super) fn held(&self) -> &H {
        &self.held
    }

    /// What is held, and the address of the data.
    pub(super) fn into_parts(self) -> (H, NonNull<T>) {
        (self.held, self.data)
    }

    /// A guard of a part of the data.
    ///
    /// ```
    /// use urgency::sync::{RwLock, RwLockWriteGuard};
    ///
    /// let pair = RwLock::new((1, "one"));
    /// *RwLockWriteGuard::map(pair.blocking_write(), |pair| &mut pair.0) += 1;
    /// assert_eq!(pair.blocking_read().0, 2);
    /// ```
    pub fn map<U: ?Sized>(mut guard: Self, part: impl FnOnce(&mut T) -> &mut U) -> Write<H, U> {
        let data = NonNull::from(part(&mut guard));
        Write {
            data,
            held: guard.held,
            kind: PhantomData,
        }
    }

    /// A guard of a part of the data, if there is that part.
    ///
    /// # Errors
    ///
    /// With the guard, if there is not.
    pub fn try_map<U: ?Sized>(
        mut guard: Self,
        part: impl FnOnce(&mut T) -> Option<&mut U>,
    ) -> Result<Write<H, U>, Self> {
        match part(&mut guard).map(NonNull::from) {
            Some(data) => Ok(Write {
                data,
                held: guard.held,
                kind: PhantomData,
            }),
            None => Err(guard),
        }
    }
}

impl<H, T: ?Sized> Deref for Read<H, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: the promise of `new`; a part of the data lives as long as the data.
        unsafe { self.data.as_ref() }
    }
}

impl<H, T: ?Sized, K> Deref for Write<H, T, K> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: as above.
        unsafe { self.data.as_ref() }
    }
}

impl<H, T: ?Sized, K> DerefMut for Write<H, T, K> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as above, and the guard is borrowed exclusively.
        unsafe { self.data.as_mut() }
    }
}

/// `Debug` and `Display` of a guard: of the data.
macro_rules! shown_as_data {
    ([$($generics:tt)*] $guard:ty) => {
        impl<$($generics)*> std::fmt::Debug for $guard
        where
            T: std::fmt::Debug,
        {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                (**self).fmt(f)
            }
        }

        impl<$($generics)*> std::fmt::Display for $guard
        where
            T: std::fmt::Display,
        {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                (**self).fmt(f)
            }
        }
    };
}
pub(super) use shown_as_data;

shown_as_data!([H, T: ?Sized] Read<H, T>);
shown_as_data!([H, T: ?Sized, K] Write<H, T, K>);
