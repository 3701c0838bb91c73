//! The pages that no shard uses: what one shard gives up, another takes, or the kernel.
//!
//! An allocator frees a block into the arena of the thread that took it. Its next block comes from the arena of the
//! thread that asks. Pages wander between shards, and so between threads. Given back to the allocator, they left holes
//! in all arenas: at `-m 64` values of 1 MB took 181 MiB. So a page, once allocated, is the store's for good.
//!
//! # Protocol
//!
//! 1. [`Pool::put`] takes in a page *before* its cost is given back to the budget. [`Pool::take`] is called *after* the
//!    cost was taken from the budget, and allocates only if the pool is empty.
//! 2. So at each allocation all pages are counted by the budget. The allocator is never asked for more pages than the
//!    highest limit so far allows, however long the store lives.
//! 3. The first [`WARM`] pages of the pool keep their memory: enough for a value of 1 MB that moves from one shard to
//!    another. The memory of all others is the kernel's again ([`discard`]); the pool keeps their addresses only.
//!
//! So the process needs the budget and 1 MiB, and a flush or a lower limit makes it smaller. Kernel pages at the two
//! edges of a page are shared with its neighbours and stay: a sixteenth of what was given up, at most.
//!
//! # Rejected
//!
//! *Pages that are mappings of their own* go back whole, but each hole between them is one more mapping. A process may
//! have 65,530, and beyond that `munmap` fails: from some 8 GiB on. *`malloc_trim`* finds the holes, but it holds an
//! arena's lock for all of them, and is glibc's. *Aligned pages* share no edges, but cost a sixteenth all the time.

use std::ops::Range;

use parking_lot::Mutex;

use super::heap::PAGE;

/// Pages whose memory is kept for the next need.
pub(crate) const WARM: usize = 16;

/// 64 KiB for blocks of items.
#[repr(C, align(64))]
pub(crate) struct Page(pub [u8; PAGE]);

/// See the module's text.
#[derive(Default)]
pub(crate) struct Pool(Mutex<Pages>);

#[derive(Default)]
struct Pages {
    warm: Vec<Box<Page>>,
    cold: Vec<Box<Page>>,
}

impl Pool {
    /// A page with any bytes in it: rule 1.
    pub fn take(&self) -> Box<Page> {
        let mut pages = self.0.lock();
        let page = pages.warm.pop().or_else(|| pages.cold.pop());
        drop(pages);
        page.unwrap_or_else(|| Box::new(Page([0; PAGE])))
    }

    /// Takes in a page: rules 1 and 3.
    pub fn put(&self, mut page: Box<Page>) {
        let mut pages = self.0.lock();
        if pages.warm.len() < WARM {
            return pages.warm.push(page);
        }
        drop(pages);
        discard(&mut page);
        self.0.lock().cold.push(page);
    }

    /// Pages here.
    #[cfg(test)]
    pub fn len(&self) -> usize {
        let pages = self.0.lock();
        pages.warm.len() + pages.cold.len()
    }
}

/// The part of `page` that is whole kernel pages of so many bytes.
fn whole(page: &Page, kernel_page: usize) -> Range<usize> {
    let from = page.0.as_ptr().addr();
    let first = from.next_multiple_of(kernel_page) - from;
    let last = (from + PAGE) / kernel_page * kernel_page;
    first..last.saturating_sub(from).max(first)
}

/// Gives the memory of a page back to the kernel, which refuses that where memory is locked. The page reads as zeros
/// afterwards, where it was given back.
fn discard(page: &mut Page) {
    let range = whole(page, rustix::param::page_size());
    let Some(bytes) = page.0.get_mut(range) else {
        return;
    };
    give_back(bytes);
}

#[allow(unsafe_code, reason = "madvise has no safe wrapper")]
fn give_back(bytes: &mut [u8]) {
    use rustix::mm::{Advice, madvise};
    let (from, length) = (bytes.as_mut_ptr().cast(), bytes.len());
    // SAFETY: the bytes are borrowed exclusively. The call sets them to zero, or, if it fails, leaves them as they are;
    // both are bytes.
    let _ = unsafe { madvise(from, length, Advice::LinuxDontNeed) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_without_its_memory_is_a_page_of_zeros_between_its_edges() {
        let mut page = Box::new(Page([7; PAGE]));
        discard(&mut page);
        let whole = whole(&page, rustix::param::page_size());
        assert!(page.0[whole.clone()].iter().all(|&byte| byte == 0));
        assert!(page.0[..whole.start].iter().all(|&byte| byte == 7));
        assert!(page.0[whole.end..].iter().all(|&byte| byte == 7));
    }

    #[test]
    fn the_whole_kernel_pages_of_a_page_are_all_but_its_edges_or_none() {
        let page = Box::new(Page([0; PAGE]));
        let from = page.0.as_ptr().addr();
        for kernel_page in [1 << 12, 1 << 14, 1 << 16, 1 << 21] {
            let whole = whole(&page, kernel_page);
            assert!(whole.end <= PAGE || whole.is_empty(), "{whole:?}");
            assert!(whole.is_empty() || (from + whole.start).is_multiple_of(kernel_page));
            assert!(whole.len() + 2 * kernel_page > PAGE, "{whole:?}");
        }
    }

    #[test]
    fn pages_come_back_and_the_warm_ones_first() {
        let pool = Pool::default();
        let pages: Vec<_> = (0..WARM + 2).map(|_| pool.take()).collect();
        let mut places: Vec<_> = pages.iter().map(|page| page.0.as_ptr()).collect();
        pages.into_iter().for_each(|page| pool.put(page));
        assert_eq!(pool.len(), WARM + 2);
        let again: Vec<_> = (0..WARM + 2).map(|_| pool.take()).collect();
        let mut again: Vec<_> = again.iter().map(|page| page.0.as_ptr()).collect();
        assert!(
            again[WARM..]
                .iter()
                .all(|page| places[WARM..].contains(page))
        );
        places.sort();
        again.sort();
        assert_eq!(again, places);
        assert_eq!(pool.len(), 0);
    }
}
