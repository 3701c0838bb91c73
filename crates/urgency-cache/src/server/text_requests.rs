//! The text protocol's requests, carried out and answered.

use super::{
    counters::Count,
    session::{Changed, Put, Session, Stored},
};
use crate::{
    protocol::{
        Data, number,
        text::{Get, Store},
    },
    store::ItemView,
};

/// The version that clients see: the version of the memcached whose protocol this server speaks. Clients look at it to
/// know what they may use.
pub const VERSION: &str = concat!("1.6.18-urgency-", env!("CARGO_PKG_VERSION"));

/// An answer that cannot be sent in pieces gets no further value when it is so long. One value may be longer.
pub const ANSWER_MAX: usize = 4 << 20;

/// Appends a line.
#[inline]
pub fn line(out: &mut Vec<u8>, text: &str) {
    out.extend_from_slice(text.as_bytes());
    out.extend_from_slice(b"\r\n");
}

/// Appends a line, unless the client does not want to know.
#[inline]
pub fn line_unless(out: &mut Vec<u8>, quiet: bool, text: &str) {
    if !quiet {
        line(out, text);
    }
}

/// Appends a hit.
#[inline]
fn hit(out: &mut Vec<u8>, item: &ItemView<'_>, with_cas: bool) {
    let length = item.value_len();
    out.extend_from_slice(b"VALUE ");
    out.extend_from_slice(item.key());
    out.push(b' ');
    number::push(out, u64::from(item.flags()));
    out.push(b' ');
    number::push(out, length as u64);
    if with_cas {
        out.push(b' ');
        number::push(out, item.cas());
    }
    out.extend_from_slice(b"\r\n");
    item.copy_to(out);
    out.extend_from_slice(b"\r\n");
}

impl Session<'_> {
    /// One key of a retrieval command.
    #[inline]
    pub fn text_get(&mut self, get: &Get<'_>, key: &[u8], out: &mut Vec<u8>) {
        if let Some(expiry) = get.touch {
            return self.text_get_and_touch(key, expiry, get.with_cas, out);
        }
        let (store, room) = (&self.server.store, &mut self.room);
        let read = |item: &ItemView<'_>| {
            let admitted = room.admits(out, item.value_len());
            admitted.then(|| hit(out, item, get.with_cas))
        };
        let found = match store.get_if(key, self.now, read) {
            Some(None) => return,
            found => found.flatten(),
        };
        self.server.prefixes.record_get(key, found.is_some());
        self.tally.add_found(Count::GET, found.is_some());
    }

    /// A retrieval command whose answer cannot be sent in pieces: if other keys' values are long, it is an
    /// error.
    pub fn text_get_at_once(&mut self, get: &Get<'_>, out: &mut Vec<u8>) {
        let start = out.len();
        for (number, key) in get.keys.enumerate() {
            if number > 0 && out.len() >= ANSWER_MAX {
                out.truncate(start);
                return line(out, "SERVER_ERROR out of memory writing get response");
            }
            self.text_get(get, key, out);
        }
        out.extend_from_slice(b"END\r\n");
    }

    fn text_get_and_touch(&mut self, key: &[u8], expiry: i32, with_cas: bool, out: &mut Vec<u8>) {
        let expires = self.expiry(expiry);
        let mut entry = self.server.store.entry(key, self.now);
        if let Some(item) = entry.item() {
            if !self.room.admits(out, item.value_len()) {
                return;
            }
            hit(out, &item, with_cas);
        }
        let found = entry.set_expires(expires);
        entry.access();
        drop(entry);
        self.server.prefixes.record_get(key, found);
        self.tally.add_found(Count::TOUCH, found);
    }

    /// `touch`.
    pub fn touch(&mut self, key: &[u8], expiry: i32) -> bool {
        let expires = self.expiry(expiry);
        let mut entry = self.server.store.entry(key, self.now);
        let found = entry.set_expires(expires) && entry.access();
        self.tally.add_found(Count::TOUCH, found);
        found
    }

    /// A storage command.
    pub fn text_store(&mut self, store: &Store<'_>, data: Data<'_>, out: &mut Vec<u8>) {
        let put = Put {
            mode: store.mode,
            key: store.key,
            flags: store.flags,
            expires: self.expiry(store.expiry),
            cas: store.cas,
            meta: None,
            data,
        };
        let answer = match self.put(&put) {
            Stored::Yes(_) => "STORED",
            Stored::No => "NOT_STORED",
            Stored::Exists => "EXISTS",
            Stored::NotFound => "NOT_FOUND",
            Stored::Unterminated => "CLIENT_ERROR bad data chunk",
            Stored::TooLarge => "SERVER_ERROR object too large for cache",
            Stored::NoMemory => "SERVER_ERROR out of memory storing object",
        };
        line_unless(out, store.quiet, answer);
    }

    /// `incr`, `decr`.
    pub fn text_arithmetic(
        &mut self,
        (key, increment, delta): (&[u8], bool, u64),
        quiet: bool,
        out: &mut Vec<u8>,
    ) {
        let mut entry = self.server.store.entry(key, self.now);
        let answer = match self.change(&mut entry, increment, delta, 0) {
            Changed::To(number, _) => {
                if !quiet {
                    number::push(out, number);
                    out.extend_from_slice(b"\r\n");
                }
                return;
            }
            Changed::NotFound => {
                self.missed_number(increment);
                "NOT_FOUND"
            }
            Changed::NotANumber => "CLIENT_ERROR cannot increment or decrement non-numeric value",
            Changed::NoMemory | Changed::Exists => "SERVER_ERROR out of memory",
        };
        line_unless(out, quiet, answer);
    }

    /// `delete`.
    pub fn text_delete(&mut self, key: &[u8], quiet: bool, out: &mut Vec<u8>) {
        let removed = self.delete(key, 0) == Some(true);
        line_unless(out, quiet, if removed { "DELETED" } else { "NOT_FOUND" });
    }
}
