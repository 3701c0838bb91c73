//! Trade-off pictures (SVG) from the raw samples of a run: throughput against tail latency, a point per contender.
//!
//! Across: items per second, the median over the rounds. Up: p99 of an item's time, on a logarithmic scale.
//! Right and low is good. Where no contender is both, the scheduler is a choice.

use super::figures;
use crate::picture::{self, Axis, Chart, Colour, Picture, Series, Shape};
use serde_json::Value;
use std::error::Error;
use std::path::{Path, PathBuf};

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

fn draw(name: &str, about: &str, points: &[(String, f64, f64)]) -> Result<String, picture::Error> {
    let series = points.iter().map(|(contender, per_s, ms)| Series {
        name: contender.clone(),
        colour: match contender.as_str() {
            "tokio" | "rayon" => Colour::GREY,
            "ours" => Colour::VERMILION,
            _ => Colour::BLUE,
        },
        shape: Shape::Named((*per_s, *ms)),
    });
    let chart = Chart {
        title: name.to_owned(),
        subtitle: about.to_owned(),
        across: Axis::linear("items per second"),
        up: Axis::logarithmic("99 % done within, milliseconds"),
        bar: None,
        series: series.collect(),
    };
    Picture::of((960, 600), chart).draw()
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
