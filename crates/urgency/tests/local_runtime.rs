//! `LocalRuntime`: a runtime that stays on its thread, with tasks that need not be `Send`.

mod common;

use common::ends;
use std::{
    cell::{Cell, RefCell},
    future::pending,
    rc::Rc,
    thread,
    time::Duration,
};
use urgency::{
    runtime::{Builder, Handle, LocalOptions, LocalRuntime},
    sync::oneshot,
    task::{spawn_blocking, spawn_local, yield_now},
    time::sleep,
};

#[test]
fn local_tasks_run_on_the_thread_that_is_in_block_on_and_others_beside_them() {
    ends(|| {
        let runtime = LocalRuntime::new().unwrap();
        let here = thread::current().id();
        let (sender, receiver) = oneshot::channel();
        let count = Rc::new(Cell::new(0));
        let theirs = count.clone();
        let first = runtime.spawn_local(async move {
            theirs.set(theirs.get() + receiver.await.unwrap());
            thread::current().id()
        });
        let sum = runtime.block_on(async {
            let blocks = spawn_blocking(|| 3);
            let beside = urgency::spawn(async move { sender.send(2).unwrap() });
            let local = spawn_local(async move {
                yield_now().await;
                sleep(Duration::from_millis(1)).await;
                thread::current().id()
            });
            beside.await.unwrap();
            assert_eq!(local.await.unwrap(), here);
            assert_eq!(first.await.unwrap(), here);
            count.get() + blocks.await.unwrap()
        });
        assert_eq!(sum, 5);
        // What another thread spawns by the handle runs as well.
        let handle = runtime.handle().clone();
        let elsewhere = thread::spawn(move || handle.spawn(async { 7 }));
        assert_eq!(runtime.block_on(elsewhere.join().unwrap()).unwrap(), 7);
        assert_eq!(runtime.block_on(runtime.spawn_blocking(|| 8)).unwrap(), 8);
    });
}

#[test]
fn a_guard_of_enter_is_for_local_tasks_and_for_the_runtime() {
    ends(|| {
        let options = LocalOptions::default();
        let builder = Builder::new_current_thread().enable_all();
        let runtime = builder.build_local(options).unwrap();
        let guard = runtime.enter();
        let local = spawn_local(async { Rc::new(1) });
        let beside = urgency::spawn(async { 2 });
        assert!(Handle::try_current().is_ok());
        drop(guard);
        assert!(Handle::try_current().is_err());
        let sum = runtime.block_on(async { *local.await.unwrap() + beside.await.unwrap() });
        assert_eq!(sum, 3);
    });
}

/// Notes where it is dropped: in a runtime or in none.
struct Dropped(Rc<RefCell<Vec<bool>>>);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.borrow_mut().push(Handle::try_current().is_ok());
    }
}

#[test]
fn the_end_drops_the_local_tasks_inside_the_runtime() {
    ends(|| {
        let dropped = Rc::new(RefCell::new(Vec::new()));
        let ends: [fn(LocalRuntime); 3] = [drop, LocalRuntime::shutdown_background, |runtime| {
            runtime.shutdown_timeout(Duration::from_secs(1))
        }];
        for (number, end) in ends.into_iter().enumerate() {
            let runtime = LocalRuntime::new().unwrap();
            let value = Dropped(dropped.clone());
            let waits = runtime.spawn_local(async move {
                pending::<()>().await;
                drop(value);
            });
            runtime.block_on(yield_now());
            end(runtime);
            assert!(waits.get().unwrap_err().is_cancelled());
            assert_eq!(*dropped.borrow(), vec![true; number + 1]);
        }
    });
}

#[test]
#[should_panic = "`spawn_local` called from outside of a `task::LocalSet` or `runtime::LocalRuntime`"]
fn a_local_task_in_another_runtime_is_a_panic() {
    let runtime = Builder::new_current_thread().build().unwrap();
    runtime.block_on(async { drop(spawn_local(async {})) });
}

#[urgency::test(flavor = "local")]
async fn a_test_of_the_flavor_local_may_spawn_local_tasks() {
    let name = Rc::new("local");
    let task = spawn_local(async move { name.len() });
    assert_eq!(task.await.unwrap(), 5);
}
