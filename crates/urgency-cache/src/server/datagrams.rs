//! UDP: a datagram is a request, or several; the answer is sent when all are executed.
//!
//! A client of UDP has no connection, so there is nothing to close and nothing to wait for. What
//! is not whole is answered with an error, and an answer that does not fit the frame's numbers is not sent.

use super::{Server, connection::After, session::Session};
use crate::protocol::{Limits, Next, binary, datagram, text};
use std::sync::Arc;
use urgency::net::UdpSocket;

/// The longest datagram.
const DATAGRAM_MAX: usize = 64 * 1024;

/// A long answer lets others run after so many datagrams.
const BURST: usize = 64;

/// Serves a socket, for ever.
pub async fn serve(socket: Arc<UdpSocket>, number: u64, server: Arc<Server>) {
    let mut session = Session::new(&server, number);
    let mut buffer = vec![0; DATAGRAM_MAX];
    let mut answer = Vec::new();
    loop {
        // An error of a datagram socket is about one datagram: the peer of an earlier answer is gone.
        let Ok((length, from)) = socket.recv_from(&mut buffer).await else {
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
        while !requests.is_empty() && out.len() < DATAGRAM_MAX * 64 {
            let (after, length) = if is_binary {
                match binary::parse(requests, limits) {
                    Next::Request {
                        request, length, ..
                    } => (self.binary(&request, out), length),
                    _ => return,
                }
            } else {
                match text::parse(requests, &mut 0, limits) {
                    Next::Request {
                        request, length, ..
                    } => (self.text(&request, out), length),
                    Next::Incomplete { .. } | Next::Close { .. } => {
                        return out.extend_from_slice(b"CLIENT_ERROR bad data chunk\r\n");
                    }
                }
            };
            requests = &requests[length..];
            if after != After::Next {
                return;
            }
        }
    }
}
