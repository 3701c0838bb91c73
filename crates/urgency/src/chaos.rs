//! The adversarial mode, under `--cfg urgency_chaos`: whatever may happen, happens often.
//!
//! A scheduler hides most of its schedules: the rare ones need a preemption at one instruction. This mode makes
//! them common, with decisions drawn from a seed. All tests that do not state an order or a count of reliefs
//! must pass under it:
//!
//! ```text
//! URGENCY_CHAOS_SEED=7 RUSTFLAGS="--cfg urgency_chaos" cargo test -p urgency
//! ```
//!
//! It may only do what the protocols allow at that place: force attention at a scheduling point (requests are
//! hints), publish jobs unasked, fail a steal as if the lock were taken, pass an entry of a pool to the tail (the
//! order is a heuristic), delay a wake-up, relieve a stack that would have checked in. It never drops
//! anything.
//!
//! Each thread draws from a sequence of its own: the seed mixed with the number of threads that drew before it.
//! So a seed repeats the decisions of each thread, but not the kernel's. Without the cfg both functions are
//! constants, and nothing is left of them.
//!
//! Rejected: a global sequence (its atomic would order what it is to disorder), `shuttle` for the whole
//! (stacks are kernel threads, and the poller is the kernel's).

#[cfg(urgency_chaos)]
mod imp {
    use std::{
        cell::Cell,
        sync::{
            OnceLock,
            atomic::{AtomicU64, Ordering},
        },
        thread,
    };

    thread_local! {
        static SEQUENCE: Cell<u64> = const { Cell::new(0) };
    }

    /// The first number of a thread's sequence; never zero.
    fn start() -> u64 {
        static SEED: OnceLock<u64> = OnceLock::new();
        static THREADS: AtomicU64 = AtomicU64::new(1);
        let seed = *SEED.get_or_init(|| {
            let given = std::env::var("URGENCY_CHAOS_SEED").ok();
            given.and_then(|seed| seed.parse().ok()).unwrap_or(0)
        });
        let number = THREADS.fetch_add(1, Ordering::Relaxed);
        (seed << 32 | number).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1
    }

    pub(crate) fn one_in(n: u64) -> bool {
        let mut x = match SEQUENCE.get() {
            0 => start(),
            x => x,
        };
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        SEQUENCE.set(x);
        (x >> 16).is_multiple_of(n)
    }

    pub(crate) fn delay() {
        if one_in(8) {
            for _ in 0..3 {
                thread::yield_now();
            }
        }
    }
}

#[cfg(not(urgency_chaos))]
mod imp {
    #[inline(always)]
    pub(crate) fn one_in(_: u64) -> bool {
        false
    }

    #[inline(always)]
    pub(crate) fn delay() {}
}

/// Lets other threads go first, now and then: before a wake-up, a release, a look that a protocol orders.
pub(crate) use imp::delay;
/// True once in `n` draws; never without the cfg.
pub(crate) use imp::one_in;
