//! The latencies against the offered rate, one chart for each of p50, p95, p99 and p99.9 (figures 1 and 3 of
//! the paper).

use super::contender::Contender;
use super::curves::{Point, at};
use super::rows::Latencies;
use super::turns::Titled as _;
use urgency_measure::picture::{self, Axis, Chart, Colour, Picture, Series, Shape};

type Panel = (&'static str, fn(&Latencies) -> f64);

const PANELS: [Panel; 4] = [
    ("p50", |latencies| latencies.p50),
    ("p95", |latencies| latencies.p95),
    ("p99", |latencies| latencies.p99),
    ("p99.9", |latencies| latencies.p999),
];

/// Draws the points, medians over their rounds.
pub fn draw(points: &[Point]) -> Result<String, picture::Error> {
    let chart = |(name, value): Panel| Chart {
        title: name.to_owned(),
        subtitle: String::new(),
        across: Axis::linear("thousand requests per second"),
        up: Axis::logarithmic("milliseconds"),
        bar: None,
        series: Contender::ALL
            .map(|contender| series(points, contender, value))
            .into(),
    };
    let picture = Picture {
        title: "Cache servers: latency against the offered rate".to_owned(),
        size: (550, 400),
        columns: 2,
        charts: PANELS.map(chart).into(),
    };
    picture.draw()
}

fn series(points: &[Point], contender: Contender, value: fn(&Latencies) -> f64) -> Series {
    let mut shares: Vec<_> = points.iter().map(|point| point.share).collect();
    shares.sort_by(f64::total_cmp);
    shares.dedup();
    let place = |share| {
        let here = at(points, contender, share);
        let latencies: Vec<_> = here.iter().map(|point| point.latencies).collect();
        let latencies = Latencies::medians(&latencies)?;
        // The scale has no zero.
        Some((here[0].offered_per_s / 1000.0, value(&latencies).max(1e-3)))
    };
    let (colour, width) = match contender {
        Contender::Urgency => (Colour::BLUE, 4),
        Contender::Memcached => (Colour::VERMILION, 2),
        Contender::Tokio => (Colour::GREEN, 2),
    };
    Series {
        name: contender.title().to_owned(),
        colour,
        shape: Shape::Line(width, shares.into_iter().filter_map(place).collect()),
    }
}
