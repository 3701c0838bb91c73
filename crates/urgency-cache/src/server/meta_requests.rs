//! The meta commands, carried out and answered.
//!
//! An answer is a code and then, in the order in which they were asked for, the flags that return something.
//! `T` takes effect at its place among them: `t` before it tells the old time to live, `t` after it the new
//! one.

use super::{
    counters::Count,
    session::{Changed, Put, Session, Stored},
    text_requests::line,
};
use crate::{
    protocol::{Data, KEY_MAX, Mode, base64, meta::Command, number},
    store::{Entry, ItemView, NewItem},
};

const BAD_KEY: &str = "CLIENT_ERROR error decoding key";

/// The key of a command, decoded if it is in base 64.
fn key_of<'b>(command: &Command<'b>, decoded: &'b mut [u8; KEY_MAX]) -> Option<&'b [u8]> {
    if command.flags.base64 {
        base64::decode(command.key, decoded)
    } else {
        Some(command.key)
    }
}

fn push_number(out: &mut Vec<u8>, flag: u8, number: u64) {
    out.extend_from_slice(&[b' ', flag]);
    number::push(out, number);
}

/// Appends what a flag returns that depends on no item.
fn push_echo(out: &mut Vec<u8>, command: &Command<'_>, word: &[u8]) {
    match word[0] {
        b'O' => {
            out.push(b' ');
            out.extend_from_slice(word);
        }
        b'k' => {
            out.extend_from_slice(b" k");
            out.extend_from_slice(command.key);
            if command.flags.base64 {
                out.extend_from_slice(b" b");
            }
        }
        _ => {}
    }
}

fn push_ttl(out: &mut Vec<u8>, expires: u32, now: u32) {
    match expires {
        0 => out.extend_from_slice(b" t-1"),
        _ => push_number(out, b't', u64::from(expires.saturating_sub(now))),
    }
}

/// Appends what a flag of `mg` returns; `expires` is the item's expiry as of this flag.
fn push_flag(
    out: &mut Vec<u8>,
    command: &Command<'_>,
    word: &[u8],
    item: &ItemView<'_>,
    expires: u32,
    now: u32,
) {
    match word[0] {
        b's' => push_number(out, b's', item.value_len() as u64),
        b't' => push_ttl(out, expires, now),
        b'c' => push_number(out, b'c', item.cas()),
        b'f' => push_number(out, b'f', u64::from(item.flags())),
        b'l' => push_number(out, b'l', u64::from(now.saturating_sub(item.accessed()))),
        b'h' => push_number(out, b'h', u64::from(item.was_fetched())),
        _ => push_echo(out, command, word),
    }
}

fn push_code(out: &mut Vec<u8>, with_value: bool, length: usize) {
    if with_value {
        out.extend_from_slice(b"VA ");
        number::push(out, length as u64);
    } else {
        out.extend_from_slice(b"HD");
    }
}

impl Session<'_> {
    /// `mg`.
    pub fn meta_get(&mut self, command: &Command<'_>, out: &mut Vec<u8>) {
        let mut decoded = [0; KEY_MAX];
        let Some(key) = key_of(command, &mut decoded) else {
            return line(out, BAD_KEY);
        };
        let flags = &command.flags;
        let changes = flags.no_bump
            || flags.ttl.is_some()
            || flags.vivify.is_some()
            || flags.recache.is_some();
        let start = out.len();
        let done = if changes {
            None
        } else {
            // A stale item that nobody was told to fetch afresh must be marked, which a reader cannot.
            let read = |item: &ItemView<'_>| {
                if item.is_stale() && !item.is_won() {
                    return None;
                }
                push_code(out, flags.value, item.value_len());
                for word in command.words() {
                    push_flag(out, command, word, item, item.expires(), self.now);
                }
                self::push_marks(out, item, false);
                push_value(out, flags.value, item);
                Some(())
            };
            match self.server.store.get_if(key, self.now, read) {
                Some(None) => None,
                found => Some(found.is_some()),
            }
        };
        let found = done.unwrap_or_else(|| self.meta_get_and_change(command, key, out));
        self.server.prefixes.record_get(key, found);
        let touches = flags.ttl.is_some() && found;
        self.tally.add(if touches {
            Count::TouchCmds
        } else {
            Count::GetCmds
        });
        self.tally.add(match (touches, found) {
            (true, _) => Count::TouchHits,
            (false, true) => Count::GetHits,
            (false, false) => Count::GetMisses,
        });
        if !found {
            out.truncate(start);
            if !flags.quiet {
                out.extend_from_slice(b"EN");
                for word in command.words() {
                    push_echo(out, command, word);
                }
                out.extend_from_slice(b"\r\n");
            }
        }
    }

    fn meta_get_and_change(
        &mut self,
        command: &Command<'_>,
        key: &[u8],
        out: &mut Vec<u8>,
    ) -> bool {
        let flags = &command.flags;
        let mut entry = self.server.store.entry(key, self.now);
        let mut won = false;
        if let (None, Some(ttl)) = (entry.item(), flags.vivify) {
            let expires = self.expiry(ttl);
            let stub = NewItem {
                expires,
                ..NewItem::default()
            };
            won = self.make(&mut entry, &stub).is_some();
        }
        let Some(item) = entry.item() else {
            return false;
        };
        let made = won;
        let recache = flags.recache.map(|ttl| self.expiry(ttl));
        let mut expires = item.expires();
        push_code(out, flags.value, item.value_len());
        for word in command.words() {
            match (word[0], flags.ttl, recache) {
                (b'T', Some(ttl), _) => expires = self.expiry(ttl),
                (b'R', _, Some(before)) => {
                    won |= !item.is_won() && !made && expires != 0 && expires < before;
                }
                _ => push_flag(out, command, word, &item, expires, self.now),
            }
        }
        won |= item.is_stale() && !item.is_won();
        push_marks(out, &item, won);
        push_value(out, flags.value, &item);
        let old = item.expires();
        if won {
            entry.set_won(true);
        }
        if expires != old {
            entry.set_expires(expires);
        }
        if !flags.no_bump {
            entry.access();
        }
        true
    }

    /// `ms`.
    pub fn meta_set(
        &mut self,
        command: &Command<'_>,
        mode: Mode,
        data: Data<'_>,
        out: &mut Vec<u8>,
    ) {
        let mut decoded = [0; KEY_MAX];
        let Some(key) = key_of(command, &mut decoded) else {
            return line(out, BAD_KEY);
        };
        let flags = &command.flags;
        let put = Put {
            mode,
            key,
            flags: flags.client_flags,
            expires: flags.ttl.map_or(0, |ttl| self.expiry(ttl)),
            cas: flags.cas.unwrap_or(0),
            may_be_stale: flags.invalidate,
            data,
        };
        let (code, cas) = match self.put(&put) {
            Stored::Yes(_) if flags.quiet => return,
            Stored::Yes(cas) => ("HD", cas),
            Stored::No => ("NS", 0),
            Stored::Exists => ("EX", 0),
            Stored::NotFound => ("NF", 0),
            Stored::Unterminated => return line(out, "CLIENT_ERROR bad data chunk"),
            Stored::TooLarge => return line(out, "SERVER_ERROR object too large for cache"),
            Stored::NoMemory => return line(out, "SERVER_ERROR out of memory storing object"),
        };
        out.extend_from_slice(code.as_bytes());
        for word in command.words() {
            match word[0] {
                b'c' => push_number(out, b'c', cas),
                _ => push_echo(out, command, word),
            }
        }
        out.extend_from_slice(b"\r\n");
    }

    /// `md`.
    pub fn meta_delete(&mut self, command: &Command<'_>, out: &mut Vec<u8>) {
        let mut decoded = [0; KEY_MAX];
        let Some(key) = key_of(command, &mut decoded) else {
            return line(out, "CLIENT_ERROR invalid or duplicate flag");
        };
        let flags = &command.flags;
        let mut entry = self.server.store.entry(key, self.now);
        let current = entry.item().map(|item| item.cas());
        let (code, count) = match (current, flags.cas) {
            (None, _) => ("NF", Some(Count::DeleteMisses)),
            (Some(current), Some(cas)) if current != cas => ("EX", Some(Count::DeleteMisses)),
            (Some(_), _) if flags.invalidate => {
                if let Some(ttl) = flags.ttl {
                    entry.set_expires(self.expiry(ttl));
                }
                entry.set_stale(true);
                entry.set_won(false);
                entry.set_cas(None);
                ("HD", None)
            }
            (Some(_), _) => {
                entry.remove();
                ("HD", Some(Count::DeleteHits))
            }
        };
        drop(entry);
        self.server.prefixes.record_delete(key);
        if let Some(count) = count {
            self.tally.add(count);
        }
        if code != "HD" || !flags.quiet {
            push_answer(out, command, code);
        }
    }

    /// `ma`.
    pub fn meta_arithmetic(&mut self, command: &Command<'_>, increment: bool, out: &mut Vec<u8>) {
        let mut decoded = [0; KEY_MAX];
        let Some(key) = key_of(command, &mut decoded) else {
            return line(out, "CLIENT_ERROR invalid or duplicate flag");
        };
        let flags = &command.flags;
        let mut entry = self.server.store.entry(key, self.now);
        let delta = flags.delta.unwrap_or(1);
        let (number, made) = match self.change(&mut entry, increment, delta, flags.cas.unwrap_or(0))
        {
            Changed::To(number, _) => (number, false),
            Changed::Exists => return push_answer(out, command, "EX"),
            Changed::NotANumber => {
                return line(
                    out,
                    "CLIENT_ERROR cannot increment or decrement non-numeric value",
                );
            }
            Changed::NoMemory => return line(out, "SERVER_ERROR out of memory"),
            Changed::NotFound => match flags.vivify {
                Some(ttl) if self.make_number(&mut entry, flags.initial, self.expiry(ttl)) => {
                    (flags.initial, true)
                }
                Some(_) => return line(out, "SERVER_ERROR Out of memory allocating new item"),
                None => {
                    self.missed_number(increment);
                    return push_answer(out, command, "NF");
                }
            },
        };
        if flags.quiet && !made {
            if let Some(ttl) = flags.ttl {
                entry.set_expires(self.expiry(ttl));
            }
            return;
        }
        let mut digits = Vec::with_capacity(20);
        number::push(&mut digits, number);
        push_code(out, flags.value, digits.len());
        for word in command.words() {
            if let (b'T', Some(ttl)) = (word[0], flags.ttl) {
                entry.set_expires(self.expiry(ttl));
            }
            let item = entry.item();
            match (word[0], item) {
                (b'c', Some(item)) => push_number(out, b'c', item.cas()),
                (b't', Some(item)) => push_ttl(out, item.expires(), self.now),
                _ => push_echo(out, command, word),
            }
        }
        out.extend_from_slice(b"\r\n");
        if flags.value {
            out.extend_from_slice(&digits);
            out.extend_from_slice(b"\r\n");
        }
    }

    fn make_number(&mut self, entry: &mut Entry<'_>, initial: u64, expires: u32) -> bool {
        let mut digits = Vec::with_capacity(20);
        number::push(&mut digits, initial);
        let new = NewItem {
            expires,
            value: &[&digits],
            ..NewItem::default()
        };
        self.make(entry, &new).is_some()
    }

    /// `me`.
    pub fn meta_debug(&mut self, key: &[u8], in_base64: bool, out: &mut Vec<u8>) {
        self.tally.add(Count::MetaCmds);
        let mut decoded = [0; KEY_MAX];
        let plain = if in_base64 {
            base64::decode(key, &mut decoded)
        } else {
            Some(key)
        };
        let Some(plain) = plain else {
            return line(out, "CLIENT_ERROR bad command line format");
        };
        let entry = self.server.store.entry(plain, self.now);
        let Some(item) = entry.item() else {
            return line(out, "EN");
        };
        out.extend_from_slice(b"ME ");
        out.extend_from_slice(key);
        let left = match item.expires() {
            0 => -1,
            expires => i64::from(expires) - i64::from(self.now),
        };
        let rest = format!(
            " exp={left} la={} cas={} fetch={} cls=1 size={}",
            self.now.saturating_sub(item.accessed()),
            item.cas(),
            if item.was_fetched() { "yes" } else { "no" },
            item.size(),
        );
        line(out, &rest);
    }
}

/// Whether the client may fetch the item afresh, whether it is stale, and whether another may already.
fn push_marks(out: &mut Vec<u8>, item: &ItemView<'_>, won: bool) {
    if item.is_won() {
        out.extend_from_slice(b" Z");
    }
    if item.is_stale() {
        out.extend_from_slice(b" X");
    }
    if won {
        out.extend_from_slice(b" W");
    }
    out.extend_from_slice(b"\r\n");
}

fn push_value(out: &mut Vec<u8>, with_value: bool, item: &ItemView<'_>) {
    if with_value {
        item.copy_to(out);
        out.extend_from_slice(b"\r\n");
    }
}

/// A code and what depends on no item.
fn push_answer(out: &mut Vec<u8>, command: &Command<'_>, code: &str) {
    out.extend_from_slice(code.as_bytes());
    for word in command.words() {
        push_echo(out, command, word);
    }
    out.extend_from_slice(b"\r\n");
}
