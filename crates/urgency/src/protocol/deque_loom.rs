//! Models of the deque: its owner, and one thief or two.

use super::*;
use crate::protocol::own::own_in_model;
use loom::{
    cell::UnsafeCell,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    thread,
};

/// What was forked is a tag here: nothing dereferences it.
#[derive(Debug)]
struct Tag;

fn tagged(tag: usize) -> *const Tag {
    ptr::without_provenance(tag * 16)
}

struct Model {
    deque: Deque<Tag>,
    taken: [AtomicUsize; 3],
}

impl Model {
    fn new() -> Arc<Self> {
        Arc::new(Model {
            deque: Deque::new(),
            taken: std::array::from_fn(|_| AtomicUsize::new(0)),
        })
    }

    fn take(&self, forked: *const Tag) {
        self.taken[forked.addr() / 16].fetch_add(1, Relaxed);
    }

    fn push(&self, tag: usize) -> usize {
        let own = own_in_model(&self.deque);
        // SAFETY: the tag is never dereferenced.
        let index = unsafe { own.push(tagged(tag)) };
        own.make_room();
        index
    }

    /// What `join` does: pop, and remember whether it was stolen.
    fn pop(&self, index: usize, tag: usize) {
        let own = own_in_model(&self.deque);
        // SAFETY: the models pop the youngest.
        let popped = unsafe { own.pop(index, || own.pop_public(index)) };
        if popped == Popped::Mine {
            // SAFETY: behind the successful pop.
            let popped = unsafe { own.popped(index) };
            assert_eq!(popped, tagged(tag));
            self.take(tagged(tag));
        }
    }

    fn steal(&self, raise: bool) {
        if let Stolen::Forked(forked, _) = self.deque.steal(raise, || true, |forked, _| forked) {
            self.take(forked);
        }
    }

    fn taken(&self) -> [usize; 3] {
        std::array::from_fn(|tag| self.taken[tag].load(Relaxed))
    }
}

#[test]
fn a_fork_popped_under_a_raise_runs_once() {
    loom::model(|| {
        let model = Model::new();
        let first = model.push(0);
        let second = model.push(1);
        let thief = model.clone();
        let thief = thread::spawn(move || {
            thief.steal(true);
            thief.steal(true);
        });
        model.pop(second, 1);
        model.pop(first, 0);
        thief.join().unwrap();
        assert_eq!(model.taken(), [1, 1, 0]);
    });
}

#[test]
fn a_fork_pushed_after_a_pop_under_a_raise_runs_once() {
    loom::model(|| {
        let model = Model::new();
        let first = model.push(0);
        let thief = model.clone();
        let thief = thread::spawn(move || thief.steal(true));
        model.pop(first, 0);
        let again = model.push(1);
        model.pop(again, 1);
        thief.join().unwrap();
        assert_eq!(model.taken(), [1, 1, 0]);
    });
}

#[test]
fn published_forks_are_taken_once_by_two_thieves_or_the_owner() {
    loom::model(|| {
        let model = Model::new();
        let first = model.push(0);
        let second = model.push(1);
        own_in_model(&model.deque).publish(true);
        let thieves: Vec<_> = (0..2)
            .map(|_| {
                let model = model.clone();
                thread::spawn(move || model.steal(false))
            })
            .collect();
        model.pop(second, 1);
        model.pop(first, 0);
        for thief in thieves {
            thief.join().unwrap();
        }
        assert_eq!(model.taken(), [1, 1, 0]);
    });
}

#[test]
fn forks_survive_the_growth_of_the_array_under_a_thief() {
    loom::model(|| {
        let model = Model::new();
        for tag in [0, 1, 2] {
            model.push(tag);
        }
        own_in_model(&model.deque).publish(true);
        let thief = model.clone();
        let thief = thread::spawn(move || thief.steal(false));
        model.push(0);
        model.push(0);
        thief.join().unwrap();
        assert_eq!(model.deque.bottom(), 5);
        // The oldest, or none if the owner held the lock.
        let [oldest, rest @ ..] = model.taken();
        assert!(oldest <= 1 && rest == [0, 0]);
    });
}

/// A child of a scope lies in its owner's memory, which the owner uses again after the pop: the owner or a thief has
/// the child then.
fn the_memory_of_a_fork_is_its_owners_after_the_pop(publishes: bool) {
    loom::model(move || {
        let model = Model::new();
        let memory = Arc::new(UnsafeCell::new(0));
        // SAFETY: not pushed yet; loom checks it.
        memory.with_mut(|child| unsafe { *child = 1 });
        let index = model.push(0);
        let own = own_in_model(&model.deque);
        if publishes {
            own.publish(true);
        }
        let (theirs, child) = (model.clone(), memory.clone());
        let thief = thread::spawn(move || {
            let moved_out = |forked, _| {
                // SAFETY: under the deque's lock, and the fork is in the deque; loom checks it.
                child.with(|child| unsafe { assert_eq!(*child, 1) });
                forked
            };
            theirs.deque.steal(!publishes, || true, moved_out);
        });
        // SAFETY: the youngest.
        unsafe { own.pop(index, || own.pop_public(index)) };
        // SAFETY: popped, or stolen and moved out; loom checks it.
        memory.with_mut(|child| unsafe { *child = 2 });
        thief.join().unwrap();
    });
}

#[test]
fn the_memory_of_a_public_fork_is_its_owners_after_the_pop() {
    the_memory_of_a_fork_is_its_owners_after_the_pop(true);
}

#[test]
fn the_memory_of_a_fork_under_a_raise_is_its_owners_after_the_pop() {
    the_memory_of_a_fork_is_its_owners_after_the_pop(false);
}
