//! One shard.

use std::collections::HashMap;

#[derive(Clone)]
pub(crate) struct Stored {
    pub flags: u32,
    pub cas: u64,
    pub expires: u32,
    pub accessed: u32,
    pub fetched: bool,
    pub stale: bool,
    pub won: bool,
    pub value: Box<[u8]>,
}

#[derive(Default)]
pub(crate) struct Shard {
    pub map: HashMap<Box<[u8]>, Stored>,
    pub bytes: u64,
    pub stats: super::StoreStats,
    pub flush_at: Option<u32>,
}

impl Shard {
    pub fn tick(&mut self, now: u32) {
        if self.flush_at.is_some_and(|at| at <= now) {
            self.flush_at = None;
            self.map.clear();
            self.bytes = 0;
        }
    }
    pub fn live(&mut self, key: &[u8], now: u32) -> bool {
        self.tick(now);
        match self.map.get(key) {
            None => false,
            Some(s) if s.expires != 0 && s.expires <= now => {
                self.remove(key);
                false
            }
            Some(_) => true,
        }
    }
    pub fn remove(&mut self, key: &[u8]) -> bool {
        match self.map.remove(key) {
            None => false,
            Some(s) => {
                self.bytes -= 56 + (key.len() + s.value.len()) as u64;
                true
            }
        }
    }
    pub fn insert(&mut self, key: &[u8], s: Stored, limit: u64, evict: bool) -> bool {
        self.remove(key);
        let size = 56 + (key.len() + s.value.len()) as u64;
        while self.bytes + size > limit {
            let oldest = self
                .map
                .iter()
                .min_by_key(|(_, s)| s.accessed)
                .map(|(k, _)| k.clone());
            match oldest {
                Some(k) if evict => {
                    self.remove(&k);
                    self.stats.evictions += 1;
                }
                _ => {
                    self.stats.outofmemory += 1;
                    return false;
                }
            }
        }
        self.bytes += size;
        self.stats.total_items += 1;
        self.map.insert(key.into(), s);
        true
    }
}
