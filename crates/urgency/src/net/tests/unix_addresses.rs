//! Addresses of Unix sockets, also the longest ones, and the process at the other end.

use super::*;
use rustix::{
    fd::OwnedFd,
    net::{AddressFamily, SocketAddrUnix, SocketType},
};
use std::{
    os::linux::net::SocketAddrExt,
    path::{Path, PathBuf},
};

/// A path as long as the field of an address: the kernel takes it without a NUL at the end.
fn longest_path(name: &str) -> PathBuf {
    let mut path = socket_path(name).into_os_string();
    path.push("y".repeat(108 - path.len()));
    let _ = std::fs::remove_file(&path);
    path.into()
}

fn socket(kind: SocketType) -> OwnedFd {
    rustix::net::socket(AddressFamily::UNIX, kind, None).unwrap()
}

fn address(path: &Path) -> SocketAddrUnix {
    SocketAddrUnix::new(path).unwrap()
}

/// A socket that is bound to `path`, which may be a [`longest_path`]. The standard library refuses these.
fn bound(kind: SocketType, path: &Path) -> OwnedFd {
    let socket = socket(kind);
    rustix::net::bind(&socket, &address(path)).unwrap();
    socket
}

#[test]
fn a_client_that_is_bound_to_the_longest_path_is_accepted_with_that_path() {
    let (path, long) = (socket_path("accepts-long"), longest_path("long"));
    let listener = UnixListener::bind(&path).unwrap();
    let client = bound(SocketType::STREAM, &long);
    rustix::net::connect(&client, &address(&path)).unwrap();
    block_on(async {
        let (server, peer) = listener.accept().await.unwrap();
        assert_eq!(peer.as_pathname(), Some(&*long));
        assert_eq!(server.peer_addr().unwrap().as_pathname(), Some(&*long));
        let client = UnixStream::from_std(client.into()).unwrap();
        assert_eq!(client.local_addr().unwrap().as_pathname(), Some(&*long));
        client.write_all(b"ping").await.unwrap();
        let mut heard = [0; 4];
        server.read_exact(&mut heard).await.unwrap();
        assert_eq!(&heard, b"ping");
    });
    let _ = std::fs::remove_file(path);
    let _ = std::fs::remove_file(long);
}

#[test]
fn a_listener_that_is_bound_to_the_longest_path_says_so() {
    let long = longest_path("listens");
    let listener = bound(SocketType::STREAM, &long);
    rustix::net::listen(&listener, 8).unwrap();
    let listener = UnixListener::from_std(listener.into()).unwrap();
    assert_eq!(listener.local_addr().unwrap().as_pathname(), Some(&*long));
    block_on(async {
        let client = UnixStream::connect(&long).await.unwrap();
        assert_eq!(client.peer_addr().unwrap().as_pathname(), Some(&*long));
        assert!(client.local_addr().unwrap().is_unnamed());
        let (server, peer) = listener.accept().await.unwrap();
        assert!(peer.is_unnamed());
        assert_eq!(server.local_addr().unwrap().as_pathname(), Some(&*long));
        assert!(server.peer_addr().unwrap().is_unnamed());
    });
    let _ = std::fs::remove_file(long);
}

#[test]
fn a_client_with_an_abstract_name_is_accepted_with_that_name() {
    let path = socket_path("accepts-abstract");
    let listener = UnixListener::bind(&path).unwrap();
    let name = format!("urgency-abstract-{}", std::process::id());
    // The second fills the field, but for the first byte.
    for name in [name.clone(), format!("{name:y<107}")] {
        let client = socket(SocketType::STREAM);
        let own = SocketAddrUnix::new_abstract_name(name.as_bytes()).unwrap();
        rustix::net::bind(&client, &own).unwrap();
        rustix::net::connect(&client, &address(&path)).unwrap();
        let (_, peer) = block_on(listener.accept()).unwrap();
        assert_eq!(peer.as_abstract_name(), Some(name.as_bytes()));
    }
    let _ = std::fs::remove_file(path);
}

#[test]
fn a_datagram_from_the_longest_path_is_received_with_that_path() {
    let (path, long) = (socket_path("receives-long"), longest_path("sends"));
    let receiver = UnixDatagram::bind(&path).unwrap();
    let sender = UnixDatagram::from_std(bound(SocketType::DGRAM, &long).into()).unwrap();
    assert_eq!(sender.local_addr().unwrap().as_pathname(), Some(&*long));
    block_on(async {
        sender.send_to(b"hello", &path).await.unwrap();
        let mut buffer = [0; 10];
        let (count, from) = receiver.recv_from(&mut buffer).await.unwrap();
        assert_eq!(&buffer[..count], b"hello");
        assert_eq!(from.as_pathname(), Some(&*long));
    });
    let _ = std::fs::remove_file(path);
    let _ = std::fs::remove_file(long);
}

#[test]
fn a_socket_that_is_not_connected_has_no_process_at_the_other_end() {
    let stream = UnixStream::from_std(socket(SocketType::STREAM).into()).unwrap();
    let nobody = stream.peer_cred().unwrap();
    assert_eq!(nobody.pid(), None);
    assert_eq!((nobody.uid(), nobody.gid()), (u32::MAX, u32::MAX));
}

#[test]
fn both_ends_of_a_connection_name_this_process() {
    let (one, other) = UnixStream::pair().unwrap();
    let me = i32::try_from(std::process::id()).unwrap();
    for peer in [one.peer_cred().unwrap(), other.peer_cred().unwrap()] {
        assert_eq!(peer.pid(), Some(me));
        assert_eq!(peer.uid(), rustix::process::geteuid().as_raw());
        assert_eq!(peer.gid(), rustix::process::getegid().as_raw());
    }
}

#[test]
fn a_path_that_begins_with_a_nul_is_an_abstract_name() {
    let name = format!("urgency-nul-{}", std::process::id());
    let path = format!("\0{name}");
    block_on(async {
        let listener = UnixListener::bind(&path).unwrap();
        let bound = listener.local_addr().unwrap();
        assert_eq!(bound.as_abstract_name(), Some(name.as_bytes()));
        let client = UnixStream::connect(&path).await.unwrap();
        let (server, _) = listener.accept().await.unwrap();
        client.write_all(b"ping").await.unwrap();
        let mut heard = [0; 4];
        server.read_exact(&mut heard).await.unwrap();
        assert_eq!(&heard, b"ping");
    });
}

#[test]
fn an_empty_path_is_not_the_abstract_name_of_no_bytes() {
    let nameless = socket(SocketType::STREAM);
    let address = SocketAddrUnix::new_abstract_name(b"").unwrap();
    // Another process may have it. Then connecting to it is as wrong.
    if rustix::net::bind(&nameless, &address).is_ok() {
        rustix::net::listen(&nameless, 1).unwrap();
    }
    let error = block_on(UnixStream::connect("")).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
}

#[test]
fn a_path_that_is_too_long_is_invalid_for_a_listener_and_a_connection() {
    for path in ["a".repeat(200), "\0".repeat(200)] {
        let bound = UnixListener::bind(&path).unwrap_err().kind();
        let connected = block_on(UnixStream::connect(&path)).unwrap_err().kind();
        assert_eq!([bound, connected], [io::ErrorKind::InvalidInput; 2]);
    }
}
