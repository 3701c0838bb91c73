//! `select!`: the first of several futures, and what to do then. `join!` and `try_join!`: all of them.
//!
//! The macros here split what was written into parts; what they expand to is made by `urgency-levels` (`branches.rs`).

use std::cell::Cell;

/// At which of `branches` branches a poll of `select!` begins: at random, so that none starves.
#[doc(hidden)]
pub fn random_start(branches: usize) -> usize {
    thread_local! {
        static STATE: Cell<u64> = const { Cell::new(0) };
    }
    STATE.with(|state| {
        let mut next = state.get();
        if next == 0 {
            // Another sequence on each thread; never zero.
            next = (&raw const *state).addr() as u64 | 1;
        }
        // Xorshift (Marsaglia 2003).
        next ^= next << 13;
        next ^= next >> 7;
        next ^= next << 17;
        state.set(next);
        ((u128::from(next) * branches as u128) >> 64) as usize
    })
}

/// Waits for the first of several futures, drops the others, and goes on with what is written behind it.
///
/// ```text
/// select! {
///     biased;                                         // optional: poll in the order in which they are written
///     pattern = future => code,
///     pattern = future, if condition => code,
///     else => code,                                   // optional
///     default => code,                                // optional
/// }
/// ```
///
/// Each poll begins at a branch at random, so that one that is always ready keeps no other from its turn. With `biased`
/// it begins at the first: of two that are ready at once the one that is written first wins.
///
/// A branch is *disabled* if its condition is false, or if its future gave what its pattern does not match. The
/// conditions are looked at once, before the futures are made. If all branches are disabled, the code of `else` runs.
/// With `default` nothing waits: its code runs if no future is ready at once. (Tokio has no `default`.)
///
/// The code behind an arrow is part of the surrounding function: it can `return`, `break`, use `?` and `.await`.
///
/// To keep a future that does not win, pin it and write `&mut future`; then go on polling it, or drop it.
///
/// At most 64 branches.
///
/// # Panics
///
/// If all branches are disabled and there is no `else`.
///
/// ```
/// use std::time::Duration;
/// use urgency::{select, sync::mpsc, time::sleep};
///
/// let (sender, mut numbers) = mpsc::channel(4);
/// let sum = urgency::spawn(async move {
///     let mut sum = 0;
///     loop {
///         select! {
///             () = sleep(Duration::from_secs(60)) => break None,
///             number = numbers.recv() => match number {
///                 Some(number) => sum += number,
///                 None => break Some(sum),
///             },
///         }
///     }
/// });
/// sender.blocking_send(40)?;
/// sender.blocking_send(2)?;
/// drop(sender);
/// assert_eq!(sum.get().unwrap(), Some(42));
/// # Ok::<(), urgency::sync::mpsc::error::SendError<i32>>(())
/// ```
///
/// ```
/// use urgency::{select, sync::Notify};
///
/// static STOP: Notify = Notify::new();
///
/// let stopped = urgency::block_on(async {
///     select! {
///         () = STOP.notified() => true,
///         default => false,
///     }
/// });
/// assert!(!stopped);
/// ```
#[macro_export]
macro_rules! select {
    // The branches, one by one, into a list of {(pattern) (future) (condition) (body)}.
    (@arms $start:tt [$($arms:tt)*] $else:tt $default:tt) => {
        $crate::select_branches!(($crate) $start $else $default $($arms)*)
    };
    (@arms $start:tt $arms:tt () $default:tt else => $body:expr $(,)?) => {
        $crate::select!(@arms $start $arms ($body) $default)
    };
    (@arms $start:tt $arms:tt () $default:tt else => $body:block default => $($rest:tt)*) => {
        $crate::select!(@arms $start $arms ($body) $default default => $($rest)*)
    };
    (@arms $start:tt $arms:tt () $default:tt else => $body:expr, default => $($rest:tt)*) => {
        $crate::select!(@arms $start $arms ($body) $default default => $($rest)*)
    };
    (@arms $start:tt $arms:tt $else:tt () default => $body:expr $(,)?) => {
        $crate::select!(@arms $start $arms $else ($body))
    };
    (@arms $start:tt [$($arms:tt)*] $else:tt $default:tt
        $pattern:pat = $future:expr, if $condition:expr => $body:block, $($rest:tt)*) => {
        $crate::select!(@arms $start [$($arms)* {($pattern) ($future) ($condition) ($body)}] $else $default $($rest)*)
    };
    (@arms $start:tt [$($arms:tt)*] $else:tt $default:tt
        $pattern:pat = $future:expr => $body:block, $($rest:tt)*) => {
        $crate::select!(@arms $start [$($arms)* {($pattern) ($future) (true) ($body)}] $else $default $($rest)*)
    };
    (@arms $start:tt [$($arms:tt)*] $else:tt $default:tt
        $pattern:pat = $future:expr, if $condition:expr => $body:block $($rest:tt)*) => {
        $crate::select!(@arms $start [$($arms)* {($pattern) ($future) ($condition) ($body)}] $else $default $($rest)*)
    };
    (@arms $start:tt [$($arms:tt)*] $else:tt $default:tt
        $pattern:pat = $future:expr => $body:block $($rest:tt)*) => {
        $crate::select!(@arms $start [$($arms)* {($pattern) ($future) (true) ($body)}] $else $default $($rest)*)
    };
    (@arms $start:tt [$($arms:tt)*] $else:tt $default:tt
        $pattern:pat = $future:expr, if $condition:expr => $body:expr) => {
        $crate::select!(@arms $start [$($arms)* {($pattern) ($future) ($condition) ($body)}] $else $default)
    };
    (@arms $start:tt [$($arms:tt)*] $else:tt $default:tt
        $pattern:pat = $future:expr => $body:expr) => {
        $crate::select!(@arms $start [$($arms)* {($pattern) ($future) (true) ($body)}] $else $default)
    };
    (@arms $start:tt [$($arms:tt)*] $else:tt $default:tt
        $pattern:pat = $future:expr, if $condition:expr => $body:expr, $($rest:tt)*) => {
        $crate::select!(@arms $start [$($arms)* {($pattern) ($future) ($condition) ($body)}] $else $default $($rest)*)
    };
    (@arms $start:tt [$($arms:tt)*] $else:tt $default:tt
        $pattern:pat = $future:expr => $body:expr, $($rest:tt)*) => {
        $crate::select!(@arms $start [$($arms)* {($pattern) ($future) (true) ($body)}] $else $default $($rest)*)
    };

    (biased; $($arms:tt)+) => { $crate::select!(@arms (first) [] () () $($arms)+) };
    ($($arms:tt)+) => { $crate::select!(@arms (random) [] () () $($arms)+) };
}

/// Waits for all of several futures, in this task, and gives their results as a tuple.
///
/// Each poll begins at the next one, so that each has its turn; with `biased;` before them, at the first.
///
/// ```
/// let both = urgency::block_on(async { urgency::join!(async { 1 }, async { "two" }) });
/// assert_eq!(both, (1, "two"));
/// ```
#[macro_export]
macro_rules! join {
    (biased; $($future:expr),* $(,)?) => { $crate::join_branches!(($crate) (first) $(($future))*) };
    ($($future:expr),* $(,)?) => { $crate::join_branches!(($crate) (next) $(($future))*) };
}

/// Waits for all of several futures, in this task, or for the first that gives an error.
///
/// It gives `Ok` with a tuple of their results, or that error; the futures that have not ended are dropped then. Each
/// poll begins as one of [`join!`](crate::join!) does.
///
/// ```
/// let result = urgency::block_on(async {
///     urgency::try_join!(async { Ok::<u8, &str>(1) }, async { Err::<u8, &str>("no") })
/// });
/// assert_eq!(result, Err("no"));
/// ```
#[macro_export]
macro_rules! try_join {
    (biased; $($future:expr),* $(,)?) => { $crate::try_join_branches!(($crate) (first) $(($future))*) };
    ($($future:expr),* $(,)?) => { $crate::try_join_branches!(($crate) (next) $(($future))*) };
}

/// Pins futures on the stack: `pin!(future)` makes the variable one that is pinned, `pin! { let future = ..; }` makes
/// it.
///
/// ```
/// let task = async { 6 * 7 };
/// urgency::pin!(task);
/// assert_eq!(urgency::block_on(&mut task), 42);
/// ```
#[macro_export]
macro_rules! pin {
    ($($variable:ident),* $(,)?) => {
        $(
            #[allow(unused_mut)]
            let mut $variable = ::core::pin::pin!($variable);
        )*
    };
    ($(let $variable:ident = $value:expr;)*) => {
        $(
            let $variable = $value;
            $crate::pin!($variable);
        )*
    };
}
