//! A memcached-compatible cache server on the Urgency task runtime.
//!
//! - [`store`] is the cache itself: keys, values, the memory limit, eviction and expiry. It knows nothing of
//!   protocols, sockets, clocks or tasks.
//! - [`protocol`] parses requests: the text, meta and binary protocol. It is pure code.
//! - [`server`] carries them out. [`server::listen::start`] serves on a program's own runtime and levels;
//!   [`server::connection`] serves one stream, on any runtime.
//!
//! The command `urgency cache` is all of it with memcached's command line.

#![deny(missing_docs)]
#![deny(unsafe_code)]

pub mod protocol;
pub mod server;
pub mod store;
