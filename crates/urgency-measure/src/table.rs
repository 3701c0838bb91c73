//! Numbers and tables for people.

/// A number of milliseconds with three significant digits, and never more than three decimals.
pub fn ms(value: f64) -> String {
    let decimals = match value {
        v if v < 0.9995 => 3,
        v if v < 9.995 => 2,
        v if v < 99.95 => 1,
        _ => 0,
    };
    format!("{value:.decimals$}")
}

/// A share as a percentage.
pub fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

/// A value of a metric with the unit that the metric's name says.
pub fn quantity(metric: &str, value: f64) -> String {
    if metric.ends_with("_ns") {
        return scaled(value, &[(1e9, "s"), (1e6, "ms"), (1e3, "us"), (1.0, "ns")]);
    }
    if metric.ends_with("_bytes") {
        return scaled(
            value,
            &[
                (1073741824.0, "GiB"),
                (1048576.0, "MiB"),
                (1024.0, "KiB"),
                (1.0, "B"),
            ],
        );
    }
    if metric.ends_with("_per_s") {
        return scaled(value, &[(1e6, "M/s"), (1e3, "k/s"), (1.0, "/s")]);
    }
    if metric.ends_with("_share") {
        return format!("{:.1} %", value * 100.0);
    }
    format!("{value:.0}")
}

fn scaled(value: f64, units: &[(f64, &str)]) -> String {
    let last = units[units.len() - 1];
    let (size, unit) = *units
        .iter()
        .find(|(size, _)| value.abs() >= *size)
        .unwrap_or(&last);
    let scaled = value / size;
    let digits = if scaled >= 100.0 {
        0
    } else if scaled >= 10.0 {
        1
    } else {
        2
    };
    format!("{scaled:.digits$} {unit}")
}

/// What separates the first row from the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// Nothing; all rows are set in.
    Without,
    /// A line.
    Line,
}

/// Rows with the first column to the left and the others to the right.
pub fn aligned(rows: &[Vec<String>], rule: Rule) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<_> = (0..columns).map(width).collect();
    let (indent, gap) = match rule {
        Rule::Without => ("  ", "  "),
        Rule::Line => ("", "   "),
    };
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(&widths).enumerate();
        let cells = cells.map(|(column, (cell, &width))| match column {
            0 => format!("{cell:<width$}"),
            _ => format!("{cell:>width$}"),
        });
        let cells = cells.collect::<Vec<_>>().join(gap);
        format!("{indent}{}\n", cells.trim_end())
    };
    let mut text: String = rows.iter().take(1).map(line).collect();
    if rule == Rule::Line {
        let length = widths.iter().sum::<usize>() + gap.len() * columns.saturating_sub(1);
        text.push_str(&"-".repeat(length));
        text.push('\n');
    }
    text.extend(rows.iter().skip(1).map(line));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn milliseconds_have_three_significant_digits() {
        let shown = [0.0, 0.0104, 0.183, 0.9997, 1.254, 9.999, 27.44, 1204.4].map(ms);
        assert_eq!(
            shown,
            [
                "0.000", "0.010", "0.183", "1.00", "1.25", "10.0", "27.4", "1204"
            ]
        );
    }

    #[test]
    fn the_metrics_name_decides_the_unit() {
        assert_eq!(quantity("time_ns", 1234.0), "1.23 us");
        assert_eq!(quantity("time_ns", 0.25), "0.25 ns");
        assert_eq!(quantity("peak_rss_bytes", 3.0 * 1048576.0), "3.00 MiB");
        assert_eq!(quantity("requests_per_s", 45_000.0), "45.0 k/s");
        assert_eq!(quantity("compute_share", 0.953), "95.3 %");
        assert_eq!(quantity("threads", 12.0), "12");
    }
}
