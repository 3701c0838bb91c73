//! `Executor`: hyper's background futures as tasks.
//!
//! HTTP/1 needs none. An HTTP/2 server spawns a task for each request stream, a client one for its
//! connection. A connection's tasks should have the connection's level, so an executor without a level of its own uses
//! the level of the code that calls it.

use urgency::LevelId;

/// Spawns what hyper gives it as tasks, detached.
///
/// [`Executor::new`] spawns at the level of the code that calls, [`Executor::at`] at one level. Tasks go to the
/// runtime of the calling thread, else to the global one.
///
/// ```
/// use hyper::rt::Executor as _;
/// use urgency_web::rt::Executor;
///
/// let (send, receive) = std::sync::mpsc::channel();
/// Executor::new().execute(async move { send.send(42).unwrap() });
/// assert_eq!(receive.recv(), Ok(42));
///
/// let (send, receive) = std::sync::mpsc::channel();
/// let urgent = Executor::at(urgency::LevelId::MOST_URGENT);
/// urgent.execute(async move { send.send(urgency::current_level()).unwrap() });
/// assert_eq!(receive.recv(), Ok(urgency::LevelId::MOST_URGENT));
/// ```
///
/// # Panics
///
/// `execute` panics if the runtime has no such level.
#[derive(Clone, Copy, Debug, Default)]
pub struct Executor {
    level: Option<LevelId>,
}

impl Executor {
    /// Spawns at the level of the calling code.
    pub fn new() -> Self {
        Executor { level: None }
    }

    /// Spawns at `level`.
    pub fn at(level: impl Into<LevelId>) -> Self {
        Executor {
            level: Some(level.into()),
        }
    }
}

impl<F> hyper::rt::Executor<F> for Executor
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    fn execute(&self, future: F) {
        match self.level {
            Some(level) => urgency::at(level).spawn(future),
            None => urgency::spawn(future),
        }
        .detach();
    }
}
