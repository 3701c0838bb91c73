//! `Connector`: how hyper-util's pooled client gets its connections.
//!
//! A connector is a service from an address to a stream. This one looks the name up (a blocking call that
//! costs no worker), connects with the runtime's sockets and, for `https`, shakes hands.

use crate::rt::Io;
use http::{Uri, uri::Scheme};
use hyper_util::client::legacy::connect::{Connected, Connection};
#[cfg(feature = "tls")]
use std::{fmt, sync::Arc};
use std::{
    future::Future,
    io,
    pin::Pin,
    task::{Context, Poll},
};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
#[cfg(feature = "tls")]
use tokio_rustls::{TlsConnector, client::TlsStream, rustls};
use tower_service::Service;
use urgency::net::TcpStream;

/// Connects to `http` addresses, and with the feature `tls` to `https` ones.
///
/// ```
/// use http_body_util::Empty;
/// use hyper::body::Bytes;
/// use hyper_util::client::legacy::Client;
/// use urgency_web::{client::Connector, rt::{Executor, Timer}};
///
/// let client: Client<_, Empty<Bytes>> = Client::builder(Executor::new())
///     .pool_timer(Timer::new())
///     .build(Connector::new());
/// # let _ = client;
/// ```
///
/// # Errors
///
/// `InvalidInput` for an address without a host or with another scheme; otherwise the errors of the lookup, the
/// connection or the handshake.
#[derive(Clone, Default)]
pub struct Connector {
    #[cfg(feature = "tls")]
    tls: Option<Arc<rustls::ClientConfig>>,
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
        }
    }
}

#[cfg(feature = "tls")]
impl fmt::Debug for Connector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connector")
            .field("tls", &self.tls.is_some())
            .finish()
    }
}

#[cfg(not(feature = "tls"))]
impl std::fmt::Debug for Connector {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Connector")
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
        let stream = TcpStream::connect((host, port)).await?;
        stream.set_nodelay(true)?;
        if !is_secure {
            return Ok(Io::new(Transport::Plain(stream)));
        }
        self.shake_hands(host, stream).await
    }

    #[cfg(feature = "tls")]
    async fn shake_hands(self, host: &str, stream: TcpStream) -> io::Result<Io<Transport>> {
        let config = self.tls.ok_or_else(|| {
            refused("this connector has no TLS configuration; `Connector::with_tls` has one".into())
        })?;
        let name = rustls::pki_types::ServerName::try_from(host.to_owned())
            .map_err(|_| refused(format!("`{host}` is no name that a certificate could have")))?;
        let stream = TlsConnector::from(config).connect(name, stream).await?;
        Ok(Io::new(Transport::Tls(Box::new(stream))))
    }

    #[cfg(not(feature = "tls"))]
    async fn shake_hands(self, host: &str, _: TcpStream) -> io::Result<Io<Transport>> {
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
