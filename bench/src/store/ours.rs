//! One runtime of two workers with four levels.

use super::{Config, Scene};
use crate::engines::ours::{runtime_with, with_stats};
use std::sync::Arc;
use urgency::net::UnixStream;
use urgency::par;
use urgency_measure::Sample;
use urgency_measure::client::pacer::{ARRIVAL, arrival, socket};

urgency::levels! {
    /// What a store does.
    pub Levels:
        /// Somebody waits for a value.
        Read >
        /// Somebody waits for an acknowledgement.
        Write >
        /// Nobody waits as long as there is memory.
        Flush >
        /// Nobody waits.
        Compact
}

/// One sample.
pub fn run(config: Config) -> Sample {
    let runtime = runtime_with::<Levels>(2);
    let scene = Scene::new(config);
    let compacted = scene.clone();
    runtime
        .at(Compact)
        .spawn_fn(move || compact(&compacted))
        .detach();
    let (ask, asked) = socket();
    runtime
        .at(Read)
        .spawn(accept(scene.clone(), asked))
        .detach();
    let sample = with_stats(scene.measure(config, ask), &runtime);
    // Compaction never ends; the runtime ends with the process.
    std::mem::forget(runtime);
    sample
}

async fn accept(scene: Arc<Scene>, asked: std::os::unix::net::UnixStream) {
    let asked = UnixStream::try_from(asked).expect("a socket can be non-blocking");
    let mut bytes = [0; ARRIVAL];
    while asked.read_exact(&mut bytes).await.is_ok() {
        let (scene, number) = (scene.clone(), arrival(bytes));
        match scene.is_write(number) {
            false => urgency::at(Read)
                .spawn(async move { scene.read(number) })
                .detach(),
            true => urgency::at(Write)
                .spawn(async move { write(scene, number) })
                .detach(),
        }
    }
}

fn write(scene: Arc<Scene>, number: usize) {
    if let Some(full) = scene.write(number) {
        let flush = move || {
            scene.store.flush(&full, |entries| {
                par::sort_by_key(entries, |entry| entry.key)
            });
        };
        urgency::at(Flush).spawn_fn(flush).detach();
    }
}

fn compact(scene: &Scene) -> ! {
    let store = &scene.store;
    loop {
        if !store.compact_flushed() {
            par::for_each(store.parts(), |part| store.compact_cold(part));
        }
    }
}
