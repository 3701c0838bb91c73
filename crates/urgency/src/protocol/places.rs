//! On which processors workers run, as far as their holders have noted: how many on each. Threads that came out of the
//! poller and have no worker yet are *visitors*, and are counted apart.
//!
//! A thread that is about to sleep asks whether another worker runs on its processor, at each hand-over where jobs
//! share workers. A walk over all workers would cost more with each of them.
//!
//! # Invariants
//!
//! 1. Only what owns the worker changes its [`Place`]: the stack that holds it, inside the scheduler, or the thread
//!    that has claimed or revoked it. The worker's way from owner to owner orders the changes.
//! 2. So each count is the number of places that name the processor, but for the moments within a change.
//! 3. An idle worker is nowhere.
//!
//! The counts are hints: the kernel moves threads without a note.

use crate::sys::{
    chaos,
    primitives::atomic::{AtomicI32, AtomicUsize, Ordering::Relaxed},
};
use crossbeam_utils::CachePadded;

/// See the module's text.
#[derive(Debug)]
pub(crate) struct Places(Box<[CachePadded<Count>]>);

/// Of one processor.
#[derive(Debug, Default)]
struct Count {
    workers: AtomicUsize,
    visitors: AtomicUsize,
}

/// Where a worker is: a processor, or nowhere.
#[derive(Debug)]
pub(crate) struct Place(AtomicI32);

const NOWHERE: i32 = -1;

impl Places {
    /// For processors with numbers below `count`.
    pub(crate) fn new(count: usize) -> Self {
        Places((0..count).map(|_| CachePadded::default()).collect())
    }

    fn count(&self, cpu: i32) -> Option<&Count> {
        self.0.get(usize::try_from(cpu).ok()?).map(|count| &**count)
    }

    /// By the worker's owner: it runs on this processor.
    #[inline]
    pub(crate) fn goes_to(&self, place: &Place, cpu: i32) {
        if place.0.load(Relaxed) != cpu {
            self.change(place, cpu);
        }
    }

    /// By the worker's owner: it is about to be idle.
    #[inline]
    pub(crate) fn leaves(&self, place: &Place) {
        self.goes_to(place, NOWHERE);
    }

    #[cold]
    fn change(&self, place: &Place, cpu: i32) {
        if let Some(old) = self.count(place.0.load(Relaxed)) {
            old.workers.fetch_sub(1, Relaxed);
        }
        chaos::delay();
        place.0.store(cpu, Relaxed);
        chaos::delay();
        if let Some(new) = self.count(cpu) {
            new.workers.fetch_add(1, Relaxed);
        }
    }

    /// A thread without a worker is on this processor for a moment.
    #[inline]
    pub(crate) fn visit(&self, cpu: i32) -> Visit<'_> {
        let visitors = self.count(cpu).map(|count| &count.visitors);
        if let Some(visitors) = visitors {
            visitors.fetch_add(1, Relaxed);
        }
        Visit { cpu, visitors }
    }

    /// How many visitors there are.
    pub(crate) fn visitors(&self) -> usize {
        let visitors = self.0.iter().map(|count| count.visitors.load(Relaxed));
        visitors.sum()
    }

    /// Whether another worker than this one is on this processor.
    #[inline]
    pub(crate) fn is_other_on(&self, place: &Place, cpu: i32) -> bool {
        let own = usize::from(place.is_on(cpu));
        self.count(cpu)
            .is_some_and(|count| count.workers.load(Relaxed) > own)
    }
}

/// A thread without a worker is on a processor, until this is dropped.
#[derive(Debug)]
pub(crate) struct Visit<'a> {
    pub(crate) cpu: i32,
    visitors: Option<&'a AtomicUsize>,
}

impl Visit<'_> {
    /// Whether another thread visits the processor.
    pub(crate) fn is_other_here(&self) -> bool {
        self.visitors.is_some_and(|all| all.load(Relaxed) > 1)
    }
}

impl Drop for Visit<'_> {
    #[inline]
    fn drop(&mut self) {
        if let Some(visitors) = self.visitors {
            visitors.fetch_sub(1, Relaxed);
        }
    }
}

impl Place {
    pub(crate) fn nowhere() -> Self {
        Place(AtomicI32::new(NOWHERE))
    }

    /// Whether the worker is on this processor.
    pub(crate) fn is_on(&self, cpu: i32) -> bool {
        self.0.load(Relaxed) == cpu
    }
}

#[cfg(all(test, not(urgency_loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_processor_has_others_while_another_worker_is_there() {
        let places = Places::new(2);
        let [one, other] = [(); 2].map(|()| Place::nowhere());
        places.goes_to(&one, 1);
        places.goes_to(&one, 1);
        assert!(!places.is_other_on(&one, 1) && places.is_other_on(&other, 1));
        places.goes_to(&other, 1);
        assert!(places.is_other_on(&one, 1));
        places.goes_to(&other, 0);
        assert!(!places.is_other_on(&one, 1));
        places.leaves(&one);
        assert!(!places.is_other_on(&other, 1) && !places.is_other_on(&other, 0));
    }

    #[test]
    fn a_visitor_is_another_for_visitors_until_it_goes_and_no_worker() {
        let places = Places::new(2);
        let visit = places.visit(1);
        let there = places.visit(0);
        assert!(!visit.is_other_here());
        let next = places.visit(1);
        assert!(visit.is_other_here() && next.is_other_here() && !there.is_other_here());
        assert!(!places.is_other_on(&Place::nowhere(), 1));
        drop(next);
        assert!(!visit.is_other_here());
    }

    #[test]
    fn on_a_processor_that_is_not_known_there_is_no_other() {
        let places = Places::new(1);
        let [one, other] = [(); 2].map(|()| Place::nowhere());
        places.goes_to(&one, 7);
        assert!(!places.is_other_on(&other, 7));
        assert!(!places.is_other_on(&other, NOWHERE));
        places.leaves(&one);
        assert!(!places.visit(7).is_other_here());
    }
}

#[cfg(all(test, urgency_loom))]
mod loom_models {
    use super::*;
    use loom::{
        sync::{
            Arc,
            atomic::{AtomicBool, Ordering::*},
        },
        thread,
    };

    /// A worker goes from owner to owner, which both note where it is, while another one moves: what is counted at the
    /// end is where they are.
    #[test]
    fn the_counts_are_where_the_workers_are() {
        loom::model(|| {
            let places = Arc::new(Places::new(2));
            let [first, other] = [(); 2].map(|()| Arc::new(Place::nowhere()));
            let is_given = Arc::new(AtomicBool::new(false));
            let giver = thread::spawn({
                let (places, first, is_given) = (places.clone(), first.clone(), is_given.clone());
                move || {
                    places.goes_to(&first, 0);
                    is_given.store(true, Release);
                }
            });
            let mover = thread::spawn({
                let (places, other) = (places.clone(), other.clone());
                move || {
                    places.goes_to(&other, 0);
                    places.goes_to(&other, 1);
                }
            });
            if is_given.load(Acquire) {
                places.goes_to(&first, 1);
            }
            giver.join().unwrap();
            mover.join().unwrap();
            let at = |place: &Place| place.0.load(Relaxed);
            for cpu in 0..2 {
                let there = [&first, &other].iter().filter(|it| at(it) == cpu).count();
                assert_eq!(places.count(cpu).unwrap().workers.load(Relaxed), there);
            }
            places.leaves(&first);
            places.leaves(&other);
            assert!(
                places
                    .0
                    .iter()
                    .all(|count| count.workers.load(Relaxed) == 0)
            );
        });
    }
}
