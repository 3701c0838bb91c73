//! `Local`: a value for a piece of work and all that it spawns.
//!
//! How the values are passed on is `inherit/values.rs`.

use crate::{
    inherit::{Inherited, inherited},
    spawn::carried::Within,
};
use std::{marker::PhantomData, sync::Arc};

/// A place in which each piece of work can have a value of its own, which the tasks that it spawns inherit:
/// the identity of a request, a tracing span.
///
/// ```
/// use urgency::life::Local;
///
/// static REQUEST: Local<u64> = Local::new();
///
/// async fn log() -> String {
///     format!("request {:?}", REQUEST.get().as_deref())
/// }
///
/// let served = urgency::block_on(REQUEST.with(7, async {
///     urgency::spawn(log()).await // a child of the request
/// }));
/// assert_eq!(served.unwrap(), "request Some(7)");
/// assert!(REQUEST.get().is_none());
/// ```
pub struct Local<T> {
    /// Not of size zero: the address is the identity.
    _place: u8,
    value: PhantomData<fn() -> T>,
}

impl<T: Send + Sync + 'static> Local<T> {
    /// A place without a value.
    #[expect(
        clippy::new_without_default,
        reason = "its identity is that of a static"
    )]
    pub const fn new() -> Self {
        Local {
            _place: 0,
            value: PhantomData,
        }
    }

    fn id(&'static self) -> usize {
        std::ptr::from_ref(self).addr()
    }

    /// The value of the calling code, if it or the code that spawned it has one.
    pub fn get(&'static self) -> Option<Arc<T>> {
        let here = inherited()?;
        let value = here.values.find(self.id())?.clone();
        Some(value.downcast().expect("a place has values of one type"))
    }

    /// `future` as work that has this value, in its polls and when it is dropped, and whose tasks inherit it. The
    /// deadline and the other locals of the calling code stay.
    pub fn with<F: IntoFuture>(&'static self, value: T, future: F) -> WithLocal<F::IntoFuture> {
        Within::new(future.into_future(), self.inherited_with(value))
    }

    /// As [`with`](Self::with), for a closure.
    pub fn with_blocking<R>(&'static self, value: T, f: impl FnOnce() -> R) -> R {
        self.inherited_with(value).run(f)
    }

    /// What work has that inherits this value and nothing else.
    pub(crate) fn alone(&'static self, value: T) -> Arc<Inherited> {
        let mut new = Inherited::default();
        new.values = new.values.with(self.id(), Arc::new(value));
        Arc::new(new)
    }

    fn inherited_with(&'static self, value: T) -> Arc<Inherited> {
        let mut new = inherited().map_or_else(Inherited::default, |here| Inherited::clone(&here));
        new.values = std::mem::take(&mut new.values).with(self.id(), Arc::new(value));
        Arc::new(new)
    }
}

debug_struct!([T] Local<T>);

/// The future of [`Local::with`].
pub type WithLocal<F> = Within<F>;
