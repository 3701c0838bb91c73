//! Preempted threads in the idle class: what [`Builder::demote_preempted`](crate::Builder::demote_preempted) turns on.
//!
//! An event takes the worker of a less urgent stack, whose thread it has just preempted, and gives it back
//! when it is served. The preempted thread is *runnable* all the while: for the kernel two threads of one
//! weight compete, and when the one that serves events has used more than its half of the processor, it must
//! wait until the other one's slice or the kernel's tick ends, 3 to 4 ms. So the preempted thread goes to the
//! idle class, which an event preempts at once. It stays there when its worker comes back, since more events
//! come soon: until an expiry of relief before which no event preempted it again. (Each taking arms relief.)
//!
//! # Bounds
//!
//! A thread in that class hardly runs beside other processes, and it may hold a lock. So at each expiry, a
//! millisecond apart, the kernel is asked how long it ran. One that ran for less than a sixteenth of the
//! period *starves*: it is in its usual class for a period at least, and until it has run for so long in one.
//! A thread that goes on to other work, which may be more urgent, leaves the class first.
//!
//! # Protocol
//!
//! Who is in that class, and who ends it, is `demotion.rs`, with its model. The stack enters the list after
//! it was demoted; an expiry takes it from there before it looks.
//!
//! # Rejected
//!
//! - To promote the thread when its worker is given back: two system calls for each event, and the next event
//!   finds it in its usual class again. Beside a batch job at 45 thousand requests/s p95 was 1.3 to 1.9 ms,
//!   without all this 2.4, and 0.14 if it stays.
//! - To do so always. Threads and processes inherit the class of the thread that makes them, and keep it,
//!   `SCHED_RESET_ON_FORK` or not; an overrunning thread makes them rarely, but here all less urgent code
//!   runs in the idle class while events come. So the program has to ask for it.

use super::{
    demotion::PREEMPTED,
    shared::{RELIEF_PERIOD, Shared},
    stack::Stack,
};
use crate::os;
use std::{
    mem,
    sync::{
        Arc, Mutex, MutexGuard,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

/// Who ran for less than this between two expiries, in nanoseconds, starves.
const LEAST: u64 = RELIEF_PERIOD.as_nanos() as u64 / 16;

/// The stacks that the next expiry looks at.
#[derive(Debug)]
pub(crate) struct Preempted {
    on: bool,
    stacks: Mutex<Vec<Arc<Stack>>>,
}

/// A stack's part of it.
#[derive(Debug)]
pub(crate) struct Lowering {
    /// An event has taken its worker since the last expiry.
    again: AtomicBool,
    /// How long its thread had run at the last expiry, in nanoseconds.
    ran: AtomicU64,
    starves: AtomicBool,
}

impl Lowering {
    pub(crate) fn new() -> Self {
        Lowering {
            again: AtomicBool::new(false),
            ran: AtomicU64::new(0),
            starves: AtomicBool::new(false),
        }
    }

    /// The thread has run for so long in all. Whether it starves.
    fn look(&self, ran: u64) -> bool {
        let starves = ran.saturating_sub(self.ran.swap(ran, Ordering::Relaxed)) < LEAST;
        self.starves.store(starves, Ordering::Relaxed);
        starves
    }
}

impl Preempted {
    pub(crate) fn new(on: bool) -> Self {
        Preempted {
            on,
            stacks: Mutex::default(),
        }
    }

    /// Whether it was not in the list.
    fn list(&self, stack: &Arc<Stack>) -> bool {
        let mut stacks = self.locked();
        let new = !stacks.iter().any(|listed| Arc::ptr_eq(listed, stack));
        if new {
            stacks.push(stack.clone());
        }
        new
    }

    fn locked(&self) -> MutexGuard<'_, Vec<Arc<Stack>>> {
        self.stacks.lock().expect("nothing panics under this lock")
    }
}

impl Shared {
    /// The worker of `stack` was taken for an event on the processor `here`, which the calling thread runs on.
    pub(crate) fn lower_preempted(&self, stack: &Arc<Stack>, here: i32) {
        if !self.preempted.on || stack.cpu() != here {
            return;
        }
        let lowering = &stack.lowering;
        lowering.again.store(true, Ordering::Relaxed);
        if !stack.demotion.is_for(PREEMPTED) && !lowering.starves.load(Ordering::Relaxed) {
            self.demote(stack, PREEMPTED);
        }
        if self.preempted.list(stack) {
            self.arm_relief();
        }
    }

    /// Relief expired, or the runtime closes (`all`): who starves, or was not preempted again, is in its
    /// usual class now.
    pub(crate) fn look_at_preempted(&self, all: bool) {
        if !self.preempted.on {
            return;
        }
        let stacks = mem::take(&mut *self.preempted.locked());
        for stack in stacks {
            let lowering = &stack.lowering;
            let again = lowering.again.swap(false, Ordering::Relaxed);
            let ran = os::thread::cpu_time(stack.tid.load(Ordering::Relaxed));
            let starves = lowering.look(ran.unwrap_or(0));
            if starves || !again || all {
                stack.end_demotion(PREEMPTED);
            }
            if again && !all && self.preempted.list(&stack) {
                self.arm_relief();
            }
        }
    }

    /// A thread of the runtime begins. One that was demoted may have made it, and it inherits the class.
    pub(crate) fn leave_inherited_class(&self) {
        if self.preempted.on || self.overrunning.demotions.load(Ordering::Relaxed) > 0 {
            os::thread::leave_idle_class();
        }
    }
}
