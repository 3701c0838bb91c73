//! One thread of a client with its connections: the loop that sends what is due and reads what has come.
//!
//! Each turn of the loop:
//!
//! 1. Requests that are due go to their connections; how late the thread came to one is the client's *lag*. In the
//!    closed loop each reply makes the next request due.
//! 2. Connections with something to send are flushed, each with one system call for all that it has.
//! 3. The thread waits until a connection is ready or the next request is due. A timer descriptor in the same epoll is
//!    set to the due time, because the timeout of `epoll_wait` counts in milliseconds, and `epoll_pwait2`, which is
//!    finer, is younger than some kernels in use. A client with a processor of its own may [spin](Waiting::Spin)
//!    instead.
//! 4. Each ready connection is read once. A reply's latency is from the time at which its request was *due*
//!    to the time at which the read returned.
//!
//! After the end of its requests a run has a grace in which replies are awaited. What is still without a reply then is
//! *unanswered*, and its latency is the time that it waited, so a server that never answers does not look fast. Its
//! connection is opened afresh for the next run.
//!
//! Nothing here depends on the runtime that may be under test: a plain thread, one epoll descriptor.

use super::connection::{Asked, Connection, Flushed};
use super::{Place, Server, Traffic, Trouble};
use crate::class::Waiting;
use nix::errno::Errno;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use std::collections::VecDeque;
use std::ops::Range;
use std::time::{Duration, Instant};

const IN_ONE_TURN: usize = 128;
const EVENTS: usize = 256;
/// The timer's place among the connections.
const TIMER: u64 = u64::MAX;
/// How long a thread sleeps that awaits nothing but replies.
const AWAIT_REPLIES: Duration = Duration::from_millis(50);
/// A wait shorter than this costs more than looking again.
const SHORTEST_WAIT: Duration = Duration::from_micros(2);

/// A thread's part of a client: its connections.
#[derive(Debug)]
pub struct Thread<R> {
    server: Server,
    epoll: Epoll,
    timer: TimerFd,
    connections: Vec<Connection<R>>,
    blocked: Vec<bool>,
    groups: Vec<Group<R>>,
    /// Requests of one connection that may be under way.
    depth: usize,
    waiting: Waiting,
    spun_in_vain: Duration,
}

/// Connections, and the requests that wait for a free one of them.
#[derive(Debug)]
struct Group<R> {
    connections: Range<usize>,
    waiting: VecDeque<Asked<R>>,
}

impl<R: Copy> Thread<R> {
    /// Opens the connections: groups of so many each.
    ///
    /// # Errors
    ///
    /// [`Trouble::Connect`], [`Trouble::System`].
    pub fn open(server: &Server, groups: &[usize], waiting: Waiting) -> Result<Self, Trouble> {
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC).map_err(system("an epoll"))?;
        let flags = TimerFlags::TFD_NONBLOCK | TimerFlags::TFD_CLOEXEC;
        let timer = TimerFd::new(ClockId::CLOCK_MONOTONIC, flags).map_err(system("a timer"))?;
        let readable = EpollEvent::new(EpollFlags::EPOLLIN, TIMER);
        epoll
            .add(&timer, readable)
            .map_err(system("a timer cannot be polled"))?;
        let mut thread = Thread {
            server: server.clone(),
            epoll,
            timer,
            connections: Vec::new(),
            blocked: Vec::new(),
            groups: Vec::new(),
            depth: 1,
            waiting,
            spun_in_vain: Duration::ZERO,
        };
        for &count in groups {
            let first = thread.connections.len();
            for index in first..first + count {
                let connection = Connection::open(server)?;
                thread.register(index, &connection)?;
                thread.connections.push(connection);
                thread.blocked.push(false);
            }
            thread.groups.push(Group {
                connections: first..first + count,
                waiting: VecDeque::new(),
            });
        }
        Ok(thread)
    }

    /// How many connections it has.
    pub fn connections(&self) -> usize {
        self.connections.len()
    }

    /// For how long a run looked again and again while there was nothing to do, and sets this to zero.
    pub fn take_spun_in_vain(&mut self) -> Duration {
        std::mem::take(&mut self.spun_in_vain)
    }

    fn register(&self, index: usize, connection: &Connection<R>) -> Result<(), Trouble> {
        let event = EpollEvent::new(EpollFlags::EPOLLIN, index as u64);
        self.epoll
            .add(connection.stream(), event)
            .map_err(system("a connection cannot be polled"))
    }

    /// Opens those connections afresh that still await replies of an earlier run.
    fn renew(&mut self) -> Result<(), Trouble> {
        self.groups
            .iter_mut()
            .for_each(|group| group.waiting.clear());
        for index in 0..self.connections.len() {
            self.connections[index].drop_waiting();
            if !self.connections[index].is_clean() {
                let connection = Connection::open(&self.server)?;
                self.register(index, &connection)?;
                // Closing the old one takes it out of the epoll.
                self.connections[index] = connection;
                self.blocked[index] = false;
            }
        }
        Ok(())
    }

    /// Lets the timer expire once, after `wait`, or never.
    fn set_timer(&self, wait: Option<Duration>) -> Result<(), Trouble> {
        let set = match wait {
            None => self.timer.unset(),
            // Setting it also clears an earlier expiration. A time of 0 would disarm it.
            Some(wait) => {
                let wait = TimeSpec::from_duration(wait.max(Duration::from_nanos(1)));
                let once = Expiration::OneShot(wait);
                self.timer.set(once, TimerSetTimeFlags::empty())
            }
        };
        set.map_err(system("a timer cannot be set"))
    }

    /// One run on the calling thread, with so many requests under way on each connection at most; replies are awaited
    /// for `grace` after the end.
    ///
    /// # Errors
    ///
    /// The connections' and the traffic's.
    pub fn run<T: Traffic<Request = R>>(
        &mut self,
        depth: usize,
        grace: Duration,
        traffic: &mut T,
    ) -> Result<(), T::Error> {
        self.renew()?;
        self.depth = depth;
        // The timer of an open run before this one may have expired, and would end each wait of a closed run.
        self.set_timer(None)?;
        let mut turn = Turn {
            thread: self,
            traffic,
            dirty: Vec::new(),
            under_way: 0,
        };
        turn.go(grace)
    }
}

/// The state of one run.
struct Turn<'a, T: Traffic> {
    thread: &'a mut Thread<T::Request>,
    traffic: &'a mut T,
    dirty: Vec<usize>,
    under_way: usize,
}

impl<T: Traffic> Turn<'_, T> {
    fn go(&mut self, grace: Duration) -> Result<(), T::Error> {
        for connection in 0..self.thread.connections.len() {
            let mut more = self.thread.depth;
            while more > 0 && self.ask_next(connection, Instant::now()) {
                more -= 1;
            }
        }
        let mut events = vec![EpollEvent::empty(); EVENTS];
        loop {
            let more_due = self.take_due();
            self.flush_dirty()?;
            let (now, end) = (Instant::now(), self.traffic.end());
            self.traffic.turn(now);
            let is_over = now >= end || self.traffic.is_done();
            let is_given_up = now >= end + grace;
            if self.traffic.is_stopped() || (is_over && self.under_way == 0) || is_given_up {
                break;
            }
            let spins = self.thread.waiting == Waiting::Spin;
            let wait = match more_due || spins {
                true => Duration::ZERO,
                false => self.time_to_next(now),
            };
            let ready = self.wait(&mut events, wait)?;
            if spins && ready == 0 && !more_due {
                self.thread.spun_in_vain += now.elapsed();
            }
            for event in &events[..ready] {
                if event.data() != TIMER {
                    self.ready(event.data() as usize, event.events())?;
                } else if self.traffic.next_due().is_none() {
                    // Otherwise it is set anew before the next wait, which clears it as well.
                    self.thread.set_timer(None)?;
                }
            }
        }
        self.give_up();
        Ok(())
    }

    /// Takes requests that are due, a limited number at once; whether there are more.
    fn take_due(&mut self) -> bool {
        for _ in 0..IN_ONE_TURN {
            let (due, now) = (self.traffic.next_due(), Instant::now());
            let Some(due) = due.filter(|due| *due <= now) else {
                return false;
            };
            let (place, request) = self.traffic.take(due, now);
            let asked = Asked { due, request };
            self.under_way += 1;
            match place {
                Place::On(connection) => self.push(connection, asked),
                Place::Free(group) => {
                    let mut all = self.thread.groups[group].connections.clone();
                    match all.find(|&index| self.thread.connections[index].is_free()) {
                        Some(free) => self.push(free, asked),
                        None => self.thread.groups[group].waiting.push_back(asked),
                    }
                }
            }
        }
        true
    }

    /// Asks the closed loop's next request on `connection`; whether there is one.
    fn ask_next(&mut self, connection: usize, now: Instant) -> bool {
        let request = self.traffic.next_on(connection, now);
        if let Some(request) = request {
            self.under_way += 1;
            self.push(connection, Asked { due: now, request });
        }
        request.is_some()
    }

    fn push(&mut self, connection: usize, asked: Asked<T::Request>) {
        self.thread.connections[connection].push(asked);
        self.dirty.push(connection);
    }

    fn flush_dirty(&mut self) -> Result<(), T::Error> {
        while let Some(index) = self.dirty.pop() {
            let thread = &mut *self.thread;
            let connection = &mut thread.connections[index];
            connection.start(thread.depth, self.traffic);
            let flushed = match connection.flush(&thread.server) {
                Err(Trouble::Closed { .. }) if T::REOPENS && connection.is_between_replies() => {
                    self.reopen(index)?;
                    continue;
                }
                flushed => flushed?,
            };
            let is_blocked = flushed == Flushed::Blocked;
            if is_blocked != thread.blocked[index] {
                thread.blocked[index] = is_blocked;
                let flags = match is_blocked {
                    true => EpollFlags::EPOLLIN | EpollFlags::EPOLLOUT,
                    false => EpollFlags::EPOLLIN,
                };
                let mut event = EpollEvent::new(flags, index as u64);
                thread
                    .epoll
                    .modify(thread.connections[index].stream(), &mut event)
                    .map_err(system("a connection cannot be polled"))?;
            }
        }
        Ok(())
    }

    fn reopen(&mut self, index: usize) -> Result<(), T::Error> {
        let thread = &mut *self.thread;
        thread.connections[index].reopen(&thread.server)?;
        thread.blocked[index] = false;
        thread.register(index, &thread.connections[index])?;
        self.dirty.push(index);
        Ok(())
    }

    /// How long until the next request is due; zero if that is not worth a sleep.
    fn time_to_next(&self, now: Instant) -> Duration {
        let next = self.traffic.next_due();
        let wait = next.map_or(AWAIT_REPLIES, |next| next.saturating_duration_since(now));
        match wait < SHORTEST_WAIT {
            true => Duration::ZERO,
            false => wait.min(AWAIT_REPLIES),
        }
    }

    /// Waits until something is ready, for `wait` at most; how many are.
    fn wait(&self, events: &mut [EpollEvent], wait: Duration) -> Result<usize, T::Error> {
        let timeout = match (wait, self.traffic.next_due()) {
            (Duration::ZERO, _) => EpollTimeout::ZERO,
            (wait, None) => EpollTimeout::try_from(wait).expect("the wait is short"),
            (wait, Some(_)) => {
                self.thread.set_timer(Some(wait))?;
                EpollTimeout::NONE
            }
        };
        match self.thread.epoll.wait(events, timeout) {
            Err(Errno::EINTR) => Ok(0),
            ready => Ok(ready.map_err(system("connections cannot be waited for"))?),
        }
    }

    fn ready(&mut self, index: usize, flags: EpollFlags) -> Result<(), T::Error> {
        if flags.contains(EpollFlags::EPOLLOUT) {
            self.dirty.push(index);
        }
        if flags == EpollFlags::EPOLLOUT {
            return Ok(());
        }
        let thread = &mut *self.thread;
        let connection = &mut thread.connections[index];
        match connection.read(&thread.server) {
            Err(Trouble::Closed { .. }) if T::REOPENS && connection.is_between_replies() => {
                return self.reopen(index);
            }
            read => read?,
        };
        let replies = connection.take_replies(&thread.server, self.traffic)?;
        self.under_way -= replies;
        if replies == 0 {
            return Ok(());
        }
        // There is room for requests that wait.
        self.dirty.push(index);
        let is_here = |group: &&mut Group<_>| group.connections.contains(&index);
        let group = self.thread.groups.iter_mut().find(is_here);
        let waiting = group.and_then(|group| group.waiting.pop_front());
        match waiting {
            Some(asked) => self.push(index, asked),
            None => {
                let now = Instant::now();
                let _ = (0..replies).all(|_| self.ask_next(index, now));
            }
        }
        Ok(())
    }

    /// Requests without a reply count with the time that they have waited.
    fn give_up(&mut self) {
        let now = Instant::now();
        let connections = self.thread.connections.iter();
        let open = connections.flat_map(Connection::open_requests);
        let waiting = self.thread.groups.iter().flat_map(|group| &group.waiting);
        for Asked { due, request } in open.chain(waiting) {
            self.traffic.unanswered(request, *due, now);
        }
    }
}

fn system(what: &'static str) -> impl Fn(Errno) -> Trouble {
    move |cause| Trouble::System {
        what,
        cause: cause.into(),
    }
}
