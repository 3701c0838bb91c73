//! Ticks: the cheapest clock that all cores agree on.
//!
//! A reading costs 7 to 10 ns by the processor's counter (on virtual machines; 25 by the system call
//! in the vDSO), and the runtime reads it at every dispatch. Ticks are turned into time only when the program asks for
//! statistics, by the ratio of the two clocks, which is measured once.

use std::{
    sync::OnceLock,
    time::{Duration, Instant},
};

/// The current reading, in ticks of unknown length.
#[inline(always)]
pub(crate) fn now() -> u64 {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    {
        // SAFETY: every x86-64 processor has the instruction.
        unsafe { core::arch::x86_64::_rdtsc() }
    }
    #[cfg(all(target_arch = "aarch64", not(miri)))]
    {
        let ticks: u64;
        // SAFETY: the virtual counter is readable from user mode on every supported system.
        unsafe { core::arch::asm!("mrs {}, cntvct_el0", out(reg) ticks, options(nomem, nostack)) };
        ticks
    }
    #[cfg(any(miri, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
    {
        origin().0.elapsed().as_nanos() as u64
    }
}

/// A pair of readings of both clocks, taken when the first runtime starts.
fn origin() -> &'static (Instant, u64) {
    static ORIGIN: OnceLock<(Instant, u64)> = OnceLock::new();
    ORIGIN.get_or_init(|| {
        #[cfg(any(miri, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
        return (Instant::now(), 0);
        #[cfg(all(any(target_arch = "x86_64", target_arch = "aarch64"), not(miri)))]
        both()
    })
}

/// Readings of both clocks at the same time: of some tries, that in which the least time passed. The thread may lose
/// its processor between two readings.
fn both() -> (Instant, u64) {
    let tries = (0..8).map(|_| {
        let (before, instant, after) = (now(), Instant::now(), now());
        (after.saturating_sub(before), instant, before)
    });
    let closest = tries.min_by_key(|(between, ..)| *between);
    let (between, instant, before) = closest.expect("there are some tries");
    (instant, before + between / 2)
}

/// Starts the calibration: the ratio is asked for later.
pub(crate) fn calibrate() {
    origin();
}

/// How many ticks make a nanosecond. Always the same answer in one process: times of two snapshots are subtracted.
pub(crate) fn ticks_per_nanosecond() -> f64 {
    static RATIO: OnceLock<f64> = OnceLock::new();
    *RATIO.get_or_init(|| {
        let (instant, ticks) = *origin();
        // Two readings a moment apart would divide noise by noise.
        let least = Duration::from_millis(1);
        if instant.elapsed() < least {
            std::thread::sleep(least);
        }
        let (later, now) = both();
        let elapsed = later.duration_since(instant).as_nanos().max(1) as f64;
        (now.saturating_sub(ticks).max(1) as f64) / elapsed
    })
}

/// A time in nanoseconds as ticks: for thresholds on the scheduler's path.
#[inline]
pub(crate) fn ticks(nanoseconds: f64) -> u64 {
    (nanoseconds * ticks_per_nanosecond()) as u64
}

/// A moment by the clock of a core policy, which is [`now`] in nanoseconds.
pub(crate) fn nanoseconds_at(at: Instant) -> u64 {
    let (moment, now) = (Instant::now(), to_duration(now()).as_nanos());
    let ahead = at.saturating_duration_since(moment).as_nanos();
    let ago = moment.saturating_duration_since(at).as_nanos();
    u64::try_from((now + ahead).saturating_sub(ago)).unwrap_or(u64::MAX)
}

/// Ticks as time.
pub(crate) fn to_duration(ticks: u64) -> Duration {
    Duration::from_nanos((ticks as f64 / ticks_per_nanosecond()) as u64)
}
