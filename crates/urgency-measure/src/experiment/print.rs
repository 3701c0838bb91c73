//! Texts for people: the list of experiments, and the result of one.

use super::Experiment;
use super::options::Options;
use super::summary::{Certainty, Summary, Verdict, in_words};
use crate::table::{Rule, aligned, quantity};
use std::fmt::{self, Write as _};

/// The experiments with their contenders and bars.
pub fn list(experiments: &[Experiment]) -> String {
    let one = |experiment: &Experiment| {
        let contenders: Vec<_> = experiment.contenders().iter().map(|c| c.name).collect();
        let (name, about, contenders) =
            (experiment.name(), experiment.about(), contenders.join(", "));
        let bars = experiment.bars().iter();
        let bars: String = bars
            .map(|bar| format!("    bar: {}\n", in_words(bar)))
            .collect();
        format!("{name}\n    {about}\n    contenders: {contenders}\n{bars}")
    };
    experiments.iter().map(one).collect()
}

/// What came of one experiment.
pub fn result(experiment: &Experiment, summary: &Summary, options: &Options) -> String {
    let mut text = String::new();
    write(&mut text, experiment, summary, options).expect("a string takes any text");
    text
}

fn write(
    text: &mut String,
    experiment: &Experiment,
    summary: &Summary,
    options: &Options,
) -> fmt::Result {
    writeln!(text, "\n{}: {}", experiment.name(), experiment.about())?;
    let mut lines = vec![header(experiment)];
    for contender in experiment.contenders() {
        if let Some(line) = line(experiment, summary, contender.name) {
            lines.push(line);
        }
    }
    text.push_str(&aligned(&lines, Rule::Without));
    let foreign = 100.0 * summary.foreign;
    let rounds = options.rounds;
    writeln!(
        text,
        "  medians of {rounds} rounds; others used {foreign:.1} % of the machine"
    )?;
    for Certainty {
        series,
        events,
        needed,
    } in &summary.certainty
    {
        writeln!(
            text,
            "  p99 of {series}: {events:.0} events or more; with {needed:.0} two runs of the same agree within 5 %"
        )?;
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
        writeln!(text, "  bar {}: {verdict}{weight}", judged.bar)?;
    }
    for (contender, reason) in &summary.failed {
        writeln!(text, "  FAILED {contender}: {reason}")?;
    }
    Ok(())
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

#[cfg(test)]
mod tests {
    use super::super::Experiment;
    use super::super::rounds::{Measured, Row};
    use super::{Summary, line};
    use crate::sample::Sample;

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
}
