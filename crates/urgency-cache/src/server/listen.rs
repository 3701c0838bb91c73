//! Sockets and levels: the server on Urgency.
//!
//! Each connection is a task at the most urgent level, so is each listener. The LRU's upkeep is less urgent,
//! everything else that happens in the background is the least. A program that puts work of its own beside
//! the cache gives it a level below [`Serve`].
//!
//! A listener that cannot accept, because the process has no descriptor left or because there are as many
//! connections as are allowed, pauses and says so; clients wait in the kernel's queue meanwhile.

use super::{
    Server, connection, datagrams,
    registry::{Place, Registered},
    upkeep,
};
use futures_io::{AsyncRead, AsyncWrite};
use std::{
    future::{Future, poll_fn},
    io::{self, Write},
    pin::pin,
    sync::{Arc, atomic::Ordering::Relaxed},
    task::Poll,
    time::{Duration, Instant},
};
use urgency::{
    Runtime,
    level::LevelId,
    net::{self, TcpListener, TcpStream, UdpSocket, UnixListener, UnixStream},
    time::sleep,
};

urgency::levels! {
    /// The levels of the cache server.
    pub CacheLevels:
    /// Connections and listeners.
    Serve >
    /// The LRU's upkeep.
    Upkeep >
    /// Growth, balance, the crawler.
    Background
}

/// How long a listener that cannot accept waits before it tries again.
const ACCEPT_PAUSE: Duration = Duration::from_millis(10);

/// What a client gets that is one too many.
const TOO_MANY: &[u8] = b"ERROR Too many open connections\r\n";

/// The levels at which a server runs; they may be a program's own.
#[derive(Clone, Copy, Debug)]
pub struct Levels {
    /// For connections and listeners.
    pub serve: LevelId,
    /// For the LRU's upkeep.
    pub upkeep: LevelId,
    /// For the rest.
    pub background: LevelId,
}

impl Default for Levels {
    /// The levels of [`CacheLevels`].
    fn default() -> Self {
        Levels {
            serve: Serve.into(),
            upkeep: Upkeep.into(),
            background: Background.into(),
        }
    }
}

/// The sockets of a server.
#[derive(Debug, Default)]
pub struct Sockets {
    /// TCP listeners.
    pub tcp: Vec<TcpListener>,
    /// Unix listeners, each with its path.
    pub unix: Vec<(UnixListener, String)>,
    /// UDP sockets.
    pub udp: Vec<UdpSocket>,
}

/// The background work's way to wait.
struct OnUrgency;

impl upkeep::Pace for OnUrgency {
    async fn give_way(&self) {
        urgency::yield_now().await;
    }

    async fn pause(&self, time: Duration) {
        sleep(time).await;
    }
}

/// A socket that accepts connections.
trait Listener: Send + Sync + 'static {
    type Stream: AsyncRead + AsyncWrite + Unpin + Send + 'static;

    fn accept(&self) -> impl Future<Output = io::Result<(Self::Stream, String)>> + Send;
}

impl Listener for TcpListener {
    type Stream = TcpStream;

    async fn accept(&self) -> io::Result<(TcpStream, String)> {
        let (stream, peer) = TcpListener::accept(self).await?;
        stream.set_nodelay(true)?;
        Ok((stream, format!("tcp:{peer}")))
    }
}

impl Listener for UnixListener {
    type Stream = UnixStream;

    async fn accept(&self) -> io::Result<(UnixStream, String)> {
        Ok((UnixListener::accept(self).await?.0, "unix:".to_owned()))
    }
}

/// Starts to serve on `sockets`, and the background work, as tasks of `runtime`. They run until it is shut down.
///
/// # Errors
/// A socket whose address cannot be told.
pub fn start(
    server: &Arc<Server>,
    runtime: &Runtime,
    levels: Levels,
    sockets: Sockets,
) -> io::Result<()> {
    let now = server.clock.now();
    let enter = |address: String| {
        let address: Arc<str> = address.into();
        server.registry.enter_listener(&address, now);
        address
    };
    for listener in sockets.tcp {
        let address = enter(format!("tcp:{}", listener.local_addr()?));
        runtime
            .at(levels.serve)
            .spawn(accept(Arc::clone(server), listener, address))
            .detach();
    }
    for (listener, path) in sockets.unix {
        let address = enter(format!("unix:{path}"));
        runtime
            .at(levels.serve)
            .spawn(accept(Arc::clone(server), listener, address))
            .detach();
    }
    for (number, socket) in (0..).zip(sockets.udp) {
        enter(format!("udp:{}", socket.local_addr()?));
        let served = datagrams::serve(Arc::new(socket), number, Arc::clone(server));
        runtime.at(levels.serve).spawn(served).detach();
    }
    runtime
        .at(levels.serve)
        .spawn(upkeep::free_shares(Arc::clone(server), OnUrgency))
        .detach();
    runtime
        .at(levels.upkeep)
        .spawn(upkeep::keep_lru(Arc::clone(server), OnUrgency))
        .detach();
    runtime
        .at(levels.background)
        .spawn(upkeep::grow_and_crawl(Arc::clone(server), OnUrgency))
        .detach();
    Ok(())
}

async fn accept<L: Listener>(server: Arc<Server>, listener: L, address: Arc<str>) {
    let mut pause = Pause::default();
    loop {
        if !server.settings.refuse_too_many {
            wait_for_room(&server).await;
        }
        let mut accepting = pin!(listener.accept());
        let accepted = poll_fn(|cx| {
            let accepted = accepting.as_mut().poll(cx);
            // The next client will be accepted at once, though there is none.
            if accepted.is_pending() {
                pause.end(&server);
            }
            accepted
        });
        let accepted = accepted.await;
        if let Err(error) = &accepted
            && net::is_exhausted(error)
        {
            pause.begin(&server, &error.to_string());
            sleep(ACCEPT_PAUSE).await;
            continue;
        }
        pause.end(&server);
        match accepted {
            Ok((stream, peer)) => match enter(&server, peer, &address).await {
                Some(place) => {
                    let server = Arc::clone(&server);
                    urgency::spawn(async move { serve(stream, &place, &server).await }).detach();
                }
                None => refuse(stream).await,
            },
            // A connection that was gone before it was accepted, or the like: about that one only. But if it
            // comes again and again (the runtime's driver has gone), this task can be ended where it yields.
            Err(error) => {
                server.say(1, format_args!("accept: {error}"));
                urgency::yield_now().await;
            }
        }
    }
}

/// A connection's place. If there is none, it waits for one, or there is none for it, as was asked for.
///
/// It is taken here and not by the connection's task: a listener may accept many before the first task runs.
async fn enter(server: &Server, peer: String, address: &Arc<str>) -> Option<Place> {
    if server.settings.refuse_too_many {
        return server.enter(peer, address);
    }
    loop {
        let place = server.enter_if_there_is_room(peer.clone(), address);
        if place.is_some() {
            return place;
        }
        // Another listener was faster.
        wait_for_room(server).await;
    }
}

async fn wait_for_room(server: &Server) {
    let is_full = || server.registry.open() >= server.settings.connections_max;
    pause_while(server, "as many connections as -c allows", is_full).await;
}

/// A time in which a listener accepts nobody, however often it tries: it is said once, and counted once.
#[derive(Default)]
struct Pause {
    since: Option<Instant>,
}

impl Pause {
    fn begin(&mut self, server: &Server, why: &str) {
        if self.since.is_some() {
            return;
        }
        self.since = Some(Instant::now());
        if server.accepting.swap(false, Relaxed) {
            server.say(0, format_args!("no new connections for a while: {why}"));
        }
        server.listen_disabled.fetch_add(1, Relaxed);
    }

    fn end(&mut self, server: &Server) {
        if let Some(start) = self.since.take() {
            server.accepting.store(true, Relaxed);
            let micros = u64::try_from(start.elapsed().as_micros()).unwrap_or(u64::MAX);
            server.listen_disabled_us.fetch_add(micros, Relaxed);
        }
    }
}

/// Does not accept as long as `lasts`.
async fn pause_while(server: &Server, why: &str, lasts: impl Fn() -> bool) {
    let mut pause = Pause::default();
    while lasts() {
        pause.begin(server, why);
        sleep(ACCEPT_PAUSE).await;
    }
    pause.end(server);
}

async fn refuse(mut stream: impl AsyncWrite + Unpin) {
    // If it cannot take even this much at once, it learns nothing.
    let _ =
        poll_fn(|cx| Poll::Ready(std::pin::Pin::new(&mut stream).poll_write(cx, TOO_MANY))).await;
}

async fn serve<S>(stream: S, place: &Place, server: &Server)
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let line = place.line();
    server.say(2, format_args!("<{} new connection", line.number));
    let served = connection::serve(stream, line, server);
    let ended = match server.settings.idle_timeout {
        None => served.await,
        Some(timeout) => {
            let (mut served, mut idle) = (pin!(served), pin!(idle(line, server, timeout)));
            poll_fn(|cx| match served.as_mut().poll(cx) {
                Poll::Pending => idle.as_mut().poll(cx).map(Ok),
                ready => ready,
            })
            .await
        }
    };
    match ended {
        Ok(()) => server.say(2, format_args!("<{} connection closed", line.number)),
        Err(error) => server.say(
            1,
            format_args!("<{} connection closed: {error}", line.number),
        ),
    }
}

/// Ends when a client has been silent for too long.
///
/// The clock counts whole seconds, so a client that it says to be silent for one may have been heard a moment
/// ago: the time is over when it says one more.
async fn idle(line: &Registered, server: &Server, timeout: Duration) {
    let seconds = timeout
        .as_secs()
        .saturating_add(u64::from(timeout.subsec_nanos() > 0));
    let allowed = u32::try_from(seconds).unwrap_or(u32::MAX);
    loop {
        let silent = server.clock.now().saturating_sub(line.last_active());
        if silent > allowed {
            server.idle_kick(line.number);
            return;
        }
        sleep(Duration::from_secs(u64::from(allowed - silent) + 1)).await;
    }
}

impl Server {
    /// Says something on standard error, if it is to say so much.
    pub(super) fn say(&self, verbosity: u32, what: std::fmt::Arguments<'_>) {
        if self.verbosity() >= verbosity {
            // Nobody may be listening, which is no reason to end.
            let _ = writeln!(io::stderr(), "urgency cache: {what}");
        }
    }
}
