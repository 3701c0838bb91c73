//! The commands about the server in the text protocol.
//!
//! A command that asks for a setting that this server always has is answered with `OK`, so that a client's routine does
//! not fail. A command that asks for a setting that this server cannot have (another mode of the LRU, the crawler off,
//! pages moved between slab classes) gets memcached's error.

use super::{
    connection::After,
    session::Session,
    signal::Ending,
    text_requests::{line, line_unless},
};
use crate::{
    protocol::{number, text::Admin, words::Words},
    store::Cursor,
};

const BAD_FORMAT: &str = "CLIENT_ERROR bad command line format";

/// The most items that `stats cachedump` and a step of a dump look at.
const DUMP_STEP: u64 = 1000;

/// As much as memcached's `stats cachedump` prints.
const CACHEDUMP_MAX: usize = 2 << 20;

/// `slabs`: pages move between the store's shards by themselves, and there are no classes to move them between.
/// `noreply` is for `automove` only, and one word too many for the others.
fn slabs(mut words: Words<'_>) -> &'static str {
    match (words.next(), words.next(), words.next()) {
        (Some(b"reassign"), Some(from), Some(to)) if words.next().is_none() => {
            let valid = number::signed(from).and(number::signed(to)).is_some();
            if valid {
                "BADCLASS invalid src or dst class id"
            } else {
                BAD_FORMAT
            }
        }
        (Some(b"automove"), Some(b"ratio"), _) => "ERROR",
        (Some(b"automove"), Some(level), _) => match number::unsigned_32(level) {
            Some(0..=2) => "OK",
            Some(_) => "ERROR",
            None => BAD_FORMAT,
        },
        _ => "ERROR",
    }
}

/// `lru`: segmented is the only mode, and the segments' sizes are options of the start.
fn lru(mut words: Words<'_>) -> &'static str {
    match (words.next(), words.next()) {
        (Some(b"mode"), Some(b"segmented")) => "OK",
        _ => "ERROR",
    }
}

impl Session<'_> {
    /// Carries out a command about the server.
    pub fn admin(&mut self, admin: &Admin<'_>, out: &mut Vec<u8>) -> After {
        let mut words = admin.arguments;
        let quiet = words.last_word() == Some(b"noreply");
        match admin.name {
            b"stats" => {
                let mut answer = Vec::new();
                self.stats(words, &mut answer);
                if self.append(&answer, out).is_none() {
                    line(out, "SERVER_ERROR out of memory writing stats");
                }
            }
            b"shutdown" => return self.shutdown(words, out),
            b"debugtime" if self.server.settings.debug_commands => {
                line(out, self.debug_time(words.next()));
            }
            b"slabs" => {
                let quiet = quiet && words.next() == Some(b"automove");
                line_unless(out, quiet, slabs(admin.arguments));
            }
            b"lru" => line_unless(out, quiet, lru(words)),
            b"lru_crawler" => return self.lru_crawler(words, out),
            b"watch" => line(out, "CLIENT_ERROR watch commands not allowed"),
            _ => line(out, "ERROR"),
        }
        After::Next
    }

    fn stats(&mut self, words: Words<'_>, out: &mut Vec<u8>) {
        self.report();
        let mut rest = words;
        match (rest.next(), rest.next()) {
            (Some(b"reset"), _) => {
                self.server.reset_stats();
                return line(out, "RESET");
            }
            (Some(b"detail"), what) => {
                let prefixes = &self.server.prefixes;
                match what {
                    Some(b"on") => prefixes.turn(true),
                    Some(b"off") => prefixes.turn(false),
                    Some(b"dump") => {
                        out.extend_from_slice(prefixes.dump().as_bytes());
                        return line(out, "END");
                    }
                    _ => return line(out, "CLIENT_ERROR usage: stats detail on|off|dump"),
                }
                return line(out, "OK");
            }
            (Some(b"cachedump"), class) => return self.cache_dump(class, rest.next(), out),
            _ => {}
        }
        let mut push = |name: &str, value: &str| {
            for part in ["STAT ", name, " ", value, "\r\n"] {
                out.extend_from_slice(part.as_bytes());
            }
        };
        let known = self.server.stats(words, self.now, &mut push);
        line(out, if known { "END" } else { "ERROR" });
    }

    /// `stats cachedump`: some keys.
    fn cache_dump(&mut self, class: Option<&[u8]>, limit: Option<&[u8]>, out: &mut Vec<u8>) {
        if !self.server.settings.dump_allowed {
            return line(out, "CLIENT_ERROR stats cachedump not allowed");
        }
        let (Some(class), Some(limit)) = (class, limit) else {
            return line(out, "CLIENT_ERROR bad command line");
        };
        let numbers = (number::unsigned_32(class), number::unsigned_32(limit));
        let (Some(class), Some(limit)) = numbers else {
            return line(out, BAD_FORMAT);
        };
        if class >= 64 {
            return line(out, "CLIENT_ERROR Illegal slab id");
        }
        let most = if limit == 0 {
            usize::MAX
        } else {
            limit as usize
        };
        let (mut cursor, mut count, start) = (Cursor::default(), 0, out.len());
        loop {
            let clock = &self.server.clock;
            let done = self
                .server
                .store
                .walk_step(&mut cursor, self.now, DUMP_STEP, |item| {
                    if count < most && out.len() - start < CACHEDUMP_MAX {
                        count += 1;
                        let expires = match item.expires() {
                            0 => 0,
                            expires => clock.unix(expires),
                        };
                        out.extend_from_slice(b"ITEM ");
                        out.extend_from_slice(item.key());
                        line(out, &format!(" [{} b; {expires} s]", item.value_len()));
                    }
                });
            if !done.more || count >= most || out.len() - start >= CACHEDUMP_MAX {
                return line(out, "END");
            }
        }
    }

    fn shutdown(&mut self, mut words: Words<'_>, out: &mut Vec<u8>) -> After {
        if !self.server.settings.shutdown_allowed {
            line(out, "ERROR: shutdown not enabled");
            return After::Next;
        }
        let ending = match (words.next(), words.next()) {
            (None, _) => Ending::Now,
            (Some(b"graceful"), None) => Ending::Graceful,
            _ => {
                line(out, "CLIENT_ERROR invalid shutdown mode");
                return After::Next;
            }
        };
        self.server.stop.stop(ending);
        After::Close
    }

    fn debug_time(&mut self, word: Option<&[u8]>) -> &'static str {
        let clock = &self.server.clock;
        match word {
            Some(b"p") => clock.stop(true),
            Some(b"r") => clock.stop(false),
            Some(word) => match number::signed(word) {
                Some(seconds) => clock.shift(seconds),
                None => return "ERROR",
            },
            None => return "ERROR",
        }
        self.now = clock.now();
        "OK"
    }

    /// `lru_crawler`, which takes no `noreply`: it is one word too many.
    fn lru_crawler(&mut self, mut words: Words<'_>, out: &mut Vec<u8>) -> After {
        let answer = match (words.next(), words.next(), words.next()) {
            (Some(b"crawl"), Some(_), None) => {
                self.server.crawl_now();
                "OK"
            }
            (Some(b"metadump"), Some(_), None) if self.server.settings.dump_allowed => {
                return After::Dump;
            }
            (Some(b"metadump"), Some(_), None) => "ERROR metadump not allowed",
            // It is on, and what it costs is the levels' business.
            (Some(b"enable"), None, _) => "OK",
            _ => "ERROR",
        };
        line(out, answer);
        After::Next
    }

    /// A part of `lru_crawler metadump`: keys with what is known of their items. `false` once it was the last. If there
    /// is no room for the part, nothing is done.
    pub fn dump_part(&mut self, cursor: &mut Cursor, out: &mut Vec<u8>) -> bool {
        let (before, mut part) = (*cursor, Vec::new());
        let more = self.make_part(cursor, &mut part);
        // A part is some pages of the store, which are never too long.
        let _ = self.append(&part, out);
        if self.room.missed() == 0 {
            return more;
        }
        *cursor = before;
        true
    }

    fn make_part(&mut self, cursor: &mut Cursor, out: &mut Vec<u8>) -> bool {
        let clock = &self.server.clock;
        let done = self
            .server
            .store
            .walk_step(cursor, self.now, DUMP_STEP, |item| {
                out.extend_from_slice(b"key=");
                for &byte in item.key() {
                    if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) {
                        out.push(byte);
                    } else {
                        out.extend_from_slice(format!("%{byte:02X}").as_bytes());
                    }
                }
                let expires = match item.expires() {
                    0 => -1,
                    expires => clock.unix(expires),
                };
                let rest = format!(
                    " exp={expires} la={} cas={} fetch={} cls=1 size={}\n",
                    clock.unix(item.accessed()),
                    item.cas(),
                    if item.was_fetched() { "yes" } else { "no" },
                    item.size(),
                );
                out.extend_from_slice(rest.as_bytes());
            });
        if !done.more {
            line(out, "END");
        }
        done.more
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        protocol::{Limits, Next, text},
        server::{
            Server, Settings,
            output::{BASE, Room},
        },
        store::{self, NewItem, Store},
    };

    /// What a request is answered without a share of the memory, and how much room it misses.
    fn answer(session: &mut Session<'_>, request: &str) -> (Vec<u8>, usize) {
        let limits = Limits { value_max: 1 << 20 };
        let Next::Request { request, .. } = text::parse(request.as_bytes(), &mut 0, limits) else {
            panic!("{request} is a request");
        };
        let mut out = Vec::new();
        session.text(&request, &mut out);
        (out, session.room.missed())
    }

    #[test]
    fn a_long_answer_about_the_server_needs_room_as_a_value_does() {
        let settings = Settings {
            detail: true,
            ..Settings::default()
        };
        let server = Server::new(Store::new(&store::Limits::default()).unwrap(), settings);
        for number in 0..20_000 {
            let key = format!("{number}:{}", "k".repeat(50));
            let now = server.clock.now();
            let new = NewItem::default();
            server.store.entry(key.as_bytes(), now).set(&new).unwrap();
            server.prefixes.record_set(key.as_bytes());
        }
        for request in ["stats cachedump 1 0\r\n", "stats detail dump\r\n"] {
            let mut session = Session::new(&server, 0, Room::OF_BASE);
            let (out, missed) = answer(&mut session, request);
            assert!(out.is_empty() && missed > BASE, "{} bytes", out.len());
            session.room = Room::ENDLESS;
            let (out, missed) = answer(&mut session, request);
            assert!(out.len() > BASE && missed == 0, "{request}");
        }
        let mut session = Session::new(&server, 0, Room::OF_BASE);
        let (mut cursor, mut out) = (Cursor::default(), Vec::new());
        let (mut lines, mut most) = (0, BASE);
        while {
            let more = session.dump_part(&mut cursor, &mut out);
            let has_room = session.room.missed() == 0;
            assert!(has_room || out.is_empty(), "{} bytes", out.len());
            assert!(out.len() <= most, "{} bytes", out.len());
            lines += out.iter().filter(|&&byte| byte == b'\n').count();
            out.clear();
            (session.room, most) = match has_room {
                true => (Room::OF_BASE, BASE),
                false => (Room::ENDLESS, usize::MAX),
            };
            more
        } {}
        assert_eq!(lines, 20_001, "each item once, and the end");
    }
}
