//! HTTP on Urgency.
//!
//! - [`rt`]: hyper's runtime traits, for every builder of hyper, servers and clients.
//! - [`serve()`]: a listener and a tower service, for instance an axum `Router`, become a server.
//!
//! ```
//! use axum::{Router, routing::get};
//! use urgency::net::TcpListener;
//!
//! # fn main() -> std::io::Result<()> {
//! let listener = TcpListener::bind("127.0.0.1:0")?;
//! let router = Router::new().route("/", get(|| async { "hello" }));
//! # let stop = async {};
//! urgency::block_on(async { urgency_web::serve(listener, router).until(stop).await })?;
//! # Ok(())
//! # }
//! ```

pub mod rt;
pub mod serve;

pub use serve::{Serve, Served, serve};

/// An error of whatever kind, as the tower world passes them on.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;
