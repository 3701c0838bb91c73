//! The door of tasks for a [`Handle`] of a runtime.

use super::{spawn_fn_on, spawn_on};
use crate::{
    runtime::{Handle, Runtime, level_on, yield_now::scheduling_point},
    sched::block::blocking,
    tasks::JoinHandle,
};
use std::future::Future;

impl Handle {
    /// As [`spawn`](crate::spawn), on this runtime; from outside at its least urgent level.
    pub fn spawn<F>(&self, future: F) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        let handle = spawn_on(self.shared(), level_on(self.shared()), future);
        scheduling_point();
        handle
    }

    /// As [`spawn_blocking`](crate::task::spawn_blocking), on this runtime.
    pub fn spawn_blocking<F, T>(&self, closure: F) -> JoinHandle<T>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        let closure = move || blocking(closure);
        let handle = spawn_fn_on(self.shared(), level_on(self.shared()), closure);
        scheduling_point();
        handle
    }
}

impl Runtime {
    /// As [`spawn_blocking`](crate::task::spawn_blocking), on this runtime.
    pub fn spawn_blocking<F, T>(&self, closure: F) -> JoinHandle<T>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        self.handle().spawn_blocking(closure)
    }
}
