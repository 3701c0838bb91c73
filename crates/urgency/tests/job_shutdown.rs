//! The end of jobs and of a core set: what is still accepted, which jobs end, and which ones are named for it.

mod common;

use common::{ends, panics, until};
use std::{
    future::{Future, pending},
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::SeqCst},
        mpsc,
    },
    task::{Context, Poll, Waker},
    thread,
    time::Duration,
};
use urgency::{
    Runtime, Shutdown,
    jobs::{CoreSet, JobControl, JobErrorKind, JobHandle, JobShutdown, SubmitError, is_cancelled},
    sync::oneshot,
};

const SOON: Duration = Duration::from_millis(10);
const LATE: Duration = Duration::from_secs(60);

fn set(most_running: usize) -> CoreSet {
    let builder = CoreSet::builder().cores(2).most_running(most_running);
    builder.most_queued(9).build().unwrap()
}

/// A job that ends when the sender is used.
fn waits(set: &CoreSet) -> (JobHandle<()>, oneshot::Sender<()>) {
    let (end, ends) = oneshot::channel();
    let root = async move {
        let _ = ends.await;
    };
    (set.spawn(root).unwrap(), end)
}

#[test]
fn a_drain_with_a_limit_names_the_jobs_that_run_or_are_queued_and_lets_them_go_on() {
    ends(|| {
        let set = set(1);
        let (first, end) = waits(&set);
        let calm = set.job().priority(3).spawn_fn(|| 3).unwrap();
        let urgent = set.spawn_fn(|| 0).unwrap();
        let left = set.drain_within(SOON).unwrap_err();
        assert_eq!(left.ids(), [first.id(), calm.id(), urgent.id()]);
        let text = left.to_string();
        assert!(
            text.contains("3 job(s)") && text.contains(&calm.id().to_string()),
            "{text}"
        );
        end.send(()).unwrap();
        set.drain_within(LATE).unwrap();
        assert_eq!((calm.get().unwrap(), urgent.get().unwrap()), (3, 0));
        // From code of another runtime, too.
        let runtime = Runtime::builder().workers(1).build().unwrap();
        let (last, end) = waits(&set);
        let theirs = set.clone();
        let drain = runtime.spawn_fn(move || theirs.drain_within(SOON).unwrap_err().ids().len());
        assert_eq!(drain.get().unwrap(), 1);
        end.send(()).unwrap();
        last.get().unwrap();
    });
}

/// The set is beside a runtime, whose jobs go on when that has ended.
#[test]
fn a_drain_with_a_limit_waits_also_if_the_runtime_beside_the_set_ends_before_or_meanwhile() {
    ends(|| {
        let runtime = Runtime::builder().workers(2).build().unwrap();
        let set = CoreSet::beside(&runtime);
        let (job, end) = waits(&set);
        let (tells, told) = mpsc::channel();
        let during = {
            let set = set.clone();
            thread::spawn(move || {
                tells.send(()).unwrap();
                set.drain_within(LATE)
            })
        };
        told.recv().unwrap();
        thread::sleep(SOON);
        assert_eq!(runtime.shutdown(Shutdown::Cancel).left, 0);
        let left = set.drain_within(SOON).unwrap_err();
        assert_eq!(left.ids(), [job.id()]);
        end.send(()).unwrap();
        assert_eq!(during.join().unwrap(), Ok(()));
        let (last, _end) = waits(&set);
        set.shutdown_within(JobShutdown::Cancel, LATE).unwrap();
        assert_eq!(last.get().unwrap_err().kind(), JobErrorKind::Cancelled);
        drop(job);
    });
}

/// The last job takes the driver of timers with it, a moment before its set knows that the job is over.
#[test]
fn a_shutdown_with_a_limit_ends_with_the_last_job_after_the_end_of_the_runtime_beside_the_set() {
    ends(|| {
        for _ in 0..200 {
            let runtime = Runtime::builder().workers(1).build().unwrap();
            let set = CoreSet::beside(&runtime);
            let job = set.spawn_fn(|| while !is_cancelled() {}).unwrap();
            assert_eq!(runtime.shutdown(Shutdown::Cancel).left, 0);
            set.shutdown_within(JobShutdown::Cancel, LATE).unwrap();
            drop(job);
        }
    });
}

#[test]
fn a_closed_set_accepts_no_job_by_any_way_and_the_jobs_that_it_has_go_on() {
    ends(|| {
        let set = set(1);
        let (running, end) = waits(&set);
        let queued = set.spawn_fn(|| 7).unwrap();
        let job = set.job();
        let early = job.try_reserve().unwrap();
        let others: Vec<_> = std::iter::from_fn(|| job.try_reserve().ok()).collect();
        let mut cx = Context::from_waker(Waker::noop());
        let mut wait = pin!(job.reserve());
        assert!(wait.as_mut().poll(&mut cx).is_pending());
        set.close();
        let refused = |poll| matches!(poll, Poll::Ready(Err(SubmitError::ShutDown)));
        assert!(refused(wait.as_mut().poll(&mut cx)));
        drop(others);
        assert_eq!(early.spawn_fn(|| ()).unwrap_err(), SubmitError::ShutDown);
        assert_eq!(job.try_reserve().unwrap_err(), SubmitError::ShutDown);
        assert_eq!(job.blocking_reserve().unwrap_err(), SubmitError::ShutDown);
        let refused = set.spawn(async {}).unwrap_err();
        assert!(refused.to_string().contains("shut down"), "{refused}");
        end.send(()).unwrap();
        running.get().unwrap();
        assert_eq!(queued.get().unwrap(), 7);
        set.shutdown(JobShutdown::Drain);
    });
}

#[test]
fn a_shutdown_waits_down_to_a_priority_and_cancels_what_is_less_urgent() {
    ends(|| {
        let set = set(2);
        let calm = set.job().priority(5).spawn(pending::<()>()).unwrap();
        let (running, end) = waits(&set);
        let queued = [0, 2, 3, 9].map(|priority| {
            let job = set.job().priority(priority);
            job.spawn_fn(move || priority).unwrap()
        });
        let closes = set.clone();
        let ended = std::thread::spawn(move || closes.shutdown(JobShutdown::DrainDownTo(2)));
        until(|| calm.is_over() && queued[3].is_over());
        end.send(()).unwrap();
        ended.join().unwrap();
        running.get().unwrap();
        assert_eq!(calm.get().unwrap_err().kind(), JobErrorKind::Cancelled);
        let results = queued.map(|job| job.get().ok());
        assert_eq!(results, [Some(0), Some(2), None, None]);
    });
}

#[test]
fn a_shutdown_cancels_all_jobs_at_once_or_when_the_time_is_over() {
    ends(|| {
        for how in [
            JobShutdown::Cancel,
            JobShutdown::Drain,
            JobShutdown::DrainDownTo(0),
        ] {
            let set = set(1);
            let (running, _end) = waits(&set);
            let queued = set.spawn(pending::<()>()).unwrap();
            // Where the machine is busy a job may take longer to end than the tenth of a second.
            let _ = set.shutdown_within(how, SOON);
            set.drain_within(LATE).unwrap();
            for job in [running, queued] {
                assert_eq!(job.get().unwrap_err().kind(), JobErrorKind::Cancelled);
            }
            let stats = set.stats();
            assert_eq!((stats.over, stats.running, stats.queued), (2, 0, 0));
        }
    });
}

#[test]
fn a_shutdown_names_a_job_whose_code_never_checks_in() {
    ends(|| {
        let set = set(2);
        let (begun, stop) = (
            Arc::new(AtomicBool::new(false)),
            Arc::new(AtomicBool::new(false)),
        );
        let (begins, stops) = (begun.clone(), stop.clone());
        let spins = set.spawn_fn(move || {
            begins.store(true, SeqCst);
            while !stops.load(SeqCst) {
                std::hint::spin_loop();
            }
        });
        let spins = spins.unwrap();
        until(|| begun.load(SeqCst));
        let (other, _end) = waits(&set);
        let left = set.shutdown_within(JobShutdown::Cancel, SOON).unwrap_err();
        assert!(left.ids().contains(&spins.id()));
        until(|| other.is_over());
        stop.store(true, SeqCst);
        set.drain_within(LATE).unwrap();
        let _ = spins.get();
    });
}

#[test]
fn a_job_that_waits_for_the_end_of_its_own_set_panics_with_a_text_that_says_so() {
    ends(|| {
        let set = set(2);
        let calls: [fn(&CoreSet); 3] = [
            CoreSet::drain,
            |set| drop(set.drain_within(SOON)),
            |set| set.shutdown(JobShutdown::Cancel),
        ];
        for call in calls {
            let inner = set.clone();
            let text = set.spawn_fn(move || panics(|| call(&inner)));
            let text = text.unwrap().get().unwrap();
            assert!(text.contains("from outside of the jobs"), "{text}");
        }
    });
}

#[test]
fn a_root_that_cancels_its_own_job_and_waits_is_dropped() {
    for workers in [1, 2, 8] {
        ends(move || {
            let cores = CoreSet::builder().cores(workers).build().unwrap();
            let (give, take) = oneshot::channel::<JobControl>();
            let job = cores.spawn(async move {
                take.await.unwrap().cancel();
                pending::<()>().await;
            });
            let job = job.unwrap();
            give.send(job.control()).ok().unwrap();
            assert_eq!(job.get().unwrap_err().kind(), JobErrorKind::Cancelled);
            let all = cores.clone();
            let job = cores.spawn(async move {
                urgency::spawn(pending::<()>()).detach();
                all.cancel_all();
                pending::<()>().await;
            });
            let kind = job.unwrap().get().unwrap_err().kind();
            assert_eq!(kind, JobErrorKind::Cancelled);
            // A root that does not wait any more keeps its result.
            let all = cores.clone();
            let job = cores.spawn(async move {
                all.cancel_all();
                7
            });
            assert_eq!(job.unwrap().get().unwrap(), 7);
            cores.drain();
        });
    }
}

/// Waits when it is dropped, and sends the text of its panic.
struct WaitsOnDrop<F: FnOnce() + Send>(Option<F>, mpsc::Sender<String>);

impl<F: FnOnce() + Send> Drop for WaitsOnDrop<F> {
    fn drop(&mut self) {
        let waits = self.0.take().unwrap();
        let _ = self.1.send(panics(waits));
    }
}

#[test]
fn what_a_job_leaves_to_be_dropped_waits_for_no_end_of_its_set_either() {
    ends(|| {
        let set = set(1);
        let (says, said) = mpsc::channel();
        let leaves = || {
            let all = set.clone();
            WaitsOnDrop(Some(move || all.drain()), says.clone())
        };
        let (detached, until_detached) = mpsc::channel::<()>();
        let result = leaves();
        let returns = move || {
            let _ = until_detached.recv();
            result
        };
        set.spawn_fn(returns).unwrap().detach();
        drop(detached);
        assert!(said.recv().unwrap().contains("from outside of the jobs"));
        set.drain();

        let (running, end) = waits(&set);
        let captured = leaves();
        let queued = set.spawn_fn(move || drop(captured)).unwrap();
        queued.cancel();
        assert!(said.recv().unwrap().contains("from outside of the jobs"));
        assert_eq!(queued.get().unwrap_err().kind(), JobErrorKind::Cancelled);
        end.send(()).unwrap();
        running.get().unwrap();
        set.drain();
    });
}

#[test]
fn what_a_queued_job_captured_does_not_wait_for_the_job_that_it_is_dropped_with() {
    ends(|| {
        let set = set(1);
        let (running, end) = waits(&set);
        let (gives, takes) = mpsc::channel::<JobHandle<()>>();
        let (says, said) = mpsc::channel();
        let waits = move || panic!("{:?}", takes.recv().unwrap().get().unwrap_err().kind());
        let captured = WaitsOnDrop(Some(waits), says);
        let queued = set.spawn_fn(move || drop(captured)).unwrap();
        let control = queued.control();
        gives.send(queued).unwrap();
        control.cancel();
        assert_eq!(said.recv().unwrap(), "WaitsForItself");
        end.send(()).unwrap();
        running.get().unwrap();
        set.drain();
    });
}

#[test]
fn what_a_queued_job_captured_may_wait_for_one_that_is_cancelled_with_it() {
    ends(|| {
        let set = set(1);
        let (_running, _end) = waits(&set);
        let (gives, takes) = mpsc::channel::<JobHandle<()>>();
        let (says, said) = mpsc::channel();
        let waits = move || panic!("{:?}", takes.recv().unwrap().get().unwrap_err().kind());
        let captured = WaitsOnDrop(Some(waits), says);
        let first = set.spawn_fn(move || drop(captured)).unwrap();
        gives.send(set.spawn_fn(|| ()).unwrap()).unwrap();
        set.cancel_all();
        assert_eq!(said.recv().unwrap(), "Cancelled");
        assert_eq!(first.get().unwrap_err().kind(), JobErrorKind::Cancelled);
        set.drain();
    });
}

#[test]
fn a_shutdown_names_a_job_that_never_starts_while_what_it_captured_is_dropped() {
    ends(|| {
        let set = set(1);
        let (_running, _end) = waits(&set);
        let (goes_on, until) = mpsc::channel::<()>();
        let (says, said) = mpsc::channel();
        let begins = says.clone();
        let waits = move || {
            begins.send("begins".to_owned()).unwrap();
            panic!("{}", until.recv().is_err());
        };
        let captured = WaitsOnDrop(Some(waits), says);
        let queued = set.spawn_fn(move || drop(captured)).unwrap();
        let control = queued.control();
        let cancels = std::thread::spawn(move || control.cancel());
        assert_eq!(said.recv().unwrap(), "begins");
        let left = set.shutdown_within(JobShutdown::Cancel, SOON).unwrap_err();
        assert_eq!(left.ids(), [queued.id()]);
        assert!(!queued.is_over());
        drop(goes_on);
        set.drain();
        assert!(queued.is_over());
        cancels.join().unwrap();
    });
}
