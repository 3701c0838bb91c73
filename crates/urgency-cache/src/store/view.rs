//! An item under its shard's lock.

/// An item, seen while its shard is held: everything in it is of one moment. Copy what you need.
pub struct ItemView<'a> {
    pub(super) key: &'a [u8],
    pub(super) stored: &'a super::shard::Stored,
}

impl<'a> ItemView<'a> {
    /// The key.
    pub fn key(&self) -> &'a [u8] {
        self.key
    }
    /// The client's flags.
    pub fn flags(&self) -> u32 {
        self.stored.flags
    }
    /// The CAS id.
    pub fn cas(&self) -> u64 {
        self.stored.cas
    }
    /// When it expires, in seconds on the caller's clock; 0 for never.
    pub fn expires(&self) -> u32 {
        self.stored.expires
    }
    /// When it was last read or written, in seconds on the caller's clock. In the closure of
    /// [`Store::get`](super::Store::get) it is the time before this read.
    pub fn accessed(&self) -> u32 {
        self.stored.accessed
    }
    /// Whether it was read since it was stored. In the closure of
    /// [`Store::get`](super::Store::get) this read does not count.
    pub fn was_fetched(&self) -> bool {
        self.stored.fetched
    }
    /// Whether it is marked stale (meta protocol).
    pub fn is_stale(&self) -> bool {
        self.stored.stale
    }
    /// Whether somebody has won the right to recache it (meta protocol).
    pub fn is_won(&self) -> bool {
        self.stored.won
    }
    /// Bytes of the value.
    pub fn value_len(&self) -> usize {
        self.stored.value.len()
    }
    /// The value in order; a large one comes in several parts.
    pub fn value(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        std::iter::once(&self.stored.value[..])
    }
    /// Bytes that the item takes in the memory, header and rounding included.
    pub fn size(&self) -> usize {
        56 + self.key.len() + self.stored.value.len()
    }
    /// Appends the value to `to`.
    pub fn copy_to(&self, to: &mut Vec<u8>) {
        to.reserve(self.value_len());
        for part in self.value() {
            to.extend_from_slice(part);
        }
    }
}
