//! The state word: one atomic that says which thread owns which part of a task.
//!
//! Low bits are facts. The next 16 name the runner, the rest counts references.
//!
//! | bit | meaning | set by | cleared by |
//! | --- | --- | --- | --- |
//! | `SCHEDULED` | ready: to be claimed, or woken while running | wakers, `cancel`, `new` | the claim |
//! | `RUNNING` | a thread owns the future | claim, `seize`, the last drop | `suspend`, completion |
//! | `COMPLETED` | the future is gone, the result is stored | the owner of the future | never |
//! | `CANCELLED` | the future is to be dropped, not polled | `cancel`, `seize`, the last drop | never |
//! | `SHUT_DOWN` | the cancellation came from the runtime's end | `seize` | never |
//! | `HANDLE` | a handle may still ask for the result | `new` | `drop_handle` |
//! | `WAITER` | the waiter slot holds a waker | the handle | the handle |
//!
//! The *runner* is the stack that claimed the task last, by its number in the scheduler ([`Runner`]). A claim writes it
//! in the step that sets `RUNNING`, and no other step does.
//!
//! # Rules
//!
//! 1. *Future.* Only the thread that set `RUNNING` touches the future. It is set only while
//!    `RUNNING` and `COMPLETED` are clear, by an Acquire step; it is cleared by a Release step.
//! 2. *Entry.* The thread that sets `SCHEDULED` while `RUNNING` is clear pushes one entry into a queue, and `suspend`
//!    pushes one when it finds `SCHEDULED`. So `SCHEDULED` without `RUNNING` means: an entry is in a queue or on its
//!    way there, and no wake-up is lost.
//! 3. *Claim.* An entry runs the task only if it turns `SCHEDULED` into `RUNNING`; any other entry (a boost makes a
//!    second one, and a waiter that runs what it awaits is one) is stale and does nothing. A stale entry may claim a
//!    later scheduling than its own; then the later scheduling's entry is the stale one. Either way each scheduling
//!    leads to one run.
//! 4. *Publication.* A wake-up is a read-modify-write even if the task is already scheduled, so
//!    that the claim, which comes later in the order of this word, sees what the waker wrote before.
//! 5. *Result.* `COMPLETED` is set once, by the owner of the future. If `HANDLE` is set in that
//!    very step, the result belongs to the handle from then on; otherwise the owner has already
//!    dropped it, because a cleared `HANDLE` never comes back.
//! 6. *Waiter slot.* While `WAITER` is clear the handle owns the slot; while it is set no thread writes the slot. If
//!    `COMPLETED` is set in a step that finds `WAITER`, the waker inside belongs to the completer, and the handle never
//!    touches the slot again but to compare pointers.
//! 7. *References.* Each queue entry, waker, handle and runner holds one. The last reference to an
//!    unfinished task is never just dropped: if the task is suspended, nothing can wake it any more,
//!    and the reference becomes an entry with `CANCELLED`, so that a worker drops the future; if it
//!    is scheduled (its entry is being thrown away), the dropper claims it. So the count of an
//!    unfinished task never reaches zero, and memory is freed by the last reference after `COMPLETED`.
//!
//! # Races with a name
//!
//! - *wake against suspend*: both change this word; either `suspend` sees `SCHEDULED` and puts the
//!   task back, or the waker sees it idle and does.
//! - *detach against completion*: `drop_handle` and `complete` both decide by one compare-exchange;
//!   the loser sees the winner's bit and drops the result, so exactly one does.
//! - *register against completion*: `set_waiter` fails once `COMPLETED` is set; the handle then takes
//!   its waker back and the result.
//! - *raise against wake* (boost.rs): `clone_ref_and_look` is a read-modify-write between storing the level and
//!   looking at the flags; either it sees `SCHEDULED` and makes a second entry, or the wake-up that
//!   comes later sees the new level.
//! - *raise against claim* (boost.rs): the same step either comes before the claim, and the runner sees the new level,
//!   or it sees `RUNNING` and in the same word the runner of that very claim. What the runner wrote before the claim is
//!   visible then. (The runner is no field of its own: an entry that is stale would have named a thread that does not
//!   run the task, and after the claim the name would come too late.) A task that was seized, or given up with its last
//!   reference, is `RUNNING` too, and its runner is an old one: so the scheduler asks that stack what it runs.

use super::join_error::JoinErrorKind;
use crate::sys::primitives::atomic::{
    AtomicUsize,
    Ordering::{AcqRel, Acquire, Relaxed},
};

const SCHEDULED: usize = 1;
const RUNNING: usize = 1 << 1;
const COMPLETED: usize = 1 << 2;
const CANCELLED: usize = 1 << 3;
const SHUT_DOWN: usize = 1 << 4;
const HANDLE: usize = 1 << 5;
const WAITER: usize = 1 << 6;
const RUNNER_SHIFT: u32 = 7;
/// With a word of 32 bits no runner has a name.
const RUNNER_BITS: u32 = if usize::BITS < 64 { 0 } else { 16 };
const RUNNER: usize = ((1 << RUNNER_BITS) - 1) << RUNNER_SHIFT;
const REF: usize = 1 << (RUNNER_SHIFT + RUNNER_BITS);

/// See the module text.
pub(super) struct State(AtomicUsize);

/// The name of a thread that runs tasks, in its place in the word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Runner(usize);

impl Runner {
    /// A thread that raises a task of this runner has to search for it.
    pub(crate) const UNNAMED: Runner = Runner(0);

    /// The scheduler's runner with this number; the numbers begin at 1. If the number does not fit into the word, the
    /// runner has no name.
    pub(crate) fn numbered(number: usize) -> Self {
        if number <= RUNNER >> RUNNER_SHIFT {
            Runner(number << RUNNER_SHIFT)
        } else {
            Runner::UNNAMED
        }
    }

    /// Its number, if it has a name.
    pub(crate) fn number(self) -> Option<usize> {
        (self != Runner::UNNAMED).then_some(self.0 >> RUNNER_SHIFT)
    }
}

/// What an entry found when it tried to claim its task.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Claim {
    /// The caller owns the future and polls it.
    Poll,
    /// The caller owns the future and drops it.
    Abandon,
    /// Another entry claimed it: nothing to do.
    Stale,
}

/// What follows a poll that returned `Pending`.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Suspend {
    /// Suspended; the runner's reference is gone.
    Idle,
    /// Woken meanwhile: the runner pushes its reference as an entry.
    Again,
    /// To be dropped; the runner still owns the future.
    Abandon,
}

/// What the owner of the future does after it stored the result.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Complete {
    /// Nothing: the result is the handle's, the owner's reference is gone.
    Done,
    /// Take the waker out of the slot, wake it, drop the reference.
    WakeWaiter,
    /// There is no handle for the result: drop it, then call [`State::complete_detached`].
    Detached,
}

/// What becomes of a reference that is given up.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Dropped {
    /// It is gone.
    Gone,
    /// It was the last one of a finished task: free the memory.
    Free,
    /// It was the last one of a suspended task and became an entry: schedule it.
    Schedule,
    /// It was the last one of a scheduled task and became a claim: drop the future, then complete.
    Claimed,
}

/// What a handle does when it goes away.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Detach {
    /// Nothing: the reference is gone as well.
    Done,
    /// The task was finished: drop the result, then the reference.
    DropResult,
    /// Drop the waker in the slot, then the reference.
    DropWaiter,
    /// Drop the reference.
    DropRef,
}

fn refs(word: usize) -> usize {
    word / REF
}

/// Ends the program when so many wakers were leaked that the count would soon wrap, and with it
/// free a task in use.
#[inline]
fn check(word: usize) -> usize {
    if word > isize::MAX as usize {
        std::process::abort();
    }
    word
}

fn is_idle(word: usize) -> bool {
    word & (SCHEDULED | RUNNING | COMPLETED) == 0
}

impl State {
    /// Scheduled, with one entry and one handle.
    pub(super) fn new() -> Self {
        State(AtomicUsize::new(SCHEDULED | HANDLE | (2 * REF)))
    }

    /// One step of the word: `step` names the next value, or `None` to leave it as it is.
    #[inline]
    fn update<R>(&self, mut step: impl FnMut(usize) -> (Option<usize>, R)) -> R {
        let mut now = self.0.load(Acquire);
        loop {
            let (next, result) = step(now);
            let Some(next) = next else { return result };
            match self.0.compare_exchange_weak(now, next, AcqRel, Acquire) {
                Ok(_) => return result,
                Err(seen) => now = seen,
            }
        }
    }

    /// An entry tries to become the runner (rule 3), under this name.
    #[inline]
    pub(super) fn claim(&self, runner: Runner) -> Claim {
        self.update(|word| {
            if word & (SCHEDULED | RUNNING | COMPLETED) != SCHEDULED {
                return (None, Claim::Stale);
            }
            let claim = if word & CANCELLED != 0 {
                Claim::Abandon
            } else {
                Claim::Poll
            };
            (
                Some((word & !(SCHEDULED | RUNNER)) | RUNNING | runner.0),
                claim,
            )
        })
    }

    /// The runtime's end takes the future away from a task that is not running. `false`: the task is running, and its
    /// runner will drop the future when the task suspends; or the task is finished.
    pub(super) fn seize(&self) -> bool {
        self.update(|word| {
            if word & COMPLETED != 0 {
                return (None, false);
            }
            let mark = if word & CANCELLED != 0 {
                word
            } else {
                word | CANCELLED | SHUT_DOWN
            };
            if word & RUNNING != 0 {
                (Some(mark), false)
            } else {
                (Some((mark & !SCHEDULED) | RUNNING), true)
            }
        })
    }

    /// Why a seized or claimed task is given up.
    pub(super) fn reason(&self) -> JoinErrorKind {
        match self.0.load(Relaxed) & SHUT_DOWN {
            0 => JoinErrorKind::Cancelled,
            _ => JoinErrorKind::ShutDown,
        }
    }

    /// The poll returned `Pending`.
    #[inline]
    pub(super) fn suspend(&self) -> Suspend {
        self.update(|word| {
            if word & CANCELLED != 0 {
                (None, Suspend::Abandon)
            } else if word & SCHEDULED != 0 {
                (Some(word & !RUNNING), Suspend::Again)
            } else if refs(word) == 1 {
                // Only the runner is left: nothing could ever wake it (rule 7).
                (None, Suspend::Abandon)
            } else {
                (Some(word - RUNNING - REF), Suspend::Idle)
            }
        })
    }

    /// The result is stored (rule 5).
    #[inline]
    pub(super) fn complete(&self) -> Complete {
        self.update(|word| {
            let done = (word & !(RUNNING | SCHEDULED)) | COMPLETED;
            if word & HANDLE == 0 {
                (None, Complete::Detached)
            } else if word & WAITER == 0 {
                (Some(done - REF), Complete::Done)
            } else {
                (Some(done), Complete::WakeWaiter)
            }
        })
    }

    /// The unwanted result is dropped. `true`: free the memory.
    #[inline]
    pub(super) fn complete_detached(&self) -> bool {
        // The only reference, and nothing else could make one: no locked instruction needed.
        if refs(self.0.load(Acquire)) == 1 {
            return true;
        }
        refs(self.0.fetch_sub(REF + RUNNING - COMPLETED, AcqRel)) == 1
    }

    /// A waker is used up. `Some`: what else to do with its reference; `Schedule` after a wake-up
    /// of a suspended task.
    #[inline]
    pub(super) fn wake(&self) -> Dropped {
        let last = self.update(|word| {
            if is_idle(word) {
                (Some(word | SCHEDULED), Some(Dropped::Schedule))
            } else if refs(word) == 1 {
                (None, None)
            } else if word & COMPLETED != 0 {
                (Some(word - REF), Some(Dropped::Gone))
            } else {
                (Some((word | SCHEDULED) - REF), Some(Dropped::Gone))
            }
        });
        last.unwrap_or_else(|| self.drop_ref())
    }

    /// A wake-up that leaves the waker alive. `true`: schedule a new reference, already counted.
    #[inline]
    pub(super) fn wake_by_ref(&self) -> bool {
        self.update(|word| {
            if word & COMPLETED != 0 {
                (None, false)
            } else if is_idle(word) {
                (Some((word | SCHEDULED) + REF), true)
            } else {
                // Rule 4: written even if nothing changes.
                (Some(word | SCHEDULED), false)
            }
        })
    }

    /// Asks for the end. `true`: schedule a new reference, already counted.
    pub(super) fn cancel(&self) -> bool {
        self.update(|word| {
            if word & (COMPLETED | CANCELLED) != 0 {
                (None, false)
            } else if is_idle(word) {
                (Some((word | CANCELLED | SCHEDULED) + REF), true)
            } else {
                (Some(word | CANCELLED), false)
            }
        })
    }

    /// One more reference; the caller has one already.
    #[inline]
    pub(super) fn clone_ref(&self) {
        // Relaxed as in any reference count: the new reference is made from one that orders it.
        check(self.0.fetch_add(REF, Relaxed));
    }

    /// One more reference, and what the word said; see the race "raise against wake".
    pub(super) fn clone_ref_and_look(&self) -> Seen {
        Seen(check(self.0.fetch_add(REF, AcqRel)))
    }

    /// One reference less (rule 7).
    #[inline]
    pub(super) fn drop_ref(&self) -> Dropped {
        self.update(|word| {
            if refs(word) > 1 {
                (Some(word - REF), Dropped::Gone)
            } else if word & COMPLETED != 0 {
                (None, Dropped::Free)
            } else if word & SCHEDULED != 0 {
                let next = (word & !SCHEDULED) | RUNNING | CANCELLED;
                (Some(next), Dropped::Claimed)
            } else {
                (Some(word | SCHEDULED | CANCELLED), Dropped::Schedule)
            }
        })
    }

    /// The handle wrote a waker into the slot. `false`: finished meanwhile, the slot stays the
    /// handle's.
    pub(super) fn set_waiter(&self) -> bool {
        self.update(|word| {
            if word & COMPLETED != 0 {
                (None, false)
            } else {
                (Some(word | WAITER), true)
            }
        })
    }

    /// The handle wants the slot back. `false`: finished meanwhile, the completer has the waker.
    pub(super) fn unset_waiter(&self) -> bool {
        self.update(|word| {
            if word & COMPLETED != 0 {
                (None, false)
            } else {
                (Some(word & !WAITER), true)
            }
        })
    }

    /// The handle goes away.
    #[inline]
    pub(super) fn drop_handle(&self) -> Detach {
        self.update(|word| {
            if word & COMPLETED != 0 {
                (None, Detach::DropResult)
            } else if word & WAITER != 0 {
                (Some(word & !(HANDLE | WAITER)), Detach::DropWaiter)
            } else if refs(word) > 1 {
                (Some((word & !HANDLE) - REF), Detach::Done)
            } else {
                (Some(word & !HANDLE), Detach::DropRef)
            }
        })
    }

    /// What the word says at this moment.
    #[inline]
    pub(super) fn look(&self) -> Seen {
        Seen(self.0.load(Acquire))
    }
}

/// A value that the state word had.
#[derive(Clone, Copy)]
pub(super) struct Seen(usize);

impl Seen {
    /// The result is stored.
    #[inline]
    pub(super) fn is_completed(self) -> bool {
        self.0 & COMPLETED != 0
    }

    /// The waiter slot is full.
    #[inline]
    pub(super) fn has_waiter(self) -> bool {
        self.0 & WAITER != 0
    }

    /// No handle is left to ask for the result.
    pub(super) fn is_detached(self) -> bool {
        self.0 & HANDLE == 0
    }

    /// A thread owns the future.
    pub(super) fn is_running(self) -> bool {
        self.0 & RUNNING != 0
    }

    /// The runner that claimed the task last.
    pub(super) fn runner(self) -> Runner {
        Runner(self.0 & RUNNER)
    }

    /// An entry is in a queue and none has claimed it.
    pub(super) fn is_queued(self) -> bool {
        self.0 & (SCHEDULED | RUNNING | COMPLETED) == SCHEDULED
    }
}

impl std::fmt::Debug for Seen {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names = [
            (SCHEDULED, "scheduled "),
            (RUNNING, "running "),
            (COMPLETED, "completed "),
            (CANCELLED, "cancelled "),
            (SHUT_DOWN, "shut-down "),
            (HANDLE, "handle "),
            (WAITER, "waiter "),
        ];
        for (bit, name) in names {
            if self.0 & bit != 0 {
                f.write_str(name)?;
            }
        }
        write!(f, "{} references", refs(self.0))
    }
}
