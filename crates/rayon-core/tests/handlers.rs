//! Start and exit handlers are inside their pool.

use rayon_core::{
    ThreadPool, ThreadPoolBuilder, Yield, broadcast, current_num_threads,
    current_thread_has_pending_tasks, current_thread_index, join, scope, spawn, yield_local,
    yield_now,
};
use std::{
    any::Any,
    sync::{Arc, Mutex, OnceLock, mpsc::channel},
    thread,
    time::Duration,
};

const LIMIT: Duration = Duration::from_secs(20);

fn text_of(panic: Box<dyn Any + Send>) -> String {
    match panic.downcast::<String>() {
        Ok(text) => *text,
        Err(panic) => (*panic.downcast::<&str>().unwrap()).to_owned(),
    }
}

#[test]
fn in_both_handlers_the_free_functions_mean_the_pool() {
    let (send, seen) = channel();
    let again = send.clone();
    let pool = ThreadPoolBuilder::new().num_threads(3);
    let pool = pool.start_handler(move |index| {
        let sender = send.clone();
        spawn(move || sender.send(("spawned", current_num_threads())).unwrap());
        assert_eq!(current_thread_index(), Some(index));
        send.send(("started", current_num_threads())).unwrap();
    });
    let pool = pool.exit_handler(move |_| {
        again.send(("ended", current_num_threads())).unwrap();
    });
    drop(pool.build().unwrap());
    let mut seen: Vec<_> = std::iter::from_fn(|| seen.recv_timeout(LIMIT).ok()).collect();
    seen.sort_unstable();
    seen.dedup();
    assert_eq!(seen, [("ended", 3), ("spawned", 3), ("started", 3)]);
}

#[test]
fn what_a_handler_waits_for_runs_and_needs_no_other_thread() {
    let (send, seen) = channel();
    let pool: Arc<OnceLock<ThreadPool>> = Arc::default();
    let later = pool.clone();
    let builder = ThreadPoolBuilder::new().num_threads(1);
    let builder = builder.start_handler(move |_| {
        let mut sum = 0;
        scope(|s| s.spawn(|s| s.spawn(|_| sum = 3)));
        let (a, b) = join(|| 4, || 5);
        let own = later.get().map_or(0, |pool| pool.install(|| 1));
        assert!(own <= 1);
        send.send(sum + a + b).unwrap();
    });
    assert!(pool.set(builder.build().unwrap()).is_ok());
    assert_eq!(seen.recv_timeout(LIMIT), Ok(12));
}

#[test]
fn after_a_handler_that_panicked_a_thread_of_the_program_is_outside_again() {
    let (send, seen) = channel();
    let (panics, caught) = channel();
    let pool = ThreadPoolBuilder::new()
        .num_threads(1)
        .exit_handler(|_| panic!("on purpose"))
        .panic_handler(move |_| panics.send(()).unwrap())
        .spawn_handler(move |thread| {
            let send = send.clone();
            thread::spawn(move || {
                thread.run();
                send.send(current_thread_index()).unwrap();
            });
            Ok(())
        });
    drop(pool.build().unwrap());
    assert_eq!(seen.recv_timeout(LIMIT), Ok(None));
    assert_eq!(caught.recv_timeout(LIMIT), Ok(()));
}

#[test]
fn in_a_handler_a_thread_is_part_of_its_pool_and_becomes_part_of_no_other() {
    let (send, seen) = channel();
    let mut threads = Vec::new();
    let provided = ThreadPoolBuilder::new().num_threads(2);
    let provided = provided.spawn_handler(|thread| {
        threads.push(thread);
        Ok(())
    });
    let provided = provided.build().unwrap();
    let threads = Mutex::new(threads);
    let panics = send.clone();
    let tries = Arc::new(move |_| {
        let here = ThreadPoolBuilder::new().use_current_thread().build();
        send.send(here.unwrap_err().to_string()).unwrap();
        let thread = threads.lock().unwrap().pop();
        thread.unwrap().run();
    });
    let tries_again = tries.clone();
    let pool = ThreadPoolBuilder::new()
        .num_threads(1)
        .start_handler(move |index| tries(index))
        .exit_handler(move |index| tries_again(index))
        .panic_handler(move |panic| panics.send(text_of(panic)).unwrap());
    drop(pool.build().unwrap());
    for _ in 0..2 {
        for part in [
            "already part of another thread pool",
            "part of a pool already",
        ] {
            let said = seen.recv_timeout(LIMIT).unwrap();
            assert!(said.contains(part), "{said}");
        }
    }
    drop(provided);
}

#[test]
fn in_a_handler_a_join_runs_its_second_closure_whatever_the_first_does() {
    let (send, seen) = channel();
    let panics = send.clone();
    let pool = ThreadPoolBuilder::new()
        .num_threads(1)
        .start_handler(move |_| {
            let second = || {
                send.send("the second has run".to_owned()).unwrap();
                panic!("the second, on purpose")
            };
            join(|| panic!("the first, on purpose"), second);
        })
        .panic_handler(move |panic| panics.send(text_of(panic)).unwrap());
    let _pool = pool.build().unwrap();
    let seen = [(); 2].map(|()| seen.recv_timeout(LIMIT).unwrap());
    assert_eq!(seen, ["the second has run", "the first, on purpose"]);
}

#[test]
fn in_a_handler_a_yield_finds_nothing_to_run_in_its_pool() {
    let (send, seen) = channel();
    let other = ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    let pool = ThreadPoolBuilder::new().num_threads(1);
    let pool = pool.start_handler(move |_| {
        let yields = [yield_now(), yield_local(), other.yield_now()];
        let pending = current_thread_has_pending_tasks();
        send.send((yields, pending)).unwrap();
    });
    let _pool = pool.build().unwrap();
    let yields = [Some(Yield::Idle), Some(Yield::Idle), None];
    assert_eq!(seen.recv_timeout(LIMIT), Ok((yields, Some(false))));
}

#[test]
fn what_would_wait_for_all_threads_panics_in_a_handler() {
    let (send, seen) = channel();
    let pool = ThreadPoolBuilder::new()
        .num_threads(2)
        .start_handler(|index| match index {
            0 => scope(|s| s.spawn_broadcast(|_, _| ())),
            _ => drop(broadcast(|_| ())),
        })
        .panic_handler(move |panic| send.send(text_of(panic)).unwrap());
    let _pool = pool.build().unwrap();
    let mut said = [(); 2].map(|()| seen.recv_timeout(LIMIT).unwrap());
    said.sort();
    assert!(
        said[0].starts_with("`broadcast` waits for all threads"),
        "{said:?}"
    );
    assert!(
        said[1].starts_with("a scope's `spawn_broadcast` waits"),
        "{said:?}"
    );
}
