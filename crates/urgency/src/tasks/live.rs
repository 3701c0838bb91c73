//! The tasks of a runtime whose future is not yet gone.
//!
//! A suspended task is in no queue: only its wakers know it, and they may lie anywhere. A shutdown
//! that cancels must find it nevertheless, or its waiters would wait for ever. So each task has a
//! slot here from its creation until `Schedule::released`.
//!
//! A slot counts no reference, and needs none. An unfinished task always has a reference (state.rs, rule 7). It leaves
//! its slot before it is published as finished, and both leaving and visiting hold the lock of the shard. So a visitor
//! that finds a task in its slot may count a reference to it.
//!
//! Shards keep the workers apart: a worker enters its tasks into its own shard. Two uncontended
//! locks in the life of a task, about 20 ns. Rejected: a list threaded through the headers; it
//! takes 16 bytes of every task instead of 4, and touches the neighbours' cache lines.

use super::{Header, TaskRef};
use crate::sys::{
    mutex::{Mutex, MutexGuard},
    primitives::atomic::{
        AtomicBool,
        Ordering::{Acquire, Relaxed, Release},
    },
};
use std::{
    mem::ManuallyDrop,
    ptr::{self, NonNull},
};

/// The shard is the upper part of a task's slot number.
const SHARD_SHIFT: u32 = 26;
/// Tasks that one shard can hold: 67 million.
const SHARD_SLOTS: u32 = 1 << SHARD_SHIFT;
const SHARDS: usize = 63;
/// In no slot.
const NOWHERE: u32 = u32::MAX;

/// See the module text.
#[derive(Debug)]
pub(crate) struct LiveTasks {
    shards: Box<[Shard]>,
    /// Set before the first shard is visited, and read under each shard's lock: so a task that was let in is found by
    /// the visit. A thread that sees it set enters no task, whatever the shard. (There was one more flag in each shard.
    /// Code of a job that saw its job end could start a task in a shard that the closing thread had not come to.)
    closed: AtomicBool,
}

/// On cache lines of its own.
#[derive(Debug)]
#[repr(align(128))]
struct Shard(Mutex<Slots>);

#[derive(Debug, Default)]
struct Slots {
    slots: Vec<Slot>,
    /// Head of the chain of vacant slots.
    vacant: Option<u32>,
    taken: usize,
    /// How many tasks were ever entered.
    entered: u64,
}

/// A task, or a place in the chain of vacant slots: one word, since a program with a million tasks has a million slots.
/// The number of the next vacant slot, or none, is marked by the lowest bit, which no task's address has.
#[derive(Clone, Copy, Debug)]
struct Slot(*mut Header);

impl Slot {
    const VACANT: usize = 1;

    fn taken(task: NonNull<Header>) -> Self {
        const { assert!(align_of::<Header>() > Slot::VACANT) };
        Slot(task.as_ptr())
    }

    fn vacant(next: Option<u32>) -> Self {
        // One more, so that 0 is none.
        let next = next.map_or(0, |next| next as usize + 1);
        Slot(ptr::without_provenance_mut(next << 1 | Slot::VACANT))
    }

    fn task(self) -> Option<NonNull<Header>> {
        NonNull::new(self.0).filter(|task| task.addr().get() & Slot::VACANT == 0)
    }

    /// The next vacant slot after this one, which is vacant.
    fn next_vacant(self) -> Option<u32> {
        debug_assert!(self.task().is_none(), "the chain links vacant slots");
        (self.0.addr() >> 1).checked_sub(1).map(|next| next as u32)
    }
}

// SAFETY: a pointer to a task may be used from any thread, as `TaskRef` itself.
unsafe impl Send for Slots {}

impl LiveTasks {
    /// For this many workers (one shard each, at most 63).
    pub(crate) fn new(workers: usize) -> Self {
        let shards = workers.clamp(1, SHARDS);
        LiveTasks {
            shards: (0..shards)
                .map(|_| Shard(Mutex::new(Slots::default())))
                .collect(),
            closed: AtomicBool::new(false),
        }
    }

    fn lock(&self, shard: usize) -> MutexGuard<'_, Slots> {
        self.shards[shard].0.lock()
    }

    /// Enters a new task, before its entry goes into a queue. `near` picks the shard: the index of
    /// the worker, anything for other threads. `false`: closed (or full); the task must go to
    /// `TaskRef::shut_down`.
    #[must_use]
    pub(crate) fn insert(&self, task: &TaskRef, near: usize) -> bool {
        let shard = near % self.shards.len();
        let slot = Slot::taken(task.as_raw());
        let mut slots = self.lock(shard);
        if self.closed.load(Acquire) {
            return false;
        }
        let place = match slots.vacant {
            Some(place) => {
                slots.vacant = slots.slots[place as usize].next_vacant();
                slots.slots[place as usize] = slot;
                place
            }
            None if slots.slots.len() < SHARD_SLOTS as usize => {
                slots.slots.push(slot);
                slots.slots.len() as u32 - 1
            }
            None => return false,
        };
        slots.taken += 1;
        slots.entered += 1;
        let number = ((shard as u32) << SHARD_SHIFT) | place;
        task.header().live_slot.store(number, Relaxed);
        true
    }

    /// The number of a task that is in no table, as a number beyond all slots; `None` for 0, and where these numbers
    /// end.
    #[cfg(not(urgency_loom))]
    pub(crate) fn beyond(place: u32) -> Option<u32> {
        let first = (SHARDS as u32) << SHARD_SHIFT;
        (1..SHARD_SLOTS).contains(&place).then_some(first | place)
    }

    /// The place that was given to [`LiveTasks::beyond`] for this number, if it is one of these.
    #[cfg(not(urgency_loom))]
    pub(crate) fn place_beyond(number: u32) -> Option<u32> {
        (number >> SHARD_SHIFT == SHARDS as u32).then_some(number % SHARD_SLOTS)
    }

    /// Takes a task out; called by `Schedule::released`. `false`: it was never in.
    pub(crate) fn remove(&self, task: &TaskRef) -> bool {
        // Relaxed: stored before the entry was pushed, and the lock orders it for visitors.
        let number = task.header().live_slot.swap(NOWHERE, Relaxed);
        if number == NOWHERE {
            return false;
        }
        let place = number % SHARD_SLOTS;
        let mut slots = self.lock((number >> SHARD_SHIFT) as usize);
        slots.slots[place as usize] = Slot::vacant(slots.vacant);
        slots.vacant = Some(place);
        slots.taken -= 1;
        true
    }

    /// The task in the slot of this number, if `is_it`.
    pub(crate) fn find(
        &self,
        number: u32,
        is_it: impl Fn(NonNull<Header>) -> bool,
    ) -> Option<TaskRef> {
        let shard = (number >> SHARD_SHIFT) as usize;
        if shard >= self.shards.len() {
            return None;
        }
        let slots = self.lock(shard);
        let slot = slots.slots.get((number % SHARD_SLOTS) as usize)?;
        let task = slot.task().filter(|task| is_it(*task))?;
        // SAFETY: as in `tasks`.
        let task = ManuallyDrop::new(unsafe { TaskRef::from_raw(task) });
        Some(TaskRef::clone(&task))
    }

    /// The name of the task at this address, if one is there now. It looks at all of them.
    pub(crate) fn name_at(&self, address: NonNull<Header>) -> Option<fn() -> &'static str> {
        (0..self.shards.len()).find_map(|shard| {
            let slots = self.lock(shard);
            let mut tasks = slots.slots.iter().filter_map(|slot| slot.task());
            let task = tasks.find(|task| *task == address)?;
            // SAFETY: as in `tasks`.
            Some(ManuallyDrop::new(unsafe { TaskRef::from_raw(task) }).name())
        })
    }

    /// The number of live tasks, shard by shard: exact only while nothing changes.
    pub(crate) fn len(&self) -> usize {
        (0..self.shards.len())
            .map(|shard| self.lock(shard).taken)
            .sum()
    }

    /// The number of tasks that were ever entered.
    pub(crate) fn entered(&self) -> u64 {
        (0..self.shards.len())
            .map(|shard| self.lock(shard).entered)
            .sum()
    }

    /// References to all live tasks.
    pub(crate) fn tasks(&self) -> Vec<TaskRef> {
        let mut found = Vec::new();
        for shard in 0..self.shards.len() {
            let slots = self.lock(shard);
            found.extend(slots.slots.iter().filter_map(|slot| {
                // SAFETY: a task in its slot is unfinished and thus counted; it cannot finish
                // while we hold the lock (module text).
                let task = ManuallyDrop::new(unsafe { TaskRef::from_raw(slot.task()?) });
                Some(TaskRef::clone(&task))
            }));
        }
        found
    }

    /// From now on `insert` refuses. References to all live tasks, for `cancel` or `shut_down`.
    pub(crate) fn close(&self) -> Vec<TaskRef> {
        self.closed.store(true, Release);
        self.tasks()
    }

    /// `insert` accepts again. The table is empty, and no other thread uses it.
    #[cfg(not(urgency_loom))]
    pub(crate) fn reopen(&self) {
        self.closed.store(false, Release);
    }

    /// Whether [`LiveTasks::close`] was called. A thread that `insert` refused, or that sees one of the tasks given up,
    /// sees `true`. `insert` refuses a thread that has seen `true`.
    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Acquire)
    }
}
