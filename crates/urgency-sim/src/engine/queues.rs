//! Queues of ready vertices: each worker's, its slot, and the shared ones.

use crate::dag::Vertex;
use std::collections::VecDeque;
use urgency_policy::pool::End;

#[derive(Debug)]
pub(super) struct LocalQueues {
    /// By worker and level, the oldest first; by depth if they are banks.
    own: Vec<VecDeque<Vertex>>,
    slots: Vec<Option<Vertex>>,
    /// By level and number.
    shared: Vec<VecDeque<Vertex>>,
    shared_each: usize,
    /// By level: the numbers of the overloaded.
    pub adverts: Vec<VecDeque<u32>>,
    levels: usize,
    /// By level: when the last operation on a shared queue ends.
    pub shared_free_at: Vec<u64>,
}

impl LocalQueues {
    pub(super) fn new(workers: usize, levels: usize, shared_each: usize) -> Self {
        LocalQueues {
            own: vec![VecDeque::new(); workers * levels],
            slots: vec![None; workers * levels],
            shared: vec![VecDeque::new(); levels * shared_each],
            shared_each,
            adverts: vec![VecDeque::new(); levels],
            levels,
            shared_free_at: vec![0; levels * shared_each.max(1)],
        }
    }

    fn at(&self, worker: usize, level: u8) -> usize {
        worker * self.levels + usize::from(level)
    }

    pub(super) fn own(&mut self, worker: usize, level: u8) -> &mut VecDeque<Vertex> {
        let at = self.at(worker, level);
        &mut self.own[at]
    }

    pub(super) fn len(&self, worker: usize, level: u8) -> usize {
        self.own[self.at(worker, level)].len()
    }

    pub(super) fn slot(&mut self, worker: usize, level: u8) -> &mut Option<Vertex> {
        let at = self.at(worker, level);
        &mut self.slots[at]
    }

    pub(super) fn shared(&mut self, level: u8, number: usize) -> &mut VecDeque<Vertex> {
        &mut self.shared[usize::from(level) * self.shared_each + number]
    }

    pub(super) fn shared_clock(&mut self, level: u8, number: usize) -> &mut u64 {
        &mut self.shared_free_at[usize::from(level) * self.shared_each + number]
    }

    /// Which of a level's shared queues have an entry.
    pub(super) fn occupied(&self, level: u8) -> u64 {
        let from = usize::from(level) * self.shared_each;
        let queues = &self.shared[from..from + self.shared_each];
        queues
            .iter()
            .enumerate()
            .filter(|(_, queue)| !queue.is_empty())
            .fold(0, |bits, (number, _)| bits | 1 << number)
    }

    /// The levels at which this worker's slot is taken.
    pub(super) fn own_slots(&self, worker: usize) -> u64 {
        let from = worker * self.levels;
        let slots = self.slots[from..from + self.levels].iter().enumerate();
        slots.fold(0, |bits, (level, slot)| {
            bits | u64::from(slot.is_some()) << level
        })
    }

    /// The levels at which this worker itself, or a shared queue, has something.
    pub(super) fn own_levels(&self, worker: usize) -> u64 {
        (0..self.levels as u8).fold(self.own_slots(worker), |bits, level| {
            let has = self.len(worker, level) > 0 || self.occupied(level) != 0;
            bits | u64::from(has) << level
        })
    }

    /// Takes an entry of the worker's own; whether it came from the slot.
    pub(super) fn take(&mut self, worker: usize, level: u8, end: End) -> Option<(Vertex, bool)> {
        let queue = self.own(worker, level);
        match end {
            End::Slot => self.slot(worker, level).take().map(|vertex| (vertex, true)),
            End::Oldest => queue.pop_front().map(|vertex| (vertex, false)),
            // Banks are sorted: the deepest is the last.
            End::Newest | End::Deepest => queue.pop_back().map(|vertex| (vertex, false)),
        }
    }
}
