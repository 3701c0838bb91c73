//! An item as the outside sees it.

use std::fmt;

/// Bytes of a key at most.
pub const KEY_MOST: usize = 250;

/// An item to be stored.
#[derive(Clone, Copy, Debug, Default)]
pub struct NewItem<'a> {
    /// The client's flags.
    pub flags: u32,
    /// When it expires, in seconds on the caller's clock; 0 for never.
    pub expires: u32,
    /// The value, in parts that are put one after the other.
    pub value: &'a [&'a [u8]],
    /// Its CAS id; `None` for the next one of the store.
    pub cas: Option<u64>,
}

/// Why an item was not stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StoreError {
    /// Key, value and header are together larger than the limit on items.
    TooLarge {
        /// The bytes that it would take.
        size: u64,
        /// The bytes that an item may take.
        most: u64,
    },
    /// No memory could be freed for it.
    OutOfMemory {
        /// The bytes that it would take.
        size: u64,
    },
    /// There is no such item.
    Absent,
    /// The key is empty or longer than [`KEY_MOST`] bytes.
    Key {
        /// Its length in bytes.
        len: usize,
    },
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            StoreError::TooLarge { size, most } => {
                write!(f, "the item takes {size} bytes; at most {most} are allowed")
            }
            StoreError::OutOfMemory { size } => {
                write!(f, "no memory can be freed for an item of {size} bytes")
            }
            StoreError::Absent => f.write_str("there is no such item"),
            StoreError::Key { len } => {
                write!(f, "a key of {len} bytes; 1 to {KEY_MOST} are allowed")
            }
        }
    }
}

impl std::error::Error for StoreError {}
