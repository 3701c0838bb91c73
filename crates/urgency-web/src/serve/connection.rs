//! One connection: handshake, requests, end.

use super::{
    Handshake, Written,
    census::{End, Member, Phase},
    idle::{Activity, Idle, Marking},
};
use crate::{
    BoxError,
    rt::{Executor, Io},
};
use http::{Request, Response};
use http_body::Body;
use hyper::body::Incoming;
use hyper_util::{server::conn::auto, service::TowerToHyperService};
use std::{
    future::{Future, poll_fn},
    io,
    pin::{Pin, pin},
    sync::Arc,
    task::Poll,
    time::Duration,
};
use tower_service::Service;
use urgency::time::timeout;

/// The sender of a request: the peer of its connection.
///
/// It is among a request's extensions if [`Serve::peers`](super::Serve::peers) asks for it; in axum,
/// `Extension<Peer<SocketAddr>>` extracts it.
///
/// ```
/// use axum::{Extension, Router, routing::get};
/// use std::net::SocketAddr;
/// use urgency::net::TcpListener;
/// use urgency_web::serve::{Peer, serve};
///
/// async fn me(Extension(Peer(peer)): Extension<Peer<SocketAddr>>) -> String {
///     peer.to_string()
/// }
///
/// let served = urgency::block_on(async {
///     let listener = TcpListener::bind("127.0.0.1:0").await?;
///     let router = Router::new().route("/me", get(me));
///     serve(listener, router).peers(true).until(async {}).await
/// })?;
/// assert_eq!(served.accepted, 0);
/// # std::io::Result::Ok(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer<P>(pub P);

/// What all connections of a server share.
pub(super) struct Protocol<H> {
    pub(super) http: auto::Builder<Executor>,
    pub(super) handshake: H,
    pub(super) handshake_limit: Duration,
    pub(super) idle: Duration,
}

/// Adds the peer to each request.
#[derive(Clone)]
pub(super) struct WithPeer<S, P> {
    pub(super) service: S,
    pub(super) peer: Option<P>,
}

impl<S, P> Service<Request<Incoming>> for WithPeer<S, P>
where
    S: Service<Request<Incoming>>,
    P: Clone + Send + Sync + 'static,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    #[inline]
    fn poll_ready(&mut self, cx: &mut std::task::Context<'_>) -> Poll<Result<(), S::Error>> {
        self.service.poll_ready(cx)
    }

    #[inline]
    fn call(&mut self, mut request: Request<Incoming>) -> S::Future {
        if let Some(peer) = &self.peer {
            request.extensions_mut().insert(Peer(peer.clone()));
        }
        self.service.call(request)
    }
}

/// Serves one connection until it ends or the census says so.
pub(super) async fn connection<S, B, H, T>(
    protocol: Arc<Protocol<H>>,
    stream: T,
    service: S,
    mut member: Member,
) where
    S: Service<Request<Incoming>, Response = Response<B>> + Clone + Send + 'static,
    S::Future: Send + 'static,
    S::Error: Into<BoxError>,
    B: Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<BoxError>,
    H: Handshake<T>,
    T: Send + 'static,
{
    let shaking = timeout(
        protocol.handshake_limit,
        protocol.handshake.handshake(stream),
    );
    let stream = match until_told_to_end(&mut member, shaking).await {
        // It had no request.
        None => return member.end(End::Finished),
        Some(Ok(Ok(stream))) => stream,
        Some(Ok(Err(_)) | Err(_)) => return member.end(End::Failed),
    };
    let activity = Arc::new(Activity::default());
    let service = TowerToHyperService::new(Marking {
        service,
        activity: activity.clone(),
    });
    let io = Io::noting(stream, Written::new(activity.clone()));
    let http = &protocol.http;
    let idle = Idle::new(protocol.idle, activity);
    let end = if http.is_http1_available() && http.is_http2_available() {
        let connection = pin!(http.serve_connection_with_upgrades(io, service));
        until_its_end(&mut member, idle, connection, |connection| {
            connection.graceful_shutdown();
        })
        .await
    } else {
        // The other form looks for both even if one is turned off.
        let connection = pin!(http.serve_connection(io, service));
        until_its_end(&mut member, idle, connection, |connection| {
            connection.graceful_shutdown();
        })
        .await
    };
    member.end(end);
}

/// Polls a connection until it ends, passes on what the census says, and ends it when it is idle for too
/// long.
async fn until_its_end<C>(
    member: &mut Member,
    mut idle: Idle,
    mut connection: Pin<&mut C>,
    finish: impl Fn(Pin<&mut C>),
) -> End
where
    C: Future<Output = Result<(), BoxError>>,
{
    let (mut phase, mut says_goodbye) = (Phase::Open, false);
    // How it ends if it was told to finish before the client has sent anything: that is an error for hyper.
    let mut unused = End::Failed;
    poll_fn(|cx| {
        while let Poll::Ready(next) = member.poll_phase(phase, cx) {
            phase = next;
            match phase {
                Phase::Open => {}
                Phase::Draining => {
                    finish(connection.as_mut());
                    unused = End::Finished;
                }
                Phase::Cut => return Poll::Ready(End::Cut),
            }
        }
        let mut polled = connection.as_mut().poll(cx);
        while polled.is_pending() && idle.poll(cx).is_ready() {
            if says_goodbye {
                return Poll::Ready(End::Cut);
            }
            finish(connection.as_mut());
            unused = End::Cut;
            polled = connection.as_mut().poll(cx);
            if polled.is_pending() && !idle.is_http2() {
                return Poll::Ready(End::Cut);
            }
            says_goodbye = true;
            idle.begin_anew();
        }
        polled.map(|result| match result {
            Ok(()) => End::Finished,
            Err(error) if is_cancelled(&error) => unused,
            Err(_) => End::Failed,
        })
    })
    .await
}

/// Whether a connection was told to finish while it read the first bytes, which say the version.
fn is_cancelled(error: &BoxError) -> bool {
    let error = error.downcast_ref::<io::Error>();
    error.is_some_and(|error| error.kind() == io::ErrorKind::Interrupted)
}

/// `None` if the connections are told to finish before `future` is ready. They do not finish a handshake: HTTP would
/// take no request after it.
async fn until_told_to_end<F: Future>(member: &mut Member, future: F) -> Option<F::Output> {
    let mut future = pin!(future);
    poll_fn(|cx| {
        if let Poll::Ready(output) = future.as_mut().poll(cx) {
            return Poll::Ready(Some(output));
        }
        member.poll_phase(Phase::Open, cx).map(|_| None)
    })
    .await
}
