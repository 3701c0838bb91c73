//! A poller over an interface that completes operations, and the driver over it. The kernel is a table in memory, so
//! each test is the same every time.
//!
//! What is modelled is what such an interface does otherwise than epoll (`poller.rs` says how each fits):
//!
//! - To watch a descriptor is an operation, which is submitted and completes. It goes on after a completion, but for
//!   each third, after which it is over: the poller submits it anew, and readiness that exists then completes it at
//!   once.
//! - The timer is an operation, which a new one replaces, and so is a notification.
//! - A wait submits what is queued, and harvests completions in their order.
//!
//! What is not modelled: [`Poller::rest`] only looks, since no test here lets a thread rest.

use super::{DriverOver, DriverShut, WaitOutcome};
use crate::reactor::{
    directions::{Direction, Directions},
    poller::{Edge, Event, Interest, Poller},
    readiness::wake_all,
};
use rustix::fd::{AsFd, BorrowedFd};
use std::{
    collections::VecDeque,
    io,
    sync::{Arc, Condvar, Mutex, MutexGuard},
    task::{Wake, Waker},
    thread,
    time::{Duration, Instant},
};

/// What can be submitted. The user data is a key.
#[derive(Clone, Copy, Debug)]
enum Operation {
    Watch(u64, Interest),
    Cancel(u64),
    Timeout(u64),
}

/// A completion. `goes_on`: the operation of that key may complete again.
#[derive(Clone, Copy, Debug)]
struct Completion {
    event: Event,
    goes_on: bool,
}

/// The kernel's side, and the two queues between it and the poller.
#[derive(Debug, Default)]
struct Table {
    submitted: VecDeque<Operation>,
    completed: VecDeque<Completion>,
    /// Operations under way.
    watches: Vec<(u64, Interest)>,
    timeout: Option<u64>,
    /// Descriptors that are ready, by key.
    ready: Vec<(u64, Edge)>,
    now: u64,
    /// How many completions of descriptors there were.
    edges: usize,
    /// What the poller keeps: notifications that no thread has taken.
    notifications: u32,
}

impl Table {
    /// The kernel looks at what was submitted.
    fn submit(&mut self) {
        while let Some(operation) = self.submitted.pop_front() {
            match operation {
                Operation::Watch(key, interest) => {
                    self.watches.push((key, interest));
                    let ready = self.ready.iter().filter(|(of, _)| *of == key);
                    for (_, edge) in ready.copied().collect::<Vec<_>>() {
                        self.complete(key, edge);
                    }
                }
                Operation::Cancel(key) => self.watches.retain(|(of, _)| *of != key),
                Operation::Timeout(at) => self.timeout = Some(at),
            }
        }
        if self.timeout.is_some_and(|at| at <= self.now) {
            self.timeout = None;
            self.completed.push_back(Completion {
                event: Event::Timer,
                goes_on: false,
            });
        }
    }

    /// A descriptor became ready: the operation that watches it completes.
    fn complete(&mut self, key: u64, edge: Edge) {
        let wants = |interest: Interest| {
            edge.readable && interest.contains(Interest::READ)
                || edge.writable && interest.contains(Interest::WRITE)
        };
        let found = self.watches.iter().position(|w| w.0 == key && wants(w.1));
        let Some(place) = found else {
            return;
        };
        self.edges += 1;
        let goes_on = !self.edges.is_multiple_of(3);
        if !goes_on {
            self.watches.remove(place);
        }
        self.completed.push_back(Completion {
            event: Event::Ready(key, edge),
            goes_on,
        });
    }
}

/// The poller.
#[derive(Debug)]
struct Ring {
    table: Mutex<Table>,
    came: Condvar,
    /// What each key is watched for, to submit it anew.
    interests: Mutex<Vec<(u64, Interest)>>,
    origin: Instant,
}

impl Ring {
    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap()
    }

    fn submit(&self, operation: Operation) {
        self.table().submitted.push_back(operation);
        self.came.notify_all();
    }

    /// The descriptor under this key becomes readable.
    fn becomes_readable(&self, key: u64) {
        let edge = Edge {
            readable: true,
            writable: false,
            exceptional: false,
        };
        let mut table = self.table();
        table.submit();
        table.ready.retain(|(of, _)| *of != key);
        table.ready.push((key, edge));
        table.complete(key, edge);
    }

    /// Its data has been read.
    fn is_drained(&self, key: u64) {
        self.table().ready.retain(|(of, _)| *of != key);
    }

    fn pass(&self, nanos: u64) {
        self.table().now += nanos;
    }

    fn want(&self, key: u64, interest: Option<Interest>) {
        let mut interests = self.interests.lock().unwrap();
        interests.retain(|(of, _)| *of != key);
        interests.extend(interest.map(|interest| (key, interest)));
    }

    /// Tells one wait of pending notifications.
    fn raise(&self) {
        let mut table = self.table();
        let is_told = |completion: &Completion| completion.event == Event::Notification;
        if !table.completed.iter().any(is_told) {
            table.completed.push_back(Completion {
                event: Event::Notification,
                goes_on: false,
            });
        }
        self.came.notify_all();
    }
}

impl Poller for Ring {
    type Batch = Vec<Event>;

    fn new() -> io::Result<Self> {
        Ok(Ring {
            table: Mutex::default(),
            came: Condvar::new(),
            interests: Mutex::default(),
            origin: Instant::now(),
        })
    }

    fn add(&self, _: BorrowedFd<'_>, key: u64, interest: Interest) -> io::Result<()> {
        self.want(key, Some(interest));
        self.submit(Operation::Watch(key, interest));
        Ok(())
    }

    fn modify(&self, fd: BorrowedFd<'_>, key: u64, interest: Interest) -> io::Result<()> {
        self.submit(Operation::Cancel(key));
        self.add(fd, key, interest)
    }

    fn remove(&self, _: BorrowedFd<'_>, key: u64) -> io::Result<()> {
        self.want(key, None);
        self.submit(Operation::Cancel(key));
        Ok(())
    }

    fn wait<'a>(
        &'a self,
        block: bool,
        batch: &'a mut Vec<Event>,
    ) -> io::Result<impl Iterator<Item = Event> + 'a> {
        let mut table = self.table();
        table.submit();
        while block && table.completed.is_empty() {
            table = self.came.wait(table).unwrap();
            table.submit();
        }
        batch.clear();
        while let Some(Completion { event, goes_on }) = table.completed.pop_front() {
            if let Event::Ready(key, _) = event
                && !goes_on
            {
                // Before the edge is given out: nobody above submits it.
                let interests = self.interests.lock().unwrap();
                let again = interests.iter().filter(|(of, _)| *of == key);
                let again = again.map(|(_, interest)| Operation::Watch(key, *interest));
                table.submitted.extend(again);
            }
            batch.push(event);
        }
        drop(table);
        Ok(batch.drain(..))
    }

    fn rest(&self, _: Duration) -> io::Result<bool> {
        Ok(self.take_notification(true))
    }

    fn postpone(&self, _: Duration) {}

    fn notify(&self) {
        self.table().notifications += 1;
        self.raise();
    }

    fn take_notification(&self, wanted: bool) -> bool {
        let mut table = self.table();
        let takes = wanted && table.notifications > 0;
        table.notifications -= u32::from(takes);
        let are_left = table.notifications > 0;
        drop(table);
        if are_left {
            self.raise();
        }
        takes
    }

    fn program_timer(&self, at: u64) {
        self.submit(Operation::Timeout(at));
    }

    fn now(&self) -> u64 {
        self.table().now
    }

    fn nanoseconds(&self, at: Instant) -> u64 {
        at.saturating_duration_since(self.origin).as_nanos() as u64
    }

    fn instant(&self, at: u64) -> Instant {
        self.origin + Duration::from_nanos(at)
    }
}

/// Writes its name into the log when it is woken.
struct Named(&'static str, Arc<Mutex<Vec<&'static str>>>);

impl Wake for Named {
    fn wake(self: Arc<Self>) {
        self.1.lock().unwrap().push(self.0);
    }
}

/// A driver over the ring, and what was woken.
struct Test {
    driver: Arc<DriverOver<Ring>>,
    log: Arc<Mutex<Vec<&'static str>>>,
}

impl Test {
    fn new() -> Self {
        Test {
            driver: DriverOver::new().unwrap(),
            log: Arc::default(),
        }
    }

    fn ring(&self) -> &Ring {
        &self.driver.poller
    }

    fn waker(&self, name: &'static str) -> Waker {
        Arc::new(Named(name, self.log.clone())).into()
    }

    /// A descriptor that is not ready, with its key.
    fn source(&self) -> (Arc<Directions>, u64) {
        let directions = Arc::new(Directions::default());
        let readiness = directions.of(Direction::Read);
        assert!(readiness.retract(readiness.look()));
        let fd = io::stdin();
        let key = self
            .driver
            .watch(fd.as_fd(), Interest::READ, directions.clone());
        (directions, key.unwrap())
    }

    /// Waits in `directions` for something to read.
    fn reads(&self, directions: &Directions, name: &'static str) {
        let readiness = directions.of(Direction::Read);
        let _ = readiness.retract(readiness.look());
        assert!(readiness.wait(&mut None, &self.waker(name)));
    }

    /// What one wait brings, and which wakers.
    fn wait(&self, block: bool) -> (WaitOutcome, Vec<&'static str>) {
        let mut ready = Vec::new();
        let outcome = self.driver.wait(block, &mut ready).unwrap();
        wake_all(&mut ready);
        (outcome, std::mem::take(&mut self.log.lock().unwrap()))
    }
}

fn events(events: usize) -> WaitOutcome {
    WaitOutcome {
        events,
        ..WaitOutcome::default()
    }
}

#[test]
fn completions_wake_in_their_order() {
    let test = Test::new();
    let (first, second) = (test.source(), test.source());
    test.reads(&first.0, "first");
    test.reads(&second.0, "second");
    assert_eq!(test.wait(false), (events(0), vec![]));
    test.ring().becomes_readable(second.1);
    test.ring().becomes_readable(first.1);
    assert_eq!(test.wait(true), (events(2), vec!["second", "first"]));
}

#[test]
fn an_operation_that_is_over_is_submitted_anew_and_no_edge_is_lost() {
    let test = Test::new();
    let (directions, key) = test.source();
    for _ in 0..20 {
        test.reads(&directions, "reader");
        test.ring().becomes_readable(key);
        assert_eq!(test.wait(true).1, ["reader"]);
        test.ring().is_drained(key);
        assert!(test.wait(false).1.is_empty());
    }
    test.reads(&directions, "late");
    while !test.ring().table().watches.is_empty() {
        test.ring().becomes_readable(key);
    }
    // No operation is under way: what comes now is found by the next one.
    test.ring().is_drained(key);
    test.ring().becomes_readable(key);
    assert_eq!(test.wait(true).1, ["late"]);
    test.reads(&directions, "later");
    assert_eq!(test.wait(true).1, ["later"]);
}

#[test]
fn a_cancelled_operations_completion_is_dropped() {
    let test = Test::new();
    let (directions, key) = test.source();
    test.reads(&directions, "reader");
    test.ring().becomes_readable(key);
    test.driver.forget(io::stdin().as_fd(), key);
    assert_eq!(test.wait(false), (events(0), vec![]));
    assert!(!test.driver.has_interest());
}

#[test]
fn a_thread_is_noted_as_awake_before_the_next_timer_is_set() {
    let test = Test::new();
    let [first, second] = [1000, 2000].map(|nanos| test.ring().instant(nanos));
    test.driver.add_timer(first, &test.waker("first")).unwrap();
    test.driver
        .add_timer(second, &test.waker("second"))
        .unwrap();
    assert_eq!(test.wait(false), (events(0), vec![]));
    test.ring().pass(1000);
    let mut ready = Vec::new();
    let next = || test.ring().table().submitted.len();
    let (outcome, submitted) = test.driver.wait_until(true, &mut ready, next).unwrap();
    assert_eq!((outcome, submitted, next()), (events(1), 0, 1));
}

#[test]
fn timers_and_relief_share_one_timeout() {
    let test = Test::new();
    let at = |nanos| test.ring().instant(nanos);
    let add = |nanos, name| test.driver.add_timer(at(nanos), &test.waker(name)).unwrap();
    add(3000, "third");
    add(1000, "first");
    let second = add(2000, "second");
    test.driver.arm_relief(Duration::from_nanos(1500));
    assert_eq!(test.wait(false), (events(0), vec![]));
    test.ring().pass(1000);
    assert_eq!(test.wait(true), (events(1), vec!["first"]));
    test.driver.cancel_timer(second);
    test.ring().pass(500);
    assert!(test.wait(true).0.relief);
    test.ring().pass(1500);
    assert_eq!(test.wait(true), (events(1), vec!["third"]));
    assert!(!test.driver.has_interest());
}

#[test]
fn each_notification_ends_one_wait() {
    let test = Test::new();
    let waits: Vec<_> = (0..3)
        .map(|_| {
            let driver = test.driver.clone();
            thread::spawn(move || driver.wait(true, &mut Vec::new()).unwrap().notified)
        })
        .collect();
    (0..4).for_each(|_| test.driver.notify());
    for wait in waits {
        assert!(wait.join().unwrap());
    }
    assert!(test.wait(true).0.notified);
}

#[test]
fn a_shutdown_wakes_all_and_refuses_what_comes_later() {
    let test = Test::new();
    let (directions, _) = test.source();
    test.reads(&directions, "reader");
    let moment = test.ring().instant(9);
    test.driver.add_timer(moment, &test.waker("timer")).unwrap();
    test.driver.shutdown();
    assert_eq!(*test.log.lock().unwrap(), ["reader", "timer"]);
    let refused = test.driver.add_timer(moment, &test.waker("late"));
    assert_eq!(refused.err(), Some(DriverShut));
}
