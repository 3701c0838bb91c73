//! Pairs of tasks that send a number back and forth over two channels of capacity 1 (`async-channel` for all
//! runtimes): one pair, where each message is a sleep and a wake-up, and 64 pairs, where the queues stay
//! full.

#[cfg(feature = "ours")]
mod ours;
mod tokio;

use async_channel::{Receiver, Sender, bounded};
use urgency_measure::{Bar, Experiment, Sample, Scale, timing};

/// How many pairs, and how often each number comes back.
#[derive(Clone, Copy)]
pub struct Config {
    /// Pairs of tasks.
    pub pairs: u64,
    /// Round trips of each pair.
    pub trips: u64,
}

impl Config {
    /// Times `trips`, which returns how many round trips its tasks have made in all.
    pub fn measure(&self, trips: impl FnMut() -> u64) -> Sample {
        let expected = self.pairs * self.trips;
        let sample = timing::repeat(3, &expected, trips);
        sample.with_each("trip_ns", expected)
    }
}

/// One side's ends of the channels.
pub struct Side {
    send: Sender<u64>,
    receive: Receiver<u64>,
}

/// Two sides that hear each other.
pub fn pair() -> (Side, Side) {
    let (there, here) = (bounded(1), bounded(1));
    let caller = Side {
        send: there.0,
        receive: here.1,
    };
    let echo = Side {
        send: here.0,
        receive: there.1,
    };
    (caller, echo)
}

impl Side {
    /// Sends numbers and waits for each to come back, increased by one; returns how many did.
    pub async fn call(self, trips: u64) -> u64 {
        for number in 0..trips {
            self.send.send(number).await.expect("the echo receives");
            let back = self.receive.recv().await.expect("the echo sends");
            assert_eq!(back, number + 1, "wrong number");
        }
        trips
    }

    /// Sends back each number increased by one, until the caller is gone.
    pub async fn echo(self) {
        while let Ok(number) = self.receive.recv().await {
            if self.send.send(number + 1).await.is_err() {
                return;
            }
        }
    }
}

/// One pair and many.
pub fn experiments(scale: Scale) -> Vec<Experiment> {
    let sizes = [(1, scale.pick(200_000, 500)), (64, scale.pick(5_000, 20))];
    sizes
        .map(|(pairs, trips)| experiment(Config { pairs, trips }))
        .into()
}

fn experiment(config: Config) -> Experiment {
    let pairs = config.pairs;
    let experiment = Experiment::new(
        format!("ping-pong-{pairs}"),
        format!("round trips over async channels, {pairs} pair(s) of tasks, 2 workers"),
    )
    .table("tokio", &["trip_ns", "cpu_ns"])
    .contender("tokio", move || tokio::run(config))
    .bar(Bar::times_at_most("ours", "trip_ns", 1.0, &["tokio"]));
    #[cfg(feature = "ours")]
    let experiment = experiment.contender("ours", move || ours::run(config));
    experiment
}
