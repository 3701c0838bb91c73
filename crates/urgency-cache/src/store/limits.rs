//! What a store may use, and the errors that a wrong wish gets.

use std::fmt;

/// The largest item that can be asked for: 1 GiB, as memcached's `-I`.
pub const ITEM_SIZE_MOST: u64 = 1 << 30;
/// The smallest limit on the size of an item that can be asked for, in bytes.
pub const ITEM_SIZE_LEAST: u64 = 1 << 10;
/// The smallest memory limit, in bytes.
pub const MEMORY_LEAST: u64 = 1 << 20;
/// The most shards that can be asked for.
pub const SHARDS_MOST: u32 = 1 << 10;

/// Bytes for each shard, at least, when their number is derived.
const SHARD_MEMORY: u64 = 2 << 20;
/// The most shards when their number is derived.
const SHARDS_AUTO: u32 = 256;

/// What a store may use.
///
/// ```
/// use urgency_cache::store::{Limits, Store};
/// let store = Store::new(&Limits { memory: 16 << 20, ..Limits::default() }).unwrap();
/// assert_eq!(store.limits().memory, 16 << 20);
/// assert!(Store::new(&Limits { memory: 1, ..Limits::default() }).is_err());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes that the store takes from the system at most, all its tables and headers included.
    pub memory: u64,
    /// Bytes of an item at most: key, value and header. memcached's `-I`.
    pub item_size_max: u64,
    /// Whether items are evicted to make room. Without it a full store answers
    /// [`StoreError::OutOfMemory`](super::StoreError::OutOfMemory), as memcached's `-M`.
    pub evict: bool,
    /// The number of shards, a power of two. `None` derives it from `memory`.
    pub shards: Option<u32>,
    /// The share of the memory in per cent that the hot segment may hold.
    pub hot_percent: u32,
    /// The share of the memory in per cent that the warm segment may hold.
    pub warm_percent: u32,
    /// Items that live at most so many seconds go to the temp segment, which is evicted from in its turn only
    /// when no other has items. (What lies beside an item that must go may go with it, whichever segment it
    /// is in.) `None`: there is no temp segment.
    pub temporary_ttl: Option<u32>,
}

impl Default for Limits {
    /// memcached's: 64 MiB, items of 1 MiB, eviction, 20 % hot, 40 % warm, no temp segment.
    fn default() -> Limits {
        Limits {
            memory: 64 << 20,
            item_size_max: 1 << 20,
            evict: true,
            shards: None,
            hot_percent: 20,
            warm_percent: 40,
            temporary_ttl: None,
        }
    }
}

/// A limit that cannot be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LimitsError {
    /// The memory limit is below [`MEMORY_LEAST`].
    Memory {
        /// The bytes asked for.
        value: u64,
        /// The fewest bytes that work, with the number of shards and the item size asked for.
        least: u64,
    },
    /// The limit on the size of an item is not between [`ITEM_SIZE_LEAST`] and half the memory or
    /// [`ITEM_SIZE_MOST`].
    ItemSize {
        /// The bytes asked for.
        value: u64,
        /// The fewest bytes allowed.
        least: u64,
        /// The most bytes allowed.
        most: u64,
    },
    /// The number of shards is no power of two, or above what is possible.
    Shards {
        /// The number asked for.
        value: u32,
        /// The most allowed.
        most: u32,
    },
    /// The hot and the warm segment together leave less than a tenth for the cold one.
    Percent {
        /// The share of the hot segment asked for, in per cent.
        hot: u32,
        /// The share of the warm segment asked for, in per cent.
        warm: u32,
    },
}

impl fmt::Display for LimitsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            LimitsError::Memory { value, least } => {
                write!(
                    f,
                    "a memory limit of {value} bytes is too small: give at least {least}"
                )
            }
            LimitsError::ItemSize { value, least, most } => write!(
                f,
                "an item size limit of {value} bytes is out of range: give {least} to {most} (at most half the memory limit)"
            ),
            LimitsError::Shards { value, most } => {
                write!(f, "{value} shards: give a power of two, at most {most}")
            }
            LimitsError::Percent { hot, warm } => write!(
                f,
                "{hot} % hot and {warm} % warm: give each at least 1, and 90 together at most"
            ),
        }
    }
}

impl std::error::Error for LimitsError {}

impl Limits {
    /// Checks everything and says how many shards there shall be; [`Store::new`](super::Store::new) does it
    /// as well.
    ///
    /// ```
    /// use urgency_cache::store::Limits;
    /// assert!(Limits::default().check().is_ok());
    /// assert!(Limits { hot_percent: 95, ..Limits::default() }.check().is_err());
    /// ```
    ///
    /// # Errors
    /// A [`LimitsError`] names the limit that cannot be, its value and what is allowed.
    pub fn check(&self) -> Result<u32, LimitsError> {
        if self.memory < MEMORY_LEAST {
            return Err(LimitsError::Memory {
                value: self.memory,
                least: MEMORY_LEAST,
            });
        }
        let most = ITEM_SIZE_MOST.min(self.memory / 2);
        if !(ITEM_SIZE_LEAST..=most).contains(&self.item_size_max) {
            return Err(LimitsError::ItemSize {
                value: self.item_size_max,
                least: ITEM_SIZE_LEAST,
                most,
            });
        }
        if let Some(value) = self.shards
            && (!value.is_power_of_two() || value > SHARDS_MOST)
        {
            return Err(LimitsError::Shards {
                value,
                most: SHARDS_MOST,
            });
        }
        let (hot, warm) = (self.hot_percent, self.warm_percent);
        if hot == 0 || warm == 0 || hot > 90 || warm > 90 || hot + warm > 90 {
            return Err(LimitsError::Percent { hot, warm });
        }
        let shards = self.shards.unwrap_or_else(|| {
            let most = (self.memory / SHARD_MEMORY).clamp(1, u64::from(SHARDS_AUTO)) as u32;
            1 << most.ilog2()
        });
        let least = super::fixed_cost(shards) + u64::from(shards) * 4 * super::heap::PAGE_COST;
        if self.memory < least {
            return Err(LimitsError::Memory {
                value: self.memory,
                least,
            });
        }
        Ok(shards)
    }
}
