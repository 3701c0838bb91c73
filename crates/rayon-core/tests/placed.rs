//! Pools that are placed on the program's runtime, one for all tests: the place is the process's.

use rayon_core::{ThreadPoolBuilder, join, scope, urgency::place_pools};
use std::{
    sync::{
        Mutex, OnceLock,
        atomic::{AtomicUsize, Ordering::SeqCst},
        mpsc::channel,
    },
    time::Duration,
};
use urgency::{LevelId, Runtime, blocking, current_level};

urgency::levels! { App: Interactive > Batch }

/// The runtime, where pools are placed at the lower level from now on.
fn runtime() -> &'static Runtime {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    RUNTIME.get_or_init(|| {
        let builder = Runtime::builder().workers(2).levels::<App>();
        let runtime = builder.build().unwrap();
        place_pools(&runtime, Batch);
        runtime
    })
}

#[test]
fn in_blocking_code_a_placed_pool_is_the_level_of_the_code_around_it() {
    let runtime = runtime();
    let pool = ThreadPoolBuilder::new().num_threads(2).build().unwrap();
    for level in [LevelId::from(Interactive), LevelId::from(Batch)] {
        let install = || blocking(|| pool.install(current_level));
        assert_eq!(runtime.at(level).run(install), level);
    }
}

#[test]
fn a_panic_handler_runs_as_code_inside_its_pool() {
    let _ = runtime();
    let (send, caught) = channel();
    let pool = ThreadPoolBuilder::new()
        .num_threads(2)
        .panic_handler(move |_| send.send(()).unwrap())
        .build()
        .unwrap();
    pool.install(|| rayon_core::spawn(|| panic!("on purpose")));
    assert_eq!(caught.recv_timeout(Duration::from_secs(20)), Ok(()));
}

#[test]
fn a_placed_pool_is_the_callers_level_of_the_runtime_and_small_pools_stay_their_own() {
    let runtime = runtime();
    let (urgent, batch) = (LevelId::from(Interactive), LevelId::from(Batch));
    let pool = ThreadPoolBuilder::new().num_threads(8).build().unwrap();
    assert_eq!(pool.current_num_threads(), 2);

    // From outside, through the pool and through the free functions.
    assert_eq!(pool.join(current_level, current_level), (batch, batch));
    assert_eq!(join(current_level, current_level), (batch, batch));

    // From code of the runtime: at its own level, in every way.
    for level in [urgent, batch] {
        let seen = Mutex::new(Vec::new());
        let note = || seen.lock().unwrap().push(current_level());
        let spawned = runtime.at(level).run(|| {
            pool.install(note);
            pool.scope(|s| (0..10).for_each(|_| s.spawn(|_| note())));
            pool.in_place_scope(|s| (0..10).for_each(|_| s.spawn(|_| note())));
            pool.scope_fifo(|s| (0..10).for_each(|_| s.spawn_fifo(|_| note())));
            pool.broadcast(|_| note());
            scope(|s| s.spawn(|_| note()));
            let (sender, receiver) = channel();
            pool.spawn(move || sender.send(current_level()).unwrap());
            receiver
        });
        let seen = seen.into_inner().unwrap();
        assert_eq!(seen, vec![level; 34]);
        assert_eq!(spawned.recv(), Ok(level));
    }

    // One thread may be there so that one thing happens at a time.
    let single = ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    assert_eq!(single.current_num_threads(), 1);
    let at_once = AtomicUsize::new(0);
    single.scope(|s| {
        for _ in 0..10 {
            s.spawn(|_| {
                assert_eq!(at_once.fetch_add(1, SeqCst), 0);
                std::thread::yield_now();
                at_once.fetch_sub(1, SeqCst);
            });
        }
    });
}
