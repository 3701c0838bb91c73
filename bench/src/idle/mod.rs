//! What an idle runtime costs: CPU time and wake-ups per second of a process whose runtime was used once and
//! then has nothing to do. The one sleep of the measuring thread itself is not counted.

mod chili;
#[cfg(feature = "ours")]
mod ours;
mod rayon;
mod tokio;

use std::time::Duration;
use urgency_measure::{Bar, Experiment, Sample, Scale, machine};

/// For how long.
#[derive(Clone, Copy)]
pub struct Config {
    /// Time to watch.
    pub watch: Duration,
}

impl Config {
    /// Watches this process.
    pub fn measure(&self) -> Sample {
        std::thread::sleep(self.watch / 4);
        let (cpu, sleeps) = (machine::cpu_time(), machine::sleeps());
        std::thread::sleep(self.watch);
        let seconds = self.watch.as_secs_f64();
        let cpu = (machine::cpu_time() - cpu).as_nanos() as f64 / seconds;
        let sleeps = machine::sleeps().saturating_sub(sleeps + 1) as f64 / seconds;
        Sample::new()
            .with("cpu_ns", cpu)
            .with("wake_ups_per_s", sleeps)
            .with("threads", machine::threads())
            .with("rss_bytes", machine::rss())
    }
}

/// The experiment.
pub fn experiments(scale: Scale) -> Vec<Experiment> {
    let config = Config {
        watch: scale.pick(Duration::from_secs(2), Duration::from_millis(100)),
    };
    let experiment = Experiment::new(
        "idle",
        "CPU time and wake-ups per second of an idle runtime of 2 workers",
    )
    .table(
        "rayon",
        &["cpu_ns", "wake_ups_per_s", "threads", "rss_bytes"],
    )
    .contender("rayon", move || rayon::run(config))
    .contender("chili", move || chili::run(config))
    .contender("tokio", move || tokio::run(config))
    .bar(Bar::at_most("ours", "wake_ups_per_s", 0.0))
    .bar(Bar::at_most("ours", "cpu_ns", 200_000.0));
    #[cfg(feature = "ours")]
    let experiment = experiment.contender("ours", move || ours::run(config));
    vec![experiment]
}
