//! `Connector`: how hyper-util's pooled client gets its connections.
//!
//! A connector is a service from an address to a stream. This one looks the name up (a blocking call that
//! costs no worker), connects with the runtime's sockets and, for `https`, shakes hands. A server that accepts and then
//! says nothing would hold a request for ever, so each of the two steps has a limit.
//!
//! The pool is one for all levels. A pooled connection is a task, which moves bytes for one request after the other,
//! and an executor without a level of its own ([`Executor::new`](crate::rt::Executor::new)) gives it the level of the
//! request that opened it. A more urgent request that finds it in the pool would wait for a less urgent task, which
//! nothing tells: if urgent work fills all cores, for as long as that lasts. So a client that is used at several levels
//! has [`Executor::at`](crate::rt::Executor::at) the most urgent of them.

use crate::rt::Io;
use http::{Uri, uri::Scheme};
use hyper_util::client::legacy::connect::{Connected, Connection};
#[cfg(feature = "tls")]
use std::sync::Arc;
use std::{
    error::Error,
    fmt,
    future::Future,
    io,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
#[cfg(feature = "tls")]
use tokio_rustls::{TlsConnector, client::TlsStream, rustls};
use tower_service::Service;
use urgency::{net::TcpStream, time::timeout};

/// As long as a server waits for a handshake.
const LIMIT: Duration = Duration::from_secs(10);

/// Connects to `http` addresses, and with the feature `tls` to `https` ones.
///
/// ```
/// use http_body_util::Empty;
/// use hyper::body::Bytes;
/// use hyper_util::client::legacy::Client;
/// use urgency_web::{client::Connector, rt::{Executor, Timer}};
///
/// let executor = Executor::at(urgency::LevelId::MOST_URGENT); // for requests of all levels
/// let client: Client<_, Empty<Bytes>> = Client::builder(executor)
///     .pool_timer(Timer::new())
///     .build(Connector::new());
/// # let _ = client;
/// ```
///
/// # Errors
///
/// `InvalidInput` for an address without a host or with another scheme; `TimedOut` with a [`StepTimedOut`] in it if a
/// step takes longer than [`limit`](Connector::limit) says; otherwise the errors of the lookup, the connection or the
/// handshake.
#[derive(Clone)]
pub struct Connector {
    #[cfg(feature = "tls")]
    tls: Option<Arc<rustls::ClientConfig>>,
    limit: Duration,
}

impl Default for Connector {
    fn default() -> Self {
        Connector {
            #[cfg(feature = "tls")]
            tls: None,
            limit: LIMIT,
        }
    }
}

impl Connector {
    /// For `http`.
    pub fn new() -> Self {
        Connector::default()
    }

    /// For `http` and `https`. `h2` and `http/1.1` are offered to the server, unless the configuration says otherwise.
    ///
    /// ```no_run
    /// use urgency_web::{client::Connector, tls::client_trusting};
    ///
    /// let roots = std::fs::read("root.pem")?;
    /// let connector = Connector::with_tls(client_trusting(&roots)?);
    /// # let _ = connector;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[cfg(feature = "tls")]
    pub fn with_tls(mut config: rustls::ClientConfig) -> Self {
        if config.alpn_protocols.is_empty() {
            config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        }
        Connector {
            tls: Some(Arc::new(config)),
            limit: LIMIT,
        }
    }

    /// How long each [`Step`] may take; 10 seconds otherwise. [`Duration::MAX`] is no limit.
    ///
    /// ```
    /// use std::time::Duration;
    /// use urgency_web::client::Connector;
    ///
    /// let connector = Connector::new().limit(Duration::from_secs(2));
    /// # let _ = connector;
    /// ```
    pub fn limit(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }

    /// What `step` gives, within the limit.
    async fn within<R>(
        &self,
        step: Step,
        (host, port): (&str, u16),
        stepping: impl Future<Output = io::Result<R>>,
    ) -> io::Result<R> {
        let timed_out = |_| {
            let server = format!("{host}:{port}");
            let limit = self.limit;
            let error = StepTimedOut {
                step,
                server,
                limit,
            };
            io::Error::new(io::ErrorKind::TimedOut, error)
        };
        timeout(self.limit, stepping).await.map_err(timed_out)?
    }
}

/// What a [`Connector`] does before a request can be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Step {
    /// Looks the name up, and connects to one of its addresses.
    Connect,
    /// Shakes hands by TLS, for `https`.
    Handshake,
}

/// A step of a [`Connector`] took longer than its [`limit`](Connector::limit). It is inside of the `io::Error`.
///
/// ```
/// use std::io;
/// use tower_service::Service;
/// use urgency_web::client::{Connector, Step, StepTimedOut};
///
/// fn step(error: &io::Error) -> Option<Step> {
///     let timed_out = error.get_ref()?.downcast_ref::<StepTimedOut>()?;
///     Some(timed_out.step())
/// }
/// # let refused = Connector::new().call("ftp://localhost".parse().unwrap());
/// # assert_eq!(step(&urgency::block_on(refused).unwrap_err()), None);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepTimedOut {
    step: Step,
    server: String,
    limit: Duration,
}

impl StepTimedOut {
    /// The step that was not done in time.
    pub fn step(&self) -> Step {
        self.step
    }
}

impl fmt::Display for StepTimedOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let StepTimedOut { server, limit, .. } = self;
        match self.step {
            Step::Connect => write!(
                f,
                "there was no connection to {server} within {limit:?}; check the address, and what is between here and \
                 there"
            ),
            Step::Handshake => write!(
                f,
                "{server} accepted the connection, but did not shake hands within {limit:?}; check that it speaks TLS \
                 on this port"
            ),
        }?;
        f.write_str(", or give it more time by `Connector::limit`")
    }
}

impl Error for StepTimedOut {}

impl fmt::Debug for Connector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Connector");
        #[cfg(feature = "tls")]
        shown.field("tls", &self.tls.is_some());
        shown.field("limit", &self.limit).finish()
    }
}

fn refused(what: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, what)
}

impl Connector {
    async fn connect(self, uri: Uri) -> io::Result<Io<Transport>> {
        let host = uri.host().ok_or_else(|| {
            refused(format!(
                "`{uri}` has no host; a client needs an absolute address"
            ))
        })?;
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let is_secure = uri.scheme() == Some(&Scheme::HTTPS);
        if !is_secure && uri.scheme() != Some(&Scheme::HTTP) {
            return Err(refused(format!(
                "the scheme of `{uri}` is neither http nor https"
            )));
        }
        let port = uri.port_u16().unwrap_or(if is_secure { 443 } else { 80 });
        let connecting = TcpStream::connect((host, port));
        let stream = self.within(Step::Connect, (host, port), connecting).await?;
        stream.set_nodelay(true)?;
        if !is_secure {
            return Ok(Io::new(Transport::Plain(stream)));
        }
        self.shake_hands((host, port), stream).await
    }

    #[cfg(feature = "tls")]
    async fn shake_hands(
        self,
        (host, port): (&str, u16),
        stream: TcpStream,
    ) -> io::Result<Io<Transport>> {
        let config = self.tls.clone().ok_or_else(|| {
            refused("this connector has no TLS configuration; `Connector::with_tls` has one".into())
        })?;
        let name = rustls::pki_types::ServerName::try_from(host.to_owned())
            .map_err(|_| refused(format!("`{host}` is no name that a certificate could have")))?;
        let shaking = TlsConnector::from(config).connect(name, stream);
        let stream = self.within(Step::Handshake, (host, port), shaking).await?;
        Ok(Io::new(Transport::Tls(Box::new(stream))))
    }

    #[cfg(not(feature = "tls"))]
    async fn shake_hands(self, (host, _): (&str, u16), _: TcpStream) -> io::Result<Io<Transport>> {
        Err(refused(format!(
            "https://{host} needs TLS; build urgency-web with its feature `tls`"
        )))
    }
}

impl Service<Uri> for Connector {
    type Response = Io<Transport>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Io<Transport>>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        Box::pin(self.clone().connect(uri))
    }
}

/// A client's connection, in the clear or encrypted.
///
/// ```
/// use tower_service::Service;
/// use urgency::net::TcpListener;
/// use urgency_web::client::{Connector, Transport};
///
/// urgency::block_on(async {
///     let listener = TcpListener::bind("127.0.0.1:0").await?;
///     let uri = format!("http://{}/", listener.local_addr()?).parse().expect("an address");
///     let connection = Connector::new().call(uri).await?;
///     match connection.get_ref() {
///         Transport::Plain(stream) => assert_eq!(stream.peer_addr()?, listener.local_addr()?),
///         encrypted => panic!("{encrypted:?}"),
///     }
///     std::io::Result::Ok(())
/// })?;
/// # std::io::Result::Ok(())
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum Transport {
    /// HTTP.
    Plain(TcpStream),
    /// HTTPS.
    #[cfg(feature = "tls")]
    Tls(Box<TlsStream<TcpStream>>),
}

impl Connection for Io<Transport> {
    fn connected(&self) -> Connected {
        match self.get_ref() {
            Transport::Plain(_) => Connected::new(),
            #[cfg(feature = "tls")]
            Transport::Tls(stream) => match stream.get_ref().1.alpn_protocol() {
                Some(b"h2") => Connected::new().negotiated_h2(),
                _ => Connected::new(),
            },
        }
    }
}

/// Calls a method of whatever stream it is.
macro_rules! forward {
    ($self:ident, $stream:ident => $call:expr) => {
        match $self.get_mut() {
            Transport::Plain($stream) => $call,
            #[cfg(feature = "tls")]
            Transport::Tls($stream) => $call,
        }
    };
}

impl AsyncRead for Transport {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        forward!(self, stream => Pin::new(stream).poll_read(cx, buffer))
    }
}

impl AsyncWrite for Transport {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &[u8],
    ) -> Poll<io::Result<usize>> {
        forward!(self, stream => AsyncWrite::poll_write(Pin::new(stream), cx, buffer))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffers: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        forward!(self, stream => AsyncWrite::poll_write_vectored(Pin::new(stream), cx, buffers))
    }

    fn is_write_vectored(&self) -> bool {
        match self {
            Transport::Plain(stream) => stream.is_write_vectored(),
            #[cfg(feature = "tls")]
            Transport::Tls(stream) => stream.is_write_vectored(),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        forward!(self, stream => AsyncWrite::poll_flush(Pin::new(stream), cx))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        forward!(self, stream => AsyncWrite::poll_shutdown(Pin::new(stream), cx))
    }
}
