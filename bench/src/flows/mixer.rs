//! The audio mixer (dissertation, 5.3): conferences of two participants. Each participant encodes a frame of
//! 1600 bytes each 20 ms and hands it to the task of its conference, which waits for both, mixes them, and
//! hands each the mix, to be decoded. They all wait in loops that yield, as in the dissertation's program, so
//! at any time most tasks are ready and have nothing to do. A frame that is not back within 10 ms is a
//! *breach*.
//!
//! The codec is SHA-1, as the dissertation's is MD5. The load is the number of conferences; `breaches_share`
//! is the result.

use sha1::{Digest as _, Sha1};
use std::hint::black_box;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use urgency_measure::latencies::Latencies;
use urgency_measure::{Experiment, Sample, Scale};

const FRAME: usize = 1600;
const PERIOD: Duration = Duration::from_millis(20);
const WINDOW: Duration = Duration::from_millis(10);
const LEGS: usize = 2;

/// The size.
#[derive(Clone, Copy)]
pub struct Config {
    /// Conferences.
    conferences: usize,
    /// Frames of each participant.
    frames: usize,
    /// Workers.
    workers: usize,
}

/// What tasks do on any runtime: yield, and sleep.
trait Tasks: Send + Sync + 'static {
    fn spawn(task: impl Future<Output = ()> + Send + 'static);

    /// Spawns what a participant does.
    fn spawn_leg(task: impl Future<Output = ()> + Send + 'static) {
        Self::spawn(task);
    }

    fn yield_now() -> impl Future<Output = ()> + Send;
    fn sleep_until(at: Instant) -> impl Future<Output = ()> + Send;
}

/// One conference: frames by participant, each slot empty, sent, or mixed.
struct Conference {
    sent: [AtomicUsize; LEGS],
    mixed: AtomicUsize,
    frames: [Mutex<Vec<u8>>; LEGS],
}

/// What all conferences together found.
struct Tally {
    latencies: Mutex<Latencies>,
    breaches: AtomicU64,
    running: AtomicUsize,
    waits: std::thread::Thread,
}

/// Encodes or decodes a frame: hashes it, and marks it.
fn code(frame: &mut [u8]) {
    let hash = Sha1::digest(black_box(&*frame));
    frame[..hash.len()].copy_from_slice(&hash);
}

async fn participate<T: Tasks>(
    conference: Arc<Conference>,
    leg: usize,
    first: Instant,
    frames: usize,
    tally: Arc<Tally>,
) {
    let mut took = Vec::with_capacity(frames);
    for frame in 0..frames {
        let due = first + PERIOD * frame as u32;
        T::sleep_until(due).await;
        {
            let mut bytes = conference.frames[leg].lock().expect("no panic");
            bytes.fill(frame as u8);
            code(&mut bytes);
        }
        conference.sent[leg].store(frame + 1, Ordering::Release);
        while conference.mixed.load(Ordering::Acquire) <= frame {
            T::yield_now().await;
        }
        code(&mut conference.frames[leg].lock().expect("no panic"));
        took.push(due.elapsed());
    }
    let breaches = took.iter().filter(|took| **took > WINDOW).count();
    tally.breaches.fetch_add(breaches as u64, Ordering::Relaxed);
    {
        let mut latencies = tally.latencies.lock().expect("no panic");
        took.into_iter().for_each(|took| latencies.record(took));
    }
    if tally.running.fetch_sub(1, Ordering::AcqRel) == 1 {
        tally.waits.unpark();
    }
}

async fn mix<T: Tasks>(conference: Arc<Conference>, frames: usize) {
    for frame in 0..frames {
        let has_sent = |sent: &AtomicUsize| sent.load(Ordering::Acquire) > frame;
        while !conference.sent.iter().all(has_sent) {
            T::yield_now().await;
        }
        let mut mixed = vec![0u8; FRAME];
        for frame in &conference.frames {
            let frame = frame.lock().expect("no panic");
            let sums = mixed.iter_mut().zip(&*frame);
            sums.for_each(|(sum, byte)| *sum = sum.wrapping_add(*byte));
        }
        for frame in &conference.frames {
            frame.lock().expect("no panic").copy_from_slice(&mixed);
        }
        conference.mixed.store(frame + 1, Ordering::Release);
    }
}

/// Begins one conference.
fn confer<T: Tasks>(config: Config, first: Instant, tally: &Arc<Tally>) {
    let conference = Arc::new(Conference {
        sent: Default::default(),
        mixed: AtomicUsize::new(0),
        frames: std::array::from_fn(|_| Mutex::new(vec![0; FRAME])),
    });
    for leg in 0..LEGS {
        let (conference, tally) = (conference.clone(), tally.clone());
        T::spawn_leg(participate::<T>(
            conference,
            leg,
            first,
            config.frames,
            tally,
        ));
    }
    T::spawn(mix::<T>(conference, config.frames));
}

/// One sample. The conferences are dealt to so many `silos`; `start` begins the conferences of one silo.
fn run<T: Tasks>(
    config: Config,
    silos: usize,
    start: impl Fn(usize, Box<dyn FnOnce() + Send>),
) -> Sample {
    let tally = Arc::new(Tally {
        latencies: Mutex::new(Latencies::new()),
        breaches: AtomicU64::new(0),
        running: AtomicUsize::new(config.conferences * LEGS),
        waits: std::thread::current(),
    });
    let begin = Instant::now();
    for silo in 0..silos {
        let tally = tally.clone();
        let begin_those = move || {
            let mut random = fastrand::Rng::with_seed(29 + silo as u64);
            for _ in (silo..config.conferences).step_by(silos) {
                // Participants of a conference are in step; conferences are not.
                let first = begin + PERIOD + PERIOD.mul_f64(random.f64());
                confer::<T>(config, first, &tally);
            }
        };
        start(silo, Box::new(begin_those));
    }
    while tally.running.load(Ordering::Acquire) != 0 {
        std::thread::park();
    }
    let latencies = tally.latencies.lock().expect("no panic");
    let frames = config.conferences * LEGS * config.frames;
    assert_eq!(latencies.asked(), frames as u64, "a frame was lost");
    let breaches = tally.breaches.load(Ordering::Relaxed) as f64;
    latencies
        .sample("")
        .with("per_s", frames as f64 / begin.elapsed().as_secs_f64())
        .with("breaches_share", breaches / frames as f64)
}

struct Tokio;

impl Tasks for Tokio {
    fn spawn(task: impl Future<Output = ()> + Send + 'static) {
        ::tokio::spawn(task);
    }

    fn yield_now() -> impl Future<Output = ()> + Send {
        ::tokio::task::yield_now()
    }

    fn sleep_until(at: Instant) -> impl Future<Output = ()> + Send {
        ::tokio::time::sleep_until(at.into())
    }
}

fn on_tokio(config: Config) -> Sample {
    let runtime = crate::engines::tokio::runtime(config.workers);
    run::<Tokio>(config, 1, |_, start| {
        runtime.spawn(async move { start() });
    })
}

#[cfg(feature = "ours")]
struct Ours;

#[cfg(feature = "ours")]
impl Tasks for Ours {
    fn spawn(task: impl Future<Output = ()> + Send + 'static) {
        urgency::spawn(task).detach();
    }

    fn yield_now() -> impl Future<Output = ()> + Send {
        urgency::yield_far()
    }

    fn sleep_until(at: Instant) -> impl Future<Output = ()> + Send {
        urgency::time::sleep_until(at.into())
    }
}

#[cfg(feature = "ours")]
fn on_ours(config: Config, policy: urgency::policy::Kind) -> Sample {
    let runtime = super::ours::runtime(config.workers, policy);
    let sample = run::<Ours>(config, 1, |_, start| {
        runtime.spawn(async move { start() }).detach();
    });
    crate::engines::ours::with_stats(sample, &runtime)
}

/// Participants at a stage of their own, with a worker of their own.
#[cfg(feature = "ours")]
struct Staged;

#[cfg(feature = "ours")]
impl Tasks for Staged {
    fn spawn(task: impl Future<Output = ()> + Send + 'static) {
        Ours::spawn(task);
    }

    fn spawn_leg(task: impl Future<Output = ()> + Send + 'static) {
        urgency::at(super::ours::Heavy).spawn(task).detach();
    }

    fn yield_now() -> impl Future<Output = ()> + Send {
        Ours::yield_now()
    }

    fn sleep_until(at: Instant) -> impl Future<Output = ()> + Send {
        Ours::sleep_until(at)
    }
}

#[cfg(feature = "ours")]
fn on_stages(config: Config) -> Sample {
    let runtime = super::ours::stages(config.workers);
    let sample = run::<Staged>(config, 1, |_, start| {
        let main = runtime.at(super::ours::Main);
        main.spawn(async move { start() }).detach();
    });
    crate::engines::ours::with_stats(sample, &runtime)
}

#[cfg(feature = "ours")]
fn on_silos(config: Config) -> Sample {
    let silo = |_| super::ours::runtime(1, urgency::policy::Kind::Aging);
    let silos: Vec<_> = (0..config.workers).map(silo).collect();
    run::<Ours>(config, silos.len(), |silo, start| {
        silos[silo].spawn(async move { start() }).detach();
    })
}

/// The experiment.
pub fn experiment(scale: Scale, workers: usize) -> Experiment {
    let config = Config {
        conferences: scale.pick(300 * workers, 10),
        frames: scale.pick(100, 5),
        workers,
    };
    let experiment = Experiment::new(
        format!("mixer-{workers}"),
        format!(
            "{} conferences of two, a frame each 20 ms, {workers} worker(s)",
            config.conferences
        ),
    )
    .table(
        "tokio",
        &["per_s", "breaches_share", "p50_ns", "p99_ns", "max_ns"],
    )
    .contender("tokio", move || on_tokio(config));
    #[cfg(feature = "ours")]
    let experiment = super::ours::policies().fold(experiment, |all, (name, policy)| {
        all.contender(name, move || on_ours(config, policy))
    });
    #[cfg(feature = "ours")]
    let experiment = match workers {
        1 => experiment,
        _ => experiment
            .contender("silos", move || on_silos(config))
            .contender("staged", move || on_stages(config)),
    };
    experiment
}
