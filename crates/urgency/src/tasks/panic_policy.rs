//! What a runtime does when a task panics, beside keeping the panic as the task's result.
//!
//! By default a panic that no code waits for is heard: a line names the task and its level. A program may have its own
//! function called instead, or the process ended.

use super::{TaskRef, contained};
use crate::{account::overruns::own_path, rank::LevelId};
use std::{
    fmt,
    io::{self, Write},
    process,
    sync::Arc,
};

type Call = dyn Fn(LevelId) + Send + Sync;

/// What happens when a task panics; chosen by [`Builder::on_panic`](crate::Builder::on_panic).
///
/// In any case the panic hook of the standard library has reported it, with its message and place. The runtime counts
/// it ([`Stats::panicked`](crate::Stats::panicked)), and code that waits for the task has it as the value in a
/// [`JoinError`](crate::JoinError).
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
///
/// let usual = format!("{:?}", PanicPolicy::propagate());
/// assert_eq!(format!("{:?}", PanicPolicy::default()), usual);
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
    /// The panic goes to the code that waits. If there is none, because the handle was dropped, a line on standard
    /// error names the task and its level, after what the panic hook said. The default.
    ///
    /// The first panic in a [`task_scope`](crate::life::task_scope) goes to the code that waits for the scope, whether
    /// or not the task's handle was dropped.
    pub fn propagate() -> Self {
        PanicPolicy(Choice::Propagate)
    }

    /// The process aborts, whether or not the task has a waiter.
    pub fn abort() -> Self {
        PanicPolicy(Choice::Abort)
    }

    /// Calls `call` with the level of a task that panicked and whose handle was dropped, instead of the line on
    /// standard error: on the worker that ran the task, or on the thread that drops the handle later. Other panics go
    /// to the code that waits. A panic of `call` itself is dropped.
    pub fn call(call: impl Fn(LevelId) + Send + Sync + 'static) -> Self {
        PanicPolicy(Choice::Call(Arc::new(call)))
    }

    /// `task` has panicked, and its result is not published yet.
    pub(crate) fn panicked(&self, task: &TaskRef) {
        if matches!(self.0, Choice::Abort) {
            say(format_args!(
                "the task `{}` at level `{}` panicked, and the policy of its runtime is to abort",
                own_path(task.name()()),
                task.level_id()
            ));
            process::abort();
        }
    }

    /// `task` has panicked, and no code has the panic from its handle.
    pub(crate) fn unheard(&self, task: &TaskRef) {
        if !task.is_panic_heard() {
            Lost::of(self.clone(), task).tell();
        }
    }
}

/// What is told of a task that panicked, if no code has the panic. It keeps neither the task nor its runtime.
pub(crate) struct Lost {
    policy: PanicPolicy,
    name: &'static str,
    level: LevelId,
}

impl Lost {
    pub(crate) fn of(policy: PanicPolicy, task: &TaskRef) -> Self {
        Lost {
            policy,
            name: own_path(task.name()()),
            level: task.level_id(),
        }
    }

    /// No code has the panic.
    pub(crate) fn tell(&self) {
        match &self.policy.0 {
            Choice::Propagate => say(format_args!(
                "the task `{}` at level `{}` panicked; its handle was dropped, and with it the panic's value",
                self.name, self.level
            )),
            Choice::Abort => {}
            Choice::Call(call) => contained(|| call(self.level)),
        }
    }
}

/// Writes a line to standard error, if there is one.
fn say(what: fmt::Arguments<'_>) {
    let _ = writeln!(io::stderr(), "urgency: {what}");
}

debug_text!(PanicPolicy, |it| match it.0 {
    Choice::Propagate => "propagate",
    Choice::Abort => "abort",
    Choice::Call(_) => "call(..)",
});
