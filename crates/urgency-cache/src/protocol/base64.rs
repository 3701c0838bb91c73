//! Base 64 with padding, for binary keys in meta commands.

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

const NOT_A_DIGIT: u8 = 0xff;

const DIGITS: [u8; 256] = {
    let mut digits = [NOT_A_DIGIT; 256];
    let mut value = 0;
    while value < 64 {
        digits[ALPHABET[value] as usize] = value as u8;
        value += 1;
    }
    digits
};

/// Appends the encoding of `bytes`.
pub fn push_encoded(out: &mut Vec<u8>, bytes: &[u8]) {
    for group in bytes.chunks(3) {
        let byte = |i: usize| u32::from(group.get(i).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for position in 0..4 {
            let digit = (bits >> (18 - 6 * position)) & 63;
            let padding = position > group.len();
            out.push(if padding {
                b'='
            } else {
                ALPHABET[digit as usize]
            });
        }
    }
}

/// Decodes `text` into the beginning of `into` and returns what was decoded; `None` if it is no base 64, is empty, or
/// does not fit.
///
/// As in memcached, a character that is no digit is passed over, padding counts as a digit, and what follows padding
/// is not read.
#[must_use]
pub fn decode<'b>(text: &[u8], into: &'b mut [u8]) -> Option<&'b [u8]> {
    let digits = || {
        text.iter()
            .filter(|&&c| c == b'=' || DIGITS[usize::from(c)] != NOT_A_DIGIT)
    };
    let count = digits().count();
    if count == 0 || !count.is_multiple_of(4) {
        return None;
    }
    let (mut length, mut bits, mut padding) = (0, 0u32, 0);
    for (index, &character) in digits().enumerate() {
        let digit = if character == b'=' {
            0
        } else {
            DIGITS[usize::from(character)]
        };
        padding += usize::from(character == b'=');
        bits = bits << 6 | u32::from(digit);
        if index % 4 < 3 {
            continue;
        }
        // The first byte is of the group before.
        let bytes = bits.to_be_bytes();
        let bytes = bytes[1..]
            .get(..3 - padding.min(3))
            .filter(|_| padding < 3)?;
        into.get_mut(length..length + bytes.len())?
            .copy_from_slice(bytes);
        length += bytes.len();
        if padding > 0 {
            break;
        }
    }
    Some(&into[..length])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded(bytes: &[u8]) -> String {
        let mut out = Vec::new();
        push_encoded(&mut out, bytes);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn the_examples_of_rfc_4648_hold_both_ways() {
        for (bytes, text) in [
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="),
            ("foobar", "Zm9vYmFy"),
        ] {
            assert_eq!(encoded(bytes.as_bytes()), text);
            assert_eq!(decode(text.as_bytes(), &mut [0; 8]), Some(bytes.as_bytes()));
        }
    }

    #[test]
    fn what_is_encoded_decodes_to_itself() {
        let bytes: Vec<u8> = (0..=255).collect();
        for length in 1..bytes.len() {
            let text = encoded(&bytes[..length]);
            assert_eq!(
                decode(text.as_bytes(), &mut [0; 256]),
                Some(&bytes[..length])
            );
        }
    }

    #[test]
    fn what_is_no_digit_is_passed_over_and_what_follows_padding_is_not_read() {
        for text in ["Zm8=", "Z-m8=", "Zm8=!", "Zm8=Zm9v", " Z m 8 ="] {
            assert_eq!(
                decode(text.as_bytes(), &mut [0; 8]),
                Some(&b"fo"[..]),
                "{text:?}"
            );
        }
    }

    #[test]
    fn text_that_is_no_base_64_or_does_not_fit_is_refused() {
        for text in ["", "Z", "Zg", "Zg=", "Zm 9", "Z===", "====", "Zm9\u{e9}"] {
            assert_eq!(decode(text.as_bytes(), &mut [0; 16]), None, "{text:?}");
        }
        assert_eq!(decode(b"Zm9v", &mut [0; 2]), None);
    }
}
