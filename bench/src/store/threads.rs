//! Plain threads: three read and write, whichever is free, one flushes, and two compact at niceness 19.

use super::{Config, Frozen, Scene};
use std::io::Read as _;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use urgency_measure::client::pacer::{ARRIVAL, arrival, socket};
use urgency_measure::{Sample, class};

/// One sample.
pub fn run(config: Config) -> Sample {
    let scene = Scene::new(config);
    let (ask, asked) = socket();
    let asked = Arc::new(Mutex::new(asked));
    let (full, to_flush) = channel();
    for _ in 0..3 {
        let (scene, asked, full) = (scene.clone(), asked.clone(), full.clone());
        thread::spawn(move || answer(&scene, &asked, &full));
    }
    let flushed = scene.clone();
    thread::spawn(move || flush(&flushed, &to_flush));
    let next = Arc::new(AtomicUsize::new(0));
    for _ in 0..2 {
        let (scene, next) = (scene.clone(), next.clone());
        thread::spawn(move || compact(&scene, &next));
    }
    scene.measure(config, ask)
}

fn answer(scene: &Scene, asked: &Mutex<UnixStream>, full: &Sender<Arc<Frozen>>) {
    let mut bytes = [0; ARRIVAL];
    loop {
        let read = asked
            .lock()
            .expect("no thread panics")
            .read_exact(&mut bytes);
        if read.is_err() {
            return;
        }
        match scene.is_write(arrival(bytes)) {
            false => scene.read(arrival(bytes)),
            true => {
                if let Some(frozen) = scene.write(arrival(bytes)) {
                    full.send(frozen).expect("the flushing thread does not end");
                }
            }
        }
    }
}

fn flush(scene: &Scene, full: &Receiver<Arc<Frozen>>) {
    for frozen in full {
        scene
            .store
            .flush(&frozen, |entries| entries.sort_by_key(|entry| entry.key));
    }
}

/// Takes the next piece, whichever thread that is: flushed runs once a round, then the parts of the cold ones.
fn compact(scene: &Scene, next: &AtomicUsize) {
    class::become_nice();
    let parts = scene.store.parts();
    loop {
        match next.fetch_add(1, Ordering::Relaxed) % (parts.len() + 1) {
            0 => drop(scene.store.compact_flushed()),
            part => scene.store.compact_cold(&parts[part - 1]),
        }
    }
}
