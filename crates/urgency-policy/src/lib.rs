//! The decisions of Urgency, and nothing but decisions.
//!
//! The runtime is one mechanism (workers, stacks, queues, hand-off) that asks four questions:
//!
//! | question | trait | default |
//! |---|---|---|
//! | which priority level does a worker serve? | [`level::LevelPolicy`], [`level::Schedule`] | [`level::Prompt`] |
//! | which ready context of that level comes next? | [`pool::PoolPolicy`] | [`pool::Aging`] |
//! | may code at this level wait for work at that one? | | [`order::Order`] |
//! | which cores does a job have? | [`cores::CorePolicy`] | [`cores::Shares`] |
//!
//! Everything here takes plain data and returns a decision. There are no threads, no clock, no I/O and no dependencies;
//! a policy that draws lots is given a seed ([`dice`]). So the runtime and the simulator run the very same lines, and
//! each rule can be tested exhaustively against its definition.
//!
//! # Words
//!
//! - **level**: a priority. A program has at most [`order::MAX_LEVELS`] of them, partially ordered.
//! - **rank**: the number of a level, 0 for the most urgent. Ranks are a topological order of the
//!   levels: a level that is more urgent than another has the smaller rank. Workers look at ranks only; which level may
//!   wait for which is decided by the partial order itself.
//! - **levels with work**: a `u64` whose bit `i` says that the level of rank `i` has ready work. The
//!   most urgent one is the lowest set bit.
//!
//! The defaults have no tuning parameter: prompt between levels, aging within a level (the Prompt
//! I-Cilk paper, section 4).

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod cores;
pub mod dice;
pub mod level;
pub mod order;
pub mod pool;
