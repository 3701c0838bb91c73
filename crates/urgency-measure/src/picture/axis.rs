//! The axes of a chart: what they are called, how values are spread on them, where they have marks.

use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, Ranged, ValueFormatter};
use std::ops::Range;

/// Where an axis of shares has marks.
const MARKS: [(f64, &str); 6] = [
    (0.0, "0 %"),
    (0.5, "50 %"),
    (0.9, "90 %"),
    (0.99, "99 %"),
    (0.999, "99.9 %"),
    (0.9999, "99.99 %"),
];

/// How values are spread.
#[derive(Clone, Debug, PartialEq)]
pub enum Scale {
    /// Evenly, from zero or from the least value.
    Linear {
        /// Whether zero is shown.
        from_zero: bool,
    },
    /// Each tenfold is a step.
    Logarithmic,
    /// Shares of requests as [`nines`]: each step leaves a tenth of them.
    Shares,
    /// Columns with these names, one apart.
    Names(Vec<String>),
}

/// An axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// What it shows, with the unit.
    pub label: String,
    /// How.
    pub scale: Scale,
}

/// The place of a share on an axis of shares: 0 for 0 %, 1 for 90 %, 2 for 99 %.
pub fn nines(share: f64) -> f64 {
    -(1.0 - share).log10()
}

impl Axis {
    fn new(label: &str, scale: Scale) -> Self {
        Axis {
            label: label.to_owned(),
            scale,
        }
    }

    /// Evenly, from zero.
    pub fn linear(label: &str) -> Self {
        Axis::new(label, Scale::Linear { from_zero: true })
    }

    /// Evenly, from the least value.
    pub fn linear_from_least(label: &str) -> Self {
        Axis::new(label, Scale::Linear { from_zero: false })
    }

    /// Each tenfold is a step.
    pub fn logarithmic(label: &str) -> Self {
        Axis::new(label, Scale::Logarithmic)
    }

    /// Shares of requests.
    pub fn shares(label: &str) -> Self {
        Axis::new(label, Scale::Shares)
    }

    /// Named columns.
    pub fn names(label: &str, names: Vec<String>) -> Self {
        Axis::new(label, Scale::Names(names))
    }

    /// With a range that shows all these values.
    pub(super) fn placed(&self, values: impl Iterator<Item = f64>) -> Placed {
        let (low, high) = values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| {
            (low.min(value), high.max(value))
        });
        let (low, high) = if low <= high { (low, high) } else { (0.0, 1.0) };
        let range = match &self.scale {
            Scale::Linear { from_zero: true } => low.min(0.0)..high.max(1e-9) * 1.05,
            Scale::Linear { from_zero: false } => {
                let rim = ((high - low) * 0.02).max(1e-3);
                low - rim..high + rim
            }
            Scale::Logarithmic => low.max(1e-6) / 1.4..high.max(1e-6) * 1.4,
            Scale::Shares => 0.0..high.max(1.0) * 1.02,
            Scale::Names(names) => -0.6..names.len() as f64 - 0.4,
        };
        Placed {
            scale: self.scale.clone(),
            range,
        }
    }
}

/// An axis with its range, as the drawing library wants it.
pub(super) struct Placed {
    scale: Scale,
    range: Range<f64>,
}

impl Placed {
    pub(super) fn start(&self) -> f64 {
        self.range.start
    }

    pub(super) fn end(&self) -> f64 {
        self.range.end
    }

    /// Where a value is on an even scale.
    fn even(&self, value: f64) -> f64 {
        match self.scale {
            Scale::Logarithmic => value.max(1e-9).log10(),
            _ => value,
        }
    }

    fn marks(&self) -> Vec<f64> {
        let Range { start, end } = self.range;
        match &self.scale {
            Scale::Linear { .. } => {
                let step = round_step((end - start) / 8.0);
                let first = (start / step).ceil() as i64;
                let last = (end / step).floor() as i64;
                (first..=last).map(|mark| mark as f64 * step).collect()
            }
            Scale::Logarithmic => {
                let decades = start.log10().floor() as i32..=end.log10().ceil() as i32;
                let within: &[f64] = match end / start > 1e3 {
                    true => &[1.0],
                    false => &[1.0, 2.0, 5.0],
                };
                let marks = decades
                    .flat_map(|decade| within.iter().map(move |mark| mark * 10f64.powi(decade)));
                marks.filter(|mark| (start..=end).contains(mark)).collect()
            }
            Scale::Shares => {
                let places = MARKS.iter().map(|(share, _)| nines(*share));
                places.filter(|place| *place <= end).collect()
            }
            Scale::Names(names) => (0..names.len()).map(|name| name as f64).collect(),
        }
    }
}

/// 1, 2 or 5 times a power of ten, at least `step`.
fn round_step(step: f64) -> f64 {
    let decade = 10f64.powf(step.log10().floor());
    let step = [1.0, 2.0, 5.0]
        .into_iter()
        .find(|&one| one * decade >= step);
    step.unwrap_or(10.0) * decade
}

impl Ranged for Placed {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, limit: (i32, i32)) -> i32 {
        let (from, to) = (f64::from(limit.0), f64::from(limit.1));
        let (start, end) = (self.even(self.range.start), self.even(self.range.end));
        (from + (to - from) * (self.even(*value) - start) / (end - start)).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, _: Hint) -> Vec<f64> {
        self.marks()
    }

    fn range(&self) -> Range<f64> {
        self.range.clone()
    }
}

impl ValueFormatter<f64> for Placed {
    fn format_ext(&self, value: &f64) -> String {
        match &self.scale {
            // Without what binary fractions add to the last digit.
            Scale::Linear { .. } | Scale::Logarithmic => {
                format!("{}", (value * 1e9).round() / 1e9)
            }
            Scale::Shares => {
                let is_here = |(share, _): &&(f64, &str)| (nines(*share) - value).abs() < 1e-6;
                let found = MARKS.iter().find(is_here);
                found.map_or_else(String::new, |(_, name)| (*name).to_owned())
            }
            Scale::Names(names) => names.get(*value as usize).cloned().unwrap_or_default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(axis: &Axis, values: &[f64]) -> Vec<String> {
        let placed = axis.placed(values.iter().copied());
        let marks = placed.marks().into_iter();
        marks.map(|mark| placed.format_ext(&mark)).collect()
    }

    #[test]
    fn marks_are_round_numbers_within_the_range() {
        assert_eq!(
            labels(&Axis::linear(""), &[0.3, 0.7]),
            ["0", "0.1", "0.2", "0.3", "0.4", "0.5", "0.6", "0.7"]
        );
        assert_eq!(
            labels(&Axis::logarithmic(""), &[0.5, 3.0]),
            ["0.5", "1", "2"]
        );
        assert_eq!(
            labels(&Axis::logarithmic(""), &[0.05, 300.0]),
            ["0.1", "1", "10", "100"]
        );
        assert_eq!(
            labels(&Axis::shares(""), &[0.0, 2.0]),
            ["0 %", "50 %", "90 %", "99 %"]
        );
        let names = vec!["a".to_owned(), "b".to_owned()];
        assert_eq!(labels(&Axis::names("", names), &[]), ["a", "b"]);
    }

    #[test]
    fn each_tenfold_is_as_wide_as_any_other_and_each_end_at_its_place() {
        let placed = Axis::logarithmic("").placed([1.0, 1000.0].into_iter());
        let at = |value: f64| placed.map(&value, (0, 10_000));
        assert_eq!((at(placed.start()), at(placed.end())), (0, 10_000));
        assert!((at(10.0) - at(1.0) - (at(100.0) - at(10.0))).abs() <= 1);
    }
}
