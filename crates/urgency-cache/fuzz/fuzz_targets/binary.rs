//! The binary protocol's parser: it never panics, uses no more than it was given, asks only for more than it has, and
//! reads a stream the same whole as in two pieces.
#![no_main]

use libfuzzer_sys::fuzz_target;
use urgency_cache::protocol::{Limits, Next, binary};

const LIMITS: Limits = Limits { value_max: 100 };

fn requests(stream: &[u8], cut: usize) -> Vec<String> {
    let mut seen = Vec::new();
    let (mut start, mut skip) = (0, 0u64);
    for end in [cut.min(stream.len()), stream.len()] {
        loop {
            let skipped = skip.min((end - start) as u64);
            skip -= skipped;
            start += skipped as usize;
            if skip > 0 || start == end {
                break;
            }
            match binary::parse(&stream[start..end], LIMITS) {
                Next::Incomplete { at_least } => {
                    assert!(at_least > end - start);
                    break;
                }
                Next::Request { request, length, swallow } => {
                    assert!(0 < length && length <= end - start);
                    seen.push(format!("{request:?}"));
                    (start, skip) = (start + length, swallow);
                }
                Next::Close { .. } => return seen,
            }
        }
    }
    seen
}

fuzz_target!(|input: (u16, &[u8])| {
    let (cut, stream) = input;
    // A stream that does not begin like a request ends at its first byte.
    let mut stream = stream.to_vec();
    if let Some(first) = stream.first_mut() {
        *first = binary::REQUEST;
    }
    assert_eq!(requests(&stream, usize::from(cut)), requests(&stream, stream.len()));
});
