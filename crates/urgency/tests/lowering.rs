//! Lowering: a thread whose worker was revoked for more urgent work does not compete with that work, with a permission
//! to come back and without.

mod common;

use common::{
    IDLE, REAL_TIME, USUAL, class_of, drop_permission, ends, in_child, is_child, may_enter,
    my_folder, runtime, with_levels,
};
use std::{
    hint,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering::*},
        mpsc,
    },
    thread,
    time::Duration,
};
use urgency::{JoinHandle, LevelId, Runtime, scheduling_point, time};

urgency::levels! { pub App: Urgent > Usual > Idle }

/// A closure that loops without a scheduling point until the flag is set, and the folder of its thread.
fn looping(
    runtime: &Runtime,
    level: impl Into<LevelId>,
    stop: &Arc<AtomicBool>,
) -> (JoinHandle<()>, PathBuf) {
    let (stop, (tell, told)) = (stop.clone(), mpsc::channel());
    let handle = runtime.at(level).spawn_fn(move || {
        tell.send(my_folder()).unwrap();
        while !stop.load(Relaxed) {
            hint::spin_loop();
        }
    });
    (handle, told.recv().unwrap())
}

fn niceness(thread: &Path) -> i32 {
    let stat = std::fs::read_to_string(thread.join("stat")).unwrap();
    let after_name = stat.rsplit(')').next().unwrap();
    after_name
        .split_whitespace()
        .nth(16)
        .unwrap()
        .parse()
        .unwrap()
}

/// Runs `test` in this process, and in one of its own without the permission.
#[track_caller]
fn with_and_without_permission(name: &str, test: fn()) {
    if is_child() {
        drop_permission();
        ends(test);
    } else {
        ends(test);
        in_child(name);
    }
}

#[test]
#[cfg_attr(urgency_chaos, ignore = "chaos relieves without need")]
fn a_thread_that_lost_its_worker_to_urgent_work_is_lowered_and_rests_later() {
    with_and_without_permission(
        "a_thread_that_lost_its_worker_to_urgent_work_is_lowered_and_rests_later",
        || {
            let runtime = with_levels::<App>(1);
            let stop = Arc::new(AtomicBool::new(false));
            let (idle, thread) = looping(&runtime, Idle, &stop);
            assert_eq!(class_of(&thread), USUAL);
            let seen = thread.clone();
            let urgent = runtime.at(Urgent).spawn_fn(move || {
                while class_of(&seen) != IDLE {
                    hint::spin_loop();
                }
            });
            urgent.get().unwrap();
            assert!(runtime.stats().lowerings >= 1);
            if runtime.stats().can_raise {
                while class_of(&thread) != USUAL {
                    thread::sleep(Duration::from_millis(1));
                }
            } else {
                thread::sleep(Duration::from_millis(100));
                assert_eq!(class_of(&thread), IDLE);
            }
            // It has not noticed anything.
            assert!(!idle.is_finished());
            stop.store(true, Relaxed);
            idle.get().unwrap();
        },
    );
}

#[test]
#[cfg_attr(urgency_chaos, ignore = "chaos relieves without need")]
fn a_level_between_has_a_niceness_between() {
    ends(|| {
        let runtime = with_levels::<App>(1);
        let stop = Arc::new(AtomicBool::new(false));
        let (usual, thread) = looping(&runtime, Usual, &stop);
        let before = niceness(&thread);
        let urgent = runtime.at(Urgent).spawn_fn(move || {
            while niceness(&thread) == before {
                hint::spin_loop();
            }
            (niceness(&thread), class_of(&thread))
        });
        let (after, class) = urgent.get().unwrap();
        assert_eq!((after, class), ((before + 9).min(19), USUAL));
        stop.store(true, Relaxed);
        usual.get().unwrap();
    });
}

/// The worker was revoked for an equal, and is idle when the urgent work comes: no worker is revoked for that.
#[test]
#[cfg_attr(urgency_chaos, ignore = "chaos relieves without need")]
fn a_thread_that_overran_its_equals_is_lowered_for_urgent_work_that_an_idle_worker_runs() {
    ends(|| {
        let runtime = with_levels::<App>(1);
        let stop = Arc::new(AtomicBool::new(false));
        let (endless, thread) = looping(&runtime, Idle, &stop);
        runtime.at(Idle).spawn_fn(|| ()).get().unwrap();
        // No expiry of relief is due any more.
        thread::sleep(Duration::from_millis(50));
        assert_eq!((class_of(&thread), runtime.stats().lowerings), (USUAL, 0));
        let urgent = runtime.at(Urgent).spawn_fn(move || {
            while class_of(&thread) != IDLE {
                hint::spin_loop();
            }
        });
        urgent.get().unwrap();
        stop.store(true, Relaxed);
        endless.get().unwrap();
    });
}

#[test]
fn nobody_is_lowered_for_its_equals() {
    ends(|| {
        let runtime = runtime(1);
        let stop = Arc::new(AtomicBool::new(false));
        let level = LevelId::new(0).unwrap();
        let (endless, _) = looping(&runtime, level, &stop);
        // The endless loop loses its worker in the end.
        runtime.spawn(async {}).get().unwrap();
        assert_eq!(runtime.stats().lowerings, 0);
        stop.store(true, Relaxed);
        endless.get().unwrap();
    });
}

#[test]
fn nobody_is_lowered_if_the_program_says_so() {
    ends(|| {
        let builder = Runtime::builder().workers(1).levels::<App>();
        let runtime = builder.lower_threads(false).build().unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let (idle, _) = looping(&runtime, Idle, &stop);
        for _ in 0..20 {
            runtime.at(Urgent).spawn_fn(|| ()).get().unwrap();
        }
        assert_eq!(runtime.stats().lowerings, 0);
        stop.store(true, Relaxed);
        idle.get().unwrap();
    });
}

/// Whether a thread comes back or another one runs the urgent work.
#[test]
#[cfg_attr(urgency_chaos, ignore = "chaos relieves without need")]
fn urgent_work_runs_in_the_usual_class_after_its_threads_were_lowered() {
    with_and_without_permission(
        "urgent_work_runs_in_the_usual_class_after_its_threads_were_lowered",
        || {
            for workers in [1, 2] {
                let runtime = with_levels::<App>(workers);
                let lowered = Arc::new(AtomicUsize::new(0));
                for round in 0..20 {
                    let stop = Arc::new(AtomicBool::new(false));
                    let loops: Vec<_> = (0..workers)
                        .map(|_| looping(&runtime, Idle, &stop))
                        .collect();
                    let seen: Vec<_> = loops.iter().map(|(_, thread)| thread.clone()).collect();
                    let urgent = runtime.at(Urgent).spawn_fn(move || {
                        let own = class_of(&my_folder());
                        let is_usual = |thread: &PathBuf| class_of(thread) == USUAL;
                        while round == 0 && seen.iter().all(is_usual) {
                            hint::spin_loop();
                        }
                        own
                    });
                    let usual = urgent.get().unwrap() == USUAL;
                    lowered.fetch_add(usize::from(!usual), Relaxed);
                    stop.store(true, Relaxed);
                    loops.into_iter().for_each(|(l, _)| l.get().unwrap());
                }
                // A thread may be lowered just as its stack comes to a scheduling point.
                assert!(lowered.load(Relaxed) <= 2, "{lowered:?} of 20");
                assert!(runtime.stats().lowerings >= 1);
                assert!(runtime.stats().threads <= 4 * workers + 4);
            }
        },
    );
}

/// Less urgent closures that come to scheduling points and urgent tasks take turns on lowered and other threads.
#[test]
fn nothing_is_lost_where_threads_cannot_come_back() {
    with_and_without_permission("nothing_is_lost_where_threads_cannot_come_back", || {
        let runtime = with_levels::<App>(2);
        let ran = Arc::new(AtomicUsize::new(0));
        let levels: [LevelId; 3] = [Urgent.into(), Usual.into(), Idle.into()];
        let closures: Vec<_> = (0..300)
            .map(|i| {
                let ran = ran.clone();
                runtime.at(levels[i % 3]).spawn_fn(move || {
                    let since = std::time::Instant::now();
                    while since.elapsed() < Duration::from_millis(1) {
                        if i % 2 == 0 {
                            scheduling_point();
                        }
                        if i % 7 == 0 {
                            urgency::join(|| (), || ());
                        }
                    }
                    ran.fetch_add(1, Relaxed);
                })
            })
            .collect();
        let ticks = runtime.at(Urgent).spawn(async {
            for _ in 0..100 {
                time::sleep(Duration::from_millis(1)).await;
            }
        });
        closures.into_iter().for_each(|c| c.get().unwrap());
        ticks.get().unwrap();
        assert_eq!(ran.load(Relaxed), 300);
    });
}

/// An audio thread, for instance, that spawns: what the runtime starts for it is not in its class.
#[test]
fn threads_that_a_real_time_thread_has_made_are_in_the_usual_class() {
    ends(|| {
        if !may_enter(REAL_TIME) {
            println!("skipped: this system does not permit the real-time class");
            return;
        }
        let runtime = with_levels::<App>(2);
        let spawner = thread::spawn(move || {
            let parameters = libc::sched_param { sched_priority: 1 };
            // SAFETY: `parameters` outlives the call.
            let entered = unsafe { libc::sched_setscheduler(0, libc::SCHED_RR, &parameters) };
            assert_eq!(entered, 0);
            let classes: Vec<_> = (0..8)
                .map(|_| {
                    runtime.at(Urgent).spawn_fn(|| {
                        urgency::blocking(|| thread::sleep(Duration::from_millis(5)));
                        class_of(&my_folder())
                    })
                })
                .collect();
            classes.into_iter().map(|c| c.get().unwrap()).collect()
        });
        let classes: Vec<Option<u32>> = spawner.join().unwrap();
        assert_eq!(classes, [USUAL; 8]);
    });
}
