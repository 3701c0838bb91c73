//! How the runtime's threads are made: their limit, name, stack, and what they call first and last.
//!
//! Usually the runtime makes them, as stacks wait. An embedder may provide them instead: as many as there are workers,
//! each with a number of its own, and no others. Then a stack that must wait runs other work on top of itself.
//!
//! A thread has a *number*: it is the n-th that the runtime made. The calls are the program's code and run on a
//! thread that holds no worker yet, or none any more; a panic there ends as it would in any thread of the
//! program's own: it is printed, and the thread goes on without the call.

use crate::tasks::{contained, discard_payload};
use std::{
    env,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    thread,
};

type Name = dyn Fn(usize) -> String + Send + Sync;
type Call = dyn Fn(usize) + Send + Sync;

/// The usual stack size of the runtime's threads, in bytes: virtual, committed as it is used. The same as
/// the standard library's default for its threads.
pub(crate) const STACK_SIZE: usize = 2 << 20;

/// With less a thread overflows its stack inside the scheduler, which aborts the process. A small program ran in 32
/// KiB, and not in 24, with and without optimization.
const LEAST_STACK_SIZE: usize = 64 << 10;

/// The stack size of a program that says none. `RUST_MIN_STACK` counts as it does for the standard library's threads: a
/// program that recurses on the threads of rayon or Tokio is started with it.
fn default_stack_size() -> usize {
    let said = env::var("RUST_MIN_STACK").ok();
    let bytes = said.and_then(|said| said.parse::<usize>().ok());
    bytes.map_or(STACK_SIZE, |bytes| bytes.max(LEAST_STACK_SIZE))
}

/// See the module's text.
#[derive(Clone)]
pub(crate) struct ThreadOptions {
    /// How many threads there may be.
    pub(crate) limit: usize,
    /// The embedder brings all threads that there may be.
    pub(crate) provided: bool,
    /// In bytes.
    pub(crate) stack_size: usize,
    pub(crate) name: Option<Arc<Name>>,
    pub(crate) on_start: Option<Arc<Call>>,
    pub(crate) on_stop: Option<Arc<Call>>,
}

impl ThreadOptions {
    pub(crate) fn new(limit: usize) -> Self {
        ThreadOptions {
            limit,
            provided: false,
            stack_size: default_stack_size(),
            name: None,
            on_start: None,
            on_stop: None,
        }
    }

    /// Whether the size is enough, and the system gives threads with such stacks, as far as can be known: it gives one
    /// now. If the system refuses threads of any size, the refusal says nothing about this size.
    pub(crate) fn can_have_stacks(&self) -> bool {
        let can_have = |bytes| {
            let probe = thread::Builder::new().stack_size(bytes).spawn(|| ());
            probe.map(|thread| thread.join()).is_ok()
        };
        self.provided
            || self.stack_size == STACK_SIZE
            || self.stack_size >= LEAST_STACK_SIZE
                && (can_have(self.stack_size) || !can_have(STACK_SIZE))
    }

    /// The name of the thread with this number. The caller needs a thread and is in the middle of the scheduler: a
    /// panic of the name's closure must not end what the caller does, and the system takes no name with a NUL.
    pub(crate) fn name_of(&self, number: usize) -> String {
        let given = self.name.as_ref().and_then(|name| {
            let named = catch_unwind(AssertUnwindSafe(|| name(number)));
            named.map_err(discard_payload).ok()
        });
        let usable = given.filter(|name| !name.contains('\0'));
        usable.unwrap_or_else(|| "urgency".into())
    }

    /// Whether threads call code of the program first or last.
    pub(crate) fn has_calls(&self) -> bool {
        self.on_start.is_some() || self.on_stop.is_some()
    }

    /// The thread with this number begins.
    pub(crate) fn started(&self, number: usize) {
        call(&self.on_start, number);
    }

    /// The thread with this number ends.
    pub(crate) fn stopped(&self, number: usize) {
        call(&self.on_stop, number);
    }
}

fn call(what: &Option<Arc<Call>>, number: usize) {
    if let Some(what) = what {
        contained(|| what(number));
    }
}

debug_struct!(ThreadOptions, |it| limit: it.limit, stack_size: it.stack_size);
