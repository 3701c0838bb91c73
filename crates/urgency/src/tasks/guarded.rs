//! A cell whose exclusive access is granted by the state word.
//!
//! Outside of models it is a plain `UnsafeCell`; under loom it is loom's, which reports every
//! access that the state word did not order. Access goes through closures that get a raw pointer,
//! so that both have one shape and no reference outlives its grant.

#[cfg(not(urgency_loom))]
pub(crate) struct Guarded<T>(std::cell::UnsafeCell<T>);

#[cfg(urgency_loom)]
pub(crate) struct Guarded<T>(loom::cell::UnsafeCell<T>);

impl<T> Guarded<T> {
    pub(crate) fn new(value: T) -> Self {
        #[cfg(not(urgency_loom))]
        return Guarded(std::cell::UnsafeCell::new(value));
        #[cfg(urgency_loom)]
        return Guarded(loom::cell::UnsafeCell::new(value));
    }

    /// Shared access: others may read at the same time, none may write.
    #[inline]
    pub(crate) fn with<R>(&self, read: impl FnOnce(*const T) -> R) -> R {
        #[cfg(not(urgency_loom))]
        return read(self.0.get());
        #[cfg(urgency_loom)]
        return self.0.with(read);
    }

    /// Exclusive access: nobody else may read or write meanwhile.
    #[inline]
    pub(crate) fn with_mut<R>(&self, write: impl FnOnce(*mut T) -> R) -> R {
        #[cfg(not(urgency_loom))]
        return write(self.0.get());
        #[cfg(urgency_loom)]
        return self.0.with_mut(write);
    }
}
