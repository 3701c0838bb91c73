//! Aging where a level's queue is in shards: when a worker must help another shard.
//!
//! A worker takes from its own shard, at most [`FREE`] entries in a row. Then it looks at the other shards
//! ([`lagging`]). The runtime's `protocol/pace.rs` says the rules, and proves what follows: before an entry is taken,
//! each worker takes at most `FREE` entries that became ready after it was put in, and one more of each shard.

/// How many entries a worker takes between two looks at the other shards.
pub const FREE: u32 = 64;

/// Which of the other shards lags, if one does: a worker that has taken something as young as `youngest` must take of
/// that one next. Each shard that has an entry says the youngest stamp that it has given. `None`: the worker may take
/// [`FREE`] entries as it likes.
///
/// ```
/// use urgency_policy::pool::{FREE, lagging};
///
/// assert_eq!(FREE, 64);
/// let shards = [(1, 70), (2, 50), (3, 60)];
/// assert_eq!(lagging(65, shards.into_iter()), Some((2, 50)), "it has given the oldest");
/// assert_eq!(lagging(50, shards.into_iter()), None);
/// ```
#[inline]
pub fn lagging(youngest: u64, others: impl Iterator<Item = (usize, u64)>) -> Option<(usize, u64)> {
    let oldest = others.min_by_key(|&(_, given)| given);
    oldest.filter(|&(_, given)| given < youngest)
}
