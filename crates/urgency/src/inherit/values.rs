//! The values of a piece of work in its locals (`life/local.rs`).
//!
//! They are a list from the innermost outwards, shared with the work's children. A new value is put in front. If it
//! hides an older value of the same local, the older one is left out, and the few values before it are copied: a list
//! is never longer than there are locals, however many generations of tasks pass it on. Rejected: a map, which every
//! child would have to copy or lock. There are few locals, and usually the first value is wanted.

use std::{any::Any, sync::Arc};

/// The list of values.
#[derive(Clone, Default)]
pub(crate) struct Values(Option<Arc<Value>>);

#[derive(Clone)]
struct Value {
    /// The address of its `Local`.
    of: usize,
    value: Arc<dyn Any + Send + Sync>,
    outer: Values,
}

impl Values {
    /// The value of the local with this address.
    pub(crate) fn find(&self, of: usize) -> Option<&Arc<dyn Any + Send + Sync>> {
        let mut at = self;
        while let Some(value) = &at.0 {
            if value.of == of {
                return Some(&value.value);
            }
            at = &value.outer;
        }
        None
    }

    /// The list with `value` of the local with this address in front.
    pub(crate) fn with(self, of: usize, value: Arc<dyn Any + Send + Sync>) -> Values {
        Values(Some(Arc::new(Value {
            of,
            value,
            outer: self.without(of),
        })))
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

debug_struct!(Values);
