//! `QuicRuntime`: what quinn asks of a runtime, so that QUIC runs on Urgency.
//!
//! quinn's endpoint and each connection are tasks. They are spawned at the level of the code that makes the endpoint,
//! or at one level for all. Segmentation offload, ECN and the rest of what a QUIC socket needs of the kernel are
//! quinn's own crate `quinn-udp`; the waiting is ours.

use quinn::{
    AsyncTimer, AsyncUdpSocket, Runtime, UdpPoller,
    udp::{RecvMeta, Transmit, UdpSockRef, UdpSocketState},
};
use std::{
    fmt,
    future::Future,
    io::{self, IoSliceMut},
    net::{SocketAddr, UdpSocket},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Instant,
};
use urgency::{
    LevelId,
    io::Async,
    time::{Sleep, sleep_until},
};

/// The runtime of a quinn endpoint.
///
/// ```no_run
/// use quinn::{Endpoint, EndpointConfig};
/// use std::{net::UdpSocket, sync::Arc};
/// use urgency_web::quic::QuicRuntime;
///
/// # fn main() -> std::io::Result<()> {
/// let socket = UdpSocket::bind("127.0.0.1:0")?;
/// let runtime = QuicRuntime::at(urgency::level::Normal);
/// let endpoint = Endpoint::new(EndpointConfig::default(), None, socket, Arc::new(runtime))?;
/// # let _ = endpoint;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct QuicRuntime {
    level: Option<LevelId>,
}

impl QuicRuntime {
    /// Tasks have the level of the code that makes the endpoint or the connection.
    pub fn new() -> Self {
        QuicRuntime { level: None }
    }

    /// Tasks are at `level`.
    pub fn at(level: impl Into<LevelId>) -> Self {
        QuicRuntime {
            level: Some(level.into()),
        }
    }
}

impl Runtime for QuicRuntime {
    fn new_timer(&self, deadline: Instant) -> Pin<Box<dyn AsyncTimer>> {
        Box::pin(Timer(sleep_until(deadline.into())))
    }

    fn spawn(&self, future: Pin<Box<dyn Future<Output = ()> + Send>>) {
        match self.level {
            Some(level) => urgency::at(level).spawn(future),
            None => urgency::spawn(future),
        }
        .detach();
    }

    fn wrap_udp_socket(&self, socket: UdpSocket) -> io::Result<Arc<dyn AsyncUdpSocket>> {
        let state = UdpSocketState::new(UdpSockRef::from(&socket))?;
        let socket = Async::new(socket)?;
        Ok(Arc::new(Socket { state, socket }))
    }
}

#[derive(Debug)]
struct Timer(Sleep);

impl AsyncTimer for Timer {
    fn reset(mut self: Pin<&mut Self>, deadline: Instant) {
        Pin::new(&mut self.0).reset(deadline.into());
    }

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        Pin::new(&mut self.0).poll(cx)
    }
}

struct Socket {
    state: UdpSocketState,
    socket: Async<UdpSocket>,
}

impl AsyncUdpSocket for Socket {
    fn create_io_poller(self: Arc<Self>) -> Pin<Box<dyn UdpPoller>> {
        Box::pin(Writable(self))
    }

    fn try_send(&self, transmit: &Transmit<'_>) -> io::Result<()> {
        self.state
            .send(UdpSockRef::from(self.socket.get_ref()), transmit)
    }

    fn poll_recv(
        &self,
        cx: &mut Context<'_>,
        buffers: &mut [IoSliceMut<'_>],
        meta: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>> {
        self.socket.poll_read_with(cx, |socket| {
            self.state.recv(UdpSockRef::from(socket), buffers, meta)
        })
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.socket.get_ref().local_addr()
    }

    fn max_transmit_segments(&self) -> usize {
        self.state.max_gso_segments()
    }

    fn max_receive_segments(&self) -> usize {
        self.state.gro_segments()
    }

    fn may_fragment(&self) -> bool {
        self.state.may_fragment()
    }
}

impl fmt::Debug for Socket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Socket")
            .field("socket", &self.socket)
            .finish_non_exhaustive()
    }
}

#[derive(Debug)]
struct Writable(Arc<Socket>);

impl UdpPoller for Writable {
    fn poll_writable(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0.socket.poll_writable(cx)
    }
}
