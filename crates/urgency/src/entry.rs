//! What the attributes [`main`](crate::main) and [`test`](crate::test) expand to: a runtime as their options ask for
//! it, and the body on it.

use crate::{Runtime, life::LocalOptions, runtime::Builder};
use std::future::Future;

/// How the body of a program or test is to be run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Entry {
    workers: Option<usize>,
    is_current_thread: bool,
    is_local: bool,
    name: Option<&'static str>,
    start_paused: bool,
}

impl Entry {
    /// On the global runtime.
    pub const fn new() -> Self {
        Entry {
            workers: None,
            is_current_thread: false,
            is_local: false,
            name: None,
            start_paused: false,
        }
    }

    /// On a runtime of its own with so many workers.
    #[must_use]
    pub const fn workers(mut self, workers: usize) -> Self {
        self.workers = Some(workers);
        self
    }

    /// On a runtime of its own of [`Builder::new_current_thread`](crate::runtime::Builder::new_current_thread), for
    /// which the calling thread works.
    #[must_use]
    pub const fn current_thread(mut self) -> Self {
        self.is_current_thread = true;
        self
    }

    /// As [`current_thread`](Self::current_thread), on a [`LocalRuntime`](crate::runtime::LocalRuntime).
    #[must_use]
    pub const fn local(mut self) -> Self {
        self.is_local = true;
        self.current_thread()
    }

    /// On a runtime of its own whose threads have this name.
    #[must_use]
    pub const fn name(mut self, name: &'static str) -> Self {
        self.name = Some(name);
        self
    }

    /// On a runtime of its own with a clock that stands still.
    #[must_use]
    pub const fn start_paused(mut self, start_paused: bool) -> Self {
        self.start_paused = start_paused;
        self
    }

    /// Runs the body to its end, waits for the writes to files that were begun, and gives what the body gives.
    ///
    /// # Panics
    ///
    /// If the body does, or if no runtime with these options can be had.
    #[track_caller]
    pub fn run<F: Future>(self, body: F) -> F::Output {
        let _writes = crate::fs::WaitsForWrites;
        let is_global = self.workers.is_none() && self.name.is_none();
        if is_global && !self.is_current_thread && !self.start_paused {
            return crate::block_on(body);
        }
        let builder = if self.is_current_thread {
            Builder::new_current_thread()
        } else {
            Runtime::builder()
        };
        let mut builder = builder.start_paused(self.start_paused);
        if let Some(workers) = self.workers {
            builder = builder.workers(workers);
        }
        if let Some(name) = self.name {
            builder = builder.thread_name(name);
        }
        let ran = match self.is_local {
            true => builder
                .build_local(LocalOptions::default())
                .map(|runtime| runtime.block_on(body)),
            false => builder.build().map(|runtime| runtime.block_on(body)),
        };
        ran.unwrap_or_else(|error| {
            panic!("the options ask for a runtime that cannot be had: {error}")
        })
    }
}
