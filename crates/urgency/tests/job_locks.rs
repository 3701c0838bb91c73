//! Blocking calls and locks that the runtime does not know, between jobs: a thread that sleeps in the kernel keeps no
//! core from any job.

mod common;

use common::ends;
use std::sync::{
    Arc, Mutex,
    atomic::{AtomicUsize, Ordering::SeqCst},
    mpsc,
};
use urgency::{jobs::CoreSet, join, scheduling_point};

#[test]
fn jobs_that_sleep_in_the_kernel_keep_no_core_from_a_less_urgent_job() {
    for count in [1, 2] {
        ends(move || {
            let cores = CoreSet::builder().cores(count).build().unwrap();
            let (send, receive) = mpsc::channel();
            let receive = Arc::new(Mutex::new(receive));
            let urgent: Vec<_> = (0..count)
                .map(|_| {
                    let receive = receive.clone();
                    let sleep = move || receive.lock().unwrap().recv().unwrap();
                    cores.spawn_fn(sleep).unwrap()
                })
                .collect();
            let late = cores.job().priority(1).spawn_fn(move || {
                (0..count).for_each(|n| send.send(n).unwrap());
            });
            late.unwrap().get().unwrap();
            let received = urgent.into_iter().map(|job| job.get().unwrap());
            assert_eq!(received.sum::<usize>(), (0..count).sum());
        });
    }
}

#[test]
fn a_foreign_lock_that_a_less_urgent_job_holds_is_released_while_urgent_jobs_wait_for_it_on_all_cores()
 {
    for count in [1, 2] {
        ends(move || {
            let cores = CoreSet::builder().cores(count).build().unwrap();
            let lock = Arc::new(Mutex::new(0));
            let entered = Arc::new(AtomicUsize::new(0));
            let (locked, is_locked) = mpsc::channel();
            let (theirs, others) = (lock.clone(), entered.clone());
            let late = cores.job().priority(1).spawn_fn(move || {
                let mut guard = theirs.lock().unwrap();
                locked.send(()).unwrap();
                // The last of them enters when this job has lost its last core.
                while others.load(SeqCst) < count {
                    scheduling_point();
                }
                *guard += 1;
            });
            is_locked.recv().unwrap();
            let urgent: Vec<_> = (0..count)
                .map(|_| {
                    let (lock, entered) = (lock.clone(), entered.clone());
                    let add = move || {
                        entered.fetch_add(1, SeqCst);
                        *lock.lock().unwrap() += 1;
                    };
                    cores.spawn_fn(add).unwrap()
                })
                .collect();
            urgent.into_iter().for_each(|job| job.get().unwrap());
            late.unwrap().get().unwrap();
            assert_eq!(*lock.lock().unwrap(), count + 1);
        });
    }
}

#[test]
fn jobs_of_several_priorities_that_fork_under_one_foreign_lock_all_end() {
    ends(|| {
        let cores = CoreSet::builder().cores(2).most_running(4).build().unwrap();
        let lock = Arc::new(Mutex::new(0));
        let jobs: Vec<_> = (0..40)
            .map(|n: u32| {
                let lock = lock.clone();
                let job = cores.job().priority((n % 3) as u8).weight(1 + n % 5);
                let job = job.max_cpus(1 + (n % 2) as usize);
                let add = move || {
                    for _ in 0..20 {
                        let mut guard = lock.lock().unwrap();
                        let (a, b) = join(|| common::fib(10), || common::fib(10));
                        *guard += a - b + 1;
                    }
                };
                job.spawn_fn(add).unwrap()
            })
            .collect();
        jobs.into_iter().for_each(|job| job.get().unwrap());
        assert_eq!(*lock.lock().unwrap(), 800);
    });
}
