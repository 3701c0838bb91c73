//! Loom models of one direction's readiness.
//!
//! The kernel's side is a counter of items (datagrams, connections): taking one is the attempt, and
//! adding one is followed by an edge, as with a real descriptor. A future that sleeps when nobody
//! will wake it is a deadlock, which loom reports.

use super::*;
use loom::{
    sync::{Arc, Condvar, Mutex, atomic::AtomicUsize},
    thread,
};
use std::task::Wake;

/// A thread that parks, as a waker.
struct Parked(Mutex<bool>, Condvar);

impl Parked {
    fn new() -> std::sync::Arc<Self> {
        std::sync::Arc::new(Parked(Mutex::new(false), Condvar::new()))
    }

    fn park(&self) {
        let mut woken = self.0.lock().unwrap();
        while !*woken {
            woken = self.1.wait(woken).unwrap();
        }
        *woken = false;
    }
}

impl Wake for Parked {
    fn wake(self: std::sync::Arc<Self>) {
        *self.0.lock().unwrap() = true;
        self.1.notify_one();
    }
}

struct Descriptor {
    items: AtomicUsize,
    readiness: Readiness,
}

impl Descriptor {
    fn new() -> Arc<Self> {
        Arc::new(Descriptor {
            items: AtomicUsize::new(0),
            readiness: Readiness::new(),
        })
    }

    /// The system call.
    fn attempt(&self) -> bool {
        let take = |items: usize| items.checked_sub(1);
        self.items
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, take)
            .is_ok()
    }

    /// The kernel and the thread in the poller.
    fn arrive(&self, items: usize) {
        self.items.fetch_add(items, Ordering::AcqRel);
        let mut ready = Vec::new();
        self.readiness.edge(false, &mut ready);
        ready.into_iter().for_each(Waker::wake);
    }

    /// One poll of a reading future: `None` is pending.
    fn poll(&self, ticket: &mut Option<Ticket>, waker: &Waker) -> Option<()> {
        loop {
            let look = self.readiness.look();
            if look.is_ready() {
                if self.attempt() {
                    if let Some(ticket) = ticket.take() {
                        self.readiness.leave(ticket);
                    }
                    return Some(());
                }
                if !self.readiness.retract(look) {
                    continue;
                }
            }
            if self.readiness.wait(ticket, waker) {
                return None;
            }
        }
    }

    fn read(&self) {
        let parked = Parked::new();
        let waker = Waker::from(parked.clone());
        let mut ticket = None;
        while self.poll(&mut ticket, &waker).is_none() {
            parked.park();
        }
    }
}

fn model(body: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(body);
}

#[test]
fn a_reader_never_sleeps_through_an_arrival() {
    model(|| {
        let descriptor = Descriptor::new();
        let kernel = descriptor.clone();
        let kernel = thread::spawn(move || kernel.arrive(1));
        descriptor.read();
        kernel.join().unwrap();
    });
}

#[test]
fn one_edge_for_two_items_serves_two_readers() {
    model(|| {
        let descriptor = Descriptor::new();
        let readers: Vec<_> = (0..2)
            .map(|_| {
                let descriptor = descriptor.clone();
                thread::spawn(move || descriptor.read())
            })
            .collect();
        descriptor.arrive(2);
        for reader in readers {
            reader.join().unwrap();
        }
    });
}

#[test]
fn a_waiter_that_gives_up_passes_its_wake_obligation_on() {
    model(|| {
        let descriptor = Descriptor::new();
        assert!(descriptor.readiness.retract(descriptor.readiness.look()));
        let mut first = None;
        assert!(descriptor.readiness.wait(&mut first, Waker::noop()));
        let reader = descriptor.clone();
        let reader = thread::spawn(move || reader.read());
        let kernel = descriptor.clone();
        let kernel = thread::spawn(move || kernel.arrive(1));
        // Dropped before or after it was woken.
        descriptor.readiness.leave(first.unwrap());
        reader.join().unwrap();
        kernel.join().unwrap();
    });
}

#[test]
fn a_short_read_does_not_hide_what_came_after_it() {
    model(|| {
        let descriptor = Descriptor::new();
        descriptor.items.store(1, Ordering::Relaxed);
        let kernel = descriptor.clone();
        let kernel = thread::spawn(move || kernel.arrive(1));
        let look = descriptor.readiness.look();
        assert!(descriptor.attempt());
        descriptor.readiness.retract_if_trusted(look);
        descriptor.read();
        kernel.join().unwrap();
    });
}

#[test]
fn a_shutdown_leaves_nobody_asleep() {
    model(|| {
        let descriptor = Descriptor::new();
        assert!(descriptor.readiness.retract(descriptor.readiness.look()));
        let driver = descriptor.clone();
        let driver = thread::spawn(move || {
            let mut ready = Vec::new();
            driver.readiness.shut(&mut ready);
            ready.into_iter().for_each(Waker::wake);
        });
        let parked = Parked::new();
        let waker = Waker::from(parked.clone());
        if descriptor.readiness.wait(&mut None, &waker) {
            parked.park();
        }
        assert!(descriptor.readiness.look().is_shut());
        driver.join().unwrap();
    });
}
