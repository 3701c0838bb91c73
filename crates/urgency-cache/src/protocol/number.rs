//! Numbers as C's `strtol` family and memcached's wrappers read them.
//!
//! Leading white space and a sign are allowed; a white-space character may follow, and whatever follows that is not
//! read. A number that does not fit 64 bits is not a number. Where the field has 32 bits, the lower 32 bits of the
//! number count, as in memcached: if `set k 4294967296 0 5` were refused, the client's value would be read as a
//! command.

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t'..=b'\r')
}

/// The sign and the digits, if the word has that form.
fn digits(word: &[u8]) -> Option<(bool, &[u8])> {
    let start = word.iter().position(|&byte| !is_space(byte))?;
    let (negative, unsigned) = match word[start..].split_first()? {
        (b'-', rest) => (true, rest),
        (b'+', rest) => (false, rest),
        _ => (false, &word[start..]),
    };
    let count = unsigned
        .iter()
        .position(|byte| !byte.is_ascii_digit())
        .unwrap_or(unsigned.len());
    let ends_well = unsigned.get(count).is_none_or(|&byte| is_space(byte));
    (count > 0 && ends_well).then(|| (negative, &unsigned[..count]))
}

/// An unsigned number of 64 bits. A negative one is not, unless it is so small that C's `strtoull` makes it positive.
#[must_use]
pub fn unsigned(word: &[u8]) -> Option<u64> {
    let (negative, digits) = digits(word)?;
    let mut value = 0u64;
    for digit in digits {
        value = value
            .checked_mul(10)?
            .checked_add(u64::from(digit - b'0'))?;
    }
    if negative {
        value = value.wrapping_neg();
    }
    let is_refused = value > i64::MAX as u64 && word.contains(&b'-');
    (!is_refused).then_some(value)
}

/// The lower 32 bits of an unsigned number.
#[must_use]
pub fn unsigned_32(word: &[u8]) -> Option<u32> {
    unsigned(word).map(|value| value as u32)
}

/// The lower 32 bits of a signed number.
#[must_use]
pub fn signed_32(word: &[u8]) -> Option<i32> {
    signed(word).map(|value| value as i32)
}

/// A signed number of 64 bits.
#[must_use]
pub fn signed(word: &[u8]) -> Option<i64> {
    let (negative, digits) = digits(word)?;
    let mut value = 0i64;
    for digit in digits {
        let digit = i64::from(digit - b'0');
        let digit = if negative { -digit } else { digit };
        value = value.checked_mul(10)?.checked_add(digit)?;
    }
    Some(value)
}

/// Appends a number in decimal.
pub fn push(out: &mut Vec<u8>, mut value: u64) {
    let mut digits = [0; 20];
    let mut start = digits.len();
    loop {
        start -= 1;
        digits[start] = b'0' + (value % 10) as u8;
        value /= 10;
        if value == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[start..]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_are_numbers_are_read_as_c_reads_them() {
        for (word, value) in [
            ("0", 0),
            ("007", 7),
            ("+5", 5),
            ("\t12", 12),
            ("3\r", 3),
            ("-0", 0),
        ] {
            assert_eq!(unsigned(word.as_bytes()), Some(value), "{word:?}");
        }
        assert_eq!(unsigned(b"18446744073709551615"), Some(u64::MAX));
        assert_eq!(signed(b"-9223372036854775808"), Some(i64::MIN));
        assert_eq!(unsigned(b"-9223372036854775809"), Some(i64::MAX as u64));
        assert_eq!(unsigned(b"12 and more"), Some(12));
        assert_eq!(unsigned_32(b"4294967295"), Some(u32::MAX));
        assert_eq!(unsigned_32(b"4294967301"), Some(5));
        assert_eq!(signed_32(b"-4294967290"), Some(6));
        assert_eq!(signed_32(b"4294967295"), Some(-1));
    }

    #[test]
    fn words_that_are_not_numbers_are_refused() {
        for word in [
            "",
            "-",
            "+",
            "x",
            "1x",
            "0x10",
            "1.5",
            "18446744073709551616",
            "-1",
            "-9223372036854775808",
            "18446744073709551615\t-",
        ] {
            assert_eq!(unsigned(word.as_bytes()), None, "{word:?}");
        }
        for word in ["", "9223372036854775808", "--1", "1-"] {
            assert_eq!(signed(word.as_bytes()), None, "{word:?}");
        }
        assert_eq!(unsigned_32(b"-1"), None);
    }

    #[test]
    fn a_number_is_written_as_it_is_read() {
        for value in [0, 9, 10, 12_345, u64::MAX] {
            let mut out = Vec::new();
            push(&mut out, value);
            assert_eq!(out, value.to_string().into_bytes());
        }
    }
}
