//! `Local`: a value for a piece of work and all that it spawns.
//!
//! The values of a piece of work are a list from the innermost outwards, shared with its children. A new value is put
//! in front. If it hides an older value of the same local, the older one is left out, and the few values before it are
//! copied: a list is never longer than there are locals, however many generations of tasks pass it on. Rejected: a map,
//! which every child would have to copy or lock. There are few locals, and the first is the one that is wanted.

use super::inherited::{Inherited, Within, inherited};
use std::{
    any::Any,
    fmt,
    future::Future,
    marker::PhantomData,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

/// The list of values.
#[derive(Clone, Default)]
pub(super) struct Values(Option<Arc<Value>>);

#[derive(Clone)]
struct Value {
    /// The address of its `Local`.
    of: usize,
    value: Arc<dyn Any + Send + Sync>,
    outer: Values,
}

impl Values {
    fn find(&self, of: usize) -> Option<&Arc<dyn Any + Send + Sync>> {
        let mut at = self;
        while let Some(value) = &at.0 {
            if value.of == of {
                return Some(&value.value);
            }
            at = &value.outer;
        }
        None
    }

    /// The list without the value of this place.
    fn without(self, of: usize) -> Values {
        if self.find(of).is_none() {
            return self;
        }
        let first = self.0.expect("there is one to be found");
        if first.of == of {
            return first.outer.clone();
        }
        let mut first = Value::clone(&first);
        first.outer = first.outer.without(of);
        Values(Some(Arc::new(first)))
    }
}

impl fmt::Debug for Values {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Values").finish_non_exhaustive()
    }
}

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
        WithLocal {
            within: Within::new(future.into_future(), self.inherited_with(value)),
        }
    }

    /// As [`with`](Self::with), for a closure.
    pub fn with_blocking<R>(&'static self, value: T, f: impl FnOnce() -> R) -> R {
        self.inherited_with(value).run(f)
    }

    fn inherited_with(&'static self, value: T) -> Arc<Inherited> {
        let mut new = inherited().map_or_else(Inherited::default, |here| Inherited::clone(&here));
        new.values = Values(Some(Arc::new(Value {
            of: self.id(),
            value: Arc::new(value),
            outer: std::mem::take(&mut new.values).without(self.id()),
        })));
        Arc::new(new)
    }
}

impl<T> fmt::Debug for Local<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Local").finish_non_exhaustive()
    }
}

/// The future of [`Local::with`].
#[derive(Debug)]
#[must_use = "futures do nothing unless awaited"]
pub struct WithLocal<F> {
    /// Pinned with the whole.
    within: Within<F>,
}

impl<F: Future> Future for WithLocal<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        // SAFETY: the only field is pinned with the whole.
        unsafe { self.map_unchecked_mut(|this| &mut this.within) }.poll(cx)
    }
}
