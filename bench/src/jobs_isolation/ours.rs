//! Two jobs on a core set of two cores under *shares*.

use super::{COMPUTATIONS, CORES, Load, Scene};
use crate::engines;
use std::sync::Arc;
use urgency::jobs::CoreSet;
use urgency::net::UnixStream;
use urgency::spawn_fn;
use urgency_measure::Sample;
use urgency_measure::client::pacer::{ARRIVAL, arrival, socket};

/// One sample, beside the neighbour or alone, with workers that are pinned or not. The quiet job may have so many
/// cores.
pub fn run(load: Load, pinned: bool, beside: bool, most: usize) -> Sample {
    let builder = CoreSet::builder().cores(CORES);
    let set = match pinned {
        true => builder.pinned().build(),
        false => builder.build(),
    };
    let set = set.expect("threads can be started");
    let scene = Scene::new(load);
    let (asked, requests) = socket();
    let quiet = set.job().max_cpus(most);
    let quiet = quiet.spawn(answer(scene.clone(), requests));
    quiet.expect("a job may run").detach();
    if beside {
        let computed = scene.clone();
        let neighbour = set.spawn_fn(move || {
            let computations = (1..COMPUTATIONS).map(|_| {
                let scene = computed.clone();
                spawn_fn(move || scene.compute(engines::ours::Join))
            });
            let others: Vec<_> = computations.collect();
            computed.compute(engines::ours::Join);
            for other in others {
                other.get().expect("a computation ends");
            }
        });
        neighbour.expect("a job may run").detach();
    }
    let sample = scene.measure(asked);
    set.drain();
    sample
}

async fn answer(scene: Arc<Scene>, requests: std::os::unix::net::UnixStream) {
    let requests = UnixStream::try_from(requests).expect("a socket can be non-blocking");
    let mut bytes = [0; ARRIVAL];
    let mut answers = Vec::new();
    while requests.read_exact(&mut bytes).await.is_ok() {
        let scene = scene.clone();
        let request = arrival(bytes);
        answers.push(spawn_fn(move || scene.answer(request, engines::ours::Join)));
    }
    for answer in answers {
        answer.await.expect("a request is answered");
    }
}
