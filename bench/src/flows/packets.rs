//! Packet processing (dissertation, 5.2): general, cache chain, bimodal.
//!
//! A feeder copies one of ten premade packets of 2 to 3 KiB. The first task counts its lines.
//!
//! The dissertation's heavy operation is "akin to a network call" and sleeps in its worker. Here it comes in three
//! forms: it computes, it sleeps in the kernel, it waits for a timer.

use super::{Executor, Flow, Way, flow_experiment};
use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use urgency_measure::timing::serial_fib;
use urgency_measure::{Experiment, Scale};

/// Reads of each link of a chain.
const READS: usize = 20;
/// What a heavy operation waits, if it waits.
const WAIT: Duration = Duration::from_millis(20);
/// Argument of fib in a heavy operation that computes: about 20 ms.
const HEAVY: u32 = 34;
/// fib of that.
const HEAVY_RESULT: u64 = 5_702_887;

/// Which variant, and how much.
#[derive(Clone, Copy)]
struct Variant {
    packets: usize,
    feeders: usize,
    links: usize,
    heavy: Option<Heavy>,
}

/// What a heavy operation does for 20 ms.
#[derive(Clone, Copy)]
enum Heavy {
    Computes,
    Sleeps,
    AwaitsTimer,
}

/// All of them.
pub fn experiments(scale: Scale, workers: usize) -> [Experiment; 6] {
    let general = Variant {
        packets: scale.pick(400_000, 5000),
        feeders: 1,
        links: 0,
        heavy: None,
    };
    let feeders = Variant {
        feeders: 4,
        ..general
    };
    let chain = Variant {
        packets: scale.pick(100_000, 2000),
        feeders: 10,
        links: 10,
        heavy: None,
    };
    let bimodal = Variant {
        packets: scale.pick(20_000, 1000),
        feeders: 10,
        links: 3,
        heavy: Some(Heavy::Computes),
    };
    let sleep = Variant {
        heavy: Some(Heavy::Sleeps),
        ..bimodal
    };
    let timer = Variant {
        heavy: Some(Heavy::AwaitsTimer),
        ..bimodal
    };
    [
        ("packets-general", "a task per packet", general),
        (
            "packets-feeders",
            "a task per packet, four feeders",
            feeders,
        ),
        ("packets-chain", "a chain of ten tasks per packet", chain),
        (
            "packets-bimodal",
            "a chain of three tasks per packet, and twice 20 ms in 0.1 % of the cases",
            bimodal,
        ),
        (
            "packets-sleep",
            "as packets-bimodal, and the 20 ms are a blocking sleep",
            sleep,
        ),
        (
            "packets-timer",
            "as packets-bimodal, and the 20 ms are an awaited timer",
            timer,
        ),
    ]
    .map(|(name, about, variant)| {
        flow_experiment(name, about, workers, move || Packets::new(variant))
    })
}

struct Packets {
    variant: Variant,
    premade: Vec<Vec<u8>>,
    /// Lines counted, and bytes read.
    lines: AtomicU64,
    reads: AtomicU64,
    /// Heavy operations done.
    heavies: AtomicU64,
}

/// A packet on its way.
struct Packet {
    bytes: Vec<u8>,
    links_left: usize,
}

impl Packets {
    fn new(variant: Variant) -> Self {
        let mut random = fastrand::Rng::with_seed(23);
        let premade = (0..10).map(|_| {
            let length = random.usize(2048..3072);
            (0..length).map(|_| random.u8(..)).collect()
        });
        Packets {
            variant,
            premade: premade.collect(),
            lines: AtomicU64::new(0),
            reads: AtomicU64::new(0),
            heavies: AtomicU64::new(0),
        }
    }

    fn lines_of(bytes: &[u8]) -> u64 {
        bytes.iter().filter(|&&byte| byte == b'\n').count() as u64
    }

    /// What follows the packet, if it is one of those.
    fn heavy(&self, index: usize) -> Option<Heavy> {
        self.variant.heavy.filter(|_| index.is_multiple_of(1000))
    }

    /// A link of the chain: reads at places that nobody can foresee.
    fn link<E: Executor>(self: Arc<Self>, executor: &E, mut packet: Packet, way: Way) {
        let mut random = fastrand::Rng::with_seed(way.index as u64 * 16 + packet.links_left as u64);
        let read = |_| u64::from(packet.bytes[random.usize(0..packet.bytes.len())]);
        black_box((0..READS).map(read).sum::<u64>());
        self.reads.fetch_add(READS as u64, Ordering::Relaxed);
        packet.links_left -= 1;
        self.go_on(executor, packet, way);
    }

    fn go_on<E: Executor>(self: Arc<Self>, executor: &E, packet: Packet, way: Way) {
        if packet.links_left > 0 {
            return executor.spawn(move |executor| self.link(executor, packet, way));
        }
        if let Some(heavy) = self.heavy(way.index) {
            for _ in 0..2 {
                way.ledger.begin_one();
                let (ledger, flow) = (way.ledger.clone(), self.clone());
                let end = move || {
                    flow.heavies.fetch_add(1, Ordering::Relaxed);
                    ledger.end_one();
                };
                match heavy {
                    Heavy::Computes => executor.spawn_heavy(move |_| {
                        assert_eq!(serial_fib(black_box(HEAVY)), HEAVY_RESULT, "wrong result");
                        end();
                    }),
                    Heavy::Sleeps => executor.spawn_sleep(WAIT, end),
                    Heavy::AwaitsTimer => executor.spawn_timer(WAIT, end),
                }
            }
        }
        way.ledger.finish(way.index);
    }
}

impl Flow for Packets {
    type Item = Vec<u8>;

    fn items(&self) -> usize {
        self.variant.packets
    }

    fn feeders(&self) -> usize {
        self.variant.feeders
    }

    fn make(&self, index: usize) -> Vec<u8> {
        self.premade[index % self.premade.len()].clone()
    }

    fn enter<E: Executor>(self: Arc<Self>, executor: &E, bytes: Vec<u8>, way: Way) {
        self.lines
            .fetch_add(Self::lines_of(&bytes), Ordering::Relaxed);
        let packet = Packet {
            bytes,
            links_left: self.variant.links,
        };
        self.go_on(executor, packet, way);
    }

    fn verify(&self) {
        let premade = self.premade.len();
        let of_each = |(index, bytes): (usize, &Vec<u8>)| {
            Self::lines_of(bytes) * ((self.variant.packets - index).div_ceil(premade)) as u64
        };
        let lines: u64 = self.premade.iter().enumerate().map(of_each).sum();
        assert_eq!(self.lines.load(Ordering::Relaxed), lines, "wrong lines");
        let reads = self.variant.packets * self.variant.links * READS;
        assert_eq!(self.reads.load(Ordering::Relaxed), reads as u64);
        let heavy = (0..self.variant.packets).filter(|&index| self.heavy(index).is_some());
        assert_eq!(
            self.heavies.load(Ordering::Relaxed),
            2 * heavy.count() as u64
        );
    }
}
