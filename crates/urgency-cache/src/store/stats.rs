//! The numbers of a store, as a snapshot.

/// The segments of the LRU, in the order of [`StoreStats::segments`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Segment {
    /// New items.
    Hot = 0,
    /// Items that were read at least twice.
    Warm = 1,
    /// Items that wait to be read or evicted.
    Cold = 2,
    /// Items that live for a short time only.
    Temp = 3,
}

impl Segment {
    /// The segments, in the order of [`StoreStats::segments`].
    pub const ALL: [Segment; 4] = [Segment::Hot, Segment::Warm, Segment::Cold, Segment::Temp];
}

/// The numbers of one segment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SegmentStats {
    /// Items in it.
    pub items: u64,
    /// Bytes of these items, headers and rounding included.
    pub bytes: u64,
    /// Reads that found their item here.
    pub hits: u64,
    /// Seconds since the oldest item of the segment was used.
    pub age: u32,
}

/// The numbers of a store, all since its start unless they are sizes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoreStats {
    /// The memory limit, in bytes.
    pub limit: u64,
    /// Bytes taken from the system: pages, tables, everything. Not above `limit`, unless
    /// that was lowered: then nothing more is taken until enough was given back.
    pub allocated: u64,
    /// Items stored now.
    pub curr_items: u64,
    /// Items ever stored.
    pub total_items: u64,
    /// Bytes of the items stored now, headers and rounding included.
    pub bytes: u64,
    /// Bytes of the tables.
    pub hash_bytes: u64,
    /// The base-2 logarithm of the number of items that the tables hold before they grow.
    pub hash_power_level: u32,
    /// Whether a table is growing now.
    pub hash_is_expanding: bool,
    /// The segments: hot, warm, cold, temp.
    pub segments: [SegmentStats; 4],
    /// Items evicted to make room.
    pub evictions: u64,
    /// Evicted items that had an expiry time.
    pub evicted_nonzero: u64,
    /// Evicted items that were never read.
    pub evicted_unfetched: u64,
    /// Evicted items that had been read twice or more since they were last looked at.
    pub evicted_active: u64,
    /// Seconds between the last use of the item evicted last and its eviction.
    pub evicted_time: u32,
    /// Expired items whose memory a write took over.
    pub reclaimed: u64,
    /// Expired items that were never read.
    pub expired_unfetched: u64,
    /// Expired items that the crawler removed.
    pub crawler_reclaimed: u64,
    /// Items that the crawler looked at.
    pub crawler_items_checked: u64,
    /// Writes that found no memory.
    pub outofmemory: u64,
    /// Moves of an item into the cold segment.
    pub moves_to_cold: u64,
    /// Moves of an item into the warm segment.
    pub moves_to_warm: u64,
    /// Moves of an item to the head of its own segment.
    pub moves_within_lru: u64,
    /// Writes that had to evict by themselves because nobody had done it ahead.
    pub direct_reclaims: u64,
    /// Pages that moved from one shard to another or to the system.
    pub pages_moved: u64,
    /// Items that were moved within the memory to empty a page.
    pub items_moved: u64,
    /// Items stored in more than one piece.
    pub split_items: u64,
    /// Pages taken from the system.
    pub pages: u64,
    /// Bytes of a page.
    pub page_size: u64,
    /// Bytes in pages of items that hold no item.
    pub free_bytes: u64,
    /// Shards.
    pub shards: u64,
}
