//! Experiments, contenders and bars as plain data.
//!
//! A problem builds its experiments with the methods below; a contender is a closure that measures itself and
//! returns a [`Sample`]. Bars compare medians: a ratio bar takes the median over the rounds of (ours / peer)
//! in the same round; with several peers, the peer with the best median counts. A bar that compares two ratios takes
//! the median over the rounds of one ratio over the other. A bar whose contender or peer has no sample is *not
//! measured*, which `--check` treats as a failure: a bar that nobody looked at is not kept.

use crate::sample::Sample;
use crate::slices::Slices;

/// How large the problems are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// The sizes that the bars are about.
    Full,
    /// A smoke test: every contender runs and verifies its result in well under a second. Bars are printed
    /// but not judged.
    Quick,
}

impl Scale {
    /// `full` or `quick`, as the scale says.
    pub fn pick<T>(self, full: T, quick: T) -> T {
        match self {
            Scale::Full => full,
            Scale::Quick => quick,
        }
    }
}

type Measure = Box<dyn Fn() -> Sample>;

/// One program that answers the experiment's question.
pub struct Contender {
    /// Name within the experiment.
    pub name: &'static str,
    /// Runs it once in this process.
    pub measure: Measure,
}

/// What a bar demands of the median.
#[derive(Clone, Debug)]
pub enum Limit {
    /// At most this, in the metric's unit.
    AtMost(f64),
    /// At least this, in the metric's unit.
    AtLeast(f64),
    /// At most so many times the best (lowest) of the peers.
    TimesAtMost(f64, &'static [&'static str]),
    /// At least so many times the best (highest) of the peers.
    TimesAtLeast(f64, &'static [&'static str]),
    /// Its ratio to a peer (the first name) is at most so many times the ratio of two others.
    RatioAtMost(f64, &'static str, [&'static str; 2]),
}

/// A limit that one contender must keep in one metric.
#[derive(Clone, Debug)]
pub struct Bar {
    /// The contender it binds.
    pub contender: &'static str,
    /// The metric it is about.
    pub metric: &'static str,
    /// The limit.
    pub limit: Limit,
}

impl Bar {
    /// `contender`'s `metric` is at most `limit`.
    pub fn at_most(contender: &'static str, metric: &'static str, limit: f64) -> Self {
        let limit = Limit::AtMost(limit);
        Bar {
            contender,
            metric,
            limit,
        }
    }

    /// `contender`'s `metric` is at least `limit`.
    pub fn at_least(contender: &'static str, metric: &'static str, limit: f64) -> Self {
        let limit = Limit::AtLeast(limit);
        Bar {
            contender,
            metric,
            limit,
        }
    }

    /// `contender`'s `metric` is at most `times` the metric of the best of `peers`.
    pub fn times_at_most(
        contender: &'static str,
        metric: &'static str,
        times: f64,
        peers: &'static [&'static str],
    ) -> Self {
        let limit = Limit::TimesAtMost(times, peers);
        Bar {
            contender,
            metric,
            limit,
        }
    }

    /// `contender`'s `metric` over its `peer`'s is at most `times` what the first of `others` has over the second.
    pub fn ratio_at_most(
        contender: &'static str,
        metric: &'static str,
        peer: &'static str,
        times: f64,
        others: [&'static str; 2],
    ) -> Self {
        let limit = Limit::RatioAtMost(times, peer, others);
        Bar {
            contender,
            metric,
            limit,
        }
    }

    /// `contender`'s `metric` is at least `times` the metric of the best of `peers`.
    pub fn times_at_least(
        contender: &'static str,
        metric: &'static str,
        times: f64,
        peers: &'static [&'static str],
    ) -> Self {
        let limit = Limit::TimesAtLeast(times, peers);
        Bar {
            contender,
            metric,
            limit,
        }
    }
}

/// A question, the contenders that answer it, and what the answer must be.
pub struct Experiment {
    name: String,
    about: String,
    columns: Vec<&'static str>,
    reference: &'static str,
    contenders: Vec<Contender>,
    bars: Vec<Bar>,
    slices: Option<Slices>,
}

/// What a contender's name ends in that is another one once more.
const AGAIN: &str = "-again";

/// The words by which `--one` knows a contender; one that is measured once more is the same program.
pub fn program(experiment: &str, contender: &str) -> String {
    let contender = contender.strip_suffix(AGAIN).unwrap_or(contender);
    format!("{experiment}/{contender}")
}

impl Experiment {
    /// A new experiment without contenders. `name` is its name on the command line, `about` one sentence.
    pub fn new(name: impl Into<String>, about: impl Into<String>) -> Self {
        Experiment {
            name: name.into(),
            about: about.into(),
            columns: Vec::new(),
            reference: "",
            contenders: Vec::new(),
            bars: Vec::new(),
            slices: None,
        }
    }

    /// The metrics that the table shows, the headline first, and the contender to which ratios refer.
    pub fn table(mut self, reference: &'static str, columns: &[&'static str]) -> Self {
        self.reference = reference;
        self.columns = columns.to_vec();
        self
    }

    /// Adds a contender.
    pub fn contender(mut self, name: &'static str, measure: impl Fn() -> Sample + 'static) -> Self {
        self.contenders.push(Contender {
            name,
            measure: Box::new(measure),
        });
        self
    }

    /// Adds a bar.
    pub fn bar(mut self, bar: Bar) -> Self {
        self.bars.push(bar);
        self
    }

    /// Lets contenders alternate in slices (see `slices/`). Their samples are made by `loaded::measure`.
    pub fn sliced(mut self, slices: Slices) -> Self {
        self.columns.push("left_out_share");
        self.slices = Some(slices);
        self
    }

    /// The same experiment with one contender, and this one once more: what the method makes of no difference. The bars
    /// are that the two agree within 5 % in each p99 of the table.
    pub fn beside_itself(mut self, contender: &str) -> Self {
        self.contenders.retain(|other| other.name == contender);
        let Some(name) = self.contenders.first().map(|one| one.name) else {
            return self;
        };
        let again: &'static str = format!("{name}{AGAIN}").leak();
        self.reference = name;
        let peers: &'static [&'static str] = vec![name].leak();
        let p99s = self.columns.iter().filter(|metric| metric.contains("p99_"));
        self.bars = p99s
            .flat_map(|metric| {
                [
                    Bar::times_at_most(again, metric, 1.05, peers),
                    Bar::times_at_least(again, metric, 1.0 / 1.05, peers),
                ]
            })
            .collect();
        self.contender(again, Sample::new)
    }

    /// How it is sliced, if it is.
    pub fn slices(&self) -> Option<&Slices> {
        self.slices.as_ref()
    }

    /// Name on the command line.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// One sentence.
    pub fn about(&self) -> &str {
        &self.about
    }

    /// Metrics of the table.
    pub fn columns(&self) -> &[&'static str] {
        &self.columns
    }

    /// The contender to which the printed ratios refer.
    pub fn reference(&self) -> &'static str {
        self.reference
    }

    /// All contenders.
    pub fn contenders(&self) -> &[Contender] {
        &self.contenders
    }

    /// All bars.
    pub fn bars(&self) -> &[Bar] {
        &self.bars
    }
}
