//! One runtime of two workers with four levels, and a closure for each packet.

use super::{Aggregate, Pipeline, aggregate};
use crate::engines::ours::{runtime_with, with_stats};
use std::sync::Arc;
use urgency::net::UnixStream;
use urgency::par;
use urgency_measure::Sample;
use urgency_measure::client::pacer::{ARRIVAL, arrival, socket};
use urgency_measure::loaded::Lengths;

urgency::levels! {
    /// What a pipeline does.
    pub Levels:
        /// What sources send.
        Receive >
        /// Results, which are due.
        Emit >
        /// What was received.
        Decode >
        /// What came too late.
        Backfill
}

/// One sample.
pub fn run(lengths: Lengths) -> Sample {
    let runtime = runtime_with::<Levels>(2);
    let pipeline = Pipeline::new();
    let archive = pipeline.clone();
    runtime
        .at(Backfill)
        .spawn_fn(move || backfill(&archive))
        .detach();
    let (send, received) = socket();
    runtime
        .at(Receive)
        .spawn(receive(pipeline.clone(), received))
        .detach();
    let sample = with_stats(pipeline.measure(lengths, send), &runtime);
    // The backfill never ends; the runtime ends with the process.
    std::mem::forget(runtime);
    sample
}

async fn receive(pipeline: Arc<Pipeline>, received: std::os::unix::net::UnixStream) {
    let received = UnixStream::try_from(received).expect("a socket can be non-blocking");
    let mut bytes = [0; ARRIVAL];
    while received.read_exact(&mut bytes).await.is_ok() {
        let (pipeline, packet) = (pipeline.clone(), arrival(bytes));
        urgency::at(Decode)
            .spawn_fn(move || decode(&pipeline, packet))
            .detach();
    }
}

fn decode(pipeline: &Arc<Pipeline>, packet: usize) {
    for window in pipeline.decode(packet) {
        let pipeline = pipeline.clone();
        let emit = move || {
            let all = par::reduce(&window.packets[..], aggregate, Aggregate::and);
            pipeline.emit(&window, all.unwrap_or_default());
        };
        urgency::at(Emit).spawn_fn(emit).detach();
    }
}

fn backfill(pipeline: &Pipeline) -> ! {
    loop {
        par::for_each(pipeline.archive(), |packet| pipeline.backfill(packet));
    }
}
