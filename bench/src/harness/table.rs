//! Tables for people: the list of experiments, and the result of one.

use super::Experiment;
use super::options::Options;
use super::summary::{Certainty, Summary, Verdict, in_words};

/// Prints the experiments with their contenders and bars.
pub fn list(experiments: &[Experiment]) {
    for experiment in experiments {
        let contenders: Vec<_> = experiment.contenders().iter().map(|c| c.name).collect();
        println!("{}\n    {}", experiment.name(), experiment.about());
        println!("    contenders: {}", contenders.join(", "));
        for bar in experiment.bars() {
            println!("    bar: {}", in_words(bar));
        }
    }
}

/// Prints what came of one experiment.
pub fn print(experiment: &Experiment, summary: &Summary, options: &Options) {
    println!("\n{}: {}", experiment.name(), experiment.about());
    let mut lines = vec![header(experiment)];
    for contender in experiment.contenders() {
        if let Some(line) = line(experiment, summary, contender.name) {
            lines.push(line);
        }
    }
    align(&lines);
    let foreign = 100.0 * summary.foreign;
    println!(
        "  medians of {} rounds; others used {foreign:.1} % of the machine",
        options.rounds
    );
    for Certainty {
        series,
        events,
        needed,
    } in &summary.certainty
    {
        println!(
            "  p99 of {series}: {events:.0} events or more; with {needed:.0} two runs of the same agree within 5 %"
        );
    }
    for judged in &summary.judged {
        let verdict = match &judged.verdict {
            Verdict::NotMeasured => "not measured".to_owned(),
            Verdict::Kept(value) => format!("kept    ({})", compared(value, &judged.bar)),
            Verdict::Missed(value) => format!("MISSED  ({})", compared(value, &judged.bar)),
        };
        let weight = if options.judges_bars() {
            ""
        } else {
            " (not judged at this scale)"
        };
        println!("  bar {}: {verdict}{weight}", judged.bar);
    }
    for (contender, reason) in &summary.failed {
        println!("  FAILED {contender}: {reason}");
    }
}

fn compared(value: &f64, bar: &str) -> String {
    if bar.contains(" x ") {
        return format!("{value:.3} x");
    }
    let metric = bar.split(' ').next().unwrap_or_default();
    quantity(metric, *value)
}

fn header(experiment: &Experiment) -> Vec<String> {
    let mut cells = vec!["contender".to_owned()];
    cells.extend(
        experiment
            .columns()
            .iter()
            .map(|metric| (*metric).to_owned()),
    );
    cells.push("[low .. high]".to_owned());
    cells.push(format!("x {}", experiment.reference()));
    cells
}

fn line(
    experiment: &Experiment,
    summary: &Summary,
    contender: &'static str,
) -> Option<Vec<String>> {
    let spreads = summary.spreads.get(contender)?;
    let mut cells = vec![contender.to_owned()];
    for metric in experiment.columns() {
        cells.push(
            spreads
                .get(metric)
                .map_or("-".to_owned(), |s| quantity(metric, s.median)),
        );
    }
    let headline = experiment.columns().first()?;
    let own = spreads.get(headline);
    let range = |s: &super::summary::Spread| {
        format!(
            "[{} .. {}]",
            quantity(headline, s.low),
            quantity(headline, s.high)
        )
    };
    cells.push(own.map_or("-".to_owned(), range));
    let ratio = summary.ratios.get(contender);
    cells.push(ratio.map_or("-".to_owned(), |ratio| format!("{ratio:.2}")));
    Some(cells)
}

fn align(lines: &[Vec<String>]) {
    let columns = lines.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        let cells = lines.iter().filter_map(|line| line.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    for line in lines {
        let mut text = String::from(" ");
        for (column, cell) in line.iter().enumerate() {
            let width = widths[column];
            if column == 0 {
                text += &format!(" {cell:<width$}");
            } else {
                text += &format!("  {cell:>width$}");
            }
        }
        println!("{}", text.trim_end());
    }
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

#[cfg(test)]
mod tests {
    use super::super::rounds::{Measured, Row};
    use super::super::{Experiment, Sample};
    use super::{Summary, line, quantity};

    #[test]
    fn the_printed_ratio_is_the_paired_one() {
        let experiment = Experiment::new("name", "about")
            .table("rayon", &["time_ns"])
            .contender("ours", Sample::new)
            .contender("rayon", Sample::new);
        let samples = [
            (0, "ours", 10.0),
            (0, "rayon", 20.0),
            (1, "ours", 100.0),
            (1, "rayon", 200.0),
            (2, "ours", 90.0),
        ];
        let rows = samples.map(|(round, contender, time)| Row {
            round,
            contender,
            outcome: Ok(Sample::new().with("time_ns", time)),
            foreign: 0.0,
        });
        let measured = Measured {
            rows: rows.into(),
            ..Measured::default()
        };
        let summary = Summary::of(&experiment, &measured);
        let printed = line(&experiment, &summary, "ours").unwrap();
        assert_eq!(printed.last().unwrap(), "0.50");
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
