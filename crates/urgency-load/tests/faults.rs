//! What the client says about servers that are right, wrong, slow, silent or gone. No test asserts an absolute time of
//! the machine; tests assert only the times that their own server imposes.

#![allow(missing_docs)]

mod common;

use common::{Fault, start, start_unix};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::{thread, time::Duration};
use urgency_load::protocol::Protocol;
use urgency_load::{
    Arrivals, Client, Error, LAG, Load, Outcome, Pace, REQUEST, Server, Timing, Trouble,
};
use urgency_measure::events::Event;

const KEYS: u32 = 200;

fn load(server: Server) -> Load {
    let mut load = Load::new(server);
    load.connections = 4;
    load.class = urgency_load::class::Class::Normal;
    load.workload.keys = KEYS;
    load.workload.values = "0-300".parse().expect("a range");
    load
}

fn timing(seconds: f64) -> Timing {
    Timing {
        ramp: Duration::ZERO,
        grace: Duration::from_millis(300),
        ..Timing::seconds(seconds)
    }
}

fn client(load: Load) -> Client {
    let mut client = Client::connect(load).expect("the server listens");
    client
        .fill(&mut |_| ())
        .expect("the server stores all keys");
    client
}

/// Server and client are one process, so there are three descriptors for each connection.
fn allow_descriptors() {
    let limit = getrlimit(Resource::Nofile);
    let wanted = Some(4096);
    if limit.current.is_some() && limit.current < wanted {
        let current = wanted.min(limit.maximum.or(wanted));
        setrlimit(Resource::Nofile, Rlimit { current, ..limit }).expect("up to the hard limit");
    }
}

fn open(load: Load, per_s: f64, seconds: f64) -> Result<Outcome, Error> {
    let pace = Pace::Open(per_s, Arrivals::Poisson);
    client(load).run(pace, &timing(seconds), &mut |_| ())
}

#[test]
fn a_right_server_is_found_without_fault_over_every_transport_and_protocol() {
    let path = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("right.sock");
    for server in [start(Fault::None), start_unix(&path)] {
        for protocol in [Protocol::Text, Protocol::Meta] {
            for pace in [Pace::Closed, Pace::Open(2000.0, Arrivals::Uniform)] {
                let mut load = load(server.clone());
                load.protocol = protocol;
                load.threads = 2;
                load.workload.gets = 0.6;
                let outcome = client(load).run(pace, &timing(0.3), &mut |_| ());
                let outcome = outcome.expect("nothing breaks");
                let counts = &outcome.counts;
                assert!(outcome.is_clean(), "{:?}", outcome.counts);
                assert_eq!(counts.gets, counts.hits);
                assert!(
                    counts.stored > 100 && counts.hits > counts.stored,
                    "{counts:?}"
                );
                assert_eq!(counts.answered, counts.gets + counts.stored);
            }
        }
    }
}

#[test]
fn the_open_loop_asks_at_its_rate_and_keeps_the_mix() {
    let outcome = open(load(start(Fault::None)), 2000.0, 1.0).expect("nothing breaks");
    let counts = &outcome.counts;
    // The standard deviation of a Poisson count of 2000 is 45.
    assert!((1775..2225).contains(&counts.requests), "{counts:?}");
    assert_eq!(counts.answered, counts.requests);
    assert!((1570..2030).contains(&counts.gets), "{counts:?}");
    assert_eq!(outcome.latency.count, counts.requests);
    assert_eq!(outcome.offered_per_s, Some(2000.0));
}

#[test]
fn a_value_with_one_wrong_bit_is_reported() {
    let outcome = open(load(start(Fault::WrongBit(500))), 2000.0, 0.5).expect("goes on");
    assert!(outcome.counts.wrong_values > 0, "{:?}", outcome.counts);
    assert!(outcome.counts.wrong_values < outcome.counts.gets);
    let fault = outcome.first_fault.expect("it has words");
    assert!(fault.contains("differs at byte"), "{fault}");
}

#[test]
fn another_keys_value_is_reported() {
    let outcome = open(load(start(Fault::OtherKey(1))), 2000.0, 0.3).expect("goes on");
    assert!(outcome.counts.wrong_values > 0, "{:?}", outcome.counts);
}

#[test]
fn a_forgotten_set_is_reported_as_a_stale_value() {
    let mut load = load(start(Fault::Forgets(KEYS as usize + 1)));
    load.workload.gets = 0.5;
    let outcome = open(load, 2000.0, 0.5).expect("goes on");
    assert!(outcome.counts.stale_values > 0, "{:?}", outcome.counts);
    assert_eq!(outcome.counts.wrong_values, 0, "{:?}", outcome.counts);
    let fault = outcome.first_fault.expect("it has words");
    assert!(fault.contains("had been acknowledged"), "{fault}");
}

#[test]
fn server_errors_are_counted_and_kept_in_words() {
    let mut load = load(start(Fault::Full(KEYS as usize + 1)));
    load.workload.gets = 0.5;
    let outcome = open(load, 2000.0, 0.3).expect("goes on");
    let counts = &outcome.counts;
    assert!(counts.server_errors > 0 && counts.stored == 0, "{counts:?}");
    assert_eq!(
        counts.faults(),
        0,
        "the old values are still right: {:?}",
        outcome.counts
    );
    let fault = outcome.first_fault.expect("it has words");
    assert!(fault.contains("out of memory"), "{fault}");
}

#[test]
fn a_stall_shows_in_the_latency_of_every_request_that_came_due_meanwhile() {
    let pause = Duration::from_millis(400);
    let mut load = load(start(Fault::Stalls(200, pause)));
    load.workload.gets = 1.0;
    let outcome = open(load, 1000.0, 1.0).expect("nothing breaks");
    // About 400 requests come due during the stall; half of them wait for more than half of it. A client that
    // waited for the server before it asked again would see no more than one for each connection.
    let counts = outcome.latency.histogram_ns.iter();
    let long = counts
        .filter(|(ns, _)| *ns > 150_000_000)
        .map(|(_, count)| count);
    let long: u64 = long.sum();
    assert!((180..400).contains(&long), "{long}");
    assert!(
        outcome.latency.max_ms >= 380.0,
        "{}",
        outcome.latency.max_ms
    );
    assert_eq!(outcome.counts.unanswered, 0);
}

#[test]
fn more_requests_than_the_pipeline_takes_wait_in_the_client_and_count() {
    let pause = Duration::from_millis(300);
    let mut load = load(start(Fault::Stalls(100, pause)));
    load.workload.gets = 1.0;
    load.pipeline = 1;
    load.connections = 1;
    let outcome = open(load, 1000.0, 0.8).expect("nothing breaks");
    let counts = outcome.latency.histogram_ns.iter();
    let long = counts
        .filter(|(ns, _)| *ns > 100_000_000)
        .map(|(_, count)| count);
    let long: u64 = long.sum();
    assert!(long > 120, "{long}");
    assert_eq!(outcome.counts.answered, outcome.counts.requests);
}

#[test]
fn requests_without_a_reply_are_counted_with_the_time_that_they_waited() {
    let mut load = load(start(Fault::Mute(300)));
    load.workload.gets = 1.0;
    let mut client = client(load);
    let pace = Pace::Open(1000.0, Arrivals::Uniform);
    let outcome = client
        .run(pace, &timing(0.6), &mut |_| ())
        .expect("goes on");
    let counts = &outcome.counts;
    assert_eq!(counts.answered + counts.unanswered, counts.requests);
    assert!(counts.unanswered >= 200, "{counts:?}");
    assert!(outcome.latency.max_ms >= 500.0, "{:?}", outcome.counts);
    assert!(!outcome.is_clean());
    // The connections with missing replies are opened again for the next run.
    let again = client
        .run(pace, &timing(0.2), &mut |_| ())
        .expect("goes on");
    assert_eq!(again.counts.answered, 0);
}

#[test]
fn a_closed_connection_ends_the_run_with_an_error_that_says_what_is_missing() {
    match open(load(start(Fault::Closes(100))), 2000.0, 1.0) {
        Err(Error::Client(Trouble::Closed { awaited, .. })) => assert!(awaited > 0),
        other => panic!("{other:?}"),
    }
}

#[test]
fn nonsense_and_misunderstanding_end_the_run_with_the_servers_words() {
    match open(load(start(Fault::Babbles(50))), 2000.0, 1.0) {
        Err(error @ Error::Malformed { .. }) => {
            assert!(error.to_string().contains("HTTP/1.1 400"), "{error}");
        }
        other => panic!("{other:?}"),
    }
    match open(load(start(Fault::NoGets)), 2000.0, 1.0) {
        Err(error @ Error::Refused { .. }) => {
            assert!(error.to_string().contains("a get"), "{error}");
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_server_that_does_not_listen_is_an_error_with_its_address() {
    let server: Server = "127.0.0.1:1".parse().expect("an address");
    let error = Client::connect(load(server)).expect_err("nobody listens on port 1");
    let text = error.to_string();
    assert!(text.contains("127.0.0.1:1 cannot be reached"), "{text}");
    let server = Server::Unix("/nonexistent/cache.sock".into());
    let error = Client::connect(load(server)).expect_err("there is no such socket");
    assert!(
        error.to_string().contains("/nonexistent/cache.sock"),
        "{error}"
    );
}

#[test]
fn impossible_loads_are_refused_with_the_option_and_what_is_allowed() {
    let server = || start(Fault::None);
    let refused = |change: fn(&mut Load), option: &str| {
        let mut load = load(server());
        change(&mut load);
        let error = Client::connect(load).expect_err(option);
        assert!(error.is_usage(), "{error}");
        let text = error.to_string();
        assert!(
            text.starts_with(option) && text.contains("allowed"),
            "{text}"
        );
    };
    refused(|load| load.connections = 0, "--connections 0");
    refused(|load| load.connections = 10_001, "--connections 10001");
    refused(|load| load.threads = 5, "--threads 5");
    refused(|load| load.pipeline = 0, "--pipeline 0");
    refused(|load| load.workload.key_size = 2, "--key-size 2");
    refused(|load| load.workload.key_size = 251, "--key-size 251");
    refused(|load| load.workload.gets = 1.5, "--gets 1.5");
}

#[test]
fn a_run_that_panics_is_no_hang() {
    let mut load = load(start(Fault::None));
    load.threads = 2;
    let mut client = Client::connect(load).expect("the server listens");
    let timing = Timing {
        duration: Duration::MAX,
        ..timing(1.0)
    };
    // The end of such a run is beyond what an `Instant` holds.
    let run = thread::spawn(move || client.run(Pace::Closed, &timing, &mut |_| ()).is_ok());
    for _ in 0..4000 {
        if run.is_finished() {
            assert!(run.join().is_err(), "the panic of a thread is the run's");
            return;
        }
        thread::sleep(Duration::from_millis(5));
    }
    panic!("the run waits for a thread that has panicked");
}

#[test]
fn a_fill_that_the_server_refused_is_an_error_and_accuses_nobody_later() {
    let server = start(Fault::Full(3 * KEYS as usize + 1));
    let mut first = Client::connect(load(server.clone())).expect("the server listens");
    for _ in 0..3 {
        first.fill(&mut |_| ()).expect("the server stores all keys");
    }
    let mut second = load(server);
    second.workload.gets = 1.0;
    let mut second = Client::connect(second).expect("the server listens");
    match second.fill(&mut |_| ()) {
        Err(error @ Error::Fill { stored: 0, .. }) => {
            assert!(error.to_string().contains("out of memory"), "{error}");
        }
        other => panic!("{other:?}"),
    }
    // The values are the first client's.
    let outcome = second.run(Pace::Closed, &timing(0.1), &mut |_| ());
    let counts = outcome.expect("goes on").counts;
    assert!(counts.hits > 0 && counts.faults() == 0, "{counts:?}");
}

#[test]
fn a_closed_run_after_an_open_one_sleeps_while_it_waits() {
    let mut load = load(start(Fault::Mute(1)));
    load.workload.gets = 1.0;
    let mut client = client(load);
    let pace = Pace::Open(1000.0, Arrivals::Uniform);
    client
        .run(pace, &timing(0.2), &mut |_| ())
        .expect("goes on");
    let outcome = client.run(Pace::Closed, &timing(0.5), &mut |_| ());
    let busy = outcome.expect("goes on").client.busy_share;
    assert!(busy < 0.1, "{busy}");
}

#[test]
fn a_thousand_connections_are_served() {
    allow_descriptors();
    let mut load = load(start(Fault::None));
    load.connections = 1000;
    load.threads = 2;
    let outcome = open(load, 3000.0, 0.5).expect("nothing breaks");
    assert!(outcome.is_clean(), "{:?}", outcome.counts);
}

#[test]
fn a_client_that_logs_has_each_request_of_the_open_loop_once_and_by_both_clocks() {
    let mut client = client(load(start(Fault::None)));
    let pace = Pace::Open(500.0, Arrivals::Uniform);
    let silent = client
        .run(pace, &timing(0.2), &mut |_| ())
        .expect("it answers");
    assert!(silent.events.is_empty());
    client.log_requests(true);
    let outcome = client
        .run(pace, &timing(0.2), &mut |_| ())
        .expect("it answers");
    let of = |series: &str| outcome.events.of(series);
    let (requests, served) = (of(REQUEST), of("request_served"));
    assert_eq!(requests.len() as u64, outcome.counts.requests);
    assert_eq!(served.len(), requests.len());
    assert_eq!(of(LAG).len(), requests.len());
    // What a request waited in the client, and its reply there, is in the client's latency only.
    let shorter = |(own, seen): (&Event, &Event)| own.due == seen.due && own.latency < seen.latency;
    assert!(served.iter().zip(requests).all(shorter));
}
