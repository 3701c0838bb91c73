//! Urgency: one runtime with three levels, as shipped.

use super::stage::Stage;
use crate::demo::{error::Error, messages::FramesSpec, server::cannot_build};
use urgency::{Runtime, time::sleep_until};
use urgency_measure::frame::{self, DECODERS, ITEMS, STAGES};

urgency::levels! { Loop: Audio > Frame > Decode }

pub fn start(spec: &FramesSpec, stage: &'static Stage) -> Result<impl Send + use<>, Error> {
    let runtime = Runtime::builder()
        .workers(spec.workers)
        .levels::<Loop>()
        .build()
        .map_err(cannot_build(spec.contender))?;
    runtime.at(Audio).spawn(audio(stage)).detach();
    runtime.at(Frame).spawn(frames(stage)).detach();
    for decoder in 0..DECODERS {
        runtime
            .at(Decode)
            .spawn_fn(move || decode(decoder, 0))
            .detach();
    }
    Ok(runtime)
}

async fn audio(stage: &Stage) {
    let mut tick = 0;
    while let Some(due) = stage.buffer_due(tick) {
        sleep_until(due.into()).await;
        tick = stage.fill_buffer(tick);
    }
}

async fn frames(stage: &Stage) {
    let mut tick = 0;
    while let Some(due) = stage.frame_due(tick) {
        sleep_until(due.into()).await;
        for _ in 0..STAGES {
            let drawn = frame::Stage::default();
            urgency::scope(|scope| {
                for item in 0..ITEMS {
                    let drawn = &drawn;
                    scope.spawn(move || drawn.draw(item));
                }
            });
            drawn.verify();
        }
        tick = stage.frame_is_drawn(tick);
    }
}

fn decode(decoder: u64, piece: u64) {
    frame::decode(decoder, piece, || ());
    urgency::spawn_fn(move || decode(decoder, piece + 1)).detach();
}
