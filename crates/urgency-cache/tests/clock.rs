//! What time does to items and connections.
//!
//! The tests stop the server's clock and move it themselves, so it does not matter how slow the machine is.

mod common;

use common::{Client, Running};
use std::{io::Read, thread, time::Duration};
use urgency_cache::{server::Settings, store::Limits};

const BIG: usize = 1_000_000;

/// A server whose clock stands still, with a large item.
fn stopped(idle_timeout: Option<Duration>) -> (Running, Client) {
    let settings = Settings {
        idle_timeout,
        ..Settings::default()
    };
    let running = Running::with(settings, &Limits::default());
    running.server.clock.stop(true);
    let mut client = running.client();
    let value = "v".repeat(BIG);
    client.ask(format!("set big 0 0 {BIG}\r\n{value}\r\n"), "STORED\r\n");
    (running, client)
}

fn read(client: &mut Client, count: usize) {
    client.stream.read_exact(&mut vec![0; count]).unwrap();
}

#[test]
fn what_expires_while_a_client_does_not_read_is_not_served_afterwards() {
    let item = format!("VALUE big 0 {BIG}\r\n").len() + BIG + 2;
    let (requests, length) = ("get big\r\n".repeat(64) + "get a\r\n", 64 * (item + 5));
    let keys = format!("get{} a\r\n", " big".repeat(64));
    for (request, length) in [(requests, length), (keys, 64 * item)] {
        let (running, mut client) = stopped(None);
        client.ask("set a 0 5 1\r\nx\r\n", "STORED\r\n");
        // More than fits into the buffers between the two.
        client.send(&request);
        read(&mut client, 1);
        running.server.clock.shift(100);
        read(&mut client, length - 1);
        client.expect("END\r\n");
    }
}

#[test]
fn a_silent_client_is_closed_after_the_time_and_not_before_it_is_over() {
    let timeouts = [Duration::from_millis(1), Duration::from_secs(1)];
    let servers = timeouts.map(|timeout| stopped(Some(timeout)));
    for (running, _) in &servers {
        // The client was heard in the last second: perhaps a moment ago.
        running.server.clock.shift(1);
    }
    thread::sleep(Duration::from_millis(1500));
    for (running, mut client) in servers {
        client.ask("mn\r\n", "MN\r\n");
        running.server.clock.shift(2);
        assert_eq!(client.rest(), b"");
        assert_eq!(running.client().stat("idle_kicks"), 1);
    }
}

#[test]
fn a_client_that_takes_a_long_answer_slowly_is_not_silent() {
    let (running, mut client) = stopped(Some(Duration::from_secs(1)));
    client.send("get big\r\n".repeat(150));
    let answer = format!("VALUE big 0 {BIG}\r\n").len() + BIG + 2 + 5;
    for part in 1..=75 {
        read(&mut client, 2 * answer);
        thread::sleep(Duration::from_millis(40));
        // Since the last time more was read than fits into the buffers, so the server has written.
        if part % 18 == 0 {
            running.server.clock.shift(1);
        }
    }
    client.ask("mn\r\n", "MN\r\n");
}

#[test]
fn what_requests_make_by_themselves_gives_its_memory_back_when_it_expires() {
    for (command, answer) in [("ma", "HD\r\n"), ("mg", "HD W\r\n")] {
        let running = Running::new();
        running.server.clock.stop(true);
        let mut client = running.client();
        let made = (1..400).find(|number| {
            client.ask(format!("{command} {number} N1\r\n"), answer);
            running.server.clock.shift(100);
            thread::sleep(Duration::from_millis(20));
            client.stat("curr_items") < *number
        });
        assert!(made.is_some(), "{command}: the crawler does not come");
    }
}
