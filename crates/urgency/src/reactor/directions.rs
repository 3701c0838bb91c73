//! The two directions of a descriptor: what the driver knows of it.

#![cfg(not(urgency_loom))]

use super::{
    poller::{Edge, Interest},
    readiness::Readiness,
};
use std::task::Waker;

/// Reading (also accepting), or writing (also connecting).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    Read,
    Write,
}

impl Direction {
    pub(crate) fn interest(self) -> Interest {
        match self {
            Direction::Read => Interest::READ,
            Direction::Write => Interest::WRITE,
        }
    }
}

/// What the driver knows of a source.
#[derive(Debug)]
pub(crate) struct Directions {
    read: Readiness,
    write: Readiness,
}

impl Default for Directions {
    fn default() -> Self {
        Directions {
            read: Readiness::new(),
            write: Readiness::new(),
        }
    }
}

impl Directions {
    pub(crate) fn of(&self, direction: Direction) -> &Readiness {
        match direction {
            Direction::Read => &self.read,
            Direction::Write => &self.write,
        }
    }

    /// The kernel reported an event. Adds the wakers to wake.
    pub(crate) fn edge(&self, edge: Edge, ready: &mut Vec<Waker>) {
        if edge.readable {
            self.read.edge(edge.exceptional, ready);
        }
        if edge.writable {
            self.write.edge(edge.exceptional, ready);
        }
    }

    /// The driver goes. Adds all wakers.
    pub(crate) fn shut(&self, ready: &mut Vec<Waker>) {
        self.read.shut(ready);
        self.write.shut(ready);
    }
}
