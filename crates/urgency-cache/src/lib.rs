//! A memcached-compatible cache server on the Urgency task runtime.
//!
//! [`store`] is the cache itself: keys, values, the memory limit, eviction and expiry. It knows
//! nothing of protocols, sockets, clocks or tasks.

#![deny(missing_docs)]
#![forbid(unsafe_code)]

pub mod protocol;
pub mod server;
pub mod store;
