//! For crates that put another fork-join interface on Urgency.
//!
//! Programs need nothing of this: they call [`join`](crate::join()), [`scope`](crate::scope()) and the spawn
//! functions. A crate with an interface of its own, as the drop-in `rayon-core` is, needs more: to bring a
//! closure onto a runtime's own threads and wait for it, to spawn without a scope, to reach every worker, to
//! know the number of the worker it runs on.
//!
//! - A [`Host`] is a runtime together with one of its levels: where forked work lives.
//! - [`Host::run`] is the way in. [`Host::spawn`] leaves a closure there; [`Host::spawn_on_each`] leaves one with each
//!   worker.
//! - [`join_told`] is `join` for code that is on a stack of the runtime already.
//! - A [`Countdown`] waits for a number of closures, on any thread.
//! - [`name_threads`], [`on_thread_start`] and [`on_thread_stop`] are the builder's methods with the threads' numbers.
//!
//! A closure that is spawned on a stack of its own host goes onto that stack's deque. The stack takes the youngest
//! first; thieves take the oldest first. A closure that is spawned anywhere else goes to the tail of its level's pool.

mod boxed;
mod countdown;
mod threads;
mod visit;

pub use countdown::Countdown;
pub use threads::{name_threads, on_thread_start, on_thread_stop};

use crate::{
    LevelId, Runtime,
    fork::join_told as join_told_on,
    inherit::inherited,
    runtime::rank_on,
    sched::{
        Origin, StolenFork, Taken,
        inherit::inheriting::inheriting,
        job::Job,
        serve::run,
        stack::{Me, Stack},
    },
};
use boxed::Boxed;
use std::{
    any::Any,
    io,
    mem::ManuallyDrop,
    sync::{Arc, Weak},
};

/// A runtime and one of its levels, as the home of forked work. It keeps the runtime's memory, not its life:
/// work that comes when the runtime has ended is still run, by threads that end again afterwards.
///
/// The host of the calling code ([`Host::current`]) follows the code that uses it, within the same runtime. A stack's
/// level changes while it inherits a waiter's level, and what the stack forks follows.
///
/// # Examples
///
/// ```
/// use urgency::{Runtime, embed::Host};
///
/// let runtime = Runtime::builder().workers(2).build()?;
/// let host = Host::of(&runtime);
/// let name = host.run(|_| std::thread::current().name().map(String::from));
/// assert_eq!(name.as_deref(), Some("urgency"));
/// # Ok::<(), urgency::BuildError>(())
/// ```
#[derive(Clone)]
pub struct Host {
    job: Arc<Job>,
    level: u8,
    /// On a stack of the runtime the level is the stack's.
    follows: bool,
}

/// A [`Host`] that keeps nothing, for what the runtime owns itself.
#[derive(Clone, Debug)]
pub struct WeakHost {
    job: Weak<Job>,
    level: u8,
    follows: bool,
}

impl WeakHost {
    /// The host, while anything keeps the runtime's memory; its own threads do.
    pub fn upgrade(&self) -> Option<Host> {
        Some(Host {
            job: self.job.upgrade()?,
            level: self.level,
            follows: self.follows,
        })
    }
}

impl Host {
    /// The host without the runtime's memory.
    pub fn downgrade(&self) -> WeakHost {
        WeakHost {
            job: Arc::downgrade(&self.job),
            level: self.level,
            follows: self.follows,
        }
    }

    /// The least urgent level of `runtime`.
    pub fn of(runtime: &Runtime) -> Host {
        Host::fixed(runtime, runtime.job().least_urgent())
    }

    /// A level of `runtime`.
    ///
    /// # Panics
    ///
    /// If the runtime has no such level.
    #[track_caller]
    pub fn of_at(runtime: &Runtime, level: impl Into<LevelId>) -> Host {
        Host::fixed(runtime, rank_on(runtime.job(), level.into()))
    }

    fn fixed(runtime: &Runtime, level: u8) -> Host {
        Host {
            job: runtime.job().clone(),
            level,
            follows: false,
        }
    }

    /// Runtime and level of the calling code; `None` on a plain thread. Inside [`blocking`](crate::blocking()) they are
    /// the runtime and level of the code around it.
    pub fn current() -> Option<Host> {
        let of_stack = |me: Me<'_>| Host {
            job: me.runtime().arc(),
            level: me.level(),
            follows: true,
        };
        Stack::with_current(|me| me.map(of_stack)).or_else(|| Stack::aside(of_stack))
    }

    /// Calls `f` with what [`Host::current`] returns for a stack, without counting a reference: threads that
    /// open scopes all the time would pass the count from cache to cache.
    pub fn with_current<R>(f: impl FnOnce(Option<&Host>) -> R) -> R {
        Stack::with_current(|me| {
            let Some(me) = me else {
                return f(None);
            };
            // SAFETY: the pointer came from the `Arc` in which every `Job` lives. The thread keeps the runtime while it
            // is bound, so longer than the call; and since the host is never dropped, the count stays right.
            let job = unsafe { Arc::from_raw(me.runtime_ptr()) };
            let host = ManuallyDrop::new(Host {
                job,
                level: me.level(),
                follows: true,
            });
            f(Some(&host))
        })
    }

    /// How many workers the runtime has.
    pub fn workers(&self) -> usize {
        self.job.core.workers.len()
    }

    /// The level.
    pub fn level(&self) -> LevelId {
        self.job.levels.named(self.level)
    }

    /// Whether the calling code runs on a stack of the host's runtime, at any level.
    pub fn is_here(&self) -> bool {
        Stack::with_current(|me| me.is_some_and(|me| self.is_of(&me)))
    }

    fn is_of(&self, stack: &Stack) -> bool {
        stack.is_of(&self.job)
    }

    /// Whether the calling code runs on a stack of the host's runtime and at its level; at any level if that
    /// is the host of the calling code.
    pub fn is_at_home(&self) -> bool {
        Stack::with_current(|me| me.is_some_and(|me| self.is_home_of(&me)))
    }

    fn is_home_of(&self, stack: &Stack) -> bool {
        self.is_of(stack) && (self.follows || stack.level() == self.level)
    }

    /// Whether both are of the same runtime.
    pub fn is_same_runtime(&self, other: &Host) -> bool {
        Arc::ptr_eq(&self.job, &other.job)
    }

    /// Runs `f` on a stack of the host, at its level, and returns what it returns.
    ///
    /// If the calling code is there already, `f` is simply called, with `false`. Otherwise a thread of the
    /// runtime calls it, with `true`, and the caller waits: a stack of another runtime or level suspends, a
    /// plain thread parks.
    ///
    /// # Panics
    ///
    /// With the panic of `f`.
    pub fn run<R: Send>(&self, f: impl FnOnce(bool) -> R + Send) -> R {
        if self.is_at_home() {
            return f(false);
        }
        visit::visit(self, f)
    }

    /// Leaves `f` to be run once, at the host's level.
    ///
    /// # Aborts
    ///
    /// The process aborts if `f` panics: no caller is there to be told. Catch the panic inside `f`.
    pub fn spawn(&self, f: impl FnOnce() + Send + 'static) {
        // SAFETY: `f` borrows nothing.
        unsafe { self.spawn_unchecked(f) }
    }

    /// As [`Host::spawn`], for a closure that borrows.
    ///
    /// # Safety
    ///
    /// What `f` borrows lives until it has run; a [`Countdown`] tells.
    pub unsafe fn spawn_unchecked<F: FnOnce() + Send>(&self, f: F) {
        let boxed = Boxed::new(inheriting(f));
        Stack::with_current(|me| match me {
            Some(me) if self.is_home_of(&me) => {
                // SAFETY: the fork is a box that its run frees.
                unsafe { me.deque().push_boxed(boxed.into_forked()) };
                me.deque().make_room();
                run::check(me);
            }
            _ => {
                let forked = self.taken(boxed.into_taken(), false);
                self.job.insert_fork(forked);
            }
        });
    }

    /// Leaves what `make` returns for each number to the worker with that number, which runs it when it is
    /// free next. Otherwise as [`Host::spawn`].
    pub fn spawn_on_each<F: FnOnce() + Send + 'static>(&self, make: impl FnMut(usize) -> F) {
        // SAFETY: what is made borrows nothing.
        unsafe { self.spawn_on_each_unchecked(make) }
    }

    /// As [`Host::spawn_on_each`], for closures that borrow.
    ///
    /// # Safety
    ///
    /// As [`Host::spawn_unchecked`].
    pub unsafe fn spawn_on_each_unchecked<F: FnOnce() + Send>(
        &self,
        mut make: impl FnMut(usize) -> F,
    ) {
        // All are made before the first can run: a panic of `make` leaves none behind.
        let made: Vec<F> = (0..self.workers()).map(&mut make).collect();
        for (worker, f) in made.into_iter().enumerate() {
            let forked = self.taken(Boxed::new(f).into_taken(), true);
            self.job.insert_pinned(worker, forked);
        }
    }

    /// A fork that is in no deque, as if it had been stolen out of one.
    fn taken(&self, taken: Taken, pinned: bool) -> StolenFork {
        StolenFork {
            taken,
            pinned,
            origin: Origin {
                from: None,
                inherited: inherited(),
                waits_as: self.level,
                task: None,
                level: self.level,
            },
        }
    }

    /// Makes a thread now rather than when it is needed.
    ///
    /// # Errors
    ///
    /// The system's, or that the thread limit is reached.
    pub fn prepare_thread(&self) -> io::Result<()> {
        self.job.core.prepare_thread()
    }

    /// The whole life of a provided thread, in a runtime of [`Builder::provided_threads`](crate::Builder): the thread
    /// works there, and returns when the runtime has ended. Each number, from 0, is for one thread.
    ///
    /// # Panics
    ///
    /// If the runtime makes its threads itself, if the number is not below the number of workers, and on a stack of a
    /// runtime.
    pub fn serve(&self, number: usize) {
        self.check_provided(number);
        self.job.core.run_provided(number);
    }

    /// The calling thread is from now on, and for ever, the one with this number, and holds a worker. It works for the
    /// runtime only while it calls into the runtime.
    ///
    /// # Panics
    ///
    /// As [`Host::serve`], and in [`blocking`](crate::blocking()).
    pub fn stay(&self, number: usize) {
        self.check_provided(number);
        assert!(
            Stack::with_own(|own| own.is_none()),
            "the calling thread is in `blocking`, after which it is a stack of its own runtime again: call `stay` on \
             a plain thread"
        );
        // The thread keeps the runtime.
        std::mem::forget(self.job.clone());
        let binding = self.job.enter_external(Some(self.level));
        binding.me().set_number(number);
        std::mem::forget(binding);
    }

    fn check_provided(&self, number: usize) {
        assert!(
            self.job.core.threads.are_provided(),
            "this runtime makes its threads itself: build it with `Builder::provided_threads`"
        );
        let count = self.workers();
        assert!(
            number < count,
            "there is no thread {number} in a runtime of {count}"
        );
        assert!(
            Stack::with_current(|me| me.is_none()),
            "the calling thread is a stack of a runtime already"
        );
    }

    /// Leaves something with the runtime that [`Host::attachment`] finds again. The first call counts.
    pub fn attach(&self, what: Weak<dyn Any + Send + Sync>) {
        let _ = self.job.attachment.set(what);
    }

    /// What [`Host::attach`] left, while it lives.
    pub fn attachment(&self) -> Option<Arc<dyn Any + Send + Sync>> {
        self.job.attachment.get().and_then(Weak::upgrade)
    }
}

debug_struct!(Host, |it| runtime: Arc::as_ptr(&it.job), workers: it.workers(), level: it.level);

/// As [`join`](crate::join()), on a stack of a runtime: the closures learn whether they were stolen, which
/// `a` never is, and `b` is run even if `a` panics. On a plain thread both closures come back.
///
/// # Errors
///
/// The closures, if the calling thread is a plain one.
///
/// # Panics
///
/// With the panic of `a`, or else with the panic of `b`, after both have ended.
///
/// # Examples
///
/// ```
/// use urgency::{Runtime, embed};
///
/// let runtime = Runtime::builder().workers(1).build()?;
/// let joined = runtime.run(|| embed::join_told(|_| 6, |stolen| (7, stolen)).ok());
/// assert_eq!(joined, Some((6, (7, false))));
/// assert!(embed::join_told(|_| 6, |_| 7).is_err());
/// # Ok::<(), urgency::BuildError>(())
/// ```
#[inline]
pub fn join_told<A, B, RA, RB>(a: A, b: B) -> Result<(RA, RB), (A, B)>
where
    A: FnOnce(bool) -> RA + Send,
    B: FnOnce(bool) -> RB + Send,
    RA: Send,
    RB: Send,
{
    Stack::with_current(|me| match me {
        Some(me) => Ok(join_told_on(me, || a(false), b)),
        None => Err((a, b)),
    })
}

/// How many workers the calling code's runtime has; `None` on a plain thread.
#[inline]
pub fn workers() -> Option<usize> {
    Stack::with_current(|me| me.map(|me| me.runtime().core.workers.len()))
}

/// The number of the worker that the calling stack holds, from 0; `None` on a plain thread.
///
/// Until its next scheduling point the stack keeps that worker, whatever happens, so no other stack of the
/// runtime has the same number at the same time. (A thread that was brought with a number has always that.)
/// The price: until then there is no relief from this stack, and urgent work that arrives meanwhile waits.
#[inline]
pub fn worker_index() -> Option<usize> {
    Stack::with_current(|me| {
        me.map(|me| {
            if let Some(number) = me.number() {
                return number;
            }
            // In a child of `fork` a worker that was revoked does not come back; then the second look ends this.
            while !me.attention().keep_worker() {
                run::check_cold(me);
            }
            me.worker().id
        })
    })
}

/// Whether forks lie on the calling stack's deque; `None` on a plain thread.
pub fn has_local_jobs() -> Option<bool> {
    Stack::with_current(|me| me.map(|me| !me.deque.seems_empty()))
}

/// Runs the oldest fork of the calling stack's deque. If there is none, runs a closure of this level or a more urgent
/// one that [`Host::spawn_on_each`] left with the stack's worker. Says whether there was any. `None` on a plain thread.
pub fn run_local_job() -> Option<bool> {
    Stack::with_current(|me| me.map(|me| run::run_own_oldest(me) || me.runtime().run_pinned(me)))
}

/// Lets other ready work of this level, or of a more urgent one, go first, be it in a pool or on the deque of
/// a stack that runs; the calling stack goes on when a worker is free again. Says whether there was any.
/// `None` on a plain thread.
pub fn give_way() -> Option<bool> {
    Stack::with_current(|me| {
        me.map(|me| {
            let job = me.runtime();
            job.come_in(me);
            let gave_way = job.give_turn_or_steal(me);
            job.go_on(me);
            gave_way
        })
    })
}
