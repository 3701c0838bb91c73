//! `serve`: a listener and a service become an HTTP server.
//!
//! A service is what the tower world calls one: a function from request to response. An axum `Router` is one,
//! and so is a tower stack around it. HTTP/1 and HTTP/2 are told apart by the first bytes of a connection.
//!
//! # What runs where
//!
//! - The accept loop is the future that [`serve()`] becomes; it runs where it is awaited.
//! - Each connection is a task, at the level that [`Serve::level`] says, or else at the accept loop's level. HTTP/2
//!   runs each request as a task of the same level.
//! - A handler is polled by these tasks. [`LevelLayer`](crate::level::LevelLayer) gives requests levels of their own.
//!
//! # Limits
//!
//! With [`Serve::connections`] the loop stops accepting while so many connections live; more wait in the
//! kernel's backlog, where they cost nothing, and then the kernel refuses. When the process is out of
//! descriptors the loop pauses (see `accept.rs`) instead of spinning or ending. A connection without a
//! request ends after [`Serve::idle`], whether it sends nothing, a request's head byte by byte, or does not
//! read its answer.
//!
//! # The end
//!
//! When the signal of [`Serve::until`] is ready, the listener is closed and every connection finishes the
//! requests that it has; idle ones close at once, and so do connections that still shake hands. After [`Serve::drain`]
//! what still lives is cut. Dropping the future of a server closes its listener and lets the connections go on;
//! they are tasks.

mod accept;
mod census;
mod connection;
mod idle;
mod listener;
mod written;

pub use connection::Peer;
use idle::Activity;
pub use listener::Listener;
pub(crate) use written::Written;

use crate::{
    BoxError,
    rt::{Executor, Timer},
};
use census::{Census, Phase};
use connection::{Protocol, WithPeer, connection};
use http::{Request, Response};
use http_body::Body;
use hyper::body::Incoming;
use hyper_util::server::conn::auto;
use std::{
    fmt,
    future::{self, Future, IntoFuture, poll_fn},
    io,
    pin::Pin,
    sync::Arc,
    time::Duration,
};
use tokio::io::{AsyncRead, AsyncWrite};
use tower_service::Service;
use urgency::{LevelId, time::timeout};

type Signal = Pin<Box<dyn Future<Output = ()> + Send>>;

/// How long cut connections get to be dropped before the server reports them as left.
const AFTER_CUT: Duration = Duration::from_millis(100);

/// What happens on a connection before HTTP: nothing ([`Plain`]), or TLS.
///
/// ```
/// use axum::Router;
/// use std::{io, time::Duration};
/// use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};
/// use urgency::net::TcpListener;
/// use urgency_web::serve::{Handshake, serve};
///
/// /// A client says first that it is one of ours.
/// struct Password;
///
/// impl<T: AsyncRead + AsyncWrite + Send + Unpin + 'static> Handshake<T> for Password {
///     type Stream = T;
///
///     async fn handshake(&self, mut stream: T) -> io::Result<T> {
///         let mut said = [0; 6];
///         stream.read_exact(&mut said).await?;
///         match &said {
///             b"sesame" => Ok(stream),
///             _ => Err(io::ErrorKind::PermissionDenied.into()),
///         }
///     }
/// }
///
/// # fn main() -> io::Result<()> {
/// let served = urgency::block_on(async {
///     let listener = TcpListener::bind("127.0.0.1:0").await?;
///     let server = serve(listener, Router::new()).handshake(Password, Duration::from_secs(1));
///     server.until(async {}).await
/// })?;
/// assert_eq!(served.accepted, 0);
/// # Ok(())
/// # }
/// ```
pub trait Handshake<T>: Send + Sync + 'static {
    /// The stream that HTTP runs on.
    type Stream: AsyncRead + AsyncWrite + Send + Unpin + 'static;

    /// Shakes hands.
    ///
    /// # Errors
    /// The connection is dropped then, and counted as failed.
    fn handshake(&self, stream: T) -> impl Future<Output = io::Result<Self::Stream>> + Send;

    /// Which versions of HTTP the server speaks ([`Serve::http`]), before the first connection: a handshake that
    /// agrees on one must not offer the other. The default does nothing.
    ///
    /// ```
    /// # use std::io;
    /// # use tokio::io::{AsyncRead, AsyncWrite};
    /// # use urgency_web::serve::Handshake;
    /// /// Says first which version comes.
    /// struct Greeting(Vec<&'static str>);
    ///
    /// impl<T: AsyncRead + AsyncWrite + Send + Unpin + 'static> Handshake<T> for Greeting {
    ///     type Stream = T;
    ///
    ///     async fn handshake(&self, stream: T) -> io::Result<T> {
    ///         Ok(stream) // it offers what is in the list
    ///     }
    ///
    ///     fn speaks(&mut self, http1: bool, http2: bool) {
    ///         let is_spoken = |version: &&str| if *version == "h2" { http2 } else { http1 };
    ///         self.0.retain(is_spoken);
    ///     }
    /// }
    ///
    /// let mut greeting = Greeting(vec!["h2", "http/1.1"]);
    /// Handshake::<tokio::io::DuplexStream>::speaks(&mut greeting, true, false);
    /// assert_eq!(greeting.0, ["http/1.1"]);
    /// ```
    fn speaks(&mut self, http1: bool, http2: bool) {
        let _ = (http1, http2);
    }
}

/// No handshake: HTTP in the clear.
///
/// ```
/// use axum::Router;
/// use std::time::Duration;
/// use urgency::net::TcpListener;
/// use urgency_web::serve::{Plain, serve};
///
/// urgency::block_on(async {
///     let listener = TcpListener::bind("127.0.0.1:0").await?;
///     // What a server does without the call of `handshake`.
///     let server = serve(listener, Router::new()).handshake(Plain::default(), Duration::from_secs(1));
///     server.until(async {}).await
/// })?;
/// # std::io::Result::Ok(())
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Plain {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin + 'static> Handshake<T> for Plain {
    type Stream = T;

    fn handshake(&self, stream: T) -> impl Future<Output = io::Result<T>> + Send {
        future::ready(Ok(stream))
    }
}

/// Serves HTTP on the connections of `listener` with `service`. Await it; it ends with the signal of
/// [`Serve::until`], or when the listener fails.
///
/// ```
/// use axum::{Router, routing::get};
/// use urgency::net::TcpListener;
/// use urgency_web::{Served, serve};
///
/// # fn main() -> std::io::Result<()> {
/// let router = Router::new().route("/", get(|| async { "hello" }));
/// let served: Served = urgency::block_on(async {
///     let listener = TcpListener::bind("127.0.0.1:0").await?;
///     // Ready at once here; `examples/ctrl_c.rs` has one that waits for a signal.
///     serve(listener, router).until(async {}).await
/// })?;
/// assert_eq!((served.accepted, served.left), (0, 0));
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// The listener's error, if it is none that passes (see the module's text).
///
/// # Cancellation
///
/// Dropping the future closes the listener. Connections go on as tasks.
pub fn serve<L: Listener, S>(listener: L, service: S) -> Serve<L, S> {
    let mut http = auto::Builder::new(Executor::new());
    // The server's own limit is in its place: see `idle.rs`.
    http.http1().timer(Timer::new()).header_read_timeout(None);
    http.http2().timer(Timer::new());
    Serve {
        listener,
        service,
        http,
        handshake: Plain {},
        handshake_limit: Duration::from_secs(10),
        idle: Duration::from_secs(30),
        signal: Box::pin(future::pending()),
        level: None,
        connections: usize::MAX,
        nodelay: true,
        peers: false,
        drain: Duration::from_secs(30),
    }
}

/// A server to be: see [`serve()`].
#[must_use = "a server serves when it is awaited"]
pub struct Serve<L, S, H = Plain> {
    listener: L,
    service: S,
    http: auto::Builder<Executor>,
    handshake: H,
    handshake_limit: Duration,
    idle: Duration,
    signal: Signal,
    level: Option<LevelId>,
    connections: usize,
    nodelay: bool,
    peers: bool,
    drain: Duration,
}

impl<L, S, H> Serve<L, S, H> {
    /// The level of the connections' tasks; without this call, the level of the code that awaits the server.
    pub fn level(mut self, level: impl Into<LevelId>) -> Self {
        self.level = Some(level.into());
        self
    }

    /// Serves until `signal` is ready, then ends gracefully.
    pub fn until(mut self, signal: impl Future<Output = ()> + Send + 'static) -> Self {
        self.signal = Box::pin(signal);
        self
    }

    /// How long connections may take to finish after the signal; 30 seconds otherwise. Then they are cut.
    pub fn drain(mut self, limit: Duration) -> Self {
        self.drain = limit;
        self
    }

    /// The most connections at a time, at least one. Otherwise there is no limit but that on descriptors.
    ///
    /// A client that keeps an idle connection open keeps its place as well, until the limit of
    /// [`idle`](Serve::idle).
    ///
    /// A connection of HTTP/1 that was upgraded, to a WebSocket for instance, is the program's from then on, and has
    /// ended for the server: it keeps no place, and no limit and no end of the server cuts it. Such a program bounds
    /// these itself, by a permit that goes with the upgraded stream.
    pub fn connections(mut self, most: usize) -> Self {
        self.connections = most.max(1);
        self
    }

    /// How long a connection may be without a request; 30 seconds otherwise. [`Duration::MAX`] is no limit.
    ///
    /// A request is under way from the last byte of its head until its response has been made and sent. A connection
    /// without one is closed when nothing of a response was sent on it for so long: a client has so much time for the
    /// first request's head, and for each further one from the end of the response before. Handlers, and responses that
    /// go on for ever, are not limited by this, as long as the client reads: if its socket takes nothing of a response
    /// for so long, the connection is cut. (The kernel says that a socket takes more when about a third of its send
    /// buffer has become free, of up to some megabytes. A client that reads less than that within the limit does not
    /// count as one that reads: give slow clients of large responses more time.)
    ///
    /// With HTTP/2 a client that opens no window for its responses does not read either. Its connection is told to go
    /// after so long, and cut after as long again, once no other request is under way on it; until then hyper's
    /// `max_concurrent_streams` (200) bounds how many responses it holds. Its pings are answered, and are no requests:
    /// they keep no connection.
    pub fn idle(mut self, limit: Duration) -> Self {
        self.idle = limit;
        self
    }

    /// Whether small writes are sent at once; they are, unless this says otherwise.
    pub fn nodelay(mut self, nodelay: bool) -> Self {
        self.nodelay = nodelay;
        self
    }

    /// Whether each request gets its [`Peer`] as an extension. It costs an allocation for each request, so
    /// the default is no.
    pub fn peers(mut self, peers: bool) -> Self {
        self.peers = peers;
        self
    }

    /// Sets options of HTTP/1 and HTTP/2.
    ///
    /// The builder has a timer already. hyper's own defaults hold otherwise, but for the limit on the headers
    /// of an HTTP/1 request: it is off, because [`idle`](Serve::idle) includes it. For HTTP/2 alone:
    /// `|http| *http = http.clone().http2_only()`. With HTTP/1 alone, by `http1_only`, connections cannot be
    /// upgraded.
    pub fn http(mut self, set: impl FnOnce(&mut auto::Builder<Executor>)) -> Self {
        set(&mut self.http);
        self
    }

    /// Shakes hands on each connection first, within `limit`.
    pub fn handshake<G>(self, handshake: G, limit: Duration) -> Serve<L, S, G> {
        Serve {
            handshake,
            handshake_limit: limit,
            idle: self.idle,
            listener: self.listener,
            service: self.service,
            http: self.http,
            signal: self.signal,
            level: self.level,
            connections: self.connections,
            nodelay: self.nodelay,
            peers: self.peers,
            drain: self.drain,
        }
    }
}

/// What a server did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Served {
    /// Connections accepted.
    pub accepted: u64,
    /// Connections that ended well.
    pub finished: u64,
    /// Connections that ended with an error of the peer, of the network, of the protocol, or with a panic
    /// of the service.
    pub failed: u64,
    /// Connections cut because they did not finish in time, after the signal or after the limit of
    /// [`Serve::idle`], or on which the client had sent nothing by that limit.
    pub cut: u64,
    /// Connections that still ran when the server gave up waiting.
    pub left: usize,
    /// Connections that were gone before they were accepted.
    pub passed_over: u64,
    /// How often the loop paused because the process or the system was out of descriptors or memory.
    pub pauses: u64,
}

impl<L, S, H, B> Serve<L, S, H>
where
    L: Listener,
    S: Service<Request<Incoming>, Response = Response<B>> + Clone + Send + 'static,
    S::Future: Send + 'static,
    S::Error: Into<BoxError>,
    B: Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<BoxError>,
    H: Handshake<L::Stream>,
{
    async fn run(self) -> io::Result<Served> {
        let Serve {
            listener,
            service,
            http,
            mut handshake,
            handshake_limit,
            idle,
            mut signal,
            level,
            connections,
            nodelay,
            peers,
            drain,
        } = self;
        let level = level.unwrap_or_else(urgency::current_level);
        handshake.speaks(http.is_http1_available(), http.is_http2_available());
        let census = Arc::new(Census::default());
        let protocol = Arc::new(Protocol {
            http,
            handshake,
            handshake_limit,
            idle,
        });
        let begin = |stream, peer| {
            if nodelay {
                // A connection that is gone already shows it at its first read.
                let _ = listener.set_nodelay(&stream);
            }
            let service = WithPeer {
                service: service.clone(),
                peer: peers.then_some(peer),
            };
            let task = connection(protocol.clone(), stream, service, census.join());
            urgency::at(level).spawn(task).detach();
        };
        let accepted =
            accept::accept_loop(&listener, &census, connections, &mut signal, begin).await?;
        drop(listener);
        census.announce(Phase::Draining);
        let last = || poll_fn(|cx| census.poll_fewer_than(1, cx));
        if timeout(drain, last()).await.is_err() {
            census.announce(Phase::Cut);
            // Whether they are gone or not is in the report.
            let _ = timeout(AFTER_CUT, last()).await;
        }
        let (left, ended) = census.count();
        Ok(Served {
            accepted: accepted.accepted,
            finished: ended.finished,
            failed: ended.failed,
            cut: ended.cut,
            left,
            passed_over: accepted.passed_over,
            pauses: accepted.pauses,
        })
    }
}

impl<L, S, H, B> IntoFuture for Serve<L, S, H>
where
    L: Listener + Sync,
    S: Service<Request<Incoming>, Response = Response<B>> + Clone + Send + Sync + 'static,
    S::Future: Send + 'static,
    S::Error: Into<BoxError>,
    B: Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<BoxError>,
    H: Handshake<L::Stream>,
{
    type Output = io::Result<Served>;
    type IntoFuture = Pin<Box<dyn Future<Output = io::Result<Served>> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.run())
    }
}

impl<L: fmt::Debug, S, H> fmt::Debug for Serve<L, S, H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Serve")
            .field("listener", &self.listener)
            .field("level", &self.level)
            .field("connections", &self.connections)
            .finish_non_exhaustive()
    }
}
