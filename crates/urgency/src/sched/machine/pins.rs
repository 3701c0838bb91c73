//! Pinned workers: each has a processor of its own, and its code runs there.
//!
//! The kernel pins threads, and a worker travels between threads. So a thread is pinned when it gets a worker.
//!
//! 1. **A delivery** pins the receiver's thread, which sleeps, before it wakes it: the kernel wakes it on the worker's
//!    processor. A thread that was pinned there before, as most are that wait where they waited last, costs no call.
//! 2. **A thread that claims a worker itself**, as one that comes from the poller, pins itself when it holds the worker
//!    ([`Me::hold`]). If it runs on another processor the kernel moves it.
//! 3. **A thread in the poller, and a new one**, may run on all the workers' processors: an event must not wait for one
//!    certain processor.
//! 4. **A stack that lost its worker** stays pinned where it was. It competes with the worker's next code, and with no
//!    other worker's.
//! 5. **A plain thread** that calls into the runtime is the program's, and is not pinned.
//!
//! Between a claim of the right to deliver and the receipt, the receiver holds no worker; so a delivery and rule 2
//! never pin one thread at once. A processor that the process loses while the runtime runs is refused by the kernel:
//! then the worker's threads stay where the kernel has put them.
//!
//! Without pins all of this is one comparison for each worker that a thread gets.

use crate::sched::{
    stack::{Me, Stack},
    worker::Worker,
};
use crate::sys::thread::{self, Processors};
use std::sync::atomic::{AtomicI32, Ordering};

/// In place of a processor: a worker without a processor of its own, or a thread that is not pinned.
const NOWHERE: i32 = -1;

/// In place of a processor: a thread that is never pinned.
const NEVER: i32 = -2;

/// The processors of the workers of a core set, if they are pinned: one for each.
#[derive(Debug, Default)]
pub(crate) struct Pins(Option<(Box<[usize]>, Processors)>);

impl Pins {
    /// On these processors. The system may refuse.
    pub(crate) fn on(cpus: &[usize]) -> Self {
        Pins(Some((cpus.into(), thread::only(cpus))))
    }

    /// The processor of this worker.
    pub(in crate::sched) fn of(&self, worker: usize) -> Pin {
        let cpu = self.0.as_ref().map(|(cpus, _)| cpus[worker]);
        Pin(cpu.map_or(NOWHERE, |cpu| cpu as i32))
    }

    /// The processors, by worker.
    pub(crate) fn cpus(&self) -> Option<&[usize]> {
        self.0.as_ref().map(|(cpus, _)| &**cpus)
    }

    /// The calling thread has begun: rule 3. It has inherited the processors of the thread that made it.
    pub(in crate::sched) fn begins(&self, stack: &Stack) {
        if let Some((_, all)) = &self.0 {
            stack.pinned_to.0.store(NOWHERE, Ordering::Relaxed);
            thread::send_home(all);
        }
    }

    /// The calling thread is going to the poller: rule 3.
    #[inline]
    pub(in crate::sched) fn leave(&self, me: Me<'_>) {
        if let Some((_, all)) = &self.0
            && me.pinned_to.0.load(Ordering::Relaxed) >= 0
        {
            me.pinned_to.0.store(NOWHERE, Ordering::Relaxed);
            thread::send_home(all);
        }
    }
}

/// The processor of a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::sched) struct Pin(i32);

impl Pin {
    /// Whether the worker has a processor of its own.
    pub(in crate::sched) fn is_set(self) -> bool {
        self.0 != NOWHERE
    }
}

/// Where a stack's thread is pinned. Written by the thread, and by the one that delivers to it.
#[derive(Debug)]
pub(in crate::sched) struct PinnedTo(AtomicI32);

impl PinnedTo {
    pub(in crate::sched) fn nowhere() -> Self {
        PinnedTo(AtomicI32::new(NOWHERE))
    }

    /// The stack is for plain threads: rule 5.
    pub(in crate::sched) fn never(&self) {
        self.0.store(NEVER, Ordering::Relaxed);
    }

    /// Whether it is.
    pub(in crate::sched) fn is_never(&self) -> bool {
        self.0.load(Ordering::Relaxed) == NEVER
    }

    /// The thread gets a worker: rules 1 and 2. 0 is the calling thread.
    #[inline]
    pub(in crate::sched) fn follow(&self, worker: &Worker, tid: i32) {
        if worker.pin.is_set() {
            self.follow_cold(worker.pin, tid);
        }
    }

    #[cold]
    fn follow_cold(&self, Pin(cpu): Pin, tid: i32) {
        let now = self.0.load(Ordering::Relaxed);
        if now != NEVER && now != cpu {
            self.0.store(cpu, Ordering::Relaxed);
            thread::pin(tid, cpu as usize);
        }
    }
}
