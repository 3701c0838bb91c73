//! Binding: TCP and UDP on each address, or a Unix socket.
//!
//! A name stands for all its addresses, `*` for all of the machine. An address that the machine does not have (a name's
//! address of IPv6 where IPv6 is off) is passed over while there is another. A socket on an address of IPv6 takes no
//! connections of IPv4, so `0.0.0.0` and `::` can stand side by side. As in memcached.

use super::Options;
use rustix::{
    fs::Mode,
    net::{AddressFamily, SocketFlags, SocketType, bind as bind_to, listen, socket_with, sockopt},
    process::umask,
};
use std::{
    env, fs, io,
    net::{self, SocketAddr, ToSocketAddrs},
    os::{fd::OwnedFd, unix::fs::FileTypeExt},
    path::Path,
};
use urgency::net::{TcpListener, UdpSocket, UnixListener};
use urgency_cache::server::listen::Sockets;

/// The sockets, and the ports that they got.
pub struct Bound {
    pub sockets: Sockets,
    pub tcp_port: u16,
    pub udp_port: u16,
}

/// The TCP port if no option says which.
const DEFAULT_PORT: i32 = 11211;

/// The port that an option means: none, a number, or (0 for the kernel) any.
fn port(option: i32) -> Option<u16> {
    match option {
        0 => None,
        -1 => Some(0),
        port => u16::try_from(port).ok(),
    }
}

fn named<T>(what: &str, result: io::Result<T>) -> Result<T, String> {
    result.map_err(|error| match error.kind() {
        io::ErrorKind::AddrInUse => format!(
            "failed to listen on {what}: {error}; is there another server? -p takes another port"
        ),
        _ => format!("failed to listen on {what}: {error}"),
    })
}

/// Binds everything that the options ask for.
pub fn bind(options: &Options) -> Result<Bound, String> {
    let mut bound = Bound {
        sockets: Sockets::default(),
        tcp_port: 0,
        udp_port: 0,
    };
    if let Some(path) = &options.unix_socket {
        let listener = named(&path.display().to_string(), unix(path, options.unix_mask))?;
        bound
            .sockets
            .unix
            .push((listener, path.display().to_string()));
        return Ok(bound);
    }
    let tcp_port = match (options.port, options.udp_port) {
        (Some(port), _) => port,
        (None, 0) => DEFAULT_PORT,
        (None, port) => port,
    };
    let addresses = options.addresses()?;
    let with_port = |any: Option<u16>| {
        let mine = addresses.iter();
        mine.filter_map(move |(host, own)| Some((host.as_str(), own.or(any)?)))
    };
    bound.sockets.tcp = each("TCP", with_port(port(tcp_port)), |address| {
        tcp(address, options.backlog)
    })?;
    let udp_port = port(options.udp_port);
    let with_port = addresses
        .iter()
        .filter_map(|(host, _)| Some((host.as_str(), udp_port?)));
    bound.sockets.udp = each("UDP", with_port, udp)?;
    if let Some(Ok(address)) = bound.sockets.tcp.last().map(TcpListener::local_addr) {
        bound.tcp_port = address.port();
    }
    if let Some(Ok(address)) = bound.sockets.udp.last().map(UdpSocket::local_addr) {
        bound.udp_port = address.port();
    }
    if bound.sockets.tcp.is_empty() && bound.sockets.udp.is_empty() {
        eprintln!(
            "urgency cache: nobody can reach this server: -p and -U are both 0, and there is no -s"
        );
    }
    Ok(bound)
}

/// A socket on each address of each of `hosts`, once.
fn each<'a, S>(
    kind: &str,
    hosts: impl Iterator<Item = (&'a str, u16)>,
    bind: impl Fn(SocketAddr) -> io::Result<S>,
) -> Result<Vec<S>, String> {
    let (mut sockets, mut taken) = (Vec::new(), Vec::new());
    for (host, port) in hosts {
        let what = format!("{kind} {host}:{port}");
        let (mut has_one, mut not_here) = (false, None);
        for address in named(&what, all_of(host, port))? {
            if taken.contains(&address) {
                has_one = true;
                continue;
            }
            match bind(address) {
                Ok(socket) => {
                    sockets.push(socket);
                    taken.push(address);
                    has_one = true;
                }
                Err(error) if is_not_here(&error) => not_here = Some(error),
                Err(error) => return named(&format!("{kind} {address}"), Err(error)),
            }
        }
        if !has_one {
            let none = || io::Error::other("the name has no address");
            return named(&what, Err(not_here.unwrap_or_else(none)));
        }
    }
    Ok(sockets)
}

/// All addresses of a name; `*` is every address of this machine.
fn all_of(host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
    match host {
        "*" => Ok(vec![
            (net::Ipv4Addr::UNSPECIFIED, port).into(),
            (net::Ipv6Addr::UNSPECIFIED, port).into(),
        ]),
        host => Ok((host, port).to_socket_addrs()?.collect()),
    }
}

/// Whether the machine has no such address, or none of this family.
fn is_not_here(error: &io::Error) -> bool {
    let no_family = rustix::io::Errno::AFNOSUPPORT.raw_os_error();
    error.kind() == io::ErrorKind::AddrNotAvailable || error.raw_os_error() == Some(no_family)
}

/// A socket for this address, which is of its own family only.
fn socket(address: SocketAddr, kind: SocketType) -> io::Result<OwnedFd> {
    let family = match address {
        SocketAddr::V4(_) => AddressFamily::INET,
        SocketAddr::V6(_) => AddressFamily::INET6,
    };
    let socket = socket_with(family, kind, SocketFlags::CLOEXEC, None)?;
    if address.is_ipv6() {
        sockopt::set_ipv6_v6only(&socket, true)?;
    }
    Ok(socket)
}

fn tcp(address: SocketAddr, backlog: i32) -> io::Result<TcpListener> {
    let socket = socket(address, SocketType::STREAM)?;
    sockopt::set_socket_reuseaddr(&socket, true)?;
    // Connections inherit it: one whose other end is gone without a word is closed some day.
    sockopt::set_socket_keepalive(&socket, true)?;
    bind_to(&socket, &address)?;
    listen(&socket, backlog)?;
    net::TcpListener::from(socket).try_into()
}

fn udp(address: SocketAddr) -> io::Result<UdpSocket> {
    let socket = socket(address, SocketType::DGRAM)?;
    bind_to(&socket, &address)?;
    net::UdpSocket::from(socket).try_into()
}

fn unix(path: &Path, mask: u32) -> io::Result<UnixListener> {
    // What a dead server has left; anything but a socket stays, and is an error.
    match fs::symlink_metadata(path) {
        Ok(found) if found.file_type().is_socket() => fs::remove_file(path)?,
        Ok(_) => {
            return Err(io::Error::other(
                "the file exists and is no socket; -s takes another path",
            ));
        }
        // If the path cannot be used at all, bind says why.
        Err(_) => {}
    }
    let before = umask(Mode::from_bits_truncate(!mask & 0o777));
    let listener = UnixListener::bind(path);
    umask(before);
    listener
}

impl Bound {
    /// Says where the server listens; also in the file that memcached's tests name.
    pub fn announce(&self, aloud: bool) -> Result<(), String> {
        let addresses = self
            .sockets
            .tcp
            .iter()
            .filter_map(|listener| listener.local_addr().ok());
        let tcp = addresses.map(|address| ("TCP", address));
        let addresses = self
            .sockets
            .udp
            .iter()
            .filter_map(|socket| socket.local_addr().ok());
        let all: Vec<_> = tcp
            .chain(addresses.map(|address| ("UDP", address)))
            .collect();
        if let Some(path) = env::var_os("MEMCACHED_PORT_FILENAME") {
            let line = |(kind, address): &(&str, std::net::SocketAddr)| {
                let family = if address.is_ipv4() { "INET" } else { "INET6" };
                format!("{kind} {family}: {}\n", address.port())
            };
            let text: String = all.iter().map(line).collect();
            fs::write(&path, text)
                .map_err(|error| format!("MEMCACHED_PORT_FILENAME {}: {error}", path.display()))?;
        }
        if aloud {
            for (kind, address) in &all {
                eprintln!("urgency cache: listens on {kind} {address}");
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_no_socket_stays_and_the_error_names_it_and_no_port() {
        let path = env::temp_dir().join(format!("urgency-no-socket-{}", std::process::id()));
        fs::write(&path, "text").unwrap();
        let error = named(&path.display().to_string(), unix(&path, 0o700)).unwrap_err();
        let text = fs::read_to_string(&path).unwrap();
        fs::remove_file(&path).unwrap();
        assert_eq!(text, "text");
        assert!(error.contains("urgency-no-socket"), "{error}");
        assert!(error.contains("exists and is no socket"), "{error}");
        assert!(!error.contains("-p"), "{error}");
    }
}
