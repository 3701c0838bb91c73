//! The one drawer of pictures (SVG): charts in a grid, each with two axes and some series.
//!
//! What is drawn is data: a [`Chart`] names its [`Axis`]es and [`Series`], and `draw` does the rest. The axes' scales
//! are in `axis.rs`.

mod axis;

pub use axis::{Axis, Scale, nines};

use crate::latencies::Latencies;
use axis::Placed;
use plotters::coord::Shift;
use plotters::element::EmptyElement;
use plotters::prelude::*;
use std::fmt;

const FONT: &str = "sans-serif";
/// Steps of a distribution's curve per tenth of the requests left.
const STEPS: u32 = 60;

/// A colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Colour(u8, u8, u8);

/// Colours that people with any kind of colour vision can tell apart (Okabe and Ito).
pub const COLOURS: [Colour; 7] = [
    Colour::VERMILION,
    Colour::BLUE,
    Colour::GREEN,
    Colour::ORANGE,
    Colour::PURPLE,
    Colour(86, 180, 233),
    Colour::GREY,
];

impl Colour {
    /// Of these two, red.
    pub const VERMILION: Colour = Colour(213, 94, 0);
    /// And blue.
    pub const BLUE: Colour = Colour(0, 114, 178);
    /// A bluish one.
    pub const GREEN: Colour = Colour(0, 158, 115);
    /// A yellowish one.
    pub const ORANGE: Colour = Colour(230, 159, 0);
    /// A reddish one.
    pub const PURPLE: Colour = Colour(204, 121, 167);
    /// For what is compared with.
    pub const GREY: Colour = Colour(130, 130, 130);

    /// The colour of a series by its number.
    pub fn of(number: usize) -> Self {
        COLOURS[number % COLOURS.len()]
    }
}

/// What a series looks like.
#[derive(Clone, Debug)]
pub enum Shape {
    /// A line through points, this thick.
    Line(u32, Vec<(f64, f64)>),
    /// Points, explained in the legend.
    Points(Vec<(f64, f64)>),
    /// A point with the series' name beside it.
    Named((f64, f64)),
    /// Bars from one value to another, in a row.
    Bars(Vec<(f64, f64, u32)>),
}

/// A named part of a chart.
#[derive(Clone, Debug)]
pub struct Series {
    /// For the legend, or beside a point.
    pub name: String,
    /// Its colour.
    pub colour: Colour,
    /// Its data.
    pub shape: Shape,
}

impl Series {
    /// A line through the distribution's quantiles, up to the share that leaves one request; the share is in
    /// [`nines`], the time in milliseconds.
    pub fn of_latencies(name: String, colour: Colour, width: u32, latencies: &Latencies) -> Self {
        let asked = latencies.asked();
        let end = (asked.max(1) as f64).log10();
        let steps = (end * f64::from(STEPS)).ceil() as u32;
        let nines = (0..=steps).map(|step| (f64::from(step) / f64::from(STEPS)).min(end));
        let point = |nines: f64| {
            let quantile = latencies.quantile(1.0 - 10f64.powf(-nines))?;
            // The scale has no zero.
            Some((nines, quantile.ms.max(1e-3)))
        };
        Series {
            name,
            colour,
            shape: Shape::Line(width, nines.filter_map(point).collect()),
        }
    }

    /// The corners of all that it shows.
    fn points(&self) -> Vec<(f64, f64)> {
        match &self.shape {
            Shape::Line(_, points) | Shape::Points(points) => points.clone(),
            Shape::Named(point) => vec![*point],
            Shape::Bars(bars) => {
                let ends = |&(from, to, row): &(f64, f64, u32)| {
                    [(from, f64::from(row)), (to, f64::from(row) + 1.0)]
                };
                bars.iter().flat_map(ends).collect()
            }
        }
    }
}

/// A chart.
#[derive(Clone, Debug)]
pub struct Chart {
    /// Above it.
    pub title: String,
    /// Below the title; may be empty.
    pub subtitle: String,
    /// From left to right.
    pub across: Axis,
    /// From below upwards.
    pub up: Axis,
    /// A line at this height, all across.
    pub bar: Option<f64>,
    /// What it shows. Series without values are left out.
    pub series: Vec<Series>,
}

/// Charts in a grid.
#[derive(Clone, Debug)]
pub struct Picture {
    /// Above all of it; may be empty.
    pub title: String,
    /// Width and height of a chart.
    pub size: (u32, u32),
    /// Charts in a row.
    pub columns: usize,
    /// The charts.
    pub charts: Vec<Chart>,
}

/// Why a picture could not be drawn.
#[derive(Debug)]
pub struct Error(String);

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the picture could not be drawn: {}", self.0)
    }
}

impl std::error::Error for Error {}

type Drawn = Result<(), Box<dyn std::error::Error>>;

impl Picture {
    /// A picture of one chart.
    pub fn of(size: (u32, u32), chart: Chart) -> Self {
        Picture {
            title: String::new(),
            size,
            columns: 1,
            charts: vec![chart],
        }
    }

    /// Draws it: SVG.
    ///
    /// # Errors
    ///
    /// The drawing library's.
    ///
    /// ```
    /// use urgency_measure::picture::{Axis, Chart, Colour, Picture, Series, Shape};
    ///
    /// let chart = Chart {
    ///     title: "Twice as much".to_owned(),
    ///     subtitle: String::new(),
    ///     across: Axis::linear("before"),
    ///     up: Axis::logarithmic("after, milliseconds"),
    ///     bar: None,
    ///     series: vec![Series {
    ///         name: "doubling".to_owned(),
    ///         colour: Colour::BLUE,
    ///         shape: Shape::Line(2, vec![(1.0, 2.0), (2.0, 4.0)]),
    ///     }],
    /// };
    /// let svg = Picture::of((960, 600), chart).draw()?;
    /// assert!(svg.contains("Twice as much") && svg.contains("doubling"));
    /// # Ok::<(), urgency_measure::picture::Error>(())
    /// ```
    pub fn draw(&self) -> Result<String, Error> {
        let mut svg = String::new();
        let drawn = self.draw_into(&mut svg);
        drawn.map_err(|error| Error(error.to_string()))?;
        Ok(svg)
    }

    fn draw_into(&self, svg: &mut String) -> Drawn {
        let columns = self.columns.clamp(1, self.charts.len().max(1));
        let rows = self.charts.len().div_ceil(columns).max(1);
        let (width, height) = self.size;
        let size = (width * columns as u32, height * rows as u32);
        let root = SVGBackend::with_string(svg, size).into_drawing_area();
        root.fill(&WHITE)?;
        let below = match self.title.as_str() {
            "" => root.clone(),
            title => root.titled(title, (FONT, 22))?,
        };
        let areas = below.split_evenly((rows, columns));
        for (chart, area) in self.charts.iter().zip(areas) {
            chart.draw(area)?;
        }
        root.present()?;
        Ok(())
    }
}

impl Chart {
    fn draw(&self, area: DrawingArea<SVGBackend<'_>, Shift>) -> Drawn {
        let all: Vec<_> = self.series.iter().flat_map(Series::points).collect();
        let across = self.across.placed(all.iter().map(|point| point.0));
        let heights = all.iter().map(|point| point.1).chain(self.bar);
        let up = self.up.placed(heights);
        let area = area.titled(&self.title, (FONT, 20))?;
        let area = match self.subtitle.as_str() {
            "" => area,
            text => area.titled(text, (FONT, 15).into_font().color(&BLACK.mix(0.6)))?,
        };
        let (right, names_points) = (
            across.end(),
            self.series
                .iter()
                .any(|one| matches!(one.shape, Shape::Named(_))),
        );
        let left = across.start();
        let mut chart = ChartBuilder::on(&area)
            .margin(14)
            .margin_right(if names_points { 110 } else { 36 })
            .x_label_area_size(46)
            .y_label_area_size(72)
            .build_cartesian_2d(across, up)?;
        chart
            .configure_mesh()
            .light_line_style(WHITE)
            .bold_line_style(BLACK.mix(0.12))
            .axis_style(BLACK.mix(0.5))
            .x_desc(&self.across.label)
            .y_desc(&self.up.label)
            .label_style((FONT, 14))
            .axis_desc_style((FONT, 15))
            .draw()?;
        if let Some(bar) = self.bar {
            let line = [(left, bar), (right, bar)];
            chart.draw_series(LineSeries::new(line, BLACK.mix(0.6)))?;
        }
        let mut has_legend = false;
        for series in self.series.iter().filter(|one| !one.points().is_empty()) {
            has_legend |= !matches!(series.shape, Shape::Named(_));
            series.draw(&mut chart)?;
        }
        if has_legend {
            chart
                .configure_series_labels()
                .position(SeriesLabelPosition::UpperLeft)
                .margin(14)
                .legend_area_size(32)
                .background_style(WHITE.mix(0.85))
                .border_style(BLACK.mix(0.2))
                .label_font((FONT, 14))
                .draw()?;
        }
        Ok(())
    }
}

type Context<'a, 'b> = ChartContext<'a, SVGBackend<'b>, Cartesian2d<Placed, Placed>>;

impl Series {
    fn draw(&self, chart: &mut Context<'_, '_>) -> Drawn {
        let Colour(red, green, blue) = self.colour;
        let colour = RGBColor(red, green, blue);
        match &self.shape {
            Shape::Line(width, points) => {
                let style = colour.stroke_width(*width);
                chart
                    .draw_series(LineSeries::new(points.iter().copied(), style))?
                    .label(&self.name)
                    .legend(move |(x, y)| PathElement::new([(x, y), (x + 24, y)], style));
            }
            Shape::Points(points) => {
                let circles = points.iter().map(|&at| Circle::new(at, 5, colour.filled()));
                chart
                    .draw_series(circles)?
                    .label(&self.name)
                    .legend(move |(x, y)| Circle::new((x + 12, y), 5, colour.filled()));
            }
            Shape::Named(at) => {
                let label = Text::new(self.name.clone(), (8, -6), (FONT, 13).into_font());
                let point = EmptyElement::at(*at) + Circle::new((0, 0), 5, colour.filled()) + label;
                chart.draw_series(std::iter::once(point))?;
            }
            Shape::Bars(bars) => {
                let bars = bars.iter().map(|&(from, to, row)| {
                    let row = f64::from(row);
                    Rectangle::new([(from, row + 0.1), (to, row + 0.9)], colour.filled())
                });
                chart
                    .draw_series(bars)?
                    .label(&self.name)
                    .legend(move |(x, y)| {
                        Rectangle::new([(x + 6, y - 5), (x + 18, y + 5)], colour.filled())
                    });
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn latencies(count: u64) -> Latencies {
        let mut latencies = Latencies::new();
        for us in 1..=count {
            latencies.record(Duration::from_micros(us * 100));
        }
        latencies
    }

    fn chart(title: &str, series: Vec<Series>) -> Chart {
        Chart {
            title: title.to_owned(),
            subtitle: "500 requests per second".to_owned(),
            across: Axis::shares("share of the requests"),
            up: Axis::logarithmic("answered within, milliseconds"),
            bar: None,
            series,
        }
    }

    #[test]
    fn a_picture_names_its_axes_and_each_series_that_has_values() {
        let curve = |name: &str, count| {
            Series::of_latencies(name.to_owned(), Colour::BLUE, 2, &latencies(count))
        };
        let requests = vec![
            curve("Urgency", 1000),
            curve("threads", 1),
            curve("Tokio", 0),
        ];
        let point = Series {
            name: "a point".to_owned(),
            colour: Colour::of(9),
            shape: Shape::Named((0.5, 1.0)),
        };
        let svg = Picture {
            title: "All".to_owned(),
            size: (960, 600),
            columns: 2,
            charts: vec![chart("Requests", requests), chart("Frames", vec![point])],
        };
        let svg = svg.draw().expect("a picture");
        assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"));
        for text in [
            "All",
            "Urgency",
            "threads",
            "Frames",
            "a point",
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
        let picture = Picture {
            title: String::new(),
            size: (960, 600),
            columns: 1,
            charts: Vec::new(),
        };
        let svg = picture.draw().expect("a picture");
        assert!(svg.trim_end().ends_with("</svg>"));
        let empty = Picture::of((960, 600), chart("Nothing", Vec::new()));
        assert!(empty.draw().expect("a picture").contains("Nothing"));
    }

    #[test]
    fn a_curve_rises_from_the_fastest_to_the_slowest_request() {
        let curve = Series::of_latencies(String::new(), Colour::BLUE, 2, &latencies(1000));
        let points = curve.points();
        assert_eq!(points.first().map(|p| p.0), Some(0.0));
        assert_eq!(points.last().map(|p| p.0), Some(3.0));
        assert!(points.is_sorted_by(|a, b| a.0 < b.0 && a.1 <= b.1));
    }
}
