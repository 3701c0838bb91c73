//! A thread that enters a runtime: what the free functions find meanwhile.

mod common;

use common::{ends, runtime};
use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Barrier},
    thread,
};
use urgency::{
    Runtime, blocking, join,
    runtime::Handle,
    spawn,
    task::{LocalSet, spawn_blocking, spawn_local},
    time,
};

fn workers() -> usize {
    Runtime::current().stats().workers.len()
}

fn workers_of_a_task() -> usize {
    spawn(async { workers() }).get().unwrap()
}

#[test]
fn the_free_functions_of_a_thread_that_entered_a_runtime_use_it() {
    ends(|| {
        let (two, three) = (runtime(2), runtime(3));
        assert!(Handle::try_current().is_err());
        let outer = two.enter();
        assert_eq!((workers(), workers_of_a_task()), (2, 2));
        {
            let _inner = three.handle().enter();
            assert_eq!((workers(), workers_of_a_task()), (3, 3));
            assert_eq!(join(workers, workers), (3, 3));
            assert_eq!(spawn_blocking(workers).get().unwrap(), 3);
        }
        assert_eq!(Handle::try_current().unwrap().run(workers), 2);
        let elsewhere = thread::spawn(|| Handle::try_current().is_err());
        assert!(elsewhere.join().unwrap());
        drop(outer);
        assert!(Handle::try_current().is_err());
    });
}

#[test]
fn the_innermost_of_entering_and_running_wins() {
    ends(|| {
        let (two, three) = (runtime(2), runtime(3));
        let _outer = two.enter();
        three.run(|| {
            assert_eq!((workers(), workers_of_a_task()), (3, 3));
            blocking(|| assert_eq!(workers(), 3));
            let inner = two.enter();
            assert_eq!((workers(), workers_of_a_task()), (2, 2));
            blocking(|| assert_eq!(workers(), 2));
            assert_eq!(three.block_on(async { workers() }), 3);
            assert_eq!(workers(), 2);
            drop(inner);
            assert_eq!(workers(), 3);
        });
        assert_eq!(workers(), 2);
    });
}

#[test]
fn timers_and_tasks_of_an_entered_runtime_end_without_a_worker_of_the_thread() {
    ends(|| {
        let two = runtime(2);
        let guard = two.enter();
        let slept = spawn(async {
            time::sleep(time::Duration::from_millis(1)).await;
            workers()
        });
        assert_eq!(urgency::block_on(slept).unwrap(), 2);
        drop(guard);
    });
}

#[test]
fn guards_that_are_dropped_out_of_order_panic_and_take_their_entries_with_them() {
    ends(|| {
        let (two, three) = (runtime(2), runtime(3));
        let outer = two.enter();
        let inner = three.enter();
        let panic = catch_unwind(AssertUnwindSafe(|| drop(outer))).unwrap_err();
        let text = panic.downcast_ref::<String>().unwrap();
        assert!(text.contains("reverse of the order"), "{text}");
        assert_eq!(workers(), 3);
        drop(inner);
        assert!(Handle::try_current().is_err());
        // A panic drops them in their order, and says no more.
        let unwinds = || {
            let _guards = [two.enter(), three.enter()];
            std::panic::resume_unwind(Box::new("on purpose"));
        };
        let panic = catch_unwind(AssertUnwindSafe(unwinds)).unwrap_err();
        assert_eq!(panic.downcast_ref::<&str>(), Some(&"on purpose"));
        assert!(Handle::try_current().is_err());
    });
}

#[test]
fn guards_of_local_sets_that_are_dropped_out_of_order_panic_and_leave_no_set() {
    ends(|| {
        let (a, b) = (LocalSet::new(), LocalSet::new());
        let outer = a.enter();
        let inner = b.enter();
        let panic = catch_unwind(AssertUnwindSafe(|| drop(outer))).unwrap_err();
        let text = panic.downcast_ref::<&str>().unwrap();
        assert!(text.contains("reverse of the order"), "{text}");
        drop(inner);
        let starts = || spawn_local(async {}).detach();
        assert!(catch_unwind(AssertUnwindSafe(starts)).is_err(), "in no set");
        // In the right order, one set twice.
        let guards = (a.enter(), b.enter(), b.enter());
        let (first, second, third) = guards;
        drop(third);
        drop(second);
        let task = spawn_local(async { 1 });
        drop(first);
        let runtime = runtime(1);
        assert_eq!(a.block_on(runtime.handle(), task).unwrap(), 1);
    });
}

#[test]
fn a_handle_outlives_its_runtime_inside_a_guard() {
    ends(|| {
        let two = runtime(2);
        let handle = two.handle().clone();
        let guard = handle.enter();
        drop(two);
        assert!(spawn(async {}).get().unwrap_err().is_cancelled());
        drop(guard);
    });
}

#[test]
fn a_runtime_is_shut_down_by_value_in_the_scope_of_its_guard() {
    ends(|| {
        let two = runtime(2);
        let _guard = two.enter();
        assert_eq!(spawn(async { 1 }).get().unwrap(), 1);
        two.shutdown_timeout(time::Duration::from_secs(1000));
        assert!(spawn(async {}).get().unwrap_err().is_cancelled());
    });
}

#[test]
fn blocking_closures_of_a_level_hold_no_worker() {
    urgency::levels! { Flat: Only }
    ends(|| {
        let builder = Runtime::builder().workers(1).levels::<Flat>();
        let runtime = builder.build().unwrap();
        let meet = Arc::new(Barrier::new(3));
        let waits = [(); 3].map(|()| {
            let meet = meet.clone();
            runtime.at(Only).spawn_blocking(move || meet.wait())
        });
        waits.into_iter().for_each(|it| _ = it.get().unwrap());
        assert_eq!(runtime.stats().total().reliefs, 0);
    });
}
