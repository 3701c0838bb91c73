//! Which items are under way, and how long each took.
//!
//! A slot per item: when it entered, then how long it took. So recording costs one store, and the feeders'
//! window one counter. Work that belongs to no item any more (the heavy operations of `packets-bimodal`) is
//! counted, so that the run ends with it.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock};
use std::thread::Thread;
use std::time::{Duration, Instant};
use urgency_measure::Sample;
use urgency_measure::latencies::Latencies;

/// See the module's text.
pub struct Ledger {
    begin: OnceLock<Instant>,
    waits: Mutex<Thread>,
    /// Nanoseconds: since the beginning while under way, then how long it took.
    slots: Box<[AtomicU64]>,
    window: usize,
    under_way: AtomicUsize,
    /// Items and other work that have not ended.
    left: AtomicUsize,
}

impl Ledger {
    /// For so many items, of which `window` may be under way at a time.
    pub fn new(items: usize, window: usize) -> Self {
        Ledger {
            begin: OnceLock::new(),
            waits: Mutex::new(std::thread::current()),
            slots: (0..items).map(|_| AtomicU64::new(0)).collect(),
            window,
            under_way: AtomicUsize::new(0),
            left: AtomicUsize::new(items),
        }
    }

    /// The run begins; the calling thread will wait for its end.
    pub fn start(&self) {
        *self.waits.lock().expect("nothing panics under this lock") = std::thread::current();
        self.begin.get_or_init(Instant::now);
    }

    fn now(&self) -> u64 {
        let begin = self.begin.get().expect("the run has begun");
        begin.elapsed().as_nanos() as u64
    }

    /// Item `index` enters, if there is room.
    pub fn enter(&self, index: usize) -> bool {
        if self.under_way.fetch_add(1, Ordering::Relaxed) >= self.window {
            self.under_way.fetch_sub(1, Ordering::Relaxed);
            return false;
        }
        self.slots[index].store(self.now(), Ordering::Relaxed);
        true
    }

    /// Item `index` ends.
    pub fn finish(&self, index: usize) {
        let slot = &self.slots[index];
        let took = self.now() - slot.load(Ordering::Relaxed);
        slot.store(took, Ordering::Relaxed);
        self.under_way.fetch_sub(1, Ordering::Relaxed);
        self.end_one();
    }

    /// The run does not end before another call of [`end_one`](Self::end_one).
    pub fn begin_one(&self) {
        self.left.fetch_add(1, Ordering::Relaxed);
    }

    /// Some work ended.
    pub fn end_one(&self) {
        if self.left.fetch_sub(1, Ordering::AcqRel) == 1 {
            let waits = self.waits.lock().expect("nothing panics under this lock");
            waits.unpark();
        }
    }

    /// Waits for the end, and sums up.
    pub fn sample(&self) -> Sample {
        while self.left.load(Ordering::Acquire) != 0 {
            std::thread::park();
        }
        let total = Duration::from_nanos(self.now());
        let mut latencies = Latencies::new();
        for slot in &self.slots {
            latencies.record(Duration::from_nanos(slot.load(Ordering::Relaxed)));
        }
        latencies
            .sample("")
            .with("time_ns", total.as_nanos() as f64)
            .with("per_s", self.slots.len() as f64 / total.as_secs_f64())
    }
}
