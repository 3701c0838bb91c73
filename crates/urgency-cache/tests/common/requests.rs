//! Random requests of each protocol on few keys: most are right, and some are not.
//!
//! What docs/cache.md lists as known to differ from memcached is left out.

use fastrand::Rng;

fn pick<'a>(rng: &mut Rng, from: &[&'a str]) -> &'a str {
    from[rng.usize(..from.len())]
}

const KEYS: &[&str] = &["a", "b", "n", "n", "YWI=", "bg=="];
const NUMBERS: &[&str] = &[
    "0",
    "1",
    "7",
    "42",
    "100",
    "99",
    "18446744073709551615",
    "00000000000000000010",
];
const ODD_NUMBERS: &[&str] = &[
    "",
    "-1",
    "x",
    "+5",
    "4294967296",
    "4294967301",
    "-4294967295",
    "99999999999999999999",
    "\t3",
    "3\t",
    "0x1",
    "-9223372036854775809",
    "1.5",
    "--1",
];

/// Seconds to live, most often sensible ones.
fn ttl(rng: &mut Rng) -> &'static str {
    if rng.usize(..12) == 0 {
        return pick(rng, ODD_NUMBERS);
    }
    pick(
        rng,
        &["0", "0", "100", "200", "300", "-1", "2592000", "2592001"],
    )
}

fn number(rng: &mut Rng) -> &'static str {
    if rng.usize(..8) == 0 {
        return pick(rng, ODD_NUMBERS);
    }
    pick(rng, NUMBERS)
}

/// A value and its announcement, which is wrong now and then.
fn value(rng: &mut Rng) -> (String, String) {
    let value = if rng.bool() {
        pick(rng, NUMBERS)
    } else {
        pick(rng, &["", "hello", "12 x", "x\n", "   8"])
    };
    let length = match rng.usize(..40) {
        0 => value.len() + 1,
        1 => value.len().saturating_sub(1),
        2 => return (pick(rng, ODD_NUMBERS).to_owned(), value.to_owned()),
        _ => value.len(),
    };
    (length.to_string(), value.to_owned())
}

fn meta_flags(rng: &mut Rng, letters: &str) -> String {
    let mut letters: Vec<char> = letters.chars().collect();
    if rng.usize(..30) == 0 {
        letters.extend("kszA1O".chars());
    }
    rng.shuffle(&mut letters);
    let count = if rng.usize(..60) == 0 {
        letters.len()
    } else {
        rng.usize(0..=letters.len().min(6))
    };
    let mut flags = String::new();
    for letter in &letters[..count] {
        let token = match letter {
            'T' | 'N' | 'R' => ttl(rng).to_owned(),
            'F' | 'J' | 'D' => number(rng).to_owned(),
            'C' => {
                if rng.usize(..10) == 0 {
                    number(rng).to_owned()
                } else {
                    rng.usize(0..12).to_string()
                }
            }
            'M' => pick(
                rng,
                &[
                    "S", "E", "A", "P", "R", "I", "D", "+", "-", "e", "i", "X", "", "SS",
                ],
            )
            .to_owned(),
            'O' if rng.usize(..10) == 0 => "o".repeat(rng.usize(30..34)),
            'O' => "op1".to_owned(),
            _ => String::new(),
        };
        flags += &format!(" {letter}{token}");
    }
    flags
}

/// The request, or now and then one with a wrong byte in its line.
fn mutated(rng: &mut Rng, request: String) -> Vec<u8> {
    let mut request = request.into_bytes();
    // A flush that is no more or less one would leave the CAS ids apart.
    if rng.usize(..15) == 0 && !request.starts_with(b"flush") {
        let line = request
            .iter()
            .position(|&byte| byte == b'\r')
            .expect("a line");
        let at = rng.usize(..=line);
        let byte = *rng.choice(b" 0aqvTNkb-+\t=O\x7f\xff").expect("some");
        match rng.usize(..3) {
            0 => request.insert(at, byte),
            1 if at < line => request[at] = byte,
            _ if at < line => _ = request.remove(at),
            _ => {}
        }
    }
    request
}

/// A request of the meta commands.
pub fn meta(rng: &mut Rng) -> Vec<u8> {
    let key = pick(rng, KEYS);
    let long = "k".repeat(251);
    let key = if rng.usize(..150) == 0 { &long } else { key };
    let request = match rng.usize(..12) {
        0..5 => format!("mg {key}{}\r\n", meta_flags(rng, "bcfhklOqstuvNTR")),
        5..8 => {
            let (length, value) = value(rng);
            format!(
                "ms {key} {length}{}\r\n{value}\r\n",
                meta_flags(rng, "bckOqFITCM")
            )
        }
        8 => format!("md {key}{}\r\n", meta_flags(rng, "bkOqITC")),
        9..11 => {
            let flags = meta_flags(rng, "bctkOqvNJDTCM");
            // memcached loses the new time to live of a number that becomes longer.
            let flags = if flags.contains(" T") && flags.contains(" N") {
                flags.replace(" T", " P")
            } else {
                flags
            };
            let mode = if flags.contains(" T") { " MD" } else { "" };
            let flags = if mode.is_empty() {
                flags
            } else {
                flags.replace(" M", " P")
            };
            format!("ma {key}{mode}{flags}\r\n")
        }
        _ => format!("me {key}{}\r\n", pick(rng, &["", " b", " x", " b b"])),
    };
    mutated(rng, request)
}

/// A request of the text protocol.
pub fn text(rng: &mut Rng) -> Vec<u8> {
    let key = pick(rng, KEYS);
    let long = "k".repeat(251);
    let key = if rng.usize(..150) == 0 { &long } else { key };
    let quiet = if rng.usize(..6) == 0 { " noreply" } else { "" };
    let request = match rng.usize(..24) {
        0..5 => format!(
            "{} {key}{}\r\n",
            pick(rng, &["get", "gets", "gets", "bget"]),
            pick(rng, &["", " a", " n b"])
        ),
        5..7 => format!(
            "{} {}{}\r\n",
            pick(rng, &["gat", "gats"]),
            ttl(rng),
            pick(rng, &["", " a", " n b"])
        ),
        7..13 => {
            let (length, value) = value(rng);
            let command = pick(rng, &["set", "set", "add", "replace", "append", "prepend"]);
            format!(
                "{command} {key} {} {} {length}{quiet}\r\n{value}\r\n",
                number(rng),
                ttl(rng)
            )
        }
        13..15 => {
            let (length, value) = value(rng);
            let cas = rng.usize(0..12);
            format!(
                "cas {key} {} {} {length} {cas}{quiet}\r\n{value}\r\n",
                number(rng),
                ttl(rng)
            )
        }
        15..18 => format!(
            "{} {key} {}{quiet}\r\n",
            pick(rng, &["incr", "decr"]),
            number(rng)
        ),
        18 => format!("touch {key} {}{quiet}\r\n", ttl(rng)),
        19 => format!(
            "delete {key}{}{quiet}\r\n",
            pick(rng, &["", "", " 0", " 1", " x y"])
        ),
        20 => format!(
            "flush_all{}{quiet}\r\n",
            pick(rng, &["", " 0", " -1", " x", " 900 2"])
        ),
        21 => format!("verbosity {}{quiet}\r\n", pick(rng, &["0", "", "x"])),
        22 => format!("mg {key} s v t c f k\r\n"),
        _ => {
            let odd = [
                "",
                "\r",
                "x",
                "get",
                "gets",
                "set",
                "set a 0 0",
                "set a 0 0 1 2 3",
                "incr a",
                "touch a",
                "ms",
                "mg",
                "md",
                "ma",
                "me",
                "mx",
                "m",
                "gopher x HTTP/1.0",
                "gat",
                "delete",
                "  get   a  ",
                "cas a 0 0 1",
                "flush_all 900 2 3",
                "nonsense",
                "incr a 1 2 3",
                "SET a 0 0 1",
            ];
            format!("{}\r\n", pick(rng, &odd))
        }
    };
    mutated(rng, request)
}

/// A request of the binary protocol.
pub fn binary(rng: &mut Rng) -> Vec<u8> {
    let key = pick(rng, KEYS);
    let value = pick(rng, NUMBERS);
    let expiry = pick(rng, &["0", "100", "1"])
        .parse::<u32>()
        .expect("a number")
        .to_be_bytes();
    let expiry = if expiry[3] == 1 { [255; 4] } else { expiry };
    let flags = rng.u32(..).to_be_bytes();
    let opcode = *rng
        .choice(&[
            0u8, 1, 2, 3, 4, 5, 6, 9, 0x0a, 0x0c, 0x0d, 0x0e, 0x0f, 0x11, 0x12, 0x13, 0x14, 0x15,
            0x16, 0x19, 0x1a, 0x1c, 0x1d, 0x1e, 0x23, 0x24, 8, 0x18, 0x4f,
        ])
        .expect("some");
    let (extras, key, value) = match opcode {
        0 | 9 | 0x0c | 0x0d | 4 | 0x14 => (vec![], key, ""),
        1 | 2 | 3 | 0x11 | 0x12 | 0x13 => ([flags, expiry].concat(), key, value),
        5 | 6 | 0x15 | 0x16 => {
            let (delta, initial) = (rng.u64(..100), rng.u64(..100));
            (
                [&delta.to_be_bytes()[..], &initial.to_be_bytes(), &expiry].concat(),
                key,
                "",
            )
        }
        0x0e | 0x0f | 0x19 | 0x1a => (vec![], key, value),
        0x1c | 0x1d | 0x1e | 0x23 | 0x24 => (expiry.to_vec(), key, ""),
        _ => (vec![], "", ""),
    };
    let cas = if rng.usize(..4) == 0 {
        rng.u64(..12)
    } else {
        0
    };
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
    packet.extend_from_slice(&((extras.len() + key.len() + value.len()) as u32).to_be_bytes());
    packet.extend_from_slice(b"abcd");
    packet.extend_from_slice(&cas.to_be_bytes());
    packet.extend_from_slice(&extras);
    packet.extend_from_slice(key.as_bytes());
    packet.extend_from_slice(value.as_bytes());
    packet
}
