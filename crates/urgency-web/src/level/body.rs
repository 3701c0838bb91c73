//! The body of a response that was made at another level.
//!
//! - *Whole*: what there was when the handler returned is all; at most one frame.
//! - *Piped*: the handler's task polls the real body at its own level and sends the frames, one ahead of the
//!   connection.
//! - *Direct*: the handler ran at the connection's level, and so does its body, with which it is in flight.
//!
//! A pipe that ends without the word that it is complete was cut: the handler's task was cancelled, or the
//! body panicked. What the client got is then not what the handler meant, so the connection must not end the
//! message as if it were; see [`LevelBody`]'s errors.

use super::bounds::Ticket;
use crate::BoxError;
use bytes::Buf;
use http_body::{Body, Frame, SizeHint};
use std::{
    error::Error,
    fmt,
    future::poll_fn,
    pin::Pin,
    task::{Context, Poll, ready},
};
use urgency::{JoinHandle, sync::mpsc};

type Piece<B> = Option<Result<Frame<<B as Body>::Data>, <B as Body>::Error>>;

enum Kind<B: Body> {
    Empty,
    Whole(Frame<B::Data>),
    Piped(Piped<B>),
    Direct {
        body: B,
        /// Dropped last.
        _ticket: Option<Ticket>,
    },
}

/// `None` as a piece is the end.
struct Piped<B: Body> {
    first: Option<Frame<B::Data>>,
    rest: mpsc::Receiver<Piece<B>>,
    hint: SizeHint,
    ended: bool,
    /// Without the connection nobody wants the rest.
    task: Option<Cancelling>,
}

/// Cancels the handler's task when it is dropped.
pub(super) struct Cancelling {
    task: JoinHandle<()>,
    cancels: bool,
}

impl Cancelling {
    pub(super) fn new(task: JoinHandle<()>) -> Self {
        let cancels = true;
        Cancelling { task, cancels }
    }
}

impl Drop for Cancelling {
    fn drop(&mut self) {
        if self.cancels {
            self.task.abort();
        }
    }
}

/// A body that was made at a level: see the [module's text](super).
///
/// # Errors
///
/// The inner body's errors, and [`Interrupted`] if the body's task ended before the body did.
pub struct LevelBody<B: Body> {
    kind: Kind<B>,
}

impl<B: Body> Unpin for LevelBody<B> where B: Unpin {}

impl<B: Body> Default for LevelBody<B> {
    fn default() -> Self {
        LevelBody { kind: Kind::Empty }
    }
}

impl<B: Body> LevelBody<B> {
    pub(super) fn direct(body: B, _ticket: Option<Ticket>) -> Self {
        LevelBody {
            kind: Kind::Direct { body, _ticket },
        }
    }

    /// The response is there. If its body is still being made, it takes over the right to cancel its task;
    /// otherwise the task has nothing left to do.
    pub(super) fn made_by(&mut self, mut task: Cancelling) {
        match &mut self.kind {
            Kind::Piped(piped) => piped.task = Some(task),
            _ => task.cancels = false,
        }
    }
}

/// The other end of a piped body, for the handler's task.
pub(super) struct Pump<B: Body> {
    body: B,
    pipe: mpsc::Sender<Piece<B>>,
}

/// Splits a body: what the connection gets, and what the handler's task still has to do, if anything.
pub(super) fn split<B: Body + Unpin>(
    mut body: B,
    cx: &mut Context<'_>,
) -> (LevelBody<B>, Option<Pump<B>>) {
    if body.is_end_stream() {
        return (LevelBody::default(), None);
    }
    let hint = body.size_hint();
    let first = match Pin::new(&mut body).poll_frame(cx) {
        Poll::Ready(None) => return (LevelBody::default(), None),
        Poll::Ready(Some(Ok(frame))) if body.is_end_stream() => {
            let kind = Kind::Whole(frame);
            return (LevelBody { kind }, None);
        }
        Poll::Ready(Some(Ok(frame))) => Ok(Some(frame)),
        Poll::Ready(Some(Err(error))) => Err(error),
        Poll::Pending => Ok(None),
    };
    let (pipe, rest) = mpsc::channel(1);
    let (first, failed) = match first {
        Ok(first) => (first, false),
        Err(error) => {
            // There is room for one piece, and nobody else sends.
            let _ = pipe.try_send(Some(Err(error)));
            (None, true)
        }
    };
    let piped = Piped {
        first,
        rest,
        hint,
        ended: false,
        task: None,
    };
    let kind = Kind::Piped(piped);
    let pump = (!failed).then_some(Pump { body, pipe });
    (LevelBody { kind }, pump)
}

impl<B: Body + Unpin> Pump<B> {
    /// Sends every frame, and the end; or until nobody wants them any more.
    pub(super) async fn run(mut self) {
        loop {
            let piece = poll_fn(|cx| Pin::new(&mut self.body).poll_frame(cx)).await;
            let is_last = !matches!(piece, Some(Ok(_)));
            if self.pipe.send(piece).await.is_err() || is_last {
                return;
            }
        }
    }
}

impl<B: Body + Unpin> Body for LevelBody<B>
where
    B::Error: Into<BoxError>,
{
    type Data = B::Data;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, Self::Error>>> {
        match &mut self.kind {
            Kind::Empty => Poll::Ready(None),
            Kind::Whole(_) => match std::mem::replace(&mut self.kind, Kind::Empty) {
                Kind::Whole(frame) => Poll::Ready(Some(Ok(frame))),
                _ => unreachable!("just looked at"),
            },
            Kind::Direct { body, .. } => {
                let frame = ready!(Pin::new(body).poll_frame(cx));
                Poll::Ready(frame.map(|result| result.map_err(Into::into)))
            }
            Kind::Piped(piped) => piped.poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.kind {
            Kind::Empty => true,
            Kind::Whole(_) => false,
            Kind::Direct { body, .. } => body.is_end_stream(),
            Kind::Piped(piped) => piped.ended,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.kind {
            Kind::Empty => SizeHint::with_exact(0),
            Kind::Whole(frame) => {
                let length = frame.data_ref().map_or(0, Buf::remaining);
                SizeHint::with_exact(length as u64)
            }
            Kind::Direct { body, .. } => body.size_hint(),
            Kind::Piped(piped) => piped.hint,
        }
    }
}

impl<B: Body> Piped<B>
where
    B::Error: Into<BoxError>,
{
    fn poll_frame(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, BoxError>>> {
        if self.ended {
            return Poll::Ready(None);
        }
        let piece = match self.first.take() {
            Some(frame) => Some(Some(Ok(frame))),
            None => ready!(self.rest.poll_recv(cx)),
        };
        let result = match piece {
            Some(Some(Ok(frame))) => Ok(frame),
            Some(Some(Err(error))) => Err(error.into()),
            Some(None) => {
                self.end();
                return Poll::Ready(None);
            }
            None => Err(Interrupted {}.into()),
        };
        match &result {
            Err(_) => self.end(),
            Ok(frame) => {
                let bytes = frame.data_ref().map_or(0, Buf::remaining);
                self.hint = less(&self.hint, bytes as u64);
            }
        }
        Poll::Ready(Some(result))
    }
}

impl<B: Body> Piped<B> {
    /// The task has said all that it has to say.
    fn end(&mut self) {
        self.ended = true;
        if let Some(task) = &mut self.task {
            task.cancels = false;
        }
    }
}

/// What is left of a hint after so many bytes.
fn less(hint: &SizeHint, bytes: u64) -> SizeHint {
    let mut left = SizeHint::new();
    left.set_lower(hint.lower().saturating_sub(bytes));
    if let Some(upper) = hint.upper() {
        left.set_upper(upper.saturating_sub(bytes));
    }
    left
}

impl<B: Body> fmt::Debug for LevelBody<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match &self.kind {
            Kind::Empty => "LevelBody(empty)",
            Kind::Whole(_) => "LevelBody(whole)",
            Kind::Piped(_) => "LevelBody(piped)",
            Kind::Direct { .. } => "LevelBody(direct)",
        })
    }
}

/// The task that made a body ended before the body did: it was cancelled, or it panicked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interrupted {}

impl fmt::Display for Interrupted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the task that made the body of the response ended before the body did")
    }
}

impl Error for Interrupted {}
