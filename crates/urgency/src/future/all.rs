//! All of several futures.
//!
//! Each of many children has a waker of its own that marks it, so that a wake-up polls the woken children only: a
//! thousand futures that end one by one cost a thousand polls, not half a million.
//!
//! *A wake-up of a child that is marked already* does nothing but the read-modify-write of the mark: the poll that the
//! first wake-up caused is still to come. That poll takes the mark away by a read-modify-write, too. So it sees what
//! every thread that found the mark wrote before (as in the rules of a task's state, 4).

use crate::sys::{
    mutex::Mutex,
    primitives::atomic::{AtomicBool, Ordering},
};
use std::{
    convert::Infallible,
    future::Future,
    mem,
    ops::ControlFlow,
    pin::Pin,
    // Not the one of `primitives`: `Wake` knows only this one.
    sync::Arc,
    task::{Context, Poll, Wake, Waker},
};

/// Waits for all of many futures, and gives their outputs in the order of the futures.
///
/// ```
/// let squares = (1..=3).map(|n| async move { n * n });
/// assert_eq!(urgency::block_on(urgency::future::join_all(squares)), [1, 4, 9]);
/// ```
pub fn join_all<I: IntoIterator<Item: IntoFuture>>(
    futures: I,
) -> JoinAll<<I::Item as IntoFuture>::IntoFuture> {
    let many = Many::new(futures);
    let outputs = many.children.iter().map(|_| None).collect();
    JoinAll { many, outputs }
}

/// Waits for all of many futures, unless one fails: then the others are dropped.
///
/// # Errors
///
/// The error of the first that fails.
///
/// ```
/// use urgency::future::try_join_all;
///
/// let parsed = ["1", "2", "x"].map(|text| async move { text.parse::<u32>() });
/// assert!(urgency::block_on(try_join_all(parsed)).is_err());
/// ```
pub fn try_join_all<I, T, E>(futures: I) -> TryJoinAll<<I::Item as IntoFuture>::IntoFuture, T>
where
    I: IntoIterator<Item: IntoFuture<Output = Result<T, E>>>,
{
    let many = Many::new(futures);
    let outputs = many.children.iter().map(|_| None).collect();
    TryJoinAll { many, outputs }
}

/// The future of [`join_all`].
#[must_use = "futures do nothing unless awaited"]
pub struct JoinAll<F: Future> {
    many: Many<F>,
    outputs: Vec<Option<F::Output>>,
}

impl<F: Future> Unpin for JoinAll<F> {}

impl<F: Future> Future for JoinAll<F> {
    type Output = Vec<F::Output>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let JoinAll { many, outputs } = &mut *self;
        let ended = many.poll(cx, |place, output| {
            outputs[place] = Some(output);
            ControlFlow::<Infallible>::Continue(())
        });
        ended.map(|ControlFlow::Continue(())| outputs.drain(..).flatten().collect())
    }
}

debug_struct!([F: Future] JoinAll<F>, |it| left: it.many.left);

/// The future of [`try_join_all`].
#[must_use = "futures do nothing unless awaited"]
pub struct TryJoinAll<F, T> {
    many: Many<F>,
    outputs: Vec<Option<T>>,
}

impl<F, T> Unpin for TryJoinAll<F, T> {}

impl<F: Future<Output = Result<T, E>>, T, E> Future for TryJoinAll<F, T> {
    type Output = Result<Vec<T>, E>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let TryJoinAll { many, outputs } = &mut *self;
        let ended = many.poll(cx, |place, output| match output {
            Ok(output) => {
                outputs[place] = Some(output);
                ControlFlow::Continue(())
            }
            Err(error) => ControlFlow::Break(error),
        });
        ended.map(|ended| match ended {
            ControlFlow::Continue(()) => Ok(outputs.drain(..).flatten().collect()),
            ControlFlow::Break(error) => {
                many.children.clear();
                Err(error)
            }
        })
    }
}

debug_struct!([F, T] TryJoinAll<F, T>, |it| left: it.many.left);

/// Futures with wakers of their own.
struct Many<F> {
    /// Until they end.
    children: Vec<Option<Child<F>>>,
    left: usize,
    woken: Arc<Woken>,
}

type Child<F> = (Pin<Box<F>>, Arc<Mark>);

/// The children that are to be polled, and the waker of the task that polls them.
#[derive(Default)]
struct Woken(Mutex<Places>);

#[derive(Default)]
struct Places {
    places: Vec<usize>,
    parent: Option<Waker>,
}

/// The waker of one child.
struct Mark {
    place: usize,
    marked: AtomicBool,
    woken: Arc<Woken>,
}

impl Wake for Mark {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if self.marked.swap(true, Ordering::AcqRel) {
            return;
        }
        let parent = {
            let mut woken = self.woken.0.lock();
            woken.places.push(self.place);
            woken.parent.take()
        };
        if let Some(parent) = parent {
            parent.wake();
        }
    }
}

impl<F: Future> Many<F> {
    fn new<I: IntoIterator<Item: IntoFuture<IntoFuture = F, Output = F::Output>>>(
        futures: I,
    ) -> Self {
        let woken = Arc::new(Woken::default());
        let child = |(place, future): (usize, I::Item)| {
            let (woken, marked) = (woken.clone(), AtomicBool::new(true));
            let mark = Mark {
                place,
                marked,
                woken,
            };
            Some((Box::pin(future.into_future()), Arc::new(mark)))
        };
        let children: Vec<_> = futures.into_iter().enumerate().map(child).collect();
        // All are to be polled once.
        woken.0.lock().places = (0..children.len()).collect();
        Many {
            left: children.len(),
            children,
            woken,
        }
    }

    /// Polls the children that were woken. Ready when all have ended, or when `ended` breaks.
    fn poll<B>(
        &mut self,
        cx: &Context<'_>,
        mut ended: impl FnMut(usize, F::Output) -> ControlFlow<B>,
    ) -> Poll<ControlFlow<B>> {
        let parent = cx.waker().clone();
        let (woken, before) = {
            let mut woken = self.woken.0.lock();
            let before = woken.parent.replace(parent);
            (mem::take(&mut woken.places), before)
        };
        drop(before);
        for place in woken {
            let Some((future, mark)) = &mut self.children[place] else {
                continue;
            };
            // Before the poll: a wake-up from now on causes another poll. Acquire: sees what came before the wake-ups
            // that found the mark.
            mark.marked.swap(false, Ordering::AcqRel);
            let waker = Waker::from(mark.clone());
            if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
                self.children[place] = None;
                self.left -= 1;
                if let ControlFlow::Break(stop) = ended(place, output) {
                    return Poll::Ready(ControlFlow::Break(stop));
                }
            }
        }
        match self.left {
            0 => Poll::Ready(ControlFlow::Continue(())),
            _ => Poll::Pending,
        }
    }
}
