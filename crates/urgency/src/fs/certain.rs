//! The writes of a file: they happen, whatever ends first.
//!
//! A write is done, for its caller, when its bytes are in the buffer. So nobody may be left to see that it never
//! happens, and the file lacks its end. Tokio's files keep such a write, and programs rely on it.
//!
//! - A runtime that ends drops the operations that have not begun. A [`Certain`] that is dropped happens there, on the
//!   thread that drops it. Its result is lost: a file that is still there reports the end of the runtime.
//! - A process that ends waits for no thread. So what is under way is counted, and the end of `#[main]` waits for the
//!   last one ([`WaitsForWrites`]).
//!
//! A copy of the process (`fork`) has neither the writes nor the threads that make them. It drops an operation, which
//! is made in the parent, and waits for none. The count is no lock, which the copy might have of a thread that it has
//! not.
//!
//! Rejected: to wait in the drop of the file. It may be a pipe that nobody reads.

use crate::sys::fork::{Process, is_copy};
use rustix::thread::futex;
use std::sync::atomic::{AtomicU32, Ordering};

/// How many have been made and have not ended.
static UNDER_WAY: AtomicU32 = AtomicU32::new(0);

/// An operation that happens when it is dropped, unless it has happened.
pub(super) struct Certain<R, F: FnOnce() -> R> {
    /// Taken when it begins.
    operation: Option<F>,
    process: Process,
}

impl<R, F: FnOnce() -> R> Certain<R, F> {
    pub(super) fn new(operation: F) -> Self {
        UNDER_WAY.fetch_add(1, Ordering::Relaxed);
        Certain {
            operation: Some(operation),
            process: Process::this(),
        }
    }

    pub(super) fn run(mut self) -> R {
        let operation = self.operation.take();
        operation.expect("taken here and by the drop only")()
    }
}

impl<R, F: FnOnce() -> R> Drop for Certain<R, F> {
    fn drop(&mut self) {
        if !self.process.is_this() {
            return;
        }
        if let Some(operation) = self.operation.take() {
            drop(operation());
        }
        // Release: what waits for the end sees what the operation did.
        if UNDER_WAY.fetch_sub(1, Ordering::Release) == 1 {
            // It fails for no address that is a variable's.
            let _ = futex::wake(&UNDER_WAY, futex::Flags::PRIVATE, u32::MAX >> 1);
        }
    }
}

/// Waits, when it is dropped, until no write of a file is under way in any runtime. So the end by a panic waits, too.
pub(crate) struct WaitsForWrites;

impl Drop for WaitsForWrites {
    fn drop(&mut self) {
        if is_copy() {
            return;
        }
        crate::blocking(|| {
            loop {
                match UNDER_WAY.load(Ordering::Acquire) {
                    0 => return,
                    // Woken, interrupted, or another number by now: look again.
                    some => drop(futex::wait(&UNDER_WAY, futex::Flags::PRIVATE, some, None)),
                }
            }
        });
    }
}
