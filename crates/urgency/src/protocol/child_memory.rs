//! The memory in which a stack keeps the children of its scopes until they begin.
//!
//! Children lie in the stack's deque, and their memory follows the deque: last in, first out. So it is a block whose
//! used part ends at `top`: to take some moves `top` up, and a child that its stack takes back moves `top` down to
//! where the child begins. That costs an addition where an allocation and its end cost more than the rest of a child.
//!
//! # Rules
//!
//! 1. Only the stack takes memory and gives it back.
//! 2. A child leaves the memory before it begins. Its stack moves it into a frame. A thief moves it into a box, under
//!    the deque's lock, before the owner can see that it is gone.
//! 3. A pop that finds its fork stolen shows, under that lock, that all older forks were stolen before, and the younger
//!    ones are gone. So nothing in the block is a child any more: the block starts over.
//! 4. What does not fit goes into a box: a child that is large, or that comes when the block is full.
//!
//! What a stolen child leaves behind lies below other children, and is used again when the block starts over, or when
//! an older child of the same stack is taken back.

use super::own::Own;
use std::{
    alloc::{Layout, alloc, dealloc},
    ptr::{self, NonNull},
    sync::atomic::{AtomicPtr, AtomicUsize, Ordering::Relaxed},
};

/// The size of the block: 1024 children of four words.
const SIZE: usize = 1 << 16;
/// The alignment of each child.
const ALIGN: usize = 16;
/// A child that is larger would take the memory of many.
const LARGEST: usize = 1 << 10;

const LAYOUT: Layout = match Layout::from_size_align(SIZE, ALIGN) {
    Ok(layout) => layout,
    Err(_) => panic!("the size is a multiple of the alignment"),
};

/// See the module's text.
#[derive(Debug)]
pub(crate) struct ChildMemory {
    /// The block; null until the stack spawns a child.
    block: AtomicPtr<u8>,
    /// Where its unused part begins. As long as there is no block, it has no unused part.
    top: AtomicUsize,
}

impl ChildMemory {
    pub(crate) const fn new() -> Self {
        ChildMemory {
            block: AtomicPtr::new(ptr::null_mut()),
            top: AtomicUsize::new(SIZE),
        }
    }
}

impl Own<'_, ChildMemory> {
    /// Memory for a child of this layout, if there is some.
    #[inline(always)]
    pub(crate) fn take(self, child: Layout) -> Option<NonNull<u8>> {
        if child.align() > ALIGN || child.size() > LARGEST {
            return None;
        }
        let size = child.size().next_multiple_of(ALIGN);
        let top = self.top.load(Relaxed);
        if top + size > SIZE {
            return self.take_cold(size);
        }
        self.top.store(top + size, Relaxed);
        // SAFETY: `top` is inside of the block, or at its end.
        NonNull::new(unsafe { self.block.load(Relaxed).add(top) })
    }

    /// The block is full, or missing.
    #[cold]
    #[inline(never)]
    fn take_cold(self, size: usize) -> Option<NonNull<u8>> {
        if !self.block.load(Relaxed).is_null() {
            return None;
        }
        // SAFETY: the layout's size is not zero.
        let block = NonNull::new(unsafe { alloc(LAYOUT) })?;
        self.block.store(block.as_ptr(), Relaxed);
        self.top.store(size, Relaxed);
        Some(block)
    }

    /// The youngest child was taken back: its memory and what lies above it are unused, as soon as the caller has moved
    /// it out. Of a child in a box it tells nothing.
    #[inline(always)]
    pub(crate) fn took_back<T>(self, child: *const T) {
        let place = child.addr().wrapping_sub(self.block.load(Relaxed).addr());
        if place < SIZE {
            self.top.store(place, Relaxed);
        }
    }

    /// All children have left: rule 3.
    pub(crate) fn start_over(self) {
        if !self.block.load(Relaxed).is_null() {
            self.top.store(0, Relaxed);
        }
    }
}

impl Drop for ChildMemory {
    fn drop(&mut self) {
        let block = *self.block.get_mut();
        if !block.is_null() {
            // SAFETY: it was allocated with this layout, and its children have left: no scope outlives its stack.
            unsafe { dealloc(block, LAYOUT) };
        }
    }
}

#[cfg(all(test, not(urgency_loom)))]
mod tests {
    use super::*;

    /// # Safety
    /// As `Own::new`.
    unsafe fn own(memory: &ChildMemory) -> Own<'_, ChildMemory> {
        // SAFETY: by the caller's promise.
        unsafe { Own::new(memory) }
    }

    #[test]
    fn what_is_taken_back_is_taken_again() {
        let memory = ChildMemory::new();
        // SAFETY: one thread.
        let own = unsafe { own(&memory) };
        let words = Layout::new::<[usize; 3]>();
        let first = own.take(words).unwrap();
        let second = own.take(words).unwrap();
        assert_eq!(second.addr().get() - first.addr().get(), 32);
        own.took_back(second.as_ptr());
        assert_eq!(own.take(words), Some(second));
        own.took_back(first.as_ptr());
        assert_eq!(own.take(words), Some(first));
        own.start_over();
        assert_eq!(own.take(words), Some(first));
    }

    #[test]
    fn what_does_not_fit_is_refused_and_what_lies_elsewhere_changes_nothing() {
        let memory = ChildMemory::new();
        // SAFETY: one thread.
        let own = unsafe { own(&memory) };
        own.took_back(ptr::from_ref(&memory));
        own.start_over();
        assert_eq!(own.take(Layout::new::<[u8; LARGEST + 1]>()), None);
        assert_eq!(own.take(Layout::from_size_align(64, 64).unwrap()), None);
        let most = Layout::new::<[u8; LARGEST]>();
        for _ in 0..SIZE / LARGEST {
            let child = own.take(most).unwrap();
            // SAFETY: it is as large.
            unsafe { child.write_bytes(1, LARGEST) };
        }
        assert_eq!(own.take(Layout::new::<u8>()), None);
        own.took_back(ptr::from_ref(&memory));
        assert_eq!(own.take(Layout::new::<u8>()), None);
    }
}
