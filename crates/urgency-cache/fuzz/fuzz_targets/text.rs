//! The text protocol's parser: it never panics, uses no more than it was given, asks only for more than it
//! has, and reads a stream the same whole as in two pieces.
#![no_main]

use libfuzzer_sys::fuzz_target;
use urgency_cache::protocol::{Limits, Next, text};

const LIMITS: Limits = Limits { value_max: 100 };

fn requests(stream: &[u8], cut: usize) -> Vec<String> {
    let mut seen = Vec::new();
    let (mut start, mut scanned, mut skip) = (0, 0, 0u64);
    for end in [cut.min(stream.len()), stream.len()] {
        loop {
            let skipped = skip.min((end - start) as u64);
            skip -= skipped;
            start += skipped as usize;
            if skip > 0 || start == end {
                break;
            }
            match text::parse(&stream[start..end], &mut scanned, LIMITS) {
                Next::Incomplete { at_least } => {
                    assert!(at_least > end - start);
                    break;
                }
                Next::Request { request, length, swallow } => {
                    assert!(0 < length && length <= end - start);
                    seen.push(format!("{request:?}"));
                    (start, scanned, skip) = (start + length, 0, swallow);
                }
                Next::Close { .. } => return seen,
            }
        }
    }
    seen
}

fuzz_target!(|input: (u16, &[u8])| {
    let (cut, stream) = input;
    // A longer line is refused or not depending on how it comes.
    if stream.len() < text::LINE_MAX {
        assert_eq!(requests(stream, usize::from(cut)), requests(stream, stream.len()));
    } else {
        requests(stream, usize::from(cut));
    }
});
