//! The client's own process: what it asks, and what it logs.

use super::{Done, GRACE, Lanes, MESSAGE, Pace, Protocol, chain, served, unanswered};
use crate::child;
use crate::class::{self, Class, Waiting};
use crate::client::{Due, Place, Thread, Times, Traffic, Trouble};
use crate::events::{Event, Events};
use crate::latencies::Latencies;
use crate::machine::{self, now_ns};
use std::fmt;
use std::io::{BufRead as _, Write as _};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// Time between two reports.
const REPORT: Duration = Duration::from_millis(250);

/// What ended a client of lanes before its time.
#[derive(Debug)]
pub enum Error {
    /// Between the client and the server.
    Trouble(Trouble),
    /// A reply was not the one to its request.
    WrongReply {
        /// The lane.
        lane: String,
        /// The number of the request.
        sequence: u64,
        /// What came, or its beginning.
        reply: String,
    },
    /// An order was none.
    Order(String),
}

impl From<Trouble> for Error {
    fn from(trouble: Trouble) -> Self {
        Error::Trouble(trouble)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Trouble(trouble) => trouble.fmt(f),
            Error::WrongReply {
                lane,
                sequence,
                reply,
            } => write!(f, "{lane} request {sequence} got a wrong reply: {reply:?}"),
            Error::Order(line) => write!(
                f,
                "{line:?} is no order: two times are, in nanoseconds of the monotonic clock"
            ),
        }
    }
}

impl std::error::Error for Error {}

/// The process.
///
/// # Errors
///
/// What ended it before its input did.
pub fn main(lanes: &Lanes) -> Result<(), Error> {
    let system = |what| move |cause| Trouble::System { what, cause };
    let groups: Vec<usize> = lanes.lanes.iter().map(|lane| lane.connections).collect();
    let needed = groups.iter().sum::<usize>() as u64 + 32;
    machine::allow_descriptors(needed).map_err(system("too many connections"))?;
    let mut thread = Thread::open(&lanes.server(), &groups, Waiting::Sleep)?;
    let class = class::enter(Class::RealTime, Waiting::Sleep);
    let (is_ended, (orders, order)) = (Arc::<AtomicBool>::default(), channel());
    let ends = is_ended.clone();
    std::thread::spawn(move || {
        let lines = std::io::stdin().lock().lines().map_while(Result::ok);
        // The other side is there until the process ends.
        let _ = lines.map(|line| orders.send(line)).find(Result::is_err);
        ends.store(true, Ordering::Release);
    });
    let mut asking = Asking::new(lanes, is_ended);
    for line in order {
        let times = line
            .split_once(' ')
            .and_then(|(start, end)| Some((start.parse().ok()?, end.parse().ok()?)));
        let (start, end) = times.ok_or(Error::Order(line))?;
        asking.plan(start, end);
        thread.run(lanes.pipeline, GRACE, &mut asking)?;
        child::say_line("drained");
    }
    child::say(&Done {
        events: asking.events,
        is_real_time: class == "SCHED_FIFO",
        class,
    });
    Ok(())
}

/// A request.
#[derive(Clone, Copy, Debug)]
struct Request {
    lane: usize,
    sequence: u64,
}

struct Asking<'a> {
    lanes: &'a Lanes,
    /// Of each lane, in a stretch, if it is an open loop.
    due: Vec<Option<Due>>,
    /// The lane of each connection.
    lane_of: Vec<usize>,
    stretches: u64,
    /// One moment, on both clocks.
    origin: (Instant, u64),
    end: Instant,
    is_ended: Arc<AtomicBool>,
    sequence: u64,
    events: Events,
    report: Option<(Instant, Latencies)>,
}

impl<'a> Asking<'a> {
    fn new(lanes: &'a Lanes, is_ended: Arc<AtomicBool>) -> Self {
        let all = lanes.lanes.iter().enumerate();
        let lane_of = all.flat_map(|(index, lane)| vec![index; lane.connections]);
        let now = Instant::now();
        Asking {
            lanes,
            due: Vec::new(),
            lane_of: lane_of.collect(),
            stretches: 0,
            origin: (now, now_ns()),
            end: now,
            is_ended,
            sequence: 0,
            events: Events::default(),
            report: None,
        }
    }

    /// Draws the requests of a stretch.
    fn plan(&mut self, start: u64, end: u64) {
        let (now, ns) = self.origin;
        let at = |time: u64| now + Duration::from_nanos(time.saturating_sub(ns));
        self.end = at(end);
        self.stretches += 1;
        let seed = self.lanes.seed ^ (self.stretches << 8);
        let lanes = self.lanes.lanes.iter().enumerate();
        let due = lanes.map(|(index, lane)| match lane.pace {
            Pace::Open(per_s, arrivals) => {
                let seed = seed ^ ((index as u64) << 48);
                Some(Due::new(per_s, arrivals, at(start), seed))
            }
            Pace::Closed => None,
        });
        self.due = due.collect();
        self.report = self.lanes.reports.then(|| (at(start), Latencies::new()));
        // The closed loop begins at once.
        machine::sleep_until_ns(start.saturating_sub(1_000_000));
    }

    fn next_lane(&self) -> Option<(usize, Instant)> {
        let open = self.due.iter().enumerate();
        let next = open.filter_map(|(lane, due)| Some((lane, due.as_ref()?.next())));
        next.min_by_key(|(_, due)| *due)
    }

    fn event(&self, due: Instant, now: Instant) -> Event {
        let (origin, ns) = self.origin;
        Event {
            due: ns + due.saturating_duration_since(origin).as_nanos() as u64,
            latency: now.saturating_duration_since(due).as_nanos() as u64,
        }
    }

    fn ask(&mut self, lane: usize) -> Request {
        self.sequence += 1;
        Request {
            lane,
            sequence: self.sequence,
        }
    }
}

impl Traffic for Asking<'_> {
    type Request = Request;
    type Error = Error;

    const REOPENS: bool = true;

    fn end(&self) -> Instant {
        self.end
    }

    fn next_due(&self) -> Option<Instant> {
        let (_, due) = self.next_lane()?;
        (due < self.end).then_some(due)
    }

    fn take(&mut self, _due: Instant, _now: Instant) -> (Place, Request) {
        let (lane, _) = self.next_lane().expect("a request is due");
        self.due[lane].as_mut().expect("its loop is open").advance();
        let request = self.ask(lane);
        let place = match self.lanes.pipeline {
            1 => Place::Free(lane),
            _ => {
                let count = self.lanes.lanes[lane].connections;
                let first = self.lane_of.iter().position(|&other| other == lane);
                let next = request.sequence as usize % count;
                Place::On(first.expect("a lane has connections") + next)
            }
        };
        (place, request)
    }

    fn next_on(&mut self, connection: usize, now: Instant) -> Option<Request> {
        let lane = self.lane_of[connection];
        let is_closed = matches!(self.lanes.lanes[lane].pace, Pace::Closed);
        (is_closed && now < self.end).then(|| self.ask(lane))
    }

    fn write(&mut self, request: &mut Request, to: &mut Vec<u8>) {
        let sequence = request.sequence;
        match &self.lanes.lanes[request.lane].protocol {
            Protocol::Echo => to.extend_from_slice(&echo(request)),
            Protocol::Chain => to.extend_from_slice(&chain::request(sequence)),
            Protocol::Get { path, .. } => {
                write!(to, "GET {path} HTTP/1.1\r\nHost: bench\r\n\r\n")
                    .expect("a vector takes any bytes");
            }
        }
    }

    fn receive(
        &mut self,
        request: &Request,
        times: Times,
        bytes: &[u8],
    ) -> Result<Option<usize>, Error> {
        let lane = &self.lanes.lanes[request.lane];
        let wrong = |reply: &[u8]| Error::WrongReply {
            lane: lane.name.clone(),
            sequence: request.sequence,
            reply: String::from_utf8_lossy(&reply[..reply.len().min(200)]).into_owned(),
        };
        let length = match &lane.protocol {
            Protocol::Echo => exactly(bytes, &echo(request)),
            Protocol::Chain => exactly(bytes, known_answer(request.sequence).as_slice()),
            Protocol::Get { expects, .. } => page(bytes, expects.as_bytes()),
        };
        let Some(length) = length.map_err(|()| wrong(bytes))? else {
            return Ok(None);
        };
        let event = self.event(times.due, times.now);
        self.events.add(&lane.name, [event]);
        if matches!(lane.pace, Pace::Open(..)) {
            let own = times.replied.saturating_duration_since(times.sent);
            let latency = own.as_nanos() as u64;
            let own = Event { latency, ..event };
            self.events.add(&served(&lane.name), [own]);
        }
        if let Some((_, all)) = &mut self.report {
            all.record(Duration::from_nanos(event.latency));
        }
        Ok(Some(length))
    }

    fn unanswered(&mut self, request: &Request, due: Instant, now: Instant) {
        let name = &self.lanes.lanes[request.lane].name;
        let event = self.event(due, now);
        self.events.add(name, [event]);
        self.events.add(&unanswered(name), [event]);
    }

    fn turn(&mut self, now: Instant) {
        if self.is_ended.load(Ordering::Acquire) {
            self.end = self.end.min(now);
        }
        let Some((last, all)) = &mut self.report else {
            return;
        };
        if now < *last + REPORT {
            return;
        }
        *last = now;
        let ms = |share| all.quantile(share).map_or(0.0, |quantile| quantile.ms);
        child::say(&(all.answered_count(), ms(0.5), ms(0.99)));
    }
}

/// Its number, then its lane's.
fn echo(request: &Request) -> [u8; MESSAGE] {
    let mut message = [0; MESSAGE];
    message[..8].copy_from_slice(&request.sequence.to_le_bytes());
    message[8] = request.lane as u8;
    message
}

fn known_answer(sequence: u64) -> [u8; chain::MESSAGE] {
    static ANSWERS: OnceLock<Vec<u64>> = OnceLock::new();
    let answers = ANSWERS.get_or_init(|| (0..chain::KEYS).map(chain::answer).collect());
    chain::reply_with(sequence, answers[(sequence % chain::KEYS) as usize])
}

/// How long a reply is that is to be these bytes; none if it is not whole.
fn exactly(bytes: &[u8], expected: &[u8]) -> Result<Option<usize>, ()> {
    match bytes.get(..expected.len()) {
        None => Ok(None),
        Some(reply) if reply == expected => Ok(Some(expected.len())),
        Some(_) => Err(()),
    }
}

/// How long an HTTP reply is that has status 200 and this body; none if it is not whole.
fn page(bytes: &[u8], body: &[u8]) -> Result<Option<usize>, ()> {
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n");
    let Some(head) = end.map(|end| end + 4) else {
        return Ok(None);
    };
    if !bytes.starts_with(b"HTTP/1.1 200") {
        return Err(());
    }
    Ok(exactly(&bytes[head..], body)?.map(|length| head + length))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::Arrivals;
    use crate::client::lanes::Lane;
    use std::io::Read as _;
    use std::net::{SocketAddr, TcpListener, TcpStream};

    /// A server that treats its connections one after the other with `treat`, of the number of each.
    fn server(treat: impl Fn(usize, TcpStream) + Send + 'static) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has a free port");
        let address = listener.local_addr().expect("a listener has an address");
        std::thread::spawn(move || {
            for (number, stream) in listener.incoming().enumerate() {
                treat(number, stream.expect("one comes"));
            }
        });
        address
    }

    fn answer_one(stream: &mut TcpStream, change: u8) {
        let mut request = [0; MESSAGE];
        stream.read_exact(&mut request).expect("one request");
        request[MESSAGE - 1] ^= change;
        stream.write_all(&request).expect("one reply");
    }

    /// One connection asks at a rate for a while; its events.
    fn ask(server: SocketAddr, ms: u64, grace: Duration) -> Result<Events, Error> {
        let pace = Pace::Open(200.0, Arrivals::Uniform);
        let lanes = Lanes::new(server, vec![Lane::of_echoes("echo", pace, 1)]);
        let mut thread = Thread::open(&lanes.server(), &[1], Waiting::Sleep)?;
        let mut asking = Asking::new(&lanes, Arc::default());
        let start = now_ns();
        asking.plan(start, start + ms * 1_000_000);
        thread.run(1, grace, &mut asking)?;
        Ok(asking.events)
    }

    #[test]
    fn what_waits_for_a_server_that_stalls_counts_from_when_it_was_due() {
        let stall = Duration::from_millis(300);
        let stalling = server(move |_, mut stream| {
            std::thread::sleep(stall);
            (0..20).for_each(|_| answer_one(&mut stream, 0));
        });
        let events = ask(stalling, 100, Duration::from_secs(60)).expect("all is answered");
        let events = events.of("echo");
        assert!((19..=20).contains(&events.len()), "{}", events.len());
        // None was sent late, and each waited for the stall to end.
        assert!(events.iter().all(|event| event.latency > 150_000_000));
    }

    #[test]
    fn the_servers_own_time_is_without_what_a_request_waited_in_the_client() {
        let stall = Duration::from_millis(300);
        let stalling = server(move |_, mut stream| {
            std::thread::sleep(stall);
            (0..20).for_each(|_| answer_one(&mut stream, 0));
        });
        let events = ask(stalling, 100, Duration::from_secs(60)).expect("all is answered");
        let (seen, own) = (events.of("echo"), events.of("echo_served"));
        assert_eq!(seen.len(), own.len());
        // The first one was under way in the stall, and the others waited for its connection.
        let first = own.iter().min_by_key(|event| event.due);
        assert!(first.is_some_and(|first| first.latency > 150_000_000));
        let waited = own.iter().filter(|event| event.latency > 150_000_000);
        assert_eq!(waited.count(), 1, "{own:?}");
        let sum = |events: &[Event]| events.iter().map(|event| event.latency).sum::<u64>();
        assert!(sum(own) < sum(seen) / 2);
    }

    /// It looked again and again, in the class SCHED_FIFO: a server on the same processor could not answer.
    #[test]
    fn a_client_that_awaits_nothing_but_replies_sleeps() {
        let stall = Duration::from_millis(500);
        let stalling = server(move |_, mut stream| {
            std::thread::sleep(stall);
            (0..20).for_each(|_| answer_one(&mut stream, 0));
        });
        let before = machine::thread_cpu_time();
        ask(stalling, 100, Duration::from_secs(60)).expect("all is answered");
        let ran = machine::thread_cpu_time() - before;
        assert!(ran < stall / 10, "ran for {ran:?}");
    }

    #[test]
    fn a_wrong_reply_ends_the_run_with_its_number() {
        let wrong = server(|_, mut stream| answer_one(&mut stream, 1));
        let error = ask(wrong, 100, GRACE).expect_err("the reply is wrong");
        assert!(
            matches!(error, Error::WrongReply { sequence: 1, .. }),
            "{error}"
        );
    }

    #[test]
    fn a_connection_that_closes_between_replies_is_opened_again_and_asked_again() {
        let closing = server(|number, mut stream| match number {
            0 => answer_one(&mut stream, 0),
            _ => (0..30).for_each(|_| answer_one(&mut stream, 0)),
        });
        let events = ask(closing, 100, Duration::from_secs(60));
        let events = events.expect("the second connection answers");
        assert!((19..=20).contains(&events.of("echo").len()));
        assert_eq!(events.of("echo_unanswered").len(), 0);
    }

    #[test]
    fn what_has_no_reply_is_unanswered_with_all_of_its_wait() {
        let mute = server(|_, stream| std::mem::forget(stream));
        let events = ask(mute, 50, Duration::from_millis(20)).expect("no reply is no error");
        assert!(events.of("echo_unanswered").len() >= 9);
        assert_eq!(events.of("echo"), events.of("echo_unanswered"));
    }

    #[test]
    fn a_page_is_whole_with_its_last_byte_and_wrong_with_another_status_or_body() {
        let ok = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
        assert_eq!(page(ok, b"ok"), Ok(Some(ok.len())));
        assert_eq!(page(&ok[..ok.len() - 1], b"ok"), Ok(None));
        assert_eq!(page(ok, b"no"), Err(()));
        assert_eq!(page(b"HTTP/1.1 500 No\r\n\r\nok", b"ok"), Err(()));
    }
}
