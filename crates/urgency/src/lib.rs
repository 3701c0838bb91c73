//! Urgency: a task runtime in which urgent work goes first.
//!
//! One scheduler runs async tasks, fork-join compute and blocking code on the same cores. The program says
//! how urgent each piece of work is; the runtime does the rest. Nothing has to be tuned.
//!
//! ```
//! let hello = urgency::spawn(async { "hello, world" });
//! assert_eq!(hello.get()?, "hello, world");
//! # Ok::<(), urgency::JoinError>(())
//! ```
//!
//! That is a whole program: the first use of a free function starts a global runtime, with a worker for each CPU. On a
//! plain thread a handle is waited for by [`get`](JoinHandle::get). In async code it is awaited, and [`block_on`] (or
//! the attribute [`main`](macro@main)) is the way there. Async code forks directly:
//!
//! ```
//! use urgency::{block_on, join, spawn};
//!
//! let product = block_on(async {
//!     let a = spawn(async { 6 });
//!     let (b, c) = join(|| 7, || 10); // on two cores, if another is free
//!     a.await.map(|a| a * b * c)
//! });
//! assert_eq!(product?, 420);
//! # Ok::<(), urgency::JoinError>(())
//! ```
//!
//! Levels come second, for a program some of whose work is urgent. Each is a type:
//!
//! ```
//! // Most urgent first.
//! urgency::levels! { App: Interactive > Batch }
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let runtime = urgency::Runtime::builder().levels::<App>().build()?;
//! let batch = Batch.on(&runtime).spawn_fn(|_| (0..1_000_000u64).sum::<u64>());
//! let answer = Interactive.on(&runtime).run(|cx| {
//!     let request = Interactive.spawn(async |_| 6 * 7);
//!     request.get(cx)
//!     // `batch.get(cx)` does not compile: interactive code must not wait for batch work.
//! });
//! assert_eq!(answer?, 42);
//! assert_eq!(batch.erase().get()?, 499_999_500_000); // a plain thread may wait for anything
//! # Ok(())
//! # }
//! ```
//!
//! # Words
//!
//! - A *worker* is the permission to run on one core. There are as many as the process may use CPUs, unless
//!   [`Builder::workers`] says otherwise. A worker is not a thread.
//! - A *stack* is a thread as the scheduler sees it. A stack that waits gives its worker away.
//! - A *task* is what a `spawn` function makes, of a future or of a closure.
//! - A *fork* is a closure forked by [`join()`] or [`Scope::spawn`].
//! - A *level* is a priority. There are at most 64, and they may be partially ordered.
//! - A *scheduling point* is where code looks whether the scheduler wants something of it: each `join`, `spawn`,
//!   `sync`, blocking wait and poll of a task, and [`scheduling_point`].
//!
//! # Async task, closure or fork?
//!
//! | the work | use | because |
//! | --- | --- | --- |
//! | waits most of the time | [`spawn`] with an `async` block | it waits without a stack |
//! | computes, and borrows from its caller | [`join()`], [`scope()`] | a fork is nearly a call |
//! | computes, and outlives its caller | [`spawn_fn`] | it has a stack, so it can fork and block |
//! | waits in code that is not `async` | [`spawn_fn`] and [`JoinHandle::get`] | only its stack waits, not a worker |
//! | calls what blocks the thread | [`blocking()`] inside any of them | its worker is free meanwhile |
//!
//! They mix freely. Async code calls `join`; a closure calls `get` on async work; a fork spawns tasks. There is no
//! second pool and no handle to carry around.
//!
//! # Waiting
//!
//! - In async code: await a [`JoinHandle`], a socket of [`net`], a timer of [`time`].
//! - In closures: [`JoinHandle::get`], or [`block_on`] with any future, or the `blocking()` view of a socket,
//!   which is a [`std::io::Read`] and [`std::io::Write`].
//! - On a plain thread the same calls park the thread.
//! - For a signal of the system (ctrl-c, SIGTERM): [`signal`]; for a child process: [`process`].
//! - Many waiters: [`JoinHandle::share`]. A look without waiting: [`JoinHandle::try_get`]. A limit:
//!   [`time::timeout`].
//!
//! I/O and timers belong to the runtime in which they are first polled. After the end of that runtime a timer goes on
//! in the runtime of the code that polls it next. What waits for a socket gets an error then, in every runtime and on
//! every thread, also if something is there; the `try_` forms go on. `into_std` and `from_std` make a socket of it that
//! belongs to the runtime in which that one is first polled ([`io::Async`]: `into_inner` and `new`).
//!
//! Futures that need no reactor (channels, `futures` combinators) work as they are; futures that need Tokio's reactor
//! do not.
//!
//! # Levels
//!
//! [`levels!`] declares them as types, and [`mod@level`] explains them. A wait for less urgent work does not
//! compile. Where levels are only known at run time, [`at`] takes a [`LevelId`], and such a wait is an error that names
//! both levels. [`JoinHandle::boost`] raises the awaited work instead. New work has the level of the code that spawns
//! it, but none that this code has only because it holds a lock; on a plain thread it has the least urgent one. What a
//! boosted task spawns is boosted as the task is. A plain thread that enters by
//! [`Runtime::run`](runtime::Handle::run), [`join()`] or [`scope()`] and names no level works at the most urgent one.
//!
//! # How to spawn
//!
//! Four questions, and each is answered in one place. What is not answered is as in the calling code.
//!
//! | question | answers |
//! | --- | --- |
//! | what | a future: `spawn`; a closure, on a stack of its own: `spawn_fn`; a closure on this thread, now: `run` |
//! | at which level | [`at`]`(level)`; a type that [`levels!`] made; none: the calling code's |
//! | where | a [`Runtime`] or a [`runtime::Handle`]; none: the runtime of the calling code, else the global one |
//! | owned by what | a scope, which ends them ([`life::task_scope`]); a [`task::JoinSet`]; none: the holder of the handle |
//!
//! | | the calling code's level | a level | a level's type |
//! | --- | --- | --- | --- |
//! | here | `spawn(..)` | `at(level).spawn(..)` | `Level.spawn(..)` |
//! | in a runtime | `runtime.spawn(..)` | `runtime.at(level).spawn(..)` | `Level.on(&runtime).spawn(..)` |
//! | in a scope or a set | `scope.spawn(..)` | `scope.at(level).spawn(..)` | |
//!
//! So it is with `spawn_fn`, and with `run` where a runtime or a level is named. [`At`] is a value that can be kept:
//! `let batch = runtime.at(Batch);`. The one form besides is Tokio's [`task::spawn_blocking`]: a `spawn_fn` that is a
//! [blocking call](blocking()) as a whole.
//!
//! None of the `spawn` forms needs a worker, so a plain thread never waits in one. `run` does.
//!
//! # How long a leaf may be
//!
//! A *leaf* is what runs between two scheduling points: the bottom of a divide and conquer, the body of a loop. More
//! urgent work waits at most for one leaf on each worker, and then for nothing.
//!
//! | leaf | what it costs |
//! | --- | --- |
//! | below 1 µs | the fork (some 3 ns) begins to show |
//! | 10 to 500 µs | nothing: forks are under 0.1 %, urgent work waits no longer than the leaf |
//! | 1 ms and more | *relief* gives its worker to more urgent work that waits; its thread goes on, lowered ([`Builder::lower_threads`]) |
//! | tens of ms | as well, often; the leaf's earlier forks are late; [`Stats::overruns`] names the code |
//!
//! So split until a leaf takes some 100 µs. [`par`] does so by itself. Where a long loop cannot be split, call
//! [`scheduling_point`] in it every 100 µs or so: a load and a branch.
//!
//! # Features
//!
//! None is on by default.
//!
//! - `tokio-io`: streams, files and standard streams implement `tokio::io::{AsyncRead, AsyncWrite}`, so that crates
//!   that are written against these traits (`tokio-rustls`, `tokio-util`'s codecs, `tokio-tungstenite`) take them as
//!   they are. It brings Tokio's traits; nothing of its runtime is built.
//! - `stream`: [`net::Incoming`], the `Incoming` of a [`net::UnixListener`], and [`sync::mpsc::Receiver`] are a
//!   `futures_core::Stream`.
//!
//! # Guarantees
//!
//! Each is proved by the test that it names, in `tests/` or beside the code. Tests count; they do not time.
//!
//! 1. *Prompt.* Once work at a higher level is ready, a worker below it moves up at its next scheduling
//!    point: `a_worker_below_moves_up_at_its_next_scheduling_point`. The time that it ran below meanwhile is
//!    accounted as [`WorkerLevelStats::behind`]. That holds for forked work as well: every worker below comes for
//!    urgent forks, by a scheduling point or by relief: `the_children_of_an_urgent_scope_run_on_all_workers_at_once`,
//!    `the_branches_of_urgent_joins_run_on_all_workers_at_once`,
//!    `the_items_of_an_urgent_parallel_loop_run_on_all_workers`.
//! 2. *Greedy.* No worker sleeps while anything is ready: `no_worker_sleeps_while_an_entry_is_ready` (a model),
//!    `a_private_fork_is_stolen_from_a_stack_in_a_long_leaf`, and the rest of `tests/greedy.rs`. A fork that its stack
//!    keeps to itself may wait some milliseconds for that, beside a worker that sleeps:
//!    `a_fork_that_was_held_back_in_a_long_branch_gets_a_worker`.
//! 3. *Aging.* Within a level, contexts run in the order in which they became ready, but for counted
//!    exceptions: `within_a_level_contexts_run_in_the_order_in_which_they_became_ready`. Where more than eight workers
//!    can run at once, each of them overtakes a context by a bounded number:
//!    `no_worker_overtakes_an_entry_by_more_than_its_free_takings_and_one_of_each_other_list`,
//!    `workers_of_a_runtime_overtake_by_no_more_than_is_promised_with_8_and_64_shards`. What needs a worker for a
//!    moment as a rule, a poll or a stack whose wait is over, has *turns* among its equals that compute for long:
//!    `a_time_limit_on_forks_of_its_own_level_ends_them`, `sockets_are_served_beside_forks`,
//!    `sockets_are_served_beside_loops_that_never_check_in`, `a_stack_whose_wait_is_over_goes_on_beside_forks`.
//! 4. *Own work only.* While a stack waits it runs nothing but what it waits for, and what that has forked in turn:
//!    `no_stranger_runs_on_a_stack_that_waits`. So a lock held across a fork cannot meet a fork of unrelated code:
//!    `a_lock_held_across_a_join_does_not_deadlock`. The exceptions: when no more threads can be had
//!    ([`Builder::thread_limit`]), what is ready may run on a stack that waits; and a plain thread in `block_on` polls
//!    the tasks of a runtime of [`Builder::new_current_thread`].
//! 5. *Structured.* No fork outlives its `join` or `scope`, whatever panics:
//!    `a_scope_waits_for_all_its_children_and_theirs`, `a_panic_of_either_side_reaches_the_caller_after_both_ended`,
//!    `random_programs_that_use_every_method_of_a_scope_run_each_part_once_and_end`.
//! 6. *Relief.* A loop that never checks in delays more urgent work by a millisecond or two and what the kernel adds,
//!    and so does a blocking call that nobody declared, at any level and in any job:
//!    `blocked_urgent_threads_keep_no_worker_from_less_urgent_work`,
//!    `a_foreign_lock_that_less_urgent_work_holds_across_scheduling_points_is_released`,
//!    `jobs_that_sleep_in_the_kernel_keep_no_core_from_a_less_urgent_job`,
//!    `undeclared_blocking_calls_on_all_workers_are_survived`. A loop delays equals that begin long work by 100 ms,
//!    with scheduling points or without, and as many more loops as there are workers are begun:
//!    `a_loop_that_never_checks_in_delays_nobody_for_ever`,
//!    `closures_begin_beside_equals_that_check_in_and_never_end`. With two levels, at most twice as many pieces of work
//!    as workers are in progress, and each further level adds as many as there are workers:
//!    `few_leaves_of_joins_are_in_progress_however_long_they_are`,
//!    `pieces_of_three_levels_in_progress_are_at_most_three_for_each_worker`. Leaves of 100 ms and more are loops:
//!    `few_leaves_of_joins_are_in_progress_if_they_are_as_long_as_an_endless_loop`. It is counted as
//!    [`WorkerLevelStats::reliefs`].
//! 7. *No inversion.* A wait for less urgent work is refused, by the compiler
//!    (`priority_inversions_and_bad_orders_do_not_compile_and_say_why`) or at run time
//!    (`waiting_for_less_urgent_work_is_an_error_that_names_both_levels`). An operation of [`fs`] does not count as
//!    less urgent: it becomes as urgent as its waiter (`an_operation_for_which_urgent_work_waits_is_as_urgent`).
//! 8. *Cancelling one operation loses no bytes* (`read_exact` and `write_all` are several):
//!    `reads_that_are_cancelled_all_the_time_lose_no_byte`,
//!    `a_started_read_that_is_dropped_gives_its_bytes_back`,
//!    `bytes_that_are_given_back_in_any_order_are_read_in_the_order_in_which_they_came`.
//! 9. *Panics are data.* The code that waits gets a panic, of a task as a value and of a fork resumed, and no other
//!    code is harmed:
//!    `a_panic_in_every_kind_of_context_reaches_its_waiter_and_the_runtime_goes_on`.
//! 10. *Idle is idle.* A runtime without work wakes no thread: `an_idle_runtime_wakes_no_thread`.
//! 11. *Accounted.* At a shutdown every task is finished, panicked, cancelled or left:
//!     `the_account_adds_up_after_a_random_load_with_panics_cancellations_and_drops`. Dropping a runtime
//!     waits for nothing: `dropping_a_runtime_with_endless_loops_does_not_hang`. No task panics for it:
//!     `tasks_that_begin_to_wait_as_their_runtime_ends_are_cancelled_and_never_panic`. Closures that sleep, or wait for
//!     a task or for I/O, end with their runtime, wherever that I/O first waited:
//!     `closures_that_wait_for_io_of_another_runtime_end_with_their_own`. A shutdown by one handle leaves no waiter of
//!     another: `a_shutdown_in_the_middle_of_everything_tells_every_waiter`,
//!     `a_plain_thread_inside_is_not_left_behind_by_a_shutdown`. Only what waits for a closure that goes on, or that
//!     waits for a lock or a message, waits until that closure has ended ([the end](Runtime#the-end)).
//! 12. *Bounded inversion.* While something more urgent waits for a [`sync::Mutex`], the task that holds it
//!     runs at that level: `nothing_less_urgent_runs_between_an_urgent_wait_for_a_low_task_and_its_end`. So does what
//!     the task waits for: `a_fork_that_a_thief_has_is_raised_with_its_join`,
//!     `a_task_of_a_join_set_is_raised_with_the_task_that_waits_for_the_set`.
//! 13. *Fair, if asked for.* With a [`Criterion`] each level that has work gets its share of the workers'
//!     time, rounds of 5 ms at a time, from code without scheduling points as well:
//!     `levels_that_always_have_work_get_their_shares`,
//!     `code_without_scheduling_points_gives_way_at_the_end_of_its_round`.
//! 14. *Staged, if asked for.* Where a schedule has workers wait for their level ([`policy`]), a worker runs
//!     nothing of another level, and is not idle while its own has work:
//!     `a_worker_of_a_stage_runs_nothing_of_another_and_every_stage_goes_on`,
//!     `under_every_schedule_random_programs_give_their_serial_results`. Guarantee 2 holds for all other
//!     schedules.
//! 15. *Plain threads get in.* A plain thread that enters at some level waits for no equal and nothing less urgent that
//!     goes from one scheduling point to the next without an end:
//!     `a_plain_thread_enters_beside_closures_that_check_in_and_never_end`,
//!     `a_plain_thread_enters_a_level_beside_equals_that_never_end`. To spawn it needs no worker at all:
//!     `a_plain_thread_spawns_typed_work_without_a_worker`.
//! 16. *No signal is lost* between two waits for it:
//!     `a_signal_between_two_waits_is_not_lost_and_several_are_one`,
//!     `ctrl_c_in_a_loop_loses_none_that_comes_while_nobody_waits`.
//!
//! Not guaranteed: a wait that is neither for a handle nor for a [`sync::Mutex`] (a channel, a set of tasks, a foreign
//! lock) is not checked for inversion. A foreign lock that a less urgent stack holds while it is abandoned makes an
//! urgent waiter wait for it. Such a wait is as late as the work between the two levels makes it, and ends with that
//! work: `urgent_work_that_waits_for_less_urgent_work_unchecked_is_late_and_does_not_hang`,
//! `urgent_work_that_waits_for_a_foreign_lock_is_late_by_the_work_between_and_does_not_hang`. Forks that sleep until
//! others of the same scope have run are late by some two seconds, with two workers or more:
//! `children_that_meet_at_a_barrier_all_begin_however_many_they_are`.
//!
//! # Errors
//!
//! - [`BuildError`]: a number out of its range, with the range.
//! - [`JoinError`]: there is no result, because of a cancellation, a shutdown, a priority inversion, or a
//!   task that waits for itself. The panic of a task is one of these errors, with its payload.
//! - I/O gives [`std::io::Error`].
//! - A level that the runtime does not have is a panic that names it and the levels that there are.
//! - A plain thread that calls [`Runtime::run`](runtime::Handle::run), [`join()`] or [`scope()`] in a runtime that was
//!   shut down: a panic that says so. What it spawns there is a handle with an error.
//! - If no more threads can be had, work goes on with the threads that there are: [`Stats::threads_refused`] counts it.
//!
//! # What it needs, and what its limits are
//!
//! - Linux: epoll, eventfd and timerfd. `membarrier` (4.14) and short time slices (6.12) are used where they
//!   are. It has run on x86-64, and on aarch64 in emulation. The processor's counters must agree between cores.
//! - No permission. With one, events are served sooner ([`Builder::real_time_polling`]; [`Stats::real_time`] tells),
//!   and threads that were lowered come back ([`Builder::lower_threads`]; [`Stats::can_raise`] tells).
//! - At most 64 levels, [`MAX_WORKERS`] workers, and 67 million live tasks for each worker, of 63 at most. A runtime
//!   with I/O has four descriptors, for as long as anything keeps it, also after its [end](Runtime#the-end).
//! - If the process has no descriptors left when a runtime is built, its timers are served by a thread of their own,
//!   its I/O is an error, and a loop that never checks in is not relieved (guarantee 6).
//! - A closure that waits is a thread, with a stack of 2 MiB unless [`Builder::thread_stack_size`] or `RUST_MIN_STACK`
//!   says otherwise. [`Builder::thread_limit`] and the system's limits apply (`RLIMIT_NPROC`, a cgroup's `pids.max`).
//! - It logs nothing but the panic of a task that no code waits for, a line on standard error. It has no child
//!   processes but the program's own ([`process`]).
//! - A runtime does not survive `fork` (the system call; `std::process::Command` is no matter): its threads stay in the
//!   parent. In the child, what would need a thread of it panics and says so: `join` and the like on a plain thread, a
//!   spawn, a timer, a shutdown, a wait on a stack. What reads or marks returns: `stats` has the figures at the fork,
//!   `abort` and `cancel` do nothing in the parent. A handle of a task that was spawned before the fork gives the
//!   result if the task had ended by then; for any other task a plain thread waits in vain. The child may build a
//!   runtime of its own. A child of the bare system call, past libc, is not told apart, and hangs.
//!
//! # What costs what
//!
//! | what | cost |
//! | --- | --- |
//! | a `join` whose fork is not stolen | some 3 ns beyond the two calls; no allocation, no locked instruction |
//! | a child of a scope | a push and a pop; an allocation if it is larger than a kibibyte, or its stack's 64 KiB are full |
//! | a task | one allocation: its future and at most 80 bytes |
//! | [`scheduling_point`] | a load and a branch |
//! | [`blocking()`] | some 50 ns if nobody wanted the worker meanwhile |
//! | a stack that waits | a parked thread: 2 MiB of address space, of which it holds what it touched |
//! | levels that are not used | nothing |
//!
//! The figures are from the 2-core virtual machine on which Urgency is developed. `bench/` measures them and
//! more; [`Runtime::stats`] tells what a program does with them.
#![cfg_attr(urgency_loom, allow(dead_code, unused_imports, missing_docs))]

// `levels!` in unit tests names the crate.
#[cfg(all(test, not(urgency_loom)))]
extern crate self as urgency;

// First, for its macros.
#[macro_use]
mod sys;

#[cfg(not(urgency_loom))]
mod account;
#[cfg(not(urgency_loom))]
pub mod embed;
#[cfg(not(urgency_loom))]
#[doc(hidden)]
pub mod entry;
#[cfg(not(urgency_loom))]
mod fork;
#[cfg(not(urgency_loom))]
pub mod fs;
#[cfg(not(urgency_loom))]
pub mod future;
#[cfg(all(test, urgency_loom))]
mod future {
    mod all;
    mod loom;
}
#[cfg(not(urgency_loom))]
mod inherit;
#[cfg(not(urgency_loom))]
pub mod io;
#[cfg(not(urgency_loom))]
pub mod jobs;
#[cfg(not(urgency_loom))]
pub mod level;
#[cfg(not(urgency_loom))]
pub mod life;
#[cfg(not(urgency_loom))]
pub mod net;
#[cfg(not(urgency_loom))]
pub mod par;
#[cfg(not(urgency_loom))]
pub mod policy;
#[cfg(not(urgency_loom))]
pub mod process;
mod protocol;
mod rank;
mod reactor;
#[cfg(not(urgency_loom))]
pub mod runtime;
#[cfg(not(urgency_loom))]
mod sched;
#[cfg(not(urgency_loom))]
pub mod signal;
#[cfg(not(urgency_loom))]
mod spawn;
pub mod sync;
#[cfg(not(urgency_loom))]
pub mod task;
mod tasks;
#[cfg(not(urgency_loom))]
pub mod time;
#[cfg(all(not(urgency_loom), feature = "tokio-io"))]
mod tokio_io;

#[cfg(not(urgency_loom))]
#[doc(hidden)]
pub use urgency_levels::{join_branches, select_branches, try_join_branches};

#[cfg(not(urgency_loom))]
pub use {
    account::{LatencyHistogram, Overrun},
    fork::{Scope, join, scope},
    inherit::record::Recording,
    rank::LevelId,
    runtime::{
        BuildError, Builder, MAX_WORKERS, Runtime,
        context::current_level,
        stats::{LevelStats, Stats, WorkerLevelStats, WorkerShare, WorkerStats},
        yield_now::{YieldNow, scheduling_point, yield_far, yield_now},
    },
    sched::{
        doors::shutdown::{Report, Shutdown},
        switch::block::{block_on, blocking},
    },
    spawn::{At, at, spawn, spawn_fn},
    tasks::{JoinError, JoinErrorKind, JoinHandle, Shared},
    urgency_levels::{levels, main, test},
    urgency_policy::level::{Criterion, CriterionError},
};
