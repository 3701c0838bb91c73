//! What clients get, over real sockets: the text, meta and binary protocols, TCP and UDP.

mod common;

use common::Running;
use std::net::UdpSocket;

#[test]
fn a_session_of_the_text_protocol_is_answered_as_by_memcached() {
    let running = Running::new();
    let mut client = running.client();
    client.ask("set a 5 0 3\r\none\r\n", "STORED\r\n");
    client.ask("get a b\r\n", "VALUE a 5 3\r\none\r\nEND\r\n");
    client.ask(
        "add a 0 0 1\r\nx\r\nadd b 0 0 1\r\ny\r\n",
        "NOT_STORED\r\nSTORED\r\n",
    );
    client.ask("replace c 0 0 1\r\nx\r\n", "NOT_STORED\r\n");
    client.ask(
        "append a 0 0 1\r\n!\r\nprepend a 0 0 1\r\n?\r\nget a\r\n",
        "STORED\r\nSTORED\r\nVALUE a 5 5\r\n?one!\r\nEND\r\n",
    );
    client.ask(
        "set n 0 0 2\r\n99\r\nincr n 1\r\ndecr n 1000\r\nget n\r\n",
        "STORED\r\n100\r\n0\r\nVALUE n 0 3\r\n0  \r\nEND\r\n",
    );
    client.ask(
        "incr a 1\r\n",
        "CLIENT_ERROR cannot increment or decrement non-numeric value\r\n",
    );
    client.ask(
        "incr n x\r\nincr none 1\r\n",
        "CLIENT_ERROR invalid numeric delta argument\r\nNOT_FOUND\r\n",
    );
    client.ask("touch a 0\r\ntouch none 0\r\n", "TOUCHED\r\nNOT_FOUND\r\n");
    client.ask("gat 0 b\r\n", "VALUE b 0 1\r\ny\r\nEND\r\n");
    client.ask("delete a\r\ndelete a\r\n", "DELETED\r\nNOT_FOUND\r\n");
    client.ask(
        "set k 0 0 1 noreply\r\nz\r\nget k\r\n",
        "VALUE k 0 1\r\nz\r\nEND\r\n",
    );
    client.ask("set old 0 -1 1\r\nz\r\nget old\r\n", "STORED\r\nEND\r\n");
    client.ask("flush_all\r\nget k\r\n", "OK\r\nEND\r\n");
    client.ask(
        "verbosity 0\r\nnonsense\r\n\r\n",
        "OK\r\nERROR\r\nERROR\r\n",
    );
    client.ask(
        "set a 0 0 1\r\nxyz\r\n",
        "CLIENT_ERROR bad data chunk\r\nERROR\r\n",
    );
    client.ask("shutdown\r\n", "ERROR: shutdown not enabled\r\n");
    client.send("quit\r\nget a\r\n");
    assert_eq!(client.rest(), b"");
}

#[test]
fn what_was_flushed_gives_its_memory_back_though_nobody_asks_for_it() {
    let running = Running::new();
    let mut client = running.client();
    for key in 0..500 {
        client.ask(format!("set {key} 0 0 2\r\nab\r\n"), "STORED\r\n");
    }
    assert_eq!(client.stat("curr_items"), 500);
    client.ask("flush_all\r\n", "OK\r\n");
    client.ask("set new 0 0 2\r\nab\r\n", "STORED\r\n");
    client.wait_for("curr_items", 1);
    client.ask("get new\r\n", "VALUE new 0 2\r\nab\r\nEND\r\n");
}

#[test]
fn a_version_that_has_changed_is_not_overwritten() {
    let running = Running::new();
    let (mut one, mut other) = (running.client(), running.client());
    one.ask("set k 0 0 1\r\na\r\n", "STORED\r\n");
    one.ask("mg k c\r\n", "HD c1\r\n");
    one.ask("gets k\r\n", "VALUE k 0 1 1\r\na\r\nEND\r\n");
    other.ask("cas k 0 0 1 1\r\nb\r\n", "STORED\r\n");
    one.ask("cas k 0 0 1 1\r\nc\r\n", "EXISTS\r\n");
    one.ask("cas none 0 0 1 1\r\nc\r\n", "NOT_FOUND\r\n");
    one.ask("get k\r\n", "VALUE k 0 1\r\nb\r\nEND\r\n");
}

#[test]
fn a_meta_session_tells_which_client_may_fetch_afresh() {
    let running = Running::new();
    let mut client = running.client();
    client.ask("mg k N30 t v\r\n", "VA 0 t30 W\r\n\r\n");
    client.ask("mg k N30 v\r\n", "VA 0 Z\r\n\r\n");
    client.ask("ms k 2 T0 F9\r\nhi\r\n", "HD\r\n");
    client.ask(
        "mg k s t f v k Oabc\r\n",
        "VA 2 s2 t-1 f9 kk Oabc\r\nhi\r\n",
    );
    client.ask("md k I T30\r\n", "HD\r\n");
    client.ask(
        "mg k v\r\nmg k v\r\n",
        "VA 2 X W\r\nhi\r\nVA 2 Z X\r\nhi\r\n",
    );
    client.ask(
        "mg none k O1\r\nmg none q\r\nmn\r\n",
        "EN knone O1\r\nMN\r\n",
    );
    client.ask(
        "ma n N0 J13 v\r\nma n v D30\r\nma n MD D100 v q\r\nmn\r\n",
        "VA 2\r\n13\r\nVA 2\r\n43\r\nMN\r\n",
    );
    client.ask(
        "ms YWI= 1 b\r\nx\r\nget ab\r\nmg YWI= b k v\r\n",
        "HD\r\nVALUE ab 0 1\r\nx\r\nEND\r\nVA 1 kYWI= b\r\nx\r\n",
    );
    client.ask(
        "ms k 1 ME\r\nx\r\nms k 1 MZ\r\nx\r\n",
        "NS\r\nCLIENT_ERROR invalid mode for ms M token\r\n",
    );
    client.ask(
        "mg k v v\r\nms k 1 Tx\r\nx\r\nmn\r\n",
        "CLIENT_ERROR duplicate flag\r\nCLIENT_ERROR bad token in command line format\r\nMN\r\n",
    );
}

#[test]
fn a_look_at_a_stale_item_shows_what_was_before_it() {
    let running = Running::new();
    let mut client = running.client();
    client.ask("ms k 2\r\nhi\r\nmd k I\r\n", "HD\r\nHD\r\n");
    client.ask("mg k h\r\nmg k h\r\n", "HD h0 X W\r\nHD h1 Z X\r\n");
    assert_eq!(client.stat("get_hits"), 2);
}

#[test]
fn an_add_to_what_is_there_does_not_count_as_a_read() {
    let running = Running::new();
    let mut client = running.client();
    client.ask("ms k 2\r\nhi\r\n", "HD\r\n");
    client.ask(
        "add k 0 0 1\r\nx\r\nadd k 0 0 1\r\nx\r\nms k 1 ME\r\nx\r\n",
        "NOT_STORED\r\nNOT_STORED\r\nNS\r\n",
    );
    client.ask("mg k h v\r\n", "VA 2 h0\r\nhi\r\n");
}

#[test]
fn a_value_that_could_not_be_stored_marks_nothing_stale() {
    let running = Running::with_item_size_max(4096);
    let mut client = running.client();
    client.ask("ms k 2\r\nhi\r\nms k 2\r\nho\r\n", "HD\r\nHD\r\n");
    client.ask(
        format!("ms k 4090 C1 I\r\n{}\r\n", "x".repeat(4090)),
        "SERVER_ERROR object too large for cache\r\n",
    );
    // As in memcached, not even the item that was there is left.
    client.ask("mg k v\r\n", "EN\r\n");
    client.ask("ms k 2\r\nho\r\n", "HD\r\n");
    // Version 0 is none, and so not an earlier one.
    client.ask("ms k 2 C0 I\r\nxx\r\nmg k v\r\n", "EX\r\nVA 2\r\nho\r\n");
    client.ask(
        "ms k 2 C1 I\r\nxx\r\nmg k v\r\n",
        "HD\r\nVA 2 X W\r\nxx\r\n",
    );
}

#[test]
fn what_is_sent_in_pieces_is_counted_like_the_rest() {
    let running = Running::new();
    let mut client = running.client();
    let value = "v".repeat(100_000);
    client.ask(format!("set big 0 0 100000\r\n{value}\r\n"), "STORED\r\n");
    client.ask(
        "get big\r\n",
        format!("VALUE big 0 100000\r\n{value}\r\nEND\r\n"),
    );
    let written = client.stat("bytes_written");
    assert!(written > 100_000, "{written}");
}

fn packet(opcode: u8, cas: u64, extras: &[u8], key: &str, value: &str) -> Vec<u8> {
    let body = extras.len() + key.len() + value.len();
    let mut packet = vec![
        0x80,
        opcode,
        0,
        key.len() as u8,
        extras.len() as u8,
        0,
        0,
        0,
    ];
    packet.extend_from_slice(&(body as u32).to_be_bytes());
    packet.extend_from_slice(b"abcd");
    packet.extend_from_slice(&cas.to_be_bytes());
    packet.extend_from_slice(extras);
    packet.extend_from_slice(key.as_bytes());
    packet.extend_from_slice(value.as_bytes());
    packet
}

fn answer(opcode: u8, status: u8, cas: u64, extras: &[u8], key: &str, value: &str) -> Vec<u8> {
    let mut answer = packet(opcode, cas, extras, key, value);
    (answer[0], answer[7]) = (0x81, status);
    answer
}

#[test]
fn a_session_of_the_binary_protocol_is_answered_as_by_memcached() {
    let running = Running::new();
    let mut client = running.client();
    client.ask(
        packet(0x01, 0, &[0, 0, 0, 7, 0, 0, 0, 0], "k", "value"),
        answer(0x01, 0, 1, &[], "", ""),
    );
    client.ask(
        packet(0x0c, 0, &[], "k", ""),
        answer(0x0c, 0, 1, &[0, 0, 0, 7], "k", "value"),
    );
    client.ask(
        packet(0x00, 0, &[], "x", ""),
        answer(0x00, 1, 0, &[], "", "Not found"),
    );
    // Quiet misses say nothing; the no-op tells that they are over.
    let quiet = [
        packet(0x09, 0, &[], "x", ""),
        packet(0x0d, 0, &[], "x", ""),
        packet(0x0a, 0, &[], "", ""),
    ];
    client.ask(quiet.concat(), answer(0x0a, 0, 0, &[], "", ""));
    client.ask(
        packet(0x01, 99, &[0; 8], "k", "v"),
        answer(0x01, 2, 0, &[], "", "Data exists for key."),
    );
    client.ask(
        packet(0x4f, 0, &[], "", "unknown"),
        answer(0x4f, 0x81, 0, &[], "", "Unknown command"),
    );
    client.ask(
        packet(0x21, 0, &[], "PLAIN", "secret"),
        answer(0x21, 0x81, 0, &[], "", "Unknown command"),
    );
    client.ask(
        packet(0x04, 0, &[], "k", ""),
        answer(0x04, 0, 0, &[], "", ""),
    );
    // A key where none may be: an error, and the end.
    client.ask(
        packet(0x0a, 0, &[], "k", ""),
        answer(0x0a, 4, 0, &[], "", "Invalid arguments"),
    );
    assert_eq!(client.rest(), b"");
}

#[test]
fn a_value_of_exactly_the_limit_is_stored_and_a_larger_one_replaced_by_nothing() {
    let running = Running::with_item_size_max(4096);
    let mut client = running.client();
    client.ask("set k 0 0 3\r\nold\r\n", "STORED\r\n");
    client.ask(
        format!("set k 0 0 4097\r\n{}\r\n", "x".repeat(4097)),
        "SERVER_ERROR object too large for cache\r\n",
    );
    client.ask("get k\r\n", "END\r\n");
    let value = "y".repeat(3800);
    client.ask(format!("set k 0 0 3800\r\n{value}\r\n"), "STORED\r\n");
    client.ask("get k\r\n", format!("VALUE k 0 3800\r\n{value}\r\nEND\r\n"));
}

#[test]
fn a_datagram_is_a_request_and_a_long_answer_is_several() {
    let running = Running::new();
    let value = "v".repeat(5000);
    running
        .client()
        .ask(format!("set big 0 0 5000\r\n{value}\r\n"), "STORED\r\n");
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket
        .set_read_timeout(Some(std::time::Duration::from_secs(20)))
        .unwrap();
    // The first is no frame, and concerns nobody.
    for datagram in [&b"\0\0"[..], b"\x12\x34\0\0\0\x01\0\0get big\r\n"] {
        socket.send_to(datagram, running.udp).unwrap();
    }
    let mut answer = Vec::new();
    let mut buffer = [0; 2000];
    for number in 0..4 {
        let length = socket.recv(&mut buffer).unwrap();
        assert_eq!(buffer[..8], [0x12, 0x34, 0, number, 0, 4, 0, 0]);
        answer.extend_from_slice(&buffer[8..length]);
    }
    assert_eq!(
        answer,
        format!("VALUE big 0 5000\r\n{value}\r\nEND\r\n").into_bytes()
    );
}

#[test]
fn the_value_of_a_refused_request_is_no_request_in_a_datagram_either() {
    let running = Running::new();
    let mut client = running.client();
    client.ask("set stays 0 0 2\r\nok\r\n", "STORED\r\n");
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket
        .set_read_timeout(Some(std::time::Duration::from_secs(20)))
        .unwrap();
    let flush = packet(0x08, 0, &[], "", "");
    let mut unknown = packet(0x4f, 0, &[], "", "");
    unknown[11] = flush.len() as u8;
    for (request, answer) in [
        (
            b"ms k 9 Zbad\r\nflush_all\r\n".to_vec(),
            b"CLIENT_ERROR invalid flag\r\n".to_vec(),
        ),
        (
            b"set k 0 0 2000000\r\nflush_all\r\n".to_vec(),
            b"SERVER_ERROR object too large for cache\r\n".to_vec(),
        ),
        (
            [unknown, flush].concat(),
            self::answer(0x4f, 0x81, 0, &[], "", "Unknown command"),
        ),
    ] {
        let datagram = [&b"\x12\x34\0\0\0\x01\0\0"[..], &request].concat();
        socket.send_to(&datagram, running.udp).unwrap();
        let mut buffer = [0; 2000];
        let length = socket.recv(&mut buffer).unwrap();
        assert_eq!(
            buffer[8..length].escape_ascii().to_string(),
            answer.escape_ascii().to_string()
        );
        client.ask("get stays\r\n", "VALUE stays 0 2\r\nok\r\nEND\r\n");
    }
}

#[test]
fn the_one_class_has_all_numbers_that_a_monitor_asks_of_a_class() {
    let running = Running::new();
    let mut client = running.client();
    client.ask(
        "set a 0 0 1\r\nx\r\nset n 0 0 1\r\n1\r\nget a\r\nincr n 1\r\n",
        "STORED\r\nSTORED\r\nVALUE a 0 1\r\nx\r\nEND\r\n2\r\n",
    );
    for name in [
        "chunk_size",
        "chunks_per_page",
        "total_pages",
        "total_chunks",
        "used_chunks",
        "free_chunks",
        "free_chunks_end",
        "delete_hits",
        "decr_hits",
        "cas_hits",
        "cas_badval",
        "touch_hits",
    ] {
        client.stat_of("slabs", &format!("1:{name}"));
    }
    for (name, value) in [("cmd_set", 2), ("get_hits", 1), ("incr_hits", 1)] {
        assert_eq!(
            client.stat_of("slabs", &format!("1:{name}")),
            value,
            "{name}"
        );
    }
    for name in ["tailrepairs", "lrutail_reflocked"] {
        assert_eq!(client.stat_of("items", &format!("items:1:{name}")), 0);
    }
}

#[test]
fn a_command_of_many_keys_may_have_a_long_line_and_another_may_not() {
    let running = Running::new();
    let keys = " key".repeat(100_000);
    for command in ["get", "gets", "gat 0", "gats 0", "bget", "  gat 0"] {
        let mut client = running.client();
        client.ask(format!("{command}{keys}\r\n"), "END\r\n");
    }
    for command in ["delete", "getx", "gatsx", "mg"] {
        let mut client = running.client();
        client.send(format!("{command}{}", &keys[..5000]));
        let rest = String::from_utf8(client.rest()).unwrap();
        assert_eq!(rest, "CLIENT_ERROR line too long\r\n", "{command}");
    }
}

#[test]
fn a_refused_command_about_the_server_answers_though_its_last_word_is_noreply() {
    let running = Running::new();
    let mut client = running.client();
    for (request, answer) in [
        ("slabs x noreply", "ERROR\r\n"),
        ("slabs noreply", "ERROR\r\n"),
        ("slabs reassign 1 2 noreply", "ERROR\r\n"),
        (
            "slabs reassign 1 noreply",
            "CLIENT_ERROR bad command line format\r\n",
        ),
        ("slabs automove 7 noreply", ""),
        ("slabs automove 1 noreply", ""),
        ("lru mode bad noreply", ""),
        ("lru_crawler noreply", "ERROR\r\n"),
        ("lru_crawler enable noreply", "ERROR\r\n"),
        ("lru_crawler crawl all noreply", "ERROR\r\n"),
        ("lru_crawler metadump all noreply", "ERROR\r\n"),
    ] {
        client.ask(format!("{request}\r\nmn\r\n"), format!("{answer}MN\r\n"));
    }
}

#[test]
fn a_memory_limit_that_is_too_low_is_answered_with_the_least_that_is_possible() {
    let running = Running::new();
    let mut client = running.client();
    client.ask(
        "cache_memlimit 7\r\n",
        "MEMLIMIT_TOO_SMALL cannot set maxbytes to less than 8m\r\n",
    );
    client.ask(
        "cache_memlimit 8\r\n",
        "MEMLIMIT_TOO_SMALL cannot set maxbytes to less than 9m\r\n",
    );
    client.ask("cache_memlimit 9\r\n", "OK\r\n");
    let running = Running::with_item_size_max(20 << 20);
    running.client().ask(
        "cache_memlimit 39\r\n",
        "MEMLIMIT_TOO_SMALL cannot set maxbytes to less than 40m\r\n",
    );
}

#[test]
fn the_counts_of_prefixes_end_with_end_in_the_binary_protocol_as_well() {
    let running = Running::new();
    let mut client = running.client();
    client.ask(
        packet(0x10, 0, &[], "detail on", ""),
        answer(0x10, 0, 0, &[], "", ""),
    );
    client.ask(
        packet(0x01, 0, &[0; 8], "a:b", ""),
        answer(0x01, 0, 1, &[], "", ""),
    );
    let dump = answer(
        0x10,
        0,
        0,
        &[],
        "detailed",
        "PREFIX a get 0 hit 0 set 1 del 0\r\nEND\r\n",
    );
    client.ask(
        packet(0x10, 0, &[], "detail dump", ""),
        [dump, answer(0x10, 0, 0, &[], "", "")].concat(),
    );
}
