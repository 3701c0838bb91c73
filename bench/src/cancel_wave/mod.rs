//! A wave of 10^5 cancellations under overload: 10^5 requests, each of which wants about 20 us of compute in
//! two halves with a pause between, are started on 2 workers. That is about a second of work for each worker.
//! After 100 ms the clients give up: every request is cancelled. How long does the cancelling take, how long until the
//! system is free again (a new request of the same kind is answered), and how much memory did the wave cost?

#[cfg(feature = "ours")]
mod ours;
mod tokio;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use urgency_measure::{Bar, Experiment, Sample, Scale, timing};

/// How large the wave is.
#[derive(Clone, Copy)]
pub struct Config {
    /// Requests.
    pub requests: usize,
    /// How long they run before the clients give up.
    pub patience: Duration,
}

/// Half of a request's compute, for `timing::compute`: about 10 us.
const HALF: u32 = 1;

/// What the requests count, whatever becomes of them.
#[derive(Default)]
pub struct Account {
    gone: AtomicU64,
}

/// In each request: counts its end.
pub struct Counted(Arc<Account>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.gone.fetch_add(1, Ordering::Relaxed);
    }
}

/// One request; `pause` is the runtime's way to wait for a millisecond.
pub async fn request<F: Future<Output = ()>>(counted: Counted, pause: impl FnOnce() -> F) {
    timing::compute(HALF);
    pause().await;
    timing::compute(HALF);
    drop(counted);
}

/// The course of the experiment: `start` starts a request, `cancel` cancels one, `answer` waits for one.
pub fn measure<H>(
    config: Config,
    start: impl Fn(Counted) -> H,
    cancel: impl Fn(&H),
    answer: impl FnOnce(H),
) -> Sample {
    let account = Arc::new(Account::default());
    let requests: Vec<H> = (0..config.requests)
        .map(|_| start(Counted(account.clone())))
        .collect();
    std::thread::sleep(config.patience);
    let given_up = Instant::now();
    requests.iter().for_each(cancel);
    let cancelled = given_up.elapsed();
    answer(start(Counted(Arc::default())));
    let free = given_up.elapsed();
    drop(requests);
    while account.gone.load(Ordering::Relaxed) < config.requests as u64 {
        std::thread::yield_now();
    }
    Sample::new()
        .with("cancel_ns", cancelled.as_nanos() as f64)
        .with("free_ns", free.as_nanos() as f64)
        .with("gone_ns", given_up.elapsed().as_nanos() as f64)
        .with("peak_rss_bytes", urgency_measure::machine::peak_rss())
}

/// The experiment.
pub fn experiments(scale: Scale) -> Vec<Experiment> {
    let config = Config {
        requests: scale.pick(100_000, 1_000),
        patience: scale.pick(Duration::from_millis(100), Duration::from_millis(5)),
    };
    let experiment = Experiment::new(
        "cancel-wave",
        "10^5 requests are cancelled at once under overload, 2 workers",
    )
    .table(
        "tokio",
        &["free_ns", "cancel_ns", "gone_ns", "peak_rss_bytes"],
    )
    .contender("tokio", move || tokio::run(config))
    .bar(Bar::times_at_most("ours", "free_ns", 1.0, &["tokio"]));
    #[cfg(feature = "ours")]
    let experiment = experiment.contender("ours", move || ours::run(config));
    vec![experiment]
}
