//! UDP: a datagram is a request, or several; the answer is sent when all are executed.
//!
//! A client of UDP has no connection, so there is nothing to close and nothing to wait for. A text request that is not
//! whole is answered with an error. A binary request that is not whole is not answered, because the form of its answer
//! is not known. An answer that does not fit the frame's numbers is not sent.
//!
//! The sender's address may be forged, so an answer is bounded: once it is longer than [`ANSWER_MAX`], the rest of the
//! datagram's requests is not done.

use super::{Server, connection::After, output::Room, session::Session, text_requests::ANSWER_MAX};
use crate::protocol::{Limits, Next, binary, datagram, text};
use std::sync::Arc;
use urgency::net::UdpSocket;

/// The longest datagram.
const DATAGRAM_MAX: usize = 64 * 1024;

/// A long answer lets others run after so many datagrams.
const BURST: usize = 64;

/// Serves a socket, for ever.
pub async fn serve(socket: Arc<UdpSocket>, number: u64, server: Arc<Server>) {
    let mut session = Session::new(&server, number, Room::ENDLESS);
    let mut buffer = vec![0; DATAGRAM_MAX];
    let mut answer = Vec::new();
    loop {
        // An error of a datagram socket is about one datagram: the peer of an earlier answer is gone.
        let Ok((length, from)) = socket.recv_from(&mut buffer).await else {
            // But if it comes again and again (the runtime's driver has gone), this task can be ended here.
            urgency::yield_now().await;
            continue;
        };
        session.now = server.clock.now();
        let Some((id, requests)) = datagram::open(&buffer[..length]) else {
            continue;
        };
        answer.clear();
        session.datagram(requests, &mut answer);
        session.report();
        if let Some(frames) = datagram::frames(id, &answer) {
            for (index, frame) in frames.enumerate() {
                if socket.send_to(&frame, from).await.is_err() {
                    break;
                }
                if index % BURST == BURST - 1 {
                    urgency::yield_now().await;
                }
            }
        }
        answer.shrink_to(DATAGRAM_MAX);
    }
}

impl Session<'_> {
    /// Carries out the requests of a datagram.
    fn datagram(&mut self, mut requests: &[u8], out: &mut Vec<u8>) {
        let limits = Limits {
            value_max: self.server.settings.item_size_max,
        };
        let is_binary = requests.first() == Some(&binary::REQUEST);
        while !requests.is_empty() && out.len() < ANSWER_MAX {
            let (after, length, swallow) = if is_binary {
                match binary::parse(requests, limits) {
                    Next::Request {
                        request,
                        length,
                        swallow,
                    } => (self.binary(&request, out), length, swallow),
                    _ => return,
                }
            } else {
                match text::parse(requests, &mut 0, limits) {
                    Next::Request {
                        request,
                        length,
                        swallow,
                    } => (self.text(&request, out), length, swallow),
                    Next::Incomplete { .. } | Next::Close { .. } => {
                        return out.extend_from_slice(b"CLIENT_ERROR bad data chunk\r\n");
                    }
                }
            };
            if after != After::Next {
                return;
            }
            // The value of a request that was refused is no request.
            let swallow = usize::try_from(swallow).unwrap_or(usize::MAX);
            let used = length.saturating_add(swallow);
            requests = requests.get(used..).unwrap_or_default();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        server::Settings,
        store::{Limits, NewItem, Store},
    };
    use std::{future::poll_fn, sync::mpsc, task::Context, task::Poll, task::Waker, thread};
    use std::{net::Ipv4Addr, time::Duration};
    use urgency::Runtime;

    fn server() -> Arc<Server> {
        let store = Store::new(&Limits::default()).unwrap();
        Arc::new(Server::new(store, Settings::default()))
    }

    #[test]
    fn the_answer_to_a_datagram_is_bounded_whatever_it_asks_for() {
        let server = server();
        let now = server.clock.now();
        let value = vec![7; 1_000_000];
        let item = NewItem {
            value: &[&value],
            ..NewItem::default()
        };
        server.store.entry(b"b", now).set(&item).unwrap();
        let mut session = Session::new(&server, 0, Room::ENDLESS);
        let mut out = Vec::new();
        session.datagram(format!("get{}\r\n", " b".repeat(300)).as_bytes(), &mut out);
        assert!(out.len() < 6 << 20, "{}", out.len());
        let last = b"SERVER_ERROR out of memory writing get response\r\n";
        assert!(out.ends_with(last));
        // What fits is answered as ever.
        out.clear();
        session.datagram(b"get b none b\r\nmn\r\n", &mut out);
        assert!(out.len() > 2_000_000 && out.ends_with(b"\r\nEND\r\nMN\r\n"));
    }

    #[test]
    fn a_socket_whose_runtime_has_gone_does_not_keep_its_thread() {
        let runtime = Runtime::builder().workers(1).build().unwrap();
        let socket =
            Arc::new(urgency::block_on(UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))).unwrap());
        let mut served = Box::pin(serve(socket, 0, server()));
        runtime.block_on(poll_fn(|cx| {
            assert!(served.as_mut().poll(cx).is_pending());
            Poll::Ready(())
        }));
        drop(runtime);
        let (done, is_done) = mpsc::channel();
        thread::spawn(move || {
            let polled = served
                .as_mut()
                .poll(&mut Context::from_waker(Waker::noop()));
            done.send(polled.is_pending())
        });
        let polled = is_done.recv_timeout(Duration::from_secs(10));
        assert_eq!(polled, Ok(true), "it spins");
    }
}
