//! However a byte stream is cut into packets, the requests are the same.

use super::{Limits, Next, binary, text};
use proptest::prelude::*;

const LIMITS: Limits = Limits { value_max: 64 };

/// The requests that a connection sees, written out, when `stream` arrives in pieces that end at `cuts`.
fn requests(
    stream: &[u8],
    cuts: &[usize],
    mut parse: impl FnMut(&[u8], &mut usize) -> Next<String>,
) -> Vec<String> {
    let mut seen = Vec::new();
    let (mut start, mut scanned, mut skip) = (0, 0, 0u64);
    let ends = cuts.iter().map(|&cut| cut.min(stream.len()));
    let mut ends: Vec<usize> = ends.chain([stream.len()]).collect();
    ends.sort_unstable();
    for end in ends {
        loop {
            let skipped = skip.min((end - start) as u64);
            skip -= skipped;
            start += skipped as usize;
            if skip > 0 || start == end {
                break;
            }
            match parse(&stream[start..end], &mut scanned) {
                Next::Incomplete { at_least } => {
                    assert!(at_least > end - start, "asks for what it has");
                    break;
                }
                Next::Request {
                    request,
                    length,
                    swallow,
                } => {
                    assert!(0 < length && length <= end - start);
                    seen.push(request);
                    start += length;
                    skip = swallow;
                    scanned = 0;
                }
                Next::Close { reply } => {
                    seen.push(format!("close {reply}"));
                    return seen;
                }
            }
        }
    }
    seen
}

fn text_requests(stream: &[u8], cuts: &[usize]) -> Vec<String> {
    requests(stream, cuts, |input, scanned| {
        owned(text::parse(input, scanned, LIMITS))
    })
}

fn binary_requests(stream: &[u8], cuts: &[usize]) -> Vec<String> {
    requests(stream, cuts, |input, _| owned(binary::parse(input, LIMITS)))
}

fn owned<R: std::fmt::Debug>(next: Next<R>) -> Next<String> {
    match next {
        Next::Incomplete { at_least } => Next::Incomplete { at_least },
        Next::Request {
            request,
            length,
            swallow,
        } => Next::Request {
            request: format!("{request:?}"),
            length,
            swallow,
        },
        Next::Close { reply } => Next::Close { reply },
    }
}

/// Lines that are mostly right, and some that are not.
fn line() -> impl Strategy<Value = Vec<u8>> {
    let word = prop_oneof![
        Just("get"),
        Just("gets"),
        Just("set"),
        Just("cas"),
        Just("add"),
        Just("append"),
        Just("mg"),
        Just("ms"),
        Just("md"),
        Just("ma"),
        Just("mn"),
        Just("delete"),
        Just("incr"),
        Just("touch"),
        Just("gat"),
        Just("flush_all"),
        Just("quit"),
        Just("k"),
        Just("key2"),
        Just("0"),
        Just("5"),
        Just("70"),
        Just("-1"),
        Just("noreply"),
        Just("v"),
        Just("q"),
        Just("T30"),
        Just("b"),
        Just("\t"),
        Just("S5"),
        Just("C7"),
        Just("Oabc"),
        Just("HTTP/1.1"),
        Just("2147483647"),
        Just(""),
    ];
    let end = prop_oneof![
        Just("\r\n"),
        Just("\n"),
        Just("\r\nhello\r\n"),
        Just("\r\n\r\n")
    ];
    (proptest::collection::vec(word, 1..8), end)
        .prop_map(|(words, end)| format!("{}{end}", words.join(" ")).into_bytes())
}

/// Packets that are mostly right, and some that are not.
fn packet() -> impl Strategy<Value = Vec<u8>> {
    let numbers = (
        0u8..0x28,
        0u16..4,
        0u8..24,
        prop_oneof![0u32..40, 60u32..100],
        0u8..16,
    );
    numbers.prop_map(|(opcode, key, extras, value, wrong)| {
        let extras = match opcode {
            1..=3 | 0x11..=0x13 if wrong > 2 => 8,
            5 | 6 if wrong > 2 => 20,
            0x1c..=0x1e | 0x23 | 0x24 if wrong > 2 => 4,
            _ if wrong > 2 => 0,
            _ => extras,
        };
        let fixed = u32::from(key) + u32::from(extras);
        let body = if wrong == 0 { value } else { fixed + value };
        let mut packet = vec![0x80, opcode];
        packet.extend_from_slice(&key.to_be_bytes());
        packet.extend_from_slice(&[extras, 0, 0, 0]);
        packet.extend_from_slice(&body.to_be_bytes());
        packet.extend_from_slice(&[7; 12]);
        packet.resize(packet.len() + body as usize, b'x');
        packet
    })
}

proptest! {
    #[test]
    fn a_text_stream_means_the_same_however_it_is_cut(
        lines in proptest::collection::vec(line(), 0..12),
        cuts in proptest::collection::vec(0usize..400, 0..40),
    ) {
        let stream = lines.concat();
        prop_assert_eq!(text_requests(&stream, &cuts), text_requests(&stream, &[]));
    }

    #[test]
    fn a_binary_stream_means_the_same_however_it_is_cut(
        packets in proptest::collection::vec(packet(), 0..8),
        cuts in proptest::collection::vec(0usize..600, 0..40),
    ) {
        let stream = packets.concat();
        prop_assert_eq!(binary_requests(&stream, &cuts), binary_requests(&stream, &[]));
    }

    #[test]
    fn arbitrary_bytes_never_panic_and_mean_the_same_however_they_are_cut(
        stream in proptest::collection::vec(any::<u8>(), 0..600),
        cuts in proptest::collection::vec(0usize..600, 0..20),
    ) {
        prop_assert_eq!(text_requests(&stream, &cuts), text_requests(&stream, &[]));
        prop_assert_eq!(binary_requests(&stream, &cuts), binary_requests(&stream, &[]));
    }
}
