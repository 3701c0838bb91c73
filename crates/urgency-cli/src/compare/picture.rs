//! The latencies against the offered rate, one panel for each of p50, p95, p99 and p99.9 (figures 1 and 3 of
//! the paper), as SVG.

use super::Error;
use super::contender::Contender;
use super::curves::{Point, at};
use super::rows::Latencies;
use super::turns::Titled as _;
use plotters::prelude::*;

const SIZE: (u32, u32) = (1100, 800);
const FONT: &str = "sans-serif";

type Panel = (&'static str, fn(&Latencies) -> f64);

const PANELS: [Panel; 4] = [
    ("p50", |latencies| latencies.p50),
    ("p95", |latencies| latencies.p95),
    ("p99", |latencies| latencies.p99),
    ("p99.9", |latencies| latencies.p999),
];

/// Draws the points, medians over their rounds.
pub fn draw(points: &[Point]) -> Result<String, Error> {
    let mut svg = String::new();
    draw_into(&mut svg, points).map_err(|cause| Error::File {
        path: "the picture".into(),
        cause: cause.to_string(),
    })?;
    Ok(svg)
}

fn draw_into(svg: &mut String, points: &[Point]) -> Result<(), Box<dyn std::error::Error>> {
    let root = SVGBackend::with_string(svg, SIZE).into_drawing_area();
    root.fill(&WHITE)?;
    let title = "Cache servers: latency against the offered rate";
    let root = root.titled(title, (FONT, 24))?;
    for (area, panel) in root.split_evenly((2, 2)).iter().zip(PANELS) {
        draw_panel(area, panel, points)?;
    }
    root.present()?;
    Ok(())
}

fn draw_panel(
    area: &DrawingArea<SVGBackend<'_>, plotters::coord::Shift>,
    (name, value): Panel,
    points: &[Point],
) -> Result<(), Box<dyn std::error::Error>> {
    let curves = Contender::ALL.map(|contender| (contender, curve(points, contender, value)));
    let all = || curves.iter().flat_map(|(_, curve)| curve);
    let right = all().map(|point| point.0).fold(1.0, f64::max);
    let low = all()
        .map(|point| point.1)
        .fold(f64::INFINITY, f64::min)
        .min(1.0);
    let high = all().map(|point| point.1).fold(1.0, f64::max);
    let mut chart = ChartBuilder::on(area)
        .caption(name, (FONT, 18))
        .margin(8)
        .margin_right(24)
        .x_label_area_size(40)
        .y_label_area_size(60)
        .build_cartesian_2d(0.0..right * 1.03, (low / 1.5..high * 1.5).log_scale())?;
    chart
        .configure_mesh()
        .light_line_style(WHITE)
        .bold_line_style(BLACK.mix(0.12))
        .axis_style(BLACK.mix(0.5))
        .x_desc("thousand requests per second")
        .y_desc("milliseconds")
        .y_label_formatter(&|ms| format!("{ms}"))
        .label_style((FONT, 13))
        .draw()?;
    for (contender, points) in curves.into_iter().filter(|(_, curve)| !curve.is_empty()) {
        let style = style(contender);
        chart
            .draw_series(LineSeries::new(points, style))?
            .label(contender.title())
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 24, y)], style));
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperLeft)
        .margin(10)
        .legend_area_size(32)
        .background_style(WHITE.mix(0.85))
        .border_style(BLACK.mix(0.2))
        .label_font((FONT, 14))
        .draw()?;
    Ok(())
}

fn curve(points: &[Point], contender: Contender, value: fn(&Latencies) -> f64) -> Vec<(f64, f64)> {
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
    shares.into_iter().filter_map(place).collect()
}

/// Colours that people with any kind of colour vision can tell apart (Okabe and Ito).
fn style(contender: Contender) -> ShapeStyle {
    let (colour, width) = match contender {
        Contender::Urgency => (RGBColor(0, 114, 178), 4),
        Contender::Memcached => (RGBColor(213, 94, 0), 2),
        Contender::Tokio => (RGBColor(0, 158, 115), 2),
    };
    colour.stroke_width(width)
}
