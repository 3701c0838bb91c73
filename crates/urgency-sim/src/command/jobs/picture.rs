//! Pictures of `urgency sim jobs` (SVG).

use super::{super::picture::SIZE, Row};
use urgency_measure::picture::{self, Axis, Chart, Colour, Picture, Shape};

type Drawn = Result<String, picture::Error>;

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

/// Mean flow time by load.
pub(super) fn flow(rows: &[Row]) -> Drawn {
    let series = by_policy(rows, |row| row.report.flow.mean / 1e6);
    lines(
        "Mean flow time",
        "load, percent",
        Axis::logarithmic("milliseconds"),
        series,
    )
}

/// Missed deadlines by period.
pub(super) fn misses(rows: &[Row]) -> Drawn {
    let series = by_policy(rows, |row| {
        let task = row.report.tasks[0];
        f64::from(task.missed) / f64::from(task.released.max(1)) * 100.0
    });
    let across = "period of the first task, milliseconds";
    let up = Axis::linear("missed deadlines, percent");
    lines("Deadlines that the first task missed", across, up, series)
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
    let series = vec![("first job", steps(0)), ("second job", steps(1))];
    let caption = format!("Cores of two jobs in opposite phases under {}", row.policy);
    lines(&caption, "milliseconds", Axis::linear("cores"), series)
}

fn lines(title: &str, across: &str, up: Axis, series: Vec<Series<'_>>) -> Drawn {
    let series = series.into_iter().enumerate();
    let series = series.map(|(number, (name, points))| picture::Series {
        name: name.to_owned(),
        colour: Colour::of(number),
        shape: Shape::Line(2, points),
    });
    let chart = Chart {
        title: title.to_owned(),
        subtitle: String::new(),
        across: Axis::linear_from_least(across),
        up,
        bar: None,
        series: series.collect(),
    };
    Picture::of(SIZE, chart).draw()
}
