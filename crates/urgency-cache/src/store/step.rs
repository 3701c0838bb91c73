//! Background work, in small pieces.

use super::Store;
use super::view::ItemView;

/// What a step did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Done {
    /// The work done, in the unit of the step's budget.
    pub work: u64,
    /// Whether there is more to do now.
    pub more: bool,
}

/// How far a walk over all items has come. A new one is at the beginning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cursor {
    shard: usize,
}

impl Store {
    /// Moves items between the segments of the LRU, so that a write finds its victim at once. At
    /// most `budget` items.
    pub fn lru_step(&self, now: u32, budget: u64) -> Done {
        let _ = (now, budget);
        Done::default()
    }

    /// Removes expired and flushed items: looks at about `budget` items and moves the cursor on.
    /// `more` is false once the walk has come to its end; the cursor is at the beginning again.
    pub fn crawl_step(&self, cursor: &mut Cursor, now: u32, budget: u64) -> Done {
        self.walk_step(cursor, now, budget, |_| {})
    }

    /// Calls `visit` for about `budget` live items, in no useful order, while their shard is held, and
    /// moves the cursor on. An item that is stored or moved in memory during the walk may be missed
    /// or seen twice. Expired and flushed items are removed on the way.
    pub fn walk_step(
        &self,
        cursor: &mut Cursor,
        now: u32,
        budget: u64,
        mut visit: impl FnMut(&ItemView<'_>),
    ) -> Done {
        let _ = budget;
        let Some(shard) = self.shards.get(cursor.shard) else {
            *cursor = Cursor::default();
            return Done::default();
        };
        let mut shard = shard.lock();
        shard.tick(now);
        let dead: Vec<_> = shard
            .map
            .iter()
            .filter(|(_, s)| s.expires != 0 && s.expires <= now)
            .map(|(key, _)| key.clone())
            .collect();
        for key in dead {
            shard.remove(&key);
        }
        for (key, stored) in &shard.map {
            visit(&ItemView { key, stored });
        }
        let work = shard.map.len() as u64;
        cursor.shard += 1;
        let more = cursor.shard < self.shards.len();
        if !more {
            *cursor = Cursor::default();
        }
        Done { work, more }
    }

    /// Grows the tables ahead of need, at most `budget` buckets.
    pub fn grow_step(&self, budget: u64) -> Done {
        let _ = budget;
        Done::default()
    }

    /// Gives pages of shards that have too many to those that have too few, or back to the system
    /// after the limit was lowered. Moves or evicts about `budget` items.
    pub fn rebalance_step(&self, now: u32, budget: u64) -> Done {
        let _ = (now, budget);
        Done::default()
    }
}
