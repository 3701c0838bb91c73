//! A rayon pool for frames, one at niceness 19 for decoders, and a thread for audio.

use super::{Scene, measure};
use crate::engines;
use rayon::ThreadPool;
use std::thread;
use urgency_measure::frame::{self, DECODERS, ITEMS, STAGES, Stage};
use urgency_measure::gate::NAP;
use urgency_measure::loaded::Lengths;
use urgency_measure::machine::until;
use urgency_measure::{Sample, class};

/// One sample; with `fifo`, the audio's thread is in the class SCHED_FIFO where that is permitted.
pub fn run(lengths: Lengths, fifo: bool) -> Sample {
    let (drawing, decoding) = (engines::rayon::pool(2), engines::rayon::nice_pool(2));
    let scene = Scene::new();
    let start = || {
        thread::spawn(move || {
            if fifo && class::enter_real_time(class::CLIENT).is_err() {
                eprintln!("urgency-bench: the audio's thread may not enter the class SCHED_FIFO");
            }
            audio(scene)
        });
        thread::spawn(move || frames(scene, &drawing));
        for decoder in 0..DECODERS {
            decoding.spawn_fifo(move || decode(decoder, 0));
        }
    };
    let sample = measure(scene, lengths, start);
    // The decoders never end; the pool ends with the process.
    std::mem::forget(decoding);
    sample
}

fn audio(scene: &Scene) -> ! {
    let mut last = 0;
    loop {
        let Some(tick) = scene.next_buffer(last) else {
            thread::sleep(NAP);
            continue;
        };
        thread::sleep(until(tick));
        scene.fill_buffer(tick);
        last = tick;
    }
}

fn frames(scene: &Scene, drawing: &ThreadPool) -> ! {
    let mut last = 0;
    loop {
        let Some(tick) = scene.next_frame(last) else {
            thread::sleep(NAP);
            continue;
        };
        thread::sleep(until(tick));
        drawing.install(draw);
        last = scene.frame_is_drawn(tick);
    }
}

fn draw() {
    for _ in 0..STAGES {
        let stage = Stage::default();
        rayon::scope(|scope| {
            for item in 0..ITEMS {
                let stage = &stage;
                scope.spawn(move |_| stage.draw(item));
            }
        });
        stage.verify();
    }
}

fn decode(decoder: u64, piece: u64) {
    frame::decode(decoder, piece, || ());
    rayon::spawn_fifo(move || decode(decoder, piece + 1));
}
