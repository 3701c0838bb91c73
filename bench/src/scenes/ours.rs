//! One runtime: a level for each lane, most urgent first, and one for the batch. Connections are tasks at the first.

use super::{Scene, work};
use crate::echo;
use crate::engines::ours::with_stats;
use std::ops::Range;
use std::sync::Arc;
use urgency::net::{TcpListener, TcpStream};
use urgency::sync::Mutex;
use urgency::{Runtime, join};
use urgency_measure::Sample;
use urgency_measure::client::lanes::MESSAGE;

urgency::levels! {
    /// Of the lanes, and of the batch.
    Levels:
        /// The first lane.
        First >
        /// The second one.
        Second >
        /// The third one.
        Third >
        /// The batch.
        Batch
}

static LOCK: Mutex<()> = Mutex::const_new(());

/// One sample.
pub fn run(scene: Scene, workers: usize) -> Sample {
    let builder = Runtime::builder().workers(workers).levels::<Levels>();
    let runtime = builder.build().expect("threads can be started");
    let listener = echo::ours::listen();
    let address = listener.local_addr().expect("a listener has an address");
    runtime.at(First).spawn(accept(scene, listener)).detach();
    let batch = move || {
        loop {
            batch(scene, work::BATCH);
        }
    };
    let start = || runtime.at(Batch).spawn_fn(batch).detach();
    let sample = with_stats(scene.measure(address, start), &runtime);
    // The batch never ends; the runtime ends with the process.
    std::mem::forget(runtime);
    sample
}

async fn accept(scene: Scene, listener: TcpListener) {
    loop {
        let (stream, _) = listener
            .accept()
            .await
            .expect("connections can be accepted");
        urgency::spawn(serve(scene, stream)).detach();
    }
}

async fn serve(scene: Scene, stream: TcpStream) {
    stream.set_nodelay(true).expect("TCP_NODELAY can be set");
    let stream = Arc::new(stream);
    let mut message = [0; MESSAGE];
    while stream.read_exact(&mut message).await.is_ok() {
        let (lane, units) = scene.request(&message);
        let reply = reply(scene, stream.clone(), message, units);
        // A task must not wait for a less urgent one, so that one replies by itself.
        match lane {
            0 => reply.await,
            1 => urgency::at(Second).spawn(reply).detach(),
            _ => urgency::at(Third).spawn(reply).detach(),
        }
    }
}

async fn reply(scene: Scene, stream: Arc<TcpStream>, message: [u8; MESSAGE], units: u64) {
    if scene.locks {
        let _held = LOCK.lock().await;
        work::request_held();
    }
    assert_eq!(compute(units), units, "wrong result");
    // A client that is gone needs no reply.
    let _ = stream.write_all(&message).await;
}

fn compute(units: u64) -> u64 {
    let Some((left, right)) = work::halves(units) else {
        return work::compute(units);
    };
    let (left, right) = join(|| compute(left), || compute(right));
    left + right
}

fn batch(scene: Scene, leaves: Range<u64>) {
    if let Some((left, right)) = work::batch_halves(&leaves) {
        join(|| batch(scene, left), || batch(scene, right));
        return;
    }
    work::batch_leaf();
    if scene.locks {
        let _held = LOCK.blocking_lock();
        work::batch_held();
    }
}
