//! Pictures of `urgency sim jobs` (SVG).

use super::{
    super::picture::{COLOURS, FONT, SIZE},
    Row,
};
use plotters::prelude::*;
use std::error::Error;

type Drawn = Result<String, Box<dyn Error>>;

/// A named line.
type Series<'a> = (&'a str, Vec<(f64, f64)>);

/// One line for each policy, in the order of the rows.
fn by_policy(rows: &[Row], value: impl Fn(&Row) -> f64) -> Vec<Series<'_>> {
    let mut series: Vec<Series<'_>> = Vec::new();
    for row in rows {
        let point = (row.at, value(row));
        match series.iter_mut().find(|(name, _)| *name == row.policy) {
            Some((_, points)) => points.push(point),
            None => series.push((&row.policy, vec![point])),
        }
    }
    series
}

/// The least and the greatest of numbers.
fn range(values: impl Iterator<Item = f64>) -> (f64, f64) {
    values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| {
        (low.min(value), high.max(value))
    })
}

/// Mean flow time by load.
pub(super) fn flow(rows: &[Row]) -> Drawn {
    let series = by_policy(rows, |row| row.report.flow.mean / 1e6);
    lines(
        "Mean flow time",
        ("load, percent", "milliseconds"),
        &series,
        true,
    )
}

/// Missed deadlines by period.
pub(super) fn misses(rows: &[Row]) -> Drawn {
    let series = by_policy(rows, |row| {
        let task = row.report.tasks[0];
        f64::from(task.missed) / f64::from(task.released.max(1)) * 100.0
    });
    let axes = (
        "period of the first task, milliseconds",
        "missed deadlines, percent",
    );
    lines("Deadlines that the first task missed", axes, &series, false)
}

/// The cores of two jobs over time.
pub(super) fn cores(row: &Row) -> Drawn {
    let steps = |job: u64| {
        let mut points = Vec::new();
        let mut last = 0.0;
        for at in row.report.allotments.iter().filter(|at| at.job == job) {
            let time = at.time as f64 / 1e6;
            points.push((time, last));
            last = at.cores as f64;
            points.push((time, last));
        }
        points
    };
    let series = [("first job", steps(0)), ("second job", steps(1))];
    let caption = format!("Cores of two jobs in opposite phases under {}", row.policy);
    lines(&caption, ("milliseconds", "cores"), &series, false)
}

fn lines(caption: &str, (x, y): (&str, &str), series: &[Series<'_>], logarithmic: bool) -> Drawn {
    let mut svg = String::new();
    let points = || series.iter().flat_map(|(_, points)| points.iter().copied());
    let (left, right) = range(points().map(|p| p.0));
    let (low, high) = range(points().map(|p| p.1));
    // A line needs two different ends.
    let right = right.max(left + 1e-3);
    let shown = |value: f64| {
        if logarithmic {
            value.max(1e-6).log10()
        } else {
            value
        }
    };
    let (bottom, top) = match logarithmic {
        true => (shown(low) - 0.05, shown(high) + 0.05),
        false => (0.0, (high * 1.05).max(1.0)),
    };
    {
        let root = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
        root.fill(&WHITE)?;
        let mut chart = ChartBuilder::on(&root)
            .caption(caption, (FONT, 22))
            .margin(14)
            .x_label_area_size(44)
            .y_label_area_size(80)
            .build_cartesian_2d(left..right, bottom..top)?;
        let label = |value: &f64| match logarithmic {
            true => format!("{:.0}", 10f64.powf(*value)),
            false => format!("{value:.0}"),
        };
        chart
            .configure_mesh()
            .x_desc(x)
            .y_desc(y)
            .y_label_formatter(&label)
            .draw()?;
        for (number, (name, points)) in series.iter().enumerate() {
            let colour = COLOURS[number % COLOURS.len()];
            let line = points.iter().map(|&(x, y)| (x, shown(y)));
            chart
                .draw_series(LineSeries::new(line, colour.stroke_width(2)))?
                .label(*name)
                .legend(move |(x, y)| {
                    PathElement::new([(x, y), (x + 16, y)], colour.stroke_width(3))
                });
        }
        chart
            .configure_series_labels()
            .background_style(WHITE.mix(0.85))
            .border_style(BLACK.mix(0.2))
            .draw()?;
        root.present()?;
    }
    Ok(svg)
}
