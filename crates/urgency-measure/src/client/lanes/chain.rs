//! Requests with a little work between request and reply.
//!
//! Both are 16 bytes: a sequence number and, little-endian as well, a key (request) or the answer (reply).
//! The work is a chain of dependent multiplications that no compiler can shorten, some 30 µs long. The client
//! knows the answers to the [`KEYS`] keys that it asks for, so each reply is checked.

/// Bytes of a request and of a reply.
pub const MESSAGE: usize = 16;

/// Requests ask for keys below this.
pub const KEYS: u64 = 16;

const STEPS: u32 = 16_000;

/// The request with this sequence number: for the key of that number.
pub fn request(sequence: u64) -> [u8; MESSAGE] {
    message(sequence, sequence % KEYS)
}

/// The reply to a request whose answer is known.
pub fn reply_with(sequence: u64, answer: u64) -> [u8; MESSAGE] {
    message(sequence, answer)
}

/// The server's work: from a request to its reply.
pub fn reply(request: &[u8; MESSAGE]) -> [u8; MESSAGE] {
    let (sequence, key) = parse(request);
    message(sequence, answer(key))
}

/// The sequence number and the key or answer of a message.
pub fn parse(message: &[u8; MESSAGE]) -> (u64, u64) {
    let whole = u128::from_le_bytes(*message);
    (whole as u64, (whole >> 64) as u64)
}

/// What is to be computed for `key`.
pub fn answer(key: u64) -> u64 {
    (0..STEPS).fold(key ^ 0x9e37_79b9_7f4a_7c15, |x, _| {
        (x ^ (x >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9)
    })
}

fn message(first: u64, second: u64) -> [u8; MESSAGE] {
    (u128::from(second) << 64 | u128::from(first)).to_le_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_has_the_number_of_its_request_and_the_answer_to_its_key() {
        for sequence in u64::MAX - KEYS..u64::MAX {
            let reply = reply(&request(sequence));
            assert_eq!(parse(&reply), (sequence, answer(sequence % KEYS)));
        }
    }

    #[test]
    fn keys_have_different_answers() {
        let mut answers: Vec<_> = (0..KEYS).map(answer).collect();
        answers.sort_unstable();
        answers.dedup();
        assert_eq!(answers.len() as u64, KEYS);
    }
}
