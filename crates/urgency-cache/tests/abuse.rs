//! Clients that misbehave: they get an error or a closed connection, and nobody else notices.

mod common;

use common::{Client, Running};
use std::{
    io::{ErrorKind, Read, Write},
    net::{Shutdown, TcpStream},
    thread,
    time::Duration,
};
use urgency_cache::{
    server::{ALLOWANCE, Settings},
    store::Limits,
};

/// Somebody else is served.
fn others_are_served(running: &Running) {
    running.client().ask(
        "set other 0 0 2\r\nok\r\nget other\r\n",
        "STORED\r\nVALUE other 0 2\r\nok\r\nEND\r\n",
    );
}

#[test]
fn a_client_that_never_reads_stops_being_served_and_costs_no_memory() {
    let running = Running::new();
    let mut greedy = running.client();
    let value = "x".repeat(500_000);
    greedy.ask(format!("set big 0 0 500000\r\n{value}\r\n"), "STORED\r\n");
    // Answers of 100 GB, if somebody took them.
    let line = format!("get{}\r\n", " big".repeat(1000));
    greedy
        .stream
        .set_write_timeout(Some(Duration::from_millis(300)))
        .unwrap();
    for _ in 0..200 {
        if greedy.stream.write_all(line.as_bytes()).is_err() {
            break;
        }
    }
    others_are_served(&running);
    let mut other = running.client();
    let served = other.stat("cmd_get");
    thread::sleep(Duration::from_millis(200));
    assert!(
        other.stat("cmd_get") - served < 1000,
        "it goes on for a client that does not read"
    );
    let memory = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: u64 = memory.split(' ').nth(1).unwrap().parse().unwrap();
    assert!(pages * 4096 < 400 << 20, "{pages} pages are resident");
}

#[test]
fn a_length_of_two_gigabytes_is_refused_and_reserves_nothing() {
    let running = Running::new();
    let mut client = running.client();
    client.ask(
        "set k 0 0 2147483645\r\n",
        "SERVER_ERROR object too large for cache\r\n",
    );
    client.send(vec![b'x'; 1 << 20]);
    others_are_served(&running);
    let mut client = running.client();
    client.ask(
        "set k 0 0 2147483647\r\n",
        "CLIENT_ERROR bad command line format\r\n",
    );
    client.ask(
        "set k 0 0 -1\r\n",
        "CLIENT_ERROR bad command line format\r\n",
    );
    let mut binary = running.client();
    let mut header = vec![0x80, 0x01, 0, 1, 8, 0, 0, 0];
    header.extend_from_slice(&u32::MAX.to_be_bytes());
    header.extend_from_slice(&[0; 12]);
    header.extend_from_slice(&[0; 9]);
    let mut answer = vec![0x81, 0x01, 0, 0, 0, 0, 0, 3, 0, 0, 0, 10];
    answer.extend_from_slice(&[0; 12]);
    answer.extend_from_slice(b"Too large.");
    binary.ask(header, answer);
    others_are_served(&running);
}

#[test]
fn settings_without_a_bound_serve_as_others() {
    let settings = Settings {
        item_size_max: usize::MAX,
        requests_per_turn: 0,
        idle_timeout: Some(Duration::MAX),
        ..Settings::default()
    };
    let running = Running::with(settings, &Limits::default());
    others_are_served(&running);
}

#[test]
fn a_key_that_is_too_long_is_an_error_and_the_next_request_is_served() {
    let running = Running::new();
    let mut client = running.client();
    let long = "k".repeat(251);
    let wrong = "CLIENT_ERROR bad command line format\r\n";
    client.ask(format!("get {long}\r\n"), wrong);
    client.ask(format!("get a {long} b\r\n"), wrong);
    client.ask(
        format!("delete {long}\r\nmg {long} v\r\n"),
        [wrong, wrong].concat(),
    );
    let right = &long[1..];
    client.ask(
        format!("set {right} 0 0 1\r\nx\r\nget {right}\r\n"),
        format!("STORED\r\nVALUE {right} 0 1\r\nx\r\nEND\r\n"),
    );
}

#[test]
fn a_line_without_an_end_ends_the_connection() {
    let running = Running::new();
    let mut client = running.client();
    // It may be closed while this is sent.
    let _ = client.stream.write_all("set ".repeat(20_000).as_bytes());
    let last = client.rest();
    assert!(
        last.is_empty() || last == b"CLIENT_ERROR line too long\r\n",
        "{}",
        last.escape_ascii()
    );
    let mut client = running.client();
    let keys = "get".to_owned() + &" key".repeat(20_000) + "\r\n";
    client.ask(keys, "END\r\n");
    let mut browser = running.client();
    browser.send("GET / HTTP/1.1\r\n");
    assert_eq!(browser.rest(), b"");
    others_are_served(&running);
}

#[test]
fn a_client_that_sends_byte_by_byte_or_half_a_request_holds_up_nobody() {
    let running = Running::new();
    let mut slow = running.client();
    let mut half: Vec<_> = (0..50).map(|_| running.client()).collect();
    for client in &mut half {
        client.send("set k 0 0 1000\r\nabc");
    }
    for byte in b"set s 0 0 3\r\nabc\r\nget s\r\n" {
        slow.send([*byte]);
        thread::sleep(Duration::from_millis(1));
    }
    slow.expect("STORED\r\nVALUE s 0 3\r\nabc\r\nEND\r\n");
    // Clients that leave in the middle of a value have stored nothing.
    for client in &mut half {
        client.stream.shutdown(Shutdown::Write).unwrap();
        assert_eq!(client.rest(), b"");
    }
    running.client().ask("get k\r\n", "END\r\n");
}

/// As many clients as there is memory for, and a few more, each begin to send a value of a million bytes and stop.
/// Another one's is stored all the same, and as many of the silent ones as were in its way are told that they have lost
/// their places.
#[track_caller]
fn silent_clients_lose_their_places(request: &[u8], refusal: &[u8]) {
    let running = Running::new();
    let mut silent: Vec<_> = (0..68).map(|_| running.client()).collect();
    for client in &mut silent {
        let stream = &mut client.stream;
        stream
            .set_write_timeout(Some(Duration::from_millis(100)))
            .unwrap();
        client.send(request);
        // A connection that has to wait for memory is not read from.
        let _ = client.stream.write_all(&vec![b'x'; 600_000]);
    }
    // The kernel takes all of it at once. Others that came before the server has read it would be in time.
    running.wait_for_held(ALLOWANCE);
    for _ in 0..2 {
        let value = "y".repeat(900_000);
        let mut other = running.client();
        other.ask(format!("set k 0 0 900000\r\n{value}\r\n"), "STORED\r\n");
        others_are_served(&running);
    }
    // Each has 1 MiB, so 64 have places: four silent ones and another one wait.
    let told = silent.iter_mut().filter_map(told).collect::<Vec<_>>();
    assert!((1..=5).contains(&told.len()), "{} are told", told.len());
    for answer in told {
        assert_eq!(answer, refusal.escape_ascii().to_string());
    }
}

/// What a client was told, if anything.
fn told(client: &mut Client) -> Option<String> {
    let timeout = Some(Duration::from_millis(20));
    client.stream.set_read_timeout(timeout).unwrap();
    let mut answer = [0; 100];
    match client.stream.read(&mut answer) {
        Ok(length) => Some(answer[..length].escape_ascii().to_string()),
        Err(error) if error.kind() == ErrorKind::WouldBlock => None,
        Err(error) => panic!("the end of the connection overtook the answer: {error}"),
    }
}

#[test]
fn silent_clients_with_large_values_lose_their_places_to_others() {
    silent_clients_lose_their_places(
        b"set k 0 0 1000000\r\n",
        b"SERVER_ERROR out of memory reading request\r\n",
    );
}

#[test]
fn a_binary_client_is_told_of_a_lack_of_memory_in_its_own_protocol() {
    let mut header = vec![0x80, 0x01, 0, 1, 8, 0, 0, 0];
    header.extend_from_slice(&1_000_000u32.to_be_bytes());
    header.extend_from_slice(b"abcd");
    header.extend_from_slice(&[0; 8 + 8]);
    header.push(b'k');
    let mut refusal = vec![0x81, 0x01, 0, 0, 0, 0, 0, 0x82, 0, 0, 0, 29];
    refusal.extend_from_slice(b"abcd\0\0\0\0\0\0\0\0out of memory reading request");
    silent_clients_lose_their_places(&header, &refusal);
}

#[test]
fn clients_that_do_not_read_large_values_lose_their_places_to_others() {
    let running = Running::new();
    let value = "x".repeat(900_000);
    let mut other = running.client();
    other.ask(format!("set k 0 0 900000\r\n{value}\r\n"), "STORED\r\n");
    // Each protocol, and each way to a value; many, because the kernel's buffers hold much.
    let requests = ["get k\r\n", "mg k v\r\n", "gat 0 k\r\n", "mg k v T0\r\n"];
    let silent: Vec<_> = (0..80)
        .map(|number| {
            let mut client = running.client();
            client.send(requests[number % requests.len()].repeat(20));
            client
        })
        .collect();
    let answer = format!("VALUE k 0 900000\r\n{value}\r\nEND\r\n");
    // 74 of the 80 have a share, and when the kernel's buffers are full the others wait. The server accepts them
    // between what it sends to those before.
    let are_accepted = || running.server.total_connections() == 81;
    let has_ended_some = || are_accepted() && running.server.open_connections() <= 80;
    for _ in 0..2000 {
        if has_ended_some() {
            break;
        }
        thread::sleep(Duration::from_millis(10));
    }
    assert!(has_ended_some(), "{:?} are held", running.server.held());
    for _ in 0..2 {
        other.ask("get k\r\n", &answer);
        assert!(running.server.held().1 <= ALLOWANCE);
    }
    let left = running.server.open_connections();
    assert!(left > 40, "{left} of 81 connections are left");
    drop(silent);
    other.wait_for("curr_connections", 1);
    assert_eq!(running.server.held(), (0, 0));
}

#[test]
fn a_burst_of_large_values_waits_for_memory_and_none_is_refused() {
    let running = Running::new();
    let value = "x".repeat(1_000_000);
    let set = format!("set k 0 0 1000000\r\n{value}\r\nget k\r\n");
    let answer = format!("STORED\r\nVALUE k 0 1000000\r\n{value}\r\nEND\r\n");
    thread::scope(|scope| {
        for _ in 0..100 {
            scope.spawn(|| running.client().ask(&set, &answer));
        }
    });
    assert_eq!(running.client().stat("cmd_set"), 100);
}

#[test]
fn one_connection_too_many_is_told_so_and_room_is_made_by_leaving() {
    let settings = Settings {
        connections_max: 10,
        ..Settings::default()
    };
    let running = Running::with(settings, &Limits::default());
    let mut clients: Vec<_> = (0..10).map(|_| running.client()).collect();
    for client in &mut clients {
        client.ask("mn\r\n", "MN\r\n");
    }
    assert_eq!(
        running.client().rest(),
        b"ERROR Too many open connections\r\n"
    );
    assert_eq!(clients[0].stat("rejected_connections"), 1);
    clients.pop();
    clients[0].wait_for("curr_connections", 9);
    running.client().ask("mn\r\n", "MN\r\n");
}

#[test]
fn connections_too_many_wait_for_those_before_them_if_that_was_asked_for() {
    let settings = Settings {
        connections_max: 1,
        refuse_too_many: false,
        ..Settings::default()
    };
    let mut clients = Vec::new();
    // All are in the kernel's queue before the listener looks for the first time.
    let running = Running::after(settings, &Limits::default(), 1, |address| {
        clients.extend((0..5).map(|_| Client::connect(address)));
    });
    for mut client in clients {
        client.ask("mn\r\n", "MN\r\n");
        assert_eq!(running.server.open_connections(), 1);
    }
    let mut last = running.client();
    last.ask("mn\r\n", "MN\r\n");
    assert_eq!(last.stat("rejected_connections"), 0);
    assert_eq!(last.stat("total_connections"), 6);
}

#[test]
fn connections_that_come_and_go_leave_nothing_behind() {
    let running = Running::new();
    for round in 0..300 {
        let mut stream = TcpStream::connect(running.address).unwrap();
        match round % 3 {
            0 => {}
            1 => stream.write_all(b"get k\r\n").unwrap(),
            _ => stream.write_all(b"set k 0 0 10\r\nab").unwrap(),
        }
    }
    let mut client = running.client();
    for _ in 0..10_000 {
        if client.stat("total_connections") == 301 && client.stat("curr_connections") == 1 {
            return;
        }
        thread::sleep(Duration::from_millis(1));
    }
    panic!(
        "of 301 connections {} came and {} are left",
        client.stat("total_connections"),
        client.stat("curr_connections")
    );
}
