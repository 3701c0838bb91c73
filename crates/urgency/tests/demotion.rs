//! Demotion: a thread that lost its worker and keeps its processor is in the kernel's idle class, and comes back.

mod common;

use common::{IDLE, USUAL, class_of, ends, my_folder, runtime};
use std::{
    hint,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::*},
        mpsc,
    },
    time::Duration,
};
use urgency::{Handle, Runtime, scheduling_point, time};

urgency::levels! { pub App: Urgent > Usual > Idle }

/// Whether demotions can be seen here; says so if not.
fn can_demote(runtime: &Runtime) -> bool {
    let can = runtime.stats().can_demote;
    if !can {
        println!("skipped: this system does not let a thread be demoted and come back");
    }
    can
}

/// Two tasks that take turns until the flag is set: one of them waits at any time.
fn something_always_waits(runtime: &Runtime, stop: &Arc<AtomicBool>) -> [Handle<()>; 2] {
    [(); 2].map(|()| {
        let stop = stop.clone();
        runtime.spawn(async move {
            while !stop.load(Relaxed) {
                urgency::yield_now().await;
            }
        })
    })
}

/// Overruns until its thread is seen in the idle class, and tells in which one it is after the next scheduling point.
fn demoted_once(runtime: &Runtime) -> Option<u32> {
    let stop = Arc::new(AtomicBool::new(false));
    let (theirs, (tell, told)) = (stop.clone(), mpsc::channel());
    let overrunning = runtime.spawn_fn(move || {
        tell.send(my_folder()).unwrap();
        while !theirs.load(Relaxed) {
            hint::spin_loop();
        }
        scheduling_point();
        class_of(&my_folder())
    });
    let thread = told.recv().unwrap();
    while class_of(&thread) != IDLE {
        std::thread::sleep(Duration::from_micros(200));
    }
    assert!(!overrunning.is_finished());
    stop.store(true, Relaxed);
    overrunning.get().unwrap()
}

/// Something waits all the time, so nothing but the scheduling point restores the thread, except for one of
/// seventeen periods. And it may be demoted again before it looks: so this is counted.
#[test]
#[cfg_attr(urgency_chaos, ignore = "chaos relieves without need")]
fn a_thread_that_overruns_is_in_the_idle_class_until_its_next_scheduling_point() {
    ends(|| {
        const ROUNDS: usize = 6;
        let runtime = runtime(1);
        if !can_demote(&runtime) {
            return;
        }
        let enough = Arc::new(AtomicBool::new(false));
        let waiting = something_always_waits(&runtime, &enough);
        let classes: Vec<_> = (0..ROUNDS).map(|_| demoted_once(&runtime)).collect();
        let restored = classes.iter().filter(|&&class| class == USUAL).count();
        assert!(restored >= ROUNDS / 2, "{classes:?}");
        assert!(runtime.stats().demotions >= ROUNDS as u64);
        enough.store(true, Relaxed);
        waiting.into_iter().for_each(|task| task.get().unwrap());
    });
}

/// Beside other processes a demoted thread hardly runs: it is demoted for the sake of what waits, and not longer.
#[test]
fn a_demoted_thread_that_goes_on_looping_is_restored_when_nothing_waits() {
    ends(|| {
        let runtime = runtime(1);
        if !can_demote(&runtime) {
            return;
        }
        let stop = Arc::new(AtomicBool::new(false));
        let (theirs, (tell, told)) = (stop.clone(), mpsc::channel());
        let looping = runtime.spawn_fn(move || {
            tell.send(my_folder()).unwrap();
            while !theirs.load(Relaxed) {
                hint::spin_loop();
            }
        });
        let thread = told.recv().unwrap();
        let enough = Arc::new(AtomicBool::new(false));
        let waiting = something_always_waits(&runtime, &enough);
        while class_of(&thread) != IDLE {
            std::thread::sleep(Duration::from_micros(200));
        }
        enough.store(true, Relaxed);
        waiting.into_iter().for_each(|task| task.get().unwrap());
        while class_of(&thread) != USUAL {
            std::thread::sleep(Duration::from_millis(1));
        }
        assert!(!looping.is_finished());
        stop.store(true, Relaxed);
        looping.get().unwrap();
    });
}

/// A thread that events preempt is in the idle class while they come, and in its usual one soon after. All on
/// one processor: on two the events do not preempt it.
#[test]
fn a_preempted_thread_is_demoted_while_events_come_if_the_program_asks_for_it() {
    ends(|| {
        let mut one = rustix::thread::CpuSet::new();
        one.set(rustix::thread::sched_getcpu());
        // This thread's own, which those that it makes inherit.
        rustix::thread::sched_setaffinity(None, &one).unwrap();
        let builder = Runtime::builder().workers(1).levels::<App>();
        let runtime = builder.demote_preempted(true).build().unwrap();
        if !runtime.stats().can_demote {
            println!("skipped: this system does not let a thread be demoted and come back");
            return;
        }
        let stop = Arc::new(AtomicBool::new(false));
        let (theirs, (tell, told)) = (stop.clone(), mpsc::channel());
        let looping = runtime.spawn_fn_at(Idle, move || {
            tell.send(std::fs::read_link("/proc/thread-self").unwrap())
                .unwrap();
            while !theirs.load(Relaxed) {
                hint::spin_loop();
            }
        });
        let thread = std::path::Path::new("/proc").join(told.recv().unwrap());
        let policy = || {
            let stat = std::fs::read_to_string(thread.join("stat")).unwrap();
            stat.split(' ').nth(40).unwrap().to_owned()
        };
        let come = Arc::new(AtomicBool::new(true));
        let theirs = come.clone();
        let events = runtime.spawn_at(Urgent, async move {
            while theirs.load(Relaxed) {
                time::sleep(Duration::from_micros(300)).await;
            }
        });
        while policy() != "5" {
            // It shares the processor with all of them.
            std::thread::sleep(Duration::from_micros(100));
        }
        come.store(false, Relaxed);
        events.get().unwrap();
        while policy() != "0" {
            std::thread::sleep(Duration::from_millis(1));
        }
        // It has not noticed anything: nothing but its worker was ever wanted of it.
        assert!(!looping.is_finished());
        stop.store(true, Relaxed);
        looping.get().unwrap();
        assert!(runtime.stats().demotions > 0);
    });
}
