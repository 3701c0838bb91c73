//! The registered descriptors, and what their events say of the peers.

#![cfg(not(urgency_loom))]

use super::{crowd::Crowd, directions::Directions, poller::Edge};
use crate::sys::slab::Slab;
use std::{os::fd::RawFd, sync::Arc, task::Waker};

/// See the module's text.
pub(super) struct Sources {
    table: Slab<Source>,
    crowd: Crowd,
}

/// A registered descriptor. It is forgotten before it is closed, so as a rule the number is the descriptor's.
pub(super) struct Source {
    fd: RawFd,
    directions: Arc<Directions>,
}

impl Sources {
    pub(super) const fn new() -> Self {
        Sources {
            table: Slab::new(),
            crowd: Crowd::new(),
        }
    }

    /// The key is for [`Sources::remove`], and of the descriptor's events.
    pub(super) fn insert(&mut self, fd: RawFd, directions: Arc<Directions>) -> u64 {
        self.table.insert(Source { fd, directions })
    }

    /// What is returned is not to be dropped under the lock.
    pub(super) fn remove(&mut self, key: u64) -> Option<Source> {
        self.table.remove(key)
    }

    /// An event came. Adds the wakers to wake. Returns the descriptor; `None`: it was forgotten meanwhile.
    pub(super) fn event(&mut self, key: u64, edge: Edge, ready: &mut Vec<Waker>) -> Option<RawFd> {
        self.crowd.note(key);
        let source = self.table.get(key)?;
        source.directions.edge(edge, ready);
        Some(source.fd)
    }

    /// Whether the last events were of different descriptors.
    pub(super) fn serve_crowd(&self) -> bool {
        self.crowd.is_one()
    }

    /// The driver goes. Adds all wakers.
    pub(super) fn shut(&self, ready: &mut Vec<Waker>) {
        self.table
            .iter()
            .for_each(|source| source.directions.shut(ready));
    }
}
