//! `Handle`: a runtime that other code keeps alive.

use super::{Runtime, context, current};
use crate::sched::{block::block_on, job::Job};
use std::{fmt, future::Future, sync::Arc};

/// A handle of a runtime that does not keep it alive: when the last [`Runtime`] is dropped, the runtime ends, and what
/// is spawned by a `Handle` after that ends with an error.
///
/// ```
/// use urgency::runtime::Handle;
///
/// let runtime = urgency::Runtime::new()?;
/// let handle = runtime.block_on(async { Handle::current() });
/// assert_eq!(handle.spawn(async { 6 * 7 }).get().unwrap(), 42);
/// drop(runtime);
/// assert!(handle.spawn(async {}).get().is_err());
/// # Ok::<(), urgency::BuildError>(())
/// ```
#[derive(Clone)]
pub struct Handle {
    pub(crate) shared: Arc<Job>,
}

impl Handle {
    /// The runtime of the calling code; on a plain thread the global one, which starts here if nothing used it yet.
    pub fn current() -> Self {
        Handle { shared: current() }
    }

    pub(crate) fn shared(&self) -> &Arc<Job> {
        &self.shared
    }

    /// As [`Runtime::block_on`].
    ///
    /// # Panics
    ///
    /// If polling the future panics, and if the runtime has ended.
    pub fn block_on<F: Future>(&self, future: F) -> F::Output {
        context::as_external_of(&self.shared, None, |_| block_on(future))
    }
}

impl Runtime {
    /// A handle that does not keep the runtime alive.
    pub fn handle(&self) -> Handle {
        let shared = self.shared.clone();
        Handle { shared }
    }
}

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handle").finish_non_exhaustive()
    }
}
