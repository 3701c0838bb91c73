//! Addresses, and names that must be looked up first.
//!
//! A literal address costs nothing. A name is looked up by the C library, which blocks: that happens in a
//! declared blocking closure, so no worker is lost. The standard library's trait cannot tell the
//! two apart, hence this one.

use crate::fs::Offloaded;
use std::{
    io,
    net::{self, IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6},
};

/// Addresses to connect or bind to: a socket address, an IP address with a port, a name with a port as
/// `("host", 80)` or `"host:80"`, or several socket addresses to be tried in order.
///
/// This trait cannot be implemented outside.
///
/// ```
/// use std::{io, net::Ipv4Addr};
/// use urgency::net::{TcpListener, ToSocketAddrs};
///
/// async fn listen(at: impl ToSocketAddrs) -> io::Result<Ipv4Addr> {
///     match TcpListener::bind(at).await?.local_addr()?.ip() {
///         std::net::IpAddr::V4(ip) => Ok(ip),
///         ip => panic!("{ip}"),
///     }
/// }
///
/// urgency::block_on(async {
///     assert_eq!(listen("127.0.0.1:0").await?, Ipv4Addr::LOCALHOST);
///     assert_eq!(listen((Ipv4Addr::LOCALHOST, 0)).await?, Ipv4Addr::LOCALHOST);
///     io::Result::Ok(())
/// })?;
/// # io::Result::Ok(())
/// ```
pub trait ToSocketAddrs: sealed::Resolve {}

impl<T: sealed::Resolve + ?Sized> ToSocketAddrs for T {}

/// Addresses, now or later.
#[derive(Debug)]
pub enum Resolved {
    /// A literal address.
    One(SocketAddr),
    /// Known.
    Now(Vec<SocketAddr>),
    /// Being looked up.
    Later(Offloaded<Vec<SocketAddr>>),
}

impl Resolved {
    /// Awaits them.
    pub(crate) async fn get(self) -> io::Result<Vec<SocketAddr>> {
        match self {
            Resolved::One(address) => Ok(vec![address]),
            Resolved::Now(addresses) => Ok(addresses),
            Resolved::Later(lookup) => lookup.await,
        }
    }

    /// Awaits the first of them.
    pub(crate) async fn first(self) -> io::Result<SocketAddr> {
        match self {
            Resolved::One(address) => Ok(address),
            several => several
                .get()
                .await?
                .into_iter()
                .next()
                .ok_or_else(no_address),
        }
    }
}

/// The addresses of a name, or the literal address itself. The lookup begins now; if the future is dropped, it goes on
/// and its result is dropped.
///
/// ```
/// # urgency::block_on(async {
/// for address in urgency::net::lookup_host("localhost:80").await? {
///     assert_eq!(address.port(), 80);
/// }
/// # std::io::Result::Ok(())
/// # }).unwrap();
/// ```
///
/// # Errors
///
/// The error of the lookup; or that the runtime was shut down.
pub fn lookup_host<A: ToSocketAddrs>(
    host: A,
) -> impl Future<Output = io::Result<impl Iterator<Item = SocketAddr> + use<A>>> + Send + use<A> {
    let addresses = host.resolve();
    async { Ok(addresses.get().await?.into_iter()) }
}

pub(crate) mod sealed {
    use super::*;

    pub trait Resolve {
        fn resolve(&self) -> Resolved;
    }

    fn one(address: impl Into<SocketAddr>) -> Resolved {
        Resolved::One(address.into())
    }

    fn look_up<A: net::ToSocketAddrs + Send + 'static>(name: A) -> Resolved {
        Resolved::Later(Offloaded::new(move || {
            Ok(net::ToSocketAddrs::to_socket_addrs(&name)?.collect())
        }))
    }

    macro_rules! resolved {
        ($($of:ty),*) => {$(
            impl Resolve for $of {
                fn resolve(&self) -> Resolved {
                    one(*self)
                }
            }
        )*};
    }

    resolved!(
        SocketAddr,
        SocketAddrV4,
        SocketAddrV6,
        (IpAddr, u16),
        (Ipv4Addr, u16),
        (Ipv6Addr, u16)
    );

    impl Resolve for [SocketAddr] {
        fn resolve(&self) -> Resolved {
            Resolved::Now(self.to_vec())
        }
    }

    impl<const N: usize> Resolve for [SocketAddr; N] {
        fn resolve(&self) -> Resolved {
            self.as_slice().resolve()
        }
    }

    impl Resolve for Vec<SocketAddr> {
        fn resolve(&self) -> Resolved {
            self.as_slice().resolve()
        }
    }

    impl Resolve for str {
        fn resolve(&self) -> Resolved {
            match self.parse::<SocketAddr>() {
                Ok(address) => one(address),
                Err(_) => look_up(self.to_owned()),
            }
        }
    }

    impl Resolve for String {
        fn resolve(&self) -> Resolved {
            self.as_str().resolve()
        }
    }

    impl Resolve for (&str, u16) {
        fn resolve(&self) -> Resolved {
            match self.0.parse::<IpAddr>() {
                Ok(address) => one((address, self.1)),
                Err(_) => look_up((self.0.to_owned(), self.1)),
            }
        }
    }

    impl Resolve for (String, u16) {
        fn resolve(&self) -> Resolved {
            (self.0.as_str(), self.1).resolve()
        }
    }

    impl<T: Resolve + ?Sized> Resolve for &T {
        fn resolve(&self) -> Resolved {
            (**self).resolve()
        }
    }
}

/// The error for an empty list of addresses.
pub(crate) fn no_address() -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidInput,
        "no address was given, or the name has none; at least one is needed",
    )
}

/// Tries `attempt` with each address until one succeeds; the error is the last one.
pub(crate) fn first_that_works<T>(
    addresses: impl IntoIterator<Item = SocketAddr>,
    mut attempt: impl FnMut(SocketAddr) -> io::Result<T>,
) -> io::Result<T> {
    let mut last = None;
    for address in addresses {
        match attempt(address) {
            Ok(done) => return Ok(done),
            Err(error) => last = Some(error),
        }
    }
    Err(last.unwrap_or_else(no_address))
}
