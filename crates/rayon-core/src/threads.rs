//! Threads that the program makes for a pool: by a spawn handler, or the current thread itself.
//!
//! Such a pool has these threads and no others, each with an index for ever. The runtime is one of provided threads:
//! [`ThreadBuilder::run`] provides one.

use crate::handler;
use std::{fmt, io, thread};
use urgency::embed::Host;

/// One thread of a pool, for a [`spawn_handler`](crate::ThreadPoolBuilder::spawn_handler) to make.
pub struct ThreadBuilder {
    name: Option<String>,
    stack_size: Option<usize>,
    index: usize,
    host: Host,
}

impl ThreadBuilder {
    /// The index of the thread in its pool.
    pub fn index(&self) -> usize {
        self.index
    }

    /// The name that the pool's builder gives it, if it does.
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// The stack size that the pool's builder gives it in bytes, if it does.
    pub fn stack_size(&self) -> Option<usize> {
        self.stack_size
    }

    /// The whole life of the thread in its pool: returns when the pool has ended.
    ///
    /// # Panics
    ///
    /// On a thread that is part of a pool already, also in the pool's start and exit handlers.
    pub fn run(self) {
        assert!(
            handler::index().is_none(),
            "the calling thread is in a start or exit handler, so it is part of a pool already: call `run` on a thread \
             of its own"
        );
        self.host.serve(self.index);
    }

    pub(crate) fn new(
        host: Host,
        index: usize,
        name: Option<String>,
        stack_size: Option<usize>,
    ) -> Self {
        ThreadBuilder {
            name,
            stack_size,
            index,
            host,
        }
    }

    /// What the standard library makes of it.
    pub(crate) fn std_builder(&self) -> thread::Builder {
        let mut builder = thread::Builder::new();
        if let Some(name) = &self.name {
            builder = builder.name(name.clone());
        }
        if let Some(bytes) = self.stack_size {
            builder = builder.stack_size(bytes);
        }
        builder
    }
}

impl fmt::Debug for ThreadBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ThreadBuilder")
            .field("index", &self.index)
            .field("name", &self.name)
            .field("stack_size", &self.stack_size)
            .field("pool", &self.host)
            .finish()
    }
}

/// How a builder has its threads made; not for implementing outside this crate.
pub trait ThreadSpawn: private::Sealed {
    /// Whether the program makes them.
    #[doc(hidden)]
    const IS_CUSTOM: bool;

    /// Makes one.
    #[doc(hidden)]
    fn spawn(&mut self, thread: ThreadBuilder) -> io::Result<()>;
}

mod private {
    pub trait Sealed {}
    impl Sealed for super::DefaultSpawn {}
    impl<F> Sealed for super::CustomSpawn<F> {}
}

/// By the standard library, when they are needed.
#[derive(Debug, Default)]
pub struct DefaultSpawn;

impl ThreadSpawn for DefaultSpawn {
    const IS_CUSTOM: bool = false;

    fn spawn(&mut self, thread: ThreadBuilder) -> io::Result<()> {
        thread.std_builder().spawn(|| thread.run()).map(drop)
    }
}

/// By a closure of the program's.
#[derive(Debug)]
pub struct CustomSpawn<F>(F);

impl<F> CustomSpawn<F> {
    pub(crate) fn new(spawn: F) -> Self {
        CustomSpawn(spawn)
    }
}

impl<F> ThreadSpawn for CustomSpawn<F>
where
    F: FnMut(ThreadBuilder) -> io::Result<()>,
{
    const IS_CUSTOM: bool = true;

    fn spawn(&mut self, thread: ThreadBuilder) -> io::Result<()> {
        (self.0)(thread)
    }
}
