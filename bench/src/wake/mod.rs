//! 10^4 tasks woken at random: 100 tokens go from task to task. A task that has a token gives it to a task drawn at
//! random, and then sleeps unless it holds another token. There are 10^6 passes. So wake-ups come from all workers, for
//! tasks whose memory is cold, in no order.

#[cfg(feature = "ours")]
mod ours;
mod ring;
mod tokio;

pub use ring::{Ring, member};
use urgency_measure::{Bar, Experiment, Sample, Scale, timing};

/// How many tasks, tokens and passes.
#[derive(Clone, Copy)]
pub struct Config {
    /// Tasks.
    pub tasks: usize,
    /// Tokens.
    pub tokens: usize,
    /// Passes in all.
    pub passes: i64,
}

impl Config {
    /// Times `passes`, which returns how many passes its tasks have made in all.
    pub fn measure(&self, passes: impl FnMut() -> u64) -> Sample {
        let expected = self.passes as u64;
        let sample = timing::repeat(3, &expected, passes);
        sample.with_each("wake_ns", expected)
    }
}

/// The experiment.
pub fn experiments(scale: Scale) -> Vec<Experiment> {
    let config = Config {
        tasks: scale.pick(10_000, 500),
        tokens: scale.pick(100, 10),
        passes: scale.pick(1_000_000, 5_000),
    };
    let experiment = Experiment::new("wake", "10^4 async tasks woken at random, 2 workers")
        .table("tokio", &["wake_ns", "cpu_ns", "peak_rss_bytes"])
        .contender("tokio", move || tokio::run(config))
        .bar(Bar::times_at_most("ours", "wake_ns", 1.0, &["tokio"]));
    #[cfg(feature = "ours")]
    let experiment = experiment.contender("ours", move || ours::run(config));
    vec![experiment]
}
