//! TLS by rustls: the handshake of a server's connections, and of a client's.
//!
//! rustls is used through `tokio-rustls`, which needs Tokio's I/O traits and no more; the sockets have them. The
//! cryptography is *ring*'s. `futures-rustls` would have needed no traits of Tokio's, but follows rustls slowly.
//!
//! A handshake is polled by the connection's task, at its level. Its signature computes for 50 µs (ECDSA P-256) to a
//! millisecond (RSA 2048) without a scheduling point; relief covers the rest.

use crate::serve::{Handshake, Serve};
use rustls::{
    ClientConfig, RootCertStore, ServerConfig,
    crypto::{CryptoProvider, ring},
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
};
use std::{fmt, future::Future, io, sync::Arc, time::Duration};
use tokio::io::{AsyncRead, AsyncWrite};
pub use tokio_rustls::rustls;
use tokio_rustls::{TlsAcceptor, server::TlsStream};

/// How long a peer may take for its part of the handshake.
const PATIENCE: Duration = Duration::from_secs(10);

fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

fn invalid(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, error)
}

/// The server's side of TLS: the [`Handshake`] of HTTPS.
///
/// ```no_run
/// use axum::Router;
/// use urgency::net::TcpListener;
/// use urgency_web::{serve, tls::Tls};
///
/// # fn main() -> std::io::Result<()> {
/// let tls = Tls::from_pem(&std::fs::read("chain.pem")?, &std::fs::read("key.pem")?)?;
/// urgency::block_on(async {
///     let listener = TcpListener::bind("0.0.0.0:443").await?;
///     serve(listener, Router::new()).tls(tls).await
/// })?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Tls {
    acceptor: TlsAcceptor,
}

impl Tls {
    /// With a configuration of rustls. For HTTP/2 its `alpn_protocols` must have `h2`. A version that the server is
    /// told not to speak ([`Serve::http`]) is not offered.
    pub fn new(config: Arc<ServerConfig>) -> Self {
        Tls {
            acceptor: config.into(),
        }
    }

    /// With a chain of certificates and its key, as PEM. TLS 1.2 and 1.3, HTTP/2 and HTTP/1.1, no
    /// certificates of clients.
    ///
    /// # Errors
    ///
    /// `InvalidInput` if the PEM has no certificate or no key, or if they do not fit together; rustls says why.
    pub fn from_pem(chain: &[u8], key: &[u8]) -> io::Result<Self> {
        let chain: Vec<_> = CertificateDer::pem_slice_iter(chain)
            .collect::<Result<_, _>>()
            .map_err(invalid)?;
        if chain.is_empty() {
            return Err(invalid(
                "there is no certificate in the PEM text of the chain; it should have a section `CERTIFICATE`",
            ));
        }
        let key = PrivateKeyDer::from_pem_slice(key).map_err(invalid)?;
        let config = ServerConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .map_err(invalid)?
            .with_no_client_auth();
        let mut config = config.with_single_cert(chain, key).map_err(invalid)?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(Tls::new(Arc::new(config)))
    }
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tls").finish_non_exhaustive()
    }
}

impl<T: AsyncRead + AsyncWrite + Send + Unpin + 'static> Handshake<T> for Tls {
    type Stream = TlsStream<T>;

    fn handshake(&self, stream: T) -> impl Future<Output = io::Result<TlsStream<T>>> + Send {
        self.acceptor.accept(stream)
    }

    /// Takes back what the configuration offers and the server does not speak.
    fn speaks(&mut self, http1: bool, http2: bool) {
        let is_spoken = |name: &Vec<u8>| match name.as_slice() {
            b"h2" => http2,
            b"http/1.1" | b"http/1.0" => http1,
            _ => true,
        };
        let config = self.acceptor.config();
        if !config.alpn_protocols.iter().all(is_spoken) {
            let mut config = ServerConfig::clone(config);
            config.alpn_protocols.retain(is_spoken);
            self.acceptor = Arc::new(config).into();
        }
    }
}

impl<L, S, H> Serve<L, S, H> {
    /// Serves HTTPS. A peer gets ten seconds for the handshake; [`Serve::handshake`] with a [`Tls`] takes
    /// another limit.
    pub fn tls(self, tls: Tls) -> Serve<L, S, Tls> {
        self.handshake(tls, PATIENCE)
    }
}

/// A client's configuration that trusts exactly the certificates in this PEM text, as roots.
///
/// ```no_run
/// let config = urgency_web::tls::client_trusting(&std::fs::read("root.pem")?)?;
/// # let _ = config;
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Errors
///
/// `InvalidInput` if the PEM is none, or a certificate in it cannot be a root.
pub fn client_trusting(roots: &[u8]) -> io::Result<ClientConfig> {
    let mut store = RootCertStore::empty();
    for root in CertificateDer::pem_slice_iter(roots) {
        store.add(root.map_err(invalid)?).map_err(invalid)?;
    }
    let config = ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .map_err(invalid)?;
    Ok(config.with_root_certificates(store).with_no_client_auth())
}
