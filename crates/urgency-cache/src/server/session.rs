//! The requests of one client, carried out: what all protocols share.
//!
//! A session has no socket. It takes a request, asks the store, counts, and returns what became of it; the
//! protocols' own files (`text_requests`, `meta_requests`, `binary_requests`) put that into words.

use super::{
    Server,
    counters::{Count, Tally},
    output::Room,
};
use crate::{
    protocol::{Data, Mode, number},
    store::{Entry, NewItem, StoreError},
};

/// The longest number: 20 digits with white space and zeros before it. What follows it may be longer.
const NUMBER_MAX: usize = 64;

/// A longer answer about the server would take what large values need.
const LONGEST: usize = super::ALLOWANCE / 2;

/// What became of a value that was to be stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stored {
    /// It is stored and has this version.
    Yes(u64),
    /// It is not, for there is an item, or there is none.
    No,
    /// The item has another version.
    Exists,
    /// There is no item to compare with.
    NotFound,
    /// It does not end where it should.
    Unterminated,
    /// It is too large.
    TooLarge,
    /// There is no memory.
    NoMemory,
}

/// A value to be stored.
#[derive(Clone, Copy, Debug)]
pub struct Put<'a> {
    /// How.
    pub mode: Mode,
    /// The key.
    pub key: &'a [u8],
    /// The client's own flags.
    pub flags: u32,
    /// When it expires, by the server's clock.
    pub expires: u32,
    /// The version that the item must have; 0 is any.
    pub cas: u64,
    /// What `ms` asks for besides.
    pub meta: Option<MetaPut>,
    /// The value.
    pub data: Data<'a>,
}

/// What `ms` may ask for and other commands may not.
#[derive(Clone, Copy, Debug)]
pub struct MetaPut {
    /// Whether an older version than the item's is stored all the same, and marked stale.
    pub may_be_stale: bool,
    /// Whether the client sent the key in base 64, and is to have it back so.
    pub binary_key: bool,
}

/// What became of a number that was to be changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Changed {
    /// The number now, and its version.
    To(u64, u64),
    /// There is none.
    NotFound,
    /// The item has another version.
    Exists,
    /// It is none.
    NotANumber,
    /// There is no memory.
    NoMemory,
}

/// See the module's text.
#[derive(Debug)]
pub struct Session<'s> {
    /// The server.
    pub server: &'s Server,
    /// The number of the connection.
    pub number: u64,
    /// The time of this batch of requests.
    pub now: u32,
    /// What was counted and not yet reported.
    pub tally: Tally,
    /// The memory for answers. A request with a value that has no room does nothing.
    pub room: Room,
    has_stored: bool,
}

impl<'s> Session<'s> {
    /// A session of the connection `number`, whose answers may take up `room`.
    pub fn new(server: &'s Server, number: u64, room: Room) -> Self {
        Session {
            server,
            number,
            now: server.clock.now(),
            tally: Tally::default(),
            room,
            has_stored: false,
        }
    }

    /// Tells the server what was counted.
    #[inline]
    pub fn report(&mut self) {
        if std::mem::take(&mut self.has_stored) {
            self.server.was_changed();
        }
        self.server.counters.report(self.number, &mut self.tally);
    }

    /// Appends an answer whose length depends on the server, if there is room for it. `None`: it is too long for any
    /// connection.
    pub fn append(&mut self, answer: &[u8], out: &mut Vec<u8>) -> Option<()> {
        if answer.len() > LONGEST {
            return None;
        }
        if self.room.admits(out, answer.len()) {
            out.extend_from_slice(answer);
        }
        Some(())
    }

    /// The server's time for what a client asks.
    #[inline]
    pub fn expiry(&self, asked: impl Into<i64>) -> u32 {
        self.server.clock.expiry(asked.into(), self.now)
    }

    /// Stores a value.
    pub fn put(&mut self, put: &Put<'_>) -> Stored {
        self.server.prefixes.record_set(put.key);
        let value = match put.data {
            Data::Whole(value) => value,
            Data::Unterminated => {
                self.tally.add(Count::SetCmds);
                return Stored::Unterminated;
            }
            Data::TooLarge => {
                return self.refused(
                    put,
                    &mut self.server.store.entry(put.key, self.now),
                    Stored::TooLarge,
                );
            }
        };
        let mut entry = self.server.store.entry(put.key, self.now);
        self.tally.add(Count::SetCmds);
        let current = entry
            .item()
            .map(|item| (item.cas(), item.expires(), item.is_won()));
        let mut new = NewItem {
            flags: put.flags,
            expires: put.expires,
            value: &[value],
            cas: None,
        };
        let result = match (put.mode, current) {
            (Mode::Set, _) | (Mode::Add, None) | (Mode::Replace, Some(_)) => entry.set(&new),
            (Mode::Add, Some(_)) => {
                entry.refresh();
                return Stored::No;
            }
            (Mode::Replace | Mode::Append | Mode::Prepend, None) => return Stored::No,
            (Mode::Append | Mode::Prepend, Some((cas, ..))) => {
                if put.cas != 0 && put.cas != cas {
                    return Stored::Exists;
                }
                match put.mode {
                    Mode::Append => entry.append(&[value]),
                    _ => entry.prepend(&[value]),
                }
            }
            (Mode::Cas, None) => {
                self.tally.add(Count::CasMisses);
                return Stored::NotFound;
            }
            (Mode::Cas, Some((cas, ..))) if cas == put.cas => {
                self.tally.add(Count::CasHits);
                entry.set(&new)
            }
            (Mode::Cas, Some((cas, expires, won)))
                if put.meta.is_some_and(|meta| meta.may_be_stale)
                    && (1..cas).contains(&put.cas) =>
            {
                self.tally.add(Count::CasHits);
                new.expires = expires;
                let result = entry.set(&new);
                if result.is_ok() {
                    entry.set_stale(true);
                    entry.set_won(won);
                }
                result
            }
            (Mode::Cas, Some(_)) => {
                self.tally.add(Count::CasBadval);
                return Stored::Exists;
            }
        };
        match result {
            Ok(cas) => {
                self.has_stored = true;
                let is_new = !matches!(put.mode, Mode::Append | Mode::Prepend);
                if is_new && put.meta.is_some_and(|meta| meta.binary_key) {
                    entry.set_binary_key(true);
                }
                Stored::Yes(cas)
            }
            // memcached answers thus when the longer value does not fit.
            Err(_) if matches!(put.mode, Mode::Append | Mode::Prepend) => Stored::No,
            Err(StoreError::TooLarge { .. }) => self.refused(put, &mut entry, Stored::TooLarge),
            Err(_) => self.refused(put, &mut entry, Stored::NoMemory),
        }
    }

    /// A value that could not be stored: an older one must not be taken for it. (`ms` removes that in all modes, as
    /// in memcached.)
    #[cold]
    fn refused(&mut self, put: &Put<'_>, entry: &mut Entry<'_>, why: Stored) -> Stored {
        if put.mode == Mode::Set || put.meta.is_some() {
            entry.remove();
        }
        self.tally.add(match why {
            Stored::TooLarge => Count::StoreTooLarge,
            _ => Count::StoreNoMemory,
        });
        why
    }

    /// Adds to a number, or subtracts; a sum starts again at 0 after 64 bits, and a difference ends at 0.
    pub fn change(
        &mut self,
        entry: &mut Entry<'_>,
        increment: bool,
        delta: u64,
        cas: u64,
    ) -> Changed {
        let Some(item) = entry.item() else {
            return Changed::NotFound;
        };
        let (length, flags, expires) = (item.value_len(), item.flags(), item.expires());
        if length == 0 {
            return Changed::NotANumber;
        }
        let mut digits = Vec::with_capacity(NUMBER_MAX);
        for part in item.value() {
            let room = NUMBER_MAX - digits.len();
            digits.extend_from_slice(&part[..part.len().min(room)]);
        }
        if cas != 0 && cas != item.cas() {
            return Changed::Exists;
        }
        // A number that goes on beyond is none.
        let is_cut = length > NUMBER_MAX && digits.last().is_some_and(u8::is_ascii_digit);
        let (false, Some(number)) = (is_cut, number::unsigned(&digits)) else {
            return Changed::NotANumber;
        };
        let (number, count) = if increment {
            (number.wrapping_add(delta), Count::IncrHits)
        } else {
            (number.saturating_sub(delta), Count::DecrHits)
        };
        self.tally.add(count);
        digits.clear();
        number::push(&mut digits, number);
        let stored = if digits.len() > length {
            // A new item, as in memcached: the old one's marks are gone.
            entry.set(&NewItem {
                flags,
                expires,
                value: &[&digits],
                cas: None,
            })
        } else {
            // A number that became shorter keeps its length, as in memcached.
            let rest = vec![b' '; length - digits.len()];
            entry.replace_value(&[&digits, &rest], None)
        };
        match stored {
            Ok(cas) => {
                self.has_stored = true;
                Changed::To(number, cas)
            }
            Err(_) => Changed::NoMemory,
        }
    }

    /// Stores an item that the client has not sent, a number or an empty one; its version, or `None` if there
    /// is no memory.
    pub fn make(&mut self, entry: &mut Entry<'_>, new: &NewItem<'_>) -> Option<u64> {
        let cas = entry.set(new).ok()?;
        self.has_stored = true;
        Some(cas)
    }

    /// Counts a number that was not there.
    pub fn missed_number(&mut self, increment: bool) {
        self.tally.add(if increment {
            Count::IncrMisses
        } else {
            Count::DecrMisses
        });
    }

    /// Removes an item; `cas` is the version that it must have, 0 is any. `None` if it has another.
    pub fn delete(&mut self, key: &[u8], cas: u64) -> Option<bool> {
        self.server.prefixes.record_delete(key);
        let mut entry = self.server.store.entry(key, self.now);
        if cas != 0 && entry.item().is_some_and(|item| item.cas() != cas) {
            return None;
        }
        let removed = entry.remove();
        self.tally.add(if removed {
            Count::DeleteHits
        } else {
            Count::DeleteMisses
        });
        Some(removed)
    }

    /// Everything that is stored is gone, now or after a delay.
    pub fn flush_all(&mut self, delay: i64) -> bool {
        self.tally.add(Count::FlushCmds);
        if !self.server.settings.flush_allowed {
            return false;
        }
        let at = if delay > 0 {
            self.expiry(delay)
        } else {
            self.now
        };
        self.server.store.flush_all(at, self.now);
        if at <= self.now {
            // Nothing finds the items any more; the crawler gives their memory back.
            self.server.crawl_now();
        }
        true
    }
}
