//! The frame header of memcached over UDP.
//!
//! Each datagram begins with eight bytes: a request id that the client chose, the number of this
//! datagram in its message, the number of datagrams of the message, and two bytes that are zero. A request is
//! one datagram; an answer may be several.

/// The length of the header.
pub const HEADER: usize = 8;

/// The most bytes of an answer in one datagram, header included: what passes an Ethernet without fragments.
pub const DATAGRAM_MAX: usize = 1400;

/// The request id and the request of a datagram; `None` if it is not one whole request.
#[must_use]
pub fn open(datagram: &[u8]) -> Option<(u16, &[u8])> {
    let (header, request) = datagram.split_first_chunk::<HEADER>()?;
    let [id_high, id_low, _, _, count_high, count_low, _, _] = *header;
    let is_whole = u16::from_be_bytes([count_high, count_low]) <= 1;
    is_whole.then(|| (u16::from_be_bytes([id_high, id_low]), request))
}

/// The header of the datagram `number` of `count`.
#[must_use]
pub fn header(id: u16, number: u16, count: u16) -> [u8; HEADER] {
    let mut header = [0; HEADER];
    header[..2].copy_from_slice(&id.to_be_bytes());
    header[2..4].copy_from_slice(&number.to_be_bytes());
    header[4..6].copy_from_slice(&count.to_be_bytes());
    header
}

/// An answer cut into datagrams, each with its header; `None` if it is too long for any number of them.
pub fn frames(id: u16, answer: &[u8]) -> Option<impl Iterator<Item = Vec<u8>>> {
    let parts = answer.chunks(DATAGRAM_MAX - HEADER);
    let count = u16::try_from(parts.len()).ok()?;
    Some((0..).zip(parts).map(move |(number, part)| {
        let mut datagram = header(id, number, count).to_vec();
        datagram.extend_from_slice(part);
        datagram
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_the_datagram_after_its_header() {
        assert_eq!(
            open(b"\x12\x34\0\0\0\x01\0\0version\r\n"),
            Some((0x1234, &b"version\r\n"[..]))
        );
        assert_eq!(open(b"\0\0\0\0\0\x01\0"), None);
        assert_eq!(open(b"\0\0\0\0\0\x02\0\0get a\r\n"), None, "one of two");
    }

    #[test]
    fn a_long_answer_is_numbered_datagrams() {
        let answer = vec![7; 2 * (DATAGRAM_MAX - HEADER) + 1];
        let frames: Vec<_> = frames(9, &answer).unwrap().collect();
        assert_eq!(frames.len(), 3);
        assert_eq!(frames[2], [&[0, 9, 0, 2, 0, 3, 0, 0][..], &[7]].concat());
        assert!(frames.iter().all(|frame| frame.len() <= DATAGRAM_MAX));
        assert!(super::frames(0, &vec![0; 65_536 * DATAGRAM_MAX]).is_none());
    }
}
