//! HTTP on Urgency.
//!
//! - [`rt`]: hyper's runtime traits, for every builder of hyper, servers and clients.
//! - [`serve()`]: a listener and a tower service, for instance an axum `Router`, become a server.
//! - [`level`]: a tower layer that runs each request at a level of its own, and sheds load by level.
//!
//! Features, none of them on by default:
//!
//! - `axum`: `At`, an extractor that makes priority inversions in handlers errors of the compiler.
//! - `tls`: HTTPS by rustls, for servers (`tls::Tls`) and clients.
//! - `client`: `client::Connector`, for hyper-util's pooled client.
//! - `quic`: `quic::QuicRuntime`, for endpoints of quinn.
//! - `tokio-driver`: `tokio_driver::TokioDriver`, a way in for crates that ask for a Tokio runtime, and what
//!   bypasses the levels there.
//!
//! ```
//! use axum::{Router, routing::get};
//! use urgency::net::TcpListener;
//!
//! # fn main() -> std::io::Result<()> {
//! let router = Router::new().route("/", get(|| async { "hello" }));
//! # let stop = async {};
//! urgency::block_on(async {
//!     let listener = TcpListener::bind("127.0.0.1:0").await?;
//!     urgency_web::serve(listener, router).until(stop).await
//! })?;
//! # Ok(())
//! # }
//! ```
//!
//! `examples/ctrl_c.rs` makes `stop` of a signal, `examples/levels.rs` serves two kinds of requests.
//!
//! # What it does not do
//!
//! - It limits neither the size of a request nor the time of a handler; tower and axum have layers for both. Its own
//!   limits concern connections, handshakes, idle connections and the end ([`Serve`]), and the levels ([`level`]).
//! - It installs no handler for signals: [`Serve::until`] takes any future, also one of [`urgency::signal`].
//! - TLS is rustls with *ring*. Certificates are the program's to load, and to renew by a resolver of rustls.
//! - HTTP/3: `quic` is a runtime for quinn, not a server.
//! - It logs nothing. What went wrong on connections is counted in [`Served`].

#![deny(unsafe_code)]

#[cfg(feature = "axum")]
pub mod at;
#[cfg(feature = "client")]
pub mod client;
pub mod level;
#[cfg(feature = "quic")]
pub mod quic;
pub mod rt;
pub mod serve;
#[cfg(feature = "tls")]
pub mod tls;
#[cfg(feature = "tokio-driver")]
pub mod tokio_driver;

#[cfg(feature = "axum")]
pub use at::At;
pub use serve::{Serve, Served, serve};

/// An error of whatever kind, as the tower world passes them on.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;
