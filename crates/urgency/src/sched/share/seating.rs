//! What one worker is to serve of a job, and since when.
//!
//! A worker has a seat in each job, also in jobs that it does not serve. The seat assigner writes it, and any thread
//! reads it: a few words without an order between them, for a seat is a hint to all but the worker that it is for.

use crate::sys::primitives::atomic::{AtomicU8, AtomicU64, Ordering};
use urgency_policy::level::{Otherwise, Seat};

/// The seat of a worker without a primary level: it is prompt.
const PROMPT: u8 = u8::MAX;

/// Added to the rank of its primary level: it waits for that.
const WAITS: u8 = 64;

/// See the module's text.
#[derive(Debug)]
pub(super) struct Seating {
    /// The rank of its primary level, perhaps with [`WAITS`], or [`PROMPT`]; written by the seat assigner.
    seat: AtomicU8,
    /// The levels that are ahead, as a bitfield; written by the seat assigner.
    ahead: AtomicU64,
    /// When its round began, in ticks; 0 if none has.
    since: AtomicU64,
}

impl Default for Seating {
    fn default() -> Self {
        Seating {
            seat: AtomicU8::new(PROMPT),
            ahead: AtomicU64::new(0),
            since: AtomicU64::new(0),
        }
    }
}

impl Seating {
    /// Which levels the worker is drawn to.
    #[inline]
    pub(super) fn seat(&self) -> Seat {
        match self.seat.load(Ordering::Relaxed) {
            PROMPT => Seat::PROMPT,
            waits @ WAITS.. => Seat::at(waits - WAITS, Otherwise::Wait),
            primary => {
                let ahead = self.ahead.load(Ordering::Relaxed);
                Seat::at(primary, Otherwise::Donate).with_ahead(ahead)
            }
        }
    }

    /// These levels come before its primary level, if they are more urgent. Only the seat assigner calls this.
    pub(super) fn set_ahead(&self, levels: u64) {
        self.ahead.store(levels, Ordering::Relaxed);
    }

    /// The worker has another seat from now on. Only the seat assigner calls this.
    pub(super) fn set(&self, seat: Seat) {
        let waits = match seat.otherwise() {
            Otherwise::Donate => 0,
            Otherwise::Wait => WAITS,
        };
        let seat = seat.primary().map_or(PROMPT, |primary| primary + waits);
        self.seat.store(seat, Ordering::Relaxed);
    }

    /// When its round began, in ticks; 0 if none has.
    pub(super) fn since(&self) -> &AtomicU64 {
        &self.since
    }
}
