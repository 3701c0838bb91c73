//! The latency distributions as a picture (SVG), a panel for each scene.
//!
//! Across: the share of the requests (or frames), stretched so that each step to the right leaves a tenth of them (50
//! %, 90 %, 99 %, 99.9 %). Up: the time within which that share was answered (or drawn), on a logarithmic scale. A
//! curve that stays low and flat is what an interactive program wants; where it rises is where users wait. A curve
//! ends where a single request is left.

use super::{contender::Contender, error::Error, latencies::Latencies, outcome::Curve};
use plotters::{
    coord::Shift,
    coord::ranged1d::{KeyPointHint, NoDefaultFormatting, Ranged, ValueFormatter},
    prelude::*,
};
use std::ops::Range;

/// Of a panel.
const SIZE: (u32, u32) = (960, 600);
const FONT: &str = "sans-serif";
/// Steps of a curve per tenth of the requests left.
const STEPS: u32 = 60;
/// Where the axis has a mark.
const MARKS: [(f64, &str); 6] = [
    (0.0, "0 %"),
    (0.5, "50 %"),
    (0.9, "90 %"),
    (0.99, "99 %"),
    (0.999, "99.9 %"),
    (0.9999, "99.99 %"),
];

/// What a panel shows.
pub struct Panel<'a> {
    /// Above it.
    pub title: &'a str,
    /// Below the title.
    pub subtitle: &'a str,
    /// Of what the shares are.
    pub shares_of: &'a str,
    /// What the times are.
    pub times: &'a str,
    /// The curves; a curve without values is left out.
    pub curves: Vec<Curve<'a>>,
}

/// Draws panels, one below the other.
pub fn draw(panels: &[Panel<'_>]) -> Result<String, Error> {
    let mut svg = String::new();
    draw_into(&mut svg, panels).map_err(|error| Error::Draw {
        cause: error.to_string(),
    })?;
    Ok(svg)
}

fn draw_into(svg: &mut String, panels: &[Panel<'_>]) -> Result<(), Box<dyn std::error::Error>> {
    let count = panels.len().max(1);
    let size = (SIZE.0, SIZE.1 * count as u32);
    let root = SVGBackend::with_string(svg, size).into_drawing_area();
    root.fill(&WHITE)?;
    for (panel, area) in panels.iter().zip(root.split_evenly((count, 1))) {
        draw_panel(panel, area)?;
    }
    root.present()?;
    Ok(())
}

fn draw_panel(
    panel: &Panel<'_>,
    area: DrawingArea<SVGBackend<'_>, Shift>,
) -> Result<(), Box<dyn std::error::Error>> {
    let curves = panel
        .curves
        .iter()
        .map(|curve| (curve, points(curve.latencies)));
    let curves: Vec<_> = curves.filter(|(_, points)| !points.is_empty()).collect();
    let points = || curves.iter().flat_map(|(_, points)| points);
    let right = points().map(|p| p.0).fold(1.0, f64::max);
    let low = points().map(|p| p.1).fold(f64::INFINITY, f64::min).min(1.0);
    let high = points().map(|p| p.1).fold(1.0, f64::max);

    let area = area.titled(panel.title, (FONT, 24))?;
    let subtitle = (FONT, 15).into_font().color(&BLACK.mix(0.6));
    let area = area.titled(panel.subtitle, subtitle)?;
    let mut chart = ChartBuilder::on(&area)
        .margin(16)
        .margin_right(40)
        .x_label_area_size(48)
        .y_label_area_size(72)
        .build_cartesian_2d(
            Shares {
                right: right * 1.02,
            },
            (low / 1.3..high * 1.3).log_scale(),
        )?;
    chart
        .configure_mesh()
        .light_line_style(WHITE)
        .bold_line_style(BLACK.mix(0.12))
        .axis_style(BLACK.mix(0.5))
        .x_desc(panel.shares_of)
        .y_desc(panel.times)
        .y_label_formatter(&|ms| format!("{ms}"))
        .label_style((FONT, 14))
        .axis_desc_style((FONT, 15))
        .draw()?;
    for (curve, points) in curves {
        let style = style(curve);
        chart
            .draw_series(LineSeries::new(points, style))?
            .label(&curve.name)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 24, y)], style));
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperLeft)
        .margin(14)
        .legend_area_size(32)
        .background_style(WHITE.mix(0.85))
        .border_style(BLACK.mix(0.2))
        .label_font((FONT, 15))
        .draw()?;
    Ok(())
}

/// Points (nines of the share, milliseconds), up to the share that leaves one request.
fn points(latencies: &Latencies) -> Vec<(f64, f64)> {
    let asked = latencies.asked();
    if asked == 0 {
        return Vec::new();
    }
    let end = (asked as f64).log10();
    let steps = (end * f64::from(STEPS)).ceil() as u32;
    let nines = (0..=steps).map(|step| (f64::from(step) / f64::from(STEPS)).min(end));
    let point = |nines: f64| {
        let quantile = latencies.quantile(1.0 - 10f64.powf(-nines))?;
        // The scale has no zero.
        Some((nines, quantile.ms.max(1e-3)))
    };
    nines.filter_map(point).collect()
}

/// The place of a share on the axis: 0 for 0 %, 1 for 90 %, 2 for 99 %.
fn nines(share: f64) -> f64 {
    -(1.0 - share).log10()
}

/// The axis of the shares, from 0 % to a place.
struct Shares {
    right: f64,
}

impl Ranged for Shares {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    fn map(&self, place: &f64, limit: (i32, i32)) -> i32 {
        let (from, to) = (f64::from(limit.0), f64::from(limit.1));
        (from + (to - from) * place / self.right).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, _: Hint) -> Vec<f64> {
        let places = MARKS.iter().map(|(share, _)| nines(*share));
        places.filter(|place| *place <= self.right).collect()
    }

    fn range(&self) -> Range<f64> {
        0.0..self.right
    }
}

impl ValueFormatter<f64> for Shares {
    fn format_ext(&self, place: &f64) -> String {
        let is_here = |(share, _): &&(f64, &str)| (nines(*share) - place).abs() < 1e-6;
        let found = MARKS.iter().find(is_here);
        found.map_or_else(String::new, |(_, name)| (*name).to_owned())
    }
}

/// Colours that people with any kind of colour vision can tell apart (Okabe and Ito); Urgency's curve is the thick one.
fn style(curve: &Curve<'_>) -> ShapeStyle {
    let (colour, width) = match curve.contender {
        Contender::Idle => (RGBColor(130, 130, 130), 2),
        Contender::Urgency => (RGBColor(0, 114, 178), 4),
        Contender::TokioRayon => (RGBColor(213, 94, 0), 2),
        Contender::Threads => (RGBColor(0, 158, 115), 2),
        Contender::TwoPools => (RGBColor(204, 121, 167), 2),
    };
    match curve.is_thin {
        true => colour.mix(0.6).stroke_width(1),
        false => colour.stroke_width(width),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn latencies(count: u64) -> Latencies {
        let mut latencies = Latencies::new();
        for us in 1..=count {
            latencies.answered(Duration::from_micros(us * 100));
        }
        latencies
    }

    fn panel(title: &'static str, curves: Vec<Curve<'static>>) -> Panel<'static> {
        Panel {
            title,
            subtitle: "500 requests per second",
            shares_of: "share of the requests",
            times: "answered within, milliseconds",
            curves,
        }
    }

    #[test]
    fn the_picture_names_its_axes_and_each_contender_that_has_a_curve() {
        let curve = |contender: Contender, count| Curve {
            contender,
            name: contender.title().to_owned(),
            is_thin: false,
            latencies: Box::leak(Box::new(latencies(count))),
        };
        let requests = vec![
            curve(Contender::Urgency, 1000),
            curve(Contender::Threads, 1),
            curve(Contender::TokioRayon, 0),
        ];
        let frames = vec![curve(Contender::TwoPools, 100)];
        let panels = [
            panel("How long requests take", requests),
            panel("A frame loop", frames),
        ];
        let svg = draw(&panels).expect("a picture");
        assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"));
        for text in [
            "Urgency",
            "plain threads",
            "two Rayon pools",
            "A frame loop",
            "99.9 %",
            "milliseconds",
            "500 requests",
        ] {
            assert!(svg.contains(text), "{text} is missing");
        }
        assert!(!svg.contains("Tokio"));
    }

    #[test]
    fn a_picture_of_nothing_is_still_a_picture() {
        let svg = draw(&[]).expect("a picture");
        assert!(svg.trim_end().ends_with("</svg>"));
    }

    #[test]
    fn a_curve_rises_from_the_fastest_to_the_slowest_request() {
        let points = points(&latencies(1000));
        assert_eq!(points.first().map(|p| p.0), Some(0.0));
        assert_eq!(points.last().map(|p| p.0), Some(3.0));
        assert!(points.is_sorted_by(|a, b| a.0 < b.0 && a.1 <= b.1));
    }
}
