//! Trade-off pictures (SVG) from the raw samples of a run: throughput against tail latency, a point per contender.
//!
//! Across: items per second, the median over the rounds. Up: p99 of an item's time, on a logarithmic scale.
//! Right and low is good. Where no contender is both, the scheduler is a choice.

use super::figures;
use plotters::prelude::*;
use serde_json::Value;
use std::error::Error;
use std::path::{Path, PathBuf};

const SIZE: (u32, u32) = (960, 600);
const FONT: &str = "sans-serif";

/// Draws every experiment with `per_s` and `p99_ns` of the records at `paths` into `directory`, and the
/// figures of `figures.rs`. Returns what was written.
pub fn draw_all(paths: &[PathBuf], directory: &Path) -> Result<Vec<PathBuf>, Box<dyn Error>> {
    let mut experiments = Vec::new();
    for path in paths {
        let mut record: Value = serde_json::from_str(&std::fs::read_to_string(path)?)?;
        let Value::Array(held) = record["experiments"].take() else {
            return Err(
                "a file holds no experiments; it should be one that `urgency-bench` wrote".into(),
            );
        };
        // Of one that was measured again the last samples are drawn.
        experiments.retain(|old: &Value| held.iter().all(|new| new["name"] != old["name"]));
        experiments.extend(held);
    }
    std::fs::create_dir_all(directory)?;
    let mut written = figures::draw_all(&experiments, directory)?;
    for experiment in &experiments {
        let points = points(experiment);
        let (Some(name), false) = (experiment["name"].as_str(), points.is_empty()) else {
            continue;
        };
        let place = directory.join(format!("{name}.svg"));
        let about = experiment["about"].as_str().unwrap_or_default();
        std::fs::write(&place, draw(name, about, &points)?)?;
        written.push(place);
    }
    Ok(written)
}

/// Contender, items per second, milliseconds.
fn points(experiment: &Value) -> Vec<(String, f64, f64)> {
    let Some(medians) = experiment["medians"].as_object() else {
        return Vec::new();
    };
    let point = |(contender, metrics): (&String, &Value)| {
        let median = |metric: &str| metrics[metric]["median"].as_f64();
        Some((contender.clone(), median("per_s")?, median("p99_ns")? / 1e6))
    };
    medians.iter().filter_map(point).collect()
}

fn draw(name: &str, about: &str, points: &[(String, f64, f64)]) -> Result<String, Box<dyn Error>> {
    let mut svg = String::new();
    {
        let root = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
        root.fill(&WHITE)?;
        let root = root.titled(name, (FONT, 24))?;
        let root = root.titled(about, (FONT, 15).into_font().color(&BLACK.mix(0.6)))?;
        let right = points.iter().map(|p| p.1).fold(0.0, f64::max) * 1.15;
        let low = points.iter().map(|p| p.2).fold(f64::INFINITY, f64::min);
        let high = points.iter().map(|p| p.2).fold(0.0, f64::max);
        let mut chart = ChartBuilder::on(&root)
            .margin(16)
            .margin_right(60)
            .x_label_area_size(48)
            .y_label_area_size(72)
            .build_cartesian_2d(0.0..right, (low / 1.5..high * 1.5).log_scale())?;
        chart
            .configure_mesh()
            .light_line_style(WHITE)
            .bold_line_style(BLACK.mix(0.12))
            .axis_style(BLACK.mix(0.5))
            .x_desc("items per second")
            .y_desc("99 % done within, milliseconds")
            .label_style((FONT, 14))
            .axis_desc_style((FONT, 15))
            .draw()?;
        for (contender, per_s, ms) in points {
            let colour = match contender.as_str() {
                "tokio" | "rayon" => RGBColor(0x99, 0x99, 0x99),
                "ours" => RGBColor(0xd5, 0x5e, 0x00),
                _ => RGBColor(0x00, 0x72, 0xb2),
            };
            let label = Text::new(contender.clone(), (8, -6), (FONT, 13).into_font());
            let point = EmptyElement::at((*per_s, *ms)) + Circle::new((0, 0), 5, colour.filled());
            chart.draw_series(std::iter::once(point + label))?;
        }
        root.present()?;
    }
    Ok(svg)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_picture_names_every_contender_that_has_both_metrics() {
        let both = json!({ "per_s": { "median": 1000.0 }, "p99_ns": { "median": 2e6 } });
        let one = json!({ "per_s": { "median": 1000.0 } });
        let experiment =
            json!({ "medians": { "first": both.clone(), "second": both, "third": one } });
        let points = points(&experiment);
        let picture = draw("name", "about", &points).unwrap();
        assert!(picture.contains("first") && picture.contains("second"));
        assert!(!picture.contains("third"));
    }
}
