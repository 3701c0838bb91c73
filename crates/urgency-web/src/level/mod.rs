//! Levels for requests: a tower layer that runs each handler at a level of its own, and sheds load by level.
//!
//! ```
//! use axum::{Router, routing::get};
//! use std::time::Duration;
//! use urgency_web::level::LevelLayer;
//!
//! urgency::levels! { App: Interactive > Batch }
//!
//! let levels = LevelLayer::new()
//!     .path("/batch", Batch)
//!     .header("x-background", "yes", Batch)
//!     .otherwise(Interactive)
//!     .bound(Batch, 16, Duration::from_secs(5)); // the 17th is answered 503, Retry-After: 5
//! let router: Router = Router::new()
//!     .route("/", get(|| async { "at once" }))
//!     .route("/batch/report", get(|| async { "when there is time" }))
//!     .layer(levels);
//! # let _ = router;
//! ```
//!
//! # What waits for what
//!
//! A connection is a task, and so is a handler that runs at another level. If the connection awaited a less
//! urgent handler's [`JoinHandle`](urgency::JoinHandle), that would be a priority inversion, and the runtime would
//! refuse it: the connection would only be as urgent as the handler. Three answers were possible:
//!
//! - *Boost* the handler to the connection's level. Then all requests are equally urgent, and the layer is
//!   for nothing.
//! - *Lower* the connection to the handler's level. An HTTP/2 connection carries requests of many levels at
//!   once, so it has no right level; and while a batch request ran, its urgent neighbours would wait.
//! - *Send a message.* The handler's task puts the response into a one-shot channel, and the connection is
//!   woken by it as it is woken by bytes of the client. This is what is done.
//!
//! It is no inversion in the sense of the papers (fairness paper, section 2: a `get` of less urgent work
//! delays what comes after it), because nothing urgent comes after it: what follows the response on its
//! stream *is* the response. HTTP/2 goes on with its other streams meanwhile. An HTTP/1 connection has
//! nothing else to do, since a client that sends a second request there has asked for the answers in order.
//! What the connection then does at its own level is to write bytes. So the connections should have the most
//! urgent level ([`Serve::level`](crate::Serve::level)), and requests below it cost the urgent ones no more
//! than their bytes.
//!
//! # Bodies
//!
//! What a handler computes while its response is sent is part of the handler: the body of the response is
//! polled by the handler's task, at the handler's level, one frame ahead of the connection. A body that is
//! complete in its first frame goes along with the response. The request's body is read by the handler as
//! always.
//!
//! # The end of a request
//!
//! - The client goes away: the connection drops the response's future, and the handler's task is cancelled.
//! - The handler panics, or its task is cancelled by a shutdown: its connection lives on, and the client gets
//!   a 500.
//! - The layer's bound for the level is reached: the client gets a 503 with `Retry-After`, and the handler is
//!   not called.
//!
//! A request of the connection's own level runs in the connection's task: nothing is spawned, and a panic
//! ends the connection, as it does without the layer.

mod body;
mod bounds;
mod respond;
mod rules;

pub use body::{Interrupted, LevelBody};
pub use bounds::InFlight;
pub use respond::Respond;
pub use rules::Head;

use bounds::Bounds;
use http::{HeaderName, HeaderValue, Request, Response};
use http_body::Body;
use rules::{Rule, Rules};
use std::{
    fmt, mem,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};
use tower_layer::Layer;
use tower_service::Service;
use urgency::LevelId;

/// Gives requests levels. See the [module's text](self).
///
/// The first rule that fits a request decides, in the order in which they were added; then
/// [`otherwise`](LevelLayer::otherwise); then the level of the connection. Services made by one layer share
/// its counts.
///
/// # Panics
///
/// A service panics when a request gets a level that the runtime does not have.
#[derive(Clone, Default)]
pub struct LevelLayer {
    rules: Rules,
    bounds: Bounds,
}

impl LevelLayer {
    /// No rules, no bounds: every request runs at the level of its connection.
    pub fn new() -> Self {
        LevelLayer::default()
    }

    /// Requests for `prefix` and what is below it: `/batch` is for `/batch`, `/batch/` and `/batch/7`, not
    /// for `/batches`.
    pub fn path(mut self, prefix: impl Into<String>, level: impl Into<LevelId>) -> Self {
        let mut prefix = prefix.into();
        prefix.truncate(prefix.trim_end_matches('/').len());
        self.rules.add(Rule::Path(prefix, level.into()));
        self
    }

    /// Requests in which one of the headers `name` has exactly this value.
    ///
    /// A client chooses its headers. Where it is not trusted with its level, set them at the edge, or use
    /// [`choose`](LevelLayer::choose).
    ///
    /// # Panics
    ///
    /// If `name` is no name of a header or `value` no value of one.
    pub fn header(mut self, name: &str, value: &str, level: impl Into<LevelId>) -> Self {
        let name = HeaderName::try_from(name)
            .unwrap_or_else(|_| panic!("`{name}` is no name of a header"));
        let value = HeaderValue::from_str(value)
            .unwrap_or_else(|_| panic!("`{value}` is no value of a header"));
        self.rules.add(Rule::Header(name, value, level.into()));
        self
    }

    /// Requests for which `choose` returns a level.
    ///
    /// ```
    /// # urgency::levels! { App: Interactive > Batch }
    /// # use urgency_web::level::{Head, LevelLayer};
    /// let levels = LevelLayer::new().choose(|head: &Head<'_>| {
    ///     (head.method == http::Method::POST).then_some(Batch.into())
    /// });
    /// # let _ = levels;
    /// ```
    pub fn choose(
        mut self,
        choose: impl Fn(&Head<'_>) -> Option<LevelId> + Send + Sync + 'static,
    ) -> Self {
        self.rules.add(Rule::Function(Arc::new(choose)));
        self
    }

    /// All other requests; the level of the connection, if this is not called.
    pub fn otherwise(mut self, level: impl Into<LevelId>) -> Self {
        self.rules.otherwise = Some(level.into());
        self
    }

    /// At most so many requests at `level` at a time, from their arrival to the end of their handler and of
    /// their response's body. More are answered 503, at the connection's level and without calling the
    /// handler; `retry_after` (in whole seconds, rounded up) is what they are told.
    pub fn bound(mut self, level: impl Into<LevelId>, most: usize, retry_after: Duration) -> Self {
        self.bounds.set(level.into(), most, retry_after);
        self
    }

    /// The counts of this layer, to be looked at from elsewhere.
    pub fn in_flight(&self) -> InFlight {
        self.bounds.in_flight()
    }
}

impl fmt::Debug for LevelLayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LevelLayer")
            .field("rules", &self.rules)
            .field("bounds", &self.bounds)
            .finish()
    }
}

impl<S> Layer<S> for LevelLayer {
    type Service = LevelService<S>;

    fn layer(&self, inner: S) -> LevelService<S> {
        LevelService {
            inner,
            rules: Arc::new(self.rules.clone()),
            bounds: self.bounds.clone(),
        }
    }
}

/// A service whose requests have levels: see [`LevelLayer`].
#[derive(Clone)]
pub struct LevelService<S> {
    inner: S,
    rules: Arc<Rules>,
    bounds: Bounds,
}

impl<S: fmt::Debug> fmt::Debug for LevelService<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LevelService")
            .field("inner", &self.inner)
            .field("rules", &self.rules)
            .finish_non_exhaustive()
    }
}

impl<S, Q, B> Service<Request<Q>> for LevelService<S>
where
    S: Service<Request<Q>, Response = Response<B>> + Clone + Send + 'static,
    S::Future: Send + 'static,
    S::Error: Send + 'static,
    Q: Send + 'static,
    B: Body + Send + Unpin + 'static,
    B::Data: Send,
    B::Error: Send,
{
    type Response = Response<LevelBody<B>>;
    type Error = S::Error;
    type Future = Respond<S, Request<Q>, B>;

    /// Always ready: whether the inner service is, is its handler's wait, at the handler's level.
    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Q>) -> Self::Future {
        let here = urgency::current_level();
        let level = self.rules.level_of(&request).unwrap_or(here);
        let ticket = match self.bounds.enter(level) {
            Ok(ticket) => ticket,
            Err(retry_after) => return Respond::shed(retry_after),
        };
        let inner = self.inner.clone();
        let inner = mem::replace(&mut self.inner, inner);
        if level == here {
            Respond::here(inner, request, ticket)
        } else {
            Respond::there(level, inner, request, ticket)
        }
    }
}
