//! What a runtime does when a task panics.

use super::{TaskRef, caught, discard_payload};
use crate::rank::LevelId;
use std::{fmt, process, sync::Arc};

type Call = dyn Fn(LevelId) + Send + Sync;

/// What happens when a task panics; chosen by [`Builder::on_panic`](crate::Builder::on_panic).
///
/// In any case the panic hook of the standard library has reported the panic, the runtime counts it, and the panic is
/// resumed in the code that waits for the task.
///
/// ```
/// use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
/// use urgency::{Runtime, Shutdown, life::PanicPolicy};
///
/// static LOST: AtomicU32 = AtomicU32::new(0);
///
/// let policy = PanicPolicy::call(|_level| {
///     LOST.fetch_add(1, SeqCst);
/// });
/// let runtime = Runtime::builder().on_panic(policy).build()?;
/// runtime.spawn(async { panic!("nobody waits for this") }).detach();
/// runtime.shutdown(Shutdown::Drain);
/// # LOST.load(SeqCst);
/// # Ok::<(), urgency::BuildError>(())
/// ```
#[derive(Clone, Default)]
pub struct PanicPolicy(Choice);

#[derive(Clone, Default)]
enum Choice {
    #[default]
    Propagate,
    Abort,
    Call(Arc<Call>),
}

impl PanicPolicy {
    /// The panic goes to the task's waiter, and nowhere if there is none. The default.
    pub fn propagate() -> Self {
        PanicPolicy(Choice::Propagate)
    }

    /// The process aborts, whether or not the task has a waiter.
    pub fn abort() -> Self {
        PanicPolicy(Choice::Abort)
    }

    /// Calls `call` with the level of a detached task that panicked, on the worker that ran it. The panic of any other
    /// task goes to its waiter. A panic of `call` itself is dropped.
    pub fn call(call: impl Fn(LevelId) + Send + Sync + 'static) -> Self {
        PanicPolicy(Choice::Call(Arc::new(call)))
    }

    /// `task` has panicked, and its result is not published yet.
    pub(crate) fn panicked(&self, task: &TaskRef) {
        match &self.0 {
            Choice::Propagate => {}
            Choice::Abort => {
                eprintln!("a task panicked, and the policy of its runtime is to abort");
                process::abort();
            }
            Choice::Call(call) if task.is_detached() => {
                let level = task.level_id();
                if let Some(payload) = caught(|| call(level)) {
                    discard_payload(payload);
                }
            }
            Choice::Call(_) => {}
        }
    }
}

impl fmt::Debug for PanicPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            Choice::Propagate => "propagate",
            Choice::Abort => "abort",
            Choice::Call(_) => "call(..)",
        })
    }
}
