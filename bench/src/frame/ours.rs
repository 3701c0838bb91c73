//! One runtime of two workers with three levels.

use super::{Scene, measure};
use crate::engines::ours::with_stats;
use urgency::Runtime;
use urgency::time::sleep;
use urgency_measure::frame::{self, DECODERS, ITEMS, STAGES, Stage};
use urgency_measure::gate::NAP;
use urgency_measure::loaded::Lengths;
use urgency_measure::machine::until;
use urgency_measure::{Sample, class};

urgency::levels! {
    /// The scene's levels.
    Levels:
        /// Buffers of audio.
        Audio >
        /// Frames.
        Frame >
        /// Decoders.
        Decode
}

/// What the program asks for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Variant {
    /// Three levels.
    Default,
    /// And `real_time_polling`.
    Privileged,
    /// Three levels, and decoders that check in.
    Checking,
    /// Three levels, in a process without privileges.
    User,
}

/// One sample.
pub fn run(lengths: Lengths, variant: Variant) -> Sample {
    if variant == Variant::User {
        class::drop_privileges();
    }
    let privileged = variant == Variant::Privileged;
    let runtime = Runtime::builder()
        .workers(2)
        .levels::<Levels>()
        .real_time_polling(privileged)
        .build()
        .expect("threads can be started");
    let scene = Scene::new();
    let start = || {
        runtime.at(Audio).spawn(audio(scene)).detach();
        runtime.at(Frame).spawn(frames(scene)).detach();
        for decoder in 0..DECODERS {
            let first = move || decode(decoder, 0, variant == Variant::Checking);
            runtime.at(Decode).spawn_fn(first).detach();
        }
    };
    let sample = with_stats(measure(scene, lengths, start), &runtime);
    // The decoders never end; the runtime ends with the process.
    std::mem::forget(runtime);
    sample
}

async fn audio(scene: &Scene) {
    let mut last = 0;
    loop {
        let Some(tick) = scene.next_buffer(last) else {
            sleep(NAP).await;
            continue;
        };
        sleep(until(tick)).await;
        scene.fill_buffer(tick);
        last = tick;
    }
}

async fn frames(scene: &Scene) {
    let mut last = 0;
    loop {
        let Some(tick) = scene.next_frame(last) else {
            sleep(NAP).await;
            continue;
        };
        sleep(until(tick)).await;
        for _ in 0..STAGES {
            let stage = Stage::default();
            urgency::scope(|scope| {
                for item in 0..ITEMS {
                    let stage = &stage;
                    scope.spawn(move || stage.draw(item));
                }
            });
            stage.verify();
        }
        last = scene.frame_is_drawn(tick);
    }
}

fn decode(decoder: u64, piece: u64, checks_in: bool) {
    frame::decode(decoder, piece, || {
        if checks_in {
            urgency::scheduling_point();
        }
    });
    urgency::spawn_fn(move || decode(decoder, piece + 1, checks_in)).detach();
}
