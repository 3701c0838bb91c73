//! Deques, and where they stand: in a level's two queues, or in a worker's set.

use crate::dag::{NONE, Vertex};
use std::collections::VecDeque;
use urgency_policy::pool::Queue;

/// What a deque's thread does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Life {
    /// A worker runs it.
    Active,
    /// It waits.
    Suspended,
    /// It can go on, with its bottom vertex.
    Resumable,
    /// The record can be used again.
    Free,
}

#[derive(Debug)]
pub(super) struct Deque {
    /// The oldest first.
    pub jobs: VecDeque<Vertex>,
    pub bottom: Vertex,
    pub level: u8,
    pub life: Life,
    /// How many entries in queues stand for it.
    pub entries: u32,
    pub in_regular: bool,
    /// The worker in whose set it is, or would be.
    pub home: u32,
    /// It is in that set.
    pub listed: bool,
    /// It counts among what is visible at its level.
    pub counted: bool,
}

impl Deque {
    pub(super) fn is_worth_a_look(&self) -> bool {
        self.life == Life::Resumable || (self.life != Life::Free && !self.jobs.is_empty())
    }
}

/// A level's queues.
#[derive(Debug, Default)]
pub(super) struct Central {
    pub mugging: VecDeque<u32>,
    pub regular: VecDeque<u32>,
    /// When its last operation ends.
    pub free_at: u64,
}

#[derive(Debug)]
pub(super) struct Deques {
    all: Vec<Deque>,
    free: Vec<u32>,
    pub central: Vec<Central>,
    /// By worker and level.
    sets: Vec<Vec<u32>>,
    levels: usize,
    /// By worker: when the last look at its set or queue ends.
    pub free_at: Vec<u64>,
}

impl Deques {
    pub(super) fn new(workers: usize, levels: usize) -> Self {
        Deques {
            all: Vec::new(),
            free: Vec::new(),
            central: (0..levels).map(|_| Central::default()).collect(),
            sets: vec![Vec::new(); workers * levels],
            levels,
            free_at: vec![0; workers],
        }
    }

    /// A level's mugging queue, or its regular one, where what has yielded is as well.
    pub(super) fn central(&mut self, level: u8, queue: Queue) -> &mut VecDeque<u32> {
        let central = &mut self.central[usize::from(level)];
        match queue {
            Queue::Mugging => &mut central.mugging,
            Queue::Regular | Queue::Shared(_) => &mut central.regular,
        }
    }

    pub(super) fn make(&mut self, level: u8, home: u32) -> u32 {
        let deque = Deque {
            jobs: VecDeque::new(),
            bottom: NONE,
            level,
            life: Life::Active,
            entries: 0,
            in_regular: false,
            home,
            listed: false,
            counted: false,
        };
        match self.free.pop() {
            Some(id) => {
                self.all[id as usize] = deque;
                id
            }
            None => {
                self.all.push(deque);
                self.all.len() as u32 - 1
            }
        }
    }

    pub(super) fn get(&mut self, id: u32) -> &mut Deque {
        &mut self.all[id as usize]
    }

    /// Nobody runs it and it holds nothing: its record is free as soon as no queue has it.
    pub(super) fn retire(&mut self, id: u32) {
        let deque = &mut self.all[id as usize];
        debug_assert!(deque.jobs.is_empty() && deque.bottom == NONE);
        deque.life = Life::Free;
        if deque.entries == 0 {
            self.free.push(id);
        }
    }

    /// An entry of it was taken from a queue. Whether it was the last of a retired one.
    pub(super) fn unqueue(&mut self, id: u32, regular: bool) -> bool {
        let deque = &mut self.all[id as usize];
        deque.entries -= 1;
        if regular {
            deque.in_regular = false;
        }
        let gone = deque.life == Life::Free;
        if gone && deque.entries == 0 {
            self.free.push(id);
        }
        gone
    }

    pub(super) fn in_use(&self) -> usize {
        self.all.len() - self.free.len()
    }

    pub(super) fn set(&self, worker: usize, level: u8) -> &[u32] {
        &self.sets[worker * self.levels + usize::from(level)]
    }

    /// The resumable ones of a worker's set.
    pub(super) fn resumable(&self, worker: usize, level: u8) -> impl Iterator<Item = u32> {
        let is_resumable = |id: &u32| self.all[*id as usize].life == Life::Resumable;
        self.set(worker, level).iter().copied().filter(is_resumable)
    }

    pub(super) fn list(&mut self, id: u32) {
        let deque = &mut self.all[id as usize];
        deque.listed = true;
        self.sets[deque.home as usize * self.levels + usize::from(deque.level)].push(id);
    }

    pub(super) fn unlist(&mut self, id: u32) {
        let deque = &mut self.all[id as usize];
        deque.listed = false;
        let set = &mut self.sets[deque.home as usize * self.levels + usize::from(deque.level)];
        set.retain(|&other| other != id);
    }
}
