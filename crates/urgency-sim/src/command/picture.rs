//! Pictures: a schedule as bars over time, a comparison as points of throughput against tail latency.

use crate::Report;
use urgency_measure::picture::{self, Axis, Chart, Colour, Picture, Series, Shape};

/// Of a chart.
pub(super) const SIZE: (u32, u32) = (1100, 600);

/// Which worker ran which level when.
pub(super) fn schedule(report: &Report) -> Result<String, picture::Error> {
    let of_level = |level: usize| {
        let spans = report.schedule.iter();
        let spans = spans.filter(|span| usize::from(span.level) == level);
        let bars = spans.map(|span| {
            let (start, end) = (span.start as f64 / 1e3, span.end as f64 / 1e3);
            (start, end, span.worker)
        });
        Series {
            name: format!("level {level}"),
            colour: Colour::of(level),
            shape: Shape::Bars(bars.collect()),
        }
    };
    let chart = Chart {
        title: "Which worker ran which level".to_owned(),
        subtitle: String::new(),
        across: Axis::linear("microseconds"),
        up: Axis::linear("worker"),
        bar: None,
        series: (0..report.levels.len()).map(of_level).collect(),
    };
    Picture::of(SIZE, chart).draw()
}

/// Throughput against tail latency, a point for each policy.
pub(super) fn trade_off(rows: &[(&str, Report)]) -> Result<String, picture::Error> {
    let series = rows.iter().enumerate().map(|(number, (name, report))| {
        let level = report.levels.iter().find(|level| level.roots > 0);
        let tail = level.map_or(1, |level| level.p99.max(1)) as f64 / 1e3;
        let throughput = report.work as f64 / report.makespan.max(1) as f64;
        Series {
            name: (*name).to_owned(),
            colour: Colour::of(number),
            shape: Shape::Named((throughput, tail)),
        }
    });
    let chart = Chart {
        title: "Throughput against tail latency".to_owned(),
        subtitle: String::new(),
        across: Axis::linear_from_least("work done per time (workers that are busy)"),
        up: Axis::logarithmic("99th percentile of the most urgent level's response, microseconds"),
        bar: None,
        series: series.collect(),
    };
    Picture::of(SIZE, chart).draw()
}
