//! Clients under eviction, flushes and changes of the memory limit: a get finds what was stored last, or nothing.
//!
//! Two seconds; `URGENCY_SOAK_SECONDS` says how long if it is to be longer.

mod common;

use common::{Client, Running};
use std::{
    collections::HashMap,
    env,
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    thread,
    time::{Duration, Instant},
};
use urgency_cache::store::Limits;

const KEYS: u64 = 600;
const CLIENTS: u64 = 3;
/// How long it may take until something is found and something evicted.
const MOST: Duration = Duration::from_secs(60);

/// What a client of the soak has stored: its keys are its own, so it knows.
struct Checked {
    stream: BufReader<TcpStream>,
    number: u64,
    last: HashMap<u64, (u64, usize)>,
    random: fastrand::Rng,
}

/// The value of a version of a key: it says which it is, and each part of it is checked.
fn value(client: u64, key: u64, version: u64, length: usize) -> Vec<u8> {
    let text = format!("{client}/{key}/{version};");
    text.bytes().cycle().take(length).collect()
}

impl Checked {
    fn send(&mut self, bytes: &[u8]) {
        self.stream.get_mut().write_all(bytes).unwrap();
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.stream.read_line(&mut line).unwrap();
        line
    }

    fn step(&mut self, version: u64, hits: &AtomicU64) {
        let key = self.random.u64(0..KEYS);
        let name = format!("soak{}-{key}", self.number);
        match self.random.u32(0..10) {
            0..4 => {
                let length = match self.random.u32(0..20) {
                    0 | 1 => self.random.usize(50_000..400_000),
                    _ => self.random.usize(30..4000),
                };
                let mut request = format!("set {name} 0 0 {length}\r\n").into_bytes();
                request.extend_from_slice(&value(self.number, key, version, length));
                request.extend_from_slice(b"\r\n");
                self.send(&request);
                match self.line().as_str() {
                    "STORED\r\n" => self.last.insert(key, (version, length)),
                    // What was there before must not be found either.
                    "SERVER_ERROR out of memory storing object\r\n" => self.last.remove(&key),
                    other => panic!("{other:?}"),
                };
            }
            4 => {
                self.send(format!("delete {name}\r\n").as_bytes());
                let answer = self.line();
                assert!(
                    ["DELETED\r\n", "NOT_FOUND\r\n"].contains(&answer.as_str()),
                    "{answer:?}"
                );
                self.last.remove(&key);
            }
            5 => {
                // An item that is long gone when it is stored.
                self.send(format!("set {name} 0 -1 1\r\nx\r\n").as_bytes());
                assert_eq!(self.line(), "STORED\r\n");
                self.last.remove(&key);
            }
            _ => {
                self.send(format!("get {name}\r\n").as_bytes());
                let head = self.line();
                if head == "END\r\n" {
                    // Evicted or flushed: nothing older may come back.
                    self.last.remove(&key);
                    return;
                }
                let length: usize = head.trim_end().rsplit(' ').next().unwrap().parse().unwrap();
                let mut got = vec![0; length + 2];
                self.stream.read_exact(&mut got).unwrap();
                assert_eq!(self.line(), "END\r\n");
                let Some(&(version, expected)) = self.last.get(&key) else {
                    panic!("{head:?} was deleted, expired, or a miss before");
                };
                assert_eq!(length, expected);
                assert!(
                    got[..length] == value(self.number, key, version, length),
                    "{head:?}"
                );
                hits.fetch_add(1, Relaxed);
            }
        }
    }
}

/// Ends the clients, whether the test succeeds or panics.
struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

fn disturb(client: &mut Client, random: &mut fastrand::Rng) {
    match random.u32(0..30) {
        0 => client.ask("flush_all\r\n", "OK\r\n"),
        1..10 => client.ask("cache_memlimit 8\r\n", "OK\r\n"),
        10..15 => client.ask("cache_memlimit 12\r\n", "OK\r\n"),
        15..20 => client.ask("cache_memlimit 24\r\n", "OK\r\n"),
        20..25 => client.ask("lru_crawler crawl all\r\n", "OK\r\n"),
        _ => assert!(client.stat("bytes") <= 24 << 20),
    }
}

#[test]
fn what_is_found_is_what_was_stored_last_under_eviction_flush_and_resize() {
    let seconds = env::var("URGENCY_SOAK_SECONDS")
        .ok()
        .and_then(|text| text.parse().ok());
    let duration = Duration::from_secs(seconds.unwrap_or(2));
    let limits = Limits {
        memory: 12 << 20,
        ..Limits::default()
    };
    let running = Running::with(Default::default(), &limits);
    let (stop, hits) = (AtomicBool::new(false), AtomicU64::new(0));
    thread::scope(|scope| {
        for number in 0..CLIENTS {
            let (stop, hits, running) = (&stop, &hits, &running);
            scope.spawn(move || {
                let mut client = Checked {
                    stream: BufReader::new(running.client().stream),
                    number,
                    last: HashMap::new(),
                    random: fastrand::Rng::with_seed(number),
                };
                for version in 0.. {
                    if stop.load(Relaxed) {
                        break;
                    }
                    client.step(version, hits);
                }
            });
        }
        let mut client = running.client();
        let mut random = fastrand::Rng::with_seed(99);
        let _ends = Ends(&stop);
        let start = Instant::now();
        // Longer, if the machine is so slow that it has not come to anything yet.
        let is_vain = |client: &mut Client| {
            start.elapsed() < MOST && (hits.load(Relaxed) == 0 || client.stat("evictions") == 0)
        };
        while start.elapsed() < duration || is_vain(&mut client) {
            disturb(&mut client, &mut random);
            thread::sleep(Duration::from_millis(20));
        }
    });
    let mut client = running.client();
    assert!(hits.load(Relaxed) > 0, "the soak found nothing");
    assert!(client.stat("evictions") > 0, "nothing was evicted");
    eprintln!(
        "{} hits, {} requests",
        hits.load(Relaxed),
        running.server.requests()
    );
}
