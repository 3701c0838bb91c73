//! System calls for sockets and descriptors that differ between systems: Linux's.

#![cfg(not(urgency_loom))]

use super::poller::Interest;
use rustix::{
    event::{PollFd, PollFlags, poll},
    fd::{AsFd, BorrowedFd, OwnedFd},
    io::Errno,
    net::{AddressFamily, SendFlags, SocketAddrAny, SocketAddrUnix, SocketFlags, SocketType},
    time::Timespec,
};
use std::{
    ffi::c_int,
    io,
    mem::ManuallyDrop,
    os::{
        fd::{AsRawFd, FromRawFd, RawFd},
        linux::net::SocketAddrExt,
        unix::{ffi::OsStrExt, net as unix},
    },
    path::Path,
};

/// Sending to a connection that is gone is an error, not a signal.
pub(crate) const SEND_FLAGS: SendFlags = SendFlags::NOSIGNAL;

/// How many slices one system call takes (`UIO_MAXIOV`).
pub(crate) const MOST_SLICES: usize = 1024;

/// A socket, already non-blocking, by a single system call.
pub(crate) fn socket(family: AddressFamily, kind: SocketType) -> io::Result<OwnedFd> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    Ok(rustix::net::socket_with(family, kind, flags, None)?)
}

/// The processor on which a socket's last packet was taken in. `None`: it is no socket, or the kernel does not say. The
/// descriptor may have been closed meanwhile, or be another one.
pub(crate) fn incoming_cpu(fd: RawFd) -> Option<u16> {
    let mut cpu: c_int = -1;
    let mut size = size_of::<c_int>() as libc::socklen_t;
    let name = libc::SO_INCOMING_CPU;
    // SAFETY: the kernel writes at most `size` bytes to `cpu`, and nothing if it is no socket's descriptor.
    let got = unsafe {
        libc::getsockopt(
            fd,
            libc::SOL_SOCKET,
            name,
            (&raw mut cpu).cast(),
            &raw mut size,
        )
    };
    (got == 0).then_some(cpu)?.try_into().ok()
}

/// Accepts one connection, already non-blocking, by a single system call.
///
/// A connection that was aborted while it was in the queue is no error of the listener: the next one is taken.
pub(crate) fn accept(listener: impl AsFd) -> io::Result<(OwnedFd, Option<SocketAddrAny>)> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    loop {
        match rustix::net::acceptfrom_with(&listener, flags) {
            Err(Errno::CONNABORTED) => {}
            result => return Ok(result?),
        }
    }
}

/// The address of the socket at `path`. A path that begins with a NUL is a name in the abstract namespace.
pub(crate) fn unix_address(path: &Path) -> io::Result<SocketAddrUnix> {
    match path.as_os_str().as_bytes() {
        // For the kernel this would be the abstract name of no bytes.
        [] => {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "the path of a Unix socket is empty; write the path, or a NUL and an abstract name",
            ));
        }
        [0, name @ ..] => SocketAddrUnix::new_abstract_name(name),
        _ => SocketAddrUnix::new(path),
    }
    .map_err(|error| match error {
        Errno::NAMETOOLONG => io::Error::new(
            io::ErrorKind::InvalidInput,
            "the path of a Unix socket, or an abstract name, is longer than 107 bytes",
        ),
        error => error.into(),
    })
}

/// Listens at `path`, which is as for [`unix_address`].
pub(crate) fn listen_unix(path: &Path) -> io::Result<unix::UnixListener> {
    match path.as_os_str().as_bytes() {
        [0, name @ ..] => {
            unix::UnixListener::bind_addr(&unix::SocketAddr::from_abstract_name(name)?)
        }
        _ => unix::UnixListener::bind(path),
    }
}

/// Whether a Unix socket's address says that the socket has none: it is the family alone.
pub(crate) fn is_unnamed(address: &SocketAddrAny) -> bool {
    address.addr_len() as usize <= size_of::<libc::sa_family_t>()
}

/// Calls `f` with the standard library's form of a Unix socket, which stays open. The socket can be a listener or a
/// connection: both have addresses.
///
/// The standard library reads each address that the kernel gives. rustix panics if a path fills `sun_path` and has no
/// NUL: the kernel's length then goes beyond `sockaddr_un`.
pub(crate) fn with_std<R>(socket: impl AsFd, f: impl FnOnce(&unix::UnixStream) -> R) -> R {
    let socket = socket.as_fd();
    // SAFETY: the descriptor is open while it is borrowed, so until this function returns. `ManuallyDrop` never closes
    // it, also if `f` unwinds, and `f` gets it by reference.
    let stream = unsafe { unix::UnixStream::from_raw_fd(socket.as_raw_fd()) };
    f(&ManuallyDrop::new(stream))
}

/// The process at the other end of a Unix stream. rustix's form of it has no number 0, which the kernel gives for a
/// process that it does not show and for no process.
pub(crate) fn peer_credentials(socket: impl AsFd) -> io::Result<libc::ucred> {
    let socket = socket.as_fd().as_raw_fd();
    let mut peer = libc::ucred {
        pid: 0,
        uid: libc::uid_t::MAX,
        gid: libc::gid_t::MAX,
    };
    let mut size = size_of::<libc::ucred>() as libc::socklen_t;
    let (level, option) = (libc::SOL_SOCKET, libc::SO_PEERCRED);
    let (value, length) = ((&raw mut peer).cast(), &raw mut size);
    // SAFETY: the kernel writes at most `size` bytes, which is the size of `peer`. Every value is one of its fields'
    // integers. Both variables outlive the call.
    match unsafe { libc::getsockopt(socket, level, option, value, length) } {
        0 => Ok(peer),
        _ => Err(io::Error::last_os_error()),
    }
}

/// The interface that a socket is bound to (`SO_BINDTODEVICE`), without the NUL at its end. `None`: to no one.
pub(crate) fn device(socket: impl AsFd) -> io::Result<Option<Vec<u8>>> {
    let socket = socket.as_fd().as_raw_fd();
    let mut name = [0_u8; libc::IFNAMSIZ];
    let mut size = name.len() as libc::socklen_t;
    let (level, option) = (libc::SOL_SOCKET, libc::SO_BINDTODEVICE);
    let (value, length) = (name.as_mut_ptr().cast(), &raw mut size);
    // SAFETY: the kernel writes at most `size` bytes, which is the size of `name`. Both variables outlive the call.
    match unsafe { libc::getsockopt(socket, level, option, value, length) } {
        0 => {
            let end = name.iter().position(|byte| *byte == 0);
            let name = &name[..end.unwrap_or(name.len())];
            Ok((!name.is_empty()).then(|| name.to_vec()))
        }
        _ => Err(io::Error::last_os_error()),
    }
}

/// Binds a socket to an interface, or to none again.
pub(crate) fn bind_device(socket: impl AsFd, interface: Option<&[u8]>) -> io::Result<()> {
    let socket = socket.as_fd().as_raw_fd();
    let name = interface.unwrap_or_default();
    let size = name.len().try_into();
    let size: libc::socklen_t = size.map_err(|_| io::ErrorKind::InvalidInput)?;
    let (level, option) = (libc::SOL_SOCKET, libc::SO_BINDTODEVICE);
    // SAFETY: the kernel reads at most `size` bytes, which `name` has and keeps during the call.
    match unsafe { libc::setsockopt(socket, level, option, name.as_ptr().cast(), size) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Makes the open file behind `fd` non-blocking.
pub(crate) fn set_nonblocking(fd: BorrowedFd<'_>) -> io::Result<()> {
    let flags = rustix::fs::fcntl_getfl(fd)?;
    if !flags.contains(rustix::fs::OFlags::NONBLOCK) {
        rustix::fs::fcntl_setfl(fd, flags | rustix::fs::OFlags::NONBLOCK)?;
    }
    Ok(())
}

/// Whether a read (or write) of `fd` would return at once: an answer, the end, or an error.
pub(crate) fn is_ready_now(fd: impl AsFd, interest: Interest) -> io::Result<bool> {
    let wanted = if interest.contains(Interest::READ) {
        PollFlags::IN | PollFlags::RDHUP
    } else {
        PollFlags::OUT
    };
    Ok(!poll_now(fd, wanted)?.is_empty())
}

/// What the kernel says of `fd` now; it tells of errors and hang-ups unasked.
pub(crate) fn poll_now(fd: impl AsFd, wanted: PollFlags) -> io::Result<PollFlags> {
    let mut set = [PollFd::new(&fd, wanted)];
    let now = Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    poll(&mut set, Some(&now))?;
    Ok(set[0].revents())
}
