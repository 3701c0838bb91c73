//! The binary protocol's requests, carried out and answered.
//!
//! A quiet request leaves out the expected answer: success, or for the gets a miss. Errors are always sent.

use super::{
    connection::After,
    counters::Count,
    session::{Changed, Put, Session, Stored},
    text_requests::VERSION,
};
use crate::{
    protocol::{
        Data, Mode,
        binary::{Action, Request, Status, push_error, push_header},
        number,
    },
    store::{ItemView, NewItem},
};

/// The expiry of a number that is not to be made.
const DO_NOT_MAKE: u32 = u32::MAX;

fn fail(out: &mut Vec<u8>, request: &Request<'_>, status: Status) {
    push_error(out, request, status, status.text());
}

/// Appends a success without a body, unless it was to be expected.
fn succeed(out: &mut Vec<u8>, request: &Request<'_>, cas: u64) {
    if !request.quiet {
        push_header(out, request, Status::Ok, (0, 0, 0), cas);
    }
}

fn hit(
    out: &mut Vec<u8>,
    request: &Request<'_>,
    item: &ItemView<'_>,
    with_key: bool,
    with_value: bool,
) {
    let key: &[u8] = if with_key { request.key } else { &[] };
    let length = if with_value { item.value_len() } else { 0 };
    // A key is at most 250 bytes long.
    push_header(
        out,
        request,
        Status::Ok,
        (4, key.len() as u16, length),
        item.cas(),
    );
    out.extend_from_slice(&item.flags().to_be_bytes());
    out.extend_from_slice(key);
    if with_value {
        item.copy_to(out);
    }
}

impl Session<'_> {
    /// Carries out a request and appends its answer.
    pub fn binary(&mut self, request: &Request<'_>, out: &mut Vec<u8>) -> After {
        match request.action {
            Action::Get {
                with_key,
                with_value,
                touch,
            } => {
                self.binary_get(request, (with_key, with_value), touch, out);
            }
            Action::Store {
                mode,
                flags,
                expiry,
                data,
            } => {
                self.binary_store(request, (mode, flags, expiry), data, out);
            }
            Action::Delete => match self.delete(request.key, request.cas) {
                Some(true) => succeed(out, request, 0),
                Some(false) => fail(out, request, Status::NotFound),
                None => fail(out, request, Status::Exists),
            },
            Action::Arithmetic {
                increment,
                delta,
                initial,
                expiry,
            } => {
                self.binary_arithmetic(request, (increment, delta), (initial, expiry), out);
            }
            Action::Flush { delay } => {
                if self.flush_all(i64::from(delay)) {
                    succeed(out, request, 0);
                } else {
                    fail(out, request, Status::NotAllowed);
                }
            }
            Action::Noop => succeed(out, request, 0),
            Action::Version => {
                push_header(out, request, Status::Ok, (0, 0, VERSION.len()), 0);
                out.extend_from_slice(VERSION.as_bytes());
            }
            Action::Verbosity { level } => {
                self.server.set_verbosity(level);
                succeed(out, request, 0);
            }
            Action::Stats => {
                let mut answer = Vec::new();
                self.binary_stats(request, &mut answer);
                if self.append(&answer, out).is_none() {
                    fail(out, request, Status::NoMemory);
                }
            }
            Action::Quit => {
                succeed(out, request, 0);
                return After::Close;
            }
            Action::Unknown => fail(out, request, Status::Unknown),
            Action::Invalid(status) => {
                fail(out, request, status);
                return After::Close;
            }
        }
        After::Next
    }

    fn binary_get(
        &mut self,
        request: &Request<'_>,
        (with_key, with_value): (bool, bool),
        touch: Option<u32>,
        out: &mut Vec<u8>,
    ) {
        let (key, now) = (request.key, self.now);
        let found = if let Some(expiry) = touch {
            let expires = self.expiry(i64::from(expiry));
            let mut entry = self.server.store.entry(key, now);
            if let Some(item) = entry.item() {
                if !self.room.admits(out, item.value_len()) {
                    return;
                }
                hit(out, request, &item, with_key, with_value);
            }
            let found = entry.set_expires(expires);
            entry.access();
            self.tally.add_found(Count::TOUCH, found);
            found
        } else {
            let (store, room) = (&self.server.store, &mut self.room);
            let read = |item: &ItemView<'_>| {
                let admitted = room.admits(out, item.value_len());
                admitted.then(|| hit(out, request, item, with_key, with_value))
            };
            let found = match store.get_if(key, now, read) {
                Some(None) => return,
                found => found.is_some(),
            };
            self.tally.add_found(Count::GET, found);
            found
        };
        self.server.prefixes.record_get(key, found);
        if found || request.quiet {
            return;
        }
        if with_key {
            push_header(out, request, Status::NotFound, (0, key.len() as u16, 0), 0);
            out.extend_from_slice(key);
        } else {
            fail(out, request, Status::NotFound);
        }
    }

    fn binary_store(
        &mut self,
        request: &Request<'_>,
        (mode, flags, expiry): (Mode, u32, u32),
        data: Data<'_>,
        out: &mut Vec<u8>,
    ) {
        let compares = request.cas != 0 && !matches!(mode, Mode::Append | Mode::Prepend);
        let put = Put {
            mode: if compares { Mode::Cas } else { mode },
            key: request.key,
            flags,
            expires: self.expiry(i64::from(expiry)),
            cas: request.cas,
            meta: None,
            data,
        };
        let status = match (self.put(&put), mode) {
            (Stored::Yes(cas), _) => return succeed(out, request, cas),
            (Stored::Exists, _) | (Stored::No, Mode::Add) => Status::Exists,
            (Stored::NotFound, _) | (Stored::No, Mode::Replace) => Status::NotFound,
            (Stored::TooLarge, _) => Status::TooLarge,
            (Stored::NoMemory, _) => {
                return push_error(
                    out,
                    request,
                    Status::NoMemory,
                    "Out of memory allocating item",
                );
            }
            (Stored::No | Stored::Unterminated, _) => Status::NotStored,
        };
        fail(out, request, status);
    }

    fn binary_arithmetic(
        &mut self,
        request: &Request<'_>,
        (increment, delta): (bool, u64),
        (initial, expiry): (u64, u32),
        out: &mut Vec<u8>,
    ) {
        let mut entry = self.server.store.entry(request.key, self.now);
        let (number, cas) = match self.change(&mut entry, increment, delta, request.cas) {
            Changed::To(number, cas) => (number, cas),
            Changed::Exists => return fail(out, request, Status::Exists),
            Changed::NotANumber => return fail(out, request, Status::NotANumber),
            Changed::NoMemory => {
                return push_error(
                    out,
                    request,
                    Status::NoMemory,
                    "Out of memory incrementing value",
                );
            }
            Changed::NotFound if expiry == DO_NOT_MAKE => {
                self.missed_number(increment);
                return fail(out, request, Status::NotFound);
            }
            Changed::NotFound => {
                let mut digits = Vec::with_capacity(20);
                number::push(&mut digits, initial);
                let expires = self.expiry(i64::from(expiry));
                let new = NewItem {
                    expires,
                    value: &[&digits],
                    ..NewItem::default()
                };
                match self.make(&mut entry, &new) {
                    Some(cas) => (initial, cas),
                    None => {
                        let text = "Out of memory allocating new item";
                        return push_error(out, request, Status::NoMemory, text);
                    }
                }
            }
        };
        if !request.quiet {
            push_header(out, request, Status::Ok, (0, 0, 8), cas);
            out.extend_from_slice(&number.to_be_bytes());
        }
    }

    fn binary_stats(&mut self, request: &Request<'_>, out: &mut Vec<u8>) {
        self.report();
        let words = crate::protocol::words::Words::new(request.key);
        let mut push = |name: &str, value: &str| {
            push_header(
                out,
                request,
                Status::Ok,
                (0, name.len() as u16, value.len()),
                0,
            );
            out.extend_from_slice(name.as_bytes());
            out.extend_from_slice(value.as_bytes());
        };
        if self.server.stats(words, self.now, &mut push) {
            push("", "");
        } else {
            fail(out, request, Status::NotFound);
        }
    }
}
