//! Less urgent work of an ordinary user beside processes that compute on all processors: its threads are in the
//! kernel's idle class for good, so it is late. It ends, and no urgent work waits for what its threads hold.

#![cfg(target_os = "linux")]

mod common;

use common::{
    IDLE, class_of, drop_permission, ends, in_child, is_child, my_folder, run_time, with_levels,
};
use std::{
    hint,
    io::Read,
    process::{Child, Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::SeqCst},
        mpsc,
    },
    thread,
    time::Duration,
};
use urgency::{par, time};

urgency::levels! { App: Urgent > Batch }

/// A process that computes until this is dropped, and for some minutes at most.
struct Process(Child);

impl Process {
    /// It computes already.
    fn start() -> Self {
        let mut command = Command::new("timeout");
        command.args(["240", "sh", "-c", "echo begun; while :; do :; done"]);
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let begins = child.stdout.as_mut().unwrap().read_exact(&mut [0; 5]);
        begins.unwrap();
        Process(child)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // `timeout` passes this signal on, and ends. It could not pass on the one of `Child::kill`.
        // SAFETY: plain numbers in; the process has not been waited for.
        unsafe { libc::kill(self.0.id() as libc::pid_t, libc::SIGTERM) };
        self.0.wait().unwrap();
    }
}

fn computes(length: Duration) {
    let since = run_time();
    while run_time() - since < length {
        hint::spin_loop();
    }
}

#[test]
#[cfg_attr(urgency_chaos, ignore = "chaos relieves without need")]
fn lowered_work_beside_processes_that_compute_is_late_and_keeps_nothing_from_urgent_work() {
    if !is_child() {
        return in_child(
            "lowered_work_beside_processes_that_compute_is_late_and_keeps_nothing_from_urgent_work",
        );
    }
    drop_permission();
    ends(|| {
        let processors = thread::available_parallelism().map_or(1, usize::from);
        let others: Vec<_> = (0..processors).map(|_| Process::start()).collect();
        let runtime = with_levels::<App>(2);
        assert!(!runtime.stats().can_raise);
        let is_lowered = Arc::new(AtomicBool::new(false));
        let (lowered, (begin, begun)) = (is_lowered.clone(), mpsc::channel());
        let batch = runtime.at(Batch).spawn_fn(move || {
            let me = my_folder();
            begin.send(()).unwrap();
            while class_of(&me) != IDLE {
                hint::spin_loop();
            }
            lowered.store(true, SeqCst);
            par::for_each(0..40, |_| computes(Duration::from_micros(100)));
        });
        begun.recv().unwrap();
        let urgent: Vec<_> = (0..2)
            .map(|_| {
                let is_lowered = is_lowered.clone();
                runtime.at(Urgent).spawn_fn(move || {
                    while !is_lowered.load(SeqCst) {
                        hint::spin_loop();
                    }
                })
            })
            .collect();
        urgent.into_iter().for_each(|it| it.get().unwrap());
        // Each takes workers from lowered threads that hardly run.
        let mut turns = 0;
        while turns < 100 || !batch.is_finished() {
            let turn = runtime.at(Urgent).spawn(async {
                time::sleep(Duration::from_millis(1)).await;
                let forks = || par::for_each(0..4, |_| computes(Duration::from_micros(20)));
                urgency::spawn_fn(forks).await.unwrap();
            });
            turn.get().unwrap();
            turns += 1;
        }
        batch.get().unwrap();
        drop(others);
    });
}
