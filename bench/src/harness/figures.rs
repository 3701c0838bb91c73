//! The fairness paper's Figures 8 and 9 (SVG) from the raw samples of `fair-<kernel>-<workers>`, a file for
//! each number of workers.
//!
//! Left, Figure 8: the kernel's normalised time, its stretch times its share, by criterion; 1 is perfectly
//! fair. Right, Figure 9: the mean response of the echo, on a logarithmic scale. The stretch is in probes of
//! the machine's pace and paired by round, as in the bars.

use super::timing;
use plotters::coord::Shift;
use plotters::coord::ranged1d::{AsRangedCoord, ValueFormatter};
use plotters::prelude::*;
use serde_json::Value;
use std::collections::BTreeMap;
use std::error::Error;
use std::path::{Path, PathBuf};

const SIZE: (u32, u32) = (1180, 480);
const FONT: &str = "sans-serif";
const BASE: &str = "0-0-100";
/// Colours that people with any kind of colour vision can tell apart (Okabe and Ito).
const COLOURS: [RGBColor; 4] = [
    RGBColor(0xd5, 0x5e, 0x00),
    RGBColor(0x00, 0x72, 0xb2),
    RGBColor(0x00, 0x9e, 0x73),
    RGBColor(0xe6, 0x9f, 0x00),
];

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
    let mut ratios: Vec<f64> = times(criterion)
        .filter_map(|(round, time)| Some(time / alone.get(&round)?))
        .collect();
    (!ratios.is_empty()).then(|| timing::median(&mut ratios))
}

fn draw(workers: &str, points: &[Point]) -> Result<String, Box<dyn Error>> {
    let mut svg = String::new();
    {
        let root = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
        root.fill(&WHITE)?;
        let title = format!(
            "Kernels below an endless sink and an echo, {workers} worker(s), by fairness criterion (high-middle-low)"
        );
        let root = root.titled(&title, (FONT, 18))?;
        let (left, right) = root.split_horizontally(SIZE.0 / 2);
        let most = points.iter().map(|p| p.normalised).fold(1.3, f64::max);
        chart(
            &left,
            points,
            "kernel's time x share / time with all",
            0.0..most * 1.05,
            1.0,
            |p| p.normalised,
        )?;
        let slowest = points.iter().map(|p| p.response_ms).fold(2.0, f64::max);
        let ms = (0.01..slowest * 1.5).log_scale();
        chart(
            &right,
            points,
            "mean response, milliseconds",
            ms,
            1.0,
            |p| p.response_ms,
        )?;
        root.present()?;
    }
    Ok(svg)
}

/// A column for each kernel, a point for each criterion, a line at the bar.
fn chart<Y>(
    area: &DrawingArea<SVGBackend<'_>, Shift>,
    points: &[Point],
    about: &str,
    range: Y,
    bar: f64,
    value: fn(&Point) -> f64,
) -> Result<(), Box<dyn Error>>
where
    Y: AsRangedCoord<Value = f64>,
    Y::CoordDescType: ValueFormatter<f64>,
{
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
    let mut chart = ChartBuilder::on(area)
        .margin(12)
        .x_label_area_size(36)
        .y_label_area_size(64)
        .build_cartesian_2d(-0.6..kernels.len() as f64 - 0.4, range)?;
    let name = |at: &f64| {
        let is_centre = (at - at.round()).abs() < 0.01;
        let kernel = kernels
            .get(at.round() as usize)
            .filter(|_| is_centre && *at > -0.1);
        kernel.map_or(String::new(), |kernel| (*kernel).clone())
    };
    chart
        .configure_mesh()
        .disable_x_mesh()
        .light_line_style(WHITE)
        .bold_line_style(BLACK.mix(0.12))
        .axis_style(BLACK.mix(0.5))
        .x_labels(2 * kernels.len() + 1)
        .x_label_formatter(&name)
        .y_desc(about)
        .label_style((FONT, 14))
        .axis_desc_style((FONT, 15))
        .draw()?;
    let line = [(-0.6, bar), (kernels.len() as f64 - 0.4, bar)];
    chart.draw_series(LineSeries::new(line, BLACK.mix(0.6)))?;
    for (number, criterion) in criteria.iter().enumerate() {
        let colour = COLOURS[number % COLOURS.len()];
        let its = points
            .iter()
            .filter(|p| p.criterion == **criterion)
            .map(|p| {
                let column = kernels
                    .iter()
                    .position(|kernel| **kernel == p.kernel)
                    .unwrap_or(0);
                let x = column as f64 + 0.15 * (number as f64 - (criteria.len() - 1) as f64 / 2.0);
                Circle::new((x, value(p)), 5, colour.filled())
            });
        chart
            .draw_series(its)?
            .label(criterion.as_str())
            .legend(move |(x, y)| Circle::new((x + 6, y), 5, colour.filled()));
    }
    chart
        .configure_series_labels()
        .label_font((FONT, 13))
        .background_style(WHITE.mix(0.85))
        .draw()?;
    Ok(())
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
