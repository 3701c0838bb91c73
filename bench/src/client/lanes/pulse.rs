//! The client's own process: sends at drawn times, receives, and logs.

use super::connection::{Connection, Received};
use super::{GRACE, Lane, Lanes, unanswered};
use crate::harness::events::{Event, Events};
use crate::harness::machine::{self, now_ns};
use nix::errno::Errno;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use std::collections::VecDeque;
use std::io::Read as _;
use std::process::ExitCode;
use std::time::Duration;

const TIMER: u64 = u64::MAX;
const INPUT: u64 = u64::MAX - 1;

/// The client's side: runs the lanes described by `spec`.
pub fn main(spec: &str) -> ExitCode {
    let lanes: Lanes = match serde_json::from_str(spec) {
        Ok(lanes) => lanes,
        Err(error) => {
            eprintln!("urgency-bench: --lanes {spec:?} are no lanes: {error}");
            return ExitCode::from(2);
        }
    };
    if !machine::enter_real_time_class() {
        eprintln!(
            "urgency-bench: the client may not enter the class SCHED_FIFO, so compute delays it too"
        );
    }
    // Where the slack cannot be set, sends come up to 50 us late, for all contenders alike.
    let _ = nix::sys::prctl::set_timerslack(1);
    let mut client = Client::new(lanes);
    client.run();
    let line = serde_json::to_string(&client.events).expect("events can be written as JSON");
    println!("{line}");
    ExitCode::SUCCESS
}

struct Client {
    epoll: Epoll,
    timer: TimerFd,
    lanes: Lanes,
    /// With the lane of each.
    connections: Vec<(usize, Connection)>,
    random: fastrand::Rng,
    sequence: u64,
    /// Requests of the stretch that are not due yet, with their lanes.
    coming: VecDeque<(u64, usize)>,
    /// By lane: requests that are due and wait for a connection.
    waiting: Vec<VecDeque<u64>>,
    /// The end of the stretch, while there is one.
    end: Option<u64>,
    input: Vec<u8>,
    events: Events,
}

impl Client {
    fn new(lanes: Lanes) -> Self {
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC).expect("an epoll descriptor");
        let flags = TimerFlags::TFD_NONBLOCK | TimerFlags::TFD_CLOEXEC;
        let timer = TimerFd::new(ClockId::CLOCK_MONOTONIC, flags).expect("a timer descriptor");
        let readable = |data| EpollEvent::new(EpollFlags::EPOLLIN, data);
        epoll
            .add(&timer, readable(TIMER))
            .expect("a timer can be polled");
        epoll
            .add(std::io::stdin(), readable(INPUT))
            .expect("a pipe can be polled");
        let mut connections = Vec::new();
        for (index, lane) in lanes.lanes.iter().enumerate() {
            for _ in 0..lane.connections {
                let connection = Connection::open(lanes.server);
                let data = connections.len() as u64;
                epoll
                    .add(&connection.stream, readable(data))
                    .expect("a socket can be polled");
                connections.push((index, connection));
            }
        }
        Client {
            epoll,
            timer,
            waiting: vec![VecDeque::new(); lanes.lanes.len()],
            lanes,
            connections,
            random: fastrand::Rng::with_seed(7),
            sequence: 0,
            coming: VecDeque::new(),
            end: None,
            input: Vec::new(),
            events: Events::default(),
        }
    }

    fn run(&mut self) {
        let mut events = vec![EpollEvent::empty(); self.connections.len() + 2];
        loop {
            let ready = match self.epoll.wait(&mut events, EpollTimeout::from(20u8)) {
                Ok(ready) => ready,
                Err(Errno::EINTR) => 0,
                Err(error) => panic!("epoll_wait: {error}"),
            };
            for event in &events[..ready] {
                match event.data() {
                    TIMER => {
                        // Unread, it would stay readable and this thread would spin. It may have been set anew.
                        let _ = self.timer.wait();
                    }
                    INPUT => {
                        if !self.read_input() {
                            return;
                        }
                    }
                    connection => self.receive(connection as usize),
                }
            }
            self.send_what_is_due();
            self.drain();
        }
    }

    /// Reads orders; false at the end of the input.
    fn read_input(&mut self) -> bool {
        let mut buffer = [0; 256];
        let count = std::io::stdin()
            .read(&mut buffer)
            .expect("the input can be read");
        self.input.extend_from_slice(&buffer[..count]);
        while let Some(end) = self.input.iter().position(|&byte| byte == b'\n') {
            let line: Vec<u8> = self.input.drain(..=end).collect();
            let line = String::from_utf8_lossy(&line);
            let mut times = line
                .split_whitespace()
                .map(|word| word.parse::<u64>().expect("a time is a number"));
            let mut time = || times.next().expect("an order has two times");
            self.plan(time(), time());
        }
        count > 0
    }

    /// Draws the requests of a stretch.
    fn plan(&mut self, start: u64, end: u64) {
        let mut coming = Vec::new();
        for (index, lane) in self.lanes.lanes.iter().enumerate() {
            let mut due = start;
            loop {
                let gap = -(1.0 - self.random.f64()).ln() / lane.per_s;
                due += Duration::from_secs_f64(gap).as_nanos() as u64;
                if due >= end {
                    break;
                }
                coming.push((due, index));
            }
        }
        coming.sort_unstable();
        self.coming = coming.into();
        self.end = Some(end);
        self.set_timer();
    }

    fn send_what_is_due(&mut self) {
        let now = now_ns();
        let mut is_due = false;
        while let Some(&(due, lane)) = self.coming.front().filter(|(due, _)| *due <= now) {
            self.coming.pop_front();
            self.waiting[lane].push_back(due);
            is_due = true;
        }
        if is_due {
            for index in 0..self.connections.len() {
                self.send_on(index);
            }
            self.set_timer();
        }
    }

    /// Sends the next request of its lane on this connection, if it is free and there is one.
    fn send_on(&mut self, index: usize) {
        let (lane, connection) = &mut self.connections[index];
        if connection.under_way.is_some() {
            return;
        }
        if let Some(due) = self.waiting[*lane].pop_front() {
            connection.send(&self.lanes.lanes[*lane].protocol, due, self.sequence);
            self.sequence += 1;
        }
    }

    fn receive(&mut self, index: usize) {
        let (lane, connection) = &mut self.connections[index];
        let Lane { name, protocol, .. } = &self.lanes.lanes[*lane];
        match connection.receive(protocol) {
            Received::Nothing => return,
            Received::Reply(due) => {
                let latency = now_ns() - due;
                self.events.add(name, [Event { due, latency }]);
            }
            Received::Closed => {
                let lane = *lane;
                if let Some(due) = connection.under_way {
                    self.waiting[lane].push_front(due);
                }
                self.replace(index);
            }
        }
        self.send_on(index);
    }

    /// Says so when a stretch is done, and gives up what has no reply.
    fn drain(&mut self) {
        let Some(end) = self.end else { return };
        let now = now_ns();
        let is_over = now >= end && self.coming.is_empty();
        let mut all = self.connections.iter();
        let is_open = all.any(|(_, connection)| connection.under_way.is_some())
            || self.waiting.iter().any(|lane| !lane.is_empty());
        if !is_over || (is_open && now < end + GRACE.as_nanos() as u64) {
            return;
        }
        if is_open {
            self.give_up(now);
        }
        self.end = None;
        println!("drained");
    }

    fn give_up(&mut self, now: u64) {
        for index in 0..self.connections.len() {
            let (lane, connection) = &self.connections[index];
            if let Some(due) = connection.under_way {
                log_unanswered(&mut self.events, &self.lanes.lanes[*lane], now, due);
                self.replace(index);
            }
        }
        for (lane, waiting) in self.lanes.lanes.iter().zip(&mut self.waiting) {
            for due in waiting.drain(..) {
                log_unanswered(&mut self.events, lane, now, due);
            }
        }
    }

    /// Opens a connection in the place of another, which is closed.
    fn replace(&mut self, index: usize) {
        let connection = &mut self.connections[index].1;
        *connection = Connection::open(self.lanes.server);
        let event = EpollEvent::new(EpollFlags::EPOLLIN, index as u64);
        self.epoll
            .add(&connection.stream, event)
            .expect("a socket can be polled");
    }

    /// Wakes this thread when the next request is due, or the stretch is over.
    fn set_timer(&self) {
        let next = self.coming.front().map(|(due, _)| *due);
        let Some(due) = next.or(self.end) else {
            return;
        };
        // At least 1 ns: a time of 0 would disarm the timer. Setting it also clears an earlier expiration.
        let wait = due.saturating_sub(now_ns()).max(1);
        let wait = TimeSpec::from_duration(Duration::from_nanos(wait));
        self.timer
            .set(Expiration::OneShot(wait), TimerSetTimeFlags::empty())
            .expect("a one-shot timer can be set");
    }
}

/// A request without a reply counts with the time that it has waited, so a server that never answers does not look
/// fast.
fn log_unanswered(events: &mut Events, lane: &Lane, now: u64, due: u64) {
    let latency = now - due;
    events.add(&lane.name, [Event { due, latency }]);
    events.add(&unanswered(&lane.name), [Event { due, latency }]);
}
