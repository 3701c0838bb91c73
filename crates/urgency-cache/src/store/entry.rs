//! Exclusive access to one key.

use parking_lot::MutexGuard;

use super::Store;
use super::item::{KEY_MOST, NewItem, StoreError};
use super::shard::{Shard, Stored};
use super::view::ItemView;

/// Exclusive access to one key, with or without an item: nobody else can see or change the key
/// while the entry lives. It holds the lock of the key's shard, so keep it short, and never ask for
/// a second one, nor call the store otherwise, before it is dropped.
///
/// ```
/// use urgency_cache::store::{Limits, NewItem, Store};
/// let store = Store::new(&Limits::default()).unwrap();
/// let now = 2;
/// let mut entry = store.entry(b"greeting", now);
/// assert!(entry.item().is_none());
/// entry.set(&NewItem { value: &[b"hello"], ..NewItem::default() }).unwrap();
/// entry.append(&[b" ", b"world"]).unwrap();
/// drop(entry);
/// let mut value = Vec::new();
/// store.get(b"greeting", now, |item| item.copy_to(&mut value)).unwrap();
/// assert_eq!(value, b"hello world");
/// ```
pub struct Entry<'a> {
    pub(super) store: &'a Store,
    pub(super) shard: MutexGuard<'a, Shard>,
    pub(super) key: &'a [u8],
    pub(super) now: u32,
    pub(super) live: bool,
}

impl Entry<'_> {
    /// The item, if there is one that has not expired. This does not count as a read.
    pub fn item(&self) -> Option<ItemView<'_>> {
        if !self.live {
            return None;
        }
        self.shard.map.get(self.key).map(|stored| ItemView {
            key: self.key,
            stored,
        })
    }

    fn stored(&mut self) -> Option<&mut Stored> {
        if self.live {
            self.shard.map.get_mut(self.key)
        } else {
            None
        }
    }

    fn put(&mut self, stored: Stored) -> Result<u64, StoreError> {
        let len = self.key.len();
        if len == 0 || len > KEY_MOST {
            return Err(StoreError::Key { len });
        }
        let size = 56 + (len + stored.value.len()) as u64;
        let most = self.store.limits.item_size_max;
        if size > most {
            return Err(StoreError::TooLarge { size, most });
        }
        let cas = stored.cas;
        let limits = &self.store.limits;
        self.live = self
            .shard
            .insert(self.key, stored, self.store.shard_limit(), limits.evict);
        if self.live {
            Ok(cas)
        } else {
            Err(StoreError::OutOfMemory { size })
        }
    }

    /// Stores an item in place of whatever is there; returns its CAS id. Marks are cleared.
    ///
    /// # Errors
    /// [`StoreError::TooLarge`], and an item that is there stays;
    /// [`StoreError::OutOfMemory`], and an item that was there may be gone.
    pub fn set(&mut self, new: &NewItem<'_>) -> Result<u64, StoreError> {
        let cas = self.store.cas(new.cas);
        let now = self.now;
        self.put(Stored {
            flags: new.flags,
            cas,
            expires: new.expires,
            accessed: now,
            fetched: false,
            stale: false,
            won: false,
            value: new.value.concat().into(),
        })
    }

    /// Puts `more` after the value; returns the new CAS id. Everything else stays.
    ///
    /// # Errors
    /// As [`set`](Self::set), and [`StoreError::Absent`].
    pub fn append(&mut self, more: &[&[u8]]) -> Result<u64, StoreError> {
        let mut s = self.stored().ok_or(StoreError::Absent)?.clone();
        let mut value = s.value.to_vec();
        more.iter().for_each(|part| value.extend_from_slice(part));
        s.value = value.into();
        s.cas = self.store.cas(None);
        self.put(s)
    }

    /// Puts `more` before the value; returns the new CAS id. Everything else stays.
    ///
    /// # Errors
    /// As [`set`](Self::set), and [`StoreError::Absent`].
    pub fn prepend(&mut self, more: &[&[u8]]) -> Result<u64, StoreError> {
        let mut s = self.stored().ok_or(StoreError::Absent)?.clone();
        let mut value = more.concat();
        value.extend_from_slice(&s.value);
        s.value = value.into();
        s.cas = self.store.cas(None);
        self.put(s)
    }

    /// Changes the value and nothing else but the CAS id (`None` for the next one), which it returns.
    /// A value of the same length stays where it is in memory and in the LRU.
    ///
    /// # Errors
    /// As [`set`](Self::set), and [`StoreError::Absent`].
    pub fn replace_value(&mut self, value: &[&[u8]], cas: Option<u64>) -> Result<u64, StoreError> {
        let mut s = self.stored().ok_or(StoreError::Absent)?.clone();
        s.value = value.concat().into();
        s.cas = self.store.cas(cas);
        self.put(s)
    }

    /// Counts as a read, as [`Store::get`](super::Store::get) does. `false` if there is no item.
    pub fn access(&mut self) -> bool {
        let now = self.now;
        self.stored()
            .map(|s| (s.fetched, s.accessed) = (true, now))
            .is_some()
    }

    /// Sets when the item expires; 0 for never. `false` if there is no item.
    pub fn set_expires(&mut self, expires: u32) -> bool {
        self.stored().map(|s| s.expires = expires).is_some()
    }

    /// Sets the client's flags. `false` if there is no item.
    pub fn set_flags(&mut self, flags: u32) -> bool {
        self.stored().map(|s| s.flags = flags).is_some()
    }

    /// Gives the item a new CAS id (`None` for the next one). `None` if there is no item.
    pub fn set_cas(&mut self, cas: Option<u64>) -> Option<u64> {
        let cas = self.store.cas(cas);
        self.stored().map(|s| {
            s.cas = cas;
            cas
        })
    }

    /// Sets or clears the mark "stale" (meta protocol). `false` if there is no item.
    pub fn set_stale(&mut self, stale: bool) -> bool {
        self.stored().map(|s| s.stale = stale).is_some()
    }

    /// Sets or clears the mark "somebody has won the right to recache" (meta protocol). `false` if
    /// there is no item.
    pub fn set_won(&mut self, won: bool) -> bool {
        self.stored().map(|s| s.won = won).is_some()
    }

    /// Removes the item. `false` if there was none.
    pub fn remove(&mut self) -> bool {
        let was = self.live && self.shard.remove(self.key);
        self.live = false;
        was
    }
}
