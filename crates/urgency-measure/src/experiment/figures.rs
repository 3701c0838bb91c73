//! The fairness paper's Figures 8 and 9 (SVG) from the raw samples of `fair-<kernel>-<workers>`, a file for
//! each number of workers.
//!
//! Left, Figure 8: the kernel's normalised time, its stretch times its share, by criterion; 1 is perfectly
//! fair. Right, Figure 9: the mean response of the echo, on a logarithmic scale. The stretch is in probes of
//! the machine's pace and paired by round, as in the bars.

use crate::picture::{self, Axis, Chart, Colour, Picture, Series, Shape};
use crate::rounds::median;
use serde_json::Value;
use std::collections::BTreeMap;
use std::error::Error;
use std::path::{Path, PathBuf};

const BASE: &str = "0-0-100";

/// One kernel under one criterion.
#[derive(Debug, PartialEq)]
struct Point {
    kernel: String,
    criterion: String,
    normalised: f64,
    response_ms: f64,
}

/// Draws what the experiments hold of it into `directory`. Returns what was written.
pub fn draw_all(experiments: &[Value], directory: &Path) -> Result<Vec<PathBuf>, Box<dyn Error>> {
    let mut by_workers: BTreeMap<String, Vec<Point>> = BTreeMap::new();
    for experiment in experiments {
        let words: Vec<&str> = experiment["name"]
            .as_str()
            .unwrap_or("")
            .split('-')
            .collect();
        if let ["fair", kernel, workers] = words[..] {
            let points = points(kernel, experiment);
            by_workers
                .entry(workers.to_owned())
                .or_default()
                .extend(points);
        }
    }
    let mut written = Vec::new();
    for (workers, points) in by_workers.iter().filter(|(_, points)| !points.is_empty()) {
        let place = directory.join(format!("fair-{workers}.svg"));
        std::fs::write(&place, draw(workers, points)?)?;
        written.push(place);
    }
    Ok(written)
}

fn points(kernel: &str, experiment: &Value) -> Vec<Point> {
    let medians = &experiment["medians"];
    let point = |criterion: &String| {
        let share: f64 = criterion.rsplit('-').next()?.parse().ok()?;
        let response = medians[criterion]["mean_ns"]["median"].as_f64()?;
        Some(Point {
            kernel: kernel.to_owned(),
            criterion: criterion.clone(),
            normalised: stretch(&experiment["samples"], criterion)? * share / 100.0,
            response_ms: response / 1e6,
        })
    };
    let criteria = medians.as_object().into_iter().flat_map(|all| all.keys());
    criteria
        .filter(|name| *name != BASE)
        .filter_map(point)
        .collect()
}

/// The kernel's time under a criterion over that with all of the machine, each of the same round: the median.
fn stretch(samples: &Value, criterion: &str) -> Option<f64> {
    let times = |contender| {
        let samples = samples.as_array().into_iter().flatten();
        let of = samples.filter(move |sample| sample["contender"] == contender);
        of.filter_map(|s| Some((s["round"].as_u64()?, s["metrics"]["time_probes"].as_f64()?)))
    };
    let alone: BTreeMap<u64, f64> = times(BASE).collect();
    median(times(criterion).filter_map(|(round, time)| Some(time / alone.get(&round)?)))
}

fn draw(workers: &str, points: &[Point]) -> Result<String, picture::Error> {
    let title = format!(
        "Kernels below an endless sink and an echo, {workers} worker(s), by fairness criterion (high-middle-low)"
    );
    let kept = Axis::linear("kernel's time x share / time with all");
    let response = Axis::logarithmic("mean response, milliseconds");
    Picture {
        title,
        size: (590, 460),
        columns: 2,
        charts: vec![
            chart(points, "Time that is kept", kept, |p| p.normalised),
            chart(points, "Response", response, |p| p.response_ms),
        ],
    }
    .draw()
}

/// A column for each kernel, a point for each criterion, a line at the bar.
fn chart(points: &[Point], title: &str, up: Axis, value: fn(&Point) -> f64) -> Chart {
    let distinct = |of: fn(&Point) -> &String| {
        let mut all: Vec<&String> = Vec::new();
        points.iter().map(of).for_each(|name| {
            if !all.contains(&name) {
                all.push(name)
            }
        });
        all
    };
    let (kernels, criteria) = (distinct(|p| &p.kernel), distinct(|p| &p.criterion));
    let series = criteria.iter().enumerate().map(|(number, criterion)| {
        let beside = 0.15 * (number as f64 - (criteria.len() - 1) as f64 / 2.0);
        let its = points.iter().filter(|p| p.criterion == **criterion);
        let its = its.map(|p| {
            let column = kernels.iter().position(|kernel| **kernel == p.kernel);
            (column.unwrap_or(0) as f64 + beside, value(p))
        });
        Series {
            name: criterion.to_string(),
            colour: Colour::of(number),
            shape: Shape::Points(its.collect()),
        }
    });
    Chart {
        title: title.to_owned(),
        subtitle: String::new(),
        series: series.collect(),
        across: Axis::names("", kernels.into_iter().cloned().collect()),
        up,
        bar: Some(1.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_criterion_that_is_kept_exactly_is_drawn_at_one() {
        // The second round was twice as slow for all, and one criterion has no sample of it.
        let sample = |round: u32, contender: &str, probes: f64| json!({ "round": round, "contender": contender, "metrics": { "time_probes": probes } });
        let samples = [
            sample(0, BASE, 100.0),
            sample(0, "50-25-25", 400.0),
            sample(0, "5-45-50", 300.0),
            sample(1, BASE, 200.0),
            sample(1, "50-25-25", 800.0),
        ];
        let median = || json!({ "mean_ns": { "median": 2e5 } });
        let medians = json!({ BASE: median(), "50-25-25": median(), "5-45-50": median() });
        let points = points("fib", &json!({ "medians": medians, "samples": samples }));
        let drawn: Vec<_> = points
            .iter()
            .map(|p| (p.criterion.as_str(), p.normalised, p.response_ms))
            .collect();
        assert_eq!(drawn, [("5-45-50", 1.5, 0.2), ("50-25-25", 1.0, 0.2)]);
        let picture = draw("2", &points).unwrap();
        assert!(picture.contains("fib") && picture.contains("5-45-50"));
    }
}
