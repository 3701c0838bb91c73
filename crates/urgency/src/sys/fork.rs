//! Whether the process is a copy of the one that built a runtime.
//!
//! `fork` copies the calling thread only. A runtime's other threads exist in the parent only. In the child, code that
//! waits for them would wait for ever. So a runtime remembers in which process it was built, and refuses use in another
//! one. What need not wait for them returns there, so that a destructor may call it: it takes no lock, which one of the
//! other threads may have had at the fork, and makes nothing ready. Descriptors are shared: the child leaves the
//! parent's poller as it is. The processes are told apart by a count: libc calls [`in_child`] in each child that `fork`
//! makes, so that a comparison costs a load. A child of the bare system call is not told apart.
//!
//! Rejected: `getpid`, a system call for each comparison; a page with `MADV_WIPEONFORK`, which sees the bare system
//! call, too, but needs a mapping and Linux 4.14.

use std::sync::{
    Once,
    atomic::{AtomicU32, Ordering::Relaxed},
};

/// How many `fork`s lie between this process and the one that built the first runtime.
static FORKS: AtomicU32 = AtomicU32::new(0);

/// The process in which something was made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Process(u32);

/// Whether this process may not be the one in which something was made: a wake-up looks at nothing else of before.
#[inline]
pub(crate) fn is_copy() -> bool {
    FORKS.load(Relaxed) != 0
}

extern "C" fn in_child() {
    FORKS.fetch_add(1, Relaxed);
}

impl Process {
    /// This process. From the first call on its copies are told apart from it.
    pub(crate) fn this() -> Process {
        static ASKED: Once = Once::new();
        ASKED.call_once(|| {
            // Miri interprets no `fork`.
            if cfg!(not(miri)) {
                // SAFETY: the function is there as long as the program, and does what is allowed in a handler of a
                // signal. If there is no memory for it, copies are not told apart.
                unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
            }
        });
        Process(FORKS.load(Relaxed))
    }

    #[inline]
    pub(crate) fn is_this(self) -> bool {
        self.0 == FORKS.load(Relaxed)
    }

    /// # Panics
    ///
    /// If this process is a copy.
    #[inline]
    #[track_caller]
    pub(crate) fn must_be_this(self) {
        if !self.is_this() {
            Self::is_another();
        }
    }

    #[cold]
    #[track_caller]
    fn is_another() -> ! {
        panic!(
            "this process was made by `fork` after the runtime had been built, and the runtime's threads are in the \
             parent only: build a runtime in the child (the global one: do not use it before the fork), or `exec` \
             another program there"
        )
    }
}

#[cfg(all(test, target_os = "linux", not(any(miri, urgency_loom))))]
mod tests {
    use crate::{
        JoinHandle, Runtime, block_on,
        io::Async,
        jobs::CoreSet,
        join,
        policy::Kind,
        protocol::attention::PREEMPT,
        sched::stack::Stack,
        scheduling_point,
        sys::{mutex::tests::ARE_HELD, thread::current_id},
        time::sleep,
    };
    use std::{
        future::poll_fn,
        io::{Read as _, Write as _},
        panic::{AssertUnwindSafe, catch_unwind},
        pin::pin,
        sync::{
            Arc, Mutex,
            atomic::{AtomicBool, Ordering::SeqCst},
            mpsc::channel,
        },
        task::{Context, Poll, Waker},
        thread,
        time::{Duration, Instant},
    };

    crate::levels! { Two: Upper > Lower }

    const LIMIT: Duration = Duration::from_secs(20);

    /// Runs `f` in a child of `fork` in which each lock is held by a thread that is not there. Whether `f` returns
    /// there.
    #[must_use]
    fn returns_in_child(f: impl FnOnce()) -> bool {
        // SAFETY: the child runs `f` and ends without a destructor. It allocates, which glibc permits after `fork`, and
        // waits for no lock of the library: that ends it.
        unsafe {
            match libc::fork() {
                0 => {
                    libc::alarm(LIMIT.as_secs() as u32);
                    ARE_HELD.set(true);
                    let returned = catch_unwind(AssertUnwindSafe(f)).is_ok();
                    libc::_exit(i32::from(!returned));
                }
                child => {
                    let mut status = 0;
                    assert_eq!(libc::waitpid(child, &raw mut status, 0), child);
                    libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0
                }
            }
        }
    }

    #[test]
    fn a_thread_in_a_child_has_the_number_that_it_has_there() {
        let parents = current_id();
        let differs = || {
            // SAFETY: no arguments, cannot fail.
            assert_eq!(current_id(), unsafe { libc::gettid() });
            assert_ne!(current_id(), parents);
        };
        assert!(returns_in_child(differs));
    }

    fn until(is_so: impl Fn() -> bool) {
        let limit = Instant::now() + LIMIT;
        while !is_so() {
            assert!(Instant::now() < limit, "it does not come");
            thread::sleep(Duration::from_millis(1));
        }
    }

    type Shown = Arc<Mutex<Option<Waker>>>;

    /// Never ends, and shows its waker.
    fn shows_waker(shown: &Shown) -> impl Future<Output = ()> + Send + use<> {
        let shown = shown.clone();
        poll_fn(move |cx| {
            *shown.lock().unwrap() = Some(cx.waker().clone());
            Poll::Pending
        })
    }

    /// A closure that has the runtime's only worker until it is told to end.
    fn busy(runtime: &Runtime) -> (JoinHandle<()>, Arc<AtomicBool>) {
        let (begins, has_begun) = channel();
        let end = Arc::new(AtomicBool::new(false));
        let ends = end.clone();
        let busy = runtime.spawn_fn(move || {
            begins.send(()).unwrap();
            while !ends.load(SeqCst) {
                std::hint::spin_loop();
            }
        });
        has_begun.recv_timeout(LIMIT).unwrap();
        (busy, end)
    }

    #[test]
    fn a_look_a_cancel_and_a_wake_up_wait_for_no_lock() {
        for kind in [Kind::Aging, "slot".parse().unwrap()] {
            let runtime = Runtime::builder().workers(1).pool(kind).build().unwrap();
            let [of_task, of_stack] = [(); 2].map(|()| Shown::default());
            let task = runtime.spawn(shows_waker(&of_task));
            let its = of_stack.clone();
            let closure = runtime.spawn_fn(move || block_on(shows_waker(&its)));
            let mut waits = Some(runtime.spawn(std::future::pending::<()>()));
            let mut ended = Some(runtime.spawn(async {}));
            let shown = |shown: &Shown| shown.lock().unwrap().is_some();
            until(|| shown(&of_task) && shown(&of_stack) && ended.as_ref().unwrap().is_finished());
            let (busy, end) = busy(&runtime);
            assert!(returns_in_child(|| {
                assert_eq!(runtime.stats().workers.len(), 1);
                let waits = waits.take().unwrap();
                waits.abort_handle().abort();
                task.abort();
                for shown in [&of_task, &of_stack] {
                    shown.lock().unwrap().take().unwrap().wake();
                }
                drop((waits, ended.take()));
                assert_eq!(runtime.stats().levels[0].queued, 0);
            }));
            end.store(true, SeqCst);
            busy.get().unwrap();
            assert!(!task.is_finished() && !waits.as_ref().unwrap().is_finished());
            task.abort();
            closure.abort();
            assert!(task.get().unwrap_err().is_cancelled());
        }
    }

    #[test]
    fn the_last_handle_of_a_runtime_and_of_a_core_set_wait_for_no_lock_and_drop_no_future() {
        struct Ends(Arc<AtomicBool>);
        impl Drop for Ends {
            fn drop(&mut self) {
                self.0.store(true, SeqCst);
            }
        }
        let dropped = Arc::new(AtomicBool::new(false));
        let (ends, started) = (Ends(dropped.clone()), Arc::new(AtomicBool::new(false)));
        let starts = started.clone();
        let mut last = Some(Runtime::builder().workers(1).build().unwrap());
        let waits = last.as_ref().unwrap().spawn(async move {
            let _ends = ends;
            starts.store(true, SeqCst);
            std::future::pending::<()>().await;
        });
        let mut cores = Some(CoreSet::builder().cores(1).build().unwrap());
        let mut job = cores
            .as_ref()
            .unwrap()
            .spawn(std::future::pending::<()>())
            .ok();
        until(|| started.load(SeqCst));
        assert!(returns_in_child(|| {
            drop(last.take());
            assert!(!dropped.load(SeqCst) && !waits.is_finished());
            job.as_ref().unwrap().cancel();
            cores.as_ref().unwrap().cancel_all();
            drop((job.take(), cores.take()));
        }));
        assert!(!dropped.load(SeqCst));
        job.as_ref().unwrap().cancel();
        assert!(job.take().unwrap().get().is_err());
    }

    #[test]
    fn what_waits_for_the_kernel_is_dropped_without_a_lock_and_stays_the_parents() {
        let runtime = Runtime::builder().workers(1).build().unwrap();
        let (reader, mut writer) = std::io::pipe().unwrap();
        let mut reader = Some(Async::new(reader).unwrap());
        let mut timer = Box::pin(sleep(Duration::from_secs(3600)));
        let polls = |future: std::pin::Pin<&mut dyn Future<Output = ()>>| {
            let polled = future.poll(&mut Context::from_waker(Waker::noop()));
            assert!(polled.is_pending());
        };
        runtime.run(|| {
            polls(timer.as_mut());
            let readable = pin!(async { reader.as_ref().unwrap().readable().await.unwrap() });
            polls(readable);
        });
        let mut timer = Some(timer);
        assert!(returns_in_child(|| {
            drop(timer.take());
            drop(reader.take());
        }));
        let writes = thread::spawn(move || {
            thread::sleep(Duration::from_millis(10));
            writer.write_all(&[7]).unwrap();
        });
        let (tell, told) = channel();
        let reader = reader.take().unwrap();
        let reads = runtime.spawn(async move {
            let mut byte = [0];
            reader
                .read_with(|mut pipe| pipe.read(&mut byte))
                .await
                .unwrap();
            tell.send(byte).unwrap();
        });
        assert_eq!(
            told.recv_timeout(LIMIT),
            Ok([7]),
            "the poller has forgotten it"
        );
        reads.get().unwrap();
        writes.join().unwrap();
    }

    fn fib(n: u64) -> u64 {
        if n < 2 {
            return n;
        }
        let (a, b) = join(|| fib(n - 1), || fib(n - 2));
        a + b
    }

    #[test]
    fn code_on_a_stack_forks_and_comes_to_scheduling_points_whatever_is_wanted_of_the_stack() {
        let builder = Runtime::builder().workers(1).levels::<Two>();
        let runtime = builder.build().unwrap();
        let forks = runtime.at(Lower).spawn_fn(|| {
            let above = crate::at(Upper).spawn(async {});
            let wanted = returns_in_child(|| {
                Stack::with_current(|me| me.unwrap().attention.request(PREEMPT));
                assert_eq!(fib(15), 610);
                scheduling_point();
            });
            let revoked = returns_in_child(|| {
                Stack::with_current(|me| me.unwrap().attention.revoke(None));
                assert_eq!(fib(15), 610);
                scheduling_point();
                Stack::with_current(|me| {
                    let me = me.unwrap();
                    me.runtime().come_in(me);
                    me.runtime().go_on(me);
                });
            });
            drop(above);
            (wanted, revoked)
        });
        assert_eq!(forks.get().unwrap(), (true, true));
    }
}
