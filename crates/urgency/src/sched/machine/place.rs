//! On which processor a worker runs: where there is one for each worker, on one of its own.
//!
//! The kernel does not know which threads hold workers. A thread that lost its worker in user code goes on beside the
//! threads that hold the workers (`revoke.rs`), so there are more threads that compute than processors. The kernel then
//! runs two workers on one processor and the thread without a worker on the other one; and when that thread comes to
//! its scheduling point and sleeps, its processor is idle for milliseconds, because the kernel does not pull threads
//! to a processor whose idle spans are short as a rule. So
//!
//! - a thread that begins what may be long, or whose poll turns out to be long, goes to another processor first if this
//!   one is another worker's ([`Job::take_place`]);
//! - a thread that is woken to go on with its stack is called to the processor of the thread that wakes it, which is
//!   about to sleep, if it slept on another worker's ([`Job::sleeps_in_the_way`]). A waker that goes on calls it away
//!   from its own processor, if that is another worker's ([`Job::deliver_clear`]);
//! - a thread that waits for events does so on the processor on which they come in, if all are in use
//!   ([`Core::go_where_events_come_in`]).
//!
//! Where the workers are says [`places`](crate::protocol::places); the kernel moves threads, so it is a hint. It costs
//! nothing while a worker stays on its processor.
//!
//! A thread in user code is never moved: the program could see that it may run on one processor only, and threads that
//! it makes at that moment would inherit that.

use crate::{
    protocol::places::Visit,
    reactor::driver::Driver,
    sched::{
        core::Core,
        job::Job,
        stack::Stack,
        worker::{NO_LEVEL, Worker},
    },
    sys,
};
use crossbeam_utils::CachePadded;

impl Core {
    /// Whether the calling thread's processor is another worker's, as far as their threads have noted.
    pub(in crate::sched) fn is_crowded(&self, worker: &Worker) -> bool {
        self.is_taken(sys::thread::current_cpu(), worker)
    }

    /// The same of any processor.
    fn is_taken(&self, cpu: i32, worker: &Worker) -> bool {
        self.places.is_other_on(&worker.place, cpu)
    }

    /// The calling thread is about to wait for events. While a processor is idle the kernel would take it there.
    pub(in crate::sched) fn go_where_events_come_in(&self, driver: &Driver) {
        if !self.idle.is_each_processor_in_use() {
            return;
        }
        let here = sys::thread::current_cpu();
        // A quota may leave processors without a worker.
        if let Some(cpu) = driver.incoming.processor().filter(|cpu| *cpu != here)
            && self.idle.are_in_use(sys::thread::processors())
        {
            sys::thread::go_where(cpu, |it| it == cpu);
            // Else each expiry would call the thread back to where the timer was set.
            driver.bring_timer();
        }
    }

    /// Whether the calling thread, a visitor that is to run work of this level with `worker`, has preempted a thread
    /// that may be as urgent: another worker's, or, unless no level is more urgent, a visitor's.
    pub(in crate::sched) fn is_in_the_way(
        &self,
        visit: &Visit<'_>,
        worker: &Worker,
        level: u8,
    ) -> bool {
        let may_be_as_urgent = |other: &CachePadded<Worker>| {
            let serves = other.level();
            other.id != worker.id
                && other.place.is_on(visit.cpu)
                && (serves == NO_LEVEL || serves <= level)
        };
        visit.is_other_here() && level != 0
            || self.places.is_other_on(&worker.place, visit.cpu)
                && self.workers.iter().any(may_be_as_urgent)
    }
}

impl Job {
    /// Whether it is noted at each piece of work where workers are: there may be more threads that compute than
    /// workers. Otherwise a worker's place is noted when it changes its thread.
    #[inline]
    pub(in crate::sched) fn notes_places(&self) -> bool {
        self.pools.are_several() || self.core.is_shared()
    }

    /// Whether a worker has a processor of its own. Where jobs take turns, workers are placed when they change threads
    /// (`hand_off.rs`).
    pub(in crate::sched) fn has_places(&self) -> bool {
        let core = &self.core;
        !core.idle.may_hold_back() && !core.is_shared()
    }

    /// The calling thread is about to begin, with `worker`, what may be long. If its processor is another worker's, it
    /// goes to one that is free.
    #[inline]
    pub(in crate::sched) fn take_place(&self, worker: &Worker) {
        if self.pools.are_several() && worker.cpu() != sys::thread::current_cpu() {
            self.take_new_place(worker);
        }
    }

    #[cold]
    fn take_new_place(&self, worker: &Worker) {
        if !self.has_places() || worker.is_pinned() {
            return;
        }
        if self.core.is_crowded(worker) {
            sys::thread::go_where(worker.cpu(), |cpu| !self.core.is_taken(cpu, worker));
        }
        worker.note_cpu();
    }

    /// A stack is to go on with `worker`, and its thread slept on a processor that is another worker's, while this one
    /// is not.
    pub(in crate::sched) fn sleeps_in_the_way(&self, worker: &Worker, stack: &Stack) -> bool {
        let there = stack.cpu();
        there != sys::thread::current_cpu()
            && self.has_places()
            && self.core.is_taken(there, worker)
            && !self.core.is_crowded(worker)
    }
}

#[cfg(all(test, target_os = "linux", not(urgency_loom)))]
mod tests {
    use super::*;
    use crate::{
        Runtime, block_on,
        net::TcpListener,
        runtime::Builder,
        sched::{
            machine::claim::Want,
            tests::{show_place, stack_of},
        },
        sync::oneshot,
        sys::thread as sys_thread,
    };
    use std::{
        hint,
        io::{Read as _, Write as _},
        iter, net,
        sync::{
            Arc,
            atomic::{AtomicBool, Ordering},
        },
        thread,
        time::{Duration, Instant},
    };

    /// The processors that the calling thread may use.
    fn processors() -> Vec<usize> {
        let allowed = rustix::thread::sched_getaffinity(None).unwrap();
        (0..1024).filter(|&cpu| allowed.is_set(cpu)).collect()
    }

    /// Calls `f` with each of two processors and the other one, if there are two.
    fn each_way(f: impl Fn(usize, usize)) {
        if let [first, second, ..] = processors()[..] {
            f(first, second);
            f(second, first);
        }
    }

    /// On another thread, on this processor.
    fn on_processor<R: Send>(cpu: usize, f: impl FnOnce() -> R + Send) -> R {
        thread::scope(|threads| {
            let pinned = threads.spawn(|| {
                sys_thread::pin(0, cpu);
                f()
            });
            pinned.join().unwrap()
        })
    }

    fn until(what: &str, is_so: impl Fn() -> bool) {
        let limit = Instant::now() + Duration::from_secs(20);
        while !is_so() {
            assert!(Instant::now() < limit, "{what}");
            thread::sleep(Duration::from_micros(100));
        }
    }

    fn two_jobs() -> (Runtime, Runtime) {
        let first = Runtime::builder().workers(2).build().unwrap();
        let second = Runtime::builder().share_workers_with(&first);
        let second = second.build().unwrap();
        (first, second)
    }

    #[test]
    fn a_stack_that_waits_beside_another_job_shows_the_processor_that_it_left() {
        for cpu in processors() {
            let (_first, second) = two_jobs();
            let (go_on, waits) = oneshot::channel::<()>();
            let waiter = second.spawn_fn(move || {
                sys_thread::pin(0, cpu);
                block_on(waits).unwrap();
            });
            let shows = || {
                let job = second.job();
                let stacks = job.core.threads.stacks_of(job);
                let shown: Vec<_> = stacks.iter().map(|stack| stack.cpu()).collect();
                shown == [cpu as i32]
            };
            until("it shows another processor", shows);
            go_on.send(()).unwrap();
            waiter.get().unwrap();
        }
    }

    #[test]
    fn beside_another_job_a_processor_where_a_worker_computes_is_crowded_for_the_others_only() {
        for cpu in processors() {
            let (_first, second) = two_jobs();
            let ends = Arc::new(AtomicBool::new(false));
            let ended = ends.clone();
            let computes = second.spawn_fn(move || {
                sys_thread::pin(0, cpu);
                // It shows where it goes on.
                block_on(crate::time::sleep(Duration::from_millis(1)));
                while !ended.load(Ordering::Relaxed) {
                    crate::scheduling_point();
                }
            });
            let core = &second.job().core;
            let is_crowded = |own: bool| {
                let at_work = second.job().workers().next()?.id;
                let of = core.workers.iter().find(|w| (w.id == at_work) == own)?;
                Some(core.is_crowded(of))
            };
            on_processor(cpu, || {
                until("it is not crowded", || is_crowded(false) == Some(true));
                assert_ne!(is_crowded(true), Some(true), "by the worker itself");
            });
            ends.store(true, Ordering::Relaxed);
            computes.get().unwrap();
        }
    }

    crate::levels! { Order: First > Second }

    /// A runtime with a processor for each of its two workers, one of which computes on `cpu`. Calls `f` with the other
    /// worker and the stack that computes.
    fn beside_compute(cpu: usize, f: impl FnOnce(&Job, &Worker, &Stack)) {
        beside_compute_in(Runtime::builder().levels::<Order>(), cpu, f);
    }

    fn beside_compute_in(runtime: Builder, cpu: usize, f: impl FnOnce(&Job, &Worker, &Stack)) {
        let runtime = runtime.workers(2).build().unwrap();
        if runtime.job().core.idle.may_hold_back() {
            // A quota leaves less than a processor for each.
            return;
        }
        let [ends, begins] = [(); 2].map(|()| Arc::new(AtomicBool::new(false)));
        let (ended, begun) = (ends.clone(), begins.clone());
        let computes = runtime.spawn_fn(move || {
            sys_thread::pin(0, cpu);
            show_place(cpu as i32);
            begun.store(true, Ordering::Release);
            while !ended.load(Ordering::Relaxed) {
                crate::scheduling_point();
            }
        });
        until("it does not begin", || begins.load(Ordering::Acquire));
        let job = runtime.job();
        let workers = || job.core.workers.iter().map(|worker| &**worker);
        // It may search for a moment.
        let idle = || workers().find(|worker| job.core.idle.contains(worker.id));
        until("no worker is idle", || idle().is_some());
        let other = idle().unwrap();
        let at_work = workers().find(|worker| worker.id != other.id).unwrap();
        f(job, other, job.core.holder(at_work).unwrap());
        ends.store(true, Ordering::Relaxed);
        computes.get().unwrap();
    }

    /// How often of a hundred times `worker` takes its place on `cpu`, if it begins on this processor.
    fn taken_there(job: &Job, worker: &Worker, begins: usize, cpu: usize) -> usize {
        taken_there_by(|| job.take_place(worker), worker, begins, cpu)
    }

    /// The same by other means.
    fn taken_there_by(takes: impl Fn(), worker: &Worker, begins: usize, cpu: usize) -> usize {
        let all = sys_thread::only(&processors());
        let takes_place = |_: &usize| {
            sys_thread::pin(0, begins);
            sys_thread::send_home(&all);
            worker.left_on(-1);
            takes();
            worker.cpu() == cpu as i32
        };
        (0..100).filter(takes_place).count()
    }

    /// The kernel may move the thread at any moment, so most times are asked for.
    #[test]
    fn long_work_begins_elsewhere_if_its_processor_is_another_workers_and_otherwise_where_it_is() {
        each_way(|cpu, free| {
            beside_compute(cpu, |job, worker, _| {
                let stays = taken_there(job, worker, cpu, cpu);
                assert!(
                    stays < 20,
                    "{stays} of 100 begin on a processor that is taken"
                );
                let stays = taken_there(job, worker, free, free);
                assert!(
                    stays > 80,
                    "{stays} of 100 begin where their processor is free"
                );
            });
        });
    }

    /// The thread preempted there, and what it preempted may be more urgent.
    #[test]
    fn a_poll_that_came_from_the_poller_goes_elsewhere_when_it_forks() {
        each_way(|cpu, free| {
            beside_compute(cpu, |job, _, _| {
                let (binding, _stack) = stack_of(&job.arc());
                let (me, worker) = (binding.me(), job.claim(Want::Any).unwrap());
                me.hold(worker);
                let forks = || {
                    me.set_urgent(true);
                    job.go_on(me);
                    job.come_in(me);
                };
                let gone = taken_there_by(forks, worker, cpu, free);
                assert!(
                    gone > 80,
                    "{gone} of 100 polls left the other worker's processor"
                );
                job.release(worker);
            });
        });
    }

    #[test]
    fn a_thread_of_the_poller_is_in_the_way_of_what_may_be_as_urgent_where_it_is() {
        let runtime = Runtime::builder().workers(2).levels::<Order>();
        let runtime = runtime.build().unwrap();
        let job = runtime.job();
        let core = &job.core;
        let [worker, other] = [(); 2].map(|()| job.claim(Want::Any).unwrap());
        let visit = core.places.visit(0);
        let is_for = |level| core.is_in_the_way(&visit, worker, level);
        core.places.goes_to(&worker.place, 0);
        assert!(!is_for(1), "nobody else is there");
        core.places.goes_to(&other.place, 0);
        assert!(is_for(0) && is_for(1), "it is not known what for");
        other.set_level(0);
        assert!(is_for(0) && is_for(1));
        other.set_level(1);
        assert!(!is_for(0) && is_for(1));
        core.places.leaves(&other.place);
        let next = core.places.visit(0);
        assert!(!is_for(0) && is_for(1), "another thread of the poller");
        drop(next);
        job.release(worker);
        job.release(other);
        assert!(!is_for(1));
    }

    #[test]
    fn a_stack_sleeps_in_the_way_on_another_workers_processor_unless_the_waker_is_there() {
        each_way(|cpu, free| {
            for runtime in [Runtime::builder(), Runtime::builder().levels::<Order>()] {
                beside_compute_in(runtime, cpu, |job, worker, stack| {
                    let seen = |here| on_processor(here, || job.sleeps_in_the_way(worker, stack));
                    assert_eq!((seen(free), seen(cpu)), (true, false));
                });
            }
        });
    }

    #[test]
    fn a_thread_goes_where_events_come_in_if_each_processor_has_a_worker_at_work() {
        let all = processors();
        let runtime = Runtime::builder().workers(all.len()).build().unwrap();
        let core = &runtime.job().core;
        let driver = core.driver().unwrap();
        let claimed = || runtime.job().claim(Want::Any);
        let at_work: Vec<_> = iter::from_fn(claimed).take(all.len()).collect();
        let goes_there = |from: usize, to: usize| {
            (0..4).for_each(|_| driver.incoming.came(to as u16));
            let is_there = |_: &usize| {
                sys_thread::pin(0, from);
                sys_thread::send_home(&sys_thread::only(&all));
                core.go_where_events_come_in(driver);
                sys_thread::current_cpu() == to as i32
            };
            (0..100).filter(is_there).count()
        };
        each_way(|from, to| {
            let there = goes_there(from, to);
            assert!(there > 80, "{there} of 100 go there");
            runtime.job().release(at_work[0]);
            let there = goes_there(from, to);
            assert!(there < 20, "{there} of 100 go there beside an idle worker");
            runtime.job().claim(Want::Any).unwrap();
        });
        at_work
            .iter()
            .for_each(|worker| runtime.job().release(worker));
        assert_eq!(processors(), all, "it may run everywhere");
    }

    /// How many of a hundred bytes from a client on this processor are answered there.
    fn answered_there(runtime: &Runtime, cpu: usize) -> usize {
        let listener = TcpListener::bind("127.0.0.1:0");
        let listener = runtime.block_on(listener).unwrap();
        let server = listener.local_addr().unwrap();
        let answers = runtime.at(First).spawn(async move {
            let (stream, _) = listener.accept().await.unwrap();
            while stream.read_exact(&mut [0]).await.is_ok() {
                let here = sys_thread::current_cpu().to_ne_bytes();
                stream.write_all(&here).await.unwrap();
            }
        });
        let count = on_processor(cpu, || {
            let mut stream = net::TcpStream::connect(server).unwrap();
            let is_there = |_: &usize| {
                thread::sleep(Duration::from_micros(500));
                stream.write_all(&[0]).unwrap();
                let mut there = [0; 4];
                stream.read_exact(&mut there).unwrap();
                i32::from_ne_bytes(there) == cpu as i32
            };
            (0..100).filter(is_there).count()
        });
        answers.get().unwrap();
        count
    }

    #[test]
    #[cfg_attr(urgency_chaos, ignore = "chaos does not restore the loops' workers")]
    fn beside_compute_a_thread_waits_for_events_where_they_come_in() {
        let all = processors();
        let runtime = Runtime::builder().workers(all.len()).levels::<Order>();
        let runtime = runtime.build().unwrap();
        let ends = Arc::new(AtomicBool::new(false));
        let loops = all.iter().map(|_| {
            let ended = ends.clone();
            runtime.at(Second).spawn_fn(move || {
                while !ended.load(Ordering::Relaxed) {
                    hint::spin_loop();
                }
            })
        });
        let loops: Vec<_> = loops.collect();
        let comes = |cpu: &&usize| answered_there(&runtime, **cpu) >= 60;
        let by_turns = || all.iter().take(2).cycle().take(8);
        // At the latest when no other process is in the way.
        let come = (0..5).any(|_| by_turns().filter(comes).count() >= 7);
        ends.store(true, Ordering::Relaxed);
        loops.into_iter().for_each(|done| done.get().unwrap());
        assert!(come, "answers come from elsewhere");
    }
}
