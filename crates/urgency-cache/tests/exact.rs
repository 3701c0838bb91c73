//! Answers that are memcached 1.6.18's, byte for byte: what random requests showed to differ once.

mod common;

use common::{Running, cases::CASES};

#[test]
fn every_case_is_answered_as_memcached_answers_it() {
    for (about, requests) in CASES {
        println!("{about}");
        let running = Running::new();
        let mut client = running.client();
        for (request, answer) in *requests {
            client.ask(format!("{request}mn\r\n"), format!("{answer}MN\r\n"));
        }
    }
}

#[test]
fn what_is_left_of_an_item_s_time_is_negative_in_a_look_at_it() {
    let running = Running::new();
    let mut client = running.client();
    client.ask("set k 0 100 1\r\nx\r\n", "STORED\r\n");
    client.ask("me k\r\n", "ME k exp=-100 la=0 cas=1 fetch=no cls=1 size=");
}
