//! The deque of a stack: its forks that have not started yet.
//!
//! Oldest first, in an array: `[0, top)` were stolen, `[top, split)` are *public*, `[split, bottom)`
//! are *private*. The owner pushes and pops at the bottom with plain stores, no fence, no atomic
//! read-modify-write, as long as it stays in the private part; thieves take the oldest public fork.
//! It is Cilk's THE protocol with Lace's split and an asymmetric fence ([`super::fence`]).
//!
//! # What may be written by which thread
//!
//! - `bottom`, `room`: the owner, at any time. What the owner does is in `impl Own<Deque>`.
//! - slots: the owner, at `bottom`, before it moves `bottom` up.
//! - `top`, `split`, the buffer: the holder of the lock. The owner reads `split` without the lock.
//!
//! # How a private fork becomes public
//!
//! 1. The owner answers a request (the SHARE bit of its attention word) with [`Own::publish`]: the oldest half of the
//!    private part. This is the usual way and costs no fence.
//! 2. A thief raises the split itself, for an owner that does not answer because it is in a long leaf: it stores the
//!    new split, makes every thread execute a barrier, and reads `bottom`. If the owner popped below the new split
//!    meanwhile, the thief lowers the split again.
//!
//! # Why no fork is run twice
//!
//! The owner's pop stores `bottom = i` and then reads `split`. If `split <= i`, the fork at `i` was private and no
//! thief touches it: a raise that the owner did not see yet ordered its read of `bottom` after the owner's store (the
//! barrier), so the raise sees `bottom = i` and stays below. If `split > i` the owner takes the lock, and `top` tells
//! whether the fork was stolen. *Named race, "pop under raise"*: both see each other; then both are in the locked part,
//! where the order of the lock decides.
//!
//! A pop that finds its fork stolen resets the deque to that index: everything below was stolen before, and forks that
//! are pushed while the owner waits for the stolen one start there.
//!
//! A slot's lowest bit says that the fork is *its own box* (a child of a scope), and not in the frame of a `join`. Code
//! that runs forks in the midst of a computation looks at the bit first, since a `join` that has not ended takes its
//! fork back by its index.
//!
//! # Which threads wait for the lock
//!
//! The owner alone. A thief goes elsewhere, and a thread that looks at all stacks for relief leaves the deque to its
//! next look. Both may be urgent, and the lock's holder a thread that was lowered and waits for other processes: an
//! expiry that waited for such a thief stopped all events for up to half a second.
//!
//! Only memory bounds the array. Growing takes the lock, so thieves need no reclamation scheme. Rejected: a linked list
//! through the frames (0.1 ns slower, and halving needs indices); a lock-free steal (a thief's cost is dominated by
//! cache misses anyway, and the lock lets growth and publication be simple).

use super::{fence, own::Own};
use crate::sys::{
    chaos,
    mutex::Mutex,
    primitives::atomic::{AtomicPtr, AtomicUsize, Ordering},
};
use crossbeam_utils::CachePadded;
use std::ptr;

type Slot<T> = AtomicPtr<T>;

/// The first array: enough for any recursion that halves its work.
#[cfg(not(urgency_loom))]
const INITIAL_SLOTS: usize = 256;
#[cfg(urgency_loom)]
const INITIAL_SLOTS: usize = 4;

/// In a slot: the fork is a box of its own.
const BOXED: usize = 1;

fn of_slot<T>(slot: &Slot<T>) -> *const T {
    slot.load(Ordering::Relaxed)
        .map_addr(|address| address & !BOXED)
}

/// How the owner's pop ended.
#[derive(Debug, PartialEq, Eq, Clone, Copy)]
pub(crate) enum Popped {
    /// The fork is the owner's again.
    Mine,
    /// A thief has it; the deque is empty and starts over at the fork's index.
    Stolen,
}

/// How a thief's attempt ended.
#[derive(Debug, PartialEq, Eq, Clone, Copy)]
pub(crate) enum Stolen<R> {
    /// What was made of a fork, and whether more public forks are left.
    Forked(R, bool),
    /// There are forks, but none is public.
    OnlyPrivate,
    /// No fork at all.
    Empty,
    /// Another thief, or the owner, is at it.
    Contended,
}

/// See the module's text. `T` is what was forked; the deque never dereferences it.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Deque<T> {
    bottom: AtomicUsize,
    split: AtomicUsize,
    /// The array, for the owner; the same as in `buffer`.
    slots: AtomicPtr<Slot<T>>,
    /// The index of the array's last slot; written by the owner.
    room: AtomicUsize,
    /// On lines of its own, so that the owner's fields and its stack's attention share one: a searcher
    /// looks at this all the time, and must not take the owner's line away.
    public: Box<CachePadded<Public<T>>>,
}

/// What thieves look at.
#[derive(Debug)]
struct Public<T> {
    top: AtomicUsize,
    /// The same as the owner's `split`.
    split: AtomicUsize,
    /// Not a box: a box that is moved must have the only pointer to its slots, and `slots` is another.
    buffer: Mutex<Vec<Slot<T>>>,
}

impl<T> Deque<T> {
    pub(crate) fn new() -> Self {
        let buffer = empty_slots(INITIAL_SLOTS);
        Deque {
            bottom: AtomicUsize::new(0),
            split: AtomicUsize::new(0),
            slots: AtomicPtr::new(buffer.as_ptr().cast_mut()),
            room: AtomicUsize::new(buffer.len() - 1),
            public: Box::new(CachePadded::new(Public {
                top: AtomicUsize::new(0),
                split: AtomicUsize::new(0),
                buffer: Mutex::new(buffer),
            })),
        }
    }

    /// The index of the array's last slot: a push there must be followed by [`Own::make_room`].
    /// Meaningful for the owner.
    #[inline(always)]
    pub(crate) fn room(&self) -> usize {
        self.room.load(Ordering::Relaxed)
    }

    /// The index of the next fork to be pushed: how many forks a frame that remembers an earlier value has above it.
    /// Meaningful for the owner.
    #[inline(always)]
    pub(crate) fn bottom(&self) -> usize {
        self.bottom.load(Ordering::Relaxed)
    }

    /// A thief takes the oldest public fork, if `admit` (asked when there is one) allows it. `on_steal` runs
    /// under the lock with the fork and its index, before the owner can learn that the fork is gone; the thief gets
    /// what it returns. With `raise`, a thief that finds only private forks makes the oldest half public itself.
    pub(crate) fn steal<R>(
        &self,
        raise: bool,
        admit: impl FnOnce() -> bool,
        on_steal: impl FnOnce(*const T, usize) -> R,
    ) -> Stolen<R> {
        if !raise && chaos::one_in(4) {
            return Stolen::Contended;
        }
        let Some(buffer) = self.public.buffer.try_lock() else {
            return Stolen::Contended;
        };
        let top = self.public.top.load(Ordering::Relaxed);
        let mut split = self.split.load(Ordering::Relaxed);
        if top >= split {
            let bottom = self.bottom.load(Ordering::Acquire);
            if bottom <= split {
                return Stolen::Empty;
            }
            if !raise {
                return Stolen::OnlyPrivate;
            }
            split = self.raise(split, split + (bottom - split).div_ceil(2));
            if top >= split {
                return Stolen::OnlyPrivate;
            }
        }
        if !admit() {
            return Stolen::Empty;
        }
        let forked = of_slot(&buffer[top]);
        self.public.top.store(top + 1, Ordering::Relaxed);
        Stolen::Forked(on_steal(forked, top), top + 1 < split)
    }

    /// Makes all forks public, for an owner that is not asked. Returns whether there are any; `None`: another thread
    /// has the lock.
    pub(crate) fn raise_all(&self) -> Option<bool> {
        let _buffer = self.public.buffer.try_lock()?;
        let split = self.split.load(Ordering::Relaxed);
        let bottom = self.bottom.load(Ordering::Acquire);
        let public = if bottom > split {
            self.raise(split, bottom)
        } else {
            split
        };
        Some(self.public.top.load(Ordering::Relaxed) < public)
    }

    /// Raises the split to `wanted`, or as far as there are forks. Called with the lock held.
    fn raise(&self, split: usize, wanted: usize) -> usize {
        self.set_split(wanted);
        chaos::delay();
        let granted = if fence::heavy() {
            self.bottom.load(Ordering::Acquire).clamp(split, wanted)
        } else {
            split
        };
        if granted != wanted {
            self.set_split(granted);
        }
        granted
    }

    /// Called with the lock held.
    fn set_split(&self, split: usize) {
        self.split.store(split, Ordering::Relaxed);
        self.public.split.store(split, Ordering::Relaxed);
    }

    /// A guess, for thieves: whether there is anything to take or to ask for.
    #[inline]
    pub(crate) fn seems_empty(&self) -> bool {
        self.public.top.load(Ordering::Relaxed) >= self.bottom.load(Ordering::Relaxed)
    }

    /// A guess: how many forks there are.
    pub(crate) fn forks(&self) -> usize {
        let top = self.public.top.load(Ordering::Relaxed);
        self.bottom.load(Ordering::Relaxed).saturating_sub(top)
    }

    /// A guess: how many public forks there are.
    pub(crate) fn public_forks(&self) -> usize {
        let top = self.public.top.load(Ordering::Relaxed);
        self.public
            .split
            .load(Ordering::Relaxed)
            .saturating_sub(top)
    }

    /// A guess, for thieves: whether there is a public fork.
    #[inline]
    pub(crate) fn seems_public(&self) -> bool {
        self.public.top.load(Ordering::Relaxed) < self.public.split.load(Ordering::Relaxed)
    }
}

impl<T> Own<'_, Deque<T>> {
    /// Pushes a fork and returns its index. If that is not below [`Deque::room`], [`Own::make_room`] follows before the
    /// next push.
    ///
    /// What the owner reads afterwards, its attention word above all, is read after the push in the sense of the
    /// asymmetric fence: a thief that asked for forks, executed the heavy side and saw no fork here is seen. (A first
    /// version asked before it pushed: a fork made in between slept until its owner's next scheduling point.)
    ///
    /// # Safety
    /// The fork stays valid until it was popped as [`Popped::Mine`] or until its thief is done with it.
    #[inline(always)]
    pub(crate) unsafe fn push(self, forked: *const T) -> usize {
        let index = self.bottom();
        debug_assert!(index <= self.room.load(Ordering::Relaxed));
        let slots = self.slots.load(Ordering::Relaxed);
        // SAFETY: `index` is at most `room`, the last slot's index, and `slots` is the current array: only the owner,
        // this thread, replaces it.
        let slot = unsafe { &*slots.add(index) };
        slot.store(forked.cast_mut(), Ordering::Relaxed);
        self.bottom.store(index + 1, Ordering::Release);
        fence::light();
        index
    }

    /// As [`Own::push`], for a fork that is a box of its own.
    ///
    /// # Safety
    /// As [`Own::push`].
    #[inline(always)]
    pub(crate) unsafe fn push_boxed(self, forked: *const T) {
        // SAFETY: by the caller's promise. Every reader of the slot removes the bit.
        unsafe { self.push(forked.map_addr(|address| address | BOXED)) };
    }

    /// Whether all forks from `base` on are boxes of their own: no `join` that was called since then is
    /// unfinished.
    #[cold]
    pub(crate) fn is_boxed_above(self, base: usize) -> bool {
        let slots = self.slots.load(Ordering::Relaxed);
        (base..self.bottom()).all(|index| {
            // SAFETY: the index was pushed, so it is in the array, which only the owner replaces.
            let slot = unsafe { &*slots.add(index) };
            slot.load(Ordering::Relaxed).addr() & BOXED != 0
        })
    }

    /// Grows the array if the last push took its last slot.
    #[inline]
    pub(crate) fn make_room(self) {
        if self.bottom() > self.room.load(Ordering::Relaxed) {
            self.grow_cold();
        }
    }

    /// Takes the youngest fork back: the one at `index`. If that index was in the public part, `pop_public` is called,
    /// which calls [`Own::pop_public`].
    ///
    /// # Safety
    /// `index` is `bottom() - 1`.
    #[inline(always)]
    pub(crate) unsafe fn pop(self, index: usize, pop_public: impl FnOnce() -> Popped) -> Popped {
        debug_assert_eq!(index + 1, self.bottom());
        self.bottom.store(index, Ordering::Release);
        fence::light();
        if self.split.load(Ordering::Relaxed) <= index {
            Popped::Mine
        } else {
            pop_public()
        }
    }

    /// The fork in the slot of an index that the owner just popped as its own.
    ///
    /// # Safety
    /// The index comes from a successful pop, and nothing was pushed since.
    #[inline]
    pub(crate) unsafe fn popped(self, index: usize) -> *const T {
        let slots = self.slots.load(Ordering::Relaxed);
        // SAFETY: the index was pushed, so it is in the array.
        of_slot(unsafe { &*slots.add(index) })
    }

    /// The rest of a pop in the public part.
    ///
    /// # Safety
    /// It is called by [`Own::pop`], with its index.
    #[cold]
    pub(crate) unsafe fn pop_public(self, index: usize) -> Popped {
        let _buffer = self.public.buffer.lock();
        let top = self.public.top.load(Ordering::Relaxed);
        let stolen = top > index;
        if stolen {
            self.public.top.store(index, Ordering::Relaxed);
        }
        self.set_split(index);
        if stolen { Popped::Stolen } else { Popped::Mine }
    }

    /// Starts over at `base`: all forks from there on were stolen, as a pop has just shown.
    ///
    /// # Safety
    /// The last step of the owner was a pop of an index not below `base`, and its answer [`Popped::Stolen`].
    #[cold]
    pub(crate) unsafe fn start_over(self, base: usize) {
        let _buffer = self.public.buffer.lock();
        debug_assert!(self.public.top.load(Ordering::Relaxed) == self.bottom());
        self.public.top.store(base, Ordering::Relaxed);
        self.set_split(base);
        self.bottom.store(base, Ordering::Release);
    }

    /// Runs `f` while no thief is between its choice of a fork and the end of its `on_steal`.
    pub(crate) fn without_thieves(self, f: impl FnOnce()) {
        let _buffer = self.public.buffer.lock();
        f();
    }

    /// Makes the oldest half of the private part public (all of it with `all`). Returns whether anything is public now.
    pub(crate) fn publish(self, all: bool) -> bool {
        let _buffer = self.public.buffer.lock();
        let bottom = self.bottom.load(Ordering::Acquire);
        let split = self.split.load(Ordering::Relaxed).min(bottom);
        let private = bottom - split;
        let share = if all { private } else { private.div_ceil(2) };
        self.set_split(split + share);
        self.public.top.load(Ordering::Relaxed) < split + share
    }

    #[cold]
    #[inline(never)]
    fn grow_cold(self) {
        let mut buffer = self.public.buffer.lock();
        let grown = empty_slots(buffer.len() * 2);
        for (new, old) in grown.iter().zip(buffer.iter()) {
            new.store(old.load(Ordering::Relaxed), Ordering::Relaxed);
        }
        self.slots
            .store(grown.as_ptr().cast_mut(), Ordering::Relaxed);
        self.room.store(grown.len() - 1, Ordering::Relaxed);
        *buffer = grown;
    }
}

fn empty_slots<T>(length: usize) -> Vec<Slot<T>> {
    (0..length).map(|_| Slot::new(ptr::null_mut())).collect()
}

#[cfg(all(test, urgency_loom))]
#[path = "deque_loom.rs"]
mod loom_models;
