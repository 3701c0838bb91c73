//! One client, served in straight-line code: read what there is, execute each whole request, send the answers, again.
//!
//! The code is generic over the `futures-io` traits, so it runs on any runtime; it knows no levels, sockets
//! or timers. It waits in four places only: for bytes from the client, for the client to take answers, and for memory
//! for a large value of either kind (`allowance.rs`).
//!
//! Requests that were received together have one time. A request that is executed after a wait, even if it was received
//! before, has the time after the wait: nothing is served that expired while the client did not read.

use super::{
    Server,
    counters::Count,
    input::{Filled, Input},
    output::{Output, Room},
    registry::{Registered, State},
    session::Session,
    text_requests::{VERSION, line, line_unless},
};
use crate::{
    protocol::{Limits, Next, binary, text},
    store::Cursor,
};
use futures_io::{AsyncRead, AsyncWrite};
use std::{future::poll_fn, io, mem, task::Poll};

/// What follows a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum After {
    /// The next one.
    Next,
    /// First a dump of all keys.
    Dump,
    /// The end of the connection, when the answers are sent.
    Close,
}

/// Which protocol a connection speaks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Protocol {
    /// Its first byte says.
    #[default]
    Detect,
    /// The text protocol.
    Text,
    /// The binary protocol.
    Binary,
}

/// A connection: its buffers, its session and its place in the table of connections.
struct Connection<'s, S> {
    stream: S,
    input: Input<'s>,
    output: Output<'s>,
    session: Session<'s>,
    registered: &'s Registered,
    is_binary: bool,
    /// How many requests are left before others have their turn.
    turn: u32,
}

/// Serves a client until it closes the connection, quits, or breaks the protocol.
///
/// # Errors
/// The stream's errors.
pub async fn serve<S>(stream: S, registered: &Registered, server: &Server) -> io::Result<()>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let protocol = server.settings.protocol;
    let mut connection = Connection {
        stream,
        input: Input::new(&server.incoming),
        output: Output::default(),
        session: Session::new(server, registered.number, Room::OF_BASE),
        registered,
        is_binary: protocol == Protocol::Binary,
        turn: server.settings.requests_per_turn,
    };
    let served = connection.serve(protocol).await;
    connection.session.report();
    served
}

impl<S: AsyncRead + AsyncWrite + Unpin> Connection<'_, S> {
    async fn serve(&mut self, protocol: Protocol) -> io::Result<()> {
        if !self.receive(1).await? {
            return Ok(());
        }
        if protocol == Protocol::Detect {
            self.is_binary = self.input.unused()[0] == binary::REQUEST;
        }
        match self.is_binary {
            true => self.binary().await,
            false => self.text().await,
        }
    }

    /// Sends the answers and waits for more of the request; `false` if there will be none.
    async fn receive(&mut self, at_least: usize) -> io::Result<bool> {
        self.input.tidy(at_least);
        self.send().await?;
        let before = self.input.unused().len();
        let filled = self.input.fill(&mut self.stream, at_least).await?;
        let session = &mut self.session;
        session.now = session.server.clock.now();
        self.registered.heard(session.now);
        self.registered.set_state(State::Parse);
        self.turn = session.server.settings.requests_per_turn;
        match filled {
            Filled::More => {
                let received = self.input.unused().len() - before;
                session.tally.add_many(Count::BytesRead, received as u64);
                Ok(true)
            }
            Filled::End => Ok(false),
            Filled::Lost => {
                let (out, why) = (&mut self.output.bytes, "out of memory reading request");
                if self.is_binary {
                    binary::push_refusal(out, self.input.unused(), binary::Status::NoMemory, why);
                } else {
                    line(out, &format!("SERVER_ERROR {why}"));
                }
                self.input.clear();
                self.send().await?;
                Ok(false)
            }
        }
    }

    async fn send(&mut self) -> io::Result<()> {
        let (stream, input, output) = (&mut self.stream, &self.input, &mut self.output);
        send(stream, input, output, &mut self.session, self.registered).await
    }

    async fn close_with(&mut self, reply: &str) -> io::Result<()> {
        self.output.bytes.extend_from_slice(reply.as_bytes());
        self.send().await
    }

    /// Throws away the next `count` bytes of the client; `false` if it ends before.
    async fn swallow(&mut self, mut count: u64) -> io::Result<bool> {
        self.registered.set_state(State::Swallow);
        loop {
            count = self.input.skip(count);
            if count == 0 {
                return Ok(true);
            }
            if !self.receive(1).await? {
                return Ok(false);
            }
        }
    }

    async fn text(&mut self) -> io::Result<()> {
        let limits = self.limits();
        loop {
            let input = &mut self.input;
            let mut scanned = input.scanned;
            match text::parse(input.unused(), &mut scanned, limits) {
                Next::Incomplete { at_least } => {
                    let length = input.unused().len();
                    input.scanned = scanned;
                    if !self.receive_rest(length, at_least).await? {
                        return Ok(());
                    }
                }
                Next::Request {
                    request,
                    length,
                    swallow,
                } => {
                    let (stream, out) = (&mut self.stream, &mut self.output);
                    let (session, registered) = (&mut self.session, self.registered);
                    let after = match request {
                        text::Request::Get(get) => {
                            for key in get.keys {
                                session.text_get(&get, key, &mut out.bytes);
                                while session.room.missed() > 0 {
                                    make_room(stream, input, out, session, registered).await?;
                                    session.text_get(&get, key, &mut out.bytes);
                                }
                                if out.is_full() {
                                    send(stream, input, out, session, registered).await?;
                                }
                            }
                            out.bytes.extend_from_slice(b"END\r\n");
                            After::Next
                        }
                        request => {
                            let mut after = session.text(&request, &mut out.bytes);
                            while session.room.missed() > 0 {
                                make_room(stream, input, out, session, registered).await?;
                                after = session.text(&request, &mut out.bytes);
                            }
                            after
                        }
                    };
                    input.use_up(length);
                    match after {
                        After::Next => {}
                        After::Dump => self.dump().await?,
                        After::Close => return self.send().await,
                    }
                    if swallow > 0 && !self.swallow(swallow).await? {
                        return Ok(());
                    }
                    self.give_way().await?;
                }
                Next::Close { reply } => return self.close_with(reply).await,
            }
        }
    }

    /// `lru_crawler metadump`, sent in parts.
    async fn dump(&mut self) -> io::Result<()> {
        let mut cursor = Cursor::default();
        while self.session.dump_part(&mut cursor, &mut self.output.bytes) {
            if self.session.room.missed() > 0 {
                let (stream, input, out) = (&mut self.stream, &self.input, &mut self.output);
                make_room(stream, input, out, &mut self.session, self.registered).await?;
            } else {
                self.send().await?;
            }
        }
        Ok(())
    }

    async fn binary(&mut self) -> io::Result<()> {
        let limits = self.limits();
        loop {
            match binary::parse(self.input.unused(), limits) {
                Next::Incomplete { at_least } => {
                    let length = self.input.unused().len();
                    if !self.receive_rest(length, at_least).await? {
                        return Ok(());
                    }
                }
                Next::Request {
                    request,
                    length,
                    swallow,
                } => {
                    let (stream, input, out) = (&mut self.stream, &self.input, &mut self.output);
                    let (session, registered) = (&mut self.session, self.registered);
                    let mut after = session.binary(&request, &mut out.bytes);
                    while session.room.missed() > 0 {
                        make_room(stream, input, out, session, registered).await?;
                        after = session.binary(&request, &mut out.bytes);
                    }
                    self.input.use_up(length);
                    if after == After::Close {
                        return self.send().await;
                    }
                    if swallow > 0 && !self.swallow(swallow).await? {
                        return Ok(());
                    }
                    self.give_way().await?;
                }
                Next::Close { reply } => return self.close_with(reply).await,
            }
        }
    }

    /// After a request: sends answers that have become many, and lets waiting tasks run.
    #[inline]
    async fn give_way(&mut self) -> io::Result<()> {
        self.turn = self.turn.saturating_sub(1);
        if self.turn == 0 {
            self.turn = self.session.server.settings.requests_per_turn;
            self.session.tally.add(Count::ConnYields);
            let mut waited = false;
            poll_fn(|cx| {
                if mem::replace(&mut waited, true) {
                    return Poll::Ready(());
                }
                cx.waker().wake_by_ref();
                Poll::Pending
            })
            .await;
            self.session.now = self.session.server.clock.now();
        }
        if self.output.is_full() {
            self.send().await?;
        }
        Ok(())
    }

    /// Receives the rest of a request of which `length` bytes are there.
    async fn receive_rest(&mut self, length: usize, at_least: usize) -> io::Result<bool> {
        self.registered.set_state(match at_least {
            _ if length == 0 => State::Read,
            _ if at_least == length + 1 => State::Wait,
            _ => State::Value,
        });
        self.receive(at_least).await
    }

    fn limits(&self) -> Limits {
        Limits {
            value_max: self.session.server.settings.item_size_max,
        }
    }
}

/// Counts the answers, reports what was counted, and sends them.
async fn send<S: AsyncWrite + Unpin>(
    stream: &mut S,
    input: &Input<'_>,
    output: &mut Output<'_>,
    session: &mut Session<'_>,
    registered: &Registered,
) -> io::Result<()> {
    let length = output.bytes.len();
    if length > 0 {
        session.tally.add_many(Count::BytesWritten, length as u64);
    }
    session.report();
    let took = || {
        session.now = session.server.clock.now();
        registered.took(session.now);
    };
    output.flush(stream, input.share(), took).await?;
    session.room = Room::OF_BASE;
    Ok(())
}

/// Sends what there is, and waits for memory for the value that had no room.
#[cold]
async fn make_room<'s, S: AsyncWrite + Unpin>(
    stream: &mut S,
    input: &Input<'_>,
    output: &mut Output<'s>,
    session: &mut Session<'s>,
    registered: &Registered,
) -> io::Result<()> {
    let missed = session.room.missed();
    send(stream, input, output, session, registered).await?;
    let outgoing = &session.server.outgoing;
    session.room = output.widen(outgoing, missed, input.share()).await?;
    session.now = session.server.clock.now();
    Ok(())
}

impl Session<'_> {
    /// Carries out a request of the text protocol, and appends its whole answer. (A connection sends that to
    /// a retrieval in pieces, by itself.)
    pub fn text(&mut self, request: &text::Request<'_>, out: &mut Vec<u8>) -> After {
        use text::Request;
        match *request {
            Request::Get(get) => self.text_get_at_once(&get, out),
            Request::Store(store, data) => self.text_store(&store, data, out),
            Request::MetaGet(command) => self.meta_get(&command, out),
            Request::MetaSet(command, mode, data) => self.meta_set(&command, mode, data, out),
            Request::MetaDelete(command) => self.meta_delete(&command, out),
            Request::MetaArithmetic(command, adds) => self.meta_arithmetic(&command, adds, out),
            Request::MetaDebug { key, base64 } => self.meta_debug(key, base64, out),
            Request::MetaNoop => line(out, "MN"),
            Request::Delete { key, quiet } => self.text_delete(key, quiet, out),
            Request::Arithmetic {
                key,
                increment,
                delta,
                quiet,
            } => {
                self.text_arithmetic((key, increment, delta), quiet, out);
            }
            Request::Touch { key, expiry, quiet } => {
                let found = self.touch(key, expiry);
                line_unless(out, quiet, if found { "TOUCHED" } else { "NOT_FOUND" });
            }
            Request::Flush { delay, quiet } => {
                let done = self.flush_all(i64::from(delay));
                line_unless(
                    out,
                    quiet,
                    if done {
                        "OK"
                    } else {
                        "CLIENT_ERROR flush_all not allowed"
                    },
                );
            }
            Request::Version => line(out, &format!("VERSION {VERSION}")),
            Request::Quit => return After::Close,
            Request::Verbosity { level, quiet } => {
                self.server.set_verbosity(level);
                line_unless(out, quiet, "OK");
            }
            Request::MemoryLimit { megabytes, quiet } => {
                line_unless(out, quiet, &self.server.set_memory_limit(megabytes));
            }
            Request::Admin(admin) => return self.admin(&admin, out),
            Request::Error(error) => line(out, error),
            Request::Nothing => {}
        }
        After::Next
    }
}
