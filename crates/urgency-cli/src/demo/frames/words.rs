//! The frame loop's results: as a table, and in a sentence for each contender, with the numbers that were measured.

use super::Outcome;
use urgency_measure::latencies::Latencies;
use urgency_measure::table::{self, Rule, ms};

const COLUMNS: [&str; 7] = [
    "",
    "frame p50",
    "frame p99",
    "late or skipped",
    "audio p50",
    "audio p99",
    "decoded/s",
];

/// The table, with a line that explains its columns.
pub fn table(outcomes: &[Outcome]) -> String {
    let mut rows = vec![COLUMNS.map(str::to_owned).to_vec()];
    rows.extend(outcomes.iter().map(row));
    let mut text = "Frames: from the tick of a frame until it is drawn, and from the tick of a buffer of audio until it is full, in ms.\n\
         A frame is late when the next one is due. Decoded/s: pieces of 100 us of work.\n\n"
        .to_owned();
    text.push_str(&table::aligned(&rows, Rule::Line));
    for outcome in outcomes {
        if let Some(failure) = &outcome.failure {
            let title = outcome.contender.title();
            text.push_str(&format!("{title} failed: {failure}\n"));
        }
    }
    text
}

fn row(outcome: &Outcome) -> Vec<String> {
    let Outcome {
        frames,
        audio,
        missed,
        due,
        ..
    } = outcome;
    vec![
        outcome.contender.title().to_owned(),
        quantile(frames, 0.5),
        quantile(frames, 0.99),
        format!("{missed} of {due}"),
        quantile(audio, 0.5),
        quantile(audio, 0.99),
        format!("{:.0}", outcome.decoding.per_s()),
    ]
}

fn quantile(latencies: &Latencies, q: f64) -> String {
    let quantile = latencies.quantile(q);
    quantile.map_or_else(|| "-".to_owned(), |quantile| ms(quantile.ms))
}

/// What it means, whichever is better.
pub fn meaning(outcomes: &[Outcome]) -> String {
    let measured = outcomes.iter().filter(|outcome| outcome.due > 0);
    let sentences = measured.map(|outcome| {
        format!(
            "Beside decoders that never look up, {} missed {} of {} frames, and filled 99 of 100 buffers of audio within {} ms.",
            outcome.contender.title(),
            outcome.missed,
            outcome.due,
            quantile(&outcome.audio, 0.99)
        )
    });
    sentences.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::demo::{contender::Contender, messages::FramesSaid};
    use std::time::Duration;

    fn outcome() -> Outcome {
        let of = |ms| {
            let mut latencies = Latencies::new();
            latencies.record(Duration::from_millis(ms));
            latencies
        };
        let mut outcome = Outcome::new(Contender::TwoPools);
        outcome.add(&FramesSaid {
            due: 10,
            on_time: 7,
            frames: of(9),
            audio: of(2),
            grains: 50,
            ns: 500_000_000,
        });
        outcome
    }

    #[test]
    fn a_row_shows_frames_audio_and_decoding() {
        let cells = row(&outcome());
        let expected = [
            "two Rayon pools",
            "9.00",
            "9.00",
            "3 of 10",
            "2.00",
            "2.00",
            "100",
        ];
        assert_eq!(cells, expected);
    }

    #[test]
    fn the_words_repeat_the_numbers_and_say_nothing_of_what_was_not_measured() {
        let text = meaning(&[Outcome::new(Contender::Urgency), outcome()]);
        assert_eq!(text.lines().count(), 1, "{text}");
        assert!(
            text.contains("two Rayon pools missed 3 of 10 frames"),
            "{text}"
        );
        assert!(text.contains("audio within 2.00 ms"), "{text}");
    }
}
