//! How a thread of the runtime is made, and what a refusal means.
//!
//! A thread is refused by the runtime's limit, or by the system: a limit of the user's or of the control group, or no
//! memory for a stack. The caller does without, and says how at its call.
//!
//! What the system refuses now it may give in a moment, and to do without may be for good. A stack that must wait runs
//! on top of itself what may never end. If no thread is in the poller, the caller may be the last thread that can ask:
//! all others may wait in the kernel for what only the new thread would run. So the caller asks again, after a relief
//! period each time. The system's answer is for good after [`ASKED`] refusals in turn: from then on each caller asks
//! once, until a thread was made. (When one thread in eight was refused and nobody asked again, eight of the first 90
//! test programs had code that waited for good.)
//!
//! *Named race, "the maker comes late"*: a new thread may end, and its stack be another thread's, before its maker goes
//! on. So the maker touches the stack only if the thread waits for a delivery of the maker's. It names the thread then,
//! since the delivery may come before the thread has named itself. (At first the maker always named it: a worker was
//! delivered to a stack whose thread slept, and the thread that was woken had ended.)

use crate::{
    sched::{
        core::{Core, RELIEF_PERIOD},
        stack::Stack,
    },
    sys::{abort::AbortOnPanic, chaos},
};
use std::{
    io,
    sync::{Arc, atomic::Ordering},
    thread,
};

/// How many refusals of the system in turn are no answer for good.
const ASKED: usize = 64;

/// What a new thread does first.
#[derive(Clone, Copy)]
pub(in crate::sched::switch) enum First {
    /// Waits for a delivery that its maker promised.
    Receive,
    /// Looks around as a spare thread: it is wanted in the poller.
    Look,
}

impl Core {
    /// Makes a thread. `None`: refused, by the limit or by the system.
    pub(in crate::sched::switch) fn spawn_thread(&self, first: First) -> Option<Arc<Stack>> {
        loop {
            match self.try_spawn_thread(first) {
                Ok(stack) => return Some(stack),
                Err(error) if self.may_be_brief(&error) => thread::sleep(RELIEF_PERIOD),
                Err(_) => return None,
            }
        }
    }

    /// Whether this refusal may be for a moment.
    fn may_be_brief(&self, error: &io::Error) -> bool {
        error.kind() != io::ErrorKind::QuotaExceeded
            && self.threads.refused_in_turn.load(Ordering::Relaxed) < ASKED
    }

    /// Makes a thread that looks for work, or waits as a spare.
    ///
    /// # Errors
    ///
    /// The system's, or that the limit is reached.
    pub(crate) fn prepare_thread(&self) -> io::Result<()> {
        self.try_spawn_thread(First::Look).map(drop)
    }

    fn try_spawn_thread(&self, first: First) -> io::Result<Arc<Stack>> {
        let threads = &self.threads;
        let options = &threads.options;
        let room = |alive: usize| (alive < options.limit).then_some(alive + 1);
        let reserved = threads
            .alive
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, room);
        let Ok(before) = reserved else {
            threads.refused.fetch_add(1, Ordering::Relaxed);
            return Err(io::Error::new(
                io::ErrorKind::QuotaExceeded,
                format!(
                    "the runtime has {} threads, its limit: raise `Builder::thread_limit`",
                    options.limit
                ),
            ));
        };
        let stack = threads.retired.lock().pop();
        let stack = stack.unwrap_or_else(|| self.new_stack());
        let (core, theirs, kept) = (self.arc(), stack.clone(), self.kept_for_calls());
        let number = threads.made.fetch_add(1, Ordering::Relaxed);
        let run = move || {
            // The program's code is contained where it is called. What unwinds to here was a worker's, of which
            // nobody would hear again.
            AbortOnPanic::during("a bug of the runtime: its thread has panicked", || {
                // SAFETY: the stack is new, or was taken off the list of those whose threads have ended.
                unsafe { core.run_thread(theirs, number, first) };
            });
            drop(kept);
        };
        // The calling stack may be on its way to sleep.
        let spawned = Stack::at_home(|| {
            let name = Stack::outside_scheduler(|| options.name_of(number));
            let thread = thread::Builder::new().name(name);
            if before > self.workers.len() && chaos::one_in(8) {
                return Err(io::ErrorKind::WouldBlock.into());
            }
            thread.stack_size(options.stack_size).spawn(run)
        });
        match spawned {
            Ok(handle) => {
                chaos::delay();
                if matches!(first, First::Receive) {
                    stack.set_thread(handle.thread().clone());
                }
                threads.peak.fetch_max(before + 1, Ordering::Relaxed);
                threads.refused_in_turn.store(0, Ordering::Relaxed);
                Ok(stack)
            }
            Err(error) => {
                threads.alive.fetch_sub(1, Ordering::AcqRel);
                threads.refused.fetch_add(1, Ordering::Relaxed);
                threads.refused_in_turn.fetch_add(1, Ordering::Relaxed);
                threads.retired.lock().push(stack);
                Err(error)
            }
        }
    }

    pub(super) fn new_stack(&self) -> Arc<Stack> {
        let core = self.arc();
        let mut stacks = self.threads.stacks();
        let stack = Stack::numbered(&core, stacks.len() + 1);
        stacks.push(stack.clone());
        stack
    }
}

#[cfg(all(test, target_os = "linux", not(any(miri, urgency_loom))))]
mod tests {
    use super::*;
    use crate::{
        Runtime,
        sched::stack::Me,
        sys::{self, wake_up::Call},
        time::sleep,
    };
    use std::{
        sync::{OnceLock, Weak, atomic::AtomicUsize},
        time::Duration,
    };

    /// What a thread reads that a call of `runtime` makes, after `changes` to the thread that calls.
    fn read_by_made<R: Send + 'static>(
        reads: impl Fn() -> R + Send + Sync + 'static,
        changes: impl Fn(Me<'_>),
    ) -> R {
        let (says, hears) = std::sync::mpsc::channel();
        let begins = move || says.send(reads()).unwrap();
        let runtime = Runtime::builder().workers(1).on_thread_start(begins);
        let runtime = runtime.build().unwrap();
        let core = runtime.job().core.clone();
        runtime.run(|| {
            Stack::with_current(|me| changes(me.unwrap()));
            core.prepare_thread().unwrap();
            Stack::with_current(|me| me.unwrap().set_urgent(false));
            hears.iter().next().unwrap()
        })
    }

    /// A stack that waits may have been called before its thread sleeps: see `protocol/home.rs`.
    #[test]
    fn a_thread_made_by_a_thread_that_was_called_may_run_on_all_processors() {
        let affinity = || sys::thread::affinity(&[0]);
        let call_here = || Call::here(sys::thread::current_id());
        let all = affinity();
        let made = read_by_made(affinity, |me| me.home().call(call_here));
        assert_eq!((made, affinity()), (all.clone(), all));
    }

    /// A name is given while the thread is made: what others do meanwhile happens there.
    #[test]
    fn no_other_thread_is_made_for_the_poller_while_one_is_on_its_way() {
        let core = Arc::new(OnceLock::<Weak<Core>>::new());
        let [making, most] = [(); 2].map(|()| Arc::new(AtomicUsize::new(0)));
        let (theirs, (now, nested)) = (core.clone(), (making.clone(), most.clone()));
        let name = move || {
            let depth = 1 + now.fetch_add(1, Ordering::SeqCst);
            nested.fetch_max(depth, Ordering::SeqCst);
            if depth < 4
                && let Some(core) = theirs.get().and_then(Weak::upgrade)
            {
                core.want_poller();
            }
            now.fetch_sub(1, Ordering::SeqCst);
            String::from("made")
        };
        let runtime = Runtime::builder().workers(1).thread_name_fn(name);
        let runtime = runtime.build().unwrap();
        core.set(Arc::downgrade(&runtime.job().core)).unwrap();
        let ours = &runtime.job().core;
        while most.load(Ordering::SeqCst) == 0 {
            ours.want_poller();
        }
        assert_eq!(most.load(Ordering::SeqCst), 1);
        // It arrives, and others are sent after it.
        runtime.block_on(sleep(Duration::from_millis(1)));
    }

    #[test]
    fn a_thread_made_by_a_thread_that_came_from_the_poller_has_slices_of_usual_length() {
        let usual = sys::thread::slice();
        let made = read_by_made(sys::thread::slice, |me| me.set_urgent(true));
        assert_eq!(made, usual);
    }
}
