//! What can be wrong with threads and edges.

use super::{LONGEST, Thread, Vertex};
use std::fmt;

/// Why threads and edges are no DAG.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DagError {
    /// There is no vertex.
    Empty,
    /// A thread has no vertex.
    EmptyThread(Thread),
    /// The edges form a cycle through this vertex.
    Cycle(Vertex),
    /// A level's rank is above 63.
    Level {
        /// The thread.
        thread: Thread,
        /// The rank.
        level: u8,
    },
    /// Its work and its longest path together are above [`LONGEST`](super::LONGEST).
    TooLong,
    /// A vertex or thread is named that does not exist.
    Unknown {
        /// What it is said to be.
        what: &'static str,
        /// Its number.
        number: u32,
    },
}

impl fmt::Display for DagError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DagError::Empty => write!(f, "a computation needs at least one vertex"),
            DagError::EmptyThread(thread) => write!(
                f,
                "thread {thread} has no vertex; a thread has at least one"
            ),
            DagError::Cycle(vertex) => write!(
                f,
                "vertex {vertex} depends on itself through other vertices; an edge may only go to what runs later"
            ),
            DagError::Level { thread, level } => write!(
                f,
                "thread {thread} has the level of rank {level}; ranks are 0 to 63"
            ),
            DagError::TooLong => write!(
                f,
                "the work and the longest path of the computation take more than {LONGEST} ns together; that is the most"
            ),
            DagError::Unknown { what, number } => {
                write!(f, "there is no {what} with the number {number}")
            }
        }
    }
}

impl std::error::Error for DagError {}
