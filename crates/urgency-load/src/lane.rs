//! One thread of the client with its connections: the loop that sends what is due and reads what has come.
//!
//! Each turn of the loop:
//!
//! 1. Requests that are due go to their connections. In the open loop a request goes to a connection drawn at
//!    random, as if each connection were an independent user; how late the thread came to it is the client's
//!    *lag*. In the closed loop each reply makes the next request due.
//! 2. Connections with something to send are flushed, each with one system call for all that it has.
//! 3. The thread waits until a connection is ready or the next request is due. A timer descriptor in the same epoll is
//!    set to the due time, because the timeout of `epoll_wait` counts in milliseconds, and `epoll_pwait2`, which is
//!    finer, is younger than some kernels in use. A client with a processor of its own may [spin](Waiting::Spin)
//!    instead.
//! 4. Each ready connection is read once. A reply's latency is from the time at which its request was *due*
//!    to the time at which the read returned.
//!
//! A run has a ramp, whose requests count for nothing, then the recorded time, then a grace in which replies
//! are awaited. What is still without a reply then is `unanswered`, and its latency is the time that it
//! waited, so a server that never answers does not look fast.
//!
//! Beside that latency stands the one from the time at which the request was *sent*: the difference between
//! the two is the client's own delay, and what waited in the client because its connection had as many
//! requests under way as it may. A thread that loses its processor also comes late to replies, which is in
//! both.
//!
//! Nothing here depends on the runtime that may be under test: a plain thread, one epoll descriptor.

use crate::arrivals::{Arrivals, Due as DueTimes};
use crate::connection::{Connection, Due, Flushed};
use crate::judge::settle;
use crate::protocol::Command;
use crate::record::Record;
use crate::shared::Shared;
use crate::{Error, Load, Waiting, class};
use rustix::buffer::spare_capacity;
use rustix::event::{Timespec, epoll};
use rustix::fd::OwnedFd;
use rustix::time::{
    ClockId, Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, clock_gettime,
    timerfd_create, timerfd_settime,
};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// When requests are due.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pace {
    /// So many per second over all threads, whatever the server does.
    Open(f64, Arrivals),
    /// The next one when a reply has come.
    Closed,
    /// A set for each key, once, in the closed loop.
    Fill,
}

/// One run of a lane.
#[derive(Clone, Copy, Debug)]
pub struct Run {
    /// When requests are due.
    pub pace: Pace,
    /// Load before anything is recorded.
    pub ramp: Duration,
    /// Time that is recorded; of a fill, what it may take.
    pub duration: Duration,
    /// How long replies are awaited after the last request.
    pub grace: Duration,
    /// Makes the random choices of this run differ from the choices of other runs.
    pub seed: u64,
}

const IN_ONE_TURN: usize = 128;
const EVENTS: usize = 256;
/// The timer's place among the connections.
const TIMER: u64 = u64::MAX;
/// How long a thread sleeps that awaits nothing but replies.
const AWAIT_REPLIES: Duration = Duration::from_millis(50);
/// A wait shorter than this costs more than looking again.
const SHORTEST_WAIT: Duration = Duration::from_micros(2);

/// A thread's part of the client.
#[derive(Debug)]
pub struct Lane {
    index: usize,
    epoll: OwnedFd,
    timer: OwnedFd,
    connections: Vec<Connection>,
    blocked: Vec<bool>,
}

impl Lane {
    /// Opens this lane's share of the connections.
    ///
    /// # Errors
    ///
    /// [`Error::Connect`], [`Error::System`].
    pub fn open(index: usize, load: &Load) -> Result<Lane, Error> {
        let share =
            load.connections / load.threads + usize::from(index < load.connections % load.threads);
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(system("an epoll"))?;
        let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        let timer = timerfd_create(TimerfdClockId::Monotonic, flags).map_err(system("a timer"))?;
        let (data, flags) = (epoll::EventData::new_u64(TIMER), epoll::EventFlags::IN);
        epoll::add(&epoll, &timer, data, flags).map_err(system("a timer cannot be polled"))?;
        let mut lane = Lane {
            index,
            epoll,
            timer,
            connections: Vec::with_capacity(share),
            blocked: vec![false; share],
        };
        for index in 0..share {
            let connection = Connection::open(&load.server)?;
            lane.register(index, &connection)?;
            lane.connections.push(connection);
        }
        Ok(lane)
    }

    fn register(&self, index: usize, connection: &Connection) -> Result<(), Error> {
        let data = epoll::EventData::new_u64(index as u64);
        let flags = epoll::EventFlags::IN;
        epoll::add(&self.epoll, connection.stream(), data, flags)
            .map_err(system("a connection cannot be polled"))
    }

    /// Opens those connections afresh that still await replies of an earlier run.
    fn renew(&mut self, load: &Load) -> Result<(), Error> {
        for index in 0..self.connections.len() {
            self.connections[index].drop_waiting();
            if !self.connections[index].is_clean() {
                let connection = Connection::open(&load.server)?;
                self.register(index, &connection)?;
                // Closing the old one takes it out of the epoll.
                self.connections[index] = connection;
                self.blocked[index] = false;
            }
        }
        Ok(())
    }

    /// Lets the timer expire once, after `wait`; never if that is zero.
    fn set_timer(&self, wait: Duration) -> Result<(), Error> {
        let once = Itimerspec {
            it_interval: timespec(Duration::ZERO),
            it_value: timespec(wait),
        };
        timerfd_settime(&self.timer, TimerfdTimerFlags::empty(), &once)
            .map_err(system("a timer cannot be set"))?;
        Ok(())
    }

    /// One run on the calling thread.
    ///
    /// # Errors
    ///
    /// The connections' errors. A server's errors and wrong values are counted instead.
    pub fn run(&mut self, shared: &Shared, run: &Run) -> Result<Record, Error> {
        if let Some(cpus) = &shared.load.cpus {
            cpus.bind().map_err(|cause| Error::System {
                what: "the client cannot be bound to --cpus",
                cause,
            })?;
        }
        let class = class::enter(shared.load.class, shared.load.waiting);
        self.renew(&shared.load)?;
        // The timer of an open run before this one may have expired, and would end each wait of a closed run.
        self.set_timer(Duration::ZERO)?;
        let cpu = cpu_time();
        let mut turn = Turn::new(self, shared, run);
        let result = turn.go();
        let spun_in_vain = turn.spun_in_vain;
        let mut record = turn.record;
        result?;
        record.class = class;
        record.cpu = (cpu_time() - cpu).saturating_sub(spun_in_vain);
        Ok(record)
    }
}

/// The state of one run.
struct Turn<'a> {
    lane: &'a mut Lane,
    shared: &'a Shared,
    run: &'a Run,
    record: Record,
    random: fastrand::Rng,
    due: Option<DueTimes>,
    next_fill: u32,
    depth: usize,
    dirty: Vec<usize>,
    record_from: Instant,
    end: Instant,
    under_way: usize,
    spun_in_vain: Duration,
}

impl<'a> Turn<'a> {
    fn new(lane: &'a mut Lane, shared: &'a Shared, run: &'a Run) -> Self {
        let load = &shared.load;
        let seed = load.workload.seed ^ (run.seed << 8) ^ ((lane.index as u64 + 1) << 40);
        let start = Instant::now();
        let due = match run.pace {
            Pace::Open(per_s, arrivals) => {
                let share = per_s * lane.connections.len() as f64 / load.connections as f64;
                Some(DueTimes::new(share, arrivals, start, !seed))
            }
            Pace::Closed | Pace::Fill => None,
        };
        let depth = match run.pace {
            Pace::Fill => load.pipeline.max(16),
            _ => load.pipeline,
        };
        Turn {
            next_fill: lane.index as u32,
            lane,
            shared,
            run,
            record: Record::new(),
            random: fastrand::Rng::with_seed(seed),
            due,
            depth,
            dirty: Vec::new(),
            record_from: start + run.ramp,
            end: start + run.ramp + run.duration,
            under_way: 0,
            spun_in_vain: Duration::ZERO,
        }
    }

    fn go(&mut self) -> Result<(), Error> {
        if self.due.is_none() {
            for connection in 0..self.lane.connections.len() {
                for _ in 0..self.depth {
                    self.ask_next(connection, Instant::now());
                }
            }
        }
        let mut events = Vec::with_capacity(EVENTS);
        loop {
            let more_due = self.take_due();
            self.flush_dirty()?;
            let now = Instant::now();
            let over = now >= self.end || (self.run.pace == Pace::Fill && self.under_way == 0);
            let given_up = now >= self.end + self.run.grace;
            if self.shared.stop.load(Ordering::Relaxed) || (over && self.under_way == 0) || given_up
            {
                break;
            }
            let spins = self.shared.load.waiting == Waiting::Spin;
            let wait = if more_due || spins {
                Duration::ZERO
            } else {
                self.time_to_next(now)
            };
            self.wait(&mut events, wait)?;
            if spins && events.is_empty() && !more_due {
                self.spun_in_vain += now.elapsed();
            }
            for event in &events {
                // The timer needs no answer: it is set anew before each wait for it.
                if event.data.u64() != TIMER {
                    self.ready(event.data.u64() as usize, event.flags)?;
                }
            }
        }
        self.give_up();
        Ok(())
    }

    /// Takes requests that are due, a limited number at once; whether there are more.
    fn take_due(&mut self) -> bool {
        for _ in 0..IN_ONE_TURN {
            let Some(due) = &mut self.due else {
                return false;
            };
            let (next, now) = (due.next(), Instant::now());
            if next > now || next >= self.end {
                return false;
            }
            due.advance();
            if next >= self.record_from {
                self.record.lag(now - next);
            }
            let connection = self.random.usize(..self.lane.connections.len());
            self.ask(connection, next);
        }
        true
    }

    /// A request of the mix is due on `connection` since `since`.
    fn ask(&mut self, connection: usize, since: Instant) {
        let workload = &self.shared.load.workload;
        let command = match self.random.f64() < workload.gets {
            true => Command::Get,
            false => Command::Set,
        };
        let key = self.shared.draw.key(&mut self.random);
        self.push(
            connection,
            Due {
                since,
                command,
                key,
            },
        );
    }

    /// The closed loop's next request on `connection`, if there is one.
    fn ask_next(&mut self, connection: usize, now: Instant) {
        if now >= self.end {
            return;
        }
        if self.run.pace != Pace::Fill {
            return self.ask(connection, now);
        }
        let key = self.next_fill;
        if key < self.shared.load.workload.keys {
            self.next_fill = key.saturating_add(self.shared.load.threads as u32);
            let command = Command::Set;
            let since = now;
            self.push(
                connection,
                Due {
                    since,
                    command,
                    key,
                },
            );
        }
    }

    fn push(&mut self, connection: usize, due: Due) {
        if due.since >= self.record_from {
            self.record.counts.requests += 1;
        }
        self.under_way += 1;
        self.lane.connections[connection].push(due);
        self.dirty.push(connection);
    }

    fn flush_dirty(&mut self) -> Result<(), Error> {
        while let Some(index) = self.dirty.pop() {
            let shared = self.shared;
            let connection = &mut self.lane.connections[index];
            connection.start(self.depth, |due, to| shared.write(due, to));
            let blocked = connection.flush(&shared.load.server)? == Flushed::Blocked;
            if blocked != self.lane.blocked[index] {
                self.lane.blocked[index] = blocked;
                let flags = match blocked {
                    true => epoll::EventFlags::IN | epoll::EventFlags::OUT,
                    false => epoll::EventFlags::IN,
                };
                let data = epoll::EventData::new_u64(index as u64);
                let stream = self.lane.connections[index].stream();
                epoll::modify(&self.lane.epoll, stream, data, flags)
                    .map_err(system("a connection cannot be polled"))?;
            }
        }
        Ok(())
    }

    /// How long until the next request is due; zero if that is not worth a sleep.
    fn time_to_next(&self, now: Instant) -> Duration {
        let next = self.due.as_ref().map(DueTimes::next);
        let next = next.filter(|next| *next < self.end);
        let wait = next.map_or(AWAIT_REPLIES, |next| next.saturating_duration_since(now));
        match wait < SHORTEST_WAIT {
            true => Duration::ZERO,
            false => wait.min(AWAIT_REPLIES),
        }
    }

    /// Waits until something is ready, for `wait` at most.
    fn wait(&self, events: &mut Vec<epoll::Event>, wait: Duration) -> Result<(), Error> {
        events.clear();
        let is_timed = !wait.is_zero() && self.due.is_some();
        if is_timed {
            self.lane.set_timer(wait)?;
        }
        let timeout = match is_timed {
            true => None,
            false => Some(timespec(wait)),
        };
        match epoll::wait(&self.lane.epoll, spare_capacity(events), timeout.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(system("connections cannot be waited for")(error)),
        }
    }

    fn ready(&mut self, index: usize, flags: epoll::EventFlags) -> Result<(), Error> {
        if flags.contains(epoll::EventFlags::OUT) {
            self.dirty.push(index);
        }
        if flags == epoll::EventFlags::OUT {
            return Ok(());
        }
        let shared = self.shared;
        let (record, record_from, end) = (&mut self.record, self.record_from, self.end);
        let is_open = self.due.is_some();
        let mut now = None;
        let mut replies = 0;
        self.lane.connections[index].receive(
            &shared.load.server,
            shared.load.protocol,
            |request, reply| {
                let now = *now.get_or_insert_with(Instant::now);
                replies += 1;
                let due = &request.due;
                let latency = now.saturating_duration_since(due.since);
                shared.live.note(latency);
                // The closed loop's last replies come after its end; its throughput is of its time.
                let counts = due.since >= record_from && (is_open || now < end);
                if counts {
                    let from_send = now.saturating_duration_since(request.sent);
                    record.latency(due.command, latency, from_send);
                    record.counts.answered += 1;
                }
                settle(shared, request, reply, record, counts)
            },
        )?;
        self.under_way -= replies;
        if replies > 0 {
            // There is room for requests that wait.
            self.dirty.push(index);
            if !is_open {
                let now = now.unwrap_or_else(Instant::now);
                (0..replies).for_each(|_| self.ask_next(index, now));
            }
        }
        Ok(())
    }

    /// Requests without a reply count with the time that they have waited.
    fn give_up(&mut self) {
        let now = Instant::now();
        for connection in &self.lane.connections {
            for due in connection.open_requests() {
                if due.since >= self.record_from {
                    let waited = now - due.since;
                    self.record.latency(due.command, waited, waited);
                    self.record.counts.unanswered += 1;
                }
            }
        }
    }
}

fn timespec(duration: Duration) -> Timespec {
    Timespec {
        tv_sec: duration.as_secs() as i64,
        tv_nsec: i64::from(duration.subsec_nanos()),
    }
}

fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

fn system(what: &'static str) -> impl Fn(rustix::io::Errno) -> Error {
    move |cause| Error::System {
        what,
        cause: cause.into(),
    }
}
