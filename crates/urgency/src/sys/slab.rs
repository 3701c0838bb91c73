//! Entries under keys that are never valid twice.
//!
//! A key is an index and the generation of its slot, packed into the word that the kernel carries in an
//! event. Removing an entry advances the generation, so that a stale key (of an event that a thread had
//! fetched before the descriptor was closed, of a timer that fired) finds nothing, also when the slot is in
//! use again. A generation comes back after 2^31 uses of one slot.

/// See the module's text.
#[derive(Debug)]
pub(crate) struct Slab<T> {
    slots: Vec<Slot<T>>,
    free: u32,
}

#[derive(Debug)]
struct Slot<T> {
    generation: u32,
    /// The entry, or the next free slot.
    content: Result<T, u32>,
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Slab::new()
    }
}

/// The end of the free list.
const NONE: u32 = u32::MAX;

/// Half the range: keys of entries stay below the poller's own.
const GENERATIONS: u32 = u32::MAX >> 1;

fn pack(index: u32, generation: u32) -> u64 {
    u64::from(generation) << 32 | u64::from(index)
}

fn unpack(key: u64) -> (usize, u32) {
    (key as u32 as usize, (key >> 32) as u32)
}

impl<T> Slab<T> {
    pub(crate) const fn new() -> Self {
        Slab {
            slots: Vec::new(),
            free: NONE,
        }
    }

    pub(crate) fn insert(&mut self, value: T) -> u64 {
        if self.free == NONE {
            let index = u32::try_from(self.slots.len()).expect("descriptors and memory end before");
            self.slots.push(Slot {
                generation: 0,
                content: Ok(value),
            });
            return pack(index, 0);
        }
        let index = self.free;
        let slot = &mut self.slots[index as usize];
        match std::mem::replace(&mut slot.content, Ok(value)) {
            Err(next) => self.free = next,
            Ok(_) => unreachable!("the free list names a used slot"),
        }
        pack(index, slot.generation)
    }

    pub(crate) fn get(&self, key: u64) -> Option<&T> {
        let (index, generation) = unpack(key);
        let slot = self.slots.get(index)?;
        slot.content
            .as_ref()
            .ok()
            .filter(|_| slot.generation == generation)
    }

    pub(crate) fn get_mut(&mut self, key: u64) -> Option<&mut T> {
        let (index, generation) = unpack(key);
        let slot = self.slots.get_mut(index)?;
        if slot.generation != generation {
            return None;
        }
        slot.content.as_mut().ok()
    }

    pub(crate) fn remove(&mut self, key: u64) -> Option<T> {
        self.get(key)?;
        let (index, _) = unpack(key);
        let slot = &mut self.slots[index];
        let value = std::mem::replace(&mut slot.content, Err(self.free)).ok();
        slot.generation = (slot.generation + 1) & GENERATIONS;
        self.free = index as u32;
        value
    }

    /// All, with their keys.
    pub(crate) fn entries(&self) -> impl Iterator<Item = (u64, &T)> {
        (0..).zip(&self.slots).filter_map(|(index, slot)| {
            let entry = slot.content.as_ref().ok()?;
            Some((pack(index, slot.generation), entry))
        })
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.slots.iter().filter_map(|s| s.content.as_ref().ok())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stale_key_finds_nothing_although_its_slot_is_used_again() {
        let mut slab = Slab::new();
        let first = slab.insert("first");
        assert_eq!(slab.remove(first), Some("first"));
        let second = slab.insert("second");
        assert_eq!(first as u32, second as u32, "the slot is the same");
        assert_eq!(slab.get(first), None);
        assert_eq!(slab.get_mut(first), None);
        assert_eq!(slab.remove(first), None);
        assert_eq!(slab.get(second), Some(&"second"));
        assert_eq!(slab.iter().count(), 1);
        assert!(slab.entries().eq([(second, &"second")]));
    }

    #[test]
    fn freed_slots_are_used_before_new_ones() {
        let mut slab = Slab::new();
        let keys: Vec<_> = (0..10).map(|i| slab.insert(i)).collect();
        for key in &keys {
            slab.remove(*key).unwrap();
        }
        assert_eq!(slab.iter().count(), 0);
        for i in 0..10 {
            slab.insert(i);
        }
        assert_eq!(slab.slots.len(), 10);
        assert_eq!(slab.iter().count(), 10);
    }
}
