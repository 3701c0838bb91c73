//! What an expert would build today: a Rayon pool for frames, one at niceness 19 for the decoders, a thread for audio.

use super::stage::Stage;
use crate::demo::{error::Error, messages::FramesSpec, server::cannot_build};
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::{
    thread::{self, sleep},
    time::{Duration, Instant},
};
use urgency_measure::class::become_nice;
use urgency_measure::frame::{self, DECODERS, ITEMS, STAGES};

pub fn start(spec: &FramesSpec, stage: &'static Stage) -> Result<impl Send + use<>, Error> {
    let pool = || ThreadPoolBuilder::new().num_threads(spec.workers);
    let drawing = pool().build().map_err(cannot_build(spec.contender))?;
    let decoding = pool()
        .start_handler(|_| become_nice())
        .build()
        .map_err(cannot_build(spec.contender))?;
    thread::spawn(move || audio(stage));
    thread::spawn(move || frames(stage, &drawing));
    for decoder in 0..DECODERS {
        decoding.spawn_fifo(move || decode(decoder, 0));
    }
    Ok(decoding)
}

fn audio(stage: &Stage) {
    let mut tick = 0;
    while let Some(due) = stage.buffer_due(tick) {
        sleep(until(due));
        tick = stage.fill_buffer(tick);
    }
}

fn frames(stage: &Stage, drawing: &ThreadPool) {
    let mut tick = 0;
    while let Some(due) = stage.frame_due(tick) {
        sleep(until(due));
        drawing.install(draw);
        tick = stage.frame_is_drawn(tick);
    }
}

fn draw() {
    for _ in 0..STAGES {
        let drawn = frame::Stage::default();
        rayon::scope(|scope| {
            for item in 0..ITEMS {
                let drawn = &drawn;
                scope.spawn(move |_| drawn.draw(item));
            }
        });
        drawn.verify();
    }
}

fn decode(decoder: u64, piece: u64) {
    frame::decode(decoder, piece, || ());
    rayon::spawn_fifo(move || decode(decoder, piece + 1));
}

fn until(due: Instant) -> Duration {
    due.saturating_duration_since(Instant::now())
}
