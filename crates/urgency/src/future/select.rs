//! `select!`: the first of several futures, and what to do then.

/// Waits for the first of several futures, drops the others, and goes on with what is written behind it.
///
/// They are polled in the order in which they are written: of two that are ready at once the first wins. Each
/// pattern must match whatever its future gives. The code behind the arrow is part of the surrounding
/// function: it can `return`, `break`, use `?` and `.await`. With `default => ..` at the end nothing waits:
/// that is what happens if no future is ready at once.
///
/// To keep a future that does not win, pin it and write `&mut future`; then go on polling it, or drop it.
///
/// ```
/// use std::time::Duration;
/// use urgency::{select, sync::mpsc, time::sleep};
///
/// let (sender, mut numbers) = mpsc::bounded(4);
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
/// sender.send_blocking(40)?;
/// sender.send_blocking(2)?;
/// drop(sender);
/// assert_eq!(sum.get().unwrap(), Some(42));
/// # Ok::<(), urgency::sync::SendError<i32>>(())
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
    // The arms, one by one, into a list of (pattern) (future) (body).
    (@arms [$($arms:tt)*]) => {
        $crate::select!(@race [] [$($arms)*])
    };
    (@arms [$($arms:tt)*] default => $body:expr $(,)?) => {
        $crate::select!(@arms [$($arms)* {(()) (::std::future::ready(())) ($body)}])
    };
    (@arms [$($arms:tt)*] $pattern:pat = $future:expr => $body:block , $($rest:tt)*) => {
        $crate::select!(@arms [$($arms)* {($pattern) ($future) ($body)}] $($rest)*)
    };
    (@arms [$($arms:tt)*] $pattern:pat = $future:expr => $body:block $($rest:tt)*) => {
        $crate::select!(@arms [$($arms)* {($pattern) ($future) ($body)}] $($rest)*)
    };
    (@arms [$($arms:tt)*] $pattern:pat = $future:expr => $body:expr , $($rest:tt)*) => {
        $crate::select!(@arms [$($arms)* {($pattern) ($future) ($body)}] $($rest)*)
    };
    (@arms [$($arms:tt)*] $pattern:pat = $future:expr => $body:expr) => {
        $crate::select!(@arms [$($arms)* {($pattern) ($future) ($body)}])
    };

    (@race [] [$($arms:tt)+]) => {
        $crate::select!(@match ($crate::select!(@futures $($arms)+).await) $($arms)+)
    };

    // race(first, race(second, third))
    (@futures {$pattern:tt ($future:expr) $body:tt}) => { $future };
    (@futures {$pattern:tt ($future:expr) $body:tt} $($rest:tt)+) => {
        $crate::future::race($future, $crate::select!(@futures $($rest)+))
    };

    // Which of them, the same way in.
    (@match ($won:expr) {($pattern:pat) $future:tt ($body:expr)}) => {
        match $won { $pattern => $body }
    };
    (@match ($won:expr) {($pattern:pat) $future:tt ($body:expr)} $($rest:tt)+) => {
        match $won {
            $crate::future::Either::First($pattern) => $body,
            $crate::future::Either::Second(won) => $crate::select!(@match (won) $($rest)+),
        }
    };

    ($($arms:tt)+) => { $crate::select!(@arms [] $($arms)+) };
}
