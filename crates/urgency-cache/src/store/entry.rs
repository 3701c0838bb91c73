//! Exclusive access to one key.

use parking_lot::MutexGuard;

use super::Store;
use super::header::{BINARY_KEY, Meta, STALE, WON, footprint};
use super::heap::{PAGE, Ref};
use super::item::{KEY_MOST, NewItem, StoreError};
use super::shard::{Content, Key, Shard};
use super::view::ItemView;

/// Exclusive access to one key, with or without an item: no other thread can see or change the key while the entry
/// lives. It holds the lock of the key's shard, so keep it short, and never ask for a second one, nor call the store
/// otherwise, before it is dropped.
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
    pub(super) key: Key<'a>,
    pub(super) now: u32,
    pub(super) item: Option<Ref>,
    pub(super) wrote: bool,
}

/// A write does its share of the background work last, when nothing refers to the item any more.
impl Drop for Entry<'_> {
    fn drop(&mut self) {
        if self.wrote {
            self.shard.upkeep(self.now);
        }
    }
}

impl Entry<'_> {
    /// The item, if there is one that has not expired. This does not count as a read.
    pub fn item(&self) -> Option<ItemView<'_>> {
        self.item.map(|r| ItemView::new(&self.shard.heap, r))
    }

    fn put(&mut self, meta: Meta, content: Content<'_>, stay: bool) -> Result<u64, StoreError> {
        let len = self.key.bytes.len();
        if len == 0 || len > KEY_MOST {
            return Err(StoreError::Key { len });
        }
        let kept = self
            .item()
            .filter(|_| content.keep)
            .map_or(0, |item| item.value_len());
        let parts = content.before.iter().chain(content.after);
        let value = kept as u64 + parts.map(|part| part.len() as u64).sum::<u64>();
        let size = footprint(len, value);
        let most = self.store.limits.item_size_max;
        if size > most {
            return Err(StoreError::TooLarge { size, most });
        }
        if size > PAGE as u64 {
            self.store
                .gather(self.key.hash, &mut self.shard, size, self.now);
        }
        self.wrote = true;
        let mut put = self
            .shard
            .put(self.key, self.item, meta, content, stay, self.now);
        if put.is_err() {
            self.item = self.shard.find(self.key, self.now);
            if (!content.keep || self.item.is_some())
                && self
                    .store
                    .gather(self.key.hash, &mut self.shard, size, self.now)
            {
                put = self
                    .shard
                    .put(self.key, self.item, meta, content, stay, self.now);
            }
        }
        match put {
            Ok(r) => {
                self.item = Some(r);
                Ok(meta.cas)
            }
            Err(_) => {
                self.item = self.shard.find(self.key, self.now);
                self.shard.count.outofmemory += 1;
                Err(StoreError::OutOfMemory { size })
            }
        }
    }

    fn meta(&self, cas: Option<u64>) -> Result<Meta, StoreError> {
        let r = self.item.ok_or(StoreError::Absent)?;
        let cas = self.store.cas(cas);
        Ok(Meta {
            cas,
            accessed: self.now,
            ..self.shard.heap.header(r).meta()
        })
    }

    fn unmarked(&self) -> Result<Meta, StoreError> {
        let meta = self.meta(None)?;
        Ok(Meta { marks: 0, ..meta })
    }

    /// Stores an item in place of whatever is there; returns its CAS id. Marks are cleared.
    ///
    /// # Errors
    /// [`StoreError::TooLarge`], and an item that is there stays;
    /// [`StoreError::OutOfMemory`], and an item that was there may be gone.
    pub fn set(&mut self, new: &NewItem<'_>) -> Result<u64, StoreError> {
        let meta = Meta {
            flags: new.flags,
            expires: new.expires,
            accessed: self.now,
            cas: self.store.cas(new.cas),
            marks: 0,
            generation: 0,
        };
        self.put(
            meta,
            Content {
                before: new.value,
                ..Content::default()
            },
            false,
        )
    }

    /// Puts `more` after the value; returns the new CAS id. Flags and expiry stay; in the LRU it is a
    /// new item, and marks are cleared.
    ///
    /// # Errors
    /// As [`set`](Self::set), and [`StoreError::Absent`]. On errors the old item stays.
    pub fn append(&mut self, more: &[&[u8]]) -> Result<u64, StoreError> {
        let meta = self.unmarked()?;
        self.put(
            meta,
            Content {
                before: &[],
                keep: true,
                after: more,
            },
            false,
        )
    }

    /// Puts `more` before the value; returns the new CAS id. Flags and expiry stay; in the LRU it is a
    /// new item, and marks are cleared.
    ///
    /// # Errors
    /// As [`set`](Self::set), and [`StoreError::Absent`]. On errors the old item stays.
    pub fn prepend(&mut self, more: &[&[u8]]) -> Result<u64, StoreError> {
        let meta = self.unmarked()?;
        self.put(
            meta,
            Content {
                before: more,
                keep: true,
                after: &[],
            },
            false,
        )
    }

    /// Changes the value and nothing else but the CAS id (`None` for the next one), which it returns.
    /// A value that takes as much room as the old one stays where it is in memory and in the LRU.
    ///
    /// # Errors
    /// As [`set`](Self::set), and [`StoreError::Absent`].
    pub fn replace_value(&mut self, value: &[&[u8]], cas: Option<u64>) -> Result<u64, StoreError> {
        let meta = self.meta(cas)?;
        self.put(
            meta,
            Content {
                before: value,
                ..Content::default()
            },
            true,
        )
    }

    /// Counts as a read, as [`Store::get`](super::Store::get) does. `false` if there is no item.
    pub fn access(&mut self) -> bool {
        let now = self.now;
        self.item.map(|r| self.shard.access(r, now)).is_some()
    }

    /// Notes that the item is in use now, which does not count as a read. `false` if there is no item.
    pub fn refresh(&mut self) -> bool {
        let now = self.now;
        self.item
            .map(|r| self.shard.heap.set_accessed(r, now))
            .is_some()
    }

    /// Sets when the item expires; 0 for never. `false` if there is no item.
    pub fn set_expires(&mut self, expires: u32) -> bool {
        self.item
            .map(|r| self.shard.heap.set_expires(r, expires))
            .is_some()
    }

    /// Sets the client's flags. `false` if there is no item.
    pub fn set_flags(&mut self, flags: u32) -> bool {
        self.item
            .map(|r| self.shard.heap.set_flags(r, flags))
            .is_some()
    }

    /// Gives the item a new CAS id (`None` for the next one). `None` if there is no item.
    pub fn set_cas(&mut self, cas: Option<u64>) -> Option<u64> {
        let r = self.item?;
        let cas = self.store.cas(cas);
        self.shard.heap.set_cas(r, cas);
        Some(cas)
    }

    /// Sets or clears the mark "stale" (meta protocol). `false` if there is no item.
    pub fn set_stale(&mut self, stale: bool) -> bool {
        self.mark(STALE, stale)
    }

    /// Sets or clears the mark "somebody has won the right to recache" (meta protocol). `false` if
    /// there is no item.
    pub fn set_won(&mut self, won: bool) -> bool {
        self.mark(WON, won)
    }

    /// Sets or clears the mark "the client sent the key in base 64" (meta protocol). `false` if there is no item.
    pub fn set_binary_key(&mut self, binary: bool) -> bool {
        self.mark(BINARY_KEY, binary)
    }

    fn mark(&mut self, mark: u8, on: bool) -> bool {
        let (set, clear) = if on { (mark, 0) } else { (0, mark) };
        self.item
            .map(|r| self.shard.heap.set_marks(r, set, clear))
            .is_some()
    }

    /// Removes the item. `false` if there was none.
    pub fn remove(&mut self) -> bool {
        self.item.take().map(|r| self.shard.discard(r)).is_some()
    }
}
