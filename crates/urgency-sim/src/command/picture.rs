//! Pictures (SVG): a schedule as bars over time, a comparison as points of throughput against tail latency.

use crate::Report;
use plotters::prelude::*;
use std::error::Error;

pub(super) const SIZE: (u32, u32) = (1100, 600);
pub(super) const FONT: &str = "sans-serif";

/// Colours that people with any kind of colour vision can tell apart (Okabe and Ito); the most urgent level first.
pub(super) const COLOURS: [RGBColor; 7] = [
    RGBColor(213, 94, 0),
    RGBColor(0, 114, 178),
    RGBColor(0, 158, 115),
    RGBColor(230, 159, 0),
    RGBColor(204, 121, 167),
    RGBColor(86, 180, 233),
    RGBColor(130, 130, 130),
];

/// Which worker ran which level when.
pub(super) fn schedule(report: &Report) -> Result<String, Box<dyn Error>> {
    let mut svg = String::new();
    let end = report.schedule.iter().map(|s| s.end).max().unwrap_or(1);
    {
        let root = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
        root.fill(&WHITE)?;
        let mut chart = ChartBuilder::on(&root)
            .caption("Which worker ran which level", (FONT, 22))
            .margin(14)
            .x_label_area_size(40)
            .y_label_area_size(50)
            .build_cartesian_2d(0.0..end as f64 / 1e3, 0.0..report.workers as f64)?;
        chart
            .configure_mesh()
            .disable_y_mesh()
            .x_desc("microseconds")
            .y_desc("worker")
            .draw()?;
        for level in 0..report.levels.len() {
            let colour = COLOURS[level % COLOURS.len()];
            let spans = report
                .schedule
                .iter()
                .filter(|s| usize::from(s.level) == level);
            let bars = spans.map(|span| {
                let y = f64::from(span.worker);
                let from = (span.start as f64 / 1e3, y + 0.1);
                Rectangle::new([from, (span.end as f64 / 1e3, y + 0.9)], colour.filled())
            });
            chart
                .draw_series(bars)?
                .label(format!("level {level}"))
                .legend(move |(x, y)| {
                    Rectangle::new([(x, y - 5), (x + 12, y + 5)], colour.filled())
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

/// Throughput against tail latency, a point for each policy.
pub(super) fn trade_off(rows: &[(&str, Report)]) -> Result<String, Box<dyn Error>> {
    let mut svg = String::new();
    let point = |report: &Report| {
        let level = report.levels.iter().find(|level| level.roots > 0);
        let tail = level.map_or(1, |level| level.p99.max(1)) as f64 / 1e3;
        let throughput = report.work as f64 / report.makespan.max(1) as f64;
        (throughput, tail)
    };
    let points: Vec<(f64, f64)> = rows.iter().map(|(_, report)| point(report)).collect();
    let span = |values: &mut dyn Iterator<Item = f64>| {
        values.fold((f64::INFINITY, 0.0f64), |(low, high), v| {
            (low.min(v), high.max(v))
        })
    };
    let (left, right) = span(&mut points.iter().map(|p| p.0));
    let (low, high) = span(&mut points.iter().map(|p| p.1));
    {
        let root = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
        root.fill(&WHITE)?;
        let mut chart = ChartBuilder::on(&root)
            .caption("Throughput against tail latency", (FONT, 22))
            .margin(14)
            .margin_right(120)
            .x_label_area_size(44)
            .y_label_area_size(80)
            .build_cartesian_2d(
                left * 0.98..right * 1.02 + 1e-9,
                (low / 1.2..high * 1.2 + 1e-9).log_scale(),
            )?;
        chart
            .configure_mesh()
            .x_desc("work done per time (workers that are busy)")
            .y_desc("99th percentile of the most urgent level's response, microseconds")
            .draw()?;
        for (number, ((name, _), &at)) in rows.iter().zip(&points).enumerate() {
            let colour = COLOURS[number % COLOURS.len()];
            chart.draw_series(std::iter::once(Circle::new(at, 4, colour.filled())))?;
            let label = Text::new((*name).to_owned(), at, (FONT, 12).into_font());
            chart.draw_series(std::iter::once(label))?;
        }
        root.present()?;
    }
    Ok(svg)
}
