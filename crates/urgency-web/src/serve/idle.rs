//! How long a connection may be without a request, and how that is known from outside of hyper.
//!
//! hyper has a limit for the headers of a request. hyper makes a timer for each request, goes through its state machine
//! once more to start the timer, and has no timer before it knows the protocol: a client that sends nothing at all
//! holds its place for ever. One limit outside of hyper covers all of this, at one timer for each connection and one
//! look at the clock for each poll that made progress.
//!
//! # When is a connection idle?
//!
//! A request is *under way* from the call of the service until the response's body is dropped: [`Marked`] and
//! [`MarkedBody`] hold a reference to the connection's [`Activity`] as long, and the number of references says whether
//! a request is under way. What hyper still has to send after that shows as writes, which are counted where they are
//! made ([`Io`](crate::rt::Io), [`Written`](super::Written)). A connection is idle while no request is under way and
//! nothing of a response is written: the client has sent nothing yet, or a part of a request's head, or waits between
//! two requests, or does not read its answer.
//!
//! hyper keeps a body that is not all sent, so a client that does not read a long response would keep its request under
//! way. So a connection is idle also while its stream does not take what is to be written (*blocked*), whatever is
//! under way.
//!
//! With HTTP/2 a client also says by its windows how much it reads. hyper asks a body for more only when the stream's
//! window has taken what the body gave last. So a body that has given something, or was not asked yet, *waits for the
//! client* until it is asked (again) and has nothing yet, and its request does not count as under way. One stream that
//! the client does not read keeps its response as long as other requests of the connection go on.
//!
//! # Protocol
//!
//! 1. After each poll of the connection [`Idle::poll`] compares the activity with what it was. If it made
//!    progress, the time at which it began to be idle is now.
//! 2. The timer is not moved by that. When it fires too early, it is set to the time at which the limit is
//!    reached.
//! 3. Progress that is seen when the timer has fired already sets it as well, because nobody might look
//!    again.
//!
//! With HTTP/1 the counts are written only while the connection is polled, by one thread at a time. With
//! HTTP/2 hyper calls the service in a task for each request, which may run beside the connection's writes,
//! so a step may be lost. It is not missed: a request that has begun is under way, and its reference tells as
//! much. Relaxed operations are enough.

use http::{Request, Response, Version};
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use pin_project_lite::pin_project;
use std::{
    future::Future,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering::Relaxed},
    },
    task::{Context, Poll, ready},
    time::Duration,
};
use tower_service::Service;
use urgency::time::{Instant, Sleep, sleep};

/// What a connection did so far.
#[derive(Debug, Default)]
pub(crate) struct Activity {
    /// Requests begun, and writes.
    steps: AtomicU32,
    /// Whether a request came by HTTP/2.
    http2: AtomicBool,
    /// Whether the stream did not take the last write.
    blocked: AtomicBool,
    /// How many bodies wait for the client; HTTP/2.
    waiting: AtomicUsize,
}

impl Activity {
    /// A request began, or something was written.
    pub(crate) fn step(&self) {
        self.steps
            .store(self.steps.load(Relaxed).wrapping_add(1), Relaxed);
    }

    /// A write was tried. Whether the stream took something, and whether some of that was of a response.
    pub(crate) fn wrote(&self, taken: bool, is_progress: bool) {
        self.blocked.store(!taken, Relaxed);
        if is_progress {
            self.step();
        }
    }

    /// Whether a request is under way and does not wait for the client to read.
    fn is_under_way(self: &Arc<Self>) -> bool {
        Arc::strong_count(self) > OTHERS + self.waiting.load(Relaxed) && !self.blocked.load(Relaxed)
    }

    /// A body waits for the client from now on, or no more. That it has something for the client is progress, too.
    fn set_waiting(&self, waits: bool) {
        if waits {
            self.step();
            self.waiting.fetch_add(1, Relaxed);
        } else {
            self.waiting.fetch_sub(1, Relaxed);
        }
    }
}

/// The references to an [`Activity`] beside the requests' own: the limit's, the service's and the stream's.
const OTHERS: usize = 3;

/// Marks its requests.
#[derive(Clone)]
pub(super) struct Marking<S> {
    pub(super) service: S,
    pub(super) activity: Arc<Activity>,
}

impl<S, B> Service<Request<Incoming>> for Marking<S>
where
    S: Service<Request<Incoming>, Response = Response<B>>,
{
    type Response = Response<MarkedBody<B>>;
    type Error = S::Error;
    type Future = Marked<S::Future>;

    #[inline]
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.service.poll_ready(cx)
    }

    #[inline]
    fn call(&mut self, request: Request<Incoming>) -> Self::Future {
        self.activity.step();
        if request.version() == Version::HTTP_2 {
            self.activity.http2.store(true, Relaxed);
        }
        Marked {
            future: self.service.call(request),
            mark: Some(self.activity.clone()),
        }
    }
}

pin_project! {
    /// The service's future for a request under way.
    pub(super) struct Marked<F> {
        #[pin]
        future: F,
        mark: Option<Arc<Activity>>,
    }
}

impl<F, B, E> Future for Marked<F>
where
    F: Future<Output = Result<Response<B>, E>>,
{
    type Output = Result<Response<MarkedBody<B>>, E>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let response = ready!(this.future.poll(cx));
        let mark = this.mark.take().map(Mark::new);
        Poll::Ready(response.map(|response| response.map(|body| MarkedBody { body, mark })))
    }
}

/// A body's reference to its connection's activity.
struct Mark {
    activity: Arc<Activity>,
    /// Whether the body waits for the client.
    waits: bool,
}

impl Mark {
    /// For a body that was not asked yet.
    fn new(activity: Arc<Activity>) -> Self {
        let mut mark = Mark {
            activity,
            waits: false,
        };
        mark.gave(true);
        mark
    }

    /// The body was asked, and gave something or has nothing yet.
    fn gave(&mut self, something: bool) {
        // With HTTP/1 the stream is blocked then.
        if self.waits != something && self.activity.http2.load(Relaxed) {
            self.waits = something;
            self.activity.set_waiting(something);
        }
    }
}

impl Drop for Mark {
    fn drop(&mut self) {
        self.gave(false);
    }
}

pin_project! {
    /// The body of the response to a request under way.
    pub(super) struct MarkedBody<B> {
        #[pin]
        body: B,
        mark: Option<Mark>,
    }
}

impl<B: Body> Body for MarkedBody<B> {
    type Data = B::Data;
    type Error = B::Error;

    #[inline]
    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        let this = self.project();
        let frame = this.body.poll_frame(cx);
        this.mark
            .iter_mut()
            .for_each(|mark| mark.gave(frame.is_ready()));
        frame
    }

    #[inline]
    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    #[inline]
    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// The limit of one connection. See the module's text.
pub(super) struct Idle {
    limit: Duration,
    activity: Arc<Activity>,
    /// The steps at the last look.
    seen: u32,
    /// The last look that saw progress.
    since: Instant,
    timer: Sleep,
    /// Whether the timer wakes the connection.
    set: bool,
}

impl Idle {
    pub(super) fn new(limit: Duration, activity: Arc<Activity>) -> Self {
        Idle {
            limit,
            seen: activity.steps.load(Relaxed),
            activity,
            since: Instant::now(),
            timer: sleep(limit),
            set: false,
        }
    }

    /// Ready when the connection has been idle for the limit. To be called after each poll of the connection.
    #[inline]
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let steps = self.activity.steps.load(Relaxed);
        if steps != self.seen || self.activity.is_under_way() {
            self.seen = steps;
            self.since = Instant::now();
            if self.set && self.since < self.timer.deadline() {
                return Poll::Pending;
            }
        }
        self.poll_timer(cx)
    }

    fn poll_timer(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.set = true;
        loop {
            ready!(Pin::new(&mut self.timer).poll(cx));
            match self.since.checked_add(self.limit) {
                Some(due) if self.timer.deadline() < due => Pin::new(&mut self.timer).reset(due),
                _ => return Poll::Ready(()),
            }
        }
    }

    /// Whether the connection may need the limit once more, to say goodbye: HTTP/2 does that in two steps.
    pub(super) fn is_http2(&self) -> bool {
        self.activity.http2.load(Relaxed)
    }

    /// Begins anew, with the next poll.
    pub(super) fn begin_anew(&mut self) {
        self.since = Instant::now();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{future::poll_fn, thread};

    const LIMIT: Duration = Duration::from_millis(20);

    fn poll(idle: &mut Idle) -> Poll<()> {
        idle.poll(&mut Context::from_waker(std::task::Waker::noop()))
    }

    /// An activity and its limit, with all references to the activity.
    fn idle() -> ([Arc<Activity>; OTHERS - 1], Idle) {
        let activity = Arc::<Activity>::default();
        let idle = Idle::new(LIMIT, activity.clone());
        ([activity.clone(), activity], idle)
    }

    #[test]
    fn a_connection_that_made_progress_since_the_last_look_is_not_idle_however_late_the_look() {
        urgency::block_on(async {
            let ([activity, _service], mut idle) = idle();
            for _ in 0..10 {
                thread::sleep(LIMIT / 4);
                activity.step();
                assert!(poll(&mut idle).is_pending());
            }
            poll_fn(|cx| idle.poll(cx)).await;
            assert!(idle.since.elapsed() >= LIMIT);
        });
    }

    #[test]
    fn a_connection_with_a_request_is_not_idle_and_is_looked_at_again_afterwards() {
        urgency::block_on(async {
            let ([activity, _service], mut idle) = idle();
            let request = activity.clone();
            for _ in 0..3 {
                thread::sleep(LIMIT);
                assert!(poll(&mut idle).is_pending());
            }
            drop(request);
            let begin = Instant::now();
            // The limit wakes the task that polled it.
            poll_fn(|cx| idle.poll(cx)).await;
            assert!(idle.since.elapsed() >= LIMIT && idle.since <= begin);
        });
    }

    #[test]
    fn there_may_be_no_limit() {
        urgency::block_on(async {
            let mut idle = Idle::new(Duration::MAX, Arc::default());
            assert!(poll(&mut idle).is_pending());
        });
    }
}
