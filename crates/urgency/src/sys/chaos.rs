//! The adversarial mode, under `--cfg urgency_chaos`: whatever may happen, happens often.
//!
//! A scheduler hides most of its schedules: the rare ones need a preemption at one instruction. This mode makes
//! them common, with decisions drawn from a seed. All tests that do not state the usual order or count the
//! usual decisions must pass under it; the others are ignored there, and say so.
//!
//! ```text
//! ci/chaos.sh            # some seeds
//! ci/chaos.sh 7 8 9      # these
//! ```
//!
//! The mode may only do what the protocols allow at that place: force attention at a scheduling point (requests are
//! hints), publish forks unasked, fail a steal as if the lock were taken, pass an entry of a pool to the tail (the
//! order is a heuristic), refuse a ring or a thread, let a spare thread end, search for no time or for long, keep a
//! worker that could be given back, relieve a stack that would have checked in, delay any step. It never drops
//! anything.
//!
//! Each thread draws from a sequence of its own: the seed mixed with the number of threads that drew before it.
//! So a seed repeats the decisions of each thread, but not the kernel's. Without the cfg the functions are
//! constants, and nothing is left of them.
//!
//! Rejected: a global sequence (its atomic would order what it is to disorder), and `shuttle` for the whole:
//! stacks are kernel threads that park in a poller which is the kernel's, and relief asks the kernel for
//! their time; a model of all that would be another runtime.

#[cfg(urgency_chaos)]
mod imp {
    use std::{
        cell::Cell,
        hint,
        sync::{
            OnceLock,
            atomic::{AtomicU64, Ordering},
        },
        thread,
        time::Duration,
    };

    thread_local! {
        static SEQUENCE: Cell<u64> = const { Cell::new(0) };
    }

    /// The first number of a thread's sequence; never zero.
    fn start() -> u64 {
        static SEED: OnceLock<u64> = OnceLock::new();
        static THREADS: AtomicU64 = AtomicU64::new(1);
        let seed = *SEED.get_or_init(|| {
            let given = std::env::var("URGENCY_TEST_SEED").ok();
            given.and_then(|seed| seed.parse().ok()).unwrap_or(0)
        });
        let number = THREADS.fetch_add(1, Ordering::Relaxed);
        (seed << 32 | number).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1
    }

    fn draw() -> u64 {
        let mut x = match SEQUENCE.get() {
            0 => start(),
            x => x,
        };
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        SEQUENCE.set(x);
        x >> 16
    }

    pub(crate) fn one_in(n: u64) -> bool {
        draw().is_multiple_of(n)
    }

    pub(crate) fn delay() {
        let drawn = draw();
        match drawn % 1024 {
            // As long as a time slice of another process.
            0 => thread::sleep(Duration::from_micros(drawn >> 16 & 0xfff)),
            1..64 => thread::yield_now(),
            64..192 => (0..drawn >> 16 & 0x3ff).for_each(|_| hint::spin_loop()),
            _ => {}
        }
    }

    pub(crate) fn idle_spin(ticks: u64) -> u64 {
        match draw() % 4 {
            0 => 0,
            1 => ticks * 16,
            _ => ticks,
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

    #[inline(always)]
    pub(crate) fn idle_spin(ticks: u64) -> u64 {
        ticks
    }
}

/// Lets other threads go first, now and then: at a step that a protocol orders.
pub(crate) use imp::delay;
/// For how long a worker without work searches: `ticks`, or not at all, or for longer.
#[cfg(not(urgency_loom))]
pub(crate) use imp::idle_spin;
/// True once in `n` draws; never without the cfg.
pub(crate) use imp::one_in;
