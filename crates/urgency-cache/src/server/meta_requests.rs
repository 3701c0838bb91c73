//! The meta commands, carried out and answered.
//!
//! An answer is a code and then, in the order in which they were asked for, the flags that return something. The
//! flags that change something take effect at their places among them: `t` before `T` tells the old time to live,
//! `t` after it the new one; an item that `N` makes has no end before `N` is reached.

use super::{
    counters::Count,
    output::Room,
    session::{Changed, MetaPut, Put, Session, Stored},
    text_requests::line,
};
use crate::{
    protocol::{
        Data, KEY_MAX, Mode, base64,
        meta::{Command, OPAQUE_TOO_LONG, is_long_opaque},
        number,
    },
    store::{Entry, ItemView, NewItem},
};

/// The key of a command, decoded if it is in base 64.
fn key_of<'b>(command: &Command<'b>, decoded: &'b mut [u8; KEY_MAX]) -> &'b [u8] {
    if command.flags.base64 {
        base64::decode(command.key, decoded).expect("the parser has decoded it once")
    } else {
        command.key
    }
}

fn push_number(out: &mut Vec<u8>, flag: u8, number: u64) {
    out.extend_from_slice(&[b' ', flag]);
    number::push(out, number);
}

/// Appends a key, encoded if it is `binary`.
fn push_key(out: &mut Vec<u8>, key: &[u8], binary: bool) {
    if binary {
        base64::push_encoded(out, key);
    } else {
        out.extend_from_slice(key);
    }
}

/// Appends what a flag returns that depends on no item: the opaque token, and the key.
fn push_echo(out: &mut Vec<u8>, word: &[u8], key: &[u8], binary: bool) {
    match word[0] {
        b'O' => {
            out.push(b' ');
            out.extend_from_slice(word);
        }
        b'k' => {
            out.extend_from_slice(b" k");
            push_key(out, key, binary);
            if binary {
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

/// Appends what a flag of `mg` returns; `expires` is the item's expiry as of this flag. The key is encoded if the
/// client that stored the item had encoded it.
fn push_flag(out: &mut Vec<u8>, word: &[u8], item: &ItemView<'_>, expires: u32, now: u32) {
    match word[0] {
        b's' => push_number(out, b's', item.value_len() as u64),
        b't' => push_ttl(out, expires, now),
        b'c' => push_number(out, b'c', item.cas()),
        b'f' => push_number(out, b'f', u64::from(item.flags())),
        b'l' => push_number(out, b'l', u64::from(now.saturating_sub(item.accessed()))),
        b'h' => push_number(out, b'h', u64::from(item.was_fetched())),
        _ => push_echo(out, word, item.key(), item.has_binary_key()),
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

/// Whether there is room for an answer with or without the value.
fn admits(room: &mut Room, out: &mut Vec<u8>, with_value: bool, item: &ItemView<'_>) -> bool {
    room.admits(out, if with_value { item.value_len() } else { 0 })
}

/// What a look for `mg` found.
enum Look {
    /// The item; the answer is complete.
    Hit,
    /// None.
    Miss,
    /// An item, and a flag that ends the command.
    Refused(&'static str),
    /// An item for which there is no room; nothing was done.
    Short,
}

impl Session<'_> {
    /// `mg`.
    pub fn meta_get(&mut self, command: &Command<'_>, out: &mut Vec<u8>) {
        let mut decoded = [0; KEY_MAX];
        let key = key_of(command, &mut decoded);
        let flags = &command.flags;
        let start = out.len();
        let look = match self.meta_look(command, key, out) {
            Some(look) => look,
            None => self.meta_get_and_change(command, key, out),
        };
        let found = match look {
            Look::Hit => true,
            Look::Miss => false,
            Look::Refused(why) => {
                out.truncate(start);
                return line(out, why);
            }
            Look::Short => return,
        };
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
        if found {
            return;
        }
        if command.has_long_opaque() {
            line(out, OPAQUE_TOO_LONG);
        } else if !flags.quiet {
            push_answer(out, command, key, "EN");
        }
    }

    /// `mg` as a reader; `None` if that is not enough.
    fn meta_look(&mut self, command: &Command<'_>, key: &[u8], out: &mut Vec<u8>) -> Option<Look> {
        let flags = &command.flags;
        let changes = flags.ttl.is_some() || flags.vivify.is_some() || flags.recache.is_some();
        if changes || flags.no_bump || command.has_long_opaque() {
            return None;
        }
        let (store, now, room) = (&self.server.store, self.now, &mut self.room);
        // A stale item that no client was told to fetch afresh must be marked, which a reader cannot do.
        let read = |item: &ItemView<'_>| {
            if item.is_stale() && !item.is_won() || !admits(room, out, flags.value, item) {
                return None;
            }
            push_code(out, flags.value, item.value_len());
            for word in command.words() {
                push_flag(out, word, item, item.expires(), now);
            }
            push_marks(out, item, false);
            push_value(out, flags.value, item);
            Some(())
        };
        match store.get_if(key, now, read) {
            Some(None) if self.room.missed() > 0 => Some(Look::Short),
            Some(None) => None,
            Some(Some(())) => Some(Look::Hit),
            None => Some(Look::Miss),
        }
    }

    fn meta_get_and_change(
        &mut self,
        command: &Command<'_>,
        key: &[u8],
        out: &mut Vec<u8>,
    ) -> Look {
        let flags = &command.flags;
        let mut entry = self.server.store.entry(key, self.now);
        let made = entry.item().is_none()
            && flags.vivify.is_some()
            && self.make(&mut entry, &NewItem::default()).is_some();
        let Some(item) = entry.item() else {
            return Look::Miss;
        };
        if !admits(&mut self.room, out, flags.value, &item) {
            return Look::Short;
        }
        let ends = |ttl: Option<i32>| ttl.map(|ttl| self.expiry(ttl));
        let (ttl, vivify, recache) = (ends(flags.ttl), ends(flags.vivify), ends(flags.recache));
        let (old, mut expires) = (item.expires(), item.expires());
        let (mut won, mut refused) = (false, false);
        push_code(out, flags.value, item.value_len());
        for word in command.words() {
            match (word[0], ttl, vivify, recache) {
                (b'T', Some(ttl), ..) => expires = ttl,
                (b'N', _, Some(ttl), _) if made => (expires, won) = (ttl, true),
                (b'R', .., Some(before)) => {
                    won |= !item.is_won() && !made && expires != 0 && expires < before;
                }
                (b'O', ..) if is_long_opaque(word) => {
                    refused = true;
                    break;
                }
                _ => push_flag(out, word, &item, expires, self.now),
            }
        }
        if !refused {
            won |= item.is_stale() && !item.is_won();
            push_marks(out, &item, won);
            push_value(out, flags.value, &item);
            if won {
                entry.set_won(true);
            }
        }
        if expires != old {
            entry.set_expires(expires);
        }
        // memcached counts the use last if a flag is about uses or changes something, and at once otherwise.
        let is_late = flags.history || ttl.is_some() || vivify.is_some() || recache.is_some();
        let has_failed = refused && is_late;
        if !(flags.no_bump || has_failed) {
            entry.access();
        }
        match refused {
            true => Look::Refused(OPAQUE_TOO_LONG),
            false => Look::Hit,
        }
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
        let key = key_of(command, &mut decoded);
        let flags = &command.flags;
        let put = Put {
            mode,
            key,
            flags: flags.client_flags,
            expires: flags.ttl.map_or(0, |ttl| self.expiry(ttl)),
            cas: flags.cas.unwrap_or(0),
            meta: Some(MetaPut {
                may_be_stale: flags.invalidate,
                binary_key: flags.base64,
            }),
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
                _ => push_echo(out, word, key, flags.base64),
            }
        }
        out.extend_from_slice(b"\r\n");
    }

    /// `md`.
    pub fn meta_delete(&mut self, command: &Command<'_>, out: &mut Vec<u8>) {
        let mut decoded = [0; KEY_MAX];
        let key = key_of(command, &mut decoded);
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
            push_answer(out, command, key, code);
        }
    }

    /// `ma`.
    pub fn meta_arithmetic(&mut self, command: &Command<'_>, increment: bool, out: &mut Vec<u8>) {
        let mut decoded = [0; KEY_MAX];
        let key = key_of(command, &mut decoded);
        let flags = &command.flags;
        let start = out.len();
        let mut entry = self.server.store.entry(key, self.now);
        let delta = flags.delta.unwrap_or(1);
        let cas = flags.cas.unwrap_or(0);
        let (number, made) = match self.change(&mut entry, increment, delta, cas) {
            Changed::To(number, _) => (number, false),
            Changed::Exists => return self.no_number(command, key, "EX", out),
            Changed::NotANumber => {
                return line(
                    out,
                    "CLIENT_ERROR cannot increment or decrement non-numeric value",
                );
            }
            Changed::NoMemory => return line(out, "SERVER_ERROR out of memory"),
            Changed::NotFound if flags.vivify.is_none() => {
                self.missed_number(increment);
                return self.no_number(command, key, "NF", out);
            }
            Changed::NotFound if self.make_number(&mut entry, flags.initial) => {
                (flags.initial, true)
            }
            Changed::NotFound => {
                return line(out, "SERVER_ERROR Out of memory allocating new item");
            }
        };
        let mut digits = Vec::with_capacity(20);
        number::push(&mut digits, number);
        push_code(out, flags.value, digits.len());
        for word in command.words() {
            match (word[0], flags.ttl, flags.vivify) {
                (b'T', Some(ttl), _) => _ = entry.set_expires(self.expiry(ttl)),
                (b'N', _, Some(ttl)) if made => _ = entry.set_expires(self.expiry(ttl)),
                (b'O', ..) if is_long_opaque(word) => {
                    out.truncate(start);
                    return line(out, OPAQUE_TOO_LONG);
                }
                _ => {}
            }
            match (word[0], entry.item()) {
                (b'c', Some(item)) => push_number(out, b'c', item.cas()),
                (b't', Some(item)) => push_ttl(out, item.expires(), self.now),
                _ => push_echo(out, word, key, flags.base64),
            }
        }
        if flags.quiet && !made {
            return out.truncate(start);
        }
        out.extend_from_slice(b"\r\n");
        if flags.value {
            out.extend_from_slice(&digits);
            out.extend_from_slice(b"\r\n");
        }
    }

    /// The answer of `ma` without an item.
    fn no_number(&self, command: &Command<'_>, key: &[u8], code: &str, out: &mut Vec<u8>) {
        match command.has_long_opaque() {
            true => line(out, OPAQUE_TOO_LONG),
            false => push_answer(out, command, key, code),
        }
    }

    fn make_number(&mut self, entry: &mut Entry<'_>, initial: u64) -> bool {
        let mut digits = Vec::with_capacity(20);
        number::push(&mut digits, initial);
        let new = NewItem {
            value: &[&digits],
            ..NewItem::default()
        };
        self.make(entry, &new).is_some()
    }

    /// `me`.
    pub fn meta_debug(&mut self, key: &[u8], in_base64: bool, out: &mut Vec<u8>) {
        let mut decoded = [0; KEY_MAX];
        let plain = if in_base64 {
            base64::decode(key, &mut decoded)
        } else {
            Some(key)
        };
        let Some(plain) = plain else {
            return line(out, "CLIENT_ERROR bad command line format");
        };
        self.tally.add(Count::MetaCmds);
        let entry = self.server.store.entry(plain, self.now);
        let Some(item) = entry.item() else {
            return line(out, "EN");
        };
        out.extend_from_slice(b"ME ");
        push_key(out, item.key(), item.has_binary_key());
        // memcached 1.6.18 writes the seconds that are left with a minus sign.
        let left = match item.expires() {
            0 => -1,
            expires => i64::from(self.now) - i64::from(expires),
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
fn push_answer(out: &mut Vec<u8>, command: &Command<'_>, key: &[u8], code: &str) {
    out.extend_from_slice(code.as_bytes());
    for word in command.words() {
        push_echo(out, word, key, command.flags.base64);
    }
    out.extend_from_slice(b"\r\n");
}
