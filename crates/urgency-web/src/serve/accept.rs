//! The loop that accepts, and what it does when accepting fails.
//!
//! # Which error means what
//!
//! - *Nothing to do with the listener*: the connection is gone already, or the network of that peer fails
//!   (`accept(2)` says to treat these like `EAGAIN`). Passed over.
//! - *Out of something*: descriptors, buffers, memory, places in epoll (`max_user_watches`). The connection stays in
//!   the backlog, so trying again at once would only burn a core. The loop pauses, 5 ms at first and doubled up to half
//!   a second, and also goes on as soon as one of the server's own connections ends: it gave a descriptor back.
//! - *Anything else* is the listener's own end, and the server's.

use super::{
    Listener, Signal,
    census::{Census, Phase},
};
use rustix::io::Errno;
use std::{
    future::{Future, poll_fn},
    io,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};
use urgency::{
    net,
    time::{Sleep, sleep},
};

const FIRST_PAUSE: Duration = Duration::from_millis(5);
const LONGEST_PAUSE: Duration = Duration::from_millis(500);

/// What to do about an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Remedy {
    PassOver,
    Pause,
    End,
}

fn remedy(error: &io::Error) -> Remedy {
    if net::is_exhausted(error) {
        return Remedy::Pause;
    }
    match Errno::from_io_error(error) {
        Some(
            Errno::CONNABORTED
            | Errno::CONNRESET
            | Errno::PERM
            | Errno::PROTO
            | Errno::NETDOWN
            | Errno::NOPROTOOPT
            | Errno::HOSTDOWN
            | Errno::NONET
            | Errno::HOSTUNREACH
            | Errno::NETUNREACH
            | Errno::INTR,
        ) => Remedy::PassOver,
        _ => Remedy::End,
    }
}

/// The pause of a loop that is out of something.
#[derive(Default)]
struct Pause {
    sleep: Option<Pin<Box<Sleep>>>,
    last: Duration,
}

impl Pause {
    fn begin(&mut self) {
        self.last = (self.last * 2).clamp(FIRST_PAUSE, LONGEST_PAUSE);
        self.sleep = Some(Box::pin(sleep(self.last)));
    }

    /// Ready when there is no pause, when it is over, or when fewer than `live` connections live.
    fn poll(&mut self, census: &Census, live: usize, cx: &mut Context<'_>) -> Poll<()> {
        if let Some(sleep) = &mut self.sleep {
            let over = sleep.as_mut().poll(cx).is_ready();
            if !over && census.poll_fewer_than(live, cx).is_pending() {
                return Poll::Pending;
            }
            self.sleep = None;
        }
        Poll::Ready(())
    }
}

/// Counts of the loop.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Accepted {
    pub(super) accepted: u64,
    pub(super) passed_over: u64,
    pub(super) pauses: u64,
}

/// Accepts until `signal` is ready, and gives each connection to `begin`. Never more than `limit` at a time.
pub(super) async fn accept_loop<L: Listener>(
    listener: &L,
    census: &Census,
    limit: usize,
    signal: &mut Signal,
    mut begin: impl FnMut(L::Stream, L::Peer),
) -> io::Result<Accepted> {
    let mut counts = Accepted::default();
    let mut pause = Pause::default();
    let mut live_at_pause = 0;
    loop {
        let next = poll_fn(|cx| {
            if signal.as_mut().poll(cx).is_ready() {
                return Poll::Ready(None);
            }
            std::task::ready!(pause.poll(census, live_at_pause, cx));
            std::task::ready!(census.poll_fewer_than(limit, cx));
            listener.poll_accept(cx).map(Some)
        });
        match next.await {
            None => return Ok(counts),
            Some(Ok((stream, peer))) => {
                counts.accepted += 1;
                pause.last = Duration::ZERO;
                begin(stream, peer);
            }
            Some(Err(error)) => match remedy(&error) {
                Remedy::PassOver => counts.passed_over += 1,
                Remedy::Pause => {
                    counts.pauses += 1;
                    live_at_pause = census.count().0;
                    pause.begin();
                }
                Remedy::End => {
                    census.announce(Phase::Draining);
                    return Err(error);
                }
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_shortage_pauses_and_only_the_listeners_own_errors_end_the_server() {
        for (errno, expected) in [
            (Errno::MFILE, Remedy::Pause),
            (Errno::NOSPC, Remedy::Pause),
            (Errno::NFILE, Remedy::Pause),
            (Errno::CONNABORTED, Remedy::PassOver),
            (Errno::HOSTUNREACH, Remedy::PassOver),
            (Errno::BADF, Remedy::End),
            (Errno::INVAL, Remedy::End),
        ] {
            assert_eq!(remedy(&errno.into()), expected, "{errno:?}");
        }
        assert_eq!(remedy(&io::Error::other("shut down")), Remedy::End);
    }

    #[test]
    fn pauses_double_up_to_a_limit() {
        let mut pause = Pause::default();
        let lengths: Vec<_> = (0..9)
            .map(|_| {
                pause.begin();
                pause.last.as_millis()
            })
            .collect();
        assert_eq!(lengths, [5, 10, 20, 40, 80, 160, 320, 500, 500]);
    }
}
