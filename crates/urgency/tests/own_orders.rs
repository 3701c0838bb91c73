//! Orders within a level that a user brings: asked for everything, and never trusted.

mod common;
#[path = "common/one_by_one.rs"]
mod one_by_one;
#[path = "common/program.rs"]
mod program;

use common::{ends, in_child, is_child, quiet, until};
use one_by_one::order;
use program::run_random;
use std::{
    fmt,
    panic::panic_any,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
};
use urgency::{
    Runtime, join,
    policy::{Amount, Layout, PoolOrder},
    runtime::Handle,
};
use urgency_policy::{
    dice::Dice,
    pool::{
        Aging, Arrival, Chooser, End, Left, Place, PlanError, PoolPolicy, Queue, QueueLayout, Shed,
        Sight, Source,
    },
};

urgency::levels! { Four: L0 > L1 > L2 > L3 }

/// What a panic may carry: its drop panics.
struct PanicsWhenGone;

impl Drop for PanicsWhenGone {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            panic!("on purpose, in the drop of what a panic carried");
        }
    }
}

/// An order of the test's own: each policy answers by a rule that the test gives.
#[derive(Clone)]
struct Own {
    layout: Layout,
    place: fn(usize, Arrival) -> Place,
    take_from: fn(usize, Sight) -> Source,
    asked: Arc<AtomicUsize>,
}

impl Own {
    fn new(
        layout: Layout,
        place: fn(usize, Arrival) -> Place,
        take_from: fn(usize, Sight) -> Source,
    ) -> Self {
        let asked = Arc::default();
        Own {
            layout,
            place,
            take_from,
            asked,
        }
    }
}

impl std::fmt::Debug for Own {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Own")
    }
}

struct OwnPolicy(usize, Own);

impl PoolOrder for Own {
    fn layout(&self) -> Layout {
        self.layout
    }

    fn policy(&self, me: usize, _: usize, _: &Dice) -> Box<dyn PoolPolicy + Send> {
        Box::new(OwnPolicy(me, self.clone()))
    }
}

impl PoolPolicy for OwnPolicy {
    fn place(&mut self, arrival: Arrival, _: usize) -> Place {
        self.1.asked.fetch_add(1, Relaxed);
        (self.1.place)(self.0, arrival)
    }

    fn take_from(&mut self, sight: Sight) -> Source {
        self.1.asked.fetch_add(1, Relaxed);
        (self.1.take_from)(self.0, sight)
    }

    fn after_steal(&mut self, _: Left) -> Place {
        Place::Dropped
    }
}

#[test]
#[cfg_attr(urgency_chaos, ignore = "chaos changes the order")]
fn an_order_of_a_users_own_decides_in_the_runtime() {
    ends(|| {
        let newest = |_, sight: Sight| match sight.own {
            0 => Source::Nowhere,
            _ => Source::Own(End::Newest),
        };
        let own = |me, _| Place::Worker(me);
        let newest = Own::new(Layout::Queues(QueueLayout::default()), own, newest);
        assert_eq!(order(newest.clone(), 6), [5, 4, 3, 2, 1, 0]);
        assert!(newest.asked.load(Relaxed) > 0);
        // The second of four shared queues is the first that is looked at.
        let shared = Layout::Queues(QueueLayout {
            shared: 4,
            ..QueueLayout::default()
        });
        let from = |_, sight: Sight| match sight.shared {
            0 => Source::Nowhere,
            queues => Source::Head(Queue::Shared(queues.trailing_zeros() as usize)),
        };
        let second = Own::new(shared, |_, _| Place::Tail(Queue::Shared(1)), from);
        assert_eq!(order(second, 6), [0, 1, 2, 3, 4, 5]);
    });
}

#[test]
#[cfg_attr(urgency_chaos, ignore = "chaos changes the order")]
fn an_own_order_over_the_two_central_queues_is_asked_for_both() {
    ends(|| {
        // Aging, by another name.
        let place = |_, arrival| Aging.place(arrival, 0);
        let same = Own::new(Layout::Central, place, |_, sight| Aging.take_from(sight));
        assert_eq!(order(same.clone(), 6), [0, 1, 2, 3, 4, 5]);
        assert!(same.asked.load(Relaxed) >= 12);
        // The regular queue is never looked at: what is there comes by the sweep.
        let abandoned_only = |_, sight: Sight| match sight.mugging {
            true => Source::Head(Queue::Mugging),
            false => Source::Head(Queue::Regular),
        };
        let mugging = Own::new(
            Layout::Central,
            |_, _| Place::Tail(Queue::Mugging),
            abandoned_only,
        );
        assert_eq!(order(mugging, 6), [0, 1, 2, 3, 4, 5]);
    });
}

#[test]
fn answers_that_do_not_fit_and_a_policy_that_panics_lose_nothing() {
    quiet();
    let queues = Layout::Queues(QueueLayout::default());
    let far = |_, _| Place::Worker(usize::MAX);
    let nobody = |_, _| Source::Steal {
        victim: usize::MAX,
        amount: Amount::Half,
        least: 1,
    };
    let no_queue = |_, _| Source::Head(Queue::Shared(64));
    let panics = |_, _| panic!("this policy panics");
    let nowhere = |_, _| panic!("this policy panics, too");
    let twice = |_, _| panic_any(PanicsWhenGone);
    let orders = [
        Own::new(queues, far, nobody),
        Own::new(queues, |_, _| Place::Tail(Queue::Shared(9)), no_queue),
        Own::new(queues, |_, _| Place::Full, nobody),
        Own::new(queues, panics, nobody),
        Own::new(queues, far, nowhere),
        Own::new(queues, twice, nobody),
        Own::new(Layout::Central, twice, nobody),
        Own::new(Layout::Central, far, nobody),
        Own::new(Layout::Central, panics, nowhere),
        Own::new(Layout::Deques, |_, _| Place::Dropped, nobody),
    ];
    for (seed, own) in (0u64..).zip(orders) {
        let runtime = Runtime::builder().workers(3).levels::<Four>().pool(own);
        let runtime = runtime.build().unwrap();
        ends(move || run_random(runtime, seed, 60));
    }
}

/// Its policies call `call` at each question.
#[derive(Clone)]
struct Calls {
    layout: Layout,
    call: Arc<dyn Fn() + Send + Sync>,
}

impl fmt::Debug for Calls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("calls")
    }
}

impl PoolOrder for Calls {
    fn layout(&self) -> Layout {
        self.layout
    }

    fn policy(&self, _: usize, _: usize, _: &Dice) -> Box<dyn PoolPolicy + Send> {
        Box::new(self.clone())
    }
}

impl PoolPolicy for Calls {
    fn place(&mut self, arrival: Arrival, _: usize) -> Place {
        (self.call)();
        Aging.place(arrival, 0)
    }

    fn take_from(&mut self, sight: Sight) -> Source {
        (self.call)();
        match sight.own {
            0 => Source::Nowhere,
            _ => Source::OwnDeque,
        }
    }

    fn choose(&mut self, _: usize, _: Chooser) -> usize {
        (self.call)();
        0
    }

    fn after_steal(&mut self, _: Left) -> Place {
        Place::Dropped
    }

    fn shed(&mut self, _: usize) -> Shed {
        (self.call)();
        Shed::Keep
    }
}

/// Counts its drops.
struct Counts(Arc<AtomicUsize>);

impl Drop for Counts {
    fn drop(&mut self) {
        self.0.fetch_add(1, Relaxed);
    }
}

/// Runs a program under an order whose policies call `call`, with the runtime's handle.
fn with_calls(layout: Layout, workers: usize, call: impl Fn(&Handle) + Send + Sync + 'static) {
    ends(move || {
        let handle = Arc::new(Mutex::new(None::<Handle>));
        let theirs = handle.clone();
        let call = Arc::new(move || {
            let handle = theirs.lock().unwrap().clone();
            handle.iter().for_each(&call);
        });
        let builder = Runtime::builder().workers(workers).levels::<Four>();
        let runtime = builder.pool(Calls { layout, call }).build().unwrap();
        *handle.lock().unwrap() = Some(runtime.handle().clone());
        run_random(runtime, workers as u64, 60);
        handle.lock().unwrap().take();
    });
}

/// What a policy spawns, into its own level as well, runs; if it waits or forks it is replaced.
#[test]
fn a_policy_that_spawns_waits_or_forks_hangs_nothing() {
    quiet();
    let queues = Layout::Queues(QueueLayout::default());
    for layout in [queues, Layout::Central, Layout::Deques] {
        for workers in [1, 3] {
            let (asked, gone) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
            let theirs = (asked.clone(), gone.clone());
            // Less and less often: each task is a reason for more questions.
            with_calls(layout, workers, move |handle| {
                if (theirs.0.fetch_add(1, Relaxed) + 1).is_power_of_two() {
                    let counts = Counts(theirs.1.clone());
                    handle.spawn(async move { drop(counts) }).detach();
                }
            });
            let spawned = asked.load(Relaxed).ilog2() as usize + 1;
            assert!(spawned > 5, "{spawned}");
            until(|| gone.load(Relaxed) == spawned);
            with_calls(layout, workers, |handle| drop(handle.spawn(async {}).get()));
            with_calls(layout, workers, |handle| handle.run(|| ()));
            with_calls(layout, workers, |_| {
                join(|| (), || ());
            });
        }
    }
}

/// Its policies panic when they are dropped, whatever goes on. It counts them.
#[derive(Clone, Debug, Default)]
struct PanicsAtTheEnd(Arc<AtomicUsize>);

struct PanickingPolicy(Arc<AtomicUsize>);

impl Drop for PanickingPolicy {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
        panic!("on purpose, in the drop of a policy");
    }
}

impl PoolOrder for PanicsAtTheEnd {
    fn layout(&self) -> Layout {
        Layout::Deques
    }

    fn policy(&self, _: usize, _: usize, _: &Dice) -> Box<dyn PoolPolicy + Send> {
        self.0.fetch_add(1, Relaxed);
        Box::new(PanickingPolicy(self.0.clone()))
    }
}

impl PoolPolicy for PanickingPolicy {
    fn place(&mut self, _: Arrival, _: usize) -> Place {
        Place::Slot
    }

    fn take_from(&mut self, _: Sight) -> Source {
        Source::Nowhere
    }

    fn after_steal(&mut self, _: Left) -> Place {
        Place::Dropped
    }
}

#[test]
fn policies_that_panic_when_they_are_dropped_end_nothing() {
    if !is_child() {
        return in_child("policies_that_panic_when_they_are_dropped_end_nothing");
    }
    quiet();
    ends(|| {
        let order = PanicsAtTheEnd::default();
        let builder = Runtime::builder().workers(2).levels::<Four>();
        let runtime = builder.pool(order.clone()).build().unwrap();
        assert_eq!(runtime.at(L1).spawn_fn(|| 3).get().unwrap(), 3);
        assert_ne!(order.0.load(Relaxed), 0);
        drop(runtime);
        until(|| order.0.load(Relaxed) == 0);
    });
}

/// Its layout is in range for so many questions, and then has more queues than there is memory for.
#[derive(Debug)]
struct Grows(AtomicUsize);

impl PoolOrder for Grows {
    fn layout(&self) -> Layout {
        let is_in_range = |left: usize| left.checked_sub(1);
        let asked = self.0.fetch_update(Relaxed, Relaxed, is_in_range);
        Layout::Queues(QueueLayout {
            shared: asked.map_or(usize::MAX, |_| 1),
            ..QueueLayout::default()
        })
    }

    fn policy(&self, _: usize, _: usize, _: &Dice) -> Box<dyn PoolPolicy + Send> {
        let own = |me, _| Place::Worker(me);
        let own = Own::new(Layout::Deques, own, |_, _| Source::OwnDeque);
        Box::new(OwnPolicy(0, own))
    }
}

#[test]
fn an_order_whose_layout_changes_after_it_was_checked_is_refused_or_has_what_was_checked() {
    ends(|| {
        let mut refused = 0;
        for questions in 0..10 {
            let order = Grows(AtomicUsize::new(questions));
            match Runtime::builder().workers(2).pool(order).build() {
                Ok(runtime) => assert_eq!(runtime.spawn_fn(|| 3).get().unwrap(), 3),
                Err(error) => {
                    assert_eq!(error, PlanError::SharedQueues(usize::MAX).into());
                    refused += 1;
                }
            }
        }
        assert!((1..10).contains(&refused), "{refused}");
    });
}
