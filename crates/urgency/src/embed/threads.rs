//! What a runtime's threads call, with the number of the thread: the n-th that the runtime made, or the one with which
//! [`Host::serve`](super::Host::serve) brought it.

use crate::Builder;

/// [`Builder::thread_name_fn`], where `name` gets the number.
pub fn name_threads(
    builder: Builder,
    name: impl Fn(usize) -> String + Send + Sync + 'static,
) -> Builder {
    builder.numbered_name(name)
}

/// [`Builder::on_thread_start`], where `call` gets the number.
pub fn on_thread_start(builder: Builder, call: impl Fn(usize) + Send + Sync + 'static) -> Builder {
    builder.numbered_start(call)
}

/// [`Builder::on_thread_stop`], where `call` gets the number.
pub fn on_thread_stop(builder: Builder, call: impl Fn(usize) + Send + Sync + 'static) -> Builder {
    builder.numbered_stop(call)
}
