//! Binding: TCP and UDP on each address, or a Unix socket.

use super::Options;
use rustix::{fs::Mode, process::umask};
use std::{env, fs, io, os::unix::fs::FileTypeExt, path::Path};
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
    for (host, own_port) in options.addresses() {
        if let Some(port) = own_port.or(port(tcp_port)) {
            let listener = named(
                &format!("TCP {host}:{port}"),
                TcpListener::bind((host.as_str(), port)),
            )?;
            bound.tcp_port = listener.local_addr().map_or(port, |address| address.port());
            // Again, for the length of the queue.
            let listened = rustix::net::listen(&listener, options.backlog);
            named("TCP", listened.map_err(io::Error::from))?;
            // Connections inherit it: one whose other end is gone without a word is closed some day.
            let asked = rustix::net::sockopt::set_socket_keepalive(&listener, true);
            named("TCP", asked.map_err(io::Error::from))?;
            bound.sockets.tcp.push(listener);
        }
        if let Some(port) = port(options.udp_port) {
            let socket = named(
                &format!("UDP {host}:{port}"),
                UdpSocket::bind((host.as_str(), port)),
            )?;
            bound.udp_port = socket.local_addr().map_or(port, |address| address.port());
            bound.sockets.udp.push(socket);
        }
    }
    if bound.sockets.tcp.is_empty() && bound.sockets.udp.is_empty() {
        eprintln!(
            "urgency cache: nobody can reach this server: -p and -U are both 0, and there is no -s"
        );
    }
    Ok(bound)
}

fn unix(path: &Path, mask: u32) -> io::Result<UnixListener> {
    // What a dead server has left; anything but a socket stays, and is an error.
    if fs::symlink_metadata(path).is_ok_and(|found| found.file_type().is_socket()) {
        fs::remove_file(path)?;
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
