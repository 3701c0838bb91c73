//! What is searched: bytes in memory, scanned whole for each request.

use std::sync::OnceLock;
use std::time::Instant;
use urgency_measure::{Scale, machine};

/// Bytes that one leaf of the scan reads.
const LEAF: usize = 256 * 1024;

/// The corpus, and how many hits are in it.
pub struct Corpus {
    text: Vec<u8>,
    count: u64,
}

impl Corpus {
    /// The process's corpus.
    pub fn new(scale: Scale) -> &'static Self {
        static CORPUS: OnceLock<Corpus> = OnceLock::new();
        CORPUS.get_or_init(|| {
            let mut random = fastrand::Rng::with_seed(200);
            let mut text = vec![0; scale.pick(763, 31) * LEAF];
            random.fill(&mut text);
            let count = text.chunks(LEAF).map(count).sum();
            Corpus { text, count }
        })
    }

    /// All of it.
    pub fn text(&self) -> &[u8] {
        &self.text
    }

    /// What a search answers.
    pub fn answer(&self) -> String {
        self.count.to_string()
    }

    /// How long a contender's own `scan` takes while nothing else runs, in nanoseconds: the best of five. It is about
    /// half of [`scan_cpu_ns`](Self::scan_cpu_ns) on two processors, or the contender does not fork.
    pub fn parallel_scan_ns(&self, scan: impl Fn() -> u64) -> f64 {
        let scan = |_| {
            let start = Instant::now();
            assert_eq!(scan(), self.count, "wrong result");
            start.elapsed()
        };
        let best = (0..5).map(scan).min();
        best.expect("five were measured").as_nanos() as f64
    }

    /// Processor time of one scan on one thread, in nanoseconds: the best of three.
    pub fn scan_cpu_ns(&self) -> f64 {
        let scan = |_| {
            let before = machine::thread_cpu_time();
            let found: u64 = self.text.chunks(LEAF).map(count).sum();
            assert_eq!(found, self.count, "wrong result");
            machine::thread_cpu_time() - before
        };
        let best = (0..3).map(scan).min();
        best.expect("three were measured").as_nanos() as f64
    }
}

/// Both halves of what is more than a leaf.
pub fn halves(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let leaves = text.len() / LEAF;
    (leaves > 1).then(|| text.split_at(leaves / 2 * LEAF))
}

/// Hits in a leaf: places where a rolling hash of all before them ends in twelve zeros. Eight bytes at a time, each
/// step waits for the one before, so a scan of 200 MB takes some 35 ms of a processor and not all of the memory's
/// bandwidth.
pub fn count(text: &[u8]) -> u64 {
    let (mut hash, mut hits) = (0, 0);
    for word in text.chunks_exact(8) {
        let word = u64::from_le_bytes(word.try_into().expect("a chunk of eight has eight bytes"));
        hash = (hash ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        hash ^= hash >> 32;
        hits += u64::from(hash & 0xfff == 0);
    }
    hits
}
