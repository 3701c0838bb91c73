//! One runtime with three levels.

use super::EchoLoad;
use super::kernel::{Kernel, Which};
use super::pace::Pace;
use crate::engines::ours::{Batch, Levels, Urgent, with_stats};
use crate::{echo, fib};
use std::hint::black_box;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};
use urgency::{
    Criterion, LevelId, Runtime,
    policy::{Adaptive, Kind, Parameters, Schedule, WinnerTakeAll},
};
use urgency_measure::{Sample, Scale, machine};

urgency::levels! {
    /// The paper's three.
    Paper:
        /// What somebody waits for.
        High >
        /// The sink.
        Middle >
        /// The kernel that is measured.
        Low
}

/// The sink's tree has two to this power leaves, more than are ever reached.
const SINK_DEPTH: u32 = 60;
/// Argument of fib at each of them: some microseconds.
const SINK_LEAF: u32 = 16;

static SINK_ENDS: AtomicBool = AtomicBool::new(false);

fn runtime(workers: usize, shares: Option<[f64; 3]>) -> Runtime {
    let builder = Runtime::builder().workers(workers).levels::<Paper>();
    let builder = match shares {
        Some(shares) => builder.fairness(Criterion::from_shares(&shares).expect("a criterion")),
        None => builder,
    };
    builder.build().expect("threads can be started")
}

fn serve_echo(runtime: &Runtime) -> SocketAddr {
    serve_echo_at(runtime, High)
}

fn serve_echo_at(runtime: &Runtime, level: impl Into<LevelId>) -> SocketAddr {
    let listener = echo::ours::listen();
    let address = listener.local_addr().expect("a listener has an address");
    runtime
        .at(level)
        .spawn(echo::ours::serve(listener))
        .detach();
    address
}

fn sink(depth: u32) {
    if SINK_ENDS.load(Relaxed) {
        return;
    }
    if depth == 0 {
        assert_eq!(fib::ours::fib(black_box(SINK_LEAF)), 987, "wrong result");
        return;
    }
    urgency::join(|| sink(depth - 1), || sink(depth - 1));
}

fn endless(runtime: &Runtime, level: impl Into<LevelId>) {
    runtime.at(level).spawn_fn(|| sink(SINK_DEPTH)).detach();
}

/// The kernel's time, and that in probes of the machine's pace meanwhile.
struct Timed {
    time: Duration,
    pace: f64,
}

impl Timed {
    fn add_to(&self, sample: Sample) -> Sample {
        let time = self.time.as_nanos() as f64;
        sample
            .with("time_ns", time)
            .with("time_probes", time / self.pace)
            .with("probe_ns", self.pace)
    }
}

/// Runs the kernel at the low level and returns it with the time that it took.
fn time_of(runtime: &Runtime, kernel: Box<dyn Kernel>) -> (Box<dyn Kernel>, Timed) {
    time_at(runtime, Low, kernel)
}

fn time_at(
    runtime: &Runtime,
    level: impl Into<LevelId>,
    mut kernel: Box<dyn Kernel>,
) -> (Box<dyn Kernel>, Timed) {
    let pace = Pace::start();
    let start = Instant::now();
    let run = runtime.at(level).spawn_fn(move || {
        kernel.run();
        (kernel, start.elapsed())
    });
    let (kernel, time) = run.get().expect("the kernel does not panic");
    let pace = pace.end();
    (kernel, Timed { time, pace })
}

/// What each level ran so far, in seconds.
fn ran(runtime: &Runtime) -> [f64; 3] {
    let levels = runtime.stats().levels;
    std::array::from_fn(|level| levels[level].total.running.as_secs_f64())
}

/// The levels' shares of what ran since `before`.
fn shares_since(runtime: &Runtime, before: [f64; 3]) -> [f64; 3] {
    let now = ran(runtime);
    let ran = [0, 1, 2].map(|level| now[level] - before[level]);
    let total: f64 = ran.iter().sum();
    ran.map(|ran| ran / total)
}

fn with_shares(sample: Sample, [high, middle, low]: [f64; 3]) -> Sample {
    sample
        .with("high_share", high)
        .with("middle_share", middle)
        .with("low_share", low)
}

/// The end of a sample. The sink's tree is left as it is; the runtime ends with the process.
fn end(sample: Sample, runtime: Runtime) -> Sample {
    SINK_ENDS.store(true, Relaxed);
    let sample = with_stats(sample, &runtime).with("peak_rss_bytes", machine::peak_rss());
    std::mem::forget(runtime);
    sample
}

/// The kernel below the sink and the echo.
pub fn stretched(scale: Scale, which: Which, workers: usize, shares: [f64; 3]) -> Sample {
    let kernel = which.prepare(scale);
    let runtime = runtime(workers, Some(shares));
    let echo = EchoLoad::start(serve_echo(&runtime));
    endless(&runtime, Middle);
    std::thread::sleep(Duration::from_millis(100));
    let before = ran(&runtime);
    let (kernel, time) = time_of(&runtime, kernel);
    let shares = shares_since(&runtime, before);
    SINK_ENDS.store(true, Relaxed);
    let sample = time.add_to(with_shares(echo.end(), shares));
    kernel.verify();
    end(sample, runtime)
}

/// A criterion where the levels above the kernel have nothing to do, or little.
fn alone_shares(fair: bool) -> Option<[f64; 3]> {
    fair.then_some([0.5, 0.25, 0.25])
}

/// The kernel and nothing else.
pub fn alone(scale: Scale, which: Which, workers: usize, fair: bool) -> Sample {
    let kernel = which.prepare(scale);
    let runtime = runtime(workers, alone_shares(fair));
    let (kernel, time) = time_of(&runtime, kernel);
    kernel.verify();
    end(time.add_to(Sample::new()), runtime)
}

/// The kernel below the echo.
pub fn beside_echo(scale: Scale, which: Which, workers: usize, fair: bool) -> Sample {
    let kernel = which.prepare(scale);
    let runtime = runtime(workers, alone_shares(fair));
    let echo = EchoLoad::start(serve_echo(&runtime));
    std::thread::sleep(Duration::from_millis(50));
    let (kernel, time) = time_of(&runtime, kernel);
    let sample = time.add_to(echo.end());
    kernel.verify();
    end(sample, runtime)
}

/// The program of a kernel on rayon's pool, alone.
pub fn on_rayon(scale: Scale, which: Which, workers: usize) -> Sample {
    let mut kernel = which.prepare_on_rayon(scale);
    let pool = crate::engines::rayon::pool(workers);
    let pace = Pace::start();
    let start = Instant::now();
    let kernel = pool.install(move || {
        kernel.run();
        kernel
    });
    let time = start.elapsed();
    let pace = pace.end();
    kernel.verify();
    let sample = Timed { time, pace }.add_to(Sample::new());
    sample.with("peak_rss_bytes", machine::peak_rss())
}

/// A schedule for [`Levels`].
#[derive(Clone, Copy, Debug)]
pub enum TwoLevels {
    /// The default.
    Prompt,
    /// As the fairness paper has it for comparison.
    WinnerTakeAll,
    /// Equal shares.
    Fair,
}

/// fib below the echo, with two levels.
pub fn two_levels(scale: Scale, workers: usize, schedule: TwoLevels) -> Sample {
    let kernel = Which::Fib.prepare(scale);
    let builder = Runtime::builder().workers(workers).levels::<Levels>();
    let builder = match schedule {
        TwoLevels::Prompt => builder,
        TwoLevels::WinnerTakeAll => builder.schedule(WinnerTakeAll::default()),
        TwoLevels::Fair => {
            builder.fairness(Criterion::from_shares(&[0.5, 0.5]).expect("a criterion"))
        }
    };
    let runtime = builder.build().expect("threads can be started");
    let echo = EchoLoad::start(serve_echo_at(&runtime, Urgent));
    std::thread::sleep(Duration::from_millis(50));
    let (kernel, time) = time_at(&runtime, Batch, kernel);
    let sample = time.add_to(echo.end());
    kernel.verify();
    end(sample, runtime)
}

/// How far the level is off that is off most. The high one may leave some of its share, which is due to the
/// middle one then; more than its share is too much.
fn most_off(due: [f64; 3], ran: [f64; 3]) -> f64 {
    let high_off = (ran[0] - due[0]).max(0.0);
    let left = (due[0] - ran[0]).max(0.0);
    let middle_off = (ran[1] - (due[1] + left)).abs();
    let low_off = (ran[2] - due[2]).abs();
    high_off.max(middle_off).max(low_off)
}

/// Two levels that compute without end below the echo, and how far they are off their shares.
pub fn shares(scale: Scale, workers: usize, shares: [f64; 3]) -> Sample {
    let length = Duration::from_millis(scale.pick(60_000, 300));
    let runtime = runtime(workers, Some(shares));
    let (sample, ran) = beside(&runtime, length);
    end(
        sample.with("most_off_share", most_off(shares, ran)),
        runtime,
    )
}

/// What a schedule between levels gives the same three: prompt, adaptive with I-Cilk's parameters over a pool, or fair.
pub fn scheduled(
    scale: Scale,
    workers: usize,
    pool: Option<&str>,
    shares: Option<[f64; 3]>,
) -> Sample {
    let length = Duration::from_millis(scale.pick(8_000, 300));
    let runtime = match pool {
        None => runtime(workers, shares),
        Some(pool) => {
            let adaptive =
                Adaptive::new(3, Parameters::default()).expect("parameters in their ranges");
            Runtime::builder()
                .workers(workers)
                .levels::<Paper>()
                .schedule(Schedule::Adaptive(adaptive))
                .pool(pool.parse::<Kind>().expect("a pool policy's name"))
                .build()
                .expect("threads can be started")
        }
    };
    let (sample, _) = beside(&runtime, length);
    end(sample, runtime)
}

/// The shares of what ran, and the echo's responses, for so long.
fn beside(runtime: &Runtime, length: Duration) -> (Sample, [f64; 3]) {
    let echo = EchoLoad::start(serve_echo(runtime));
    endless(runtime, Middle);
    endless(runtime, Low);
    std::thread::sleep(Duration::from_millis(100));
    let before = ran(runtime);
    std::thread::sleep(length);
    let measured = shares_since(runtime, before);
    (with_shares(echo.end(), measured), measured)
}

#[cfg(test)]
mod tests {
    use super::most_off;

    const DUE: [f64; 3] = [0.2, 0.5, 0.3];

    fn assert_off(ran: [f64; 3], off: f64) {
        let measured = most_off(DUE, ran);
        assert!(
            (measured - off).abs() < 1e-9,
            "{measured} instead of {off} for {ran:?}"
        );
    }

    #[test]
    fn the_middle_level_gets_what_the_high_one_leaves() {
        assert_off(DUE, 0.0);
        assert_off([0.05, 0.65, 0.3], 0.0);
        assert_off([0.0, 0.6, 0.4], 0.1);
    }

    #[test]
    fn a_level_is_off_though_another_one_has_exactly_its_share() {
        assert_off([0.7, 0.0, 0.3], 0.5);
        assert_off([0.3, 0.4, 0.3], 0.1);
    }
}
